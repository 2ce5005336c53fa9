"""Whether two classifiers differ on the same texts: DeLong's test, before against after training first."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from analysis import metrics
from analysis.comparable import ALPHA
from analysis.comparison import DELONG, CannotCompare, Difference
from analysis.reports import charts
from analysis.reports.cells import correct, difference_cells, difference_columns, test_notes
from analysis.reports.classifier_cells import TEST_SET, N, auc_cell, on_left_out
from analysis.reports.classifier_data import Evaluated, Scored, TestSet, of_same_texts
from analysis.reports.frame import Cell, Column, Estimate, Kind, Section, Table
from analysis.reports.validated import counted

MOST_PAIRS = 12
"""So many pairs of classifiers are compared on a test set."""
IN_FIGURE = 12
TITLE = "Do they differ?"
SAYS = (
    "Two classifiers on the same texts, by their AUC: first what training changed, after less before, then others "
    "against each other."
)
ONE_TEXT = "Only one text of a class is there: how much its rank varies is not known. A test needs two of each."
ALIKE = "Both rank every toxic text against every benign one alike: there is nothing to test."
SAME = "The difference is the same for every text, which leaves no variation that a test could rest on."
COLUMNS = (
    N,
    Column("first_auc", "AUC of the first", Kind.NUMBER, 3),
    Column("second_auc", "AUC of the second", Kind.NUMBER, 3),
    *difference_columns("First minus second", digits=3),
)
INTERVALS = "Intervals: 95 %, of one comparison each, as p is; p (Holm) is corrected."
AFTER, OTHERS = "after and before", "two classifiers"


def section(evaluated: Evaluated) -> Section:
    """A row for each pair, within bounds."""
    rows: list[dict[str, Cell]] = []
    left_out = 0
    for test_set in evaluated.test_sets:
        pairs = [*_pairs(evaluated, test_set)]
        left_out += len(pairs[MOST_PAIRS:])
        rows += [_row(test_set, *pair) for pair in pairs[:MOST_PAIRS]]
    if not rows:
        missing = "No test set was scored by two classifiers. Have a second one evaluated on the same set."
        return Section("pairs", TITLE, SAYS, missing=missing)
    rows.sort(key=lambda row: row["pair"] != AFTER)
    correct(rows)
    return Section(
        "pairs",
        TITLE,
        f"{SAYS} {_told(rows)}",
        {"comparisons": len(rows)},
        Table(_columns(evaluated), tuple(rows)),
        _chart(evaluated, [row for row in rows if row["pair"] == AFTER] or rows),
        notes=(
            *test_notes(rows),
            "A positive difference: the first tells toxic texts better. On many texts a difference that is too small "
            "to matter is significant, too: look at its size.",
            INTERVALS,
            *_on_left_out(left_out),
            *on_left_out(evaluated.scored),
            *evaluated.notes,
        ),
    )


def _pairs(evaluated: Evaluated, test_set: TestSet) -> Iterator[tuple[str, Scored, Scored]]:
    there = evaluated.on(test_set)
    before = {
        (scored.classifier, base.classifier): (AFTER, scored, base)
        for scored in reversed(there)
        if scored.trained
        for base in there
        if base.model == scored.trained.base and base.precision == scored.precision
    }
    yield from before.values()
    for second, first in combinations(there, 2):
        if (first.classifier, second.classifier) not in before:
            yield OTHERS, first, second


def _row(test_set: TestSet, pair: str, first: Scored, second: Scored) -> dict[str, Cell]:
    first, second = of_same_texts([first, second], "both have")
    return {
        "test_set": test_set.name,
        "pair": pair,
        "first": first.classifier,
        "second": second.classifier,
        "n": first.n,
        "first_auc": auc_cell(first),
        "second_auc": auc_cell(second),
        **difference_cells(lambda: _compared(first, second), most=1),
    }


def _compared(first: Scored, second: Scored) -> Difference:
    """The AUC of the first minus that of the second. Raises ``CannotCompare``."""
    if first.one_class:
        raise CannotCompare(first.one_class)
    toxic = first.results.toxic
    found = metrics.delong(first.results.probs, second.results.probs, toxic)
    if math.isnan(found.p):
        raise CannotCompare(ONE_TEXT if min(toxic.sum(), (~toxic).sum()) < 2 else SAME if found.difference else ALIKE)
    return Difference(found.difference, found.low, found.high, found.p, DELONG)


def _told(rows: Iterable[Mapping[str, Cell]]) -> str:
    tested = [row for row in rows if row["pair"] == AFTER and isinstance(row["difference"], Estimate)]
    if not tested:
        return "No classifier could be compared with the one it was trained from."
    better = [row for row in tested if row["difference"].value > 0]
    clear = [row for row in better if row["p_holm"] < ALPHA]
    return (
        f"Training made the AUC higher in {len(better):,} of {counted(len(tested), 'comparison')}, and in "
        f"{len(clear):,} by more than chance gives (p below {ALPHA}, corrected)."
    )


def _columns(evaluated: Evaluated) -> tuple[Column, ...]:
    first, second = Column("first", "First", names=evaluated.short), Column("second", "Second", names=evaluated.short)
    return TEST_SET, Column("pair", "Compared"), first, second, *COLUMNS


def _chart(evaluated: Evaluated, rows: Sequence[Mapping[str, Cell]]) -> charts.Chart:
    rows, short = rows[:IN_FIGURE], evaluated.short
    places = [f"{short[str(row['first'])]} − {short[str(row['second'])]}, {row['test_set']}" for row in rows]
    return charts.points(
        {"Difference of AUC": [row["difference"] for row in rows]}, places, x_title="", y_title="Difference of AUC",
        horizontal=True,
    )  # fmt: skip


def _on_left_out(left_out: int) -> list[str]:
    if not left_out:
        return []
    return [f"{MOST_PAIRS} pairs on a test set are compared; {counted(left_out, 'pair is', 'pairs are')} not."]
