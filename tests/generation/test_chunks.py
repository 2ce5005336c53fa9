"""Chunks: leased to one worker at a time, taken up again when the worker dies, stored exactly once."""

import math
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from generation.chunks import LeaseLost, give_back_chunk, keep_lease, lease_next_chunk, store_chunk
from generation.drawing import Draw, Statement
from generation.models import Generation, GenerationChunk, GenerationRun, Prompt
from generation.runs import cancel_run, fail_run, pause_run, resume_run
from tests.factories import make_generation, make_run
from tests.generation.concurrency import Held, at_once, start

pytestmark = pytest.mark.django_db
concurrent = pytest.mark.django_db(transaction=True)


def a_draw(*texts, prompt="- one\n-", **counts):
    """A draw of these statements, all from one prompt."""
    statements = [
        Statement(
            position=place,
            method="topk",
            prompt=prompt,
            seed=40 + place,
            text=text,
            tokens=4,
            log_prob=-2.5,
            finish_reason="stop",
        )
        for place, text in enumerate(texts)
    ]
    return Draw(statements, **counts)


def store(chunk, *texts, seconds=1.5, **options):
    store_chunk(chunk=chunk, draw=a_draw(*texts, **options), decoding_seconds=seconds)


def let_lapse(chunk):
    GenerationChunk.objects.filter(pk=chunk.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))


def lease(run):
    return lease_next_chunk(run_id=run.pk)


def stored_texts(run):
    return list(run.generations.order_by("chunk__index", "position").values_list("text", flat=True))


def state_of(run):
    return GenerationRun.objects.get(pk=run.pk).state


# --- Leasing ----------------------------------------------------------------------------


def test_chunks_are_leased_in_their_order_until_none_is_free():
    run = make_run(count=40)
    assert [lease(run).index for _ in range(3)] == [0, 1, 2]
    assert lease(run) is None


def test_the_first_lease_starts_the_run_and_the_second_does_not_start_it_again():
    run = make_run(count=40)
    lease(run)
    run.refresh_from_db()
    started_at = run.started_at
    assert (run.state, started_at is not None) == ("running", True)
    lease(run)
    run.refresh_from_db()
    assert run.started_at == started_at


def test_a_lease_lasts_as_long_as_the_setting_says(settings):
    settings.LEASE_SECONDS = 90
    before = timezone.now()
    chunk = lease(make_run())
    assert before + timedelta(seconds=90) <= chunk.lease_expires_at <= timezone.now() + timedelta(seconds=90)


def test_chunks_of_another_run_are_not_leased():
    run = make_run()
    make_run()
    lease(run)
    assert lease(run) is None


def test_no_chunk_of_an_ended_run_is_leased():
    cancelled, failed = make_run(), make_run()
    cancel_run(run=cancelled)
    fail_run(run_id=failed.pk, reason="The machine burned down.")
    assert lease(cancelled) is lease(failed) is None


def test_a_lapsed_chunk_is_taken_up_again_before_later_ones():
    run = make_run(count=40)
    first = lease(run)
    let_lapse(first)
    again = lease(run)
    assert (again.pk, again.index, again.leases) == (first.pk, 0, 2)
    assert again.lease_token != first.lease_token
    assert again.lease_expires_at > timezone.now()


def test_a_chunk_taken_up_five_times_without_being_stored_fails_the_run():
    run = make_run(count=40)
    for _ in range(5):
        let_lapse(lease(run))
    assert lease(run) is None
    run.refresh_from_db()
    assert run.state == "failed"
    assert run.failure == (
        "Chunk 0 was taken up 5 times and its worker stopped each time. "
        "See the workers' logs; a machine short of memory does this."
    )


def test_a_chunk_stored_at_the_fifth_time_does_no_harm():
    run = make_run(count=1)
    for _ in range(4):
        let_lapse(lease(run))
    store(lease(run), "rain fell")
    assert state_of(run) == "finished"


def test_no_chunk_of_a_paused_run_is_leased_until_it_is_resumed():
    run = make_run()
    pause_run(run_id=run.pk)
    assert lease(run) is None
    resume_run(run=run)
    assert lease(run).index == 0


