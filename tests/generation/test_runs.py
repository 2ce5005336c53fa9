"""Runs: ordered with all that is needed to repeat them, refused in sentences, paused and resumed, ended once."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from generation.models import AuditEntry, Demonstration, GenerationRun, TargetGroup
from generation.parameters import AliceParameters, TopKParameters
from generation.prompting import NotEnoughDemonstrations
from generation.runs import Cell, cancel_run, fail_run, finish_run_if_complete, pause_run, resume_run, start_run
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
        [Cell(women, "benign", 3)], topk=TopKParameters(k=5, temperature=1.5, max_new_tokens=9), seed=11,
        created_by=researcher,
    )  # fmt: skip
    run.refresh_from_db()
    assert (run.state, run.method, run.language_model, run.seed) == ("queued", "topk", "toy", 11)
    assert run.parameters == {"topk": {"k": 5, "temperature": 1.5, "max_new_tokens": 9}}
    assert (run.classifier, run.precision) == ("", "float32")
    assert (run.created_by, run.started_at, run.ended_at, run.failure) == (researcher, None, None, "")


OF_TOPK = {"k": 40, "temperature": 0.9, "max_new_tokens": 30}
OF_ALICE = {
    "lm_weight": 0.5,
    "classifier_weight": 0.5,
    "beam": 10,
    "vocabulary": 100,
    "temperature": 0.9,
    "max_new_tokens": 30,
    "selection": "topk",
    "no_repeat_ngram_size": 0,
    "group_words_allowed": True,
    "n_best": 10,
}


@pytest.mark.parametrize(
    ("method", "parameters", "classifier"),
    [
        ("topk", {"topk": OF_TOPK}, ""),
        ("alice", {"alice": OF_ALICE}, "toy classifier"),
        ("paired", {"topk": OF_TOPK, "alice": OF_ALICE}, "toy classifier"),
    ],
)
def test_without_parameters_those_of_the_paper_are_stored_for_each_method(women, method, parameters, classifier):
    run = start([Cell(women, "benign", 1)], method=method, classifier=classifier)
    run.refresh_from_db()
    assert (run.parameters, run.classifier) == (parameters, classifier)


def test_a_direction_is_not_stored_since_the_label_of_each_cell_decides_it(women):
    make_demonstrations(women, label="toxic")
    run = start([Cell(women, "toxic", 1)], method="alice", classifier="toy classifier", alice=FALSE_NEGATIVES)
    assert run.parameters == {"alice": OF_ALICE}


def test_a_run_of_both_methods_has_a_place_for_each_pair(women):
    run = start([Cell(women, "benign", 20)], method="paired", classifier="toy classifier", precision="bfloat16")
    assert chunks_of(run) == [("women", 16), ("women", 4)]
    assert (run.methods, run.precision) == (("topk", "alice"), "bfloat16")
    assert run.progress()["wanted"] == 40


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


def test_a_setting_says_how_large_chunks_are(women, settings):
    settings.CHUNK_SIZE = 64
    assert chunks_of(start([Cell(women, "benign", 65)])) == [("women", 64), ("women", 1)]


def test_groups_may_want_different_numbers(women):
    asian = make_group("asian")
    make_demonstrations(asian)
    run = start([Cell(women, "benign", 17), Cell(asian, "benign", 2)])
    assert chunks_of(run) == [("women", 16), ("asian", 2), ("women", 1)]


def test_each_set_of_a_run_is_a_cell_that_keeps_what_prompts_are_drawn_from(women):
    make_demonstrations(women, label="toxic", texts=[f"placeholder {letter}" for letter in "abcde"])
    run = start([Cell(women, "benign", 17), Cell(women, "toxic", 2)])
    Demonstration.objects.all().delete()
    women.naming_words = "other words"
    women.save()
    benign, toxic = run.cells.order_by("label")
    assert (benign.label, benign.places, benign.stored, len(benign.demonstrations)) == ("benign", 17, 0, 7)
    assert (toxic.label, toxic.places, toxic.near_duplicate) == ("toxic", 2, None)
    assert toxic.demonstrations == [f"placeholder {letter}" for letter in "abcde"]
    assert toxic.naming_words == "woman women female females girl girls lady ladies"


def test_ten_thousand_statements_of_each_of_26_sets_are_ordered_in_a_few_queries(django_assert_max_num_queries):
    groups = list(TargetGroup.objects.all())
    for group in groups:
        for label in ("benign", "toxic"):
            make_demonstrations(group, label=label)
    with django_assert_max_num_queries(20):
        run = start([Cell(group, label, 10_000) for group in groups for label in ("benign", "toxic")])
    assert (run.cells.count(), run.chunks.count(), run.progress()["wanted"]) == (26, 16_250, 260_000)


def test_who_started_what_is_in_the_audit_trail(women):
    researcher = get_user_model().objects.create(username="ada")
    run = start([Cell(women, "benign", 3)], method="paired", classifier="toy classifier", created_by=researcher)
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.by, entry.subject) == ("run started", researcher, f"run {run.pk}")
    assert entry.details == {"statements": 6, "method": "paired", "sets": ["benign women"], "repeats": None}


def test_who_paused_resumed_and_cancelled_is_in_the_audit_trail():
    researcher = get_user_model().objects.create(username="ada")
    run = make_run()
    pause_run(run_id=run.pk, by=researcher)
    resume_run(run=run)
    cancel_run(run=run, by=researcher)
    cancel_run(run=run, by=researcher)
    noted = AuditEntry.objects.filter(subject=f"run {run.pk}").order_by("pk").values_list("act", "by__username")
    assert list(noted) == [
        ("run started", None),
        ("run paused", "ada"),
        ("run resumed", None),
        ("run cancelled", "ada"),
    ]


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


def test_more_than_a_million_statements_of_a_group_and_label_are_refused(women):
    assert refusal(cells=[Cell(women, "benign", 1_000_001)]) == (
        "The number of statements of a group and label must be at most 1000000, not 1000001. Start several runs."
    )


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


def test_every_set_that_is_too_small_is_named(women):
    asian = make_group("asian", name="Asian")
    cells = [Cell(women, "toxic", 1), Cell(women, "benign", 1), Cell(asian, "benign", 1)]
    assert refusal(NotEnoughDemonstrations, cells=cells) == (
        "A prompt needs 5 demonstrations and the toxic set of Women has 0. Add 5 more. "
        "A prompt needs 5 demonstrations and the benign set of Asian has 0. Add 5 more."
    )


def test_a_set_is_chosen_once(women):
    assert refusal(cells=[Cell(women, "benign", 1), Cell(women, "benign", 2)]) == (
        "The benign set of Women is chosen twice. Choose it once."
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


FALSE_NEGATIVES = AliceParameters(direction="false_negatives")
FALSE_POSITIVES = AliceParameters(direction="false_positives")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "guess"}, "There is no method 'guess'. Choose one of: topk, alice, paired."),
        ({"precision": "int4"}, "There is no precision 'int4'. Choose one of: float32, bfloat16."),
        ({"language_model": " "}, "Name the language model."),
        (
            {"language_model": "https://ada:secret@example.org/v1#model"},
            "A completions server's address is stored with the run and shown: leave user name, password and query out "
            "of it, and set HUMANVAL_COMPLETIONS_KEY to the key.",
        ),
        (
            {"language_model": "https://example.org/v1?key=secret"},
            "A completions server's address is stored with the run and shown: leave user name, password and query out "
            "of it, and set HUMANVAL_COMPLETIONS_KEY to the key.",
        ),
        (
            {"language_model": "m" * 301},
            "The name of the language model has 301 characters. At most 300 can be stored.",
        ),
        ({"method": "alice"}, "ALICE needs a classifier: name one."),
        ({"method": "paired", "classifier": " "}, "ALICE needs a classifier: name one."),
        ({"classifier": "toy classifier"}, "Top-k uses no classifier: leave 'toy classifier' out."),
        ({"alice": FALSE_POSITIVES}, "This run does not use ALICE: leave its parameters out."),
        (
            {"method": "alice", "classifier": "toy classifier", "topk": TopKParameters()},
            "This run does not use top-k: leave its parameters out.",
        ),
        (
            {"method": "alice", "classifier": "toy classifier", "alice": FALSE_NEGATIVES},
            "False negatives are sought from toxic prompts, not from benign ones. For benign prompts choose false "
            "positives.",
        ),
    ],
)
def test_what_a_method_cannot_do_is_refused_in_a_sentence(women, options, sentence):
    with pytest.raises(ValueError) as refused:
        start_run(**{"cells": [Cell(women, "benign", 1)], "language_model": "toy"} | options)
    assert str(refused.value) == sentence
    assert not GenerationRun.objects.exists()


def test_a_direction_that_is_given_must_be_that_of_all_labels(women):
    make_demonstrations(women, label="toxic")
    cells = [Cell(women, "benign", 1), Cell(women, "toxic", 1)]
    assert refusal(cells=cells, method="alice", classifier="toy classifier", alice=FALSE_POSITIVES) == (
        "False positives are sought from benign prompts, not from toxic ones. For toxic prompts choose false negatives."
    )
    assert start(cells, method="alice", classifier="toy classifier").cells.count() == 2


@pytest.mark.parametrize("size", [0, -1])
def test_a_chunk_size_that_is_none_is_refused_by_the_name_of_its_setting(women, settings, size):
    settings.CHUNK_SIZE = size
    assert refusal(cells=[Cell(women, "benign", 1)]) == (
        f"HUMANVAL_CHUNK_SIZE must be a whole number of at least 1, not {size}."
    )


def test_a_chunk_size_that_cannot_be_stored_is_refused_by_the_name_of_its_setting(women, settings):
    settings.CHUNK_SIZE = 32_768
    assert refusal(cells=[Cell(women, "benign", 1)]) == (
        "HUMANVAL_CHUNK_SIZE must be a whole number of at most 32767, not 32768."
    )


# --- Pausing and resuming -----------------------------------------------------------------


def test_a_paused_run_says_why_and_has_not_ended():
    run = make_run()
    assert pause_run(run_id=run.pk, reason="The server does not answer.") is True
    run.refresh_from_db()
    assert (run.state, run.failure, run.ended_at) == ("paused", "The server does not answer.", None)
    assert (run.is_open, run.progress()["seconds_left"]) == (False, None)


def test_a_run_may_be_paused_for_no_reason():
    run = make_run()
    assert pause_run(run_id=run.pk) is True
    run.refresh_from_db()
    assert (run.state, run.failure) == ("paused", "")


def test_nobody_is_woken_for_a_paused_run():
    run = make_run()
    assert list(GenerationRun.objects.waiting()) == [run]
    pause_run(run_id=run.pk)
    assert list(GenerationRun.objects.waiting()) == []


def test_a_resumed_run_is_queued_again_and_a_worker_woken(sent, django_capture_on_commit_callbacks):
    run = make_run()
    pause_run(run_id=run.pk, reason="The server does not answer.")
    with django_capture_on_commit_callbacks(execute=True):
        assert resume_run(run=run) is True
    run.refresh_from_db()
    assert (run.state, run.failure, run.ended_at) == ("queued", "", None)
    assert sent == [("generation.work_on_run", [run.pk], "generation")]


def test_what_a_run_was_taken_up_before_its_pause_does_not_count_against_it():
    run = make_run(count=32)
    run.chunks.update(leases=5)
    run.chunks.filter(index=0).update(finished_at=timezone.now())
    pause_run(run_id=run.pk)
    resume_run(run=run)
    assert list(run.chunks.values_list("index", "leases")) == [(0, 5), (1, 0)]


def test_only_an_open_run_is_paused_and_only_a_paused_one_resumed(sent, django_capture_on_commit_callbacks):
    run = make_run()
    run.chunks.update(leases=3)
    with django_capture_on_commit_callbacks(execute=True):
        assert resume_run(run=run) is False
    assert run.chunks.get().leases == 3
    cancel_run(run=run)
    assert pause_run(run_id=run.pk) is False
    assert resume_run(run=run) is False
    run.refresh_from_db()
    assert (run.state, sent) == ("cancelled", [])


def test_a_paused_run_can_be_cancelled_but_neither_fails_nor_finishes():
    run = make_run()
    pause_run(run_id=run.pk, reason="The server does not answer.")
    run.chunks.update(finished_at=timezone.now())
    assert finish_run_if_complete(run_id=run.pk) is False
    assert fail_run(run_id=run.pk, reason="Too late.") is False
    assert cancel_run(run=run) is True
    run.refresh_from_db()
    assert (run.state, run.failure, run.ended_at is not None) == ("cancelled", "", True)


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


def test_progress_adds_up_the_cells():
    run = make_run(count=20, slugs=("women", "asian"))
    counts = {"stored": 5, "empty": 1, "duplicate": 2, "copy": 3, "decoding_seconds": 4.0}
    run.cells.filter(group__slug="women").update(**counts)
    run.cells.filter(group__slug="asian").update(**counts | {"stored": 3, "copy": 30})
    assert run.progress() == {
        "wanted": 40,
        "stored": 8,
        "percent": 20,
        "drawn_again_empty": 2,
        "drawn_again_duplicate": 4,
        "drawn_again_copy": 33,
        "near_duplicates": None,
        "seconds": 8.0,
        "workers": 0,
        "classifier_runs": 0,
        "classifier_runs_a_statement": None,
        "statements_a_second": 1.0,
        "statements_a_minute": None,
        "seconds_left": 32.0,
    }


def test_of_a_paired_run_both_statements_of_a_place_count_and_the_classifier_s_runs_are_those_of_alice():
    run = make_run(count=20, method="paired")
    run.cells.update(classifier_runs=600, decoding_seconds=3.0, stored=6)
    progress = run.progress()
    assert (progress["wanted"], progress["stored"], progress["percent"]) == (40, 6, 15)
    assert (progress["statements_a_second"], progress["classifier_runs_a_statement"]) == (2.0, 200.0)
    assert progress["seconds_left"] == 17.0


def test_the_time_left_is_shared_by_the_workers_that_hold_a_chunk_now():
    run = make_run(count=80)
    run.cells.update(decoding_seconds=16.0, stored=16)
    now = timezone.now()
    run.chunks.filter(index=0).update(finished_at=now)
    for index, ends in ((1, now + timedelta(minutes=1)), (2, now + timedelta(minutes=1)), (3, now - timedelta(1))):
        run.chunks.filter(index=index).update(lease_token=uuid4(), lease_expires_at=ends)
    progress = run.progress()
    assert (progress["workers"], progress["statements_a_second"], progress["seconds_left"]) == (2, 1.0, 32.0)


def test_what_was_written_in_the_last_five_minutes_is_told_by_the_minute():
    run = make_run(count=160, method="paired")
    now = timezone.now()
    run.chunks.filter(index__lt=4).update(finished_at=now - timedelta(hours=1))
    run.chunks.filter(index__in=(4, 6)).update(finished_at=now - timedelta(minutes=2))
    run.chunks.filter(index=5).update(lease_token=uuid4(), lease_expires_at=now + timedelta(minutes=1))
    assert run.progress()["statements_a_minute"] == pytest.approx(2 * 2 * 16 / 5, rel=0.01)
    run.started_at = now - timedelta(minutes=4)
    assert run.progress()["statements_a_minute"] == pytest.approx(2 * 2 * 16 / 4, rel=0.01)
    run.chunks.filter(index__in=(4, 6)).update(finished_at=now - timedelta(minutes=6))
    assert run.progress()["statements_a_minute"] is None


def test_before_the_first_chunk_is_stored_there_is_no_rate():
    progress = make_run(count=20).progress()
    assert (progress["stored"], progress["percent"]) == (0, 0)
    assert progress["statements_a_second"] is progress["seconds_left"] is None


def test_an_ended_run_has_no_time_left():
    run = make_run(count=20)
    run.cells.update(decoding_seconds=1.0, stored=1)
    cancel_run(run=run)
    run.refresh_from_db()
    assert run.progress()["seconds_left"] is None


def test_a_run_that_is_not_complete_is_never_at_a_hundred_percent():
    run = make_run(count=300)
    run.cells.update(stored=299)
    assert run.progress()["percent"] == 99


@pytest.mark.parametrize("count", [1, 20_000])
def test_progress_takes_three_queries_for_any_number_of_statements(count, django_assert_num_queries):
    run = make_run(count=count)
    with django_assert_num_queries(3):
        run.progress()


def test_progress_reads_as_many_rows_of_a_large_run_as_of_one_a_tenth_as_large():
    """Of its chunks only those in hand and just before them, however many are done or to come."""
    for count in (4_000, 40_000):
        run = make_run(count=count)
        now = timezone.now()
        run.chunks.filter(index__lt=count // 32).update(finished_at=now)
        with CaptureQueriesContext(connection) as queries:
            run.progress()
            assert len(run.last_finished_chunks()) == (125 if count == 4_000 else 200)
        chunks = [query["sql"] for query in queries if "generationchunk" in query["sql"]]
        assert chunks
        assert all("LIMIT 200" in sql for sql in chunks)


def test_open_runs_are_the_queued_and_the_running():
    queued, running, cancelled, failed = (make_run() for _ in range(4))
    GenerationRun.objects.filter(pk=running.pk).update(
        state="running", started_at=timezone.now() - timedelta(minutes=1)
    )
    cancel_run(run=cancelled)
    fail_run(run_id=failed.pk, reason="The machine burned down.")
    assert set(GenerationRun.objects.open()) == {queued, running}
    assert [run.is_open for run in (queued, running)] == [True, True]
