"""A withdrawal at the same moment as anything else leaves nothing half done, and nobody waits for ever."""

import time

import pytest

from annotator import assigning, consenting, preferring, reviewing, submitting, surveying
from annotator.models import HIT, Annotation, Assignment, Survey
from tests.annotator.threads import (
    at_once,
    in_the_background,
    stored_at_the_end,
    wait_until_somebody_waits_for_a_lock,
)
from tests.factories import accept, answers, consenting_worker, lapse, make_assignment, make_hit, make_hit_type

pytestmark = pytest.mark.django_db(transaction=True)


def withdraw(worker):
    return consenting.withdraw(worker=worker, delete_answers=True)


def submit(assignment):
    return submitting.submit(assignment=assignment, answers=answers())


def check(worker):
    """What must hold after a withdrawal with deletion, whatever happened beside it."""
    assert not Annotation.objects.filter(assignment__worker=worker).exists()
    assert not Assignment.objects.filter(worker=worker, holds_place=True).exists()
    assert not Assignment.objects.accepted().filter(worker=worker).exists()
    assert not worker.consents.filter(withdrawn_at=None).exists()
    for hit in HIT.objects.all():
        assert hit.held_places == hit.assignments.filter(holds_place=True).count()


def test_withdrawing_beside_accepting_submitting_returning_and_itself():
    hit_type = make_hit_type(max_assignments=2)
    for _ in range(3):
        make_hit(hit_type=hit_type)
    for _ in range(4):
        worker = consenting_worker()
        submit(accept(worker, hit_type=hit_type))
        opened = accept(worker, hit_type=hit_type)
        results = at_once(
            lambda: withdraw(worker),  # noqa: B023 - runs within this turn of the loop
            lambda: submit(opened),  # noqa: B023
            lambda: accept(worker, hit_type=hit_type),  # noqa: B023
            lambda: assigning.return_assignment(assignment=opened),  # noqa: B023
            lambda: withdraw(worker),  # noqa: B023
        )
        expected = (consenting.Withdrawal, submitting.Outcome, Assignment, bool, assigning.ConsentMissing)
        assert [result for result in results if not isinstance(result, expected)] == []
        assert sum(result.consents for result in results if isinstance(result, consenting.Withdrawal)) == 1
        check(worker)


def test_a_submit_leaves_no_answers_whether_it_is_under_way_late_or_comes_during_the_deletion():
    in_time = make_assignment()
    late = lapse(make_assignment())
    assigning.expire_lapsed()
    for assignment, outcome in ((in_time, submitting.Outcome.COUNTED), (late, submitting.Outcome.LATE)):
        with stored_at_the_end(lambda: submit(assignment)) as submitted:  # noqa: B023 - runs within this turn
            withdrawing = in_the_background(lambda: withdraw(assignment.worker))  # noqa: B023
            wait_until_somebody_waits_for_a_lock()
        assert submitted.result() is outcome
        assert withdrawing.result().deleted == 1
        check(assignment.worker)

    too_late = make_assignment()
    with stored_at_the_end(lambda: withdraw(too_late.worker)):
        submitting_too_late = in_the_background(lambda: submit(too_late))
        wait_until_somebody_waits_for_a_lock()
    submitting_too_late.result()
    check(too_late.worker)


def test_a_survey_and_an_agreement_on_the_way_come_before_or_after():
    worker = consenting_worker()
    form = worker.consents.get().form
    with stored_at_the_end(lambda: surveying.store_survey(worker=worker, answers={"gender": "female"})):
        withdrawing = in_the_background(lambda: withdraw(worker))
        wait_until_somebody_waits_for_a_lock()
        agreeing = in_the_background(lambda: consenting.give_consent(worker=worker, form=form))
    withdrawing.result(), agreeing.result()
    assert not Survey.objects.exists()
    assert worker.consents.filter(withdrawn_at=None).count() <= 1


def test_workers_who_withdraw_from_the_same_statements_do_not_wait_for_each_other_for_ever(admin_user):
    hit_type = make_hit_type(max_assignments=3)
    hits = [make_hit(hit_type=hit_type) for _ in range(5)]
    ada, bob, eve = (consenting_worker() for _ in range(3))
    for worker, order in ((ada, hits), (bob, hits[::-1]), (eve, hits)):
        for hit in order:
            submit(make_assignment(hit, worker))
    of_eve = list(Assignment.objects.filter(worker=eve).values_list("pk", flat=True))
    with stored_at_the_end(lambda: HIT.objects.select_for_update(no_key=True).get(pk=hits[2].pk)):
        # Each goes as far as the statement in the middle and waits there, or for one that got so far.
        acts = [
            lambda: withdraw(ada),
            lambda: withdraw(bob),
            lambda: reviewing.reject(ids=of_eve, reason="too fast", by=admin_user),
        ]
        running = [in_the_background(act) for act in acts]
        time.sleep(0.3)
    assert [result for act in running if isinstance(result := act.result(), Exception)] == []
    check(ada), check(bob)
    assert set(HIT.objects.values_list("held_places", flat=True)) == {0}


def test_a_statement_is_not_given_out_while_its_group_is_put_on_the_list_of_those_not_wanted():
    hit = make_hit()
    worker = consenting_worker()
    group = hit.generation.group

    def avoid():
        return preferring.set_preferences(
            worker=worker, covers_statements=True, uses_shortcuts=True, avoided_groups=[group]
        )

    with stored_at_the_end(avoid):
        accepting = in_the_background(lambda: accept(worker, hit_type=hit.hit_type))
        wait_until_somebody_waits_for_a_lock()
    assert isinstance(accepting.result(), assigning.NoHITLeft)
