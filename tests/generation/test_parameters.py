"""Decoding parameters: the paper's by default, and what is out of range is refused with a sentence."""

import math

import pytest

from generation.parameters import AliceParameters, Direction, Selection

FALSE_POSITIVES = Direction.FALSE_POSITIVES


def test_by_default_the_parameters_of_alice_are_the_paper_s():
    assert AliceParameters(direction=FALSE_POSITIVES) == AliceParameters(
        direction=FALSE_POSITIVES,
        lm_weight=0.5,
        classifier_weight=0.5,
        beam=10,
        vocabulary=100,
        temperature=0.9,
        max_new_tokens=30,
        selection=Selection.TOPK,
        no_repeat_ngram_size=0,
        group_words_allowed=True,
        n_best=10,
    )


def test_there_are_two_directions_and_each_seeks_what_its_prompts_are_not():
    assert {(direction.value, direction.prompt_label, direction.sought_class) for direction in Direction} == {
        ("false_positives", "benign", "toxic"),
        ("false_negatives", "toxic", "benign"),
    }


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"lm_weight": -0.5}, "lm_weight must be 0 or more, not -0.5."),
        ({"classifier_weight": -1}, "classifier_weight must be 0 or more, not -1."),
        ({"classifier_weight": math.nan}, "classifier_weight must be 0 or more, not nan."),
        ({"lm_weight": math.inf}, "lm_weight must be 0 or more, not inf."),
        (
            {"lm_weight": 0, "classifier_weight": 0},
            "lm_weight and classifier_weight are both 0: nothing would rank the hypotheses.",
        ),
        ({"beam": 0}, "beam must be a whole number of at least 1, not 0."),
        ({"beam": 2.0}, "beam must be a whole number of at least 1, not 2.0."),
        ({"vocabulary": 0}, "vocabulary must be a whole number of at least 1, not 0."),
        ({"max_new_tokens": 0}, "max_new_tokens must be a whole number of at least 1, not 0."),
        ({"n_best": 0}, "n_best must be a whole number of at least 1, not 0."),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size must be a whole number of at least 0, not -1."),
        ({"temperature": 0}, "temperature must be from 0.01 to 100, not 0."),
        ({"selection": "best"}, "selection must be one of topk, sample, not 'best'."),
        ({"direction": "toxic"}, "direction must be one of false_positives, false_negatives, not 'toxic'."),
    ],
)
def test_parameters_out_of_range_are_refused(parameters, sentence):
    with pytest.raises(ValueError) as refusal:
        AliceParameters(**{"direction": FALSE_POSITIVES} | parameters)
    assert str(refusal.value) == sentence


def test_one_weight_may_be_0():
    assert AliceParameters(direction=FALSE_POSITIVES, classifier_weight=0).lm_weight == 0.5
    assert AliceParameters(direction=FALSE_POSITIVES, lm_weight=0).classifier_weight == 0.5


def test_a_direction_that_the_prompt_label_forbids_is_refused_and_the_other_one_named():
    with pytest.raises(ValueError) as refusal:
        AliceParameters(direction=FALSE_POSITIVES).check_label("toxic")
    assert str(refusal.value) == (
        "False positives are sought from benign prompts, not from toxic ones. For toxic prompts choose false negatives."
    )


@pytest.mark.parametrize("direction", Direction)
def test_a_direction_suits_its_own_prompts(direction):
    AliceParameters(direction=direction).check_label(direction.prompt_label)
    assert Direction.for_label(direction.prompt_label) is direction
