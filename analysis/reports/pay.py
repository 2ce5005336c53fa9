"""How far each study is, what its work pays an hour, and what was paid, is owed and is promised: US dollars throughout.

Work that was imported was paid elsewhere and is left out.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
from django.db.models import Count, Q, Sum
from django.utils import timezone
from scipy.stats import binom

from analysis.exports.workers import hashed_worker
from analysis.reports import charts
from analysis.reports.frame import Cell, Column, Estimate, Kind, Report, Section, Table, Undefined
from analysis.reports.pay_words import BELOW, OWED, PAID, PROMISED, REACHED, WAITING
from analysis.reports.progress import progress, review
from annotator import wages, watching
from annotator.durations import HOUR
from annotator.models import SUBMITTED_STATUSES, Assignment, AssignmentStatus, HITType, Payment, PaymentKind

ROWS_AT_ONCE = 5_000
SHOWN_OF_HASH = 8
SHORTEST = wages.SHORTEST.total_seconds()
NO_STUDY = (
    "There is no study whose work is paid here. Make one under Annotate, Studies; imported work was paid elsewhere."
)
NO_WORK = "Nobody has submitted anything yet."
NOTHING_SUBMITTED = Undefined("Nothing was submitted.")


@dataclass
class Work:
    """Submitted work of a study or of an annotator: seconds each piece took, and what all of it pays."""

    seconds: list[float] = field(default_factory=list)
    pays: Decimal = Decimal(0)
    statuses: dict[str, int] = field(default_factory=dict)

    def take(self, seconds: float, pays: Decimal, status: str) -> None:
        self.seconds.append(max(seconds, SHORTEST))
        self.pays += pays
        self.statuses[status] = self.statuses.get(status, 0) + 1

    @property
    def median(self) -> Cell:
        return median_cell(self.seconds) if self.seconds else NOTHING_SUBMITTED

    @property
    def hourly(self) -> Cell:
        """The mean pay of a piece over the median time, with the interval that the median's gives."""
        time = self.median
        if isinstance(time, Undefined):
            return time
        pay = float(self.pays) / len(self.seconds) * HOUR.total_seconds()
        if time.low is None:
            return Estimate(pay / time.value)
        return Estimate(pay / time.value, pay / time.high, pay / time.low)


def make(filters: Mapping) -> Report:
    """The report over the studies that the filters leave."""
    studies = list(filters.get("study", HITType.objects.all()).filter(imported=False).order_by("-pk"))
    if not studies:
        return Report("pay", "Pay", (Section("money", "Money", "", missing=NO_STUDY),))
    now = timezone.now()
    places, works = watching.of_studies(studies), watching.works_of(studies, now)
    by_study, by_worker = _submitted(studies)
    gifts = "study" not in filters
    sections = (
        _money(studies, places, works, gifts=gifts),
        progress(studies, places, works, now),
        _studies(studies, by_study),
        _annotators(by_worker, studies, gifts=gifts),
        review(studies),
    )
    return Report("pay", "Pay", sections)


def median_cell(values: Iterable[float]) -> Estimate:
    """The median with the 95 % interval between two order statistics; without one of fewer than six values.

    Source: Conover, W. J. (1999), Practical Nonparametric Statistics, section 3.2.
    """
    x = np.sort(np.asarray(list(values), dtype=float))
    rank = int(binom.ppf(0.025, len(x), 0.5))
    if not rank:
        return Estimate(float(np.median(x)))
    return Estimate(float(np.median(x)), float(x[rank - 1]), float(x[-rank]))


