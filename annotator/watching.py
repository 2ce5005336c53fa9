"""Watching a study: how far it is, who is at work, what it pays, and on what people disagree.

Five queries, each an aggregate over the study's own HITs, assignments or ledger rows, or the few rows that are shown;
none grows in number with the study, and what they bring back has a bound.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import accumulate

from django.db.models import (
    Count,
    F,
    FloatField,
    Func,
    IntegerField,
    Max,
    Min,
    Q,
    QuerySet,
    Sum,
    Value,
)
from django.db.models.functions import Cast, Extract, Now
from django.utils import timezone

from annotator.disputes import Dispute, dispute_in
from annotator.durations import HOUR, left_in_words
from annotator.models import (
    HIT,
    Assignment,
    AssignmentStatus,
    HITStatus,
    HITType,
    Payment,
    PaymentKind,
    StatementDraw,
    is_in_state,
)

POINTS = 48
"""The course of a study is drawn at so many moments, however long it takes."""
DRAWS_SHOWN = 10
ENOUGH_FOR_A_PACE = 10
"""The pace is that of the last hour if so many places were filled in it, else that of the last day."""
DAY = timedelta(days=1)
SHORTEST_COURSE = timedelta(minutes=1)
NO_WORK = {"first_at": None, "last_at": None, "waiting": Decimal(0), "under_way": Decimal(0)}


@dataclass(frozen=True)
class Places:
    """The places of a study's HITs that make labels; HITs with known answers are counted apart.

    ``filled`` are those of work that counts, ``taken`` those being worked on, ``free`` those that can be accepted
    now; the rest are ``closed``: of HITs that expired or were disposed of.
    """

    wanted: int
    filled: int
    taken: int
    free: int
    hits: int
    complete: int
    checks: int
    states: dict[HITStatus, int]

    @property
    def closed(self) -> int:
        return self.wanted - self.filled - self.taken - self.free

    @property
    def open(self) -> int:
        """Those that can still be filled."""
        return self.free + self.taken

    @property
    def percent(self) -> int:
        return 100 * self.filled // self.wanted if self.wanted else 0


@dataclass(frozen=True)
class Work:
    """The work on a study: by whom, and how fast. ``filled`` counts what keeps a place, in the last hour or day."""

    submitted: int
    submitted_today: int
    at_work: int
    people: int
    filled_last_hour: int
    filled_last_day: int
    first_at: datetime | None
    last_at: datetime | None
    waiting: Decimal
    under_way: Decimal


@dataclass(frozen=True)
class Pay:
    """What the study pays, in US dollars: approved, waiting for review, bonuses, and what is still to come."""

    approved: Decimal
    bonuses: Decimal
    waiting: Decimal
    to_come: Decimal

    @property
    def so_far(self) -> Decimal:
        return self.approved + self.bonuses + self.waiting

    @property
    def in_all(self) -> Decimal:
        return self.so_far + self.to_come


@dataclass(frozen=True)
class Pace:
    """Places filled an hour, measured over ``over`` with ``n`` of them, and how long the open places take at that."""

    an_hour: float
    n: int
    over: timedelta
    left: timedelta

    @property
    def left_in_words(self) -> str:
        return left_in_words(self.left)

    @property
    def basis(self) -> str:
        return f"at the pace of the last {left_in_words(self.over).removeprefix('1 ')}, {self.an_hour:.3g} an hour"


@dataclass(frozen=True)
class Point:
    """How many places were filled by a moment."""

    at: datetime
    filled: int


@dataclass(frozen=True)
class Watch:
    """A study as it stands."""

    hit_type: HITType
    now: datetime
    places: Places
    work: Work
    pay: Pay | None
    dispute: Dispute
    course: list[Point]

    @property
    def is_over(self) -> bool:
        """Whether nothing can happen any more: nobody is at work, and no place can be accepted."""
        return not self.places.open

    @cached_property
    def pace(self) -> Pace | None:
        """None as long as nothing was filled within a day, or nothing is open."""
        return pace_of(self.places, self.work, self.now)


def watch(hit_type: HITType) -> Watch:
    """The study as it stands. Five queries."""
    now = timezone.now()
    places, work = _places(hit_type), _work(hit_type, now)
    return Watch(
        hit_type=hit_type,
        now=now,
        places=places,
        work=work,
        pay=None if hit_type.imported else _pay(hit_type, places, work),
        dispute=dispute_in(hit_type),
        course=_course(hit_type, work, now, ongoing=places.open > 0),
    )


def newest_draws(hit_type: HITType) -> QuerySet[StatementDraw]:
    """How the study's statements were chosen, the newest first."""
    return StatementDraw.objects.filter(hit_type=hit_type).select_related("made_by").order_by("-pk")[:DRAWS_SHOWN]


def of_studies(hit_types: list[HITType]) -> dict[int, Places]:
    """The places of several studies by id, in one query."""
    rows = HIT.objects.filter(hit_type__in=hit_types).order_by().values("hit_type").annotate(**_place_counts())
    found = {row.pop("hit_type"): _as_places(row) for row in rows}
    return {hit_type.pk: found.get(hit_type.pk) or _as_places({}) for hit_type in hit_types}


