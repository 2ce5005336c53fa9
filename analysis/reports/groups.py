"""The report ``groups``: whether statements refer to the group they were meant to be about (paper, appendix D)."""

from collections.abc import Mapping

import pandas as pd

from analysis.comparison import difference_of_shares
from analysis.references import OTHER
from analysis.reports import charts, paper, referenced
from analysis.reports.cells import correct, difference_cells, difference_columns, share_cell, test_notes
from analysis.reports.frame import Cell, Column, Kind, Report, Table
from analysis.reports.validated import ALL, Part, Shown, Validated, groups_in_order, nothing_known, percent, read
from generation.models import Method

METHODS = {Method.ALICE: "ALICE", Method.TOPK: "top-k"}
EXACT = (
    "A statement refers to its group if at least one annotator saw a direct or indirect reference to the very group "
    "that its prompt was about."
)


def make(filters: Mapping) -> Report:
    """The report over what the filters leave."""
    return Report("groups", "Groups", read(filters).sections(PARTS))


def _mentions(validated: Validated) -> Shown:
    known = validated.statements[validated.statements["refers"].notna()]
    if known.empty:
        return nothing_known(validated.statements, f"says {referenced.WHOM}")
    names = groups_in_order(known["group"])
    of_groups = validated.of_paper(paper.MENTIONS, "group", "method")
    of_all = validated.of_paper({ALL: paper.MENTIONS_OF_ALL}, "method")
    rows = [
        _row(name, known[known["group"] == slug], of_groups.get(slug), f" about {name}") for slug, name in names.items()
    ]
    correct(rows)
    everything = _row("All groups", known, of_all.get(ALL))
    shown = [everything, *rows]
    counts = {method: _counts(known, method) for method in METHODS}
    return Shown(
        "At least one annotator saw a reference to the group of the prompt: "
        + "; ".join(
            f"{METHODS[method]} {percent(*count) if count[1] else 'has no such statements'}"
            for method, count in counts.items()
        )
        + ".",
        table=Table((*COLUMNS, *(PAPER if of_groups else ())), (*rows, everything)),
        chart=charts.points(
            {name: [row[method.value] for row in shown] for method, name in METHODS.items()},
            [str(row["group"]) for row in shown],
            x_title="",
            y_title="Share of statements",
            share=True,
            horizontal=True,
        ),
        paper="Table 6; appendix E for the large sample",
        notes=(
            EXACT,
            *test_notes([*rows, everything]),
            "The corrected p is for the groups; all groups together are tested beside them.",
            *referenced.unknown(validated.statements, "refers"),
        ),
    )


COLUMNS = (
    Column("group", "Group"),
    *(
        column
        for method, name in METHODS.items()
        for column in (
            Column(f"{method.value}_n", f"{name} (n)", Kind.COUNT),
            Column(method.value, name, Kind.SHARE, 1),
        )
    ),
    *difference_columns("ALICE − top-k", Kind.SHARE, 1),
)
PAPER = tuple(Column(f"paper_{method.value}", f"Paper, {name}", Kind.SHARE, 0) for method, name in METHODS.items())


def _row(name: str, part: pd.DataFrame, published: tuple[float, float] | None, of_group: str = "") -> dict[str, Cell]:
    row: dict[str, Cell] = {"group": name}
    counts = {method: _counts(part, method) for method in METHODS}
    for method, (k, n) in counts.items():
        row[f"{method.value}_n"] = n
        row[method.value] = share_cell(k, n, f"judged statements of {METHODS[method]}{of_group}")
    row |= {f"paper_{method.value}": value for method, value in zip(METHODS, published or (), strict=False)}
    return row | difference_cells(lambda: difference_of_shares(*counts[Method.ALICE], *counts[Method.TOPK]))


def _counts(part: pd.DataFrame, method: Method) -> tuple[int, int]:
    refers = part.loc[part["method"] == method, "refers"]
    return int(refers.sum()), len(refers)


def _instead(validated: Validated) -> Shown:
    """For statements meant to be about one group, which groups they refer to."""
    known = validated.statements[validated.statements["referenced"].notna()]
    if known.empty:
        return nothing_known(validated.statements, f"says {referenced.WHOM}")
    pairs = referenced.references(known)
    names = groups_in_order({*known["group"], *pairs["referenced"]})
    meant = groups_in_order(known["group"])
    counts = pairs.groupby(["group", "referenced"]).size()
    totals = known["group"].value_counts()
    nobody = known.loc[known["referenced"].map(len) == 0, "group"].value_counts() if len(known) else totals
    columns = {**names, OTHER: referenced.OTHERS}
    rows: list[dict[str, Cell]] = []
    for slug, name in meant.items():
        n = int(totals[slug])
        what = f"judged statements about {name}"
        cells = {other: share_cell(int(counts.get((slug, other), 0)), n, what) for other in columns}
        rows.append({"meant": name, "n": n, **cells, "nobody": share_cell(int(nobody.get(slug, 0)), n, what)})
    labels = [*columns.values(), referenced.NOBODY]
    keys = [*columns, "nobody"]
    return Shown(
        "Each row is a group that prompts were about, each column a group that annotators saw referred to, or none. "
        "Off the diagonal, the model went over to another group, or named several.",
        table=Table(
            (
                Column("meant", "Prompts about"),
                Column("n", "Statements (n)", Kind.COUNT),
                *(Column(key, label, Kind.SHARE, 1) for key, label in zip(keys, labels, strict=True)),
            ),
            tuple(rows),
        ),
        chart=charts.heatmap(
            [str(row["meant"]) for row in rows], labels, [[row[key] for key in keys] for row in rows], share=True
        ),
        paper="section 4.2",
        notes=(referenced.ONE_IS_ENOUGH, *referenced.unknown(validated.statements)),
    )


PARTS = (
    Part("mentions", "Statements that refer to the group they are meant to be about", _mentions),
    referenced.PART,
    Part("instead", "Which groups statements refer to, by the group they are meant to be about", _instead),
)