def test_a_resumed_run_started_when_it_first_did():
    run = make_run(count=40)
    lease(run)
    run.refresh_from_db()
    started_at = run.started_at
    pause_run(run_id=run.pk)
    resume_run(run=run)
    lease(run)
    run.refresh_from_db()
    assert (run.state, run.started_at) == ("running", started_at)


@concurrent
def test_workers_that_lease_at_once_never_get_the_same_chunk():
    run = make_run(count=16 * 30)

    def lease_all():
        return [chunk.index for chunk in iter(lambda: lease(run), None)]

    first, second = at_once(lease_all, lease_all)
    assert sorted(first + second) == list(range(30))
    assert set(GenerationChunk.objects.values_list("leases", flat=True)) == {1}


@concurrent
def test_a_worker_passes_over_a_chunk_that_another_is_just_leasing():
    run = make_run(count=40)
    lease(run)  # starts the run
    with Held(lambda: lease(run)):
        assert start(lambda: lease(run).index).result(5) == 2


# --- Keeping a lease --------------------------------------------------------------------


def test_a_lease_more_than_half_of_which_is_left_is_kept_without_asking(settings, django_assert_num_queries):
    settings.LEASE_SECONDS = 60
    chunk = lease(make_run())
    with django_assert_num_queries(0):
        keep_lease(chunk=chunk)


def test_the_end_of_a_lease_is_put_off_once_half_of_it_has_gone(settings, django_assert_num_queries):
    settings.LEASE_SECONDS = 60
    chunk = lease(make_run())
    chunk.lease_expires_at = timezone.now() + timedelta(seconds=29)
    with django_assert_num_queries(1):
        keep_lease(chunk=chunk)
    chunk.refresh_from_db()
    assert chunk.lease_expires_at > timezone.now() + timedelta(seconds=58)
    with django_assert_num_queries(0):
        keep_lease(chunk=chunk)


def lapsed(chunk):
    """The chunk after so long a pause that its lease lapsed."""
    let_lapse(chunk)
    chunk.refresh_from_db()
    return chunk


def test_a_lapsed_lease_that_nobody_took_up_is_still_ours():
    chunk = lapsed(lease(make_run()))
    keep_lease(chunk=chunk)
    assert lease(chunk.run) is None


def test_a_lease_that_somebody_else_took_up_is_lost():
    run = make_run()
    chunk = lapsed(lease(run))
    lease(run)
    with pytest.raises(LeaseLost) as loss:
        keep_lease(chunk=chunk)
    assert str(loss.value) == f"chunk 0 of run {run.pk} is not ours any more."


@pytest.mark.parametrize(
    "act", [lambda run: cancel_run(run=run), lambda run: pause_run(run_id=run.pk)], ids=["cancelled", "paused"]
)
def test_a_lease_of_a_cancelled_or_paused_run_is_lost(act):
    run = make_run()
    chunk = lapsed(lease(run))
    act(run)
    with pytest.raises(LeaseLost):
        keep_lease(chunk=chunk)


# --- Giving a chunk back ----------------------------------------------------------------


def test_a_chunk_given_back_is_free_at_once_and_counts_as_not_taken_up():
    run = make_run()
    give_back_chunk(chunk=lease(run))
    chunk = run.chunks.get()
    assert (chunk.lease_token, chunk.lease_expires_at, chunk.leases) == (None, None, 0)
    assert lease(run).leases == 1


def test_a_chunk_that_others_have_by_now_is_not_given_back():
    run = make_run()
    first = lapsed(lease(run))
    second = lease(run)
    give_back_chunk(chunk=first)
    assert run.chunks.get().lease_token == second.lease_token


def test_a_chunk_given_back_after_its_run_was_paused_and_resumed_counts_as_not_taken_up():
    run = make_run()
    chunk = lease(run)
    pause_run(run_id=run.pk)
    resume_run(run=run)
    give_back_chunk(chunk=chunk)
    assert run.chunks.get().leases == 0


# --- Storing ----------------------------------------------------------------------------