def works_of(hit_types: list[HITType], now: datetime) -> dict[int, Work]:
    """The work on several studies by id, in one query."""
    rows = Assignment.objects.filter(hit__hit_type__in=hit_types).order_by().values("hit__hit_type")
    found = {row.pop("hit__hit_type"): Work(**row) for row in rows.annotate(**_work_counts(now))}
    nothing = Work(**dict.fromkeys(Work.__dataclass_fields__, 0) | NO_WORK)
    return {hit_type.pk: found.get(hit_type.pk, nothing) for hit_type in hit_types}


def pace_of(places: Places, work: Work, now: datetime) -> Pace | None:
    """How fast open places are filled; None as long as nothing was filled within a day, or nothing is open."""
    if not places.open or not work.filled_last_day:
        return None
    n, over = work.filled_last_hour, HOUR
    if n < ENOUGH_FOR_A_PACE:
        n = work.filled_last_day
        over = min(DAY, max(now - work.first_at, HOUR))
    return Pace(an_hour=n / (over / HOUR), n=n, over=over, left=over * places.open / n)


def _places(hit_type: HITType) -> Places:
    return _as_places(hit_type.hits.aggregate(**_place_counts()))


def _place_counts() -> dict[str, Sum | Count]:
    judged = Q(is_check=False)
    alive = Q(expires_at__gt=Now(), disposed_at=None)
    states = {status.value: Count("pk", filter=judged & is_in_state(status)) for status in HITStatus}
    return {
        "wanted": Sum("max_assignments", filter=judged, default=0),
        "filled": Sum(F("held_places") - F("open_assignments"), filter=judged, default=0),
        "taken": Sum("open_assignments", filter=judged, default=0),
        "free": Sum("free_places", filter=judged & alive, default=0),
        "hits": Count("pk", filter=judged),
        "complete": Count("pk", filter=judged & Q(free_places=0, open_assignments=0)),
        "checks": Count("pk", filter=Q(is_check=True)),
        **states,
    }


def _as_places(row: dict) -> Places:
    names = ("wanted", "filled", "taken", "free", "hits", "complete", "checks")
    states = {status: row.get(status.value, 0) for status in HITStatus}
    return Places(**{name: row.get(name, 0) for name in names}, states=states)


def _work(hit_type: HITType, now: datetime) -> Work:
    return Work(**Assignment.objects.filter(hit__hit_type=hit_type).aggregate(**_work_counts(now)))


def _work_counts(now: datetime) -> dict[str, Sum | Count | Min | Max]:
    submitted = Q(submitted_at__isnull=False)
    filled = Q(holds_place=True, hit__is_check=False)
    open_ = Q(status=AssignmentStatus.ACCEPTED)
    midnight = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    return {
        "submitted": Count("pk", filter=submitted),
        "submitted_today": Count("pk", filter=Q(submitted_at__gte=midnight)),
        "at_work": Count("pk", filter=open_ & Q(deadline__gte=now)),
        "people": Count("worker", filter=submitted, distinct=True),
        "filled_last_hour": Count("pk", filter=filled & Q(submitted_at__gte=now - HOUR)),
        "filled_last_day": Count("pk", filter=filled & Q(submitted_at__gte=now - DAY)),
        "first_at": Min("submitted_at"),
        "last_at": Max("submitted_at"),
        "waiting": Sum("reward", filter=Q(status=AssignmentStatus.SUBMITTED), default=Decimal(0)),
        "under_way": Sum("reward", filter=open_, default=Decimal(0)),
    }


def _pay(hit_type: HITType, places: Places, work: Work) -> Pay:
    bonus = Q(kind=PaymentKind.BONUS)
    ledger = Payment.objects.filter(assignment__hit__hit_type=hit_type).aggregate(
        approved=Sum("amount", filter=~bonus, default=Decimal(0)),
        bonuses=Sum("amount", filter=bonus, default=Decimal(0)),
    )
    return Pay(**ledger, waiting=work.waiting, to_come=work.under_way + places.free * hit_type.reward)


def _course(hit_type: HITType, work: Work, now: datetime, *, ongoing: bool) -> list[Point]:
    """How many places were filled by each of ``POINTS`` moments after the first submission; none before that."""
    if work.first_at is None:
        return []
    start = work.first_at
    end = max(now if ongoing else work.last_at, start + SHORTEST_COURSE)
    part = Func(
        Cast(Extract("submitted_at", "epoch"), FloatField()),
        Value(start.timestamp(), FloatField()),
        Value(end.timestamp(), FloatField()),
        Value(POINTS),
        function="WIDTH_BUCKET",
        output_field=IntegerField(),
    )
    filled = Assignment.objects.filter(
        hit__hit_type=hit_type, hit__is_check=False, holds_place=True, submitted_at__isnull=False
    )
    rows = filled.order_by().values(part=part).annotate(n=Count("pk")).values_list("part", "n")
    a_part = dict(rows)
    # What was submitted at the very end falls behind the last part.
    a_part[POINTS] = a_part.get(POINTS, 0) + a_part.pop(POINTS + 1, 0)
    totals = accumulate(a_part.get(number, 0) for number in range(1, POINTS + 1))
    length = (end - start) / POINTS
    return [Point(start, 0), *(Point(start + length * number, total) for number, total in enumerate(totals, 1))]
