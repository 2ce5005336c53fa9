"""Handing out HITs: accepting, returning and expiring assignments.

Locks are always taken in the order worker, assignment, HIT. Who holds a HIT waits for no other,
but for ``expire_lapsed``, which takes several in the order of their ids. So no two of these acts
can wait for each other.
"""

import random
from datetime import datetime, timedelta
from functools import cache
from types import SimpleNamespace

import structlog
from django.contrib.postgres.expressions import ArraySubquery
from django.db import transaction
from django.db.models import Case, Count, Exists, OuterRef, QuerySet, Subquery, When
from django.db.models.functions import Coalesce, Greatest, Now
from django.template.defaultfilters import pluralize
from django.utils import timezone
from django.utils.formats import date_format

from annotator.models import HIT, Assignment, AssignmentStatus, Consent, HITType, TestResult, Worker
from annotator.prepared import HIT_TYPE, WORKER, Prepared
from generation.models import Label

EXPIRED_AT_ONCE = 100
DAY = timedelta(hours=24)
BREAK = timedelta(minutes=10)
"""Who accepts, submits and returns nothing for so long has had a break."""
IN_A_ROW = 2
"""So many statements from prompts of one label may follow each other while there are some of the other."""

ACTIVE_AT = Greatest("accepted_at", "submitted_at", Case(When(status=AssignmentStatus.RETURNED, then="given_back_at")))
"""When the worker last did something with an assignment; that it expired is none of their doing."""

log = structlog.get_logger(__name__)


class CannotAccept(Exception):
    """The worker may not be given a statement; the message says why and what to do."""


class ConsentMissing(CannotAccept):
    """The worker has not agreed to the consent form in force."""


class WorkerBlocked(CannotAccept):
    """A researcher blocked the worker."""


class NotQualified(CannotAccept):
    """The worker lacks a qualification that the study asks for."""


class DailyCapReached(CannotAccept):
    """The worker was given as many statements in 24 hours as the study allows."""


class BreakDue(CannotAccept):
    """The worker has worked for so long without a break that one is suggested."""


class NoHITLeft(CannotAccept):
    """There is no HIT for this worker now."""


class _AllLocked(Exception):
    """Others are just taking or giving back places of every HIT that is open to the worker."""


class _Settled(Exception):
    """The assignment that the worker was at has just been submitted or given back."""


class _Lapsed(Exception):
    """The worker is past the deadline of the assignment that they were at."""


def accept_next(*, worker: Worker, hit_type_id: int, rested: bool = False) -> Assignment:
    """Give the worker the study's next HIT, or the one of whatever study that they are at already.

    ``rested`` says that a break was suggested and they go on. Places of people who went away are
    freed when nothing else is left. Raises a ``CannotAccept``, or ``HITType.DoesNotExist``.
    """
    try:
        return _accept_or_wait(worker, hit_type_id, rested)
    except NoHITLeft:
        if not expire_lapsed():
            raise
        return _accept_or_wait(worker, hit_type_id, rested)


@transaction.atomic
def return_assignment(*, assignment: Assignment) -> bool:
    """Give a HIT back unjudged, without penalty. Return whether it was still open."""
    assignment = Assignment.objects.select_for_update(of=("self",)).get(pk=assignment.pk)
    if assignment.status != AssignmentStatus.ACCEPTED:
        return False
    assignment.draft = None
    _give_back(assignment, AssignmentStatus.RETURNED)
    return True


@transaction.atomic
def expire_lapsed(*, worker: Worker | None = None) -> int:
    """Free the places of assignments past their deadline, of one worker or of all; return how many.

    What was typed is kept.
    """
    lapsed = Assignment.objects.lapsed().select_for_update(skip_locked=True, of=("self",)).order_by("hit_id")
    if worker:
        lapsed = lapsed.filter(worker=worker)
    assignments = list(lapsed[:EXPIRED_AT_ONCE])
    for assignment in assignments:
        _give_back(assignment, AssignmentStatus.EXPIRED)
    return len(assignments)


