"""How the cells of a report are written where people read them: on pages and in Markdown."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from analysis.reports.frame import Cell, Column, Estimate, Kind, Table, Undefined
from annotator.durations import in_words

DASH = "–"
MINUS = "−"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SMALLEST_P = 0.001
IN_WORDS = (Kind.TEXT, Kind.STATEMENT)
UNITS = {Kind.SHARE: " %", Kind.POINTS: " points"}
"""What stands after a number, in an estimate once."""
NO_COLUMN = Column("", "")


@dataclass(frozen=True)
class Shown:
    """A cell in words; ``note`` is the letter of the sentence that says why there is no number."""

    text: str
    note: str = ""
    column: Column = NO_COLUMN

    @property
    def is_number(self) -> bool:
        return self.column.kind not in IN_WORDS

    @property
    def is_statement(self) -> bool:
        return self.column.kind is Kind.STATEMENT


@dataclass(frozen=True)
class ShownTable:
    """A table in words, its first ``most`` rows; ``reasons`` by the letter that stands in their cells."""

    columns: tuple[Column, ...]
    rows: list[list[Shown]]
    left_out: int = 0
    reasons: dict[str, str] = field(default_factory=dict)

    in_words: tuple[Kind, ...] = IN_WORDS
    """The kinds of columns that hold no numbers."""

    @property
    def has_statements(self) -> bool:
        return any(column.kind is Kind.STATEMENT for column in self.columns)


def shown(table: Table, *, most: int | None = None) -> ShownTable:
    """The table in words; equal reasons of what is undefined are said once."""
    notes: dict[str, str] = {}
    columns = tuple(column for column in table.columns if column.kind is not Kind.HASH)
    rows = [[*_cells(row, columns, notes)] for row in table.rows[:most]]
    return ShownTable(columns, rows, len(table.rows) - len(rows), {letter: why for why, letter in notes.items()})


def _cells(row: Mapping[str, Cell], columns: tuple[Column, ...], notes: dict[str, str]) -> Iterator[Shown]:
    for column in columns:
        cell = row.get(column.key)
        if isinstance(cell, Undefined):
            letter = notes.setdefault(cell.reason, _letter(len(notes)))
            yield Shown(DASH, letter, column)
        else:
            yield Shown(in_cell(cell, column), "", column)


def _letter(number: int) -> str:
    """a to z, then aa, ab and so on.

    >>> _letter(0), _letter(25), _letter(26)
    ('a', 'z', 'aa')
    """
    before, this = divmod(number, len(LETTERS))
    return (_letter(before - 1) if before else "") + LETTERS[this]


def in_cell(cell: Cell, column: Column) -> str:
    """A cell in words: "0.46 (0.41 to 0.50)"; nothing where the column does not apply.

    >>> in_cell(Estimate(0.784, 0.77, 0.8), Column("share", "Share", Kind.SHARE, 1))
    '78.4 % (77.0 to 80.0)'
    >>> in_cell(Estimate(0.09, -0.01, 0.2), Column("difference", "Difference", Kind.POINTS, 1))
    '9.0 points (−1.0 to 20.0)'
    >>> in_cell(1234, Column("n", "n", Kind.COUNT)), in_cell(-0.0004, Column("d", "d", Kind.NUMBER))
    ('1,234', '0.00')
    >>> in_cell("topk", Column("method", "Method", names={"topk": "top-k"}))
    'top-k'
    >>> in_cell(0.00002, Column("p", "p", Kind.P_VALUE)), in_cell(95, Column("t", "Time", Kind.DURATION))
    ('< 0.001', '1 minute 35 seconds')
    """
    if cell is None:
        return ""
    if isinstance(cell, Undefined):
        return f"{DASH} ({cell.reason})"
    if isinstance(cell, str):
        return column.names.get(cell, cell)
    if isinstance(cell, Estimate):
        value = _number(cell.value, column)
        if cell.low is None or cell.high is None:
            return value
        unit = UNITS.get(column.kind, "")
        low, high = (_number(bound, column).removesuffix(unit) for bound in (cell.low, cell.high))
        return f"{value} ({low} to {high})"
    return _number(cell, column)


def _number(value: float, column: Column) -> str:
    match column.kind:
        case Kind.COUNT:
            return _signed(f"{value:,.0f}")
        case Kind.SHARE | Kind.POINTS:
            return _signed(f"{100 * value:.{column.digits}f}") + UNITS[column.kind]
        case Kind.P_VALUE:
            return f"< {SMALLEST_P}" if value < SMALLEST_P else f"{value:.3f}"
        case Kind.MONEY:
            return _signed(f"{value:,.2f}").replace(MINUS, f"{MINUS}$") if value < 0 else f"${value:,.2f}"
        case Kind.DURATION:
            return in_words(timedelta(seconds=float(value)))
        case _:
            return _signed(f"{value:,.{column.digits}f}")


def _signed(number: str) -> str:
    """With a true minus, and none before what is rounded to 0."""
    if number.startswith("-"):
        return number[1:] if not number.strip("-0.,") else MINUS + number[1:]
    return number
