"""Which answers ask for a second look: each rule at its edge."""

from datetime import timedelta

import pytest

from annotator.flags import raised
from annotator.questions import QUESTIONS
from tests import factories

USUAL = timedelta(seconds=100)
FIRST_OPTIONS = {question.key: question.values[0] for question in QUESTIONS}
LAST_OPTIONS = {question.key: question.values[-1] for question in QUESTIONS}


def answers(**changes):
    return {"not_understood": False, **factories.answers(), **changes}


NOT_UNDERSTOOD = dict.fromkeys(answers()) | {"not_understood": True}
OTHER = answers(harmful_if_ai=2)


def flags(own=None, *, before=(), others=(), expected=None, seconds=100):
    return {
        raised_flag.flag.value: raised_flag.words
        for raised_flag in raised(
            answers=own or answers(),
            before=list(before),
            others=list(others),
            expected=expected or {},
            time_taken=timedelta(seconds=seconds),
            usual=USUAL,
        )
    }


def test_less_than_a_quarter_of_the_usual_time_is_too_fast():
    assert flags(seconds=25) == {}
    assert flags(seconds=24) == {"Too fast": "24 seconds, where 1 minute 40 seconds are usual"}


def test_a_text_that_was_not_understood_may_be_left_quickly():
    assert flags(NOT_UNDERSTOOD, seconds=2) == {}


def test_the_same_answers_as_for_each_of_the_seven_statements_before_are_flagged():
    assert flags(before=[answers()] * 6) == {}
    assert flags(before=[*[answers()] * 6, OTHER]) == {}
    assert flags(before=[answers()] * 7) == {"Same answers": "all nine as for each of the 7 statements before"}


def test_eight_texts_in_a_row_that_were_not_understood_are_flagged():
    assert flags(NOT_UNDERSTOOD, before=[*[NOT_UNDERSTOOD] * 6, answers()]) == {}
    assert flags(NOT_UNDERSTOOD, before=[NOT_UNDERSTOOD] * 7) == {
        "Same answers": "not understood, like each of the 7 statements before"
    }


def test_the_same_option_of_all_nine_questions_is_flagged_if_it_is_the_first_or_the_last():
    assert flags(FIRST_OPTIONS | {"not_understood": False}) == {"One option": "the first one of all nine questions"}
    assert flags(LAST_OPTIONS | {"not_understood": False}) == {"One option": "the last one of all nine questions"}
    assert flags(FIRST_OPTIONS | {"not_understood": False, "lewd": "no"}) == {}


def test_answers_that_are_not_as_expected_are_flagged_by_the_numbers_of_their_questions():
    assert flags(expected={"lewd": ["no", "maybe"]}) == {}
    assert flags(expected={"lewd": ["yes"]}) == {"Known answers": "not as expected in question 6"}
    expected = {"human_or_ai": ["human"], "harmful_if_ai": [4, 5], "lewd": ["yes"]}
    assert flags(expected=expected) == {"Known answers": "not as expected in questions 1, 2 and 6"}
    assert flags(NOT_UNDERSTOOD, expected=expected) == {"Known answers": "not understood, where the answers are known"}


TOXIC = answers(harmful_if_human=4)
AMBIGUOUS = answers(harmful_if_ai=3)


@pytest.mark.parametrize(
    ("others", "flagged"),
    [
        ([TOXIC, TOXIC], {"Majority": "non-toxic, where 2 of 2 others say toxic"}),
        ([TOXIC, TOXIC, AMBIGUOUS], {"Majority": "non-toxic, where 2 of 3 others say toxic"}),
        ([TOXIC], {}),
        ([TOXIC, AMBIGUOUS], {}),
        ([TOXIC, TOXIC, AMBIGUOUS, answers()], {}),
        ([TOXIC, TOXIC, answers(), answers()], {}),
        ([answers(), OTHER, TOXIC], {}),
    ],
)
def test_a_toxicity_class_is_flagged_against_more_than_half_of_at_least_two_others(others, flagged):
    assert flags(others=others) == flagged


def test_a_text_that_was_not_understood_has_no_class_to_differ():
    assert flags(NOT_UNDERSTOOD, others=[TOXIC, TOXIC]) == {}


@pytest.mark.parametrize("rating", ["harmful_if_ai", "harmful_if_human"])
def test_a_text_that_was_not_understood_after_some_answers_is_in_no_class(rating):
    begun = answers(not_understood=True, **{rating: None})
    assert flags(begun, others=[answers(), answers()]) == {}