def _accept_or_wait(worker: Worker, hit_type_id: int, rested: bool) -> Assignment:
    """Accept a HIT that nobody has locked, or else the nearest one as soon as it is let go.

    Each attempt is a transaction of its own, which lets go of what it had locked.
    """
    wait = False
    while True:
        try:
            return _accept(worker, hit_type_id, rested, wait=wait)
        except _AllLocked:
            wait = True
        except _Settled:
            pass
        except _Lapsed:
            expire_lapsed(worker=worker)


@transaction.atomic
def _accept(worker: Worker, hit_type_id: int, rested: bool, *, wait: bool) -> Assignment:
    # With the worker locked, a double click and two tabs come one after the other.
    locked = LOCKED_WORKER.first(worker=worker.pk)
    facts = _facts(worker, hit_type_id)
    _refuse_whom_nothing_is_shown(locked, facts)
    if facts.open_assignment:
        return _at_work(facts.open_assignment)
    now = timezone.now()
    working_since = _working_since(facts, now, rested)
    _refuse_who_has_had_enough(worker, facts, now - working_since)
    hit_id = _lock_next_hit(worker, facts, wait=wait)
    if hit_id is None:
        raise NoHITLeft("There is no statement left for you at the moment.")
    assignment = Assignment.objects.create(
        hit_id=hit_id,
        worker=worker,
        consent_id=facts.consent,
        reward=facts.reward,
        working_since=working_since,
        deadline=now + facts.assignment_duration,
    )
    log.info("assignment_accepted", assignment=assignment.pk, hit=hit_id)
    return assignment


def _facts(worker: Worker, hit_type_id: int) -> SimpleNamespace:
    """The study's terms and all that accepting has to know of the worker, in one query."""
    facts = FACTS.first(worker=worker.pk, hit_type=hit_type_id)
    if facts is None:
        raise HITType.DoesNotExist(f"There is no study {hit_type_id}.")
    return SimpleNamespace(**facts)


def _make_facts() -> QuerySet[HITType]:
    own = Assignment.objects.filter(worker=WORKER).order_by()
    recent = own.order_by("-accepted_at")
    today = own.filter(accepted_at__gt=Now() - DAY)
    lacking = HITType.qualifications.through.objects.filter(hittype=OuterRef("pk")).exclude(
        qualification__grants__worker=WORKER
    )
    terms = ("pk", "reward", "daily_cap", "break_after", "check_every", "assignment_duration", "grants_id")
    return HITType.objects.filter(pk=HIT_TYPE, imported=False).values(
        *terms,
        consent=Subquery(Consent.objects.in_force().filter(worker=WORKER).values("pk")[:1]),
        open_assignment=Subquery(own.accepted().values("pk")[:1]),
        is_lacking=Exists(lacking),
        is_taken=Exists(TestResult.objects.filter(test=OuterRef("pk"), worker=WORKER)),
        given_today=Coalesce(Subquery(today.values("worker").annotate(number=Count("pk")).values("number")), 0),
        last_active_at=Subquery(recent.annotate(active_at=ACTIVE_AT).values("active_at")[:1]),
        last_working_since=Subquery(recent.values("working_since")[:1]),
        last_labels=ArraySubquery(recent.values("hit__prompt_label")[:IN_A_ROW]),
    )


FACTS = Prepared(_make_facts)
LOCKED_WORKER = Prepared(
    lambda: Worker.objects.filter(pk=WORKER).select_for_update(no_key=True).values("blocked_at", "blocked_reason")
)


def _refuse_whom_nothing_is_shown(worker: dict, facts: SimpleNamespace) -> None:
    if worker["blocked_at"]:
        raise WorkerBlocked(f"You cannot take on work at present: {worker['blocked_reason']}")
    if facts.consent is None:
        raise ConsentMissing("Read the consent form and agree to it first.")


def _refuse_who_has_had_enough(worker: Worker, facts: SimpleNamespace, worked: timedelta) -> None:
    if facts.is_lacking:
        raise NotQualified("This study asks for a qualification that you do not have yet.")
    if facts.is_taken:
        raise NoHITLeft("You have taken this test already: there is one go.")
    if facts.given_today >= facts.daily_cap:
        statements = f"{facts.given_today} statement{pluralize(facts.given_today)}"
        raise DailyCapReached(
            f"You were given {statements} within 24 hours, and more would be too much for one day, also of those that "
            f"you returned. You can go on from {_next_free(worker, facts.daily_cap)}."
        )
    if worked >= facts.break_after:
        raise BreakDue(f"You have worked for {round(worked.total_seconds() / 60)} minutes. Take a break.")


