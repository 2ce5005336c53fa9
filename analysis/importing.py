"""Importing a file: all of it in one transaction, or nothing."""

from dataclasses import dataclass
from pathlib import Path

import structlog
from django.db import DataError, connection, transaction
from django.utils import timezone

from analysis.imports import FORMATS
from analysis.imports.faults import Faults, Refused, storable
from analysis.imports.work import Options, Progress, Work, WrongOption
from analysis.models import DataImport, HumanLabel, ImportFault, ImportState
from annotator.models import HIT, Annotation, Assignment
from generation.auditing import note
from generation.models import Generation

__all__ = ["ImportLost", "Outcome", "Refused", "WrongOption", "import_file"]

ONE_AT_A_TIME = 7_305_001
"""PostgreSQL's number for our lock: two imports with the same rows would wait for each other, and for ever."""
MANY = 1000
GROWN = (Generation, HIT, Assignment, Annotation, HumanLabel)
"""Tables that an import can make much larger."""

log = structlog.get_logger(__name__)


class ImportLost(RuntimeError):
    """The import was stopped, or somebody else has taken it up; this one stores nothing."""


@dataclass(frozen=True)
class Outcome:
    """What an import read and stored. ``rows`` is ``new`` and ``known`` and ``bad`` together."""

    rows: int
    new: int
    known: int
    bad: int
    stored: dict[str, int]
    notes: list[str]
    faults: Faults

    def summary(self) -> str:
        return f"{self.rows:,} rows: {self.new:,} new, {self.known:,} there already, {self.bad:,} bad"


def import_file(
    *,
    format: str,
    path: Path | str,
    options: Options | None = None,
    by=None,
    record: DataImport | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Import a file, or for demonstrations and prompts a folder, and return what came of it.

    A second import of the same file changes nothing. Without ``by`` it is the operator who imports. ``record`` is the
    upload's row; without one the import makes its own. Raises ``Refused`` with the faults, and ``WrongOption``; then
    nothing is stored.
    """
    path, options = Path(path), options or Options()
    if format not in FORMATS:
        raise WrongOption(f"There is no format {format!r}. Choose one of: {', '.join(FORMATS)}.")
    # Who is not known any more may not do more than anybody.
    may_fill = by.has_perm("generation.fill_toxic_set") if by else record is None
    with transaction.atomic():
        record = record or DataImport.objects.create(
            format=format, file_name=storable(path.name)[:300], options=options.given(), created_by=by,
            state=ImportState.RUNNING, started_at=timezone.now(), bytes_total=size_of(path), bytes_read=size_of(path),
        )  # fmt: skip
        work = Work(options=options, record=record, may_fill_toxic_sets=may_fill, progress=progress or Progress())
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ONE_AT_A_TIME])
        _run(format, path, work)
        outcome = Outcome(
            rows=work.rows, new=work.new, known=work.known, bad=work.faults.count,
            stored={kind: count for kind, count in work.stored.items() if count},
            notes=[storable(sentence) for sentence in work.notes], faults=work.faults,
        )  # fmt: skip
        _finish(record, outcome)
        note(
            "file imported", by=by, subject=f"import {record.pk}",
            format=format, file=record.file_name, new=work.new, known=work.known, bad=work.faults.count,
        )  # fmt: skip
    if outcome.new >= MANY:
        _count_anew()
    log.info("file_imported", format=format, new=outcome.new, known=outcome.known, bad=outcome.bad)
    return outcome


def _count_anew() -> None:
    """Have PostgreSQL's estimates tell of what was imported at once: plans and the overview rest on them."""
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {', '.join(model._meta.db_table for model in GROWN)}")


def size_of(path: Path) -> int:
    """The bytes of a file, or of all text files of a folder; 0 if there is none."""
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*.txt") if file.is_file())
    return path.stat().st_size if path.exists() else 0


def _run(format: str, path: Path, work: Work) -> None:
    # Long texts, wherever they stand, go into the indexes in fewer and larger portions.
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL gin_pending_list_limit = '32MB'")
        cursor.execute("SET LOCAL work_mem = '64MB'")
    try:
        FORMATS[format](path, work)
    except DataError as error:
        raise Refused(f"PostgreSQL cannot store what the file says: {str(error).strip().splitlines()[0]}.") from error


def _finish(record: DataImport, outcome: Outcome) -> None:
    ended = DataImport.objects.filter(pk=record.pk, state=ImportState.RUNNING, leases=record.leases).update(
        state=ImportState.FINISHED, ended_at=timezone.now(), lease_expires_at=None,
        failure="", rows=outcome.rows, new=outcome.new, known=outcome.known, bad=outcome.bad,
        stored=outcome.stored, notes=outcome.notes, bytes_read=record.bytes_total,
    )  # fmt: skip
    if not ended:
        raise ImportLost("It was stopped, or somebody else has taken it up.")
    keep_faults(record, outcome.faults)


def keep_faults(record: DataImport, faults: Faults) -> None:
    ImportFault.objects.bulk_create(
        (
            ImportFault(
                data_import=record, file=storable(fault.file)[:300], line=fault.line, column=fault.column,
                value=fault.value, message=fault.message,
            )
            for fault in faults
        ),
        batch_size=2000,
    )  # fmt: skip
