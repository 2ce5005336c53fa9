"""What a worker does with a run, with a toy in the language model's place."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import IntegrityError, OperationalError
from django.utils import timezone

from generation import tasks, working
from generation.chunks import lease_next_chunk, store_chunk
from generation.drawing import Draw
from generation.language_models import LanguageModelUnavailable
from generation.models import Demonstration, GenerationChunk
from generation.runs import cancel_run
from tests.factories import make_run
from tests.generation import toys

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("toy")]


def work(run):
    working.work_on_run(run_id=run.pk)
    run.refresh_from_db()


def texts(run):
    return list(run.generations.order_by("chunk__index", "position").values_list("text", flat=True))


def at_the_first_step(toy, happening):
    """Let something happen while the model computes for the first time."""
    start = toy.model.start

    def start_and_let_it_happen(prompts):
        toy.model.start = start
        happening()
        return start(prompts)

    toy.model.start = start_and_let_it_happen


class OnceThen:
    """The first function for the first call, the second from then on."""

    def __init__(self, first, second):
        self.functions = [first, second]

    def __call__(self, **arguments):
        return (self.functions.pop(0) if len(self.functions) > 1 else self.functions[0])(**arguments)


# --- Through to the end -----------------------------------------------------------------


def test_a_run_is_worked_on_until_it_is_finished():
    run = make_run(count=20, slugs=("women", "asian"))
    work(run)
    assert (run.state, run.failure) == ("finished", "")
    assert run.generations.count() == len({text.lower() for text in texts(run)}) == 40
    for chunk in run.chunks.all():
        positions = chunk.generations.order_by("position").values_list("position", flat=True)
        assert list(positions) == list(range(chunk.size))
        assert {generation.group_id for generation in chunk.generations.all()} == {chunk.group_id}


def test_each_statement_has_a_prompt_of_five_demonstrations_of_its_group():
    run = make_run(count=4)
    work(run)
    usable = set(Demonstration.objects.values_list("text", flat=True))
    for generation in run.generations.all():
        *lines, last = generation.prompt.text.split("\n")
        assert last == "-"
        assert len({line.removeprefix("- ") for line in lines} & usable) == 5


def test_working_on_a_finished_run_again_does_nothing():
    run = make_run(count=4)
    work(run)
    before = (texts(run), run.ended_at)
    work(run)
    assert (texts(run), run.ended_at) == before


def test_a_run_that_does_not_exist_is_no_error():
    working.work_on_run(run_id=12345)


def test_the_same_seed_gives_the_same_statements():
    first, second = make_run(count=20, seed=11), make_run(count=20, seed=11)
    work(first)
    work(second)
    assert texts(first) == texts(second)


def test_another_seed_gives_other_statements():
    first, second = make_run(count=20, seed=11), make_run(count=20, seed=12)
    work(first)
    work(second)
    assert not set(texts(first)) & set(texts(second))


def test_a_run_whose_worker_died_ends_with_the_statements_of_an_undisturbed_one():
    undisturbed, disturbed = make_run(count=40, seed=11), make_run(count=40, seed=11)
    work(undisturbed)
    dead = lease_next_chunk(run_id=disturbed.pk)
    work(disturbed)
    assert (disturbed.state, disturbed.generations.count()) == ("running", 24)
    GenerationChunk.objects.filter(pk=dead.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    work(disturbed)
    assert disturbed.state == "finished"
    assert texts(disturbed) == texts(undisturbed)


def test_the_parameters_of_the_run_are_those_of_the_decoding():
    run = make_run(count=2, parameters=working.TopKParameters(max_new_tokens=3))
    work(run)
    assert [len(text.split()) for text in texts(run)] == [3, 3]
    assert set(run.generations.values_list("tokens", "finish_reason")) == {(3, "length")}


def test_the_run_notes_what_it_was_worked_on_with():
    run = make_run(count=1)
    work(run)
    assert run.environment["language_model_revision"] == "toy 1"
    assert run.environment["device"] == "cpu"
    assert set(run.environment) == {
        "language_model_revision",
        "device",
        "dtype",
        "threads",
        "python",
        "torch",
        "transformers",
    }


def test_the_time_of_decoding_is_noted():
    run = make_run(count=1)
    work(run)
    assert run.chunks.get().decoding_seconds > 0


# --- Drawing again ----------------------------------------------------------------------


def test_statements_that_an_earlier_chunk_has_are_drawn_again(toy):
    # Seventeen of eighteen sayings: the last chunk has to find one of two that the first left.
    toy.model = toys.sayings(*(f"day {day} was dry" for day in range(18)))
    run = make_run(count=17)
    work(run)
    assert (run.state, run.failure) == ("finished", "")
    assert len(set(texts(run))) == 17
    assert sum(run.chunks.values_list("duplicate", flat=True)) > 0


@pytest.mark.parametrize("letter", ["İ", "Σ", "É"])
def test_capitals_that_databases_lower_in_different_ways_are_drawn_again_too(toy, letter):
    toy.model = toys.sayings(*(f"{letter}{day} WAS dry" for day in range(18)))
    run = make_run(count=17)
    work(run)
    assert (run.state, run.failure) == ("finished", "")


def test_a_text_that_another_worker_stores_meanwhile_is_drawn_again(monkeypatch):
    run = make_run(count=32)
    first, second = (lease_next_chunk(run_id=run.pk) for _ in range(2))
    model = working.load_language_model("toy")
    drawn_first, drawn_second = (working.draw_chunk(chunk=chunk, model=model) for chunk in (first, second))

    def draw_while_the_other_worker_stores(**_):
        same = [*drawn_second.statements[:1], *drawn_first.statements[1:]]
        store_chunk(chunk=first, draw=Draw(same), decoding_seconds=1)
        return drawn_second

    monkeypatch.setattr(working, "draw_chunk", OnceThen(draw_while_the_other_worker_stores, working.draw_chunk))
    working.work_on_chunk(chunk=second)

    second.refresh_from_db()
    assert (second.generations.count(), second.duplicate) == (16, 1)
    kept = [statement.text for statement in drawn_second.statements[1:]]
    assert list(second.generations.order_by("position").values_list("text", flat=True))[1:] == kept


# --- Stopping ---------------------------------------------------------------------------


def test_a_run_that_is_cancelled_stops_at_the_next_step_and_stores_nothing_more(toy, settings):
    settings.LEASE_SECONDS = 0  # looks at its lease at every step
    run = make_run(count=40)
    at_the_first_step(toy, lambda: cancel_run(run=run))
    steps = []
    step = toy.model.step
    toy.model.step = lambda *arguments: steps.append("step") or step(*arguments)
    work(run)
    assert (run.state, texts(run), steps) == ("cancelled", [], [])


def test_a_run_that_is_cancelled_while_its_chunk_is_drawn_stores_nothing_more(toy):
    run = make_run(count=40)
    at_the_first_step(toy, lambda: cancel_run(run=run))
    work(run)
    assert (run.state, texts(run)) == ("cancelled", [])


def test_a_worker_that_is_asked_to_stop_gives_its_chunk_back_at_once():
    run = make_run(count=40)
    questions = iter([False, False, True])
    working.work_on_run(run_id=run.pk, is_stopping=lambda: next(questions))
    run.refresh_from_db()
    assert (run.state, texts(run)) == ("running", [])
    assert list(run.chunks.values_list("leases", "lease_token", "lease_expires_at")) == [(0, None, None)] * 3
    work(run)
    assert run.state == "finished"


def test_a_worker_that_lost_a_chunk_goes_on_with_the_next(toy):
    run = make_run(count=40)
    others = {"lease_token": uuid4(), "lease_expires_at": timezone.now() + timedelta(hours=1)}
    at_the_first_step(toy, lambda: run.chunks.filter(index=0).update(**others))
    work(run)
    assert run.state == "running"
    assert list(run.chunks.unfinished().values_list("index", "lease_token")) == [(0, others["lease_token"])]
    assert run.generations.count() == 24


def test_a_worker_whose_database_went_away_leaves_the_run_open_for_the_next(toy):
    run = make_run(count=4)

    def lose_the_database():
        raise OperationalError("server closed the connection unexpectedly")

    at_the_first_step(toy, lose_the_database)
    with pytest.raises(OperationalError):
        work(run)
    run.refresh_from_db()
    assert (run.state, run.failure) == ("running", "")
    run.chunks.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    work(run)
    assert (run.state, run.generations.count()) == ("finished", 4)


def test_the_task_tries_again_when_the_database_is_away(monkeypatch):
    calls = []

    def away_twice(*, run_id, is_stopping):
        calls.append(run_id)
        if len(calls) < 3:
            raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(working, "work_on_run", away_twice)
    assert tasks.work_on_run.apply([12]).state == "SUCCESS"
    assert calls == [12, 12, 12]


# --- Failing, and saying why ------------------------------------------------------------


def test_an_unavailable_language_model_fails_the_run_with_its_sentence(monkeypatch):
    def unavailable(name):
        raise LanguageModelUnavailable(f"The language model {name!r} cannot be loaded.")

    monkeypatch.setattr(working, "load_language_model", unavailable)
    run = make_run()
    work(run)
    assert (run.state, run.failure) == ("failed", "The language model 'toy' cannot be loaded.")


def test_a_language_model_that_repeats_itself_fails_the_run_with_what_to_do(toy):
    toy.model = toys.sayings("rain fell")
    run = make_run(count=2)
    work(run)
    assert (run.state, texts(run)) == ("failed", [])
    assert run.failure == (
        "After 20 rounds the language model had written 1 of 2 new statements (0 were empty, 20 duplicates, "
        "0 copies of their prompt). Raise the temperature, add demonstrations or ask for fewer."
    )


def test_what_was_stored_before_a_failure_stays(monkeypatch):
    models = [toys.chatterbox(), toys.sayings(" ")]
    monkeypatch.setattr(working, "load_language_model", lambda name: models.pop(0))
    run = make_run(count=17)
    work(run)
    assert (run.state, run.generations.count()) == ("failed", 16)


def test_demonstrations_retired_after_the_start_fail_the_run_with_what_to_do():
    run = make_run()
    Demonstration.objects.update(retired_at=timezone.now())
    work(run)
    assert run.failure == "A prompt needs 5 demonstrations and the benign set of Women has 0. Add 5 more."


def test_an_error_nobody_thought_of_is_on_the_run_s_page_and_in_the_log(toy):
    run = make_run()
    at_the_first_step(toy, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        work(run)
    run.refresh_from_db()
    assert (run.state, run.failure) == (
        "failed",
        "The worker stopped with an error: ZeroDivisionError: division by zero",
    )


def test_an_error_without_words_fails_the_run_too(toy):
    run = make_run()

    def fail():
        raise ValueError

    at_the_first_step(toy, fail)
    with pytest.raises(ValueError):
        work(run)
    run.refresh_from_db()
    assert (run.state, run.failure) == ("failed", "The worker stopped with an error: ValueError: ")


def test_a_chunk_that_the_database_refuses_three_times_fails_the_run(monkeypatch):
    tries = []

    def refuse(**_):
        tries.append("try")
        raise IntegrityError("generation_text_once_a_run")

    monkeypatch.setattr(working, "store_chunk", refuse)
    run = make_run()
    with pytest.raises(IntegrityError):
        work(run)
    run.refresh_from_db()
    assert (run.state, len(tries)) == ("failed", 3)
    assert run.failure == "The worker stopped with an error: IntegrityError: generation_text_once_a_run"
