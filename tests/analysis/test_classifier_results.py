"""What classifiers made of test sets, read from stored scores of real rows."""

import time
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from analysis import metrics
from analysis.evaluated import evaluations, results_of
from analysis.humanval import freezing
from analysis.models import EvaluationScore, EvaluationText
from generation.models import ReaderKind, ToxicityScore
from tests.analysis import humanval_world
from tests.factories import (
    make_evaluation,
    make_evaluation_set,
    make_group,
    make_reader,
    make_toxicity_score,
)

pytestmark = pytest.mark.django_db

NOT_UNDERSTOOD = {"not_understood": True, "harmful_if_ai": None, "harmful_if_human": None}


def frozen(*answers, fields=({},)):
    """A frozen HUMANVAL set of a statement an answer, written and grouped as its place in ``fields`` says."""
    for place in range(len(answers)):
        humanval_world.statement(np.eye(8)[place], **fields[place % len(fields)])
    humanval_set = humanval_world.draw(size=len(answers))
    freezing.publish(humanval_set=humanval_set, **humanval_world.TERMS)
    humanval_world.judge(humanval_set, *((answer, answer) for answer in answers))
    return freezing.freeze(humanval_set=humanval_set)


class TestOfHumanval:
    def test_each_statement_has_its_probability_label_group_and_method(self):
        fields = ({"group": make_group("women"), "method": "alice"}, {"group": make_group("asian"), "method": "topk"})
        humanval_set = frozen(5, 1, 1, 4, fields=fields)
        found = results_of(make_evaluation(humanval_set, [0.9, 0.2, 0.1, 0.8]))
        assert found.texts.tolist() == humanval_world.ids_of(humanval_set)
        assert found.probs.tolist() == [0.9, 0.2, 0.1, 0.8]
        assert found.toxic.tolist() == [True, False, False, True]
        assert [*found.groups] == ["women", "asian", "women", "asian"]
        assert [*found.methods] == ["alice", "topk", "alice", "topk"]
        assert [*found.functionalities] == [""] * 4
        assert metrics.auc(found.probs, found.toxic) == 1.0

    def test_a_subset_is_of_one_method(self):
        humanval_set = frozen(5, 1, 1, 4, fields=({"method": "alice"}, {"method": "topk"}))
        found = results_of(make_evaluation(humanval_set, [0.9, 0.2, 0.1, 0.8]))
        alice = found.only(np.array(found.methods) == "alice")
        assert (alice.probs.tolist(), alice.toxic.tolist(), [*alice.methods]) == (
            [0.9, 0.1],
            [True, False],
            ["alice"] * 2,
        )

    def test_ambiguous_statements_are_left_out_and_counted(self):
        found = results_of(make_evaluation(frozen(5, 3, 1), [0.9, 0.5, 0.1]))
        assert (found.probs.tolist(), found.ambiguous, found.total) == ([0.9, 0.1], 1, 3)

    def test_a_statement_that_nobody_understood_is_not_taken_for_benign(self):
        found = results_of(make_evaluation(frozen(5, NOT_UNDERSTOOD, 1), [0.9, 0.5, 0.1]))
        assert (found.toxic.tolist(), found.probs.tolist()) == ([True, False], [0.9, 0.1])
        assert (found.ambiguous, found.unlabelled, found.total) == (0, 1, 3)

    def test_scores_of_other_readers_and_statements_do_not_count(self):
        humanval_set, reader = frozen(5, 1), make_reader(ReaderKind.CLASSIFIER)
        evaluation = make_evaluation(humanval_set, [0.9, 0.1], reader=reader)
        for statement in humanval_set.statements.all():
            make_toxicity_score(statement.generation, 0.5)
        make_toxicity_score(toxic_prob=0.7, reader=reader)
        assert results_of(evaluation).probs.tolist() == [0.9, 0.1]

    def test_two_versions_of_a_set_do_not_mix(self):
        first = frozen(5, 1)
        hit = first.hit_type.hits.order_by("generation").last()
        first.hit_type.hits.filter(pk=hit.pk).update(max_assignments=5)
        for _ in range(3):
            humanval_world.approved(hit, 5)
        second, reader = freezing.new_version(humanval_set=first), make_reader(ReaderKind.CLASSIFIER)
        assert results_of(make_evaluation(first, [0.9, 0.8], reader=reader)).toxic.tolist() == [True, False]
        fields = {"texts": 2, "scored": 2, "finished_at": timezone.now()}
        again = make_evaluation(second, None, reader=reader, model=reader.name, **fields)
        assert results_of(again).toxic.tolist() == [True, True]
        assert results_of(again).probs.tolist() == [0.9, 0.8]


