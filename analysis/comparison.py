"""Whether two sets of statements differ: means and shares with their intervals, differences with a named test.

Every interval is of 95 %, every test two-sided, every difference the first side minus the second. The choice between
tests follows from how many values there are, and each result says in words why its test fits. What the data do not
carry is refused with ``CannotCompare`` and never given as NaN.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from analysis.arrangements import DRAWN, EXACT_UP_TO, Arranged, flip_signs, part_anew
from analysis.comparable import (
    ALPHA,
    CannotCompare,
    are_equal,
    least_p_of_pairs,
    least_p_of_sides,
    pairs_of,
    refuse_no_counts,
    values_of,
)

MANY = 30
"""From so many values on, means are near enough to normal for a t test."""
ENOUGH = 10
"""From so many values on, a mean has a t interval: of fewer it would say little more than the scale does."""
Z = float(stats.norm.isf(ALPHA / 2))

WELCH = "Welch's t test"
PAIRED_T = "paired t test"
PERMUTATION = "permutation test"
SIGN_FLIPS = "sign-flip permutation test"
POOLED_Z = "two-proportion z test"
FISHER = "Fisher's exact test"
MCNEMAR = "McNemar's exact test"
DELONG = "DeLong's test"

ARRANGED = (
    f"All arrangements are gone through where there are at most {EXACT_UP_TO:,}, else {DRAWN:,} drawn at random "
    "(seed 0) and the observed one."
)
WHY = {
    WELCH: "it compares the means of two separate sets and does not take their spreads as equal; "
    f"with {MANY} values or more on each side, means are near enough to normal.",
    PAIRED_T: f"it compares two values of each pair, and with {MANY} pairs or more the mean difference is near enough "
    "to normal.",
    PERMUTATION: f"with fewer than {MANY} values on a side, or with no spread, a t test would rest on a shape that "
    "nobody can check; this one sees how Welch's t turns out with the values parted anew between the sides, and so "
    f"does not take their spreads as equal (Janssen, 1997). {ARRANGED}",
    SIGN_FLIPS: f"with fewer than {MANY} pairs, or with no spread, a t test would rest on a shape that nobody can "
    "check; this one only takes that without a difference each pair could as well stand the other way round. "
    f"{ARRANGED}",
    POOLED_Z: "it compares the shares of two separate sets, and 5 or more are expected in each of the four counts.",
    FISHER: "it compares the shares of two separate sets and is exact where one of the four counts is expected to "
    "be below 5.",
    MCNEMAR: "it compares yes or no within pairs: only pairs that differ count, and it is exact however few they are.",
    DELONG: "it compares two AUCs of the same texts and counts in that classifiers rank the same texts alike (DeLong, "
    "DeLong and Clarke-Pearson, 1988).",
}
"""Why each test fits where it is chosen, as it goes on after its name and a colon."""


class Interval(NamedTuple):
    """A figure and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """The first side minus the second, in the unit of the values.

    ``low`` and ``high`` are its 95 % interval, None where the values have no spread that one could rest on. ``p`` is
    two-sided; ``test`` names the test and ``why`` says why it fits.
    """

    value: float
    low: float | None
    high: float | None
    p: float
    test: str

    @property
    def why(self) -> str:
        return WHY[self.test]


def mean_with_interval(values: ArrayLike, scale: tuple[float, float] = (-math.inf, math.inf)) -> Interval:
    """The mean of ``values``, ``(n,)``, and its t interval; ``scale`` is the least and the greatest possible value.

    Raises ``CannotCompare`` for fewer than ten values, for a missing one, where the interval would leave the scale,
    and for values that are all equal: an interval without width would claim that the next value is known.

    >>> [round(number, 2) for number in mean_with_interval([1, 2, 3, 4, 5] * 2)]
    [3.0, 1.93, 4.07]
    """
    x = values_of(values)
    if len(x) < ENOUGH:
        raise CannotCompare(
            f"The interval of a mean needs at least {ENOUGH} values; there {'is' if len(x) == 1 else 'are'} {len(x)}."
        )
    if are_equal(x):
        raise CannotCompare(f"All {len(x):,} values are {x[0]:g}: without a spread a mean has no interval.")
    half = float(stats.t.isf(ALPHA / 2, len(x) - 1)) * float(x.std(ddof=1)) / math.sqrt(len(x))
    found = Interval(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half)
    if found.low < scale[0] or found.high > scale[1]:
        raise CannotCompare(
            f"The values are too near an end of their scale ({scale[0]:g} to {scale[1]:g}) for a t interval."
        )
    return found


