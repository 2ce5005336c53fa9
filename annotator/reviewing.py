"""Deciding on submitted work: approving, rejecting, reopening places.

Every act takes many assignments, changes those it may and says why it left the others. Locks are
taken in the order of ``assigning``: all the assignments, in the order of their ids, and then all
the HITs whose places change, in the order of theirs. Mechanical Turk's ways of an assignment are
held by a trigger, and so is the ledger: an approval writes what is owed.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Min, Q
from django.db.models.functions import Now
from django.utils import timezone

from annotator.models import HIT, SECOND_THOUGHTS, Assignment, AssignmentStatus, HITType

APPROVED_AT_ONCE = 500

NOT_SUBMITTED = "not submitted"
APPROVED_BEFORE = "approved already, which is final"
REJECTED_BEFORE = "rejected already; rejected work is approved from its own list"
NOT_REJECTED = "not rejected; other work is approved from its own list"
REJECTED_LONG_AGO = f"rejected more than {SECOND_THOUGHTS.days} days ago, which is final"
HOLDS_NO_PLACE = "holding no place of its HIT, so that there is none to reopen"
IS_A_CHECK = "about a statement with known answers, which makes no label and has places for everybody"
ANSWERS_DELETED = "without answers, which the worker withdrew: that is paid all the same"
NOT_UNDERSTOOD = "about a text that the worker did not understand, which is paid like any other"
IMPORTED = "imported, and was decided on where it was done"
GONE = "not to be found"

COUNTS = "counting as a label again, as the place was still free"
COUNTS_NOT = "paid but not counting, as the place is taken or there are no answers to count"
CANNOT_BE_TAKEN = "in a HIT that has expired or was disposed of: extend it, or nobody can take the place"

log = structlog.get_logger(__name__)


class ReasonMissing(ValueError):
    """Work is rejected with a reason only."""


@dataclass(frozen=True)
class Done:
    """What an act did: the ids it changed, how many others it left and why, and what else there is to say.

    The reasons and remarks go on from the words “so many are …”.
    """

    changed: list[int]
    left: Counter[str] = field(default_factory=Counter)
    remarks: Counter[str] = field(default_factory=Counter)


@transaction.atomic
def approve(*, ids: Iterable[int], by: User | None) -> Done:
    """Approve submitted work, which is owed from then on.

    Work that somebody rejected meanwhile stays rejected: that is ``approve_after_all``.
    """
    done, _ = _sort_out(ids, _why_not_undecided)
    _update(done.changed, status=AssignmentStatus.APPROVED, decided_at=Now(), decided_by=by)
    log.info("work_approved", assignments=done.changed)
    return done


@transaction.atomic
def reject(*, ids: Iterable[int], reason: str, by: User) -> Done:
    """Reject submitted work: it is not paid, its place is free again, and the worker reads the reason.

    Raises ``ReasonMissing``.
    """
    if not reason.strip():
        raise ReasonMissing("Say why the work is rejected: the worker reads the reason.")
    done, work = _sort_out(ids, _why_not_to_reject)
    _free_places([assignment for assignment in work if assignment.holds_place], done)
    _update(
        done.changed,
        status=AssignmentStatus.REJECTED,
        holds_place=False,
        decided_at=Now(),
        decided_by=by,
        rejection_reason=reason.strip(),
    )
    log.info("work_rejected", assignments=done.changed)
    return done


@transaction.atomic
def approve_after_all(*, ids: Iterable[int], by: User) -> Done:
    """Approve rejected work within 30 days: it is owed, and counts again if its place is still free."""
    done, work = _sort_out(ids, _why_not_to_approve_after_all)
    placed = _with_places(work)
    unplaced = [pk for pk in done.changed if pk not in placed]
    approved = {"status": AssignmentStatus.APPROVED, "decided_at": Now(), "decided_by": by, "rejection_reason": ""}
    _update(placed, holds_place=True, **approved)
    _update(unplaced, **approved)
    done.remarks.update(+Counter({COUNTS: len(placed), COUNTS_NOT: len(unplaced)}))
    log.info("work_approved_after_all", assignments=done.changed, counted=placed)
    return done


@transaction.atomic
def reopen(*, ids: Iterable[int]) -> Done:
    """Free the places of submitted or approved work, for others: it counts no longer and its pay stays."""
    done, work = _sort_out(ids, _why_not_to_reopen)
    _free_places(work, done)
    _update(done.changed, holds_place=False)
    log.info("places_reopened", assignments=done.changed)
    return done


def approve_overdue() -> int:
    """Approve what nobody reviewed within its study's delay; return how much.

    In batches, each a transaction of its own, which pass over what others are deciding on.
    """
    approved = 0
    while batch := _approve_overdue_batch():
        approved += batch
    return approved


@transaction.atomic
def _approve_overdue_batch() -> int:
    delay = F("hit__hit_type__auto_approval_delay")
    shortest = HITType.objects.aggregate(shortest=Min("auto_approval_delay"))["shortest"]
    if shortest is None:
        return 0
    overdue = (
        Assignment.objects.to_review()
        # The first condition ends the walk along the index; the second is the rule.
        .filter(submitted_at__lte=Now() - shortest)
        .filter(submitted_at__lte=Now() - delay)
        .select_for_update(skip_locked=True, no_key=True, of=("self",))
        .values_list("pk", flat=True)
    )
    ids = list(overdue[:APPROVED_AT_ONCE])
    _update(ids, status=AssignmentStatus.APPROVED, decided_at=Now(), decided_by=None)
    if ids:
        log.info("work_approved_by_itself", assignments=ids)
    return len(ids)


def _sort_out(ids: Iterable[int], why_not: Callable[[Assignment], str]) -> tuple[Done, list[Assignment]]:
    """Lock the assignments; split them into those to change, which are also returned, and the others."""
    ids = set(ids)
    locked = (
        Assignment.objects.filter(pk__in=ids)
        .annotate(rejected_long_ago=Q(decided_at__lt=Now() - SECOND_THOUGHTS))
        .select_related("hit__hit_type", "annotation")
        .order_by("pk")
        .select_for_update(no_key=True, of=("self",))
    )
    work, left = [], Counter()
    for assignment in locked:
        ids.remove(assignment.pk)
        if reason := IMPORTED if assignment.hit.hit_type.imported else why_not(assignment):
            left[reason] += 1
        else:
            work.append(assignment)
    if ids:
        left[GONE] += len(ids)
    return Done([assignment.pk for assignment in work], left), work


def _why_not_undecided(assignment: Assignment) -> str:
    if not assignment.is_submitted:
        return NOT_SUBMITTED
    return {AssignmentStatus.APPROVED: APPROVED_BEFORE, AssignmentStatus.REJECTED: REJECTED_BEFORE}.get(
        assignment.status, ""
    )


def _why_not_to_reject(assignment: Assignment) -> str:
    if reason := _why_not_undecided(assignment):
        return reason
    if assignment.answers_deleted_at:
        return ANSWERS_DELETED
    annotation = getattr(assignment, "annotation", None)
    return NOT_UNDERSTOOD if annotation and annotation.not_understood else ""


def _why_not_to_approve_after_all(assignment: Assignment) -> str:
    if assignment.status == AssignmentStatus.APPROVED:
        return APPROVED_BEFORE
    if assignment.status != AssignmentStatus.REJECTED:
        return NOT_REJECTED
    return REJECTED_LONG_AGO if assignment.rejected_long_ago else ""


def _why_not_to_reopen(assignment: Assignment) -> str:
    if not assignment.is_submitted:
        return NOT_SUBMITTED
    if assignment.hit.is_check:
        return IS_A_CHECK
    return "" if assignment.holds_place else HOLDS_NO_PLACE


def _with_places(rejected: list[Assignment]) -> list[int]:
    """Of rejected work the ids of what can count again: first come, first served, with the HITs locked."""
    countable = [assignment for assignment in rejected if _has_answers_to_count(assignment)]
    free = {hit.pk: hit.free_places for hit in _lock_hits(countable)}
    placed = []
    for assignment in countable:
        if free[assignment.hit_id] > 0:
            free[assignment.hit_id] -= 1
            placed.append(assignment.pk)
    return placed


def _has_answers_to_count(assignment: Assignment) -> bool:
    annotation = getattr(assignment, "annotation", None)  # deleted if the worker wished so
    return annotation is not None and not annotation.not_understood and assignment.answers_deleted_at is None


def _free_places(work: list[Assignment], done: Done) -> None:
    """Lock the HITs whose places come free, and remark on those where nobody can take them."""
    now = timezone.now()
    closed = {hit.pk for hit in _lock_hits(work) if hit.disposed_at or hit.expires_at <= now}
    if cannot := sum(assignment.hit_id in closed for assignment in work):
        done.remarks[CANNOT_BE_TAKEN] = cannot


def _lock_hits(assignments: Iterable[Assignment]) -> list[HIT]:
    """The HITs of assignments, locked in the order of their ids."""
    hits = HIT.objects.filter(pk__in={assignment.hit_id for assignment in assignments})
    return list(hits.order_by("pk").select_for_update(no_key=True))


def _update(ids: list[int], **fields) -> None:
    Assignment.objects.filter(pk__in=ids).update(**fields)
