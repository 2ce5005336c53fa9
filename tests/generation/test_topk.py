"""Top-k decoding, on models of a few words whose probabilities are known."""

import math
from collections import Counter

import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from generation.decoding.protocols import LENGTH, STOP
from generation.decoding.topk import decode
from generation.parameters import TopKParameters
from tests.generation.toys import END_OF_TEXT, ToyLanguageModel, always

LOG_2 = math.log(2)


def one(model, *, prompt="", seed=7, on_step=lambda: None, **parameters):
    [hypothesis] = decode(model, [prompt], seeds=[seed], parameters=TopKParameters(**parameters), on_step=on_step)
    return hypothesis


def recite(*pieces):
    """A model that always says these pieces, one after the other."""
    vocabulary = sorted(set(pieces))
    order = [vocabulary.index(piece) for piece in pieces]
    return ToyLanguageModel(
        vocabulary, lambda tokens: [9.0 * (t == order[len(tokens)]) for t in range(len(vocabulary))]
    )


# --- How a statement ends ---------------------------------------------------------------


def test_a_statement_is_what_stands_before_the_newline():
    hypothesis = one(recite(b" rain", b" fell", b"\n", b" snow"), k=1)
    assert (hypothesis.text, hypothesis.finish_reason) == ("rain fell", STOP)


def test_a_token_that_has_a_newline_in_it_ends_the_statement_with_what_stands_before_it():
    hypothesis = one(recite(b" rain", b" fell", b".\n- ", b" snow"), k=1)
    assert (hypothesis.text, hypothesis.finish_reason) == ("rain fell.", STOP)


def test_the_end_of_text_ends_a_statement_and_leaves_no_mark():
    hypothesis = one(recite(b" rain", b" fell", END_OF_TEXT, b" snow"), k=1)
    assert (hypothesis.text, hypothesis.finish_reason) == ("rain fell", STOP)


def test_the_token_that_ended_a_statement_is_among_its_tokens():
    model = recite(b" rain", b" fell", b"\n")
    hypothesis = one(model, k=1)
    assert [model.pieces[token] for token in hypothesis.tokens] == [b" rain", b" fell", b"\n"]
    assert len(hypothesis.log_probs) == 3


def test_at_the_token_limit_a_statement_is_what_there_is():
    hypothesis = one(recite(b" rain", b" fell", b" all", b" day", b"\n"), k=1, max_new_tokens=3)
    assert (hypothesis.text, hypothesis.finish_reason, len(hypothesis.tokens)) == ("rain fell all", LENGTH, 3)


def test_a_newline_at_the_token_limit_is_an_end_at_a_newline():
    hypothesis = one(recite(b" rain", b" fell", b"\n"), k=1, max_new_tokens=3)
    assert (hypothesis.text, hypothesis.finish_reason) == ("rain fell", STOP)


def test_a_newline_first_makes_an_empty_statement():
    assert one(recite(b"\n"), k=1).text == ""


def test_half_a_character_at_the_token_limit_is_left_out():
    grinning = "\N{GRINNING FACE}".encode()
    hypothesis = one(recite(b" rain ", grinning[:2], grinning[2:]), k=1, max_new_tokens=2)
    assert hypothesis.text == "rain"


def test_a_character_made_of_two_tokens_is_kept():
    grinning = "\N{GRINNING FACE}".encode()
    assert one(recite(b" rain ", grinning[:2], grinning[2:], b"\n"), k=1).text == "rain \N{GRINNING FACE}"


def test_null_characters_which_no_database_stores_are_left_out():
    assert one(recite(b" rain\0", b" fell", b"\n"), k=1).text == "rain fell"


# --- What is drawn ----------------------------------------------------------------------


def test_log_probabilities_are_those_of_the_whole_vocabulary_whatever_k_is():
    model = always(b" rain", b" snow", b" hail", b" fog", logits=[3 * LOG_2, 2 * LOG_2, LOG_2, LOG_2])
    assert one(model, k=1, temperature=1.0, max_new_tokens=2).log_probs == pytest.approx([-LOG_2, -LOG_2])


