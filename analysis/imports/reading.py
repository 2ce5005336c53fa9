"""Opening a file as a table: CSV, JSON lines or Parquet, by what is in it."""

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from analysis.imports.encodings import encoding_of, undecodable
from analysis.imports.faults import Refused
from analysis.imports.tables import Rows, Table
from analysis.imports.work import Work

LONGEST_CELL = 4_000_000
"""Characters. A cell beyond is a quote that was never closed; without a limit it would fill the memory."""
LONGEST_LINE = 16_000_000

NOT_TABLES = {
    b"\x1f\x8b": "is compressed by gzip. Unpack it first: gunzip FILE.",
    b"PK\x03\x04": "is a ZIP archive or an Excel workbook. Unpack it, or save the sheet as CSV UTF-8.",
    b"\xd0\xcf\x11\xe0": "is an old Excel workbook. Save the sheet as CSV UTF-8.",
    b"BZh": "is compressed by bzip2. Unpack it first.",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd. Unpack it first.",
    b"%PDF": "is a PDF. Give the table itself.",
}


@contextmanager
def table_in(path: Path, *, encoding: str = "") -> Iterator[Table]:
    """The table in a file, open as long as the context is. Raises ``Refused`` for what is none."""
    start = beginning_of(path)
    if start.startswith(b"PAR1") or path.suffix.lower() in (".parquet", ".pq"):
        with _parquet(path, start) as table:
            yield table
        return
    encoding = encoding_of(path, asked_for=encoding)
    try:
        with path.open("rb") as raw, TextIOWrapper(raw, encoding=encoding, newline="") as file:
            yield _json_lines(path, file, raw.tell) if _is_json(path, encoding) else _csv(path, file, raw.tell)
    except UnicodeError as error:
        raise undecodable(path, encoding, error) from None


def beginning_of(path: Path) -> bytes:
    """The first bytes of a file. Raises ``Refused`` for one that is missing, unreadable, empty or packed."""
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except FileNotFoundError:
        raise Refused(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise Refused(f"{path} is a folder. Folders are read for demonstrations and prompts; give one file.") from None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}.") from error
    for magic, sentence in NOT_TABLES.items():
        if start.startswith(magic):
            raise Refused(f"{path.name} {sentence}")
    if path.stat().st_size <= len(start) and not start.strip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"):
        raise Refused(f"{path.name} is empty.")
    return start


def _is_json(path: Path, encoding: str) -> bool:
    if path.suffix.lower() in (".jsonl", ".ndjson", ".json"):
        return True
    if path.suffix.lower() in (".csv", ".tsv"):
        return False
    with path.open(encoding=encoding, errors="replace") as file:
        return file.read(1000).lstrip().startswith("{")


def lines_of(file: TextIO, name: str) -> Iterator[str]:
    """The lines of a text with their ends. Raises ``Refused`` for one so long that the file has no line ends."""
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise Refused(
                f"Line {number:,} of {name} has more than {LONGEST_LINE:,} characters. It is no list of texts, or its "
                "line ends are lost."
            )
        yield line


# --- CSV -----------------------------------------------------------------------------------------


def _csv(path: Path, file, position) -> Table:
    reader = csv.reader(lines_of(file, path.name), delimiter=_delimiter(path, file), strict=True)
    csv.field_size_limit(LONGEST_CELL)
    header: list[str] = []
    while not any(header):
        try:
            header = next(reader)
        except StopIteration:
            raise Refused(f"{path.name} is empty.") from None
        except csv.Error as error:
            raise _broken(path, 1, error) from None
    return Table(path.name, tuple(header), lambda work: _csv_rows(path, reader, len(header), work), position)


def _delimiter(path: Path, file) -> str:
    """Comma, semicolon or tab: whichever the first line has most of."""
    first = ""
    for line in lines_of(file, path.name):
        if line.strip():
            first = line
            break
    file.seek(0)
    return max(",\t;", key=first.count) if first else ","


def _csv_rows(path: Path, reader, width: int, work: Work) -> Rows:
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise _broken(path, line, error) from None
        if len(cells) == width:
            yield line, cells
        elif cells:
            work.rows += 1
            work.faults.add(line, f"The row has {len(cells)} cells, the header {width}. Look for commas and quotes.")


def _broken(path: Path, line: int, error: csv.Error) -> Refused:
    if "unexpected end of data" in str(error):
        why = "a quote that opens in the row is never closed"
    elif "field larger than field limit" in str(error):
        why = f"a cell has more than {LONGEST_CELL:,} characters; probably a quote is not closed"
    elif "expected after" in str(error):
        why = "a quoted cell goes on after its quote; a quote within a cell is written twice"
    else:
        why = str(error)
    return Refused(f"{path.name} is no CSV from the row in line {line:,} on: {why}. Mend it; nothing was stored.")


# --- JSON lines ----------------------------------------------------------------------------------


def _json_lines(path: Path, file, position) -> Table:
    first = ""
    for first in lines_of(file, path.name):
        if first.strip():
            break
    file.seek(0)
    if first.lstrip("\ufeff \t").startswith("["):
        raise Refused(f"{path.name} is one JSON array. Write JSON lines: one object a line.")
    try:
        columns = tuple(json.loads(first))
        if not isinstance(json.loads(first), dict):
            raise ValueError("no object")
    except (ValueError, TypeError, RecursionError):
        raise Refused(f"{path.name} is no JSON lines: the first line is no object. Write one object a line.") from None
    return Table(path.name, columns, lambda work: _json_rows(lines_of(file, path.name), columns, work), position)


def _json_rows(lines: Iterator[str], columns: tuple[str, ...], work: Work) -> Rows:
    for line, written in enumerate(lines, start=1):
        if not written.strip():
            continue
        try:
            row = json.loads(written)
        except (ValueError, RecursionError) as error:
            work.rows += 1
            work.faults.add(line, f"This is no JSON object: {error}.")  # not quoted: it may say who somebody is
            continue
        if not isinstance(row, dict) or row.keys() - set(columns):
            work.rows += 1
            what = "no JSON object" if not isinstance(row, dict) else "an object with keys that the first has not"
            work.faults.add(line, f"This is {what}. All lines need the same keys.")
            continue
        yield line, [as_text(row.get(column)) for column in columns]


# --- Parquet -------------------------------------------------------------------------------------


@contextmanager
def _parquet(path: Path, start: bytes) -> Iterator[Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not start.startswith(b"PAR1"):
        raise Refused(f"{path.name} is no Parquet file: it does not begin with PAR1. Is its suffix right?")
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise Refused(f"{path.name} is no whole Parquet file. It may be cut off: fetch it again. ({error})") from error
    done = [0]
    with file:
        names = tuple(file.schema_arrow.names)
        yield Table(path.name, names, lambda work: _parquet_rows(path, file, done), lambda: done[0])


def _parquet_rows(path: Path, file, done: list[int]) -> Rows:
    import pyarrow as pa

    size, total, row = path.stat().st_size, max(1, file.metadata.num_rows), 0
    try:
        for batch in file.iter_batches(batch_size=2_000):
            for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                row += 1
                yield row, [value if type(value) is str else as_text(value) for value in cells]
            done[0] = size * row // total
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise Refused(f"{path.name} cannot be read after row {row:,}: {error}.") from error


def as_text(value: Any) -> str:
    """A value as a CSV would have it.

    >>> as_text(None), as_text(True), as_text(1.5), as_text(["a", "b"])
    ('', 'true', '1.5', "['a', 'b']")
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)
