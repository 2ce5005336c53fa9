"""Approving, rejecting and reopening: what each act does, what it leaves, and two of them at once."""

from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotator import assigning, consenting, moving, reviewing, submitting, tasks
from annotator.models import HIT, Annotation, Assignment, Payment
from tests.annotator.threads import at_once, in_the_background, stored_at_the_end, wait_until_somebody_waits_for_a_lock
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    lapse,
    make_assignment,
    make_hit,
    make_hit_type,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return User.objects.create(username="ada")


def submitted(hit=None, worker=None, *, ago=timedelta(0), **changes):
    """Submitted work of ``ago``."""
    assignment = make_assignment(hit, worker)
    submitting.submit(assignment=assignment, answers=answers(**changes))
    now = timezone.now()
    times = {"accepted_at": now - ago - timedelta(minutes=1), "submitted_at": now - ago}
    Assignment.objects.filter(pk=assignment.pk).update(**times)
    return Assignment.objects.get(pk=assignment.pk)


def rejected(hit=None, *, by, days_ago=0, **changes):
    assignment = submitted(hit, **changes)
    reviewing.reject(ids=[assignment.pk], reason="Read the text.", by=by)
    Assignment.objects.filter(pk=assignment.pk).update(decided_at=timezone.now() - timedelta(days=days_ago))
    return Assignment.objects.get(pk=assignment.pk)


def state_of(assignment):
    return Assignment.objects.values_list("status", "holds_place").get(pk=assignment.pk)


def counted(assignment):
    return Annotation.objects.counted().filter(assignment=assignment).exists()


def test_approved_work_is_owed_by_whoever_approved_it(ada):
    work = submitted(make_hit(hit_type=make_hit_type(reward=Decimal("0.30"))))
    assert reviewing.approve(ids=[work.pk], by=ada).changed == [work.pk]
    work.refresh_from_db()
    assert (work.status, work.decided_by, work.decided_at is None) == ("approved", ada, False)
    payment = Payment.objects.get()
    assert (payment.assignment, payment.amount, payment.created_by) == (work, Decimal("0.30"), ada)


def test_what_was_approved_before_is_left_with_the_reason_and_owed_once(ada):
    first, second = submitted(), submitted()
    reviewing.approve(ids=[first.pk], by=ada)
    done = reviewing.approve(ids=[first.pk, second.pk], by=ada)
    assert (done.changed, done.left) == ([second.pk], Counter({"approved already, which is final": 1}))
    assert Payment.objects.count() == 2


def test_work_that_is_not_submitted_and_ids_of_nothing_are_left(ada):
    at_work, returned = make_assignment(), make_assignment()
    assigning.return_assignment(assignment=returned)
    done = reviewing.approve(ids=[at_work.pk, returned.pk, 0], by=ada)
    assert (done.changed, done.left) == ([], Counter({"not submitted": 2, "not to be found": 1}))


def test_approving_does_not_overrule_a_rejection(ada):
    work = rejected(by=ada)
    done = reviewing.approve(ids=[work.pk], by=ada)
    assert done.left == Counter({"rejected already; rejected work is approved from its own list": 1})
    assert state_of(work) == ("rejected", False)


def test_rejecting_frees_the_place_and_keeps_the_reason_for_the_worker(ada):
    hit = make_hit(max_assignments=1)
    work = submitted(hit)
    assert reviewing.reject(ids=[work.pk], reason="  All nine alike. ", by=ada).changed == [work.pk]
    work.refresh_from_db()
    assert (work.status, work.rejection_reason, work.decided_by) == ("rejected", "All nine alike.", ada)
    assert not Payment.objects.exists()
    assert accept(consenting_worker()).hit == hit


@pytest.mark.parametrize("reason", ["", " \n"])
def test_nothing_is_rejected_without_a_reason(ada, reason):
    work = submitted()
    with pytest.raises(reviewing.ReasonMissing, match=r"^Say why the work is rejected: the worker reads the reason\.$"):
        reviewing.reject(ids=[work.pk], reason=reason, by=ada)
    assert state_of(work) == ("submitted", True)


