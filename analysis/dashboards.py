"""What the overview shows: what is done, how far studies are, what it costs, and what is wrong.

Counts are exact while they are little, from PostgreSQL's estimates where they are much; what takes adding up comes
from the stored report on pay, so that the page costs the same however much there is.
"""

from dataclasses import dataclass, field
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import connection, models
from django.http import HttpRequest

from analysis.attention import Rows, matters
from analysis.models import StoredReport
from analysis.reports import storing
from analysis.reports.frame import unpack
from analysis.reports.pay_words import OWED, PAID, PROMISED, RUNNING, WAITING
from annotator.durations import left_in_words
from annotator.models import HIT, Annotation, Assignment, Worker
from generation.admin import COUNTED_UP_TO, count_up_to, up_to_the_bound
from generation.models import Generation, GenerationRun

STUDIES_SHOWN = 10
COSTS = {"Owed": OWED, "Paid": PAID, "Waiting for review": WAITING, "Promised, at most": PROMISED}


@dataclass(frozen=True)
class StoredPay:
    """The stored report on pay: its rows by section, none before it was worked out for the first time."""

    stored: StoredReport | None = None
    rows: dict[str, Rows] = field(default_factory=dict)


def overview(request: HttpRequest, context: dict) -> dict:
    """The figures of the overview page, in the order of the flow."""
    user = request.user
    pay = _pay(user)
    running = [row for row in pay.rows.get("progress", []) if row["state"] == RUNNING]
    return context | {
        "tiles": _tiles(),
        "pay": pay.stored,
        "studies": [_study(row) for row in running[:STUDIES_SHOWN]] if user.has_perm("annotator.view_hittype") else [],
        "older_studies": max(0, len(running) - STUDIES_SHOWN),
        "costs": _costs(pay) if user.has_perm("annotator.view_payment") else [],
        "matters": matters(user, pay.rows),
    }


def _tiles() -> list[tuple[str, str]]:
    statements, hits, annotations, workers = about(Generation, HIT, Annotation, Worker)
    return [
        ("Runs at work", up_to_the_bound(GenerationRun.objects.open())),
        ("Statements", statements),
        ("HITs", hits),
        ("HITs with a free place", up_to_the_bound(HIT.objects.assignable().to_judge())),
        ("People at work now", up_to_the_bound(Assignment.objects.accepted())),
        ("Annotations", annotations),
        ("Workers", workers),
    ]


def _pay(user: User) -> StoredPay:
    """What is kept of the report on pay, of which each part is for those who may see it; the queue renews it."""
    if not (user.has_perm("annotator.view_hittype") or user.has_perm("annotator.view_payment")):
        return StoredPay()
    stored = storing.look_at("pay", {})
    if stored.payload is None:
        return StoredPay(stored)
    sections = unpack(stored.payload).sections
    return StoredPay(stored, {section.key: [*section.table.rows] for section in sections if section.table})


def _study(row: dict) -> dict:
    """A study as the page shows it."""
    left = row.get("left")
    return row | {
        "percent": 100 * row["filled"] // row["wanted"] if row["wanted"] else 0,
        "left": f"about {left_in_words(timedelta(seconds=left))}" if isinstance(left, float) else "",
    }


def _costs(pay: StoredPay) -> list[tuple[str, str]]:
    amounts = {row["what"]: row["amount"] for row in pay.rows.get("money", [])}
    return [(name, f"${amounts[what]:,.2f}") for name, what in COSTS.items() if what in amounts]


def about(*tables: type[models.Model]) -> list[str]:
    """How many rows each table has: counted up to the bound, and beyond as PostgreSQL last estimated it."""
    names = [model._meta.db_table for model in tables]
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, reltuples::bigint FROM pg_class WHERE oid = ANY(%s::regclass[])", [names])
        estimates = dict(cursor.fetchall())
    return [_about(model, estimates[name]) for model, name in zip(tables, names, strict=True)]


def _about(model: type[models.Model], estimate: int) -> str:
    number = count_up_to(COUNTED_UP_TO + 1, model._base_manager.all())
    if number <= COUNTED_UP_TO:
        return f"{number:,}"
    # A table is estimated a minute or so after it has grown.
    return f"≈ {estimate:,}" if estimate > COUNTED_UP_TO else f"more than {COUNTED_UP_TO:,}"