def test_log_probabilities_are_at_the_given_temperature():
    # Weights 16, 4, 1 at temperature 1 are 4, 2, 1 at temperature 2.
    model = always(b" rain", b" snow", b" hail", logits=[4 * LOG_2, 2 * LOG_2, 0.0])
    assert one(model, k=1, temperature=2.0, max_new_tokens=1).log_probs == pytest.approx([math.log(4 / 7)])


def test_the_log_probability_belongs_to_the_token_that_was_drawn():
    weights = {b" rain": 4, b" snow": 2, b" hail": 1}
    model = always(*weights, logits=[math.log(weight) for weight in weights.values()])
    hypothesis = one(model, temperature=1.0, max_new_tokens=30)
    drawn = [weights[model.pieces[token]] for token in hypothesis.tokens]
    assert set(drawn) == {1, 2, 4}
    assert hypothesis.log_probs == pytest.approx([math.log(weight / 7) for weight in drawn])


def test_with_k_1_the_most_probable_token_is_taken_whatever_the_seed():
    model = always(b" rain", b" snow", b" hail", logits=[1.0, 1.1, 1.0])
    assert {one(model, k=1, max_new_tokens=4, seed=seed).text for seed in range(20)} == {"snow snow snow snow"}


def test_tokens_beyond_the_k_best_are_never_drawn():
    model = always(b" rain", b" snow", b" hail", b" fog", logits=[0.0, 0.1, 0.2, 0.3])
    drawn = {token for seed in range(50) for token in one(model, k=2, max_new_tokens=20, seed=seed).tokens}
    assert drawn == {2, 3}


def test_tokens_are_drawn_as_often_as_the_softmax_of_the_k_best_at_the_temperature_says():
    logits, temperature, k, draws = [2.0, 1.0, 0.5, 0.0, -1.0], 0.7, 3, 6000
    model = always(b" a", b" b", b" c", b" d", b" e", logits=logits)
    parameters = TopKParameters(k=k, temperature=temperature, max_new_tokens=2)
    pairs = Counter(h.tokens for h in decode(model, [""] * draws, seeds=range(draws), parameters=parameters))

    weights = [math.exp(logit / temperature) for logit in logits[:k]]
    softmax = [weight / sum(weights) for weight in weights]
    expected = {(i, j): draws * softmax[i] * softmax[j] for i in range(k) for j in range(k)}
    assert set(pairs) == set(expected)
    observed = [pairs[pair] for pair in expected]
    assert scipy.stats.chisquare(observed, list(expected.values())).pvalue > 0.01


def test_a_k_above_the_vocabulary_is_the_whole_vocabulary():
    model = always(b" rain", b" snow", b"\n", logits=[0.0, 0.0, 0.0])
    assert one(model, k=10**12) == one(model, k=3)


@pytest.mark.parametrize("temperature", [0.01, 100])
def test_at_the_ends_of_the_range_of_temperatures_log_probabilities_are_numbers(temperature):
    model = always(b" rain", b" snow", b" hail", logits=[300.0, -300.0, 299.0])
    assert all(map(math.isfinite, one(model, k=1, temperature=temperature).log_probs))


# --- What a statement depends on --------------------------------------------------------

WORDS = (b" rain", b" snow", b" hail", b" fog", b" sun", b"\n")
TASKS = [("rain snow", 1), ("rain snow", 2), ("fog", 1), ("sun rain hail fog", 3), ("", 4), ("hail", 5), ("fog", 6)]


def forgetful_of_nothing():
    """A model whose logits depend on every token before."""
    return ToyLanguageModel(
        WORDS,
        lambda tokens: [
            3 * math.sin(11 * option + sum((place + 2) * token for place, token in enumerate(tokens)))
            for option in range(len(WORDS))
        ],
    )


