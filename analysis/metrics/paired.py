"""Whether two classifiers that scored the same texts differ: DeLong's test of their AUCs.

Sources: DeLong, E. R. et al. (1988). Comparing the areas under two or more correlated ROC curves. Biometrics 44. Sun,
X. & Xu, W. (2014). Fast implementation of DeLong's algorithm. IEEE Signal Processing Letters 21.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.agreement.ratings import BoolArray, FloatArray
from analysis.bootstrap import LEVEL, ROUNDING
from analysis.metrics.figures import NAN, checked


class DeLong(NamedTuple):
    """Two classifiers' AUCs on the same texts: first minus second, its 95 % interval, and the two-sided test."""

    first: float
    second: float
    difference: float
    low: float
    high: float
    z: float
    p: float


def delong(first: ArrayLike, second: ArrayLike, toxic: ArrayLike) -> DeLong:
    """Whether two classifiers' AUCs differ that scored the same texts, ``(N,)`` each, in O(N log N).

    The AUCs are NaN of one class only. Interval and test are with one text of a class, and where nothing varies that
    they could rest on: where the difference is 0, both rank every toxic text against every benign one alike; else it is
    the same for every text, as of a perfect classifier and one that is always wrong. They take the difference as
    normal, which it is near enough from about ten texts of each class on.

    >>> found = delong([0.1, 0.4, 0.35, 0.8, 0.7], [0.2, 0.1, 0.7, 0.3, 0.6], [False, False, True, True, True])
    >>> round(found.difference, 4), round(found.p, 4)
    (-0.1667, 0.4795)
    """
    (x, y), (also, _) = checked(first, toxic), checked(second, toxic)
    if y.all() or not y.any():
        return DeLong(*[NAN] * 7)
    (v10, v01), (also_v10, also_v01) = _placements(x, y), _placements(also, y)
    by_toxic, by_benign = v10 - also_v10, v01 - also_v01
    aucs, difference = (float(v10.mean()), float(also_v10.mean())), float(by_toxic.mean())
    if min(len(v10), len(v01)) < 2 or max(np.ptp(by_toxic), np.ptp(by_benign)) < ROUNDING:
        return DeLong(*aucs, difference, *[NAN] * 4)
    error = math.sqrt(by_toxic.var(ddof=1) / len(by_toxic) + by_benign.var(ddof=1) / len(by_benign))
    z, half = difference / error, float(stats.norm.isf((1 - LEVEL) / 2)) * error
    low, high = max(-1.0, difference - half), min(1.0, difference + half)
    return DeLong(*aucs, difference, low, high, z, float(2 * stats.norm.sf(abs(z))))


def _placements(x: FloatArray, y: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The share of benign texts below each toxic one, V10, and of toxic ones above each benign one, V01."""
    ranks, positives = stats.rankdata(x), np.count_nonzero(y)
    below, not_above = ranks[y] - stats.rankdata(x[y]), ranks[~y] - stats.rankdata(x[~y])
    return below / (len(x) - positives), 1 - not_above / positives
