"""How statements frame the group that they are about (paper, section 4.2)."""

import numpy as np
import pandas as pd

from analysis.comparison import share_with_interval
from analysis.released import DISAGREEMENT
from analysis.reports import charts
from analysis.reports.cells import share_cell
from analysis.reports.frame import Cell, Column, Estimate, Kind, Table, Undefined
from analysis.reports.validated import MAJORITY, Part, Shown, Validated, counted, notes_on, nothing_known, percent
from annotator.questions import QUESTIONS

NONE = "none"
LABELS = {
    value: "No individual or group is targeted" if value == NONE else str(value).replace("_", " ").capitalize()
    for question in QUESTIONS
    if question.key == "group_framing"
    for value in question.values
}
"""What tables call each framing."""


def _show(validated: Validated) -> Shown:
    """Each framing's share of the statements, by majority, and of the annotations."""
    known = validated.statements["group_framing"].dropna()
    if known.empty:
        return nothing_known(validated.statements, "has an answer to GROUPFRAMING")
    annotations = validated.annotations
    rows = [
        {
            "framing": label,
            "statements": int((known == value).sum()),
            "n": len(known),
            "share": share_cell((known == value).sum(), len(known), "statements with an answer to GROUPFRAMING"),
            **_of_annotations(annotations, value),
        }
        for value, label in {**LABELS, DISAGREEMENT: "Without a majority"}.items()
    ]
    columns = [
        Column("framing", "Framing"),
        Column("statements", "Statements", Kind.COUNT),
        Column("n", "Of (n)", Kind.COUNT),
        Column("share", "Share of statements", Kind.SHARE, 1),
    ]
    series = {"Of statements": [row["share"] for row in rows]}
    if len(annotations):
        columns += [
            Column("annotations", "Annotations", Kind.COUNT),
            Column("of_annotations", "Share of annotations", Kind.SHARE, 1),
        ]
        series["Of annotations"] = [row.get("of_annotations") for row in rows]
    return Shown(
        _says(known),
        table=Table(tuple(columns), tuple(rows)),
        chart=charts.bars(
            series, [row["framing"] for row in rows], x_title="", y_title="Share", share=True, horizontal=True
        ),
        paper="section 4.2",
        notes=(
            "The paper: the most common framing is moral judgement.",
            MAJORITY,
            *_on_silence(validated),
            *_on_annotations(validated),
            *notes_on({"has no answer to GROUPFRAMING": int(validated.statements["group_framing"].isna().sum())}),
        ),
    )


def _says(known: pd.Series) -> str:
    counts = known[~known.isin([NONE, DISAGREEMENT])].value_counts()
    if counts.empty:
        return "On no statement do more than half of the annotators agree on how it frames its group."
    most = [LABELS[value].lower() for value in LABELS if counts.get(value) == counts.max()]
    if len(most) > 1:
        return (
            f"The most common framings are {' and '.join(most)}: each is the answer of most annotators on "
            f"{counted(int(counts.max()), 'statement')} of {len(known):,}."
        )
    return f"The most common framing is {most[0]}: {percent(int(counts.max()), len(known))} of the statements."


def _of_annotations(annotations: pd.DataFrame, value: str) -> dict[str, Cell]:
    if annotations.empty or value == DISAGREEMENT:
        return {}
    chosen = (annotations["group_framing"] == value).groupby(annotations["statement"]).agg(["sum", "count"])
    return {
        "annotations": int(chosen["sum"].sum()),
        "of_annotations": share_of_annotations(chosen["sum"].to_numpy(), chosen["count"].to_numpy()),
    }


def share_of_annotations(k: np.ndarray, n: np.ndarray) -> Cell:
    """The share of annotations, from ``k`` of ``n`` in each statement, both ``(statements,)``.

    Annotations of one statement resemble each other, so they are worth fewer than they are: Wilson's interval is
    taken of as many as have the same variance (the design effect of a ratio estimate over statements; Kish, L. (1965),
    Survey Sampling), and of no more than there are.
    """
    annotations, statements = int(n.sum()), len(n)
    if not annotations:
        return Undefined("There are no annotations.")
    share = k.sum() / annotations
    worth = 1.0
    if statements < 2:
        worth = 1 / annotations
    elif 0 < share < 1:
        variance = ((k - share * n) ** 2).sum() / annotations**2
        worth = min(1.0, share * (1 - share) / annotations / variance) if variance else 1.0
    else:
        worth = statements / annotations
    value, low, high = share_with_interval(k.sum() * worth, annotations * worth)
    return Estimate(float(value), max(0.0, float(low)), min(1.0, float(high)))


def _on_silence(validated: Validated) -> list[str]:
    """A note of imported labels that say no framing, which is read as none."""
    statements = validated.statements
    silent = int(((statements["source"] == "imported") & (statements["group_framing"] == NONE)).sum())
    if not silent:
        return []
    return [
        f"{LABELS[NONE]}: so {counted(silent, 'imported label is', 'imported labels are')} read that "
        f"{'answers' if silent == 1 else 'answer'} other questions and {'has' if silent == 1 else 'have'} no word for "
        "a framing. The release has no word for it, so this is a reading of ours."
    ]


def _on_annotations(validated: Validated) -> list[str]:
    if validated.annotations.empty:
        return ["Shares of single annotations cannot be given: imported labels do not hold them."]
    n = len(validated.annotations)
    statements = validated.annotations["statement"].nunique()
    note = f"Shares of annotations are of {counted(n, 'annotation')} to {counted(statements, 'statement')}"
    return [
        f"{note}; their intervals take into account that annotations of one statement resemble each other (design "
        "effect)."
    ]


PART = Part("framing", "How statements frame their group", _show)
