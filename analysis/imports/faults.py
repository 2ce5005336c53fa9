"""What is wrong with a file, and where: so that whoever made it can mend it."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SHOWN = 80
MOST_KEPT = 100_000
"""Faults beyond are counted only: a file with so many is the wrong file."""
FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@＝＋－＠]")
"""How a cell begins that a spreadsheet runs as a formula, or tears."""
COLUMNS = ("file", "line", "column", "value", "message")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one row: its first fault. ``line`` is the row's first line in the file, from 1."""

    line: int
    column: str
    value: str
    message: str
    file: str = ""

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}" if self.file else f"Line {self.line}"
        return f"{where}, {self.column}: {self.message}" if self.column else f"{where}: {self.message}"


class BadCell(ValueError):
    """A cell cannot be taken as it is; ``str`` says why and what to do."""

    def __init__(self, column: str, value: str, message: str):
        super().__init__(message)
        self.column, self.value = column, value


class Refused(ValueError):
    """Nothing of the file is stored; ``str`` says why, ``faults`` says where."""

    def __init__(self, message: str, faults: "Faults | None" = None):
        super().__init__(message)
        self.faults = faults or Faults()


class Faults:
    """The faults of an import, in the order in which they were found."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: list[Fault] = []
        self.file = ""

    def __iter__(self) -> Iterator[Fault]:
        return iter(self.kept)

    def add(self, line: int, message: str, *, column: str = "", value: str = "") -> None:
        self.count += 1
        if len(self.kept) < MOST_KEPT:
            self.kept.append(Fault(line, column[:200], beginning(value), message, self.file))

    def add_cell(self, line: int, bad: BadCell) -> None:
        self.add(line, str(bad), column=bad.column, value=bad.value)


def beginning(value: str) -> str:
    """The beginning of a value as it can be shown and stored anywhere.

    >>> beginning("a\\0b"), len(beginning("x" * 500))
    ('a␀b', 80)
    """
    return storable(value if len(value) <= SHOWN else f"{value[: SHOWN - 1]}…")


def storable(text: str) -> str:
    """A text with a sign in place of each character that PostgreSQL cannot store.

    >>> storable("a\\0b\\ud800")
    'a␀b?'
    """
    return text.replace("\0", "␀").encode(errors="replace").decode()


def csv_lines(faults: Iterable, *, file: str) -> Iterator[str]:
    """The faults as the lines of a CSV, header first; they may be ``Fault`` or rows of the database.

    ``file`` is what was imported: where it was no folder, no fault says which file it is in.

    It is read in spreadsheets, and quotes files of others: what would run as a formula gets an apostrophe in front.
    """
    writer = csv.writer(_Echo())
    yield writer.writerow(COLUMNS)
    for fault in faults:
        cells = [fault.file or file, *(getattr(fault, column) for column in COLUMNS[1:])]
        yield writer.writerow(map(_no_formula, cells))


def _no_formula(value: str | int) -> str | int:
    return f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value


class _Echo:
    """A file that hands back what is written."""

    def write(self, text: str) -> str:
        return text
