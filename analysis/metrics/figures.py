"""How well probabilities tell toxic from benign texts, how far they can be believed, and whom they wrong.

Sources: Hanley, J. A. & McNeil, B. J. (1982). The meaning and use of the area under a ROC curve. Radiology 143. Guo, C.
et al. (2017). On calibration of modern neural networks. ICML, section 2.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.agreement.ratings import BoolArray, FloatArray, IntArray

THRESHOLD = 0.5
"""A text with this probability or more is taken for toxic."""
BINS = 10
LEAST = 10
"""A group with fewer benign texts does not count in the spread: chance alone would part it from the others."""
NAN = math.nan


@dataclass(frozen=True)
class Counts:
    """How many texts are taken for what; a share of nothing is NaN.

    >>> Counts(true_positives=3, false_positives=1, false_negatives=2, true_negatives=4).f1
    0.6666666666666666
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def f1(self) -> float:
        """Of the toxic class; NaN where no text is toxic and none is taken for it."""
        return _share(2 * self.true_positives, 2 * self.true_positives + self.false_positives + self.false_negatives)

    @property
    def accuracy(self) -> float:
        right = self.true_positives + self.true_negatives
        return _share(right, right + self.false_positives + self.false_negatives)

    @property
    def precision(self) -> float:
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        return _share(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def false_positive_rate(self) -> float:
        """The share of benign texts that are taken for toxic."""
        return _share(self.false_positives, self.false_positives + self.true_negatives)


class Bin(NamedTuple):
    """Texts whose probability is from ``low`` to below ``high``, the last bin's 1 included."""

    low: float
    high: float
    n: int
    mean_prob: float
    share_toxic: float


class Rate(NamedTuple):
    """A group's false-positive rate, and of how many benign texts."""

    rate: float
    n: int


def auc(scores: ArrayLike, toxic: ArrayLike) -> float:
    """The chance that a toxic text has a higher score than a benign one, a tie counting half; NaN of one class only.

    ``scores``, ``(N,)``, may be any numbers that rise with toxicity.

    >>> auc([0.1, 0.4, 0.4, 0.9], [False, False, True, True])
    0.875
    """
    x, y = checked(scores, toxic)
    positives = int(np.count_nonzero(y))
    negatives = len(y) - positives
    if not positives or not negatives:
        return NAN
    ranks = stats.rankdata(x)[y].sum()
    return float((ranks - positives * (positives + 1) / 2) / (positives * negatives))


def at_threshold(probs: ArrayLike, toxic: ArrayLike, threshold: float = THRESHOLD) -> Counts:
    """How many texts are taken for what, where those with ``threshold`` or more are taken for toxic.

    >>> at_threshold([0.2, 0.5, 0.7, 0.1], [False, False, True, True]).false_positive_rate
    0.5
    """
    x, y = checked_probs(probs, toxic)
    taken = x >= threshold
    return Counts(*(int(np.count_nonzero(cell)) for cell in (taken & y, taken & ~y, ~taken & y, ~taken & ~y)))


def reliability(probs: ArrayLike, toxic: ArrayLike, bins: int = BINS) -> list[Bin]:
    """What share of the texts with about the same probability is toxic: equally wide bins, empty ones left out.

    >>> for bin in reliability([0.1, 0.15, 0.9, 1.0], [False, True, True, True], bins=2):
    ...     print(bin.low, bin.high, bin.n, round(bin.mean_prob, 3), bin.share_toxic)
    0.0 0.5 2 0.125 0.5
    0.5 1.0 2 0.95 1.0
    """
    x, y = checked_probs(probs, toxic)
    n, mass, hits = (np.bincount(places(x, bins), weights, bins) for weights in (None, x, y))
    return [
        Bin(b / bins, (b + 1) / bins, int(n[b]), float(mass[b] / n[b]), float(hits[b] / n[b]))
        for b in np.flatnonzero(n).tolist()
    ]


def calibration_error(probs: ArrayLike, toxic: ArrayLike, bins: int = BINS) -> float:
    """The expected calibration error: how far mean probability and share of toxic texts differ, over the bins' texts.

    >>> round(calibration_error([0.1, 0.15, 0.9, 1.0], [False, True, True, True], bins=2), 4)
    0.2125
    """
    found = reliability(probs, toxic, bins)
    n = sum(bin.n for bin in found)
    return sum(bin.n * abs(bin.mean_prob - bin.share_toxic) for bin in found) / n if n else NAN


def false_positive_rates(
    probs: ArrayLike, toxic: ArrayLike, groups: Sequence[str], threshold: float = THRESHOLD
) -> dict[str, Rate]:
    """Each group's share of benign texts that are taken for toxic, NaN of none; a text about "" is of no group.

    >>> false_positive_rates([0.9, 0.1, 0.2, 0.9], [False, False, False, True], ["a", "a", "b", "c"])
    {'a': Rate(rate=0.5, n=2), 'b': Rate(rate=0.0, n=1), 'c': Rate(rate=nan, n=0)}
    """
    x, y = checked_probs(probs, toxic)
    names, codes = coded(groups, len(x))
    benign = np.bincount(codes[~y], minlength=len(names)).tolist()
    wrong = np.bincount(codes[~y & (x >= threshold)], minlength=len(names)).tolist()
    return {name: Rate(_share(k, n), n) for name, k, n in zip(names, wrong, benign, strict=True) if name}


def spread(rates: Mapping[str, Rate], least: int = LEAST) -> float:
    """The largest less the smallest false-positive rate, of groups with ``least`` benign texts; NaN of fewer than two.

    >>> spread({"a": Rate(0.5, 20), "b": Rate(0.25, 12), "c": Rate(1.0, 1)})
    0.25
    """
    counted = [rate.rate for rate in rates.values() if rate.n >= max(1, least)]
    return max(counted) - min(counted) if len(counted) > 1 else NAN


def checked(scores: ArrayLike, toxic: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Scores and labels, ``(N,)`` each. Raises ``ValueError`` for what is no score a text, and no label a text."""
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(toxic)
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"There are scores of shape {x.shape} and labels of shape {y.shape}; give one of each a text.")
    if (missing := np.flatnonzero(np.isnan(x))).size:
        raise ValueError(f"{_texts(missing)} no score (NaN); have every text scored, or leave it out with its label.")
    if y.size and not np.isin(y, (0, 1)).all():
        raise ValueError("Labels are true or 1 for toxic, and false or 0 for benign; give these.")
    return x, y.astype(bool)


def checked_probs(probs: ArrayLike, toxic: ArrayLike) -> tuple[FloatArray, BoolArray]:
    """As ``checked``; raises ``ValueError`` also for scores that are no probabilities."""
    x, y = checked(probs, toxic)
    if (wrong := np.flatnonzero((x < 0) | (x > 1))).size:
        raise ValueError(f"{x[wrong[0]]:g} is no probability: give numbers from 0 to 1, such as a softmax of logits.")
    return x, y


def coded(groups: Sequence[str], n: int) -> tuple[list[str], IntArray]:
    """The groups in their order, and each text's place among them, ``(N,)``."""
    if len(groups) != n:
        raise ValueError(f"There are {len(groups):,} groups and {n:,} texts; give one a text, empty for none.")
    names, codes = np.unique(np.asarray(groups, dtype=np.str_), return_inverse=True)
    return names.tolist(), codes


def places(x: FloatArray, bins: int) -> IntArray:
    """The bin of each probability, ``(N,)``."""
    if bins < 1:
        raise ValueError(f"bins is {bins}; give at least 1, usually {BINS}.")
    return np.searchsorted(np.arange(1, bins) / bins, x, side="right")


def _share(k: float, n: float) -> float:
    return k / n if n else NAN


def _texts(places: IntArray) -> str:
    if len(places) == 1:
        return f"Text {places[0] + 1:,} has"
    return f"{len(places):,} texts, the first of them number {places[0] + 1:,}, have"