def test_approved_work_cannot_be_rejected(ada):
    work = submitted()
    reviewing.approve(ids=[work.pk], by=ada)
    done = reviewing.reject(ids=[work.pk], reason="No.", by=ada)
    assert (done.changed, done.left) == ([], Counter({"approved already, which is final": 1}))


def test_rejected_work_approved_within_30_days_is_owed_and_counts_as_its_place_is_free(ada):
    work = rejected(by=ada, days_ago=29)
    done = reviewing.approve_after_all(ids=[work.pk], by=ada)
    assert done.remarks == Counter({"counting as a label again, as the place was still free": 1})
    assert (state_of(work), counted(work), Payment.objects.count()) == (("approved", True), True, 1)
    assert Assignment.objects.get().rejection_reason == ""


def test_rejected_work_whose_place_was_taken_is_paid_and_does_not_count(ada):
    hit = make_hit(max_assignments=1)
    work = rejected(hit, by=ada)
    other = submitted(hit)
    done = reviewing.approve_after_all(ids=[work.pk], by=ada)
    assert done.remarks == Counter({"paid but not counting, as the place is taken or there are no answers to count": 1})
    assert (state_of(work), counted(work), counted(other)) == (("approved", False), False, True)
    assert Payment.objects.get().assignment == work


def test_of_two_rejected_pieces_for_one_free_place_the_first_counts(ada):
    hit = make_hit(max_assignments=1)
    first, second = rejected(hit, by=ada), rejected(hit, by=ada)
    done = reviewing.approve_after_all(ids=[second.pk, first.pk], by=ada)
    assert sorted(done.remarks.values()) == [1, 1]
    assert (counted(first), counted(second), Payment.objects.count()) == (True, False, 2)


def test_a_text_not_understood_takes_no_place_back(ada):
    work = rejected(by=ada)
    Annotation.objects.filter(assignment=work).update(**dict.fromkeys(answers()), not_understood=True)
    reviewing.approve_after_all(ids=[work.pk], by=ada)
    assert state_of(work) == ("approved", False)


def test_a_rejection_is_final_after_30_days(ada):
    work = rejected(by=ada, days_ago=31)
    done = reviewing.approve_after_all(ids=[work.pk], by=ada)
    assert (done.changed, done.left) == ([], Counter({"rejected more than 30 days ago, which is final": 1}))


def test_only_rejected_work_is_approved_after_all(ada):
    waiting, approved = submitted(), submitted()
    reviewing.approve(ids=[approved.pk], by=ada)
    done = reviewing.approve_after_all(ids=[waiting.pk, approved.pk], by=ada)
    assert done.left == Counter(
        {"not rejected; other work is approved from its own list": 1, "approved already, which is final": 1}
    )


def test_a_reopened_place_goes_to_somebody_else_and_the_pay_stays(ada):
    hit = make_hit(max_assignments=1)
    work = submitted(hit)
    reviewing.approve(ids=[work.pk], by=ada)
    done = reviewing.reopen(ids=[work.pk])
    assert (done.changed, done.remarks) == ([work.pk], Counter())
    assert (state_of(work), counted(work), Payment.objects.count()) == (("approved", False), False, 1)
    with pytest.raises(assigning.NoHITLeft):
        accept(work.worker)
    assert accept(consenting_worker()).hit == hit


def test_what_holds_no_place_cannot_be_reopened(ada):
    check = submitted(make_hit(is_check=True))
    done = reviewing.reopen(ids=[rejected(by=ada).pk, make_assignment().pk, check.pk])
    assert done.left == Counter({reviewing.HOLDS_NO_PLACE: 1, reviewing.NOT_SUBMITTED: 1, reviewing.IS_A_CHECK: 1})


def test_it_is_said_that_nobody_can_take_the_freed_place_of_a_hit_that_expired(ada):
    past = timezone.now() - timedelta(days=1)
    hit = make_hit(expires_at=past)
    first, second, other = submitted(hit), submitted(hit), submitted()
    assert reviewing.reopen(ids=[first.pk, other.pk]).remarks == Counter({reviewing.CANNOT_BE_TAKEN: 1})
    assert reviewing.reject(ids=[second.pk], reason="No.", by=ada).remarks == Counter({reviewing.CANNOT_BE_TAKEN: 1})


