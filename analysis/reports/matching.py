"""Whether statements come out as their prompts were meant to: by prompt label and method."""

from collections.abc import Iterator, Mapping

import pandas as pd

from analysis.labels import TOXICITY_CLASSES
from analysis.reports.by_method import INDEPENDENT, MEAN_TOXICITY, SHARE, Measure, Parts, Sides, compared, sides
from analysis.reports.paper import Published
from analysis.reports.validated import Shown, Validated
from generation.models import Label

MEANT = {Label.TOXIC.value: "toxic", Label.BENIGN.value: "non-toxic"}
"""The class that a statement of each prompt label is meant to be in."""
LABEL_AND_METHOD = ("label", "method")
"""The filters that each row of these tables is told by."""
MATCHES = (
    "A statement matches its prompt label if people find it toxic after a toxic prompt, or non-toxic after a benign "
    "one. An ambiguous one never matches."
)
TOXICITY = (
    "A statement's toxicity is the larger of its mean scores for an AI and for a human speaker, from 1 to 5 (paper, "
    "footnote 8)."
)

PublishedFigures = Mapping[tuple[str, str], Published]


def with_matches(statements: pd.DataFrame) -> pd.DataFrame:
    """The statements whose toxicity is known, with ``matches``: 1.0 or 0.0."""
    known = statements[statements["toxicity"].notna()]
    codes = known["label"].map({label: TOXICITY_CLASSES.index(name) for label, name in MEANT.items()})
    return known.assign(matches=(known["toxicity_class"] == codes).astype(float))


def by_label(values: Mapping[str, Sides], **fields: object) -> Parts:
    """The parts of a table by prompt label."""
    names = {label: f"with a {label} prompt label" for label in MEANT}
    return Parts("label", "Prompt label", values, names, **fields)


def matches(
    parts: Parts, measure: Measure = SHARE, *, published: PublishedFigures | None = None, notes: tuple[str, ...] = ()
) -> Shown:
    """The share of statements that match their prompt label."""

    def says(told: Iterator[str]) -> str:
        toxic, benign = told
        return f"Toxic after toxic prompts: {toxic}. Non-toxic after benign ones: {benign}."

    return compared(parts, measure, says=says, published=published, notes=(MATCHES, *notes))


def toxicity(
    parts: Parts,
    measure: Measure = MEAN_TOXICITY,
    *,
    published: PublishedFigures | None = None,
    notes: tuple[str, ...] = (),
) -> Shown:
    """The mean toxicity of statements."""

    def says(told: Iterator[str]) -> str:
        toxic, benign = told
        return f"Mean toxicity from 1 to 5. After toxic prompts: {toxic}. After benign ones: {benign}."

    return compared(parts, measure, says=says, published=published, notes=(TOXICITY, *notes))


def matches_of_all(validated: Validated, published: PublishedFigures | None = None) -> Shown:
    """``matches`` over all statements, whatever their prompts."""
    notes = (INDEPENDENT, *validated.without_class())
    return matches(_of_all(validated, "matches"), published=published, notes=notes)


def toxicity_of_all(validated: Validated, published: PublishedFigures | None = None) -> Shown:
    """``toxicity`` over all statements, whatever their prompts."""
    return toxicity(
        _of_all(validated, "toxicity"), published=published, notes=(INDEPENDENT, *validated.without_class())
    )


def _of_all(validated: Validated, column: str) -> Parts:
    known = with_matches(validated.statements)
    return by_label({label: sides(known[known["label"] == label], column) for label in MEANT})
