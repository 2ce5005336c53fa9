"""Tables whatever their format: named columns, and rows of texts with the line where each begins."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from analysis.imports.faults import Refused, beginning, storable
from analysis.imports.work import TICK, Work

MOST_NAMED = 40

Rows = Iterator[tuple[int, Sequence[str]]]


@dataclass
class Table:
    """A file's columns, and its rows: the line of each, and its cells in the order of the columns.

    ``rows`` notes on the work what is wrong with a row that cannot be read, and goes on.
    """

    name: str
    columns: tuple[str, ...]
    rows: Callable[[Work], Rows]
    position: Callable[[], int]
    places: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, column in enumerate(self.columns):
            if column != storable(column):
                raise Refused(
                    f"{self.name} has a column whose name has a character that cannot be stored: {beginning(column)}. "
                    "Rename it."
                )
            name = column.strip().lower()
            if name in self.places:
                raise Refused(f"{self.name} has the column {beginning(column)!r} twice. Rename or remove one of them.")
            self.places[name] = place

    def __contains__(self, column: str) -> bool:
        return column.lower() in self.places

    def need(self, columns: Iterable[str]) -> None:
        """Raise ``Refused`` unless all of ``columns`` are there."""
        missing = [column for column in columns if column not in self]
        if not missing:
            return
        has = ", ".join(map(beginning, self.columns[:MOST_NAMED])) or "none"
        raise Refused(
            f"{self.name} lacks the column{'s' if len(missing) > 1 else ''} {_listed(missing)}. It has: {has}."
        )

    def beyond(self, known: Iterable[str]) -> list[str]:
        known = {column.lower() for column in known}
        return [column for column in self.columns if column.strip().lower() not in known]

    def note_extra(self, work: Work, known: Iterable[str]) -> None:
        if extra := self.beyond(known):
            work.notes.append(f"Columns of {self.name} that were left out: {_listed(_some(extra))}.")

    def read(self, work: Work) -> Rows:
        """The rows; counts them, says how far the file is, and stops when told to."""
        for line, cells in self.rows(work):
            work.rows += 1
            if not work.rows % TICK:
                work.progress.at(self.position(), work.rows)
            yield line, cells
        work.progress.at(self.position(), work.rows)

    def pick(self, columns: Sequence[str]) -> Callable[[Sequence[str]], tuple[str, ...]]:
        """A function from a row's cells to those of ``columns``; empty where the file has no such column."""
        places = [self.places.get(column.lower(), -1) for column in columns]
        return lambda cells: tuple(cells[place] if place >= 0 else "" for place in places)


def _listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _some(names: Sequence[str]) -> list[str]:
    """Names that a file says, which may be many and long."""
    more = [f"{len(names) - MOST_NAMED:,} more"] if len(names) > MOST_NAMED else []
    return [*map(beginning, names[:MOST_NAMED]), *more]