def test_work_is_approved_by_itself_once_its_studys_delay_is_over():
    quick = make_hit_type(auto_approval_delay=timedelta(hours=1))
    slow = make_hit_type(auto_approval_delay=timedelta(days=3))
    overdue = submitted(make_hit(hit_type=quick), ago=timedelta(hours=2))
    fresh = submitted(make_hit(hit_type=quick))
    waiting = submitted(make_hit(hit_type=slow), ago=timedelta(days=2))
    tasks.approve_overdue()
    overdue.refresh_from_db()
    assert (overdue.status, overdue.decided_by, overdue.decided_at is None) == ("approved", None, False)
    assert (state_of(fresh)[0], state_of(waiting)[0]) == ("submitted", "submitted")
    assert Payment.objects.get().created_by is None
    assert reviewing.approve_overdue() == 0


def test_more_than_a_batch_of_overdue_work_is_approved(monkeypatch):
    monkeypatch.setattr(reviewing, "APPROVED_AT_ONCE", 2)
    hit_type = make_hit_type(auto_approval_delay=timedelta(0))
    for _ in range(5):
        submitted(make_hit(hit_type=hit_type), ago=timedelta(seconds=1))
    assert reviewing.approve_overdue() == 5


def test_rejected_work_is_not_approved_by_itself(ada):
    hit = make_hit(hit_type=make_hit_type(auto_approval_delay=timedelta(0)))
    rejected(hit, by=ada)
    assert reviewing.approve_overdue() == 0


@pytest.mark.parametrize("act", ["approve", "reject", "approve_after_all", "reopen"])
def test_an_act_takes_as_many_queries_for_one_as_for_five(ada, act):
    def queries(number):
        make = (lambda: rejected(by=ada)) if act == "approve_after_all" else submitted
        ids = [make().pk for _ in range(number)]
        options = {"reject": {"reason": "No.", "by": ada}, "reopen": {}}.get(act, {"by": ada})
        with CaptureQueriesContext(connection) as context:
            assert len(getattr(reviewing, act)(ids=ids, **options).changed) == number
        return len(context)

    assert queries(1) == queries(5)


# --- At once ------------------------------------------------------------------------------------


transactional = pytest.mark.django_db(transaction=True)


@transactional
def test_of_approving_and_rejecting_at_once_one_is_done(ada):
    for _ in range(3):
        work = submitted()
        approval, rejection = at_once(
            lambda: reviewing.approve(ids=[work.pk], by=ada),  # noqa: B023 - runs within this turn of the loop
            lambda: reviewing.reject(ids=[work.pk], reason="No.", by=ada),  # noqa: B023
        )
        assert sorted([approval.changed, rejection.changed]) == [[], [work.pk]]
        assert state_of(work) == (("approved", True) if approval.changed else ("rejected", False))
        assert Payment.objects.filter(assignment=work).count() == len(approval.changed)


@transactional
def test_work_that_is_being_rejected_is_passed_over_by_the_automatic_approval(ada):
    hit = make_hit(hit_type=make_hit_type(auto_approval_delay=timedelta(0)))
    work, other = submitted(hit, ago=timedelta(seconds=9)), submitted(hit, ago=timedelta(seconds=5))
    with stored_at_the_end(lambda: reviewing.reject(ids=[work.pk], reason="No.", by=ada)):
        assert reviewing.approve_overdue() == 1
    assert (state_of(work)[0], state_of(other)[0]) == ("rejected", "approved")


@transactional
def test_a_rejection_waits_for_the_automatic_approval_under_way_and_comes_too_late(ada):
    work = submitted(make_hit(hit_type=make_hit_type(auto_approval_delay=timedelta(0))), ago=timedelta(seconds=9))
    with stored_at_the_end(reviewing.approve_overdue):
        rejecting = in_the_background(lambda: reviewing.reject(ids=[work.pk], reason="No.", by=ada))
        wait_until_somebody_waits_for_a_lock()
    assert rejecting.result().left == Counter({"approved already, which is final": 1})


@transactional
def test_four_automatic_approvals_at_once_owe_everything_once(monkeypatch):
    monkeypatch.setattr(reviewing, "APPROVED_AT_ONCE", 3)
    hit = make_hit(hit_type=make_hit_type(auto_approval_delay=timedelta(0)), max_assignments=10)
    for _ in range(10):
        submitted(hit, ago=timedelta(seconds=1))
    assert sum(at_once(*[reviewing.approve_overdue] * 4)) == 10
    assert Payment.objects.count() == 10


