"""What a worker sees of their own work: what became of it, what it pays, how long it took. No statements."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Count, F, Prefetch, Q, QuerySet, Sum
from django.db.models.functions import Least
from django.utils import timezone
from django.utils.formats import date_format

from annotator.durations import HOUR, in_words
from annotator.models import SECOND_THOUGHTS, Assignment, AssignmentStatus, Payment, PaymentKind, Worker

NEWEST_BONUSES = 25

STATES = {
    AssignmentStatus.RETURNED: "Returned, which costs you nothing.",
    AssignmentStatus.EXPIRED: "Time ran out, which costs you nothing.",
}
NOT_UNDERSTOOD = "You marked the text as not understood."
DELETED = "Your answers were deleted as you asked; the pay stays."


@dataclass(frozen=True)
class Tally:
    """A worker's pay in US dollars by its state, and their time at work.

    The time is that from accepting to submitting, at most up to each deadline.
    """

    submitted: int
    approved: Decimal
    bonuses: Decimal
    waiting: Decimal
    waiting_number: int
    rejected: Decimal
    rejected_number: int
    handed_over: Decimal
    time: timedelta

    @property
    def time_in_words(self) -> str:
        return in_words(self.time, largest=HOUR)


def tally(worker: Worker) -> Tally:
    """What the worker's work pays, all of it, and how long it took. Two queries."""
    waiting, rejected = Q(status=AssignmentStatus.SUBMITTED), Q(status=AssignmentStatus.REJECTED)
    work = Assignment.objects.filter(worker=worker).aggregate(
        submitted=Count("submitted_at"),
        waiting=Sum("reward", filter=waiting, default=Decimal(0)),
        waiting_number=Count("pk", filter=waiting),
        rejected=Sum("reward", filter=rejected, default=Decimal(0)),
        rejected_number=Count("pk", filter=rejected),
        time=Sum(
            Least("submitted_at", "deadline") - F("accepted_at"),
            filter=Q(submitted_at__isnull=False),
            default=timedelta(0),
        ),
    )
    bonus = Q(kind=PaymentKind.BONUS)
    ledger = Payment.objects.filter(worker=worker).aggregate(
        approved=Sum("amount", filter=~bonus, default=Decimal(0)),
        bonuses=Sum("amount", filter=bonus, default=Decimal(0)),
        handed_over=Sum("amount", filter=Q(paid_out__isnull=False), default=Decimal(0)),
    )
    return Tally(**work, **ledger)


def assignments_of(worker: Worker) -> QuerySet[Assignment]:
    """Their assignments, newest first, with study, group and ``bonuses``; nothing of what the statements say."""
    bonuses = Payment.objects.filter(kind=PaymentKind.BONUS).order_by("pk")
    return (
        Assignment.objects.filter(worker=worker)
        .select_related("hit__hit_type")
        .annotate(
            not_understood=F("annotation__not_understood"),
            statement=F("hit__generation_id"),
            group_words=F("hit__generation__group__words"),
        )
        .prefetch_related(Prefetch("payments", bonuses, to_attr="bonuses"))
        .defer("draft")
        .order_by("-accepted_at", "-pk")
    )


def bonuses_of(worker: Worker) -> QuerySet[Payment]:
    """The bonuses that belong to no single statement, newest first."""
    return Payment.objects.filter(worker=worker, kind=PaymentKind.BONUS, assignment=None).order_by("-pk")


def state_in_words(assignment: Assignment) -> list[str]:
    """What became of an assignment of ``assignments_of``, in sentences for its worker."""
    said = [NOT_UNDERSTOOD] if assignment.not_understood else []
    said.append(_state(assignment))
    if assignment.answers_deleted_at and assignment.is_submitted:
        said.append(DELETED)
    return said


def _state(assignment: Assignment) -> str:
    now = timezone.now()
    if assignment.status == AssignmentStatus.ACCEPTED:
        if assignment.deadline < now:
            return STATES[AssignmentStatus.EXPIRED]
        return f"You are at it, until {_day(assignment.deadline)}, {_time(assignment.deadline)}."
    if assignment.status == AssignmentStatus.SUBMITTED:
        return f"Waiting for approval; approved automatically {_at_the_latest(assignment, now)}."
    if assignment.status == AssignmentStatus.APPROVED:
        return f"Approved on {_day(assignment.decided_at)}."
    if assignment.status == AssignmentStatus.REJECTED:
        return f"Rejected on {_day(assignment.decided_at)}.{_second_thoughts(assignment, now)}"
    return STATES[assignment.status]


def _at_the_latest(assignment: Assignment, now: datetime) -> str:
    due = assignment.submitted_at + assignment.hit.hit_type.auto_approval_delay
    return f"on {_day(due)} at the latest" if due > now else "in a moment"


def _second_thoughts(assignment: Assignment, now: datetime) -> str:
    end = assignment.decided_at + SECOND_THOUGHTS
    return (
        f" It can still be approved until {_day(end)}: write to the contact in the consent form." if end > now else ""
    )


def _day(moment: datetime) -> str:
    return date_format(timezone.localtime(moment), "j F Y")


def _time(moment: datetime) -> str:
    return date_format(timezone.localtime(moment), "H:i e")