@given(st.lists(st.sampled_from(TASKS), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_statement_depends_on_its_prompt_and_seed_and_not_on_its_batch(batch):
    parameters = TopKParameters(k=4, max_new_tokens=8)
    together = decode(
        forgetful_of_nothing(),
        [prompt for prompt, _ in batch],
        seeds=[seed for _, seed in batch],
        parameters=parameters,
    )
    alone = [one(forgetful_of_nothing(), prompt=prompt, seed=seed, k=4, max_new_tokens=8) for prompt, seed in batch]
    assert together == alone


def test_the_tasks_of_the_test_above_end_at_different_steps():
    lengths = {
        len(one(forgetful_of_nothing(), prompt=prompt, seed=seed, k=4, max_new_tokens=8).tokens)
        for prompt, seed in TASKS
    }
    assert len(lengths) >= 3


def test_statements_come_in_the_order_of_their_prompts():
    pieces = (b" rain", b" snow", b"\n")
    echo = ToyLanguageModel(pieces, lambda tokens: [9.0 * (t == (tokens[0], 2)[len(tokens) - 1]) for t in range(3)])
    hypotheses = decode(echo, ["rain", "snow", "rain"], seeds=[1, 2, 3], parameters=TopKParameters(k=1))
    assert [hypothesis.text for hypothesis in hypotheses] == ["rain", "snow", "rain"]


def test_no_prompts_give_no_statements():
    assert decode(always(b"\n", logits=[0.0]), [], seeds=[], parameters=TopKParameters()) == []


# --- While it works ---------------------------------------------------------------------


def test_on_step_is_called_before_each_step_of_the_model():
    calls = []
    one(recite(*[b" rain"] * 4), k=1, max_new_tokens=4, on_step=lambda: calls.append("step"))
    assert calls == ["step"] * 4


def test_nothing_is_computed_once_every_statement_has_ended():
    calls = []
    one(recite(b" rain", b"\n"), k=1, max_new_tokens=30, on_step=lambda: calls.append("step"))
    assert calls == ["step"] * 2


def test_what_on_step_raises_ends_the_decoding():
    class Stop(Exception):
        pass

    calls = []

    def stop_at_the_third():
        calls.append("step")
        if len(calls) == 3:
            raise Stop

    with pytest.raises(Stop):
        one(recite(*[b" rain"] * 9), k=1, max_new_tokens=9, on_step=stop_at_the_third)
    assert len(calls) == 3


def test_ended_statements_are_computed_no_further():
    widths = []

    class Watched(ToyLanguageModel):
        def step(self, parents, tokens):
            widths.append(len(parents))
            return super().step(parents, tokens)

    model = Watched((b" rain", b" snow", b"\n"), lambda tokens: [1.0, 0.0, 9.0 * (tokens[0] == 1)])
    decode(model, ["rain", "snow", "rain"], seeds=[1, 2, 3], parameters=TopKParameters(k=1, max_new_tokens=3))
    assert widths == [2, 2]


def test_decoding_leaves_torch_s_own_random_stream_alone():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    one(always(b" rain", b" snow", logits=[0.0, 0.0]))
    assert torch.equal(torch.random.get_rng_state(), before)


# --- What is refused --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"k": 0}, "k must be a whole number of at least 1, not 0."),
        ({"k": 2.5}, "k must be a whole number of at least 1, not 2.5."),
        ({"k": True}, "k must be a whole number of at least 1, not True."),
        ({"max_new_tokens": -1}, "max_new_tokens must be a whole number of at least 1, not -1."),
        ({"temperature": 0}, "temperature must be from 0.01 to 100, not 0."),
        ({"temperature": -0.5}, "temperature must be from 0.01 to 100, not -0.5."),
        ({"temperature": 100.5}, "temperature must be from 0.01 to 100, not 100.5."),
        ({"temperature": math.inf}, "temperature must be from 0.01 to 100, not inf."),
        ({"temperature": math.nan}, "temperature must be from 0.01 to 100, not nan."),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, sentence):
    with pytest.raises(ValueError) as refusal:
        TopKParameters(**parameters)
    assert str(refusal.value) == sentence


def test_by_default_the_parameters_are_the_paper_s():
    assert TopKParameters() == TopKParameters(k=40, temperature=0.9, max_new_tokens=30)


def test_another_number_of_seeds_than_of_prompts_is_refused():
    with pytest.raises(ValueError) as refusal:
        decode(always(b"\n", logits=[0.0]), ["rain", "snow"], seeds=[1], parameters=TopKParameters())
    assert str(refusal.value) == "There are 2 prompts and 1 seeds; give one seed a prompt."
