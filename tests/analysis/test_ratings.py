"""From stored annotations to the ratings that the statistics take."""

import pytest

from analysis.ratings import toxicity_classes
from annotator import reviewing, submitting
from annotator.models import Assignment
from tests.factories import answers, consenting_worker, make_assignment, make_hit, make_hit_type


def told(study):
    """By HIT, the class that each worker gave, in the order of their numbers."""
    ratings = toxicity_classes(study)
    rows = {}
    given = zip(ratings.statement_ids[ratings.statements], ratings.rater_ids[ratings.raters],
                ratings.categories[ratings.codes], strict=True)  # fmt: skip
    for hit, _, code in sorted(given):
        rows.setdefault(hit, []).append(code)
    return [rows[hit] for hit in sorted(rows)]


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
    assert told(study) == [[0, 1, 2], [1, 0, 2]]


def test_statements_may_have_unequal_numbers_of_ratings(study):
    judge(make_hit(hit_type=study), (1, 1), (5, 5), (3, 3))
    judge(make_hit(hit_type=study), (5, 1))
    assert told(study) == [[0, 2, 1], [2]]


def test_only_labels_enter(study):
    hit = make_hit(hit_type=study)
    judge(hit, (5, 5), not_understood=True)
    judge(hit, (1, 1), (5, 5))
    judged = Assignment.objects.get(annotation__harmful_if_ai=5, holds_place=True)
    reviewing.reject(ids=[judged.pk], reason="It was left empty.", by=None)
    assert told(study) == [[0]]


def test_statements_with_known_answers_do_not_enter(study):
    judge(make_hit(hit_type=study, is_check=True), (5, 5))
    judge(make_hit(hit_type=study), (1, 1))
    assert told(study) == [[0]]


def test_other_studies_do_not_enter(study):
    judge(make_hit(), (5, 5))
    judge(make_hit(hit_type=study), (1, 1))
    assert told(study) == [[0]]


def test_a_study_without_labels_has_no_ratings(study):
    make_hit(hit_type=study)
    assert toxicity_classes(study).n_ratings == 0


def test_a_worker_is_the_same_in_all_their_ratings(study):
    worker = consenting_worker()
    for _ in range(2):
        submitting.submit(assignment=make_assignment(make_hit(hit_type=study), worker), answers=answers())
    assert toxicity_classes(study).rater_ids.tolist() == [worker.pk]


def test_classes_that_nobody_chose_are_categories_all_the_same(study):
    judge(make_hit(hit_type=study), (1, 1))
    assert toxicity_classes(study).categories.tolist() == [0, 1, 2]


@pytest.mark.parametrize("statements", [1, 20])
def test_one_query_reads_them_all(study, statements, django_assert_num_queries):
    for _ in range(statements):
        judge(make_hit(hit_type=study), (1, 1))
    with django_assert_num_queries(1):
        assert len(told(study)) == statements
