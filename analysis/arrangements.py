"""Permutation tests of a difference of means, with the interval of the shifts that they would not reject.

Values are arranged anew in the ways that could as well have come about if there were no difference: all ways where
they are few, else some drawn at random. How many of them give a difference as far from 0 as the observed one is p.

Phipson, B. & Smyth, G. K. (2010). Permutation p-values should never be zero. Statistical Applications in Genetics and
Molecular Biology 9. Garthwaite, P. H. (1996). Confidence intervals from randomization tests. Biometrics 52. Janssen, A.
(1997). Studentized permutation tests for non-i.i.d. hypotheses. Statistics & Probability Letters 36.
"""

import math
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Places = NDArray[np.int64]

EXACT_UP_TO = 20_000
"""So many arrangements are all gone through; of more, ``DRAWN`` are drawn."""
DRAWN = 9_999
LEFT_OUT = 20
"""The 95 % interval leaves out one arrangement in so many."""
HALVINGS = 50
"""Of the room in which an end of the interval lies."""


class Arranged(NamedTuple):
    """A difference, the ends of its 95 % interval (None without a spread) and its two-sided p."""

    value: float
    low: float | None
    high: float | None
    p: float

    def mirrored(self) -> "Arranged":
        """The same of the sides the other way round."""
        if self.low is None or self.high is None:
            return self._replace(value=-self.value)
        return Arranged(-self.value, -self.high, -self.low, self.p)


def part_anew(a: FloatArray, b: FloatArray) -> Arranged:
    """The mean of ``a``, ``(n,)``, minus that of ``b``, ``(m,)``: other ways to part all values into n and m.

    Arrangements are ranked by their Welch t: ranked by the bare difference, equal means would be told apart far too
    often where the smaller side is the more spread out (Janssen, 1997). n and m are at least 2, and one of the sides
    has a spread. The order of the values has no say in what is drawn, nor has which side comes first.

    >>> [round(number, 4) for number in part_anew(np.array([1.0, 2, 2, 3]), np.array([4.0, 4, 5, 6]))]
    [-2.75, -5.0, -1.0, 0.0286]
    """
    a, b = np.sort(a), np.sort(b)
    if (len(a), a.tolist()) > (len(b), b.tolist()):
        return part_anew(b, a).mirrored()
    observed, scale = float(a.mean() - b.mean()), float(np.ptp(np.concatenate([a, b])))
    share = _as_extreme(a - a.mean(), b - b.mean(), _places(len(a), len(a) + len(b)))
    # With a shift taken from the first side, what is left of the difference is 0 for that of the middle.
    left = observed if abs(observed) > 1e-12 * scale else 0.0
    low, high = sorted(observed - _verdict_changes(share, towards) for towards in (left or scale, -left or -scale))
    return Arranged(observed, low, high, share(left))


def _verdict_changes(share: Callable[[float], float], towards: float) -> float:
    """Where the test goes over to rejecting: before ``towards`` if it rejects there, else beyond.

    So the interval holds 0 just where p says so. What ``share`` gives need not fall all the way.
    """
    kept, rejected = 0.0, towards
    while share(rejected) > 1 / LEFT_OUT:
        kept, rejected = rejected, 2 * rejected
    for _ in range(HALVINGS):
        middle = (kept + rejected) / 2
        kept, rejected = (middle, rejected) if share(middle) > 1 / LEFT_OUT else (kept, middle)
    return rejected


def _places(n: int, size: int) -> Places:
    """Which of ``size`` values stand on the side of ``n``, ``(arrangements, n)``; the first is the observed one."""
    if math.comb(size, n) <= EXACT_UP_TO:
        return np.array(list(combinations(range(size), n)))
    rng = np.random.default_rng(0)
    places = np.tile(np.arange(n), (DRAWN + 1, 1))
    drawn = places[1:]
    for column, last in enumerate(range(size - n, size)):  # Floyd's way to draw n of size, in all rows at once
        place = rng.integers(0, last + 1, size=DRAWN)
        is_taken = (drawn[:, :column] == place[:, None]).any(axis=1)
        drawn[:, column] = np.where(is_taken, last, place)
    return places


