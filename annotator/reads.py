"""What annotators' pages show of the work on offer and of their own."""

import json
import uuid
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, JSONObject, Now

from annotator.assigning import DAY
from annotator.models import HIT, Assignment, AssignmentStatus, HITType, Payment, Qualification, TestResult, Worker
from annotator.prepared import KEY, WORKER, Prepared, instance
from annotator.wages import Wage, of_studies
from generation.models import Generation, TargetGroup

COUNTED_UP_TO = 200
"""Nobody plans for more statements; counting all of a large study would make the home page slow."""


@dataclass(frozen=True)
class Earnings:
    """A worker's own tally in US dollars, bonuses included; ``today`` counts all that was given within 24 hours."""

    submitted: int
    today: int
    approved: Decimal
    pending: Decimal

    @property
    def total(self) -> Decimal:
        return self.approved + self.pending


def earnings(worker: Worker) -> Earnings:
    """What the worker is owed: approved, and waiting for approval. One query."""
    row = EARNINGS.first(worker=worker.pk)
    totals = json.loads(row["totals"] or "{}", parse_float=Decimal, parse_int=Decimal)
    return Earnings(
        submitted=int(totals.get("submitted", 0)),
        today=int(totals.get("today", 0)),
        approved=row["approved"],
        pending=totals.get("pending") or Decimal(0),
    )


def _make_earnings() -> QuerySet[Worker]:
    own = Assignment.objects.filter(worker=WORKER).order_by()
    totals = own.values("worker").annotate(
        totals=JSONObject(
            submitted=Count("pk", filter=Q(submitted_at__isnull=False)),
            today=Count("pk", filter=Q(accepted_at__gt=Now() - DAY)),
            pending=Sum("reward", filter=Q(status=AssignmentStatus.SUBMITTED)),
        )
    )
    ledger = Payment.objects.filter(worker=WORKER).order_by()
    return Worker.objects.filter(pk=WORKER).values(
        totals=Subquery(totals.values("totals")), approved=_sum(ledger, "amount")
    )


EARNINGS = Prepared(_make_earnings)


def task_of(worker: Worker, key: uuid.UUID) -> Assignment | None:
    """An assignment of the worker's with what its page shows of its study, statement and group. One query."""
    row = TASK.first(worker=worker.pk, key=key)
    if row is None:
        return None
    assignment = instance(Assignment, row)
    assignment.worker = worker
    assignment.hit = instance(HIT, row, "hit__")
    assignment.hit.hit_type = instance(HITType, row, "hit__hit_type__")
    assignment.hit.generation = instance(Generation, row, "hit__generation__")
    assignment.hit.generation.group = instance(TargetGroup, row, "hit__generation__group__")
    return assignment


def _make_task() -> QuerySet[Assignment]:
    return (
        Assignment.objects.filter(key=KEY, worker=WORKER)
        .order_by()
        .values(
            *(field.attname for field in Assignment._meta.concrete_fields),
            *(f"hit__{name}" for name in ("id", "hit_type_id", "generation_id")),
            *(f"hit__hit_type__{name}" for name in ("id", "grants_id", "daily_cap", "break_after")),
            *(f"hit__generation__{name}" for name in ("id", "text", "group_id")),
            *(f"hit__generation__group__{name}" for name in ("id", "words")),
        )
    )


TASK = Prepared(_make_task)


