"""Cells of reports: figures with their intervals, or the reason why there are none."""

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from analysis import comparison
from analysis.comparison import CannotCompare, Difference
from analysis.reports.frame import Cell, Column, Estimate, Kind, Undefined

NO_INTERVAL = (
    f"A mean without an interval is of fewer than {comparison.ENOUGH} values, of values that are all equal, or of "
    "values so near an end of their scale that the interval would leave it."
)
HOLM = "p (Holm) is p corrected for the several tests of this table (Holm, 1979)."


def mean_cell(values: ArrayLike, what: str, scale: tuple[float, float] = (-inf, inf)) -> Cell:
    """The mean of ``values`` with its t interval, without one where they do not carry it (say ``NO_INTERVAL`` then).

    ``what`` names the values where there are none: "judged statements of ALICE". ``scale`` is the least and the
    greatest possible value.
    """
    x = np.asarray(values, dtype=float)
    if not len(x):
        return Undefined(f"There are no {what}.")
    try:
        return Estimate(*comparison.mean_with_interval(x, scale))
    except CannotCompare as error:
        return Estimate(float(x.mean())) if np.isfinite(x).all() else Undefined(str(error))


def share_cell(k: int, n: int, what: str) -> Cell:
    """The share ``k / n`` with its Wilson interval; ``what`` names what it is a share of."""
    if not n:
        return Undefined(f"There are no {what}.")
    return Estimate(*comparison.share_with_interval(int(k), int(n)))


def difference_cells(compare: Callable[[], Difference], most: float = inf) -> dict[str, Cell]:
    """What ``compare`` gives, under the keys ``difference``, ``p`` and ``test``; the reason under all if it refuses.

    ``most`` is the greatest possible difference: an interval ends there, which leaves out nothing that could be true.
    """
    try:
        found = compare()
    except CannotCompare as error:
        return {"difference": Undefined(str(error)), "p": Undefined(str(error)), "test": "none"}
    low, high = (bound if bound is None else min(max(bound, -most), most) for bound in (found.low, found.high))
    return {"difference": Estimate(found.value, low, high), "p": found.p, "test": found.test}


def difference_columns(label: str, kind: Kind = Kind.NUMBER, digits: int = 2) -> tuple[Column, ...]:
    """The columns of ``difference_cells`` and of ``correct``; ``label`` says what is taken from what.

    ``kind`` is that of the figures compared: shares differ by percentage points.
    """
    return (
        Column("difference", label, Kind.POINTS if kind is Kind.SHARE else kind, digits),
        Column("p", "p", Kind.P_VALUE),
        Column("p_holm", "p (Holm)", Kind.P_VALUE),
        Column("test", "Test"),
    )


def correct(rows: Sequence[MutableMapping[str, Cell]]) -> None:
    """Give each row that has a p its Holm-corrected one as ``p_holm``; these rows are one family of tests."""
    tested = [row for row in rows if isinstance(row.get("p"), float)]
    for row, p in zip(tested, comparison.holm([float(row["p"]) for row in tested]), strict=True):  # type: ignore[arg-type]
        row["p_holm"] = p
    for row in rows:
        if isinstance(row.get("p"), Undefined):
            row["p_holm"] = row["p"]


def test_notes(rows: Iterable[MutableMapping[str, Cell]]) -> list[str]:
    """For each test that a row names, why it fits; and what the corrected p is, where there are several."""
    rows = list(rows)
    tests = dict.fromkeys(str(row["test"]) for row in rows if row.get("test", "none") != "none")
    notes = [f"{test[0].upper()}{test[1:]}: {comparison.WHY[test]}" for test in tests]
    if sum(isinstance(row.get("p"), float) for row in rows) > 1:
        notes.append(HOLM)
    return notes


test_notes.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


def spread_notes(cells: Iterable[Cell]) -> list[str]:
    """``NO_INTERVAL`` if one of the means has none."""
    return [NO_INTERVAL] if any(isinstance(cell, Estimate) and cell.low is None for cell in cells) else []