def _as_extreme(a: FloatArray, b: FloatArray, places: Places) -> Callable[[float], float]:
    """Of sides with mean 0: the share of arrangements whose Welch t is at least as far from 0 as the observed one.

    It is a function of e, which is added to each value of ``a``.
    """
    n, m = len(a), len(b)
    from_a, taken = places < n, np.concatenate([a, b])[places]
    k, of_a, of_b = from_a.sum(axis=1), np.where(from_a, taken, 0), np.where(from_a, 0, taken)
    sum_a, sum_b = of_a.sum(axis=1), of_b.sum(axis=1)
    squares_a, squares_b = (of_a**2).sum(axis=1), (of_b**2).sum(axis=1)
    squares = float((a**2).sum()), float((b**2).sum())
    first = _Squares(k, n - k, sum_a, sum_b, squares_a, squares_b)
    second = _Squares(n - k, m - n + k, -sum_a, -sum_b, squares[0] - squares_a, squares[1] - squares_b)
    variance = squares[0] / (n * (n - 1)) + squares[1] / (m * (m - 1))

    def share(e: float) -> float:
        differences = (sum_a + sum_b) * (1 / n + 1 / m) + e * (k / n - (n - k) / m)
        variances = first.of(e) / (n * (n - 1)) + second.of(e) / (m * (m - 1))
        return float(np.mean(differences**2 * variance >= e**2 * variances * (1 - 1e-9)))

    return share


class _Squares:
    """The sum of squares of a side with k values of ``a`` and j of ``b``: W within them, h(g + e)² between them."""

    def __init__(
        self, k: FloatArray, j: FloatArray, sum_a: FloatArray, sum_b: FloatArray, *squares: FloatArray
    ) -> None:
        mean_a, mean_b = sum_a / np.maximum(k, 1), sum_b / np.maximum(j, 1)
        self.within = np.maximum(squares[0] - sum_a * mean_a + squares[1] - sum_b * mean_b, 0)
        self.weight, self.between = k * j / (k + j), mean_a - mean_b

    def of(self, e: float) -> FloatArray:
        return np.asarray(self.within + self.weight * (self.between + e) ** 2)


def flip_signs(d: FloatArray) -> Arranged:
    """The mean of the differences within pairs ``d``, ``(pairs,)``: other ways to turn the pairs round.

    >>> [round(number, 4) for number in flip_signs(np.array([1.0, 2, 3, 4, 5, 9]))]
    [4.0, 1.0, 9.0, 0.0312]
    """
    d, mirrored = np.sort(d), np.sort(-d)
    if d.tolist() > mirrored.tolist():
        return flip_signs(mirrored).mirrored()
    if 2 ** len(d) <= EXACT_UP_TO:
        numbers = np.arange(2 ** len(d))[:, None]
        signs = 1.0 - 2.0 * (numbers >> np.arange(len(d)) & 1)  # (arrangements, pairs)
    else:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(DRAWN + 1, len(d)))
        signs[0] = 1
    return _among(float(d.mean()), signs @ d / len(d), signs.mean(axis=1), np.abs(d).max())


def _among(observed: float, t: FloatArray, c: FloatArray, scale: float) -> Arranged:
    """Where the observed difference T stands among those of all arrangements, ``t``, itself one of them.

    With δ taken from each value of the first side, the observed difference is T - δ and that of an arrangement t - δc,
    ``c`` being what sides of 1 and 0 would give. It is at least as far from 0 as the observed one while δ lies between
    (T - t) / (1 - c) and (T + t) / (1 + c). The interval holds each δ for which more than one arrangement in twenty is.
    """
    slack = 1e-10 * scale
    p = float(np.mean(np.abs(t) >= abs(observed) - slack))
    always = np.abs(c) > 1 - 1e-12
    c = np.where(always, 0, c)
    lows, highs = np.sort([(observed - t) / (1 - c), (observed + t) / (1 + c)], axis=0)
    lows, highs = np.sort(np.where(always, -np.inf, lows)), np.sort(np.where(always, np.inf, highs))
    left_out = len(t) // LEFT_OUT
    low, high = float(lows[left_out]), float(highs[-1 - left_out])
    if not (math.isfinite(low) and math.isfinite(high) and high - low > slack):
        return Arranged(observed, None, None, p)
    return Arranged(observed, low, high, p)
