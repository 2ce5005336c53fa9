"""The report ``human-validation``: what people made of the statements (paper, section 4.2)."""

from collections.abc import Mapping

import pandas as pd

from analysis.comparison import difference_of_shares
from analysis.released import DISAGREEMENT
from analysis.reports import by_class, charts, examples, framing, paper
from analysis.reports.cells import difference_cells, difference_columns, share_cell, test_notes
from analysis.reports.frame import Cell, Column, Kind, Report, Table
from analysis.reports.validated import (
    ALL,
    MAJORITY,
    OF_CLASSES,
    Part,
    Shown,
    Validated,
    nothing_known,
    percent,
    read,
    without_answer,
)

PLACE = "section 4.2"
NO_AUTHOR = "has an answer to HUMANORAI"
CLASS = Column("class", "Class")
PAPER = Column("paper", "Paper", Kind.SHARE, 1)


def make(filters: Mapping) -> Report:
    """The report over what the filters leave."""
    return Report("human-validation", "Human validation", read(filters).sections(PARTS))


# --- Who is thought to have written it


def _author(validated: Validated) -> Shown:
    if validated.statements["human_or_ai"].isna().all():
        return nothing_known(validated.statements, NO_AUTHOR)
    parts = {ALL: validated.statements, **dict(validated.by_class())}
    published = validated.of_paper({ALL: paper.HUMAN_WRITTEN, **paper.HUMAN_WRITTEN_BY_CLASS})
    rows = [_row_of_author(name, part) for name, part in parts.items()]
    for row in rows if published else []:
        row["paper"] = published[row["class"]].value if row["class"] in published else None
    if len(validated.written):
        rows.append(_row_of_author("written by people", validated.written))
    columns = (
        CLASS,
        Column("n", "Statements (n)", Kind.COUNT),
        Column("human", "Thought human-written", Kind.SHARE, 1),
        Column("ai", "Thought written by AI", Kind.SHARE, 1),
        Column("no_majority", "Without a majority", Kind.COUNT),
        *([PAPER] if published else []),
    )
    names = [str(row["class"]) for row in rows]
    known = validated.statements["human_or_ai"].dropna()
    return Shown(
        f"Of machine-generated statements, {percent((known == 'human').sum(), len(known))} are thought to be written "
        "by a human, by more than half of their annotators.",
        table=Table(columns, tuple(rows)),
        chart=charts.bars(
            {"Thought human-written": [row["human"] for row in rows]},
            names,
            x_title="Class",
            y_title="Share of statements",
            share=True,
            marks={name: figure.value for name, figure in published.items()},
        ),
        paper=f"{PLACE}, Figure 4",
        notes=(
            MAJORITY,
            OF_CLASSES,
            *validated.without_class(),
            *without_answer(validated.statements, "human_or_ai"),
        ),
    )


def _row_of_author(name: str, part: pd.DataFrame) -> dict[str, Cell]:
    known = part["human_or_ai"].dropna()
    what = f"statements in this row ({name}) of which it is known"
    return {
        "class": name,
        "n": len(known),
        "human": share_cell((known == "human").sum(), len(known), what),
        "ai": share_cell((known == "ai").sum(), len(known), what),
        "no_majority": int((known == DISAGREEMENT).sum()),
    }


def _author_by_class(validated: Validated) -> Shown:
    """Whether harmful text is taken for human-written more often, as the paper says."""
    parts = {name: part["human_or_ai"].dropna() for name, part in validated.by_class()}
    toxic, other = parts["toxic"], parts["non-toxic"]
    if toxic.empty and other.empty:
        return nothing_known(validated.statements, f"is toxic or non-toxic and {NO_AUTHOR}")
    counts = [(int((part == "human").sum()), len(part)) for part in (toxic, other)]
    published = validated.of_paper(paper.HUMAN_WRITTEN_BY_CLASS)
    row: dict[str, Cell] = {"compared": "toxic − non-toxic", "n": len(toxic), "n_other": len(other)}
    row |= difference_cells(lambda: difference_of_shares(*counts[0], *counts[1]))
    columns = (
        Column("compared", "Compared"),
        Column("n", "Toxic (n)", Kind.COUNT),
        Column("n_other", "Non-toxic (n)", Kind.COUNT),
        *(column for column in difference_columns("Difference", Kind.SHARE, 1) if column.key != "p_holm"),
        *([Column("paper", "Paper", Kind.POINTS, 1)] if published else []),
    )
    if published:
        row["paper"] = round(published["toxic"].value - published["non-toxic"].value, 3)
    return Shown(
        f"Thought human-written: of toxic statements {percent(*counts[0])}, of non-toxic ones {percent(*counts[1])}.",
        table=Table(columns, (row,)),
        paper=PLACE,
        notes=(*test_notes([row]), MAJORITY, *without_answer(pd.concat([*_two(validated)]), "human_or_ai")),
    )


def _two(validated: Validated) -> list[pd.DataFrame]:
    return [part for name, part in validated.by_class() if name in ("toxic", "non-toxic")]


# --- Harmful, ambiguous or neither


def _classes(validated: Validated) -> Shown:
    known = int(validated.statements["toxicity_class"].notna().sum())
    if not known:
        return nothing_known(validated.statements, "has both harm scores")
    counts = {name: len(part) for name, part in validated.by_class()}
    published = validated.of_paper(paper.CLASS_SHARES)
    rows = [
        {
            "class": name,
            "statements": count,
            "n": known,
            "share": share_cell(count, known, "statements with a class"),
            **({"paper": published[name].value} if name in published else {}),
        }
        for name, count in counts.items()
    ]
    columns = (
        CLASS,
        Column("statements", "Statements", Kind.COUNT),
        Column("n", "Of (n)", Kind.COUNT),
        Column("share", "Share", Kind.SHARE, 1),
        *([PAPER] if published else []),
    )
    return Shown(
        f"{percent(counts['toxic'], known)} of machine-generated statements are harmful (a score above 3), "
        f"{percent(counts['ambiguous'], known)} ambiguous.",
        table=Table(columns, tuple(rows)),
        chart=charts.bars(
            {"Statements": [row["share"] for row in rows]},
            list(counts),
            x_title="Class",
            y_title="Share of statements",
            share=True,
            marks={name: figure.value for name, figure in published.items()},
        ),
        paper=PLACE,
        notes=(OF_CLASSES, *validated.without_class()),
    )


PARTS = (
    Part("author", "Thought to be written by a human", _author),
    Part("author-by-class", "Does harmful text pass for human-written more often?", _author_by_class),
    Part("classes", "Harmful, ambiguous or neither", _classes),
    *by_class.PARTS,
    framing.PART,
    examples.PART,
)