def _submitted(studies: list[HITType]) -> tuple[dict[int, Work], dict[int, Work]]:
    """The submitted work by study and by worker, each known by its id."""
    rows = (
        Assignment.objects.filter(hit__hit_type__in=studies, status__in=SUBMITTED_STATUSES)
        .order_by()
        .annotate(pays=wages.paid_for_assignment())
        .values_list("hit__hit_type_id", "worker_id", "accepted_at", "submitted_at", "pays", "status")
    )
    by_study: dict[int, Work] = {}
    by_worker: dict[int, Work] = {}
    for study, worker, accepted_at, submitted_at, pays, status in rows.iterator(chunk_size=ROWS_AT_ONCE):
        seconds = (submitted_at - accepted_at).total_seconds()
        by_study.setdefault(study, Work()).take(seconds, pays, status)
        by_worker.setdefault(worker, Work()).take(seconds, pays, status)
    return by_study, by_worker


def _ledger(studies: list[HITType], *, gifts: bool) -> Payment.objects:
    """The rows of the ledger that belong to these studies, and with ``gifts`` those that belong to none."""
    of_studies = Q(assignment__hit__hit_type__in=studies)
    return Payment.objects.filter(of_studies | Q(assignment=None) if gifts else of_studies).order_by()


# --- Sections ---------------------------------------------------------------------------------


def _money(studies: list[HITType], places: Mapping, works: Mapping, *, gifts: bool) -> Section:
    kinds = {kind.value: Sum("amount", filter=Q(kind=kind), default=0) for kind in PaymentKind}
    sums = _ledger(studies, gifts=gifts).aggregate(
        paid=Sum("amount", filter=Q(paid_out__isnull=False), default=0),
        owed=Sum("amount", filter=Q(paid_out=None), default=0),
        rows=Count("pk"),
        **kinds,
    )
    waiting = sum(works[study.pk].waiting for study in studies)
    promised = sum(works[study.pk].under_way + places[study.pk].free * study.reward for study in studies)
    amounts = {f"Entered in the ledger: {kind.label}": sums[kind.value] for kind in PaymentKind}
    amounts |= {PAID: sums["paid"], OWED: sums["owed"], WAITING: waiting, PROMISED: promised}
    rows = tuple({"what": what, "amount": float(amount)} for what, amount in amounts.items())
    return Section(
        "money",
        "What was paid, is owed and is promised",
        f"${sums['paid']:,.2f} were paid and ${sums['owed']:,.2f} are owed; work for ${waiting:,.2f} waits for review, "
        f"and at most ${promised:,.2f} are still to come.",
        {"rows of the ledger": sums["rows"], "studies": len(studies)},
        Table((Column("what", "What"), Column("amount", "US dollars", Kind.MONEY)), rows),
        notes=(
            "Sums are exact. The first three rows and the next two are the same money, told by what it is for and by "
            "whether it is in a payout."
            + (
                " Bonuses and qualification tests that belong to no study are counted."
                if gifts
                else " Bonuses and qualification tests that belong to no study are not."
            ),
        ),
    )


def _studies(studies: list[HITType], by_study: Mapping[int, Work]) -> Section:
    rows = [_pay_of(study, by_study.get(study.pk, Work())) for study in studies]
    below = [row for row in rows if row["floor_is"] == BELOW]
    of = f"{len(rows):,} {'study' if len(rows) == 1 else 'studies'}"
    many = f"{len(below):,} of {of} {'pays' if len(below) == 1 else 'pay'} less an hour than the floor"
    columns = (
        Column("study", "Study"),
        Column("number", "Number"),
        Column("submitted", "Submitted", Kind.COUNT),
        Column("median", "Median time", Kind.DURATION),
        Column("paid_an_hour", "Submitted work pays an hour", Kind.MONEY),
        Column("reward", "Reward now", Kind.MONEY),
        Column("pays_an_hour", "The reward pays an hour", Kind.MONEY),
        Column("floor", "Floor", Kind.MONEY),
        Column("floor_is", "The reward"),
    )
    return Section(
        "studies",
        "What the work of each study pays an hour",
        f"{many}." if below else "The reward of each study reaches its wage floor.",
        {"studies": len(rows), "pieces of work": sum(len(work.seconds) for work in by_study.values())},
        Table(columns, tuple(rows)),
        notes=(
            "Submitted work pays its reward and the bonuses that belong to it; rejected work pays its bonuses alone. "
            "An hourly rate is the mean pay of a piece over the median time; its interval is that of the median, "
            "between two order statistics. From accepting to submitting a statement all time counts, also a pause.",
            f"The reward pays what it is now over the median of the newest {wages.NEWEST:,} pieces that were not "
            f"rejected; with fewer than {wages.ENOUGH_TO_TELL} over the time that the researcher expects.",
        ),
    )


