"""Statements that language models wrote and people took for human-written (paper, Table 3)."""

from collections.abc import Iterator
from hashlib import md5

import numpy as np
import pandas as pd

from analysis.labels import SCALE_MIDDLE
from analysis.references import DIRECTLY, INDIRECTLY, NO_GROUP
from analysis.released import DISAGREEMENT
from analysis.reports.frame import Cell, Column, Kind, Table, Undefined
from analysis.reports.framing import LABELS, NONE
from analysis.reports.validated import OF_CLASSES, Part, Shown, Validated, counted
from generation.models import Generation, Method

TRUE_AUTHOR = {Method.ALICE: "AI (ALICE)", Method.TOPK: "AI (top-k)"}
INTENTS = {-1: "Benign", 0: "Unsure", 1: "Harm"}
REFERENCES = {DIRECTLY: "direct reference", INDIRECTLY: "indirect reference", NO_GROUP: "no reference"}
COLUMNS = (
    Column("text", "Text", Kind.STATEMENT),
    Column("class", "Class"),
    Column("author", "HUMANORAI (predicted/true)"),
    Column("ai", "Mean score if an AI wrote it", Kind.NUMBER, 1),
    Column("human", "Mean score if a human wrote it", Kind.NUMBER, 1),
    Column("intent", "Intent"),
    Column("framing", "Reference and framing"),
    Column("n", "Annotators (n)", Kind.COUNT),
)


def _show(validated: Validated) -> Shown:
    """One statement of each class and method that most annotators thought human-written."""
    fooled = validated.statements[validated.statements["human_or_ai"] == "human"]
    chosen = _chosen(validated, fooled)
    if chosen.empty:
        reason = (
            "None of these statements is thought human-written by more than half of its annotators, or those that "
            "are have no class."
        )
        return Shown("There is no example.", missing=reason)
    texts = Generation.objects.in_bulk(list(chosen.index))
    return Shown(
        f"{counted(len(chosen), 'example')} of {counted(len(fooled), 'machine-generated statement')} that more than "
        "half of the annotators took for human-written.",
        table=Table(COLUMNS, tuple(_row(texts[pk].text, name, row) for pk, name, row in _named(chosen, validated))),
        paper="Table 3",
        notes=(
            "One of each class and method, as far as there are some: the one whose text has the smallest MD5 digest. "
            "Nobody chose it, and the same statements give the same examples.",
            "Intent: the mean of HARMFULINTENT is below (Benign), at (Unsure) or above 3 (Harm).",
            "Reference: the most direct one that at least one annotator saw. Framing: of more than half.",
            OF_CLASSES,
        ),
    )


def _chosen(validated: Validated, fooled: pd.DataFrame) -> pd.DataFrame:
    """Of each class and method the statement with the smallest digest, the most harmful class first."""
    texts = Generation.objects.filter(pk__in=list(fooled.index)).values_list("pk", "text").order_by().iterator()
    digests = {pk: md5(text.encode(), usedforsecurity=False).hexdigest() for pk, text in texts}
    ordered = fooled.assign(digest=fooled.index.map(digests)).dropna(subset=["toxicity_class"])
    ordered = ordered.rename_axis("pk").sort_values(["digest", "pk"])
    first = ordered.drop_duplicates(["toxicity_class", "method"])
    return first.sort_values(["toxicity_class", "method"], ascending=[False, True])


def _named(chosen: pd.DataFrame, validated: Validated) -> Iterator[tuple[int, str, pd.Series]]:
    classes = {pk: name for name, part in validated.by_class() for pk in part.index}
    for pk, row in chosen.iterrows():
        yield pk, classes[pk], row


def _row(text: str, name: str, row: pd.Series) -> dict[str, Cell]:
    told = [REFERENCES.get(row["reference"], "reference unknown"), _framing(row["group_framing"])]
    return {
        "text": text,
        "class": name,
        "author": f"Human/{TRUE_AUTHOR[row['method']]}",
        "ai": row["harmful_if_ai"],
        "human": row["harmful_if_human"],
        "intent": _intent(row["harmful_intent"]),
        "framing": ", ".join(told),
        "n": Undefined("The imported label does not say how many.")
        if np.isnan(row["annotators"])
        else int(row["annotators"]),
    }


def _intent(mean: float) -> Cell:
    return Undefined("Nobody answered HARMFULINTENT.") if np.isnan(mean) else INTENTS[int(np.sign(mean - SCALE_MIDDLE))]


def _framing(framing: str | float) -> str:
    if framing == DISAGREEMENT:
        return "no majority on the framing"
    if framing == NONE:
        return "no framing"
    return LABELS[framing].lower() if isinstance(framing, str) else "framing unknown"


PART = Part("examples", "Statements that people took for human-written", _show)
