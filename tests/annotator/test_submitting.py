"""Storing what an annotator submits: once, whatever happens, and whether it counts as a label."""

import pytest
from django.db import IntegrityError
from django.utils import timezone

from annotator import assigning, submitting
from annotator.models import Annotation, Assignment
from annotator.questions import QUESTIONS
from annotator.submitting import Outcome
from tests.factories import accept, answers, consenting_worker, lapse, make_assignment, make_hit

pytestmark = pytest.mark.django_db


def submit(assignment, **changes):
    return submitting.submit(assignment=assignment, answers=answers(**changes))


def state(assignment):
    assignment.refresh_from_db()
    return assignment.status, assignment.holds_place


def places(hit):
    hit.refresh_from_db()
    return hit.held_places, hit.open_assignments


def counted():
    return list(Annotation.objects.counted())


def test_a_submit_in_time_counts_and_keeps_its_place():
    make_hit()
    assignment = accept()
    assert submit(assignment) is Outcome.COUNTED
    assert state(assignment) == ("submitted", True)
    assert places(assignment.hit) == (1, 0)
    assert counted() == [assignment.annotation]


def test_all_nine_answers_are_stored_as_they_were_given():
    make_hit()
    assignment = accept()
    submit(assignment, other_groups="cyclists, bakers", other_framing="It praises them.")
    stored = Annotation.objects.get()
    assert {question.key: getattr(stored, question.key) for question in QUESTIONS} == answers()
    assert (stored.other_groups, stored.other_framing) == ("cyclists, bakers", "It praises them.")


def test_the_same_submit_twice_is_stored_once():
    make_hit()
    assignment = accept()
    submit(assignment, lewd="no")
    assert submit(assignment, lewd="yes") is Outcome.STORED_BEFORE
    assert Annotation.objects.get().lewd == "no"


@pytest.mark.parametrize(
    ("status", "reason", "holds_place"), [("approved", "", True), ("rejected", "It was left empty.", False)]
)
def test_a_submit_after_the_decision_changes_nothing(status, reason, holds_place):
    make_hit()
    assignment = accept()
    submit(assignment)
    Assignment.objects.update(
        status=status, rejection_reason=reason, holds_place=holds_place, decided_at=timezone.now()
    )
    assert submit(assignment) is Outcome.STORED_BEFORE
    assert state(assignment) == (status, holds_place)


def test_a_text_that_was_not_understood_is_stored_and_frees_its_place():
    make_hit()
    assignment = accept()
    nothing = dict.fromkeys(answers())
    assert submit(assignment, **nothing, not_understood=True) is Outcome.NOT_UNDERSTOOD
    assert state(assignment) == ("submitted", False)
    assert places(assignment.hit) == (0, 0)
    assert counted() == []


def test_what_was_answered_of_a_text_not_understood_is_kept():
    make_hit()
    submit(accept(), not_understood=True, lewd=None)
    stored = Annotation.objects.get()
    assert (stored.lewd, stored.harmful_if_human) == (None, 2)


def test_a_late_submit_counts_while_its_place_is_still_held():
    make_hit(max_assignments=1)
    assignment = lapse(accept())
    assert submit(assignment) is Outcome.LATE
    assert state(assignment) == ("submitted", True)
    assert counted() == [assignment.annotation]


def test_a_late_submit_counts_if_its_place_was_freed_and_not_taken():
    make_hit(max_assignments=1)
    assignment = lapse(accept())
    assigning.expire_lapsed()
    assert submit(assignment) is Outcome.LATE
    assert state(assignment) == ("submitted", True)
    assert places(assignment.hit) == (1, 0)


def test_a_late_submit_whose_place_was_taken_is_stored_and_does_not_count():
    make_hit(max_assignments=1)
    assignment = lapse(accept())
    other = accept()
    assert other.hit == assignment.hit
    assert submit(assignment) is Outcome.LATE_UNCOUNTED
    assert state(assignment) == ("submitted", False)
    assert places(assignment.hit) == (1, 1)
    assert Annotation.objects.get().assignment == assignment
    assert counted() == []
    assert submit(other) is Outcome.COUNTED


def test_a_late_submit_not_understood_is_stored_and_leaves_the_place_to_others():
    make_hit(max_assignments=1)
    assignment = lapse(accept())
    assert submit(assignment, not_understood=True) is Outcome.NOT_UNDERSTOOD
    assert places(assignment.hit) == (0, 0)


def test_answers_to_a_statement_that_was_returned_in_another_tab_are_taken_as_late():
    make_hit(max_assignments=1)
    assignment = accept()
    assigning.return_assignment(assignment=assignment)
    assert submit(assignment) is Outcome.LATE
    assert state(assignment) == ("submitted", True)


def test_a_late_submit_does_not_disturb_the_statement_one_is_at_now():
    make_hit(), make_hit()
    worker = consenting_worker()
    late = lapse(accept(worker))
    now = accept(worker)
    assert submit(late) is Outcome.LATE
    assert state(now) == ("accepted", True)


def test_answers_that_the_database_refuses_leave_the_assignment_open():
    make_hit()
    assignment = accept()
    with pytest.raises(IntegrityError, match="annotation_harmful_if_ai_in_range"):
        submit(assignment, harmful_if_ai=6)
    assert state(assignment) == ("accepted", True)


@pytest.mark.parametrize(
    ("fields", "not_understood", "counts"),
    [
        ({"status": "submitted"}, False, True),
        ({"status": "approved", "decided_at": timezone.now()}, False, True),
        (
            {"status": "rejected", "rejection_reason": "Empty.", "decided_at": timezone.now(), "holds_place": False},
            False,
            False,
        ),
        ({"status": "submitted", "holds_place": False}, False, False),
        ({"status": "submitted"}, True, False),
    ],
)
def test_an_annotation_is_a_label_if_understood_with_a_place_and_not_rejected(fields, not_understood, counts):
    make_hit()
    assignment = accept()
    submit(assignment)
    Assignment.objects.update(**fields)
    Annotation.objects.update(not_understood=not_understood)
    assert Annotation.objects.counted().exists() is counts
    assert Annotation.objects.get().is_counted is counts


def test_the_annotations_of_one_hit_are_never_more_labels_than_places():
    hit = make_hit(max_assignments=3)
    late = [lapse(make_assignment(hit)) for _ in range(3)]
    assigning.expire_lapsed()
    in_time = [accept() for _ in range(3)]
    outcomes = [submit(assignment) for assignment in [*in_time, *late]]
    assert outcomes == [Outcome.COUNTED] * 3 + [Outcome.LATE_UNCOUNTED] * 3
    assert (Annotation.objects.count(), len(counted())) == (6, 3)
