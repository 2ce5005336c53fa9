"""Handing out HITs: accepting, returning and expiring assignments.

Locks are always taken in the order worker, assignment, HIT. Who holds a HIT waits for no other,
but for ``expire_lapsed``, which takes several in the order of their ids. So no two of these acts
can wait for each other.
"""

import structlog
from django.db import transaction
from django.utils import timezone

from annotator.models import HIT, Assignment, AssignmentStatus, Consent, HITType, Worker

EXPIRED_AT_ONCE = 100

log = structlog.get_logger(__name__)


class CannotAccept(Exception):
    """The worker may not be given a statement; the message says why and what to do."""


class ConsentMissing(CannotAccept):
    """The worker has not agreed to the consent form in force."""


class WorkerBlocked(CannotAccept):
    """A researcher blocked the worker."""


class NoHITLeft(CannotAccept):
    """There is no HIT for this worker now."""


class _AllLocked(Exception):
    """Others are just taking or giving back places of every HIT that is open to the worker."""


def accept_next(*, worker: Worker, hit_type: HITType | None = None) -> Assignment:
    """Give the worker the next HIT, or the one they are at already.

    Places of people who went away are freed when nothing else is left. Raises
    ``ConsentMissing``, ``WorkerBlocked`` or ``NoHITLeft``.
    """
    expire_lapsed(worker=worker)
    try:
        return _accept_or_wait(worker, hit_type)
    except NoHITLeft:
        if not expire_lapsed():
            raise
        return _accept_or_wait(worker, hit_type)


@transaction.atomic
def return_assignment(*, assignment: Assignment) -> bool:
    """Give a HIT back unjudged, without penalty. Return whether it was still open."""
    assignment = Assignment.objects.select_for_update(of=("self",)).get(pk=assignment.pk)
    if assignment.status != AssignmentStatus.ACCEPTED:
        return False
    _give_back(assignment, AssignmentStatus.RETURNED)
    return True


@transaction.atomic
def expire_lapsed(*, worker: Worker | None = None) -> int:
    """Free the places of assignments past their deadline, of one worker or of all; return how many."""
    lapsed = Assignment.objects.lapsed().select_for_update(skip_locked=True, of=("self",)).order_by("hit_id")
    if worker:
        lapsed = lapsed.filter(worker=worker)
    assignments = list(lapsed[:EXPIRED_AT_ONCE])
    for assignment in assignments:
        _give_back(assignment, AssignmentStatus.EXPIRED)
    return len(assignments)


def _accept_or_wait(worker: Worker, hit_type: HITType | None) -> Assignment:
    """Accept a HIT that nobody has locked, or else the nearest one as soon as it is let go.

    Each attempt is a transaction of its own, which lets go of what it had locked.
    """
    wait = False
    while True:
        try:
            return _accept(worker, hit_type, wait=wait)
        except _AllLocked:
            wait = True


@transaction.atomic
def _accept(worker: Worker, hit_type: HITType | None, *, wait: bool) -> Assignment:
    # With the worker locked, a double click and two tabs come one after the other.
    worker = Worker.objects.select_for_update(no_key=True).get(pk=worker.pk)
    if worker.blocked_at:
        raise WorkerBlocked(f"You cannot take on work at present: {worker.blocked_reason}")
    consent = Consent.objects.in_force().filter(worker=worker).first()
    if consent is None:
        raise ConsentMissing("Please read the consent form and agree to it first.")
    # Locked, so that one being submitted at this moment is waited for and not handed out again.
    at_work = Assignment.objects.accepted().filter(worker=worker).select_for_update(of=("self",)).first()
    if at_work:
        return at_work
    hit = _lock_next_hit(worker, hit_type, wait=wait)
    if hit is None:
        raise NoHITLeft("There is no statement left for you at the moment.")
    assignment = Assignment.objects.create(
        hit=hit, worker=worker, consent=consent, deadline=timezone.now() + hit.hit_type.assignment_duration
    )
    log.info("assignment_accepted", assignment=assignment.pk, hit=hit.pk)
    return assignment


def _give_back(assignment: Assignment, status: AssignmentStatus) -> None:
    assignment.status = status
    assignment.holds_place = False
    assignment.given_back_at = timezone.now()
    assignment.save(update_fields=["status", "holds_place", "given_back_at"])
    log.info("assignment_given_back", assignment=assignment.pk, status=status.value)


def _lock_next_hit(worker: Worker, hit_type: HITType | None, *, wait: bool) -> HIT | None:
    """The next HIT for the worker, locked: of those that nobody else has locked, or the nearest, waited for.

    Waiting is for one row alone: a statement that went on to the next row would keep the lock
    on the first.
    """
    hits = HIT.objects.open_for(worker).nearest_completion_first()
    if hit_type:
        hits = hits.filter(hit_type=hit_type)
    candidates = hits.filter(pk=hits.values_list("pk", flat=True).first()) if wait else hits
    hit = (
        candidates.select_related("hit_type").select_for_update(skip_locked=not wait, no_key=True, of=("self",)).first()
    )
    if hit is None and hits.exists():
        raise _AllLocked
    return hit
