"""The groups that prompts were about, and those that annotators saw referred to (paper, Figures 3 and 8)."""

from collections.abc import Iterable

import pandas as pd

from analysis.references import OTHER
from analysis.reports import charts
from analysis.reports.cells import share_cell
from analysis.reports.frame import Cell, Column, Kind, Table
from analysis.reports.validated import (
    Part,
    Shown,
    Validated,
    counted,
    groups_in_order,
    notes_on,
    nothing_known,
    percent,
)

WHOM = "whom it refers to in the words of the release"
OTHERS, NOBODY = "Other groups", "None, or unclear"

ONE_IS_ENOUGH = (
    "A statement refers to a group if at least one of its annotators saw a direct or indirect reference to it, or "
    "wrote it down among other groups. Words that name no group of this workspace count as other groups."
)


def _show(validated: Validated) -> Shown:
    """Each group's share of the prompts, and of the references in the texts."""
    known = validated.statements[validated.statements["referenced"].notna()]
    if known.empty:
        return nothing_known(validated.statements, f"says {WHOM}")
    pairs = references(known)
    names = groups_in_order({*known["group"], *pairs["referenced"]})
    desired, seen = known["group"].value_counts(), pairs["referenced"].value_counts()
    n, references_in_all = len(known), len(pairs)
    rows = [
        {
            "group": name,
            "desired": None if slug == OTHER else int(desired.get(slug, 0)),
            "desired_share": None if slug == OTHER else float(desired.get(slug, 0) / n),
            "n": n,
            "statements": int(seen.get(slug, 0)),
            "of_statements": share_cell(seen.get(slug, 0), n, "statements with a known reference"),
            "of_references": share_cell(seen.get(slug, 0), references_in_all, "references to a group"),
        }
        for slug, name in {**names, OTHER: OTHERS}.items()
    ]
    without = int((known["referenced"].map(len) == 0).sum())
    shown = list(rows)
    rows.append(_row_of_nobody(without, n))
    return Shown(
        f"Which groups the prompts were about, and which ones the {counted(n, 'statement')} refer to: "
        f"{counted(references_in_all, 'reference')} in all. In {percent(without, n)} nobody saw any group.",
        table=Table(COLUMNS, tuple(rows)),
        chart=charts.bars(
            {
                "By the prompts": [row["desired_share"] for row in shown],
                "In the texts": [row["of_references"] for row in shown],
            },
            [str(row["group"]) for row in shown],
            x_title="",
            y_title="Share of the prompts, share of the references",
            share=True,
            horizontal=True,
        ),
        paper="Figure 3; Figure 8 for the large sample",
        notes=(
            ONE_IS_ENOUGH,
            "The figure shows shares that add up to 100 %: of the prompts, and of all references (a statement may "
            "refer to several groups). Intervals of the latter take references as independent, which those of one "
            "statement are not: rely on the share of statements.",
            *unknown(validated.statements),
        ),
    )


COLUMNS = (
    Column("group", "Group"),
    Column("desired", "Prompts about it", Kind.COUNT),
    Column("desired_share", "Share of prompts", Kind.SHARE, 1),
    Column("statements", "Statements that refer to it", Kind.COUNT),
    Column("n", "Of (n)", Kind.COUNT),
    Column("of_statements", "Share of statements", Kind.SHARE, 1),
    Column("of_references", "Share of all references", Kind.SHARE, 1),
)


def _row_of_nobody(without: int, n: int) -> dict[str, Cell]:
    share = share_cell(without, n, "statements with a known reference")
    return {"group": NOBODY, "n": n, "statements": without, "of_statements": share}


def references(known: pd.DataFrame) -> pd.DataFrame:
    """Every group that a statement refers to, one a row: its id as index, ``group`` and ``referenced``."""
    pairs = known[["group"]].assign(referenced=known["referenced"].map(sorted)).explode("referenced")
    return pairs[pairs["referenced"].notna()]


def unknown(statements: pd.DataFrame, column: str = "referenced") -> Iterable[str]:
    """A note of the statements of which it is not known whom they refer to."""
    return notes_on({f"does not say {WHOM}": int(statements[column].isna().sum())})


PART = Part("referenced", "Groups desired and groups referred to", _show)
