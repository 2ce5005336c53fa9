"""What the work pays an hour, by how long it really takes, and the floor below which nothing is published."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_FLOOR, Decimal

from django.core.cache import cache
from django.db import connection
from django.db.models import (
    Aggregate,
    Avg,
    Case,
    Count,
    DurationField,
    F,
    OuterRef,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from annotator.durations import HOUR, in_words
from annotator.models import (
    COUNTED_STATUSES,
    SUBMITTED_STATUSES,
    Assignment,
    AssignmentStatus,
    HITType,
    Payment,
    PaymentKind,
    Worker,
)

NEWEST = 1000
"""A working time is the median of so many of the newest submissions, so that its cost has a bound."""
ENOUGH_TO_TELL = 10
"""Below so many submissions a study's working time is the one that the researcher expects."""
AS_OLD_AS = 60
"""Pages show working times that were measured at most so many seconds ago, each web process its own."""
CENT = Decimal("0.01")
SHORTEST = timedelta(seconds=1)
INSTANT = timedelta(microseconds=1)

# Backwards over the assignments if many are the study's, and by its HITs if few are: PostgreSQL chooses.
MEASURE = f"""
SELECT %s, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY taken) FROM (
    SELECT submitted_at - accepted_at AS taken
    FROM annotator_assignment assignment JOIN annotator_hit hit ON hit.id = assignment.hit_id
    WHERE hit.hit_type_id = %s AND assignment.status IN %s
    ORDER BY assignment.id DESC LIMIT {NEWEST}
) newest
"""  # noqa: S608 - the number above


class PayTooLow(Exception):
    """A study pays less an hour than its floor; the message says what to do."""


class MedianTime(Aggregate):
    """The median of lengths of time."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = DurationField()


@dataclass(frozen=True)
class Wage:
    """What a study pays an hour, in US dollars, as it stands.

    ``median`` is that of the newest ``n`` pieces of work that were submitted and not rejected,
    None as long as they are too few to tell; the time it takes is then the ``expected`` one.
    """

    reward: Decimal
    floor: Decimal
    expected: timedelta
    n: int
    median: timedelta | None

    @property
    def measured(self) -> bool:
        return self.median is not None

    @property
    def time(self) -> timedelta:
        """How long one statement takes."""
        return self.median if self.measured else self.expected

    @property
    def time_in_words(self) -> str:
        return in_words(self.time)

    @property
    def rate(self) -> Decimal:
        """US dollars an hour, rounded down, so that a rate below the floor never looks like the floor."""
        return hourly(self.reward, self.time)

    @property
    def enough(self) -> bool:
        """Whether it reaches the floor."""
        return self.reward >= self.reward_needed

    @property
    def reward_needed(self) -> Decimal:
        """The smallest reward that reaches the floor."""
        return reward_that_reaches(self.floor, self.time)

    @property
    def basis(self) -> str:
        """What the rate rests on, as the end of a sentence."""
        if self.measured:
            return f"by the median time of the last {self.n:,} statements, {in_words(self.time)}"
        return f"if a statement takes {in_words(self.time)} as expected (n = {self.n}, too few to measure it)"

    @property
    def sentence(self) -> str:
        return f"${self.rate} an hour, {self.basis}."


@dataclass(frozen=True)
class OwnWage:
    """What a worker's own work pays an hour, as it stands: the mean pay over the median time of ``n`` statements.

    Rejected work pays nothing; what was added to a statement's pay later is counted.
    """

    rate: Decimal
    median: timedelta
    n: int

    @property
    def time_in_words(self) -> str:
        return in_words(self.median)


def of_study(hit_type: HITType) -> Wage:
    """The wage of a study for its pages: the time may be a minute old, reward and floor are as they are now."""
    return of_studies([hit_type])[hit_type.pk]


def of_studies(hit_types: Iterable[HITType]) -> dict[int, Wage]:
    """As ``of_study``, of several by id, in one query or none."""
    hit_types = list(hit_types)
    names = {_cache_name(hit_type.pk): hit_type.pk for hit_type in hit_types}
    times = {names[name]: time for name, time in cache.get_many(names).items()}
    if missing := [pk for pk in names.values() if pk not in times]:
        measured = _measure(missing)
        cache.set_many({_cache_name(pk): time for pk, time in measured.items()}, AS_OLD_AS)
        times |= measured
    return {hit_type.pk: _wage(hit_type, *times[hit_type.pk]) for hit_type in hit_types}


def as_of_now(hit_type: HITType) -> Wage:
    """The wage of a study, saved or not, with the time measured now: for acts, which rest on it."""
    return _wage(hit_type, *(_measure([hit_type.pk])[hit_type.pk] if hit_type.pk else (0, None)))


def is_below_floor(hit_type: HITType) -> bool:
    """Whether a study pays less an hour than its floor, as of now."""
    return not as_of_now(hit_type).enough


def refuse_below_floor(hit_type: HITType) -> None:
    """Raise ``PayTooLow`` for a study that pays less an hour than its floor, as of now."""
    wage = as_of_now(hit_type)
    if not wage.enough:
        raise PayTooLow(too_low(wage))


def too_low(wage: Wage) -> str:
    """The refusal of a wage below its floor, with what to do."""
    other_way = "or set another wage floor" if wage.measured else "or correct the expected time if a trial took less"
    return (
        f"This pays ${wage.rate} an hour, {wage.basis}; the wage floor is ${wage.floor}. "
        f"Raise the reward to at least ${wage.reward_needed}, {other_way}."
    )


def of_worker(worker: Worker) -> OwnWage | None:
    """What the worker's newest submissions pay an hour; None before the first."""
    newest = (
        Assignment.objects.filter(worker=worker, status__in=SUBMITTED_STATUSES)
        .order_by("-accepted_at")
        .annotate(taken=F("submitted_at") - F("accepted_at"), paid=paid_for_assignment())[:NEWEST]
    )
    totals = newest.aggregate(n=Count("pk"), mean=Avg("paid"), median=MedianTime("taken"))
    if not totals["n"]:
        return None
    median = max(totals["median"], SHORTEST)
    return OwnWage(rate=hourly(totals["mean"], median), median=median, n=totals["n"])


