"""ALICE with the embedded models: what it is for, and that engines and batches change nothing."""

from statistics import fmean

import pytest
import torch
from django.conf import settings

from generation import working
from generation.decoding import alice, topk
from generation.decoding.protocols import TOXIC, statement
from generation.parameters import AliceParameters, Direction, TopKParameters
from generation.prompting import build_prompt, draw_demonstrations
from tests.factories import DEMONSTRATIONS

PROMPTS = [build_prompt(draw_demonstrations(DEMONSTRATIONS, seed=seed)) for seed in range(20)]
# The paper's search, but smaller.
SMALL = {"beam": 6, "vocabulary": 50, "max_new_tokens": 12, "no_repeat_ngram_size": 3}


@pytest.fixture(scope="session")
def classifier():
    return working.load_classifier(settings.CLASSIFIER)


def decode(model, classifier, prompts=PROMPTS, *, direction=Direction.FALSE_POSITIVES, **parameters):
    parameters = AliceParameters(direction=direction, **SMALL | parameters)
    return alice.decode(model, classifier, prompts, seeds=range(len(prompts)), parameters=parameters).found


@pytest.fixture(scope="module")
def towards_toxic(language_model, classifier):
    """What ALICE makes of the 20 prompts when it seeks the class toxic."""
    return decode(language_model, classifier)


def mean_toxic_prob(found):
    return fmean(best.toxic_prob for best, *_ in found)


def test_alice_steers_towards_the_sought_class_in_both_directions(language_model, classifier, towards_toxic):
    """The prompts are the same benign ones; no text is offensive, only more or less so to the classifier."""
    unsteered = mean_toxic_prob(decode(language_model, classifier, classifier_weight=0))
    by_topk = topk.decode(
        language_model, PROMPTS, seeds=range(20), parameters=TopKParameters(max_new_tokens=SMALL["max_new_tokens"])
    )
    sampled = classifier.log_probs([hypothesis.text for hypothesis in by_topk])[:, TOXIC].exp().mean().item()
    up = mean_toxic_prob(towards_toxic)
    down = mean_toxic_prob(decode(language_model, classifier, direction=Direction.FALSE_NEGATIVES))
    assert down < min(unsteered, sampled)
    assert up > max(unsteered, sampled)
    assert up - down > 0.2


def test_a_statement_does_not_depend_on_what_shares_its_batch(language_model, classifier, towards_toxic):
    some = [3, 17, 8, 0, 11]
    again = decode(language_model, classifier, [PROMPTS[number] for number in some])
    assert [best.text for best, *_ in again] == [towards_toxic[number][0].text for number in some]


def test_pruning_changes_no_statement(language_model, classifier, towards_toxic):
    parameters = AliceParameters(direction=Direction.FALSE_POSITIVES, **SMALL)
    full = alice.decode(language_model, classifier, PROMPTS[:4], seeds=range(4), parameters=parameters, pruning=False)
    assert [best.tokens for best, *_ in full.found] == [best.tokens for best, *_ in towards_toxic[:4]]


def test_texts_put_together_from_pieces_are_what_the_tokenizer_decodes(language_model, towards_toxic):
    hypotheses = [hypothesis for found in towards_toxic for hypothesis in found]
    assert len(hypotheses) == 20 * SMALL["beam"]
    for hypothesis in hypotheses:
        assert hypothesis.text == statement(language_model.decode(hypothesis.tokens))


def test_scores_and_probabilities_are_those_of_the_models_read_afresh(language_model, classifier, towards_toxic):
    for prompt, (best, *_) in list(zip(PROMPTS, towards_toxic, strict=True))[:3]:
        tokens = language_model.encode(prompt)
        for position, token in enumerate(best.tokens):
            text = [*tokens, *best.tokens[:position]]
            [found] = _log_softmax(language_model, text)[token : token + 1].tolist()
            assert best.log_probs[position] == pytest.approx(found, abs=1e-3)
        votes = classifier.log_probs([_text(language_model, best, length) for length in range(1, len(best.tokens) + 1)])
        assert best.sought_log_probs == pytest.approx(votes[:, TOXIC].tolist(), abs=1e-4)
        total = 0.5 * sum(best.log_probs) + 0.5 * sum(best.sought_log_probs)
        assert best.score == pytest.approx(total / len(best.tokens), abs=1e-6)
        assert best.toxic_prob == pytest.approx(votes[-1, TOXIC].exp().item(), abs=1e-4)


def _text(model, hypothesis, length):
    return statement(model.decode(hypothesis.tokens[:length]))


@torch.inference_mode()
def _log_softmax(model, tokens):
    return (model.model(torch.tensor([tokens]), attention_mask=causal(len(tokens))).logits[0, -1] / 0.9).log_softmax(-1)


def causal(length):
    return torch.full((1, 1, length, length), torch.finfo(torch.float32).min).triu(1)