def _next_free(worker: Worker, daily_cap: int) -> str:
    """When the worker falls below the daily cap, in words."""
    given = Assignment.objects.filter(worker=worker).order_by("-accepted_at")
    oldest = given.values_list("accepted_at", flat=True)[daily_cap - 1]
    return date_format(timezone.localtime(oldest + DAY), "H:i e, j F")


def _working_since(facts: SimpleNamespace, now: datetime, rested: bool) -> datetime:
    """When the stretch of work began that the worker is in."""
    began = facts.last_working_since
    if rested or began is None or facts.last_active_at < now - BREAK:
        return now
    return began


def _at_work(pk: int) -> Assignment:
    """The worker's open assignment, locked, so that one being submitted at this moment is waited for."""
    assignment = Assignment.objects.accepted().filter(pk=pk).select_for_update(of=("self",)).first()
    if assignment is None:
        raise _Settled
    if assignment.deadline < timezone.now():
        raise _Lapsed
    return assignment


def _give_back(assignment: Assignment, status: AssignmentStatus) -> None:
    assignment.status = status
    assignment.holds_place = False
    assignment.given_back_at = timezone.now()
    assignment.save(update_fields=["status", "holds_place", "given_back_at", "draft"])
    log.info("assignment_given_back", assignment=assignment.pk, status=status.value)


def _lock_next_hit(worker: Worker, facts: SimpleNamespace, *, wait: bool) -> int | None:
    """The id of the next HIT for the worker, locked: one that nobody else has locked, or the nearest, waited for.

    Waiting is for one row alone: a statement that went on to the next row would keep the lock
    on the first.
    """
    kinds = _kinds_in_order(facts)
    next_hit = _next_hit(kinds, wait=wait).first(worker=worker.pk, hit_type=facts.pk)
    if next_hit is None and any(kind.exists() for kind in _open_hits(kinds, worker.pk, facts.pk)):
        raise _AllLocked
    return next_hit and next_hit["pk"]


def _kinds_in_order(facts: SimpleNamespace) -> tuple[tuple[bool, str], ...]:
    """Which HITs are wished for, the dearest first, as (has known answers, prompt label).

    Known answers come now and then. Of the two labels one is drawn, so that nobody can tell what comes next,
    unless the other's turn is due.
    """
    labels = random.sample(Label.values, len(Label.values))
    if facts.last_labels == labels[:1] * IN_A_ROW:
        labels.reverse()
    is_test = facts.grants_id is not None
    checks = [True] if is_test else [True, False] if random.random() * facts.check_every < 1 else [False]
    return tuple((is_check, label) for is_check in checks for label in labels)


@cache
def _next_hit(kinds: tuple[tuple[bool, str], ...], *, wait: bool) -> Prepared:
    """The next HIT in the order of the kinds; the database stops at the first kind of which there is one."""

    def make() -> QuerySet[HIT]:
        open_hits = _open_hits(kinds, WORKER, HIT_TYPE)
        if wait:
            nearest = HIT.objects.open_for(WORKER).filter(pk=_first_of(open_hits))
            return nearest.select_for_update(no_key=True, of=("self",)).values("pk")
        lock = {"skip_locked": True, "no_key": True, "of": ("self",)}
        return HIT.objects.filter(pk=_first_of([hits.select_for_update(**lock) for hits in open_hits])).values("pk")

    return Prepared(make)


def _open_hits(kinds: tuple[tuple[bool, str], ...], worker_id: int, hit_type_id: int) -> list[QuerySet[HIT]]:
    hits = HIT.objects.open_for(worker_id).filter(hit_type=hit_type_id).nearest_completion_first()
    return [hits.filter(is_check=is_check, prompt_label=label) for is_check, label in kinds]


def _first_of(kinds: list[QuerySet[HIT]]) -> Coalesce:
    return Coalesce(*(Subquery(hits.values("pk")[:1]) for hits in kinds))
