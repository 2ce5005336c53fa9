"""Trials of prompts: drawn from a set, asked for, taken up by one worker, stored once."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from generation import leases, tasks
from generation.demonstrating import edit, retire
from generation.drawing import Output
from generation.models import AuditEntry, Prompt, Response, Trial
from generation.parameters import TopKParameters
from generation.prompting import NotEnoughDemonstrations, build_prompt, prompt_lines
from generation.trials import (
    PromptOutOfDate,
    ask,
    ask_again,
    ask_another,
    lease_trial,
    store_trial,
)
from tests.factories import DEMONSTRATIONS, make_demonstrations, make_group
from tests.generation.concurrency import at_once
from tests.generation.test_admin_runs import staff

pytestmark = pytest.mark.django_db


@pytest.fixture
def women():
    group = make_group("women")
    make_demonstrations(group)
    return group


def asked(group, **options):
    return ask(**{"group": group, "label": "benign", "by": None, "seed": 7, "language_model": "toy"} | options)


def output(text="we sail"):
    return Output(text=text, tokens=3, log_prob=-2.5, finish_reason="stop")


# --- Asking -----------------------------------------------------------------------------


def test_five_demonstrations_are_drawn_and_the_prompt_is_what_they_make(women):
    trial = asked(women)
    drawn = [demonstration.text for demonstration in trial.demonstrations.all()]
    assert len(drawn) == 5
    assert set(drawn) < set(DEMONSTRATIONS)
    assert sorted(prompt_lines(trial.prompt.text)) == sorted(drawn)
    assert trial.prompt.text.endswith("\n-")


def test_the_seed_decides_the_prompt_and_a_prompt_is_stored_once(women):
    first, same, other = asked(women, seed=7), asked(women, seed=7), asked(women, seed=8)
    assert first.prompt == same.prompt != other.prompt
    assert Prompt.objects.count() == 2


def test_no_prompt_is_drawn_from_retired_demonstrations_or_from_another_set(women):
    retire(ids=[women.demonstrations.get(text=DEMONSTRATIONS[0]).pk], reason="Not about women.", by=None)
    make_demonstrations(women, label="toxic", texts=["a placeholder"])
    for seed in range(20):
        lines = prompt_lines(asked(women, seed=seed).prompt.text)
        assert not {DEMONSTRATIONS[0], "a placeholder"} & set(lines)


def test_a_set_of_four_is_too_small_and_nothing_is_stored():
    group = make_group("asian")
    make_demonstrations(group, texts=DEMONSTRATIONS[:4])
    with pytest.raises(NotEnoughDemonstrations) as refusal:
        asked(group)
    assert str(refusal.value) == "A prompt needs 5 demonstrations and the benign set of Asian has 4. Add 1 more."
    assert not Trial.objects.exists()


@pytest.mark.parametrize("count", [0, 51])
def test_from_one_to_fifty_responses_can_be_asked_for(women, count):
    with pytest.raises(ValueError, match=f"^Ask for 1 to 50 responses at a time, not for {count}.$"):
        asked(women, count=count)


def test_a_server_s_address_with_a_password_is_refused(women):
    with pytest.raises(ValueError, match="leave user name, password and query out of it"):
        asked(women, language_model="http://ada:secret@localhost/v1")


def test_asking_wakes_a_worker_and_is_in_the_audit_trail(women, sent, django_capture_on_commit_callbacks):
    ada = staff("ada")
    with django_capture_on_commit_callbacks(execute=True):
        trial = asked(women, by=ada, count=3)
    assert sent == [("generation.trial", [trial.pk], "generation")]
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.by) == ("responses asked for", ada)
    assert entry.subject == f"trial {trial.pk} of the benign set of Women"
    assert entry.details == {"count": 3, "language_model": "toy"}


def test_again_is_the_same_prompt_in_the_same_way_with_another_seed(women):
    trial = asked(women, count=3, parameters=TopKParameters(k=5))
    again = ask_again(trial=trial, by=None)
    assert (again.prompt, again.count, again.parameters, again.language_model) == (
        trial.prompt, 3, {"k": 5, "temperature": 0.9, "max_new_tokens": 30}, "toy",
    )  # fmt: skip
    assert set(again.demonstrations.all()) == set(trial.demonstrations.all())
    assert again.seed != trial.seed


def test_another_is_another_prompt_in_the_same_way(women):
    trial = asked(women, count=3, parameters=TopKParameters(k=5))
    prompts = {ask_another(trial=trial, by=None).prompt_id for _ in range(5)}
    assert prompts - {trial.prompt_id}
    assert {(other.count, other.parameters["k"]) for other in Trial.objects.all()} == {(3, 5)}


@pytest.mark.parametrize("change", ["edited", "retired"])
def test_a_prompt_whose_demonstration_was_changed_is_not_tried_again(women, change):
    trial = asked(women)
    member = trial.demonstrations.first()
    if change == "edited":
        edit(demonstration_id=member.pk, text="she sails", by=None)
    else:
        retire(ids=[member.pk], reason="Not about women.", by=None)
    with pytest.raises(PromptOutOfDate) as refusal:
        ask_again(trial=trial, by=None)
    assert str(refusal.value) == (
        "A demonstration in this prompt was edited or retired since. Draw another prompt from the set."
    )


# --- Taking up and storing --------------------------------------------------------------


def test_a_trial_in_other_hands_is_left_alone_until_its_lease_lapses(women):
    trial = asked(women)
    assert lease_trial(trial_id=trial.pk)
    assert lease_trial(trial_id=trial.pk) is None
    assert not Trial.objects.waiting().exists()
    Trial.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    assert list(Trial.objects.waiting()) == [trial]
    assert lease_trial(trial_id=trial.pk).leases == 2


def test_a_trial_whose_workers_die_fails_in_the_end_with_the_reason(women):
    trial = asked(women)
    for _ in range(4):
        Trial.objects.update(lease_expires_at=None)
        lease_trial(trial_id=trial.pk)
    trial.refresh_from_db()
    assert trial.finished_at
    assert trial.failure == (
        "Its worker stopped 3 times before the end. See the workers' logs; a machine short of memory does this."
    )


def test_a_worker_that_keeps_at_it_keeps_its_lease(women):
    trial = lease_trial(trial_id=asked(women).pk)
    trial.lease_expires_at = timezone.now() + timedelta(seconds=1)
    leases.keep(trial)
    assert Trial.objects.get().lease_expires_at > timezone.now() + timedelta(seconds=30)


def test_a_trial_given_back_is_free_at_once_and_does_not_count_as_taken_up(women):
    trial = lease_trial(trial_id=asked(women).pk)
    leases.give_back(trial)
    [free] = Trial.objects.waiting()
    assert (free.leases, free.lease_expires_at) == (0, None)


def test_of_two_workers_at_one_trial_the_first_responses_stay(women):
    trial = lease_trial(trial_id=asked(women).pk)
    assert store_trial(trial=trial, outputs=[output("first")], environment={})
    assert not store_trial(trial=trial, outputs=[output("second")], environment={})
    assert [response.text for response in Response.objects.all()] == ["first"]
    trial.lease_expires_at = timezone.now()
    with pytest.raises(leases.FinishedElsewhere):
        leases.keep(trial)


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_reach_for_a_trial_at_once_do_not_both_get_it_nor_store_it_twice():
    group = make_group("women")
    make_demonstrations(group)
    trial = asked(group)
    taken = at_once(*[lambda: lease_trial(trial_id=trial.pk)] * 2)
    assert sorted(trial is None for trial in taken) == [False, True]
    [held] = filter(None, taken)

    def store():
        return store_trial(trial=held, outputs=[output()], environment={})

    assert sorted(at_once(store, store)) == [False, True]
    assert Response.objects.count() == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM generation_trial WHERE finished_at IS NOT NULL")
        assert cursor.fetchone() == (1,)


def test_the_periodic_task_wakes_a_worker_for_a_trial_whose_wake_up_was_lost(
    women, sent, django_capture_on_commit_callbacks
):
    trial, finished = asked(women), asked(women)
    store_trial(trial=finished, outputs=[output()], environment={})
    sent.clear()
    with django_capture_on_commit_callbacks(execute=True):
        tasks.wake_open_runs()
    assert sent == [("generation.trial", [trial.pk], "generation")]


def test_trials_are_listed_with_what_came_of_them(women, django_assert_num_queries):
    trial, unfinished = asked(women), asked(women)
    store_trial(trial=trial, outputs=[output("two women row"), output("we sail")], environment={})
    with django_assert_num_queries(1):
        rows = list(Trial.objects.with_counts().order_by("pk").values_list("written", "promoted", "naming"))
    assert rows == [(2, 0, 1), (0, 0, 0)]
    assert build_prompt(prompt_lines(unfinished.prompt.text)) == unfinished.prompt.text