@dataclass(frozen=True)
class Offer:
    """A study as one worker sees it; ``available`` stops counting at ``COUNTED_UP_TO``.

    ``free_at`` is when the worker falls below the study's daily cap again, None if they are below it.
    """

    hit_type: HITType
    done: int
    available: int
    at_work: bool
    lacking: list[Qualification]
    result: TestResult | None
    wage: Wage
    free_at: datetime | None
    is_blocked: bool

    @property
    def may_be_more(self) -> bool:
        return self.available >= COUNTED_UP_TO

    @property
    def has_work(self) -> bool:
        return self.available > 0 and not self.lacking

    @property
    def is_capped(self) -> bool:
        """Whether nothing but the daily cap keeps the worker from the next statement."""
        return bool(self.free_at and self.has_work and not (self.at_work or self.result or self.is_blocked))

    @property
    def can_accept(self) -> bool:
        """Whether there is a statement to go on with or to take now."""
        return not self.is_blocked and (self.at_work or (self.has_work and not self.result and not self.free_at))

    @property
    def can_be_earned(self) -> bool:
        """Whether there is a test to take for every qualification that the worker lacks."""
        return all(lacked.can_be_earned for lacked in self.lacking)

    @property
    def is_shown(self) -> bool:
        """Whether it concerns the worker: a study that others were chosen for, without a test to take, does not."""
        return bool(self.done or self.at_work or self.result) or self.can_be_earned


def offers_for(worker: Worker) -> list[Offer]:
    """The studies that concern the worker, with what there is to do in each, and no statement.

    The one at work stands first, then those with work; the newest first among them.
    """
    studies = _studies_for(worker)
    wages = of_studies(studies)
    results = {result.test_id: result for result in TestResult.objects.filter(worker=worker)}
    offers = (
        Offer(
            hit_type=hit_type,
            done=hit_type.done,
            available=len(hit_type.available),
            at_work=hit_type.at_work,
            lacking=hit_type.lacking,
            result=results.get(hit_type.pk),
            wage=wages[hit_type.pk],
            free_at=_free_at(hit_type),
            is_blocked=worker.blocked_at is not None,
        )
        for hit_type in studies
    )
    shown = [offer for offer in offers if offer.is_shown]
    return sorted(shown, key=lambda offer: (not offer.at_work, not offer.can_accept))


def _free_at(hit_type: HITType) -> datetime | None:
    """When the worker may be given a statement of the study again, None for now."""
    given, cap = hit_type.given_today, hit_type.daily_cap
    return given[cap - 1] + DAY if len(given) >= cap else None


def _studies_for(worker: Worker) -> QuerySet[HITType]:
    at_work = Assignment.objects.accepted().filter(worker=worker, hit__hit_type=OuterRef("pk"))
    submitted = Assignment.objects.filter(worker=worker, submitted_at__isnull=False, hit__hit_type=OuterRef("pk"))
    # Of a test, the statements with known answers are what there is to do; of other studies, all but those.
    available = HIT.objects.open_for(worker).filter(hit_type=OuterRef("pk"), is_check=OuterRef("is_a_test"))
    given_today = Assignment.objects.filter(worker=worker, accepted_at__gt=Now() - DAY).order_by("-accepted_at")
    taken = TestResult.objects.filter(test=OuterRef("pk"), worker=worker)
    tests_to_take = HITType.objects.filter(~Exists(taken), grants=OuterRef("pk"))
    lacking = Qualification.objects.exclude(grants__worker=worker).annotate(can_be_earned=Exists(tests_to_take))
    return (
        HITType.objects.filter(imported=False)
        .annotate(
            is_a_test=Q(grants__isnull=False),
            at_work=Exists(at_work),
            done=_number(submitted.order_by(), by="hit__hit_type"),
            available=ArraySubquery(available.values("pk")[:COUNTED_UP_TO]),
            given_today=ArraySubquery(given_today.values("accepted_at")),
        )
        .prefetch_related(Prefetch("qualifications", lacking.order_by("name"), to_attr="lacking"))
        .select_related("run", "grants")
        .order_by("-pk")
    )


def _number(rows, *, by: str = "worker") -> Coalesce:
    return Coalesce(Subquery(rows.values(by).annotate(number=Count("pk")).values("number")), 0)


def _sum(rows, field: str) -> Coalesce:
    return Coalesce(Subquery(rows.values("worker").annotate(total=Sum(field)).values("total")), Decimal(0))
