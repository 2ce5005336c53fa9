"""How classifiers do on parts of a test set: false alarms by group, and what is told rightly by functionality."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from analysis import metrics
from analysis.reports import charts
from analysis.reports.cells import share_cell
from analysis.reports.classifier_cells import (
    INTERVALS,
    MOST_LINES,
    TAKEN,
    TEST_SET,
    WILSON,
    N,
    classifier_column,
    counts_of,
    figure_cells,
    group_rates,
    on_left_out,
    spread_cell,
    that_fit,
)
from analysis.reports.classifier_data import Evaluated, Scored, TestSet, of_same_texts
from analysis.reports.frame import Cell, Column, Kind, Section, Table
from analysis.reports.validated import counted, told_apart
from generation.models import TargetGroup

MOST_PARTS, IN_FIGURE = 40, 14
"""So many groups and functionalities of a test set are shown, and so many groups drawn, those with the most texts."""

#: What share of the chosen texts, ``(N,)`` of bool, a classifier tells so.
Share = Callable[[Scored, np.ndarray], Cell]


def sections(evaluated: Evaluated) -> Iterator[Section]:
    """The spreads of all test sets, then the groups of each, then the functionalities."""
    yield _spreads(evaluated)
    for test_set in evaluated.test_sets:
        if any(any(scored.results.groups) for scored in evaluated.on(test_set)):
            yield _groups(evaluated, test_set)
    for test_set in evaluated.test_sets:
        if any(any(scored.results.functionalities) for scored in evaluated.on(test_set)):
            yield _functionalities(evaluated, test_set)


# --- False alarms by group ------------------------------------------------------------------------

SPREADS = (
    Column("false_positive_rate", "False-positive rate", Kind.SHARE, 1),
    Column("groups", "Groups compared", Kind.COUNT),
    Column("lowest", "Lowest"),
    Column("highest", "Highest"),
    Column("spread", "Spread", Kind.POINTS, 1),
)
NONE_SHARED = "These classifiers have scored no text in common"
SAME_TEXTS = "Of texts that some of these classifiers have no score of, none has a part in this table."
CONCERN = "The paper's concern: that a text is taken for toxic because it mentions a minority."


def _spreads(evaluated: Evaluated) -> Section:
    title, says = "False alarms by group", f"How far the false-positive rates of groups lie apart. {CONCERN}"
    shown = [
        scored for test_set in evaluated.test_sets for scored in evaluated.on(test_set) if any(scored.results.groups)
    ]
    if not shown:
        missing = "No test set says whom its texts are about. Give the column with --group when you import one."
        return Section("spreads", title, says, missing=missing)
    return Section(
        "spreads",
        title,
        says,
        {"evaluations": len(shown)},
        Table((TEST_SET, classifier_column(evaluated), *SPREADS), tuple(map(_row_of_spread, shown))),
        notes=(
            f"The spread is the largest false-positive rate less the smallest, of groups with {metrics.LEAST} benign "
            "texts or more: chance alone would part smaller ones.",
            TAKEN,
            INTERVALS,
            *on_left_out(shown),
        ),
    )


def _row_of_spread(scored: Scored) -> dict[str, Cell]:
    names = _names(scored.test_set)
    rates = {group: rate.rate for group, rate in group_rates(scored).items() if rate.n >= metrics.LEAST}
    row: dict[str, Cell] = {
        "test_set": scored.test_set.name,
        "classifier": scored.classifier,
        "false_positive_rate": figure_cells(scored)["false_positive_rate"],
        "groups": len(rates),
        "spread": spread_cell(scored),
    }
    for key, extreme in (("lowest", min), ("highest", max)) if len(rates) > 1 else ():
        group = extreme(rates, key=rates.__getitem__)
        row[key] = f"{names.get(group, group)} ({100 * rates[group]:.1f} %)"
    return row


def _groups(evaluated: Evaluated, test_set: TestSet) -> Section:
    shown, notes = _that_fit(evaluated, test_set)
    groups, benign = shown[0].results.groups, ~shown[0].results.toxic
    parts = {name: chosen & benign for name, chosen in _parts(groups, _names(test_set)).items()}
    rows = [_row(name, shown, chosen, _false_alarms) for name, chosen in parts.items()]
    key, title = f"groups-{test_set.key}", f"False-positive rate by group on {test_set.name}"
    says = f"The share of benign texts about a group that are taken for toxic. {CONCERN}"
    if not rows:
        return Section(key, title, says, notes=tuple(notes), missing=f"{NONE_SHARED} that is about a group.")
    columns = _of_classifiers(evaluated, shown)
    most = sorted(rows, key=lambda row: -int(row["n"]))[:IN_FIGURE]
    drawn = [row for row in rows if row in most]
    return Section(
        key,
        title,
        says,
        {"benign texts": sum(int(row["n"]) for row in rows)},
        Table((Column("part", "Group"), Column("n", "Benign texts (n)", Kind.COUNT), *columns), tuple(rows)),
        charts.points(
            {column.label: [row[column.key] for row in drawn] for column in columns[-MOST_LINES:]},
            [str(row["part"]) for row in drawn],
            x_title="Group",
            y_title="False-positive rate",
            share=True,
            horizontal=True,
            limits=(0, 1),
        ),
        notes=(TAKEN, WILSON, *notes, *_on_parts(groups, "groups"), *_on_drawn(rows, columns)),
    )


def _on_drawn(rows: Sequence[Mapping[str, Cell]], columns: Sequence[Column]) -> list[str]:
    if len(rows) <= IN_FIGURE and len(columns) <= MOST_LINES:
        return []
    return [f"The figure has room for {IN_FIGURE} groups and {MOST_LINES} classifiers; the table has the others."]


# --- Functionalities ------------------------------------------------------------------------------


def _functionalities(evaluated: Evaluated, test_set: TestSet) -> Section:
    shown, notes = _that_fit(evaluated, test_set)
    values = shown[0].results.functionalities
    rows = [_row(name, shown, chosen, _right) for name, chosen in _parts(values, {}).items()]
    key, title = f"functionalities-{test_set.key}", f"Functionalities of {test_set.name}"
    says = "The share of texts that are told rightly, by what they test."
    if not rows:
        return Section(
            key, title, says, notes=tuple(notes), missing=f"{NONE_SHARED} of which the set says what it tests."
        )
    columns = _of_classifiers(evaluated, shown)
    return Section(
        key,
        title,
        says,
        {"texts": sum(int(row["n"]) for row in rows)},
        Table((Column("part", "Functionality"), N, *columns), tuple(rows)),
        charts.heatmap(
            [str(row["part"]) for row in rows],
            [column.label for column in columns],
            [[row[column.key] for column in columns] for row in rows],
            share=True,
        ),
        notes=(TAKEN, WILSON, *notes, *_on_parts(values, "functionalities")),
    )


def _that_fit(evaluated: Evaluated, test_set: TestSet) -> tuple[list[Scored], list[str]]:
    """Those that there is room for, on the texts that all of them have scored: what a row has is of the same texts."""
    found, notes = that_fit(evaluated, test_set)
    shown = of_same_texts(found, "all have")
    return shown, notes if shown == found else [*notes, SAME_TEXTS]


def _of_classifiers(evaluated: Evaluated, shown: Sequence[Scored]) -> list[Column]:
    return [Column(_key(scored), evaluated.short[scored.classifier], Kind.SHARE, 1) for scored in shown]


def _names(test_set: TestSet) -> dict[str, str]:
    """What groups are called; those of a file as it calls them."""
    return told_apart(dict(TargetGroup.objects.values_list("slug", "name"))) if test_set.is_humanval else {}


def _parts(values: Sequence[str], names: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Which texts, ``(N,)`` of bool, are of which group or functionality, those with the most texts, by name."""
    array = np.asarray(values, dtype=object)
    found = {value: array == value for value in dict.fromkeys(values) if value}
    most = sorted(found, key=lambda value: (-int(found[value].sum()), value))[:MOST_PARTS]
    return {names.get(value, value): found[value] for value in sorted(most)}


def _on_parts(values: Sequence[str], what: str) -> list[str]:
    more = len({value for value in values if value}) - MOST_PARTS
    silent = sum(not value for value in values)
    return [
        *([f"The {MOST_PARTS} {what} with the most texts are shown; {more:,} more are not."] if more > 0 else []),
        *([f"Left out: {counted(silent, 'text')} of which the set says none."] if silent else []),
    ]


def _row(name: str, shown: Sequence[Scored], chosen: np.ndarray, cell: Share) -> dict[str, Cell]:
    return {"part": name, "n": int(chosen.sum())} | {_key(scored): cell(scored, chosen) for scored in shown}


def _key(scored: Scored) -> str:
    return f"classifier_{scored.classifier}"


def _false_alarms(scored: Scored, benign: np.ndarray) -> Cell:
    counts = counts_of(scored, benign)
    return share_cell(counts.false_positives, int(benign.sum()), "benign texts about this group")


def _right(scored: Scored, chosen: np.ndarray) -> Cell:
    counts = counts_of(scored, chosen)
    return share_cell(counts.true_positives + counts.true_negatives, int(chosen.sum()), "texts")