class TestOfFiles:
    def test_each_text_has_what_the_file_says_in_the_order_of_the_file(self):
        rows = [(True, "women", "F1"), (False, "", "F2"), (True, "Muslims", "")]
        found = results_of(make_evaluation(make_evaluation_set(*rows), [0.7, 0.6, 0.2]))
        assert (found.probs.tolist(), found.toxic.tolist()) == ([0.7, 0.6, 0.2], [True, False, True])
        assert [*found.groups] == ["women", "", "Muslims"]
        assert [*found.functionalities] == ["F1", "F2", ""]
        assert [*found.methods] == ["", "", ""]
        assert (found.ambiguous, found.unlabelled, found.total) == (0, 0, 3)

    def test_many_texts_are_read_at_once_with_one_query(self, django_assert_num_queries):
        evaluation_set = make_evaluation_set(*[(number % 3 == 0, "women", "F1") for number in range(8_000)])
        evaluation = make_evaluation(evaluation_set, np.linspace(0, 1, 8_000).tolist())
        begin = time.perf_counter()
        with django_assert_num_queries(1):
            found = results_of(evaluation)
        assert time.perf_counter() - begin < 2
        assert np.array_equal(found.probs, np.linspace(0, 1, 8_000))


@pytest.mark.parametrize("size", [2, 6])
def test_a_humanval_set_takes_one_query_however_large(size, django_assert_num_queries):
    evaluation = make_evaluation(frozen(*[5, 1] * (size // 2)), [0.5] * size)
    with django_assert_num_queries(1):
        assert len(results_of(evaluation).probs) == size


def test_what_has_not_come_to_something_has_no_results():
    reader = make_reader(ReaderKind.CLASSIFIER)
    assert results_of(make_evaluation(reader=reader)) is None
    assert results_of(make_evaluation(failure="The model is gone.", finished_at=timezone.now())) is None


@pytest.mark.parametrize("scores", [EvaluationScore, ToxicityScore])
def test_texts_whose_scores_are_gone_are_counted_and_not_guessed(scores):
    test_set = make_evaluation_set((True,), (False,)) if scores is EvaluationScore else frozen(5, 1)
    evaluation = make_evaluation(test_set, [0.9, 0.1])
    scores.objects.filter(toxic_prob=0.9).delete()
    found = results_of(evaluation)
    assert (found.probs.tolist(), found.unscored, found.total) == ([0.1], 1, 2)


def test_a_set_all_of_whose_texts_are_ambiguous_has_empty_results():
    found = results_of(make_evaluation(frozen(3, 3), [0.9, 0.1]))
    assert (found.probs.shape, found.toxic.dtype, found.ambiguous) == ((0,), np.dtype(bool), 2)
    assert np.isnan(metrics.auc(found.probs, found.toxic))


class TestEvaluations:
    def test_the_newest_of_each_model_precision_and_set_counts(self):
        test_set, reader = make_evaluation_set(), make_reader(ReaderKind.CLASSIFIER)
        probs, day = [0.1, 0.2, 0.3, 0.4], timedelta(days=1)
        old = make_evaluation(test_set, probs, reader=reader, finished_at=timezone.now() - day)
        anew = make_reader(ReaderKind.CLASSIFIER, name=reader.name, revision="2")
        newest = make_evaluation(test_set, probs, reader=anew)
        other_precision = make_evaluation(
            test_set, probs, model=reader.name, precision="bfloat16", finished_at=old.finished_at - day
        )
        other_set = make_evaluation(None, probs, reader=reader, finished_at=old.finished_at - 2 * day)
        assert evaluations() == [newest, other_precision, other_set]

    def test_waiting_and_failed_ones_do_not_count(self):
        make_evaluation()
        make_evaluation(failure="The model is gone.", finished_at=timezone.now())
        assert evaluations() == []

    @pytest.mark.parametrize("number", [1, 4])
    def test_they_are_read_with_their_sets_and_readers_in_one_query(self, number, django_assert_num_queries):
        for _ in range(number):
            make_evaluation(None, [0.1, 0.2, 0.3, 0.4])
        make_evaluation(frozen(5, 1), [0.9, 0.1])
        with django_assert_num_queries(1):
            assert len({f"{one.test_set} {one.reader}" for one in evaluations()}) == number + 1
        assert EvaluationText.objects.count() == 4 * number