def _pay_of(study: HITType, work: Work) -> dict[str, Cell]:
    wage = wages.as_of_now(study)
    return {
        "study": study.title,
        "number": str(study.pk),
        "submitted": len(work.seconds),
        "median": work.median,
        "paid_an_hour": work.hourly,
        "reward": float(wage.reward),
        "pays_an_hour": float(wage.rate),
        "floor": float(wage.floor),
        "floor_is": REACHED if wage.enough else BELOW,
    }


def _annotators(by_worker: Mapping[int, Work], studies: list[HITType], *, gifts: bool) -> Section:
    ledger = _ledger(studies, gifts=gifts).values_list("worker").annotate(total=Sum("amount"))
    earned = dict(ledger.values_list("worker", "total"))
    workers = sorted(by_worker.keys() | earned.keys())
    if not workers:
        return Section("annotators", "What each annotator earns", "", missing=NO_WORK)
    rows = sorted(
        (_earnings_of(worker, by_worker.get(worker, Work()), earned.get(worker, 0)) for worker in workers),
        key=_lowest_pay_first,
    )
    rates = [row["hourly"].value for row in rows if isinstance(row["hourly"], Estimate)]
    columns = (
        Column("annotator", "Annotator"),
        Column("hash", "Salted hash", Kind.HASH),
        *(Column(name, name.capitalize(), Kind.COUNT) for name in ("submitted", "approved", "rejected", "waiting")),
        Column("earned", "Earned", Kind.MONEY),
        Column("median", "Median time", Kind.DURATION),
        Column("hourly", "An hour", Kind.MONEY),
    )
    middle = f" Half of them make ${np.median(rates):,.2f} an hour or more." if rates else ""
    return Section(
        "annotators",
        "What each annotator earns",
        f"{len(rows):,} annotator{'s' * (len(rows) != 1)} earned ${float(sum(earned.values())):,.2f} so far.{middle}",
        {"annotators": len(rows), "pieces of work": sum(len(work.seconds) for work in by_worker.values())},
        Table(columns, tuple(rows)),
        charts.histogram({"Annotators": rates}, x_title="US dollars an hour", bins=20) if rates else None,
        notes=(
            "Annotators are named by the beginning of the salted hash that stands for them in exports; those who make "
            "least an hour stand first. Earned is what the ledger holds for them, paid or not; an hour is what their "
            "submitted work pays over its median time.",
        ),
    )


def _lowest_pay_first(row: Mapping[str, Cell]) -> tuple:
    """Whoever makes least an hour stands first, whoever made nothing yet last."""
    hourly = row["hourly"]
    return (hourly.value if isinstance(hourly, Estimate) else math.inf, row["hash"])


def _earnings_of(worker: int, work: Work, earned: Decimal) -> dict[str, Cell]:
    hashed = hashed_worker(worker)
    return {
        "annotator": hashed[:SHOWN_OF_HASH],
        "hash": hashed,
        "submitted": len(work.seconds),
        "approved": work.statuses.get(AssignmentStatus.APPROVED, 0),
        "rejected": work.statuses.get(AssignmentStatus.REJECTED, 0),
        "waiting": work.statuses.get(AssignmentStatus.SUBMITTED, 0),
        "earned": float(earned),
        "median": work.median,
        "hourly": work.hourly,
    }
