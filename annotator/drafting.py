"""Keeping what is typed before it is submitted."""

from collections.abc import Mapping

from annotator.models import Assignment, AssignmentStatus
from annotator.questions import TYPED_FIELDS

LONGEST = 2000
STILL_TO_SUBMIT = (AssignmentStatus.ACCEPTED, AssignmentStatus.EXPIRED)


def save_draft(*, assignment: Assignment, typed: Mapping[str, str]) -> bool:
    """Keep what was typed, by field, in place of the draft before; return whether there is still use for it.

    There is none once the assignment was submitted or returned. Unknown fields are dropped, long texts cut.
    """
    draft = {name: typed[name].replace("\0", "")[:LONGEST] for name in TYPED_FIELDS if typed.get(name)}
    still_open = Assignment.objects.filter(pk=assignment.pk, status__in=STILL_TO_SUBMIT, answers_deleted_at=None)
    return bool(still_open.update(draft=draft))
