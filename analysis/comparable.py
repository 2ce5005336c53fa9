"""What can be compared: rows of finite values, and enough of them for a test to find anything."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

ALPHA = 0.05
"""Intervals leave out so much; a test that could never give so small a p is not made."""


class CannotCompare(ValueError):
    """The data do not carry the figure; the message says what is missing."""


def values_of(values: ArrayLike) -> FloatArray:
    """The values as a row, ``(n,)``; raises ``CannotCompare`` for a missing one, ``ValueError`` for another shape."""
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1:
        raise ValueError(f"The values have the shape {x.shape}; give them in one row.")
    if missing := int((~np.isfinite(x)).sum()):
        raise CannotCompare(f"{missing:,} of {len(x):,} values are missing or infinite; leave them out and say so.")
    return x


def pairs_of(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both rows; raises what ``values_of`` does, and ``ValueError`` for rows of different length."""
    a, b = values_of(first), values_of(second)
    if len(a) != len(b):
        raise ValueError(f"Pairs have two values each; there are {len(a)} first and {len(b)} second ones.")
    return a, b


def are_equal(x: FloatArray) -> bool:
    """Also where the float sum of equal means differs in the last digits."""
    return bool(np.ptp(x) <= 1e-12 * np.abs(x).max())


def refuse_no_counts(k: int, n: int) -> None:
    """Raises ``ValueError`` for a count ``k`` that is not among 0 to ``n``."""
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share: give a count from 0 to {n}.")


def least_p_of_sides(n1: int, n2: int) -> float:
    """The p of the most extreme parting of two sides; one below 1e-10 may be smaller still.

    Raises ``CannotCompare`` where even this is more than one in twenty.
    """
    if not n1 or not n2:
        raise CannotCompare(f"A comparison needs two sides; there are {n1:,} values on one and {n2:,} on the other.")
    extremes = 2 if n1 == n2 else 1
    least = extremes / math.comb(n1 + n2, min(n1, n2, 20))  # of the full count of a large side nothing would be left
    if least > ALPHA:
        raise CannotCompare(
            f"With {n1} and {n2} values even the most extreme result would give p = {least:.2g}: too few for a test."
        )
    return least


def least_p_of_pairs(n: int) -> float:
    """The p of pairs that all point one way; raises ``CannotCompare`` where even this is more than one in twenty."""
    least = min(1.0, 2.0 ** (1 - min(n, 1000)))
    if least > ALPHA:
        raise CannotCompare(
            f"With {n} pairs even the most extreme result would give p = {least:.2g}: a test needs at least 6."
        )
    return least
