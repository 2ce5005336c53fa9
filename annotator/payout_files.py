"""A payout as CSV for whoever pays: one row a worker.

Rows and amounts of a payout never change; what the payer knows a worker by is as it stands when
the file is fetched, so that a mistake in it can be mended.
"""

import csv
from collections.abc import Callable, Iterator

from django.db.models import Count, Max, Min, Q, QuerySet, Sum

from annotator.models import Invitation, Payment, PaymentKind, Payout
from annotator.spreadsheets import harmless

CHUNK = 2000
CURRENCY = "USD"

COLUMNS: dict[str, Callable[[dict], object]] = {
    "payout": lambda row: row["payout"],
    "worker": lambda row: row["worker__pseudonym"],
    "pay_reference": lambda row: harmless(row["worker__pay_reference"]),
    "panel": lambda row: harmless(row["worker__panel__name"] or ""),
    "invitation_notes": lambda row: harmless(row["notes"]),
    "amount": lambda row: row["total"],
    "currency": lambda row: CURRENCY,
    "assignments": lambda row: row["assignments"],
    "tests": lambda row: row["tests"],
    "bonuses": lambda row: row["bonuses"],
    "first_day": lambda row: row["first"].date(),
    "last_day": lambda row: row["last"].date(),
}


class _Echo:
    """A file that hands back what is written, so that rows can be streamed."""

    def write(self, text: str) -> str:
        return text


def csv_lines(payout: Payout) -> Iterator[str]:
    """The lines of the CSV, header first, by pseudonym; days are those of the ledger's rows, in UTC."""
    writer = csv.writer(_Echo())
    yield writer.writerow(COLUMNS)
    notes = _notes(payout)
    for row in by_worker(payout).iterator(chunk_size=CHUNK):
        row |= {"payout": payout.pk, "notes": "; ".join(notes.get(row["worker"], []))}
        yield writer.writerow([value(row) for value in COLUMNS.values()])


def by_worker(payout: Payout) -> QuerySet:
    """What each worker gets of a payout, with what the payer knows them by."""
    return (
        Payment.objects.filter(paid_out__payout=payout)
        .values("worker", "worker__pseudonym", "worker__pay_reference", "worker__panel__name")
        .annotate(
            total=Sum("amount"),
            assignments=Count("pk", filter=Q(kind=PaymentKind.ASSIGNMENT)),
            tests=Count("pk", filter=Q(kind=PaymentKind.TEST)),
            bonuses=Count("pk", filter=Q(kind=PaymentKind.BONUS)),
            first=Min("created_at"),
            last=Max("created_at"),
        )
        .order_by("worker__pseudonym")
    )


def _notes(payout: Payout) -> dict[int, list[str]]:
    """To whom the invitations of each worker were sent, each note once."""
    paid = Payment.objects.filter(paid_out__payout=payout).order_by().values("worker")
    noted = Invitation.objects.filter(worker__in=paid).exclude(note="").order_by("pk")
    notes: dict[int, list[str]] = {}
    for worker, note in noted.values_list("worker", "note"):
        if note not in notes.setdefault(worker, []):
            notes[worker].append(note)
    return notes
