"""Perplexity: as transformers' own loss has it, the same whatever a text is read with, and every token once."""

import math

import pytest
import torch
import transformers

from generation.engines.perplexity import Predictor, Surprise
from generation.engines.transformers_model import TransformersLanguageModel
from tests.generation.tiny import CONTEXT, WORDS, gpt2, make_tokenizer

CPU = torch.device("cpu")
TEXTS = [
    "my aunt drives a crane",
    "rain fell",
    "the choir sang in three languages at the harbor",
    "rain",
    "my aunt sang and the choir fell and a crane drives at the harbor",
    "the choir sang",
]


def make_predictor(model=None, **options):
    language_model = TransformersLanguageModel(
        model or gpt2(), make_tokenizer(**options), name="tiny", revision="1", device=CPU
    )
    return Predictor(language_model)


@torch.inference_mode()
def loss_of(model, ids):
    """The mean that transformers itself computes, (1, T) ids being their own labels."""
    return model(input_ids=ids, labels=ids).loss.item()


def perplexities(surprises):
    return [math.exp(surprise.total / surprise.tokens) for surprise in surprises if surprise.tokens]


# --- What is predicted --------------------------------------------------------------------


def test_the_perplexity_of_a_text_is_exp_of_transformers_own_loss():
    predictor = make_predictor()
    model, text = gpt2(), TEXTS[2]
    [surprise] = predictor.read([text])
    expected = loss_of(model, make_tokenizer()(text, return_tensors="pt")["input_ids"])
    assert surprise.tokens == 8
    assert surprise.total / surprise.tokens == pytest.approx(expected, rel=1e-5)


def test_what_the_tokenizer_puts_in_front_is_read_and_the_first_token_is_predicted_from_it():
    [surprise] = make_predictor(begins_with_a_mark=True).read(["rain fell"])
    ids = make_tokenizer(begins_with_a_mark=True)("rain fell", return_tensors="pt")["input_ids"]
    assert ids.shape == (1, 3)
    assert surprise.tokens == 2
    assert surprise.total / 2 == pytest.approx(loss_of(gpt2(), ids), rel=1e-5)


def test_a_text_of_one_token_has_nothing_to_predict_where_nothing_stands_before_it():
    assert make_predictor().read(["rain"]) == [Surprise(total=0.0, tokens=0)]
    [surprise] = make_predictor(begins_with_a_mark=True).read(["rain"])
    assert surprise.tokens == 1


def test_no_texts_take_no_forward():
    assert make_predictor().read([]) == []


def test_a_model_that_finds_all_words_equally_likely_is_as_perplexed_as_it_has_words():
    model = gpt2()
    torch.nn.init.zeros_(model.lm_head.weight)
    assert perplexities(make_predictor(model).read(TEXTS[:2])) == pytest.approx([len(WORDS) + 2] * 2)


# --- Batches ------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens_a_forward", [1, 20, 10_000])
def test_what_a_text_is_read_with_changes_nothing(tokens_a_forward):
    predictor = make_predictor()
    alone = [predictor.read([text])[0] for text in TEXTS]
    predictor.tokens_a_forward = tokens_a_forward
    together = predictor.read(TEXTS)
    assert [surprise.tokens for surprise in together] == [len(text.split()) - 1 for text in TEXTS]
    assert [each.total for each in together] == pytest.approx([each.total for each in alone], rel=1e-4)


def test_no_forward_has_more_tokens_than_it_may_unless_one_text_has(monkeypatch):
    predictor = make_predictor()
    predictor.tokens_a_forward = 20
    shapes, forward = [], predictor.model.forward
    monkeypatch.setattr(
        predictor.model, "forward", lambda **inputs: shapes.append(inputs["input_ids"].shape) or forward(**inputs)
    )
    predictor.read(TEXTS * 3)
    assert len(shapes) > 3
    assert all(rows * length <= 20 or rows == 1 for rows, length in shapes)


def test_logits_turned_into_probabilities_in_parts_give_the_same(monkeypatch):
    whole = make_predictor().read(TEXTS)
    monkeypatch.setattr("generation.engines.perplexity.BYTES_AT_ONCE", 1)
    assert make_predictor().read(TEXTS) == whole


# --- Long texts ---------------------------------------------------------------------------


@torch.inference_mode()
def test_of_a_text_longer_than_the_context_every_token_is_predicted_once_from_half_a_context_at_least():
    """As transformers' guide has it, with a stride of half the context."""
    text = " ".join(TEXTS)
    ids = make_tokenizer()(text, return_tensors="pt")["input_ids"]
    assert ids.shape[1] == 34
    model, total, count, end_before = gpt2(), 0.0, 0, 0
    for begin in range(0, 34, CONTEXT // 2):
        end = min(begin + CONTEXT, 34)
        labels = ids[:, begin:end].clone()
        labels[:, : end_before - begin] = -100
        predicted = (labels[:, 1:] != -100).sum().item()
        total += model(input_ids=ids[:, begin:end], labels=labels).loss.item() * predicted
        count, end_before = count + predicted, end
        if end == 34:
            break
    [surprise] = make_predictor().read([text])
    assert surprise.tokens == count == 33
    assert surprise.total == pytest.approx(total, rel=1e-5)


def test_a_long_text_among_short_ones_is_put_together_again():
    predictor = make_predictor()
    texts = [TEXTS[0], " ".join(TEXTS), TEXTS[1]]
    alone = [predictor.read([text])[0] for text in texts]
    assert [each.total for each in predictor.read(texts)] == pytest.approx([each.total for each in alone], rel=1e-4)


# --- Broken weights, other precisions, the embedded model -----------------------------------


def test_broken_weights_give_no_number_that_looks_right():
    model = gpt2()
    torch.nn.init.constant_(model.transformer.wte.weight, math.nan)
    [surprise] = make_predictor(model).read(["rain fell"])
    assert math.isnan(surprise.total)


def test_bfloat16_is_near():
    exact = perplexities(make_predictor().read(TEXTS))
    assert perplexities(make_predictor(gpt2().bfloat16()).read(TEXTS)) == pytest.approx(exact, rel=0.2)


@torch.inference_mode()
def test_the_embedded_model_agrees_with_its_own_loss(language_model):
    texts = ["The choir sang in three languages.", "my aunt drives a crane at the harbor and paints", "rain"]
    surprises = Predictor(language_model).read(texts)
    folder = language_model.model.config._name_or_path
    plain = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()
    for text, surprise in zip(texts[:2], surprises[:2], strict=True):
        ids = language_model.tokenizer(text, return_tensors="pt")["input_ids"]
        assert surprise.total / surprise.tokens == pytest.approx(loss_of(plain, ids), rel=1e-4)
    assert surprises[2].tokens == 0
