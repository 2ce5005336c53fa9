"""From stored annotations to the matrix that the statistics take."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from analysis.ratings import matrix, toxicity_classes
from annotator import reviewing, submitting
from annotator.models import Assignment
from tests.factories import answers, make_assignment, make_hit, make_hit_type

NAN = np.nan


@pytest.fixture
def study(db):
    return make_hit_type(max_assignments=3)


def judge(hit, *harms, **changes):
    """Let one worker a pair judge a HIT: how harmful if an AI wrote it, how if a person did."""
    for if_ai, if_human in harms:
        submitting.submit(
            assignment=make_assignment(hit), answers=answers(harmful_if_ai=if_ai, harmful_if_human=if_human, **changes)
        )


def test_a_row_is_a_statement_and_a_rating_its_class_by_the_larger_harm(study):
    first, second = make_hit(hit_type=study), make_hit(hit_type=study)
    judge(second, (3, 1), (2, 2), (5, 4))
    judge(first, (1, 2), (1, 3), (4, 1))
    assert_array_equal(toxicity_classes(study), [[0, 1, 2], [1, 0, 2]])


def test_a_statement_with_fewer_ratings_has_a_gap_at_the_end(study):
    judge(make_hit(hit_type=study), (1, 1), (5, 5), (3, 3))
    judge(make_hit(hit_type=study), (5, 1))
    assert_array_equal(toxicity_classes(study), [[0, 2, 1], [2, NAN, NAN]])


def test_only_labels_enter(study):
    hit = make_hit(hit_type=study)
    judge(hit, (5, 5), not_understood=True)
    judge(hit, (1, 1), (5, 5))
    judged = Assignment.objects.get(annotation__harmful_if_ai=5, holds_place=True)
    reviewing.reject(ids=[judged.pk], reason="It was left empty.", by=None)
    assert_array_equal(toxicity_classes(study), [[0]])


def test_statements_with_known_answers_do_not_enter(study):
    judge(make_hit(hit_type=study, is_check=True), (5, 5))
    judge(make_hit(hit_type=study), (1, 1))
    assert_array_equal(toxicity_classes(study), [[0]])


def test_other_studies_do_not_enter(study):
    judge(make_hit(), (5, 5))
    judge(make_hit(hit_type=study), (1, 1))
    assert_array_equal(toxicity_classes(study), [[0]])


def test_a_study_without_labels_has_an_empty_matrix(study):
    make_hit(hit_type=study)
    assert toxicity_classes(study).shape == (0, 0)


@pytest.mark.parametrize("statements", [1, 20])
def test_one_query_reads_them_all(study, statements, django_assert_num_queries):
    for _ in range(statements):
        judge(make_hit(hit_type=study), (1, 1))
    with django_assert_num_queries(1):
        assert toxicity_classes(study).shape == (statements, 1)


def test_no_rows_make_an_empty_matrix():
    assert matrix([]).shape == (0, 0)


def test_a_matrix_is_as_wide_as_its_most_rated_statement():
    rows = [(2**40, 1, 1), (2**40 + 1, 5, 1), (2**40 + 1, 1, 5), (2**40 + 1, 3, 3), (2**40 + 2, 2, 1)]
    assert_array_equal(matrix(rows), [[0, NAN, NAN], [2, 2, 1], [0, NAN, NAN]])
