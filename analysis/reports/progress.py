"""Two sections of the report on pay: how far each study is, and how much of the work that waits is flagged."""

from collections.abc import Mapping
from datetime import datetime

from analysis.reports.cells import share_cell
from analysis.reports.frame import Cell, Column, Kind, Section, Table, Undefined
from analysis.reports.pay_words import ANNOTATORS, WORK
from annotator import watching
from annotator.admin.watching import state_of
from annotator.disputes import dispute_in
from annotator.evidence import evidence_on
from annotator.models import Assignment, AssignmentStatus, HITType

LOOKED_INTO = 50
"""In so many studies, the newest, statements without a majority are counted."""
LOOKED_THROUGH = 1000
"""In so much of the work that waits for review flagged pieces are looked for, the oldest first."""


def progress(studies: list[HITType], places: Mapping, works: Mapping, now: datetime) -> Section:
    rows = [_progress_of(study, places[study.pk], works[study.pk], now) for study in studies]
    for study, row in zip(studies[:LOOKED_INTO], rows, strict=False):
        row["disputed"] = dispute_in(study).without_majority
    wanted, filled = (sum(getattr(places[study.pk], name) for study in studies) for name in ("wanted", "filled"))
    columns = (
        Column("study", "Study"),
        Column("number", "Number"),
        Column("state", "State"),
        Column("wanted", "Places", Kind.COUNT),
        Column("filled", "Filled", Kind.COUNT),
        Column("taken", "Being worked on", Kind.COUNT),
        Column("free", "Free", Kind.COUNT),
        Column("closed", "Ended unfilled", Kind.COUNT),
        Column("today", "Filled in the last day", Kind.COUNT),
        Column("disputed", "Statements without a majority", Kind.COUNT),
        Column("last", "Last answer"),
        Column("left", "Left at this pace", Kind.DURATION),
    )
    return Section(
        "progress",
        "How far each study is",
        f"{filled:,} of {wanted:,} places are filled." if wanted else "No statement was published yet.",
        {"studies": len(studies)},
        Table(columns, tuple(rows)),
        notes=(
            "The pace is that of the last hour if 10 places were filled in it, else that of the last day. Times are "
            "UTC. Statements with known answers are not counted.",
            "Without a majority: all places are filled, and less than two thirds are of one toxicity class. It is "
            f"counted for the newest {LOOKED_INTO} studies.",
        ),
    )


def _progress_of(study: HITType, places: watching.Places, work: watching.Work, now: datetime) -> dict[str, Cell]:
    row: dict[str, Cell] = {
        "study": study.title,
        "number": str(study.pk),
        "state": state_of(study, places),
        "today": work.filled_last_day,
        **{name: getattr(places, name) for name in ("wanted", "filled", "taken", "free", "closed")},
    }
    if work.last_at:
        row["last"] = f"{work.last_at:%Y-%m-%d %H:%M}"
    pace = watching.pace_of(places, work, now)
    if pace:
        row["left"] = pace.left.total_seconds()
    elif places.open:
        row["left"] = Undefined("No place was filled in the last day, so that there is no pace.")
    return row


def review(studies: list[HITType]) -> Section:
    """How much of what waits for review is flagged, and of how many people."""
    waiting = Assignment.objects.filter(status=AssignmentStatus.SUBMITTED, hit__hit_type__in=studies)
    oldest = list(waiting.order_by("submitted_at", "pk").values_list("pk", flat=True)[:LOOKED_THROUGH])
    evidence = evidence_on(oldest)
    flagged = [row for row in evidence if row.flags]
    people = {row.assignment.worker_id for row in evidence}
    of_flagged = {row.assignment.worker_id for row in flagged}
    rows = tuple(
        {"what": what, "n": n, "flagged": of_n, "share": share_cell(of_n, n, "pieces of work that wait")}
        for what, of_n, n in (
            (WORK, len(flagged), len(evidence)),
            (ANNOTATORS, len(of_flagged), len(people)),
        )
    )
    columns = (
        Column("what", "What"),
        Column("n", "Looked at", Kind.COUNT),
        Column("flagged", "Flagged", Kind.COUNT),
        Column("share", "Share", Kind.SHARE, 1),
    )
    asks = "asks" if len(flagged) == 1 else "ask"
    waits = f"Of the {len(evidence):,} oldest pieces of work that wait, {len(flagged):,} {asks} for a second look."
    return Section(
        "review",
        "What waits for review",
        waits if evidence else "Nothing waits for review.",
        {"pieces of work": len(evidence)},
        Table(columns, rows),
        notes=("A flag decides nothing: quick readers and minorities are no cheats.",),
    )
