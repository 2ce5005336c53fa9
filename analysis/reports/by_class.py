"""What annotators answered about toxic, ambiguous and non-toxic statements (paper, Figures 4 and 5)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from analysis.comparison import paired_difference
from analysis.labels import SCALE_HIGH, SCALE_LOW, SCALE_MIDDLE, TOXICITY_CLASSES
from analysis.released import DISAGREEMENT
from analysis.reports import charts, paper
from analysis.reports.cells import (
    correct,
    difference_cells,
    difference_columns,
    mean_cell,
    share_cell,
    spread_notes,
    test_notes,
)
from analysis.reports.frame import Cell, Column, Kind, Table
from analysis.reports.validated import (
    ALL,
    CLASSES,
    MAJORITY,
    OF_CLASSES,
    Part,
    Shown,
    Validated,
    notes_on,
    nothing_known,
    percent,
    without_answer,
)

PLACE = "section 4.2"
CODES = {name: TOXICITY_CLASSES.index(name) for name in CLASSES}
NO_CLASS = "has both harm scores, which make its class"
CLASS = Column("class", "Class")
N = Column("n", "Statements (n)", Kind.COUNT)
PAPER = Column("paper", "Paper", Kind.SHARE, 1)


@dataclass(frozen=True)
class Statistic:
    """Something that is true of a statement or not, told from one column of ``judged.statements``."""

    label: str
    column: str
    is_true: Callable[[pd.Series], pd.Series]
    published: Mapping[str, paper.Published]


def _is(label: str, column: str, answer: str, published: Mapping[str, paper.Published] | None = None) -> Statistic:
    return Statistic(label, column, lambda answers: answers == answer, published or {})


STATISTICS = (
    _is("Thought human-written", "human_or_ai", "human", paper.HUMAN_WRITTEN_BY_CLASS),
    Statistic(
        "Meant to harm (mean > 3)",
        "harmful_intent",
        lambda scores: scores > SCALE_MIDDLE,
        {"toxic": paper.HATE_SPEECH},
    ),
    Statistic(
        "Meant to harm, or unsure (mean ≥ 3)",
        "harmful_intent",
        lambda scores: scores >= SCALE_MIDDLE,
        {"toxic": paper.HATE_SPEECH},
    ),
    _is("Lewd", "lewd", "yes"),
    _is("Positive stereotype", "pos_stereo", "yes"),
    _is("Claims to be factual", "fact_or_opinion", "factual"),
    _is("States an opinion", "fact_or_opinion", "opinion"),
    _is("Both fact and opinion", "fact_or_opinion", "both"),
    _is("Neither fact nor opinion", "fact_or_opinion", "neither"),
)


def _answers(validated: Validated) -> Shown:
    parts = dict(validated.by_class())
    if validated.statements["toxicity_class"].isna().all():
        return nothing_known(validated.statements, NO_CLASS)
    rows = [_row_of_answer(statistic, name, parts[name]) for statistic in STATISTICS for name in CLASSES]
    of_paper = {(one.label, name): figure.value for one in STATISTICS for name, figure in one.published.items()}
    published = validated.of_paper(of_paper)
    for row in rows if published else []:
        row["paper"] = published.get((row["answer"], row["class"]))
    columns = (
        Column("answer", "Annotators say"),
        CLASS,
        N,
        Column("share", "Share of the class", Kind.SHARE, 1),
        Column("no_majority", "Without a majority", Kind.COUNT),
        *([PAPER] if published else []),
    )
    series = {name: [row["share"] for row in rows if row["class"] == name] for name in CLASSES}
    toxic = parts["toxic"]["harmful_intent"].dropna()
    return Shown(
        f"Of toxic statements, {percent((toxic > SCALE_MIDDLE).sum(), len(toxic))} are also thought to be meant to "
        "harm (mean above 3)."
        if len(toxic)
        else "There are no toxic statements here whose intent is known, so how many are meant to harm cannot be told.",
        table=Table(columns, tuple(rows)),
        chart=charts.bars(
            series,
            [statistic.label for statistic in STATISTICS],
            x_title="",
            y_title="Share of the class",
            share=True,
            horizontal=True,
        ),
        paper=f"{PLACE}, Figure 4",
        notes=(
            f"The paper says that {100 * paper.HATE_SPEECH.value:g} % of toxic examples are also hate speech, and "
            "not by which answers. The nearest question is whether the text was written to be harmful "
            "(HARMFULINTENT): it is given here with a mean above 3, and with a mean of 3 or more.",
            MAJORITY,
            "Lewd and positive stereotype: the answer Yes; Maybe does not count.",
            OF_CLASSES,
            *validated.without_class(),
            *(note for column in _columns_asked() for note in without_answer(validated.statements, column)),
        ),
    )


def _columns_asked() -> list[str]:
    return list(dict.fromkeys(statistic.column for statistic in STATISTICS))


def _row_of_answer(statistic: Statistic, name: str, part: pd.DataFrame) -> dict[str, Cell]:
    known = part[statistic.column].dropna()
    is_word = statistic.column != "harmful_intent"
    return {
        "answer": statistic.label,
        "class": name,
        "n": len(known),
        "share": share_cell(
            statistic.is_true(known).sum(), len(known), f"{name} statements of which the answer is known"
        ),
        "no_majority": int((known == DISAGREEMENT).sum()) if is_word else None,
    }


def _facts(validated: Validated) -> Shown:
    """How toxic it is what claims to be factual, or states an opinion."""
    classed = validated.statements[validated.statements["toxicity_class"].notna()]
    names = {"factual": "claims to be factual", "opinion": "states an opinion", "both": "both", "neither": "neither"}
    if classed["fact_or_opinion"].isna().all():
        return nothing_known(validated.statements, f"has an answer to FACTOROPINION and {NO_CLASS}")
    rows = []
    for answer, label in names.items():
        codes = classed.loc[classed["fact_or_opinion"] == answer, "toxicity_class"]
        shares = {
            name: share_cell((codes == code).sum(), len(codes), f"statements with a class that most call “{label}”")
            for name, code in CODES.items()
        }
        rows.append({"answer": label, "n": len(codes), **shares})
    disagreed = int((classed["fact_or_opinion"] == DISAGREEMENT).sum())
    factual = classed.loc[classed["fact_or_opinion"] == "factual", "toxicity_class"]
    return Shown(
        f"Of statements that claim to be factual, {percent((factual == CODES['non-toxic']).sum(), len(factual))} are "
        "non-toxic."
        if len(factual)
        else "There are no statements here that claim to be factual, so how many are non-toxic cannot be told.",
        table=Table(
            (Column("answer", "Statement"), N, *(Column(name, name, Kind.SHARE, 1) for name in CLASSES)), tuple(rows)
        ),
        chart=charts.bars(
            {name: [row[name] for row in rows] for name in CLASSES},
            list(names.values()),
            x_title="Statement",
            y_title="Share of these statements",
            share=True,
        ),
        paper=PLACE,
        notes=(
            "The paper: most fact-claiming text is non-toxic.",
            *notes_on({"has no majority on it": disagreed}),
            OF_CLASSES,
            *validated.without_class(),
            *without_answer(validated.statements, "fact_or_opinion"),
        ),
    )


# --- Whether it matters who speaks


def _speakers(validated: Validated) -> Shown:
    """Mean scores for an AI and for a human speaker of the same statements."""
    both = validated.statements.dropna(subset=["harmful_if_ai", "harmful_if_human"])
    if both.empty:
        return nothing_known(validated.statements, NO_CLASS)
    of_class = [_row_of_speakers(name, part) for name, part in validated.by_class()]
    correct(of_class)
    rows = [*of_class, _row_of_speakers(ALL, both)]
    columns = (
        CLASS,
        N,
        Column("ai", "Mean score if an AI wrote it", Kind.NUMBER),
        Column("human", "Mean score if a human wrote it", Kind.NUMBER),
        *difference_columns("AI − human"),
    )
    missing = len(validated.statements) - len(both)
    return Shown(
        "How harmful a statement would be seen, from 1 to 5, if an AI system wrote it and if a person wrote it. "
        f"The means are {both['harmful_if_ai'].mean():.2f} and {both['harmful_if_human'].mean():.2f}.",
        table=Table(columns, tuple(rows)),
        chart=charts.points(
            {"AI speaker": [row["ai"] for row in rows], "Human speaker": [row["human"] for row in rows]},
            [str(row["class"]) for row in rows],
            x_title="Class",
            y_title="Mean score, 1 to 5",
            limits=(SCALE_LOW, SCALE_HIGH),
        ),
        paper=f"{PLACE}, Figure 5",
        notes=(
            "Both scores are means over the annotators of the same statement, so they are compared in pairs.",
            *test_notes(rows),
            "The corrected p is for the three classes; all statements together are tested beside them.",
            "The paper: no significant difference. With many statements a difference that is too small to matter is "
            "significant, too: look at its size.",
            *spread_notes(cell for row in rows for cell in (row["ai"], row["human"])),
            OF_CLASSES,
            *notes_on({"lacks one of the scores": missing}),
        ),
    )


def _row_of_speakers(name: str, part: pd.DataFrame) -> dict[str, Cell]:
    scale = (SCALE_LOW, SCALE_HIGH)
    of_ai, of_human = part["harmful_if_ai"], part["harmful_if_human"]
    what = "statements with both scores" if name == ALL else f"{name} statements with both scores"
    row = {
        "class": name,
        "n": len(part),
        "ai": mean_cell(of_ai, what, scale),
        "human": mean_cell(of_human, what, scale),
    }
    return row | difference_cells(lambda: paired_difference(of_ai, of_human))


PARTS = (
    Part("answers", "What annotators say of toxic, ambiguous and non-toxic statements", _answers),
    Part("facts", "How harmful claims and opinions are", _facts),
    Part("speakers", "Does it matter who speaks?", _speakers),
)
