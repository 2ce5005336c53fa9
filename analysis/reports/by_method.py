"""ALICE and top-k beside each other: a figure of each and their difference, in each part of the statements."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pandas as pd

from analysis.comparison import (
    CannotCompare,
    Difference,
    difference_of_means,
    difference_of_shares,
    paired_difference,
    paired_difference_of_shares,
)
from analysis.labels import SCALE_HIGH, SCALE_LOW
from analysis.reports import charts
from analysis.reports.cells import (
    correct,
    difference_cells,
    difference_columns,
    mean_cell,
    share_cell,
    spread_notes,
    test_notes,
)
from analysis.reports.frame import Cell, Column, Estimate, Kind, Table
from analysis.reports.paper import Published
from analysis.reports.validated import ALL, Shown
from generation.models import Method

METHODS = {Method.ALICE.value: "ALICE", Method.TOPK.value: "top-k"}
"""The first minus the second is what is tested."""
OF_MEANS = "Intervals: 95 %, of means Student's t, of a difference that which belongs to its test."
OF_SHARES = "Intervals: 95 %, of shares Wilson's, of a difference Newcombe's."
BESIDE = "The corrected p is for the parts; all statements together are tested beside them."
INDEPENDENT = "The statements are taken as independent of each other, also where several have the same prompt."

#: One value for each statement, or for each prompt: of a share 0 or 1.
Sides = Mapping[str, pd.Series]


@dataclass(frozen=True)
class Measure:
    """What is told of the values of one side, and how two sides are compared.

    ``most`` is the greatest possible difference, ``intervals`` says which the intervals are.
    """

    key: str
    label: str
    kind: Kind
    digits: int
    cell: Callable[[pd.Series, str], Cell]
    compare: Callable[[pd.Series, pd.Series], Difference]
    most: float
    intervals: str


def _share(values: pd.Series, what: str) -> Cell:
    return share_cell(int(values.sum()), len(values), what)


def _between_shares(first: pd.Series, second: pd.Series) -> Difference:
    return difference_of_shares(int(first.sum()), len(first), int(second.sum()), len(second))


MEAN_TOXICITY = Measure(
    "mean",
    "Mean toxicity",
    Kind.NUMBER,
    2,
    partial(mean_cell, scale=(SCALE_LOW, SCALE_HIGH)),
    difference_of_means,
    SCALE_HIGH - SCALE_LOW,
    OF_MEANS,
)
PAIRED_TOXICITY = replace(MEAN_TOXICITY, compare=paired_difference)
SHARE = Measure("share", "Share", Kind.SHARE, 1, _share, _between_shares, 1, OF_SHARES)
PAIRED_SHARE = replace(SHARE, compare=paired_difference_of_shares)
PAIRED_MEAN_SHARE = replace(
    SHARE, label="Mean share", cell=partial(mean_cell, scale=(0, 1)), compare=paired_difference, intervals=OF_MEANS
)
"""Of prompts whose values are themselves shares, between 0 and 1."""


@dataclass(frozen=True)
class Parts:
    """The parts of the statements that a table has rows for.

    ``key`` and ``label`` are those of the column that names the part, ``values`` the values of both methods by part,
    ``things`` what the values are of ("judged statements"), ``names`` what a part is called in words after that. ``n``
    says how many there are where it is not the whole selection.
    """

    key: str
    label: str
    values: Mapping[str, Sides]
    names: Mapping[str, str]
    things: str = "judged statements"
    n_label: str = "Statements (n)"
    n: Mapping[str, int] = field(default_factory=dict)

    def what(self, part: str, method: str) -> str:
        """The values of one side in words: "judged statements of ALICE with a toxic prompt label"."""
        return " ".join(filter(None, [f"{self.things} of {METHODS[method]}", self.names[part]]))


def sides(table: pd.DataFrame, column: str) -> Sides:
    """The values of a column of statements by method."""
    return {method: table.loc[table["method"] == method, column] for method in METHODS}


def compared(
    parts: Parts,
    measure: Measure,
    *,
    says: Callable[[Iterator[str]], str],
    published: Mapping[tuple[str, str], Published] | None = None,
    notes: Sequence[str] = (),
) -> Shown:
    """A row for each part and method, the difference and its test in that of ALICE; a point for each in the chart.

    ``says`` makes the sentence of the figures in words, one a part: "ALICE 66.9 %, top-k 57.9 %".
    """
    published = published or {}
    rows = [row for part in parts.values for row in _rows(part, parts, measure, published)]
    # All statements together are no test beside their parts: it rests on the same ones.
    of_parts = [row for row in rows if row[parts.key] != ALL]
    correct(of_parts or rows)
    columns = (
        Column(parts.key, parts.label, names={ALL: "All"}),
        Column("method", "Method", names=METHODS),
        Column("n", parts.n_label, Kind.COUNT),
        Column(measure.key, measure.label, measure.kind, measure.digits),
        *([Column("paper", "Paper", measure.kind, measure.digits)] if published else []),
        *difference_columns("ALICE minus top-k", measure.kind, measure.digits),
    )
    return Shown(
        says(_told(parts, rows, measure)),
        table=Table(columns, tuple(rows)),
        chart=_chart(parts, rows, measure),
        paper=", ".join(dict.fromkeys(figure.place for figure in published.values())),
        notes=(
            *notes,
            measure.intervals,
            *test_notes(rows),
            *([BESIDE] if 0 < len(of_parts) < len(rows) else []),
            *spread_notes(row[measure.key] for row in rows),
        ),
        n=parts.n,
    )


def _rows(
    part: str, parts: Parts, measure: Measure, published: Mapping[tuple[str, str], Published]
) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    of = parts.values[part]
    for method in METHODS:
        row = {parts.key: part, "method": method, "n": len(of[method])}
        row[measure.key] = measure.cell(of[method], parts.what(part, method))
        if figure := published.get((part, method)):
            row["paper"] = figure.value
        rows.append(row)
    alice, topk = METHODS

    def compare() -> Difference:
        for method in METHODS:
            if of[method].empty:
                raise CannotCompare(f"There are no {parts.what(part, method)} to compare with.")
        return measure.compare(of[alice], of[topk])

    rows[0] |= difference_cells(compare, measure.most)
    return rows


def _told(parts: Parts, rows: Iterable[Mapping[str, Cell]], measure: Measure) -> Iterator[str]:
    rows = list(rows)
    for part in parts.values:
        figures = [
            f"{METHODS[row['method']]} {in_words(row[measure.key], measure.kind)}"
            for row in rows
            if row[parts.key] == part
        ]
        yield ", ".join(figures)


def in_words(cell: Cell, kind: Kind) -> str:
    """A figure in a sentence.

    >>> in_words(Estimate(0.669), Kind.SHARE), in_words(Estimate(3.6446), Kind.NUMBER)
    ('66.9 %', '3.64')
    """
    if not isinstance(cell, Estimate):
        return "undefined"
    return f"{100 * cell.value:.1f} %" if kind is Kind.SHARE else f"{cell.value:.2f}"


def _chart(parts: Parts, rows: Sequence[Mapping[str, Cell]], measure: Measure) -> charts.Chart:
    """Each part and method a place of its own, so that the paper's figure stands at the very one that it is of."""
    places = [f"{row[parts.key]}, {METHODS[row['method']]}" for row in rows]
    series = {
        name: [row[measure.key] if row["method"] == method else None for row in rows]
        for method, name in METHODS.items()
    }
    marks = {place: row["paper"] for place, row in zip(places, rows, strict=True) if "paper" in row}
    return charts.points(
        series,
        places,
        x_title=f"{parts.label}, method",
        y_title=measure.label,
        share=measure.kind is Kind.SHARE,
        stacked=True,
        marks=marks or None,
        limits=None if measure.kind is Kind.SHARE else (SCALE_LOW, SCALE_HIGH),
    )