def share_with_interval(k: int, n: int) -> Interval:
    """The share ``k / n`` and its Wilson interval, all between 0 and 1.

    Raises ``CannotCompare`` for ``n`` of 0 and ``ValueError`` for a ``k`` that is not among 0 to ``n``.
    Source: Wilson, E. B. (1927), Journal of the American Statistical Association 22.

    >>> [round(number, 4) for number in share_with_interval(81, 263)]
    [0.308, 0.2553, 0.3662]
    """
    refuse_no_counts(k, n)
    if n == 0:
        raise CannotCompare("There is nothing to take a share of.")
    middle = (k + Z**2 / 2) / (n + Z**2)
    half = Z / (n + Z**2) * math.sqrt(k * (n - k) / n + Z**2 / 4)
    return Interval(k / n, 0.0 if k == 0 else middle - half, 1.0 if k == n else middle + half)


def difference_of_means(first: ArrayLike, second: ArrayLike) -> Difference:
    """The mean of ``first``, ``(n,)``, minus that of ``second``, ``(m,)``: separate sets of values.

    Welch's t test and its interval from 30 values a side on; below, and where neither side has a spread, a permutation
    test of Welch's t with the interval of the shifts that it would not reject, its p never 0.

    Raises ``CannotCompare`` for a missing value, for a side of one value, whose spread nobody knows, for values that
    are all equal, and for so few that no result could give p = 0.05.

    >>> difference = difference_of_means([1, 2, 2, 3], [4, 4, 5, 5])
    >>> difference.test, round(difference.p, 4), difference.value
    ('permutation test', 0.0286, -2.5)
    """
    a, b = values_of(first), values_of(second)
    least = least_p_of_sides(len(a), len(b))
    if min(len(a), len(b)) < 2:
        raise CannotCompare(
            f"With {len(a):,} and {len(b):,} values the spread of a side is not known: means need at least 2 on each."
        )
    if are_equal(np.concatenate([a, b])):
        raise CannotCompare(f"All values of both sides are {a[0]:g}: there is no difference to test.")
    if are_equal(a) and are_equal(b):  # no other arrangement parts the values so
        return Difference(float(a.mean() - b.mean()), None, None, least, PERMUTATION)
    if min(len(a), len(b)) < MANY:
        return _arranged(part_anew(a, b), PERMUTATION)
    share_a, share_b = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    df = (share_a + share_b) ** 2 / (share_a**2 / (len(a) - 1) + share_b**2 / (len(b) - 1))
    return _by_t(float(a.mean() - b.mean()), math.sqrt(share_a + share_b), df, WELCH)


def paired_difference(first: ArrayLike, second: ArrayLike) -> Difference:
    """The mean over pairs of ``first`` minus ``second``, both ``(pairs,)`` in the same order.

    The paired t test and its interval from 30 pairs on; below, and where all pairs differ by the same, sign flips, with
    p and interval as in ``difference_of_means``.

    Raises ``CannotCompare`` for a missing value, for fewer than 6 pairs and where no pair differs, ``ValueError`` for
    sides of different length.

    >>> difference = paired_difference([3, 4, 3, 5, 4, 4], [1, 2, 2, 3, 1, 2])
    >>> difference.test, difference.p, difference.value
    ('sign-flip permutation test', 0.03125, 2.0)
    """
    d = np.subtract(*pairs_of(first, second))
    least = least_p_of_pairs(len(d))
    if not d.any():
        raise CannotCompare(f"None of the {len(d):,} pairs differs: there is no difference to test.")
    if are_equal(d):  # any pair turned round brings the mean nearer to 0, unless all are
        return Difference(float(d.mean()), None, None, least, SIGN_FLIPS)
    if len(d) < MANY:
        return _arranged(flip_signs(d), SIGN_FLIPS)
    return _by_t(float(d.mean()), float(d.std(ddof=1)) / math.sqrt(len(d)), len(d) - 1, PAIRED_T)


