"""What is wrong or waits for somebody: sentences for the overview, each with the page where something can be done.

What is counted is bounded or few. What takes adding up is read off the stored report on pay.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.timezone import localtime, now

from analysis.models import DataImport, ImportState, StoredReport
from analysis.reports.catalogue import REPORTS
from analysis.reports.frame import Cell
from analysis.reports.pay_words import ANNOTATORS, BELOW, OVER, RUNNING, WORK
from annotator.durations import left_in_words
from annotator.models import Assignment, AssignmentStatus
from generation.admin import up_to_the_bound
from generation.models import GenerationChunk, GenerationRun, Reading, RunState
from generation.readings import STOPPED

LATELY = timedelta(days=7)
"""What failed longer ago is no longer told of."""
PATIENCE = timedelta(minutes=5)
"""What waits for a worker longer than this is told of."""
NAMED = 3
"""So many studies are named one by one; of more it is said how many there are."""

Rows = list[Mapping[str, Cell]]


@dataclass(frozen=True)
class Matter:
    """A sentence, and the page where something can be done about it."""

    sentence: str
    address: str


def matters(user: User, pay: Mapping[str, Rows]) -> list[Matter]:
    """All that this user may know of; ``pay`` are the rows of the stored report on pay by section, if there is one."""
    since = now() - LATELY
    found: list[Matter | None] = []
    for permission, check in CHECKS:
        if user.has_perm(permission):
            found.append(check(since))
    found += _of_reports(user, since)
    if user.has_perm("annotator.view_hittype"):
        found += [*_below_floor(pay), *_ended_unfilled(pay, since), *_disputed(pay)]
    if user.has_perm("annotator.view_assignment"):
        found.append(_to_review(pay))
    return [matter for matter in found if matter]


# --- What failed, and what nobody takes up ------------------------------------------------------


def _failed_runs(since: datetime) -> Matter | None:
    failed = GenerationRun.objects.filter(state=RunState.FAILED, ended_at__gte=since)
    return _many(failed, "run", "failed", _list("generation_generationrun", state__exact=RunState.FAILED.value))


def _failed_readings(since: datetime) -> Matter | None:
    failed = Reading.objects.filter(finished_at__gte=since).exclude(failure__in=["", STOPPED])
    return _many(failed, "reading", "failed", _list("generation_reading"))


def _imports_of_nothing(since: datetime) -> Matter | None:
    nothing = DataImport.objects.filter(state__in=[ImportState.FAILED, ImportState.REFUSED], ended_at__gte=since)
    return _many(nothing, "import", "stored nothing", _list("analysis_dataimport"))


def _imports_with_faults(since: datetime) -> Matter | None:
    faulty = DataImport.objects.filter(state=ImportState.FINISHED, ended_at__gte=since, bad__gt=0)
    return _many(faulty, "import", "left out rows with faults", _list("analysis_dataimport"))


def _runs_that_nobody_takes_up(_since: datetime) -> Matter | None:
    oldest = GenerationRun.objects.waiting().filter(created_at__lt=now() - PATIENCE).order_by("created_at").first()
    if oldest is None:
        return None
    unended = GenerationRun.objects.open()
    if GenerationChunk.objects.unfinished().filter(run__in=unended, lease_expires_at__gte=now()).exists():
        return None  # somebody is at work, and comes to it
    address = reverse("admin:generation_generationrun_change", args=[oldest.pk])
    return Matter(_silent("Run", oldest.pk, oldest.created_at, queue="generation"), address)


def _imports_that_nobody_takes_up(_since: datetime) -> Matter | None:
    waiting = DataImport.objects.waiting().filter(created_at__lt=now() - PATIENCE).order_by("created_at")
    oldest = waiting.first()
    if oldest is None or DataImport.objects.filter(lease_expires_at__gte=now()).exists():
        return None
    address = reverse("admin:analysis_dataimport_change", args=[oldest.pk])
    return Matter(_silent("Import", oldest.pk, oldest.created_at, queue="default"), address)


CHECKS: tuple[tuple[str, Callable[[datetime], Matter | None]], ...] = (
    ("generation.view_generationrun", _failed_runs),
    ("generation.view_generationrun", _runs_that_nobody_takes_up),
    ("generation.view_reading", _failed_readings),
    ("analysis.view_dataimport", _imports_of_nothing),
    ("analysis.view_dataimport", _imports_with_faults),
    ("analysis.view_dataimport", _imports_that_nobody_takes_up),
)
"""Each with the permission that it takes; one or two queries."""


def _of_reports(user: User, since: datetime) -> Iterator[Matter]:
    """Reports that failed, and one that nobody works out; each for those who may see it."""
    seen = [name for name, kind in REPORTS.items() if user.has_perms(kind.permissions)]
    bad = Q(finished_at__gte=since) & ~Q(failure="") | Q(finished_at=None, asked_at__lt=now() - PATIENCE)
    reports = StoredReport.objects.filter(bad, name__in=seen).order_by("asked_at")
    rows = list(reports.only("name", "failure", "finished_at", "asked_at")[: 10 * NAMED])
    failed = dict.fromkeys(row.name for row in rows if row.finished_at and row.failure)
    for name in [*failed][:NAMED]:
        yield Matter(f"The report “{REPORTS[name].title}” could not be worked out.", _dashboard(name))
    waits = next((row for row in rows if row.finished_at is None), None)
    if waits and not StoredReport.objects.filter(finished_at=None, lease_expires_at__gte=now()).exists():
        title = REPORTS[waits.name].title
        yield Matter(_silent("The report", f"“{title}”", waits.asked_at, queue="reports"), _dashboard(waits.name))


# --- What the stored report on pay says -----------------------------------------------------------


def _running(pay: Mapping[str, Rows]) -> set[Cell]:
    return {row["number"] for row in pay.get("progress", []) if row["state"] == RUNNING}


def _below_floor(pay: Mapping[str, Rows]) -> Iterator[Matter]:
    running = _running(pay)
    below = [row for row in pay.get("studies", []) if row["floor_is"] == BELOW and row["number"] in running]
    for row in below[:NAMED]:
        pays = f"pays ${row['pays_an_hour']:,.2f} an hour, less than its floor of ${row['floor']:,.2f}"
        yield Matter(f"The study “{row['study']}” {pays}.", _study(row["number"]))
    if len(below) > NAMED:
        more = _number(len(below) - NAMED, "more study pays", "more studies pay")
        yield Matter(f"{more} less an hour than the floor.", _list("annotator_hittype"))


def _ended_unfilled(pay: Mapping[str, Rows], since: datetime) -> Iterator[Matter]:
    """Of studies that run, or whose last answer is not long ago."""
    lately = f"{since:%Y-%m-%d}"
    over = [
        row
        for row in pay.get("progress", [])
        if row["closed"] and (row["state"] == RUNNING or (row["state"] == OVER and row.get("last", "") >= lately))
    ]
    for row in over[:NAMED]:
        places = _number(row["closed"], "place", "places")
        yield Matter(
            f"{places} of the study “{row['study']}” ended unfilled, since HITs expired or were disposed of.",
            _study(row["number"]),
        )
    if len(over) > NAMED:
        yield Matter(f"Of {len(over) - NAMED:,} more studies places ended unfilled.", _list("annotator_hittype"))


def _disputed(pay: Mapping[str, Rows]) -> Iterator[Matter]:
    disputed = [row for row in pay.get("progress", []) if row.get("disputed") and row["state"] == RUNNING]
    for row in disputed[:NAMED]:
        statements = _number(row["disputed"], "complete statement", "complete statements")
        yield Matter(
            f"On {statements} of the study “{row['study']}” the annotators have no majority of two thirds.",
            _study(row["number"]),
        )


def _to_review(pay: Mapping[str, Rows]) -> Matter | None:
    """How much waits for review, as of now, and what of it was found to be flagged."""
    waiting: QuerySet = Assignment.objects.filter(status=AssignmentStatus.SUBMITTED, hit__hit_type__imported=False)
    number = up_to_the_bound(waiting)
    if number == "0":
        return None
    flagged = {row["what"]: row for row in pay.get("review", [])}
    of_work = flagged.get(WORK, {}).get("flagged", 0)
    sentence = (
        f"{number} {'piece' if number == '1' else 'pieces'} of work {'waits' if number == '1' else 'wait'} for review"
    )
    if of_work:
        people = _number(flagged[ANNOTATORS]["flagged"], "annotator", "annotators")
        sentence += (
            f"; of the {flagged[WORK]['n']:,} oldest, {of_work:,} by {people} "
            f"{'asks' if of_work == 1 else 'ask'} for a second look"
        )
    query = "?flagged=on" if of_work else ""
    return Matter(f"{sentence[0].upper()}{sentence[1:]}.", reverse("admin:annotator_review") + query)


# --- In words ---------------------------------------------------------------------------------------


def _many(rows: QuerySet, one: str, did: str, address: str) -> Matter | None:
    number = up_to_the_bound(rows)
    if number == "0":
        return None
    told = f"{number} {one if number == '1' else f'{one}s'} of the last {LATELY.days} days {did}."
    return Matter(told[0].upper() + told[1:], address)


def _number(number: Cell, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _silent(what: str, name: object, since: datetime, *, queue: str) -> str:
    waited = left_in_words(now() - since)
    return (
        f"{what} {name} has waited for a worker for {waited}, since {localtime(since):%Y-%m-%d %H:%M}: "
        f"none seems to listen to the queue “{queue}”."
    )


def _list(model: str, **filters: str) -> str:
    return reverse(f"admin:{model}_changelist") + (f"?{urlencode(filters)}" if filters else "")


def _study(number: Cell) -> str:
    return reverse("admin:annotator_hittype_change", args=[number])


def _dashboard(name: str) -> str:
    return f"{reverse('report', args=[REPORTS[name].page])}#{name}"
