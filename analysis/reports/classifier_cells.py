"""Cells of the report on classifiers: figures with their intervals, or why there are none."""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from analysis import metrics
from analysis.metrics import Counts
from analysis.reports.classifier_data import RESAMPLED, RESAMPLES, Evaluated, Scored, TestSet
from analysis.reports.frame import Cell, Column, Estimate, Kind, Undefined
from analysis.reports.validated import counted

THRESHOLD = metrics.THRESHOLD
SHARE_OF_TOXIC = Column("toxic", "Toxic", Kind.SHARE, 1)
CLASSIFIER = Column("classifier", "Classifier")
TEST_SET = Column("test_set", "Test set")
N = Column("n", "Texts (n)", Kind.COUNT)
WILSON = "Intervals: 95 %, Wilson's."
MOST_SERIES, MOST_LINES = 6, 4
"""So many classifiers have a column where each has one, and so many are in a figure."""
TAKEN = f"From a probability of {THRESHOLD} on a classifier takes a text for toxic."
INTERVALS = (
    f"Intervals: 95 %, by a bootstrap over texts with {RESAMPLES:,} resamples, fewer on sets of more than "
    f"{RESAMPLED // RESAMPLES:,} texts. None is given where the texts of a class are too few, or all resamples give "
    "the same. Those of accuracy and false-positive rate, which are shares of texts, are Wilson's."
)


def classifier_column(evaluated: Evaluated) -> Column:
    return replace(CLASSIFIER, names=evaluated.short)


def auc_cell(scored: Scored) -> Cell:
    """The AUC with its interval."""
    return _estimate(scored.auc, scored.intervals["auc"], scored.one_class)


def figure_cells(scored: Scored) -> dict[str, Cell]:
    """Every figure of a classifier on a test set, by its key."""
    probs, toxic = scored.results.probs, scored.results.toxic
    counts = metrics.at_threshold(probs, toxic)
    figures = {
        "f1": counts.f1,
        "accuracy": counts.accuracy,
        "calibration_error": metrics.calibration_error(probs, toxic),
        "false_positive_rate": counts.false_positive_rate,
    }
    of_one_class = {
        "f1": f"No text of {scored.texts} is toxic, and {scored.classifier} takes none for toxic.",
        "false_positive_rate": f"No text of {scored.texts} is labelled benign.",
    }
    why = of_one_class if scored.n else {}
    return {"auc": auc_cell(scored)} | {
        key: _estimate(value, scored.intervals[key], why.get(key, scored.one_class)) for key, value in figures.items()
    }


def spread_cell(scored: Scored) -> Cell:
    """How far the false-positive rates of groups lie apart."""
    value = metrics.spread(group_rates(scored))
    why = f"Fewer than two groups of {scored.texts} have {metrics.LEAST} benign texts."
    return _estimate(value, scored.intervals.get("spread", (math.nan, math.nan)), why)


def group_rates(scored: Scored) -> dict[str, metrics.Rate]:
    return metrics.false_positive_rates(scored.results.probs, scored.results.toxic, scored.results.groups)


def toxic_share(scored: Scored) -> Cell:
    if not scored.n:
        return Undefined(scored.one_class)
    return float(np.mean(scored.results.toxic))


def that_fit(evaluated: Evaluated, test_set: TestSet, most: int = MOST_SERIES) -> tuple[list[Scored], list[str]]:
    """The classifiers with scores that a figure has room for, those named last, and what is said of the others."""
    there = [scored for scored in evaluated.on(test_set) if scored.n]
    more = len(there) - most
    notes = [f"{more:,} more under “All figures”: there is room for {most}."] if more > 0 else []
    return there[-most:], notes + on_left_out(evaluated.on(test_set))


def on_left_out(scored: Iterable[Scored]) -> list[str]:
    """How many texts no figure takes, since they lack a label or a score."""
    scored = list(scored)
    not_understood = {one.test_set.name: one.results.unlabelled for one in scored}
    return [
        *(
            f"Left out: {counted(n, 'statement')} of {name} that nobody understood."
            for name, n in not_understood.items()
            if n
        ),
        *(
            f"Left out: {counted(one.results.unscored, 'text')} of {one.test_set.name} that {one.classifier} has no "
            "score of."
            for one in scored
            if one.results.unscored
        ),
    ]


def counts_of(scored: Scored, chosen: np.ndarray) -> Counts:
    """How many of the chosen texts, ``(N,)`` of bool, are taken for what."""
    return metrics.at_threshold(scored.results.probs[chosen], scored.results.toxic[chosen])


def _estimate(value: float, interval: tuple[float, float], why: str) -> Cell:
    if math.isnan(value):
        return Undefined(why)
    low, high = interval
    return Estimate(value) if math.isnan(low) or math.isnan(high) else Estimate(value, low, high)


def in_words(cell: Cell) -> str:
    """A figure in a sentence.

    >>> in_words(Estimate(0.934, 0.9, 0.96)), in_words(Undefined("Nobody knows."))
    ('0.93 (0.90 to 0.96)', 'undefined')
    """
    if not isinstance(cell, Estimate):
        return "undefined"
    interval = "" if cell.low is None or cell.high is None else f" ({cell.low:.2f} to {cell.high:.2f})"
    return f"{cell.value:.2f}{interval}"
