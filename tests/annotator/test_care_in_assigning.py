"""What is not handed out: too much in a day, on without a break, the same label again and again."""

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from annotator import assigning, submitting
from annotator.models import UNLIMITED, Assignment, Qualification, TestResult
from generation.models import Label
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    make_assignment,
    make_generation,
    make_group,
    make_hit,
    make_hit_type,
)

pytestmark = pytest.mark.django_db


def publish(count, *, label=Label.BENIGN, **fields):
    study = fields.pop("hit_type", None) or make_hit_type()
    return [make_hit(hit_type=study, generation=make_generation(label=label), **fields) for _ in range(count)]


def work(worker, times, **options):
    """Accept and submit so many statements; return their HITs in order."""
    hits = []
    for _ in range(times):
        assignment = accept(worker, **options)
        submitting.submit(assignment=assignment, answers=answers())
        hits.append(assignment.hit)
    return hits


def shift(worker, delta):
    """Let all that a worker did have been so much earlier."""
    for assignment in Assignment.objects.filter(worker=worker):
        changes = {
            name: getattr(assignment, name) - delta
            for name in ("accepted_at", "submitted_at", "working_since", "deadline")
            if getattr(assignment, name)
        }
        Assignment.objects.filter(pk=assignment.pk).update(**changes)


# --- The daily cap


def test_nobody_is_given_more_than_the_daily_cap():
    study = make_hit_type(daily_cap=2)
    publish(3, hit_type=study)
    worker = consenting_worker()
    work(worker, 2)
    with pytest.raises(
        assigning.DailyCapReached,
        match=r"^You were given 2 statements within 24 hours, and more would be too much for one day, "
        r"also of those that you returned\. You can go on from \d\d:\d\d UTC, \d+ \w+\.$",
    ):
        accept(worker)


def test_the_daily_cap_counts_the_work_in_all_studies():
    work(worker := consenting_worker(), 2, hit_type=publish(2)[0].hit_type)
    capped = make_hit_type(daily_cap=2)
    publish(1, hit_type=capped)
    with pytest.raises(assigning.DailyCapReached):
        accept(worker, hit_type=capped)


def test_a_day_later_the_worker_can_go_on():
    study = make_hit_type(daily_cap=1)
    publish(2, hit_type=study)
    worker = consenting_worker()
    work(worker, 1)
    shift(worker, timedelta(hours=24, seconds=1))
    assert accept(worker)


def test_returned_statements_were_read_and_count_for_the_cap():
    study = make_hit_type(daily_cap=1)
    publish(2, hit_type=study)
    worker = consenting_worker()
    assigning.return_assignment(assignment=accept(worker))
    with pytest.raises(assigning.DailyCapReached):
        accept(worker, hit_type=study)


def test_who_reached_the_cap_still_gets_the_statement_they_are_at():
    at_work = make_assignment(make_hit(hit_type=make_hit_type(daily_cap=1)))
    make_assignment(worker=at_work.worker, status="submitted", submitted_at=timezone.now())
    assert accept(at_work.worker, hit_type=at_work.hit.hit_type) == at_work


# --- Breaks


def test_after_so_much_work_a_break_is_suggested():
    study = make_hit_type(break_after=timedelta(minutes=20))
    publish(4, hit_type=study)
    worker = consenting_worker()
    for minutes in (9, 9, 3):
        work(worker, 1)
        shift(worker, timedelta(minutes=minutes))
    with pytest.raises(assigning.BreakDue, match=r"^You have worked for 21 minutes\. Take a break\.$"):
        accept(worker)


def test_who_goes_on_after_the_suggestion_is_not_asked_again_at_once():
    study = make_hit_type(break_after=timedelta(minutes=20))
    publish(5, hit_type=study)
    worker = consenting_worker()
    for minutes in (9, 9, 9):
        work(worker, 1)
        shift(worker, timedelta(minutes=minutes))
    work(worker, 1, rested=True)
    assert accept(worker)


def test_who_was_away_has_had_a_break():
    study = make_hit_type(break_after=timedelta(minutes=20))
    publish(3, hit_type=study)
    worker = consenting_worker()
    work(worker, 1)
    shift(worker, timedelta(minutes=11))
    assert accept(worker).working_since > timezone.now() - timedelta(minutes=1)


def test_a_statement_that_takes_long_is_no_break():
    study = make_hit_type(break_after=timedelta(minutes=20))
    publish(2, hit_type=study)
    worker = consenting_worker()
    assignment = accept(worker)
    shift(worker, timedelta(minutes=25))
    assignment.refresh_from_db()
    submitting.submit(assignment=assignment, answers=answers())
    with pytest.raises(assigning.BreakDue, match=r"^You have worked for 25 minutes\. Take a break\.$"):
        accept(worker)


# --- Labels mixed


@pytest.mark.parametrize("seed", range(5))
def test_no_more_than_two_statements_of_a_label_follow_each_other_while_there_are_both(seed, monkeypatch):
    monkeypatch.setattr(assigning, "random", assigning.random.Random(seed))
    study = make_hit_type()
    publish(12, hit_type=study, label=Label.TOXIC)
    publish(12, hit_type=study, label=Label.BENIGN)
    labels = [hit.generation.label for hit in work(consenting_worker(), 16)]
    assert not {(label,) * 3 for label in Label.values} & set(zip(labels, labels[1:], labels[2:], strict=False))
    assert min(Counter(labels).values()) >= 5


def test_when_one_label_is_used_up_the_other_goes_on():
    study = make_hit_type()
    publish(4, hit_type=study, label=Label.TOXIC)
    assert len(work(consenting_worker(), 4)) == 4


# --- Groups that a worker does not want to read about


def test_a_worker_is_given_nothing_about_groups_they_avoid():
    study = make_hit_type()
    avoided, other = make_group("women"), make_group("asian")
    make_hit(hit_type=study, generation=make_generation(group=avoided), shuffle=0.1)
    wanted = make_hit(hit_type=study, generation=make_generation(group=other), shuffle=0.9)
    worker = consenting_worker()
    worker.avoided_groups.add(avoided)
    assert work(worker, 1) == [wanted]
    with pytest.raises(assigning.NoHITLeft):
        accept(worker, hit_type=study)


# --- Known answers mixed in


def test_statements_with_known_answers_are_mixed_in_at_random():
    study = make_hit_type(check_every=3, daily_cap=500, break_after=timedelta(days=1))
    publish(40, hit_type=study)
    checks = publish(40, hit_type=study, is_check=True, max_assignments=UNLIMITED)
    given = work(consenting_worker(), 40)
    assert 3 <= len(set(given) & set(checks)) <= 25  # a third of 40, within four standard deviations and more


def test_known_answers_are_not_what_is_left_to_do():
    study = make_hit_type(check_every=1000)
    publish(3, hit_type=study, is_check=True, max_assignments=UNLIMITED)
    with pytest.raises(assigning.NoHITLeft):
        accept(hit_type=study)


def test_a_study_without_known_answers_never_stops_for_one():
    study = make_hit_type(check_every=2)
    publish(8, hit_type=study)
    assert len(work(consenting_worker(), 8)) == 8


def test_a_test_that_was_taken_is_over_also_if_it_grows_later():
    test = make_hit_type(grants=Qualification.objects.create(name="prequalified"), pass_mark=80)
    publish(2, hit_type=test, is_check=True, max_assignments=UNLIMITED)
    worker = consenting_worker()
    TestResult.objects.create(test=test, worker=worker, right=1, total=1, passed=True)
    with pytest.raises(assigning.NoHITLeft, match=r"^You have taken this test already: there is one go\.$"):
        accept(worker, hit_type=test)
