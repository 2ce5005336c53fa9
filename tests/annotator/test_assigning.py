"""Handing out HITs: who gets which, when not, and how places come free again."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotator import assigning, consenting, submitting, tasks
from annotator.models import HIT, Assignment, Qualification, Worker
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    lapse,
    make_assignment,
    make_consent,
    make_consent_form,
    make_hit,
    make_hit_type,
    make_worker,
)

pytestmark = pytest.mark.django_db


def fill(hit, places):
    for _ in range(places):
        make_assignment(hit)


def is_open(assignment):
    assignment.refresh_from_db()
    return assignment.status == "accepted"


def held_places(hit):
    hit.refresh_from_db()
    return hit.held_places


# --- Which HIT


def test_the_hit_nearest_completion_is_given_first():
    study = make_hit_type(max_assignments=3)
    untouched, begun, nearly_done = (make_hit(hit_type=study) for _ in range(3))
    fill(begun, 1)
    fill(nearly_done, 2)
    given = [accept().hit for _ in range(6)]
    assert given == [nearly_done, begun, begun, untouched, untouched, untouched]


def test_hits_as_near_to_completion_come_in_the_order_drawn_for_them():
    study = make_hit_type(max_assignments=1)
    last, first, second = (make_hit(hit_type=study, shuffle=shuffle) for shuffle in (0.9, 0.1, 0.5))
    assert [accept().hit for _ in range(3)] == [first, second, last]


def test_the_order_of_equals_is_drawn_at_random_for_each_hit():
    study = make_hit_type()
    shuffles = [make_hit(hit_type=study) for _ in range(30)]
    drawn = list(HIT.objects.order_by("pk").values_list("shuffle", flat=True))
    assert len(set(drawn)) == len(shuffles)
    assert all(0 <= number < 1 for number in drawn)
    assert drawn != sorted(drawn)


def test_a_worker_can_ask_for_one_study():
    make_hit(shuffle=0.1)
    wanted = make_hit(shuffle=0.9)
    assert accept(hit_type=wanted.hit_type).hit == wanted


def test_a_full_hit_is_given_to_nobody():
    fill(make_hit(max_assignments=2), 2)
    with pytest.raises(assigning.NoHITLeft, match=r"^There is no statement left for you at the moment\.$"):
        accept()


@pytest.mark.parametrize("gone", [{"disposed_at": timezone.now()}, {"expires_at": timezone.now()}])
def test_a_disposed_or_expired_hit_is_given_to_nobody(gone):
    make_hit(**gone)
    with pytest.raises(assigning.NoHITLeft):
        accept()


@pytest.mark.parametrize("how", ["returned", "expired", "submitted", "not understood"])
def test_a_worker_never_gets_a_hit_again(how):
    make_hit(max_assignments=3)
    worker = consenting_worker()
    assignment = accept(worker)
    if how == "returned":
        assigning.return_assignment(assignment=assignment)
    elif how == "expired":
        lapse(assignment)
        assigning.expire_lapsed()
    else:
        submitting.submit(assignment=assignment, answers=answers(not_understood=how == "not understood"))
    with pytest.raises(assigning.NoHITLeft):
        accept(worker)


def test_a_worker_with_all_qualifications_of_the_study_gets_its_hits():
    reads_english, is_adult = (Qualification.objects.create(name=name) for name in ("reads English", "is an adult"))
    hit = make_hit()
    hit.hit_type.qualifications.set([reads_english, is_adult])
    half, whole = consenting_worker(), consenting_worker()
    half.qualifications.set([is_adult])
    whole.qualifications.set([is_adult, reads_english])
    with pytest.raises(
        assigning.NotQualified, match=r"^This study asks for a qualification that you do not have yet\.$"
    ):
        accept(half)
    assert accept(whole).hit == hit


# --- Who


def test_a_worker_without_consent_is_given_nothing():
    make_hit()
    make_consent_form()
    with pytest.raises(assigning.ConsentMissing, match=r"^Read the consent form and agree to it first\.$"):
        accept(make_worker())
    assert not Assignment.objects.exists()


def test_without_a_consent_form_nobody_is_given_anything():
    make_hit()
    with pytest.raises(assigning.ConsentMissing):
        accept(make_worker())


def test_a_new_version_of_the_consent_form_asks_again():
    make_hit()
    worker = consenting_worker()
    second = make_consent_form(version=2)
    with pytest.raises(assigning.ConsentMissing):
        accept(worker)
    consent = consenting.give_consent(worker=worker, form=second)
    assert accept(worker).consent == consent


@pytest.mark.parametrize("published_at", [None, timezone.now() + timedelta(days=1)], ids=["draft", "tomorrow"])
def test_a_version_that_is_not_published_yet_changes_nothing(published_at):
    make_hit()
    worker = consenting_worker()
    make_consent_form(version=2, published_at=published_at)
    assert accept(worker).consent.form.version == 1


def test_a_withdrawn_consent_is_none():
    make_hit()
    worker = make_worker()
    make_consent(worker, withdrawn_at=timezone.now())
    with pytest.raises(assigning.ConsentMissing):
        accept(worker)


def test_a_withdrawn_consent_can_be_followed_by_another():
    make_hit()
    worker = make_worker()
    withdrawn = make_consent(worker, withdrawn_at=timezone.now())
    again = consenting.give_consent(worker=worker, form=withdrawn.form)
    assert accept(worker).consent == again != withdrawn


def test_giving_consent_twice_is_as_giving_it_once():
    worker, form = make_worker(), make_consent_form()
    once = consenting.give_consent(worker=worker, form=form)
    assert consenting.give_consent(worker=worker, form=form) == once
    assert consenting.give_consent(worker=worker, form=form).given_at == once.given_at


def test_a_blocked_worker_is_told_why_and_given_nothing():
    make_hit()
    worker = consenting_worker(blocked_at=timezone.now(), blocked_reason="Ask Ada about your last answers.")
    with pytest.raises(
        assigning.WorkerBlocked, match=r"^You cannot take on work at present: Ask Ada about your last answers\.$"
    ):
        accept(worker)


def test_a_worker_blocked_after_the_page_was_read_is_given_nothing():
    make_hit()
    worker = consenting_worker()
    Worker.objects.update(blocked_at=timezone.now(), blocked_reason="A reason.")
    with pytest.raises(assigning.WorkerBlocked):
        accept(worker)


# --- One at a time


def test_accepting_twice_gives_the_same():
    make_hit(), make_hit()
    worker = consenting_worker()
    assert accept(worker) == accept(worker)
    assert Assignment.objects.count() == 1


def test_asking_for_another_study_gives_the_statement_one_is_at():
    worker, other = consenting_worker(), make_hit()
    at_work = make_assignment(worker=worker)
    assert accept(worker, hit_type=other.hit_type) == at_work


def test_the_deadline_is_the_studys_duration_from_now():
    make_hit(hit_type=make_hit_type(assignment_duration=timedelta(minutes=7)))
    before = timezone.now()
    assert timedelta(0) <= accept().deadline - before - timedelta(minutes=7) < timedelta(seconds=20)


# --- Places that come free


def test_returning_frees_the_place():
    hit = make_hit(max_assignments=1)
    assignment = accept()
    assert assigning.return_assignment(assignment=assignment) is True
    assignment.refresh_from_db()
    assert (assignment.status, assignment.holds_place) == ("returned", False)
    assert held_places(hit) == 0
    assert accept().hit == hit


def test_returning_twice_changes_nothing():
    make_hit()
    assignment = accept()
    assigning.return_assignment(assignment=assignment)
    assert assigning.return_assignment(assignment=assignment) is False


def test_what_is_submitted_cannot_be_returned():
    hit = make_hit()
    assignment = accept()
    submitting.submit(assignment=assignment, answers=answers())
    assert assigning.return_assignment(assignment=assignment) is False
    assert held_places(hit) == 1


def test_a_lapsed_place_is_freed_when_nothing_else_is_left():
    hit = make_hit(max_assignments=1)
    away = lapse(accept())
    assert accept().hit == hit
    away.refresh_from_db()
    assert (away.status, away.holds_place, away.given_back_at is None) == ("expired", False, False)


def test_a_lapsed_place_is_left_alone_while_there_is_other_work():
    make_hit(max_assignments=1)
    away = lapse(accept())
    make_hit(max_assignments=1)
    accept()
    assert is_open(away)


def test_a_worker_who_comes_back_late_is_given_another_statement():
    make_hit(), make_hit()
    worker = consenting_worker()
    late = lapse(accept(worker))
    again = accept(worker)
    late.refresh_from_db()
    assert (again.hit == late.hit, late.status) == (False, "expired")


def test_a_worker_who_comes_back_late_frees_the_place_though_nothing_is_left_for_them():
    hit = make_hit(max_assignments=1)
    worker = consenting_worker()
    lapse(accept(worker))
    with pytest.raises(assigning.NoHITLeft):
        accept(worker, hit_type=hit.hit_type)
    assert held_places(hit) == 0


def test_the_periodic_task_frees_lapsed_places_only():
    away, at_work = lapse(make_assignment()), make_assignment()
    tasks.expire_assignments()
    assert (is_open(away), is_open(at_work)) == (False, True)
    assert held_places(away.hit) == 0


def test_the_periodic_task_may_run_twice():
    lapse(make_assignment())
    tasks.expire_assignments()
    tasks.expire_assignments()
    assert Assignment.objects.get().status == "expired"


def test_many_lapsed_places_are_freed_a_hundred_at_a_time(monkeypatch):
    monkeypatch.setattr(assigning, "EXPIRED_AT_ONCE", 2)
    for _ in range(3):
        lapse(make_assignment())
    assert [assigning.expire_lapsed(), assigning.expire_lapsed(), assigning.expire_lapsed()] == [2, 1, 0]
