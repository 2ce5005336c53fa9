"""Near-duplicates are counted in the cells of a run once it has ended, in the background."""

import pytest

from generation import tasks
from generation.counting import count_near_duplicates
from generation.models import GenerationRun
from generation.runs import cancel_run, fail_run, finish_run_if_complete
from tests.factories import make_generation, make_run

pytestmark = pytest.mark.django_db

TEXTS = {
    "women": ["the tide was low all day", "a cat slept", "The tide was low, all day!"],
    "asian": ["A cat slept.", "rain fell", "snow fell"],
}


@pytest.fixture
def run():
    """A run of two cells; the cat of the second is that of the first."""
    run = make_run(count=3, slugs=("women", "asian"))
    for chunk in run.chunks.all():
        for position, text in enumerate(TEXTS[chunk.group.slug]):
            make_generation(text, run=run, chunk=chunk, position=position, group=chunk.group)
    return run


def counted(run):
    return dict(run.cells.values_list("group__slug", "near_duplicate"))


def test_each_cell_is_told_how_many_of_its_statements_are_near_an_earlier_one_of_the_run(run):
    cancel_run(run=run)
    assert count_near_duplicates(run_id=run.pk) is True
    assert counted(run) == {"women": 1, "asian": 1}


def test_a_run_that_goes_on_is_not_counted_yet(run):
    assert count_near_duplicates(run_id=run.pk) is False
    assert counted(run) == {"women": None, "asian": None}


def test_what_is_counted_is_not_counted_again(run):
    cancel_run(run=run)
    count_near_duplicates(run_id=run.pk)
    assert count_near_duplicates(run_id=run.pk) is False


@pytest.mark.parametrize(
    "end",
    [
        lambda run: cancel_run(run=run),
        lambda run: fail_run(run_id=run.pk, reason="The machine burned down."),
        lambda run: run.chunks.all().delete() and finish_run_if_complete(run_id=run.pk),
    ],
    ids=["cancelled", "failed", "finished"],
)
def test_however_a_run_ends_it_is_counted(sent, django_capture_on_commit_callbacks, end):
    run = make_run()
    with django_capture_on_commit_callbacks(execute=True):
        end(run)
    assert sent == [("generation.count_near_duplicates", [run.pk], "default")]
    tasks.count_near_duplicates(run.pk)
    assert counted(run) == {"women": 0}


def test_the_periodic_task_asks_again_for_a_count_that_was_lost(run, sent, django_capture_on_commit_callbacks):
    cancel_run(run=run)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.wake_open_runs()
    assert sent == [("generation.count_near_duplicates", [run.pk], "default")]
    tasks.count_near_duplicates(run.pk)
    assert not GenerationRun.objects.never_counted().exists()