def test_storing_keeps_the_statements_with_all_that_is_known_of_them():
    run = make_run(count=2)
    store(lease(run), "rain fell", "snow fell", prompt="- one\n- two\n-")
    first, second = Generation.objects.filter(run=run)
    assert (first.text, first.position, first.seed) == ("rain fell", 0, 40)
    assert (second.text, second.position, second.seed) == ("snow fell", 1, 41)
    assert (first.prompt.text, first.prompt.group.slug, first.prompt.label) == ("- one\n- two\n-", "women", "benign")
    assert (first.group.slug, first.label, first.method) == ("women", "benign", "topk")
    assert (first.tokens, first.log_prob, first.finish_reason) == (4, -2.5, "stop")


def test_what_alice_knows_of_a_statement_is_stored_with_it():
    run = make_run(count=1, method="alice")
    hypotheses = [{"text": "rain fell", "score": -0.5}, {"text": "rain", "score": None}]
    [plain] = a_draw("rain fell").statements
    alice = replace(plain, method="alice", score=-math.inf, toxic_prob=0.25, hypotheses=hypotheses)
    store_chunk(chunk=lease(run), draw=Draw([alice]), decoding_seconds=1.5, classifier_runs=470)
    [stored] = run.generations.all()
    assert (stored.method, stored.score, stored.toxic_prob, stored.hypotheses) == ("alice", -math.inf, 0.25, hypotheses)
    assert run.chunks.get().classifier_runs == 470


def test_the_two_of_a_pair_share_their_place_and_prompt():
    run = make_run(count=1, method="paired")
    [first] = a_draw("rain fell").statements
    store_chunk(
        chunk=lease(run), draw=Draw([first, replace(first, method="alice", text="snow fell")]), decoding_seconds=1.5
    )
    topk, alice = run.generations.all()
    assert [(topk.method, topk.text), (alice.method, alice.text)] == [("topk", "rain fell"), ("alice", "snow fell")]
    assert (topk.chunk_id, topk.position, topk.prompt_id) == (alice.chunk_id, alice.position, alice.prompt_id)


def test_storing_gives_the_lease_back_and_notes_what_was_drawn_again():
    chunk = lease(make_run(count=1))
    store(chunk, "rain fell", seconds=2.5, empty=1, duplicate=2, copy=3)
    chunk.refresh_from_db()
    assert (chunk.lease_token, chunk.lease_expires_at) == (None, None)
    assert chunk.finished_at is not None
    assert (chunk.decoding_seconds, chunk.empty, chunk.duplicate, chunk.copy) == (2.5, 1, 2, 3)


def test_storing_twice_stores_once():
    run = make_run(count=1)
    chunk = lease(run)
    store(chunk, "rain fell")
    with pytest.raises(LeaseLost):
        store(chunk, "rain fell")
    assert stored_texts(run) == ["rain fell"]


def test_whoever_lost_the_lease_stores_nothing_and_who_has_it_does():
    run = make_run(count=1)
    first = lease(run)
    let_lapse(first)
    second = lease(run)
    with pytest.raises(LeaseLost) as loss:
        store(first, "rain fell")
    assert str(loss.value) == f"chunk 0 of run {run.pk} is not ours any more."
    assert stored_texts(run) == []
    store(second, "snow fell")
    assert stored_texts(run) == ["snow fell"]


def test_a_lapsed_lease_that_nobody_took_up_still_stores():
    run = make_run(count=1)
    chunk = lapsed(lease(run))
    store(chunk, "rain fell")
    assert stored_texts(run) == ["rain fell"]


@pytest.mark.parametrize(
    "act", [lambda run: cancel_run(run=run), lambda run: pause_run(run_id=run.pk)], ids=["cancelled", "paused"]
)
def test_after_a_run_was_cancelled_or_paused_nothing_is_stored(act):
    run = make_run(count=1)
    chunk = lease(run)
    act(run)
    with pytest.raises(LeaseLost):
        store(chunk, "rain fell")
    assert stored_texts(run) == []


def test_a_chunk_that_was_in_hand_while_its_run_was_paused_and_resumed_is_stored():
    run = make_run(count=1)
    chunk = lease(run)
    pause_run(run_id=run.pk)
    resume_run(run=run)
    store(chunk, "rain fell")
    assert (state_of(run), stored_texts(run)) == ("finished", ["rain fell"])


