"""The figures of an evaluation, for a command's output and for programs; the report has more of them."""

import math
from collections.abc import Mapping

import numpy as np

from analysis import metrics
from analysis.evaluated import Results

Figures = dict[str, float | int | None]


def figures_of(results: Results) -> Figures:
    """What a classifier's scores are worth; None is what the texts leave undefined, as the AUC of one class."""
    counts = metrics.at_threshold(results.probs, results.toxic)
    figures: Mapping[str, float] = {
        "auc": metrics.auc(results.probs, results.toxic),
        "f1": counts.f1,
        "accuracy": counts.accuracy,
        "calibration_error": metrics.calibration_error(results.probs, results.toxic),
        "false_positive_rate": counts.false_positive_rate,
        "spread": metrics.spread(metrics.false_positive_rates(results.probs, results.toxic, results.groups)),
    }
    sizes = {"texts": len(results.probs), "toxic": int(np.count_nonzero(results.toxic))}
    sizes |= {"ambiguous": results.ambiguous, "unlabelled": results.unlabelled, "unscored": results.unscored}
    return sizes | {name: None if math.isnan(value) else value for name, value in figures.items()}


def right_by_functionality(results: Results) -> dict[str, tuple[float, int]]:
    """Of each functionality the share of its texts that are taken for what they are, and how many there are."""
    right = (results.probs >= metrics.THRESHOLD) == results.toxic  # (N,)
    functionalities = np.array(results.functionalities, dtype=object)
    return {
        name: (float(right[functionalities == name].mean()), int((functionalities == name).sum()))
        for name in sorted({*results.functionalities} - {""})
    }
