"""Runs: ordered with all that is needed to repeat them, refused in sentences, ended once."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from generation.models import Demonstration, GenerationRun
from generation.parameters import TopKParameters
from generation.prompting import NotEnoughDemonstrations
from generation.runs import Cell, cancel_run, fail_run, finish_run_if_complete, start_run
from tests.factories import make_demonstrations, make_generation, make_group, make_run

pytestmark = pytest.mark.django_db


def chunks_of(run):
    return [(chunk.group.slug, chunk.size) for chunk in run.chunks.order_by("index")]


def start(cells, **options):
    return start_run(cells=cells, language_model="toy", **options)


def refusal(error=ValueError, **options):
    """The sentence with which a run is refused; nothing may be stored."""
    with pytest.raises(error) as refused:
        start(**options)
    assert not GenerationRun.objects.exists()
    return str(refused.value)


@pytest.fixture
def women():
    group = make_group("women", name="Women")
    make_demonstrations(group)
    return group


# --- Starting ---------------------------------------------------------------------------


def test_a_run_is_stored_with_all_that_is_needed_to_repeat_it(women):
    researcher = get_user_model().objects.create(username="ada")
    run = start(
        [Cell(women, "benign", 3)], parameters=TopKParameters(k=5, temperature=1.5, max_new_tokens=9), seed=11,
        created_by=researcher,
    )  # fmt: skip
    run.refresh_from_db()
    assert (run.state, run.method, run.language_model, run.seed) == ("queued", "topk", "toy", 11)
    assert run.parameters == {"k": 5, "temperature": 1.5, "max_new_tokens": 9}
    assert (run.created_by, run.started_at, run.ended_at, run.failure) == (researcher, None, None, "")


def test_without_parameters_those_of_the_paper_are_stored(women):
    assert start([Cell(women, "benign", 1)]).parameters == {"k": 40, "temperature": 0.9, "max_new_tokens": 30}


def test_without_a_seed_one_is_drawn_and_stored(women):
    seeds = {start([Cell(women, "benign", 1)]).seed for _ in range(5)}
    assert len(seeds) == 5
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_chunks_have_sixteen_statements_and_the_last_what_is_left(women):
    assert chunks_of(start([Cell(women, "benign", 40)])) == [("women", 16), ("women", 16), ("women", 8)]


def test_sixteen_statements_are_one_chunk_and_seventeen_are_two(women):
    assert chunks_of(start([Cell(women, "benign", 16)])) == [("women", 16)]
    assert chunks_of(start([Cell(women, "benign", 17)])) == [("women", 16), ("women", 1)]


def test_chunks_are_taken_in_turn_from_each_group_so_that_a_cancelled_run_has_some_of_each():
    run = make_run(count=33, slugs=("women", "asian", "muslim"))
    assert chunks_of(run) == [
        ("women", 16), ("asian", 16), ("muslim", 16),
        ("women", 16), ("asian", 16), ("muslim", 16),
        ("women", 1), ("asian", 1), ("muslim", 1),
    ]  # fmt: skip


def test_groups_may_want_different_numbers(women):
    asian = make_group("asian")
    make_demonstrations(asian)
    run = start([Cell(women, "benign", 17), Cell(asian, "benign", 2)])
    assert chunks_of(run) == [("women", 16), ("asian", 2), ("women", 1)]


def test_a_worker_is_woken_once_the_run_is_stored(women, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        run = start([Cell(women, "benign", 1)])
        assert sent == []
    assert sent == [("generation.work_on_run", [run.pk], "generation")]


def test_without_a_wake_up_the_run_waits_for_whoever_started_it(women, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        start([Cell(women, "benign", 1)], wake=False)
    assert sent == []


# --- Refusing ---------------------------------------------------------------------------


def test_a_run_without_groups_is_refused():
    assert refusal(cells=[]) == "Choose at least one group."


@pytest.mark.parametrize("count", [0, -3])
def test_a_count_below_one_is_refused(women, count):
    sentence = f"The number of statements must be at least 1, not {count}."
    assert refusal(cells=[Cell(women, "benign", count)]) == sentence


def test_a_set_too_small_to_draw_prompts_from_is_refused_by_name(women):
    assert refusal(NotEnoughDemonstrations, cells=[Cell(women, "toxic", 1)]) == (
        "A prompt needs 5 demonstrations and the toxic set of Women has 0. Add 5 more."
    )


def test_retired_demonstrations_do_not_count(women):
    Demonstration.objects.filter(
        text__in=["the choir sang in three languages", "our neighbor repairs old radios"]
    ).update(retired_at=timezone.now())
    start([Cell(women, "benign", 1)]).delete()
    Demonstration.objects.filter(text="the chess club meets on thursdays").update(retired_at=timezone.now())
    assert refusal(NotEnoughDemonstrations, cells=[Cell(women, "benign", 1)]) == (
        "A prompt needs 5 demonstrations and the benign set of Women has 4. Add 1 more."
    )


def test_one_bad_group_refuses_the_whole_run(women):
    asian = make_group("asian", name="Asian")
    assert refusal(NotEnoughDemonstrations, cells=[Cell(women, "benign", 1), Cell(asian, "benign", 1)]) == (
        "A prompt needs 5 demonstrations and the benign set of Asian has 0. Add 5 more."
    )


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_cannot_be_stored_is_refused(women, seed):
    assert refusal(cells=[Cell(women, "benign", 1)], seed=seed) == (
        f"The seed must be from 0 to 9223372036854775807, not {seed}."
    )


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_the_smallest_and_the_largest_seed_are_stored(women, seed):
    run = start([Cell(women, "benign", 1)], seed=seed)
    run.refresh_from_db()
    assert run.seed == seed


# --- Ending -----------------------------------------------------------------------------


def test_a_cancelled_run_keeps_what_is_stored():
    run = make_run(count=2)
    make_generation(run=run, chunk=run.chunks.get(), position=0)
    assert cancel_run(run=run) is True
    run.refresh_from_db()
    assert (run.state, run.is_open, run.ended_at is not None) == ("cancelled", False, True)
    assert run.generations.count() == 1


def test_a_failed_run_says_why():
    run = make_run()
    assert fail_run(run_id=run.pk, reason="The machine burned down.") is True
    run.refresh_from_db()
    assert (run.state, run.failure, run.ended_at is not None) == ("failed", "The machine burned down.", True)


def test_a_run_ends_once():
    run = make_run()
    cancel_run(run=run)
    run.refresh_from_db()
    ended_at = run.ended_at
    assert cancel_run(run=run) is False
    assert fail_run(run_id=run.pk, reason="Too late.") is False
    run.chunks.update(finished_at=timezone.now())
    assert finish_run_if_complete(run_id=run.pk) is False
    run.refresh_from_db()
    assert (run.state, run.failure, run.ended_at) == ("cancelled", "", ended_at)


def test_a_run_is_finished_when_none_of_its_chunks_is_left():
    run = make_run(count=32)
    run.chunks.filter(index=0).update(finished_at=timezone.now())
    assert finish_run_if_complete(run_id=run.pk) is False
    run.chunks.update(finished_at=timezone.now())
    assert finish_run_if_complete(run_id=run.pk) is True
    run.refresh_from_db()
    assert run.state == "finished"


# --- Progress ---------------------------------------------------------------------------


def test_progress_counts_what_is_wanted_stored_and_was_drawn_again():
    run = make_run(count=20)
    run.chunks.filter(index=0).update(empty=1, duplicate=2, copy=3, decoding_seconds=4.0)
    run.chunks.filter(index=1).update(empty=10, duplicate=20, copy=30, decoding_seconds=1.0)
    for position in range(5):
        make_generation(run=run, chunk=run.chunks.first(), position=position)
    assert run.progress() == {
        "wanted": 20,
        "stored": 5,
        "percent": 25,
        "drawn_again_empty": 11,
        "drawn_again_duplicate": 22,
        "drawn_again_copy": 33,
        "seconds": 5.0,
        "statements_a_second": 1.0,
        "seconds_left": 15.0,
    }


def test_before_the_first_chunk_is_stored_there_is_no_rate():
    progress = make_run(count=20).progress()
    assert (progress["stored"], progress["percent"]) == (0, 0)
    assert progress["statements_a_second"] is progress["seconds_left"] is None


def test_an_ended_run_has_no_time_left():
    run = make_run(count=20)
    run.chunks.update(decoding_seconds=1.0)
    make_generation(run=run, chunk=run.chunks.first(), position=0)
    cancel_run(run=run)
    run.refresh_from_db()
    assert run.progress()["seconds_left"] is None


def test_a_run_that_is_not_complete_is_never_at_a_hundred_percent():
    run = make_run(count=300)
    first = run.chunks.first()
    for position in range(299):
        make_generation(run=run, chunk=first, position=position)
    assert run.progress()["percent"] == 99


@pytest.mark.parametrize("count", [1, 100])
def test_progress_takes_two_queries_for_any_number_of_statements(count, django_assert_num_queries):
    run = make_run(count=count)
    with django_assert_num_queries(2):
        run.progress()


def test_open_runs_are_the_queued_and_the_running():
    queued, running, cancelled, failed = (make_run() for _ in range(4))
    GenerationRun.objects.filter(pk=running.pk).update(
        state="running", started_at=timezone.now() - timedelta(minutes=1)
    )
    cancel_run(run=cancelled)
    fail_run(run_id=failed.pk, reason="The machine burned down.")
    assert set(GenerationRun.objects.open()) == {queued, running}
    assert [run.is_open for run in (queued, running)] == [True, True]
