"""What is told of annotators and of pairs of them as cells, each with its interval or its reason."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from analysis.agreement import Ratings, UndefinedAgreement
from analysis.annotators import AnnotatorAgreement, Measure, PairAgreement, dawid_skene, kappa_interval
from analysis.bootstrap import FEWEST
from analysis.comparison import share_with_interval
from analysis.reports.agreement_cells import told
from analysis.reports.frame import Cell, Column, Estimate, Kind, Undefined
from analysis.reports.pay import median_cell
from analysis.reports.rated import TOXICITY_CLASS, Rated
from analysis.reports.validated import counted

OF_KAPPA = (
    f"of kappa the percentiles of 1,000 resamples of the statements; of fewer than {FEWEST} statements, and where all "
    "resamples give the same, kappa has none"
)
NO_TIME = "The file that the work came from does not say when it began and ended."


def kappa_cell(found: AnnotatorAgreement | PairAgreement) -> Cell:
    if found.kappa.value is None:
        return Undefined(found.kappa.reason or "")
    interval = kappa_interval(found.table)
    return Estimate(found.kappa.value, *(() if isinstance(interval, str) else interval))


def mean_share_cell(measure: Measure) -> Cell:
    """A mean of values from 0 to 1, which spread no more than as many yes and no with the same mean: Wilson's holds."""
    if measure.value is None:
        return Undefined(measure.reason or "")
    value = float(np.clip(measure.value, 0, 1))  # sums of probabilities may be 1e-16 above
    _, low, high = share_with_interval(value * measure.n, measure.n)
    return Estimate(value, low, high)


def abilities(ratings: Ratings) -> Mapping[int, dict[str, Cell]]:
    try:
        found = dawid_skene(ratings, names=TOXICITY_CLASS.names)
    except UndefinedAgreement as undefined:
        return {rater: {"ability": Undefined(str(undefined)), "checked": 0} for rater in ratings.rater_ids}
    return {one.rater: {"ability": mean_share_cell(one.right), "checked": one.right.n} for one in found}


def median_times(judged: pd.DataFrame) -> dict[int, dict[str, Cell]]:
    """Work of which nobody knows how long it took was stored as done in no time."""
    seconds = (judged["submitted_at"] - judged["accepted_at"]).dt.total_seconds()
    by = seconds.where(seconds > 0).groupby(judged["worker"])
    return {
        worker: {"time": median_cell(timed) if len(timed) else Undefined(NO_TIME), "timed": len(timed)}
        for worker, timed in ((worker, own.dropna()) for worker, own in by)
    }


def habits(rows: Sequence[Mapping[str, Cell]], scales: Sequence[Rated]) -> str:
    """How many differences have an interval without 0, and the largest of them."""
    found = [(cell, row, scale) for row in rows for scale in scales if isinstance(cell := row[scale.key], Estimate)]
    sure = [one for one in found if one[0].low is not None and one[0].low * one[0].high > 0]
    if not found:
        return "Differences from the others are undefined for every annotator: the table says why."
    differences = f"{counted(len(found), 'mean difference')} from the others"
    if not sure:
        return f"None of {differences} has an interval without 0."
    cell, row, scale = max(sure, key=lambda one: abs(one[0].value))
    largest = f"{told(cell, Column('', '', Kind.NUMBER, 2))} steps, of annotator {row['annotator']} on {scale.label}"
    if len(sure) == 1:
        return f"1 of {differences} has an interval without 0: {largest}."
    return f"{len(sure):,} of {differences} have an interval without 0; the largest is {largest}."