def paid_for_assignment() -> Case:
    """All that an assignment pays, as an expression: its reward and the bonuses that belong to it."""
    own_bonuses = Payment.objects.filter(kind=PaymentKind.BONUS, assignment=OuterRef("pk")).order_by()
    bonuses = Coalesce(bonuses_of(own_bonuses), Value(Decimal(0)))
    return Case(When(status=AssignmentStatus.REJECTED, then=bonuses), default=F("reward") + bonuses)


def bonuses_of(payments: QuerySet[Payment]) -> Subquery:
    return Subquery(payments.values("assignment").annotate(total=Sum("amount")).values("total"))


def hourly(pay: Decimal, time: timedelta) -> Decimal:
    """US dollars an hour, rounded down to the cent.

    >>> hourly(Decimal("0.25"), timedelta(seconds=105))
    Decimal('8.57')
    """
    return (pay * (HOUR // INSTANT) / (time // INSTANT)).quantize(CENT, ROUND_FLOOR)


def reward_that_reaches(floor: Decimal, time: timedelta) -> Decimal:
    """The smallest amount of whole cents that pays ``floor`` an hour.

    >>> reward_that_reaches(Decimal("8.00"), timedelta(seconds=105)), reward_that_reaches(Decimal(0), HOUR)
    (Decimal('0.24'), Decimal('0.00'))
    """
    cents_an_hour = int(floor / CENT)
    return -(-cents_an_hour * (time // INSTANT) // (HOUR // INSTANT)) * CENT


def _measure(pks: list[int]) -> dict[int, tuple[int, timedelta | None]]:
    """How many of their newest pieces of work were submitted and not rejected, and their median time, by study."""
    statement = " UNION ALL ".join(f"({MEASURE})" for _ in pks)
    with connection.cursor() as cursor:
        cursor.execute(statement, [value for pk in pks for value in (pk, pk, tuple(COUNTED_STATUSES))])
        return {pk: (n, median) for pk, n, median in cursor.fetchall()}


def _wage(hit_type: HITType, n: int, median: timedelta | None) -> Wage:
    return Wage(
        reward=Decimal(hit_type.reward),
        floor=Decimal(hit_type.wage_floor),
        expected=hit_type.expected_time,
        n=n,
        median=max(median, SHORTEST) if n >= ENOUGH_TO_TELL else None,
    )


def _cache_name(pk: int) -> str:
    return f"working-time-of-study-{pk}"
