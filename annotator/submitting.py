"""Storing what an annotator submits: once, whatever happens, and late work too."""

from enum import Enum

import structlog
from django.db import transaction
from django.utils import timezone

from annotator.models import HIT, Annotation, Assignment, AssignmentStatus

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


@transaction.atomic
def submit(*, assignment: Assignment, answers: dict) -> Outcome:
    """Store an assignment's answers and settle whether it keeps a place of its HIT.

    ``answers`` are the fields of ``Annotation``. The assignment is locked, so that of two
    submits at once the second finds the first one stored. Work on a HIT that was returned or
    has expired is taken as late.
    """
    assignment = Assignment.objects.select_for_update(of=("self",)).get(pk=assignment.pk)
    if assignment.is_submitted:
        return Outcome.STORED_BEFORE
    late = assignment.status != AssignmentStatus.ACCEPTED or assignment.deadline < timezone.now()
    understood = not answers.get("not_understood")
    holds_place = understood and (assignment.holds_place or _has_free_place(assignment.hit_id))
    Annotation.objects.create(assignment=assignment, **answers)
    assignment.status = AssignmentStatus.SUBMITTED
    assignment.holds_place = holds_place
    assignment.submitted_at = timezone.now()
    assignment.save(update_fields=["status", "holds_place", "submitted_at"])
    outcome = _outcome(late=late, understood=understood, holds_place=holds_place)
    log.info("annotation_submitted", assignment=assignment.pk, outcome=outcome.value)
    return outcome


def _has_free_place(hit_id: int) -> bool:
    """Whether a HIT has a free place, with the HIT locked so that it stays so until we are done."""
    return HIT.objects.select_for_update(no_key=True).get(pk=hit_id).free_places > 0


def _outcome(*, late: bool, understood: bool, holds_place: bool) -> Outcome:
    if not understood:
        return Outcome.NOT_UNDERSTOOD
    if not late:
        return Outcome.COUNTED
    return Outcome.LATE if holds_place else Outcome.LATE_UNCOUNTED
