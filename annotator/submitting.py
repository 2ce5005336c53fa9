"""Storing what an annotator submits: once, whatever happens, and late work too."""

import uuid
from dataclasses import dataclass
from enum import Enum

import structlog
from django.db import transaction
from django.utils import timezone

from annotator import qualifying
from annotator.models import HIT, Annotation, Assignment, AssignmentStatus, HITType, Worker
from annotator.prepared import KEY, WORKER, Prepared, instance

log = structlog.get_logger(__name__)


class Outcome(Enum):
    """What became of a submit."""

    COUNTED = "counted"
    """Stored in time; it counts as a label."""
    NOT_UNDERSTOOD = "not_understood"
    """Stored and paid; its place is open again."""
    LATE = "late"
    """Stored and paid after the deadline; its place was still free, so that it counts."""
    LATE_UNCOUNTED = "late_uncounted"
    """Stored and paid after the deadline; its place had been taken, so that it does not count."""
    STORED_BEFORE = "stored_before"
    """The same submit had come before; nothing was changed."""
    ANSWERS_DELETED = "answers_deleted"
    """The worker withdrew and had the answers deleted: nothing is stored any more."""


@dataclass(frozen=True)
class Submitted:
    """What became of a submit, and the study it was for."""

    outcome: Outcome
    hit_type_id: int


def submit(*, assignment: Assignment, answers: dict) -> Outcome:
    """As ``submit_own``, for an assignment that is at hand."""
    return submit_own(worker=assignment.worker, key=assignment.key, answers=answers).outcome


def submit_own(*, worker: Worker, key: uuid.UUID, answers: dict) -> Submitted | None:
    """Store a worker's answers and settle whether they keep a place of the HIT; None if the key is not the worker's.

    ``answers`` are the fields of ``Annotation``. The assignment is locked, so that of two
    submits at once the second finds the first one stored. Work on a HIT that was returned or
    has expired is taken as late. The last statement of a qualification test decides the test.
    """
    with transaction.atomic():
        row = LOCKED_ASSIGNMENT.first(worker=worker.pk, key=key)
        if row is None:
            return None
        hit_type = instance(HITType, row, "hit__hit_type__")
        outcome = _store(instance(Assignment, row), answers, is_test=hit_type.is_test)
    if hit_type.is_test:
        qualifying.finish_test(worker=worker, hit_type=hit_type)
    return Submitted(outcome, hit_type.pk)


LOCKED_ASSIGNMENT = Prepared(
    lambda: (
        Assignment.objects.filter(worker=WORKER, key=KEY)
        .order_by()
        .select_for_update(of=("self",))
        .values(
            *(field.attname for field in Assignment._meta.concrete_fields),
            "hit__hit_type__id",
            "hit__hit_type__grants_id",
        )
    )
)


def _store(assignment: Assignment, answers: dict, *, is_test: bool) -> Outcome:
    if assignment.is_submitted:
        return Outcome.STORED_BEFORE
    if assignment.answers_deleted_at:
        return Outcome.ANSWERS_DELETED
    late = assignment.status != AssignmentStatus.ACCEPTED or assignment.deadline < timezone.now()
    understood = not answers.get("not_understood")
    holds_place = understood and (assignment.holds_place or _has_free_place(assignment.hit_id))
    Annotation.objects.create(assignment=assignment, **answers)
    assignment.status = AssignmentStatus.SUBMITTED
    assignment.holds_place = holds_place
    assignment.submitted_at = timezone.now()
    assignment.draft = None
    assignment.save(update_fields=["status", "holds_place", "submitted_at", "draft"])
    if is_test:
        _approve_at_once(assignment)
    outcome = _outcome(late=late, understood=understood, holds_place=holds_place)
    log.info("annotation_submitted", assignment=assignment.pk, outcome=outcome.value)
    return outcome


def _approve_at_once(assignment: Assignment) -> None:
    """A qualification test is paid for whatever the answers: nobody has to look at them."""
    assignment.status = AssignmentStatus.APPROVED
    assignment.decided_at = assignment.submitted_at
    assignment.save(update_fields=["status", "decided_at"])


def _has_free_place(hit_id: int) -> bool:
    """Whether a HIT has a free place, with the HIT locked so that it stays so until we are done."""
    return HIT.objects.select_for_update(no_key=True).get(pk=hit_id).free_places > 0


def _outcome(*, late: bool, understood: bool, holds_place: bool) -> Outcome:
    if not understood:
        return Outcome.NOT_UNDERSTOOD
    if not late:
        return Outcome.COUNTED
    return Outcome.LATE if holds_place else Outcome.LATE_UNCOUNTED
