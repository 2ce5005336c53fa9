"""The time that a run will take, from what was measured."""

import pytest

from generation.estimating import estimate
from generation.models import GenerationRun
from generation.parameters import AliceParameters, TopKParameters
from tests.factories import make_run

pytestmark = pytest.mark.django_db

TOPK = {"topk": {"k": 40, "temperature": 0.9, "max_new_tokens": 30}}


def measured(*, stored=40, seconds=80.0, slugs=("women",), **options):
    run = make_run(count=40, slugs=slugs, **options)
    run.cells.update(stored=stored, decoding_seconds=seconds)
    return run


def asked(statements=1000, **changes):
    order = {
        "method": "topk", "language_model": "toy", "classifier": "", "precision": "float32", "parameters": TOPK,
    }  # fmt: skip
    return estimate(statements=statements, **order | changes)


def test_before_anything_was_measured_there_is_no_estimate():
    make_run()
    assert asked() is None


def test_statements_take_what_they_took_in_the_newest_run_of_the_kind_all_cells_together():
    measured(seconds=1.0)
    run = measured(stored=40, seconds=80.0, slugs=("women", "asian"))
    found = asked(statements=1000)
    assert (found.seconds, found.run, found.statements, found.other_parameters) == (2000.0, run, 80, {})


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "alice", "classifier": "toy classifier"},
        {"language_model": "another"},
        {"precision": "bfloat16"},
    ],
)
def test_other_methods_models_and_precisions_say_nothing(changes):
    measured()
    assert asked(**changes) is None


def test_another_classifier_says_nothing():
    measured(method="alice", classifier="toy classifier")
    alice = {"method": "alice", "parameters": {"alice": vars(AliceParameters())}}
    assert asked(**alice, classifier="another") is None
    assert asked(**alice, classifier="toy classifier").other_parameters == {}


def test_a_run_with_the_same_parameters_goes_before_a_newer_one_with_others():
    same = measured()
    measured(topk=TopKParameters(max_new_tokens=60))
    assert asked().run == same


def test_of_a_run_with_others_it_is_said_what_they_were():
    newest = measured(topk=TopKParameters(max_new_tokens=60, k=5))
    found = asked()
    assert (found.run, found.other_parameters) == (newest, {"max_new_tokens": 60})


def test_the_device_is_the_one_that_the_run_was_worked_on():
    run = measured()
    assert asked().device == ""
    GenerationRun.objects.filter(pk=run.pk).update(environment={"device": "cuda:0 (a GPU)"})
    assert asked().device == "cuda:0 (a GPU)"


def test_one_query_is_enough(django_assert_num_queries):
    for _ in range(3):
        measured()
    with django_assert_num_queries(1):
        asked()
