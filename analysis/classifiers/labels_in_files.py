"""Which values of a file's columns mean toxic, and which rows are wanted."""

import math
import re
from collections.abc import Mapping, Sequence

from analysis.imports.faults import BadCell, beginning

MOST_SEEN = 1000
"""Different values of a column that are kept to be named: a column with more is no column of labels."""
MOST_NAMED = 20
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


class WrongValue(ValueError):
    """What was asked for cannot be found in the file; ``str`` names what can."""


def same(value: str) -> str:
    """What is equal for values that mean the same: as numbers where they are some, apart from upper case otherwise.

    >>> same("1") == same("1.0"), same("Hate") == same("hate "), same("1") == same("one"), same("1_0") == same("10")
    (True, True, False, False)
    """
    number = number_in(value)
    return value.strip().casefold() if math.isnan(number) else repr(number)


def number_in(value: str) -> float:
    """The number that somebody wrote in digits; NaN for anything else, and for what is too large.

    >>> number_in(" -1.5e1 "), number_in("1_0"), number_in("inf")
    (-15.0, nan, nan)
    """
    number = float(value) if NUMBER.fullmatch(value.strip()) else math.nan
    return number + 0.0 if math.isfinite(number) else math.nan


class Seen:
    """The different values of a column, as they are first written."""

    def __init__(self) -> None:
        self._written: dict[str, str] = {}

    def add(self, key: str, value: str) -> None:
        if len(self._written) < MOST_SEEN:
            self._written.setdefault(beginning(key), beginning(value.strip()))

    def __str__(self) -> str:
        named = sorted(self._written.values())[:MOST_NAMED]
        more = ["…"] if len(self._written) > MOST_NAMED else []
        return ", ".join([*(value or "“”" for value in named), *more]) or "none"


class Labels:
    """Tells whether a label means toxic: one of the ``positive`` values, or a number ``above`` another."""

    def __init__(self, column: str, *, positive: Sequence[str] = (), above: float | None = None) -> None:
        if bool(positive) == (above is not None):
            raise WrongValue(
                "Say which labels mean toxic: the values that do (--positive), or above which number they do "
                "(--above), one of the two."
            )
        if above is not None and not math.isfinite(above):
            raise WrongValue(f"--above takes a number, not {above}.")
        self._column, self._positive, self._above = column, list(positive), above
        self._keys = {same(value) for value in positive}
        self.seen, self._occurred = Seen(), set[str]()

    @property
    def rule(self) -> str:
        """In words what means toxic."""
        if self._above is not None:
            return f"{self._column} above {self._above:g}"
        return f"{self._column} {' or '.join(map(beginning, self._positive))}"

    def is_toxic(self, label: str) -> bool:
        """Whether a label means toxic. Raises ``BadCell`` for what has to be a number and is none."""
        key = same(label)
        self.seen.add(key, label)
        if self._above is not None:
            return self._number(label) > self._above
        if key in self._keys:
            self._occurred.add(key)
            return True
        return False

    def refuse_what_never_occurs(self) -> None:
        """Raise ``WrongValue`` for a positive value that no row has; a misspelt one would make toxic texts benign."""
        if never := [value for value in self._positive if same(value) not in self._occurred]:
            raise WrongValue(
                f"No row that is taken has the label {beginning(never[0])!r} in {self._column}. The labels there are: "
                f"{self.seen}."
            )

    def _number(self, label: str) -> float:
        number = number_in(label)
        if math.isnan(number):
            raise BadCell(self._column, label, "This is no number, and labels are compared with one (--above).")
        return number


class Conditions:
    """Which rows are taken: those that have in each of some columns one of the values given for it."""

    def __init__(self, where: Mapping[str, Sequence[str]]) -> None:
        self.columns = tuple(where)
        self._values = [list(values) for values in where.values()]
        self._keys = [{same(value) for value in values} for values in self._values]
        self._seen = [Seen() for _ in self.columns]
        self._occurred = [set[str]() for _ in self.columns]

    def hold(self, cells: Sequence[str]) -> bool:
        holds = True
        for cell, keys, seen, occurred in zip(cells, self._keys, self._seen, self._occurred, strict=True):
            key = same(cell)
            seen.add(key, cell)
            if key in keys:
                occurred.add(key)
            else:
                holds = False
        return holds

    def refuse_what_never_occurs(self) -> None:
        """Raise ``WrongValue`` for a value that its column never has."""
        for column, values, seen, occurred in zip(self.columns, self._values, self._seen, self._occurred, strict=True):
            if never := [value for value in values if same(value) not in occurred]:
                raise WrongValue(f"No row has {column} {beginning(never[0])!r}. The values there are: {seen}.")
