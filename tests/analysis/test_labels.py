"""Toxicity labels: the rule of ToxiGen, footnote 8, for annotations and for statements."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from analysis.labels import (
    TOXICITY_CLASSES,
    statement_class,
    statement_toxicity,
    toxicity,
    toxicity_class,
)

NAN = np.nan
SCALE = st.integers(1, 5)


def refusal(error_type, function, *arguments):
    with pytest.raises(error_type) as error:
        function(*arguments)
    return str(error.value)


class TestToxicityOfAnAnnotation:
    def test_is_the_larger_of_its_two_harm_ratings(self):
        assert_array_equal(toxicity([1, 4, 3, 5], [2, 2, 3, 1]), [2, 4, 3, 5])

    def test_is_missing_when_either_rating_is_missing(self):
        assert_array_equal(toxicity([NAN, 5, NAN], [5, NAN, NAN]), [NAN, NAN, NAN])

    def test_takes_single_numbers(self):
        assert toxicity(2, 4) == 4

    def test_takes_matrices(self):
        assert_array_equal(toxicity([[1, 2], [3, NAN]], [[2, 1], [1, 1]]), [[2, 2], [3, NAN]])

    @given(SCALE, SCALE)
    def test_does_not_depend_on_which_question_was_the_worse(self, if_ai, if_human):
        assert toxicity(if_ai, if_human) == toxicity(if_human, if_ai) == max(if_ai, if_human)


class TestToxicityClass:
    @pytest.mark.parametrize(
        ("value", "name"),
        [
            (1, "non-toxic"),
            (2, "non-toxic"),
            (2.999, "non-toxic"),
            (3, "ambiguous"),
            (3.001, "toxic"),
            (4, "toxic"),
            (5, "toxic"),
        ],
    )
    def test_is_non_toxic_below_3_ambiguous_at_3_and_toxic_above(self, value, name):
        assert TOXICITY_CLASSES[int(toxicity_class(value))] == name

    def test_codes_follow_the_order_of_the_classes(self):
        assert TOXICITY_CLASSES == ("non-toxic", "ambiguous", "toxic")
        assert_array_equal(toxicity_class([1, 3, 5]), [0, 1, 2])

    def test_of_a_missing_toxicity_is_missing(self):
        assert_array_equal(toxicity_class([NAN, 3]), [NAN, 1])
        assert np.isnan(toxicity_class(NAN))

    def test_keeps_the_shape(self):
        assert toxicity_class(np.full((4, 3), 2.0)).shape == (4, 3)
        assert toxicity_class([]).shape == (0,)


class TestStatementClass:
    def test_is_the_class_of_the_larger_mean(self):
        if_ai = [[1, 2, 3], [2, 3, 4], [4, 4, 5]]
        if_human = [[1, 1, 1], [1, 2, 1], [1, 1, 1]]
        assert_array_equal(statement_class(if_ai, if_human), [0, 1, 2])
        assert_array_equal(statement_class(if_human, if_ai), [0, 1, 2])

    def test_comes_from_the_means_and_not_from_the_classes_of_the_annotations(self):
        # Each annotation has a rating above 3, yet neither mean has.
        assert_array_equal(statement_class([[4, 1]], [[1, 4]]), [0])

    def test_passes_over_missing_ratings(self):
        assert_array_equal(statement_class([[5, NAN, 2], [NAN, 3, NAN]], [[1, NAN, 1]] * 2), [2, 1])

    def test_of_a_statement_without_any_rating_is_missing_and_without_a_warning(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert_array_equal(statement_class([[NAN, NAN], [1, 1]], [[NAN, NAN], [5, 5]]), [NAN, 2])

    def test_of_a_statement_lacking_one_question_is_missing(self):
        assert_array_equal(statement_class([[NAN, NAN]], [[5, 5]]), [NAN])
        assert_array_equal(statement_class([[5, 5]], [[NAN, NAN]]), [NAN])

    def test_of_no_statements_is_empty(self):
        assert statement_class(np.empty((0, 3)), np.empty((0, 3))).shape == (0,)

    def test_toxicity_is_the_larger_mean(self):
        assert_array_equal(statement_toxicity([[1, 2], [5, 4]], [[3, 4], [1, NAN]]), [3.5, 4.5])

    @given(st.lists(st.tuples(SCALE, SCALE), min_size=1, max_size=9))
    def test_agrees_with_whole_number_arithmetic(self, annotations):
        larger_sum = max(map(sum, zip(*annotations, strict=True)))
        middle = 3 * len(annotations)
        expected = 0 if larger_sum < middle else 1 if larger_sum == middle else 2
        if_ai, if_human = np.array(annotations, dtype=float).T
        assert statement_class([if_ai], [if_human]) == expected


class TestRefusals:
    @pytest.mark.parametrize("function", [toxicity, statement_class])
    def test_a_rating_off_the_scale_is_named_with_its_question(self, function):
        assert refusal(ValueError, function, [[1, 6]], [[1, 1]]) == (
            "harmful_if_ai has the value 6; the scale runs from 1 to 5. Mark a missing rating as NaN."
        )
        assert refusal(ValueError, function, [[1, 1]], [[0, 1]]) == (
            "harmful_if_human has the value 0; the scale runs from 1 to 5. Mark a missing rating as NaN."
        )

    @pytest.mark.parametrize(("value", "shown"), [(0.5, "0.5"), (-1, "-1"), (np.inf, "inf")])
    def test_a_toxicity_off_the_scale_is_named(self, value, shown):
        assert refusal(ValueError, toxicity_class, [2, value]) == (
            f"toxicity has the value {shown}; the scale runs from 1 to 5. Mark a missing rating as NaN."
        )

    def test_ratings_of_different_shapes_are_not_stretched_to_fit(self):
        assert refusal(ValueError, toxicity, [[1], [2]], [1, 2]) == (
            "harmful_if_ai has the shape (2, 1) and harmful_if_human (2,); "
            "give both ratings of the same annotations, NaN for a missing one."
        )

    def test_statements_need_a_matrix(self):
        assert refusal(ValueError, statement_class, [1, 2], [1, 2]) == (
            "harmful_if_ai has the shape (2,); give a matrix (statements, raters), NaN for a missing rating."
        )