@transactional
def test_a_reopened_last_place_is_taken_once():
    for _ in range(3):
        hit = make_hit(max_assignments=1)
        work, workers = submitted(hit), [consenting_worker() for _ in range(3)]
        done, *given = at_once(
            lambda: reviewing.reopen(ids=[work.pk]),  # noqa: B023 - runs within this turn of the loop
            *(lambda worker=worker: accept(worker, hit_type=hit.hit_type) for worker in workers),  # noqa: B023
        )
        assert done.changed == [work.pk]
        assert sum(isinstance(one, Assignment) for one in given) <= 1
        assert {type(one) for one in given} <= {Assignment, assigning.NoHITLeft}
        hit.refresh_from_db()
        assert hit.held_places == sum(isinstance(one, Assignment) for one in given)


@transactional
def test_a_rejected_place_goes_either_back_or_to_somebody_else(ada):
    for _ in range(3):
        hit = make_hit(max_assignments=1)
        work, worker = rejected(hit, by=ada), consenting_worker()
        done, given = at_once(
            lambda: reviewing.approve_after_all(ids=[work.pk], by=ada),  # noqa: B023 - runs within this turn
            lambda: accept(worker, hit_type=hit.hit_type),  # noqa: B023
        )
        assert done.changed == [work.pk]
        taken = isinstance(given, Assignment)
        assert taken or type(given) is assigning.NoHITLeft
        assert state_of(work) == ("approved", not taken)
        hit.refresh_from_db()
        assert hit.held_places == 1


@transactional
def test_acts_over_the_same_work_in_any_order_wait_for_each_other_and_never_in_a_ring(ada):
    hits = [make_hit(max_assignments=4) for _ in range(6)]
    works = [submitted(hit) for hit in hits for _ in range(2)]
    lapsed = [lapse(make_assignment(hit)) for hit in hits]
    ids = [work.pk for work in works]
    hit_ids = [hit.pk for hit in hits]
    results = at_once(
        lambda: reviewing.reject(ids=ids[::2], reason="No.", by=ada),
        lambda: reviewing.reject(ids=reversed(ids), reason="No.", by=ada),
        lambda: reviewing.reopen(ids=ids[::-1]),
        lambda: reviewing.approve(ids=ids, by=ada),
        lambda: reviewing.approve_after_all(ids=ids, by=ada),
        lambda: moving.extend(ids=reversed(hit_ids), places=1),
        lambda: moving.expire_now(ids=hit_ids),
        assigning.expire_lapsed,
        lambda: consenting.withdraw(worker=works[5].worker, delete_answers=True),
        *(lambda late=late: submitting.submit(assignment=late, answers=answers()) for late in lapsed),
    )
    assert [result for result in results if isinstance(result, Exception)] == []
    for hit in HIT.objects.all():
        assert hit.held_places == hit.assignments.filter(holds_place=True).count()
    approved = Assignment.objects.filter(status="approved").values_list("pk", flat=True)
    assert sorted(Payment.objects.values_list("assignment", flat=True)) == sorted(approved)


def test_work_whose_answers_the_worker_withdrew_is_not_rejected_but_paid():
    assignment = make_assignment(status="submitted", submitted_at=timezone.now())
    consenting.withdraw(worker=assignment.worker, delete_answers=True)
    done = reviewing.reject(ids=[assignment.pk], reason="It was left empty.", by=None)
    assert (done.changed, done.left) == ([], {reviewing.ANSWERS_DELETED: 1})
    assert reviewing.approve(ids=[assignment.pk], by=None).changed == [assignment.pk]


def test_a_text_that_was_not_understood_is_not_rejected():
    hit = make_hit()
    assignment = accept(hit_type=hit.hit_type)
    submitting.submit(assignment=assignment, answers=dict.fromkeys(answers()) | {"not_understood": True})
    done = reviewing.reject(ids=[assignment.pk], reason="It was left empty.", by=None)
    assert (done.changed, done.left) == ([], {reviewing.NOT_UNDERSTOOD: 1})