def test_a_text_that_the_run_has_already_refuses_the_whole_chunk_which_stays_leased():
    run = make_run(count=18)
    first, second = lease(run), lease(run)
    store(first, *(f"day {day} was dry" for day in range(15)), "Rain fell")
    with pytest.raises(IntegrityError, match="generation_text_once_a_run"), transaction.atomic():
        store(second, "snow fell", "rain FELL")
    assert len(stored_texts(run)) == 16
    second.refresh_from_db()
    assert (second.finished_at, second.lease_token is not None) == (None, True)


def test_other_runs_and_statements_without_a_run_may_have_the_same_text():
    make_generation("rain fell")
    for _ in range(2):
        store(lease(make_run(count=1)), "rain fell")
    assert Generation.objects.filter(text="rain fell").count() == 3


def test_a_prompt_that_is_stored_already_is_used_again():
    for _ in range(2):
        store(lease(make_run(count=1)), "rain fell", prompt="- one\n-")
    assert [prompt.generations.count() for prompt in Prompt.objects.all()] == [2]


def test_storing_takes_as_many_queries_for_sixteen_statements_as_for_one(django_assert_num_queries):
    one, sixteen = lease(make_run(count=1)), lease(make_run(count=16))
    for chunk in (one, sixteen):
        with django_assert_num_queries(9 + 2):  # and the two of the savepoint
            store(chunk, *(f"day {day} was dry" for day in range(chunk.size)))


def test_the_run_is_finished_with_its_last_chunk_and_not_before():
    run = make_run(count=17)
    first, second = lease(run), lease(run)
    store(second, "rain fell")
    assert state_of(run) == "running"
    store(first, *(f"day {day} was dry" for day in range(16)))
    run.refresh_from_db()
    assert (run.state, run.ended_at is not None) == ("finished", True)


@concurrent
def test_the_run_is_finished_when_two_workers_store_the_last_two_chunks_at_once():
    run = make_run(count=17)
    first, second = lease(run), lease(run)
    with Held(lambda: store(first, *(f"day {day} was dry" for day in range(16)))):
        storing = start(lambda: store(second, "rain fell"))
        time.sleep(0.2)
        assert not storing.done()
    storing.result(5)
    assert state_of(run) == "finished"


@concurrent
def test_two_workers_that_store_chunks_of_one_cell_at_once_are_both_counted_in_it():
    run = make_run(count=80)
    chunks = [lease(run) for _ in range(5)]
    outcomes = at_once(
        *(
            lambda chunk=chunk: store(chunk, *(f"day {chunk.index} {day} was dry" for day in range(16)), copy=2)
            for chunk in chunks
        )
    )
    assert outcomes == [None] * 5
    cell = run.cells.get()
    assert (cell.stored, cell.copy, state_of(run)) == (80, 10, "finished")


@concurrent
def test_of_two_workers_that_store_the_same_text_at_once_one_stores_nothing():
    run = make_run(count=32)
    first, second = lease(run), lease(run)
    outcomes = at_once(
        lambda: store(first, "rain fell", *(f"day {day} was dry" for day in range(15))),
        lambda: store(second, "Rain fell", *(f"night {night} was dry" for night in range(15))),
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["IntegrityError", "NoneType"]
    assert run.generations.count() == 16
    assert run.chunks.unfinished().count() == 1


@concurrent
def test_who_cancels_while_a_chunk_is_being_stored_waits_for_it():
    run = make_run(count=17)
    chunk = lease(run)
    with Held(lambda: store(chunk, *(f"day {day} was dry" for day in range(16)))):
        cancelling = start(lambda: cancel_run(run=run))
        time.sleep(0.2)
        assert not cancelling.done()
    assert cancelling.result(5) is True
    assert state_of(run) == "cancelled"
    chunk.refresh_from_db()
    assert chunk.finished_at is not None


@concurrent
def test_who_stores_while_a_run_is_being_cancelled_stores_nothing():
    run = make_run(count=1)
    chunk = lease(run)
    with Held(lambda: cancel_run(run=run)):
        storing = start(lambda: store(chunk, "rain fell"))
        time.sleep(0.2)
        assert not storing.done()
    assert isinstance(storing.exception(5), LeaseLost)
    assert (state_of(run), stored_texts(run)) == ("cancelled", [])
