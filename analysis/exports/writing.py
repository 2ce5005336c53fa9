"""Writing an export: PostgreSQL's COPY puts it straight into a file, in the format that was asked for.

A download is made whole in a temporary file before its first byte leaves. So it takes a buffer's memory however large
it is, a slow reader holds neither a connection nor a snapshot of the database, what goes wrong is an answer and not
half a file, and the audit trail knows how many rows were let out.
"""

import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from analysis.exports import EXPORTS
from analysis.exports.columns import Export
from analysis.exports.filtering import filters_from, in_words
from analysis.exports.sql import as_cells, as_objects
from analysis.exports.workers import salt_at_hand
from generation.auditing import note

BUFFER = 64 * 1024
CONTENT_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
FORMATS = tuple(CONTENT_TYPES)

AS_CSV = "COPY ({query}) TO STDOUT WITH (FORMAT csv, HEADER)"
# JSON writes control characters as words, so that these two stand nowhere in it and nothing is quoted.
AS_LINES = r"COPY ({query}) TO STDOUT WITH (FORMAT csv, DELIMITER E'\x02', QUOTE E'\x01')"


# Rows are read in their order along an index, and what belongs to them is looked up and remembered: nothing large is
# sorted first. Compiling a statement that runs once takes longer than it saves.
PLAN = "SET LOCAL enable_sort = off; SET LOCAL work_mem = '64MB'; SET LOCAL jit = off"
PLAN_AS_USUAL = "SET LOCAL enable_sort TO DEFAULT; SET LOCAL work_mem TO DEFAULT; SET LOCAL jit TO DEFAULT"


class UnknownExport(LookupError):
    """There is no such export, or none in this format; the message names those there are."""


class Download:
    """A finished export: its bytes in pieces, once; ``rows`` and ``size`` say how much it is."""

    def __init__(self, file: BinaryIO, rows: int) -> None:
        self.rows = rows
        self.size = file.seek(0, os.SEEK_END)
        self._file = file
        self.close = weakref.finalize(self, file.close)  # also of one that nobody reads
        file.seek(0)

    def __iter__(self) -> Iterator[bytes]:
        with self._file:
            while piece := self._file.read(BUFFER):
                yield piece


def headers_of(made: Download, name: str, format: str) -> dict[str, str]:
    """What a browser is told of a file that it downloads."""
    return {
        "Content-Type": CONTENT_TYPES[format],
        "Content-Disposition": f'attachment; filename="{name}-{timezone.now():%Y-%m-%d}.{format}"',
        "Content-Length": str(made.size),
    }


def find(name: str) -> Export:
    """The export of this name; raises ``UnknownExport``."""
    if name not in EXPORTS:
        raise UnknownExport(f"There is no export {name!r}. Choose one of: {', '.join(EXPORTS)}.")
    return EXPORTS[name]


def known_format(format: str) -> str:
    """``format`` if there is one of this name; raises ``UnknownExport``."""
    if format not in FORMATS:
        raise UnknownExport(f"There is no format {format!r}. Choose one of: {', '.join(FORMATS)}.")
    return format


def stream(
    name: str, format: str = "csv", filters: Mapping | None = None, excel_safe: bool = False, *, by=None
) -> Download:
    """An export for whoever downloads it, noted in the audit trail; iterate over it for its bytes.

    ``filters`` are as a form or a query string has them. Raises ``UnknownExport`` and ``filtering.WrongFilter``.
    """
    export = find(name)
    known_format(format)
    chosen = filters_from(filters or {}, takes=export.takes, export=name)
    with a_file() as file:
        rows = write(export, format, file, chosen, excel_safe=excel_safe)
        note_export(export, format, rows=rows, filters=chosen, excel_safe=excel_safe, by=by)
    return Download(file, rows)


def to_file(
    path: Path, name: str, format: str, filters: Mapping | None = None, excel_safe: bool = False, *, by=None
) -> int:
    """Write an export to ``path`` and return its number of rows; what breaks off leaves the file as it was.

    Raises what ``stream`` does, and ``OSError``.
    """
    export = find(name)
    known_format(format)
    chosen = filters_from(filters or {}, takes=export.takes, export=name)
    descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as out:
            rows = write(export, format, out, chosen, excel_safe=excel_safe)
            note_export(export, format, rows=rows, filters=chosen, excel_safe=excel_safe, by=by)
            out.flush()
            os.fchmod(out.fileno(), 0o666 & ~_umask())
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise
    return rows


def write(export: Export, format: str, out: BinaryIO, filters: Mapping, *, excel_safe: bool = False) -> int:
    """Write an export and return its number of rows; ``filters`` are as ``filters_from`` returns them.

    ``excel_safe`` is about CSV: no spreadsheet takes the other formats for formulas.
    """
    with one_snapshot():
        return _write(export, format, out, filters, excel_safe=excel_safe)


def _write(export: Export, format: str, out: BinaryIO, filters: Mapping, *, excel_safe: bool) -> int:
    columns = export.columns(filters)
    if format == "csv":
        return _copy(AS_CSV, as_cells(export, columns, filters, excel_safe=excel_safe), out)
    if format == "jsonl":
        return _copy(AS_LINES, as_objects(export, columns, filters), out)
    from analysis.exports.parquet import write_parquet  # its library is large, and few processes need it

    with a_file() as cells:
        rows = _copy(AS_CSV, as_cells(export, columns, filters, excel_safe=False), cells)
        cells.seek(0)
        write_parquet(cells, out, columns)
        cells.close()
    return rows


@contextmanager
def one_snapshot() -> Iterator[None]:
    """All that is read within is of one moment; nothing others do meanwhile shows."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield


def note_export(export: Export, format: str, *, rows: int, filters: Mapping, excel_safe: bool, by) -> None:
    """Write into the audit trail who let what out."""
    details = {"format": format, "rows": rows, "filters": in_words(filters)}
    if excel_safe and format == "csv":
        details["excel_safe"] = True
    note(f"{export.name} exported", by=by, **details)


@contextmanager
def a_file() -> Iterator[BinaryIO]:
    """A temporary file without a name, which stays open; closed if what is done with it goes wrong."""
    file = tempfile.TemporaryFile(dir=settings.VAR)  # noqa: SIM115 - whoever reads it closes it
    try:
        yield file
    except BaseException:
        file.close()
        raise


def _copy(copy: str, query: tuple[str, list], out: BinaryIO) -> int:
    sql, parameters = query
    with transaction.atomic(), salt_at_hand(), connection.cursor() as cursor:
        cursor.execute(PLAN)
        # COPY takes no parameters: the driver writes them into the statement.
        statement = cursor.cursor.mogrify(sql, parameters).decode()
        cursor.cursor.copy_expert(copy.format(query=statement), out)
        rows = cursor.rowcount
        cursor.execute(PLAN_AS_USUAL)
    return rows


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