def difference_of_shares(k1: int, n1: int, k2: int, n2: int) -> Difference:
    """The share ``k1 / n1`` minus ``k2 / n2``, of separate sets, with Newcombe's interval.

    The z test with the pooled share (Pearson's chi-square of the four counts) where 5 or more are expected in each of
    them; Fisher's exact test elsewhere.

    Raises ``CannotCompare`` for so few that no result could give p = 0.05, ``ValueError`` for impossible counts.
    Source: Newcombe, R. G. (1998), Statistics in Medicine 17, 873-890, method 10.

    >>> difference = difference_of_shares(56, 70, 48, 80)
    >>> [round(number, 4) for number in (difference.value, difference.low, difference.high)]
    [0.2, 0.0524, 0.3339]
    """
    refuse_no_counts(k1, n1)
    refuse_no_counts(k2, n2)
    least_p_of_sides(n1, n2)
    (p1, l1, u1), (p2, l2, u2) = share_with_interval(k1, n1), share_with_interval(k2, n2)
    low, high = p1 - p2 - math.hypot(p1 - l1, u2 - p2), p1 - p2 + math.hypot(u1 - p1, p2 - l2)
    pooled = (k1 + k2) / (n1 + n2)
    if min(n1, n2) * min(pooled, 1 - pooled) >= 5:
        z = (p1 - p2) / math.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2))
        return Difference(p1 - p2, low, high, float(2 * stats.norm.sf(abs(z))), POOLED_Z)
    p = stats.fisher_exact([[k1, n1 - k1], [k2, n2 - k2]]).pvalue
    return Difference(p1 - p2, low, high, min(float(p), 1.0), FISHER)


def paired_difference_of_shares(first: ArrayLike, second: ArrayLike) -> Difference:
    """The share of ``first`` minus that of ``second``: yes (1) and no (0) of the same pairs, both ``(pairs,)``.

    McNemar's exact test with Newcombe's interval for paired shares.

    Raises ``CannotCompare`` for a missing value and for fewer than 6 pairs, ``ValueError`` for values other than 0
    and 1 and for sides of different length.
    Source: Newcombe, R. G. (1998), Statistics in Medicine 17, 2635-2650, method 10.
    """
    a, b = pairs_of(first, second)
    if not np.isin(np.concatenate([a, b]), (0, 1)).all():
        raise ValueError("A share within pairs is of values 0 and 1; give these, or take the paired difference.")
    n = len(a)
    least_p_of_pairs(n)
    both, neither = int((a * b).sum()), int(((1 - a) * (1 - b)).sum())
    only_a, only_b = int((a * (1 - b)).sum()), int((b * (1 - a)).sum())
    (p1, l1, u1), (p2, l2, u2) = share_with_interval(both + only_a, n), share_with_interval(both + only_b, n)
    phi = _correlation(both, only_a, only_b, neither)
    low = p1 - p2 - _distance(p1 - l1, u2 - p2, phi)
    high = p1 - p2 + _distance(u1 - p1, p2 - l2, phi)
    p = min(1.0, 2 * float(stats.binom.cdf(min(only_a, only_b), only_a + only_b, 0.5)))
    return Difference(p1 - p2, low, high, p, MCNEMAR)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values corrected for being several, in the order given.

    Each is what is to be compared with 0.05 so that all of them together give a false alarm in at most one of twenty
    times. Raises ``ValueError`` for one that is not between 0 and 1.
    Source: Holm, S. (1979), Scandinavian Journal of Statistics 6.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]
    """
    if wrong := [p for p in p_values if not 0 <= p <= 1]:
        raise ValueError(f"{wrong[0]} is no p value: these lie between 0 and 1.")
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = largest
    return corrected


def _by_t(difference: float, error: float, df: float, test: str) -> Difference:
    half = float(stats.t.isf(ALPHA / 2, df)) * error
    p = float(2 * stats.t.sf(abs(difference) / error, df))
    return Difference(difference, difference - half, difference + half, p, test)


def _arranged(arranged: Arranged, test: str) -> Difference:
    return Difference(arranged.value, arranged.low, arranged.high, arranged.p, test)


def _correlation(both: int, only_a: int, only_b: int, neither: int) -> float:
    """Newcombe's phi: that of the four counts, drawn towards 0 where it is positive, 0 where a margin is empty."""
    margins = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    if not margins:
        return 0.0
    excess = float(both * neither - only_a * only_b)
    if excess > 0:
        excess = max(excess - (both + only_a + only_b + neither) / 2, 0.0)
    return excess / math.sqrt(margins)


def _distance(x: float, y: float, phi: float) -> float:
    return math.sqrt(max(0.0, x**2 - 2 * phi * x * y + y**2))
