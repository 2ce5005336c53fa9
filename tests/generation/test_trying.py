"""The worker's part of a trial: responses written in one batch, stored once, whoever else is at it."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from generation import tasks, trying, working
from generation.language_models import LanguageModelUnavailable
from generation.models import GenerationRun, Response, Trial
from generation.parameters import TopKParameters
from generation.trials import ask, ask_for_it_again, lease_trial
from generation.trying import work_on_trial
from tests.factories import make_demonstrations, make_group, make_run
from tests.generation import toys

pytestmark = pytest.mark.django_db


@pytest.fixture
def women():
    group = make_group("women")
    make_demonstrations(group)
    return group


def asked(group, **options):
    return ask(**{"group": group, "label": "benign", "by": None, "seed": 7, "language_model": "toy"} | options)


def tried(trial):
    work_on_trial(trial_id=trial.pk)
    trial.refresh_from_db()
    return trial


def texts(trial):
    return [response.text for response in trial.responses.all()]


def test_the_embedded_model_answers_through_the_task_with_as_many_responses_as_were_asked_for(language_model, women):
    short = TopKParameters(max_new_tokens=12)
    trial = asked(women, language_model=settings.LANGUAGE_MODEL, count=4, parameters=short)
    tasks.trial(trial.pk)
    trial.refresh_from_db()
    assert (trial.failure, trial.lease_expires_at) == ("", None)
    assert [response.position for response in trial.responses.all()] == [0, 1, 2, 3]
    assert len(set(texts(trial))) == 4
    assert trial.environment["device"].startswith(("cpu", "cuda"))
    assert {response.finish_reason for response in trial.responses.all()} <= {"stop", "length"}


def test_responses_are_written_in_one_batch_each_from_a_seed_of_its_own(toy, women, monkeypatch):
    batches = []
    start = toys.ToyLanguageModel.start

    def counted(model, prompts, **options):
        batches.append(len(prompts))
        return start(model, prompts, **options)

    monkeypatch.setattr(toys.ToyLanguageModel, "start", counted)
    trial = tried(asked(women, count=8))
    assert batches == [8]
    assert len(set(texts(trial))) == 8


def test_the_seed_decides_the_responses(toy, women):
    assert texts(tried(asked(women, seed=7))) == texts(tried(asked(women, seed=7)))
    assert texts(tried(asked(women, seed=7))) != texts(tried(asked(women, seed=8)))


def test_what_is_empty_or_the_same_as_another_is_drawn_again_and_then_left_out(toy, women):
    toy.model = toys.sayings("", "we sail", "We sail", "we row")
    trial = tried(asked(women, count=8))
    assert sorted(text.lower() for text in texts(trial)) == ["we row", "we sail"]
    assert trial.failure == ""


def test_a_model_that_writes_nothing_fails_the_trial_with_what_to_do(toy, women):
    toy.model = toys.sayings("")
    assert tried(asked(women)).failure == (
        "The language model wrote nothing 4 times: each output was empty. Raise the temperature, or draw another "
        "prompt."
    )


def test_each_response_says_whether_it_names_the_group(toy):
    group = make_group("sailors", naming_words="sailor skipper", name="Seafarers")
    make_demonstrations(group)
    toy.model = toys.sayings("two skippers met", "SEAFARERS sing", "we row", "the sailorman rows")
    trial = tried(asked(group, count=8))
    assert dict(trial.responses.values_list("text", "mentions_group")) == {
        "two skippers met": True,
        "SEAFARERS sing": True,
        "we row": False,
        "the sailorman rows": False,
    }


def test_a_finished_trial_is_not_done_again(toy, women):
    trial = tried(asked(women))
    before = texts(trial)
    Trial.objects.filter(pk=trial.pk).update(seed=8)
    tasks.trial(trial.pk)
    assert texts(trial) == before


def test_a_trial_that_is_gone_is_no_error():
    tasks.trial(12345)


def test_the_trial_of_a_killed_worker_is_taken_up_again_once_its_lease_lapses(toy, women):
    trial = asked(women)
    lease_trial(trial_id=trial.pk)  # and then it is killed
    assert texts(tried(trial)) == []
    Trial.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert len(texts(tried(trial))) == 8
    assert trial.leases == 2


def test_a_worker_that_is_asked_to_stop_gives_the_trial_back(toy, women):
    trial = asked(women)
    work_on_trial(trial_id=trial.pk, is_stopping=lambda: True)
    trial.refresh_from_db()
    assert (trial.lease_expires_at, trial.leases, trial.finished_at) == (None, 0, None)


def test_a_model_that_cannot_be_loaded_fails_the_trial_with_its_reason_and_it_can_be_asked_for_again(
    toy, women, monkeypatch
):
    def unavailable(name, **_):
        raise LanguageModelUnavailable("The model is not here.")

    with monkeypatch.context() as patch:
        patch.setattr(working, "load_language_model", unavailable)
        trial = tried(asked(women))
    assert (trial.failure, texts(trial)) == ("The model is not here.", [])
    assert ask_for_it_again(trial=trial, by=None)
    trial = tried(trial)
    assert (trial.failure, len(texts(trial))) == ("", 8)
    assert not ask_for_it_again(trial=trial, by=None)


def test_an_unforeseen_error_is_on_the_trial_and_in_the_log(toy, women, monkeypatch):
    def explode(decoder):
        raise ZeroDivisionError("of a sort")

    monkeypatch.setattr(trying, "environment_of", explode)
    trial = asked(women)
    with pytest.raises(ZeroDivisionError):
        work_on_trial(trial_id=trial.pk)
    trial.refresh_from_db()
    assert trial.failure == "The worker stopped with an error: ZeroDivisionError: of a sort"
    assert not Response.objects.exists()


def test_a_worker_that_is_busy_with_a_run_answers_trials_after_each_chunk(toy, women, settings, monkeypatch):
    settings.CHUNK_SIZE = 2
    run = make_run(count=4)
    trial = asked(women)
    stored = []
    monkeypatch.setattr(trying, "store_trial", lambda **_: stored.append(run.generations.count()))
    chunk = working.work_on_chunk

    def ask_once_at_work(**options):
        chunk(**options)
        Trial.objects.filter(pk=trial.pk).update(lease_expires_at=None)

    monkeypatch.setattr(working, "work_on_chunk", ask_once_at_work)
    tasks.work_on_run(run.pk)
    assert stored == [0, 2, 4]
    assert GenerationRun.objects.get(pk=run.pk).state == "finished"


def test_an_error_in_a_trial_does_not_fail_the_run_between_whose_chunks_it_is_answered(toy, women, monkeypatch):
    def explode(**_):
        raise ZeroDivisionError("of a sort")

    run = make_run(count=1)
    asked(women)
    monkeypatch.setattr(trying, "store_trial", explode)
    tasks.work_on_run(run.pk)
    assert GenerationRun.objects.get(pk=run.pk).state == "finished"
    assert Trial.objects.get().failure == "The worker stopped with an error: ZeroDivisionError: of a sort"


def test_a_trial_of_a_broken_model_fails_and_the_run_between_whose_chunks_it_is_tried_goes_on(
    women, monkeypatch, tmp_path
):
    (tmp_path / "config.json").write_text("[]")
    load = working.load_language_model
    toy = toys.chatterbox()
    monkeypatch.setattr(working, "load_language_model", lambda name, **how: toy if name == "toy" else load(name, **how))
    run = make_run(count=1)
    trial = asked(women, language_model=str(tmp_path))
    tasks.work_on_run(run.pk)
    assert GenerationRun.objects.get(pk=run.pk).state == "finished"
    trial.refresh_from_db()
    assert trial.failure.startswith(f"The language model '{tmp_path}' cannot be loaded from this machine. ")
    assert trial.leases == 1


def test_whatever_goes_wrong_while_a_model_is_loaded_fails_the_trial(women, monkeypatch):
    def explode(name, **_):
        raise MemoryError("so large")

    monkeypatch.setattr(working, "load_language_model", explode)
    trial = asked(women)
    with pytest.raises(MemoryError):
        work_on_trial(trial_id=trial.pk)
    trial.refresh_from_db()
    assert trial.failure == "The worker stopped with an error: MemoryError: so large"


class Killed(BaseException):
    """A worker that is there no more: nothing of it is carried out after this."""


def test_workers_that_die_while_they_load_a_model_are_limited_too(women, monkeypatch):
    def die(name, **_):
        raise Killed

    trial = asked(women)
    with monkeypatch.context() as patch:
        patch.setattr(working, "load_language_model", die)
        for _ in range(3):
            with pytest.raises(Killed):
                work_on_trial(trial_id=trial.pk)
            Trial.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
        work_on_trial(trial_id=trial.pk)
    trial.refresh_from_db()
    assert trial.failure.startswith("Its worker stopped 3 times before the end.")


def test_nobody_takes_a_trial_over_while_its_model_is_loaded_and_then_the_lease_is_short_again(toy, women, monkeypatch):
    trial, left = asked(women), []

    def look(*_, **__):
        left.append(Trial.objects.get().lease_expires_at - timezone.now())
        return toy.model

    monkeypatch.setattr(working, "load_language_model", look)
    tried(trial)
    assert left[0] > timedelta(minutes=9)
    assert left[1] <= timedelta(seconds=60)
