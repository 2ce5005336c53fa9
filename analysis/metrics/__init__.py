"""What a classifier's probabilities are worth: figures of detection and of calibration, with how sure they are. Pure.

``N`` texts have a label each, toxic or benign, and a classifier's probability of toxic. A figure that a test set does
not define, as the AUC of benign texts alone, is NaN; a missing probability is refused with ``ValueError``.
"""

from analysis.metrics.figures import (
    BINS,
    LEAST,
    THRESHOLD,
    Bin,
    Counts,
    Rate,
    at_threshold,
    auc,
    calibration_error,
    false_positive_rates,
    reliability,
    spread,
)
from analysis.metrics.paired import DeLong, delong
from analysis.metrics.resampled import intervals

__all__ = [
    "BINS",
    "LEAST",
    "THRESHOLD",
    "Bin",
    "Counts",
    "DeLong",
    "Rate",
    "at_threshold",
    "auc",
    "calibration_error",
    "delong",
    "false_positive_rates",
    "intervals",
    "reliability",
    "spread",
]
