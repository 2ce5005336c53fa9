"""What a report is made of: sections, each a table with its n, a sentence and perhaps a figure.

A number is shown with what says how sure it is, and what cannot be computed says why: NaN and infinity
are refused here, so that no page ever shows them.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from numbers import Integral, Real
from typing import Any


class Kind(StrEnum):
    """How the cells of a column are written."""

    TEXT = "text"
    STATEMENT = "statement"
    """A statement, which may hurt: pages blur it until asked."""
    HASH = "hash"
    """Somebody's salted hash, for files; pages name people by its beginning."""
    COUNT = "count"
    NUMBER = "number"
    SHARE = "share"
    """0 to 1, shown as per cent."""
    POINTS = "points"
    """A difference of shares, -1 to 1, shown as percentage points."""
    P_VALUE = "p"
    MONEY = "money"
    """US dollars."""
    DURATION = "duration"
    """Seconds."""


@dataclass(frozen=True)
class Estimate:
    """A number and, where there is one, its 95 % interval."""

    value: float
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        for number in (self.value, self.low, self.high):
            _refuse_no_number(number)


@dataclass(frozen=True)
class Undefined:
    """What stands where there is no number: a sentence that says what is missing."""

    reason: str


#: None: the column does not apply to the row.
Cell = str | int | float | Estimate | Undefined | None


@dataclass(frozen=True)
class Column:
    """A column; ``digits`` after the point, of a share after the point of the per cent.

    ``names`` are what people read in place of codes, which stay in JSON and CSV.
    """

    key: str
    label: str
    kind: Kind = Kind.TEXT
    digits: int = 2
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Rows by the keys of the columns; a key that a row lacks does not apply to it."""

    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Cell], ...]

    def __post_init__(self) -> None:
        keys = {column.key for column in self.columns}
        for row in self.rows:
            if foreign := row.keys() - keys:
                raise ValueError(f"A row has cells without a column: {', '.join(sorted(foreign))}.")
            for cell in row.values():
                _refuse_no_number(cell)


@dataclass(frozen=True)
class Section:
    """One table of a report, with what it shows.

    ``says`` is a sentence or two in plain words, ``n`` how many of what it rests on, ``paper`` where the paper has
    the same ("Figure 7"), ``notes`` what else a reader must know: the test and why, what was left out. ``chart`` is a
    figure as ``analysis.reports.charts`` makes them. ``missing`` says why there is nothing to show, if so.
    """

    key: str
    title: str
    says: str
    n: Mapping[str, int] = field(default_factory=dict)
    table: Table | None = None
    chart: Mapping[str, Any] | None = None
    paper: str = ""
    notes: Sequence[str] = ()
    missing: str = ""

    def __post_init__(self) -> None:
        try:
            json.dumps(self.chart, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"The chart of {self.key} holds what JSON does not: {error}.") from error


@dataclass(frozen=True)
class Report:
    """A report as it was worked out."""

    name: str
    title: str
    sections: tuple[Section, ...]

    def __post_init__(self) -> None:
        keys = [section.key for section in self.sections]
        if len(set(keys)) < len(keys):
            raise ValueError(f"Two sections of {self.name} have the same key.")


def pack(report: Report) -> dict[str, Any]:
    """A report as JSON can hold it; ``unpack`` gives it back.

    >>> table = Table((Column("share", "Share", Kind.SHARE),), ({"share": Estimate(0.5, 0.4, 0.6)},))
    >>> report = Report("groups", "Groups", (Section("all", "All", "Half.", {"statements": 2}, table),))
    >>> unpack(pack(report)) == report
    True

    Raises ``ValueError`` or ``TypeError`` for what JSON cannot hold, NaN for one.
    """
    sections = [_packed(section) for section in report.sections]
    packed = {"name": report.name, "title": report.title, "sections": sections}
    json.dumps(packed, allow_nan=False)
    return packed


def unpack(packed: Mapping[str, Any]) -> Report:
    """The report that was packed."""
    return Report(packed["name"], packed["title"], tuple(_unpacked(section) for section in packed["sections"]))


def _packed(section: Section) -> dict[str, Any]:
    packed = {**vars(section), "n": {what: int(n) for what, n in section.n.items()}, "notes": list(section.notes)}
    if section.table:
        packed["table"] = {
            "columns": [{**vars(column), "kind": column.kind.value} for column in section.table.columns],
            "rows": [{key: _packed_cell(cell) for key, cell in row.items()} for row in section.table.rows],
        }
    return packed


def _unpacked(packed: Mapping[str, Any]) -> Section:
    table = packed["table"] and Table(
        tuple(Column(**{**column, "kind": Kind(column["kind"])}) for column in packed["table"]["columns"]),
        tuple({key: _unpacked_cell(cell) for key, cell in row.items()} for row in packed["table"]["rows"]),
    )
    return Section(**{**packed, "table": table, "notes": tuple(packed["notes"])})


def _packed_cell(cell: Cell) -> Any:
    """A cell as JSON can hold it; numbers may be numpy's."""
    if isinstance(cell, Estimate):
        return {key: None if number is None else float(number) for key, number in vars(cell).items()}
    if isinstance(cell, Integral):
        return int(cell)
    if isinstance(cell, Real):
        return float(cell)
    return vars(cell) if isinstance(cell, Undefined) else cell


def _unpacked_cell(packed: Any) -> Cell:
    if isinstance(packed, Mapping):
        return Undefined(**packed) if "reason" in packed else Estimate(**packed)
    return packed  # type: ignore[no-any-return]


def _refuse_no_number(cell: Cell) -> None:
    if isinstance(cell, Real) and not math.isfinite(cell):
        raise ValueError(f"{cell} is no number to show: give an Undefined with the reason.")
