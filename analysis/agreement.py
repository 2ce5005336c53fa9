"""How far raters agree: Fleiss' kappa, Krippendorff's alpha and plain shares.

A label is worth what its raters' agreement is worth, so each figure is either right or refused
with a reason: where the textbook formula divides by zero, no number is made up.

``ratings`` is always a matrix ``(statements, raters)`` of category codes, any finite numbers,
NaN for missing; anything else raises ``ValueError``. Who gave a rating enters none of these
figures, only how many raters of a statement chose each category: the columns may be a pool of
thousands, or each statement's ratings pushed to the left.

Symbols, after Krippendorff (2011): ``n_uc`` counts the raters who put statement u into category
c, ``m_u`` the raters of u, ``n_c`` the ratings in category c, ``n`` all ratings.

Fleiss, J. L. (1971). Measuring nominal scale agreement among many raters. Psychological
Bulletin 76(5), 378-382. Krippendorff, K. (2011). Computing Krippendorff's alpha-reliability.
University of Pennsylvania, Annenberg School for Communication.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

TWO_THIRDS = 2 / 3


class Statistic(StrEnum):
    """The figures of agreement; the value is the name to show."""

    FLEISS_KAPPA = "Fleiss' kappa"
    ALPHA_NOMINAL = "Krippendorff's alpha (nominal)"
    ALPHA_ORDINAL = "Krippendorff's alpha (ordinal)"
    ALPHA_INTERVAL = "Krippendorff's alpha (interval)"
    FULL_AGREEMENT = "Full agreement"
    MAJORITY_AGREEMENT = "Majority agreement"


ALPHA_LEVELS = {
    "nominal": Statistic.ALPHA_NOMINAL,
    "ordinal": Statistic.ALPHA_ORDINAL,
    "interval": Statistic.ALPHA_INTERVAL,
}


class UndefinedAgreement(ValueError):
    """These ratings have no such figure; the message is the reason, a sentence for the user."""


@dataclass(frozen=True)
class Figure:
    """A figure as it must be shown: with its n, or with the reason why there is none.

    ``n_statements`` and ``n_ratings`` entered the figure; ``left_out`` counts the statements
    that have ratings but could not enter. One of ``value`` and ``reason`` is None.
    """

    name: Statistic
    value: float | None
    n_statements: int
    n_ratings: int
    left_out: int
    reason: str | None


@dataclass(frozen=True)
class Counts:
    """How many raters put each statement into each category."""

    n_uc: IntArray  # (statements, categories)
    categories: FloatArray  # (categories,), ascending

    @property
    def m_u(self) -> IntArray:
        """The number of ratings of each statement, ``(statements,)``."""
        return np.asarray(self.n_uc.sum(axis=1))


#: Counts of S statements and weights (resamples, S) in, values (resamples,) out, NaN for
#: undefined. A weight is how often a statement counts: once in the figure itself, any number
#: of times in a bootstrap resample. So both come from the same lines.
Formula = Callable[[Counts, FloatArray], FloatArray]


def fleiss_kappa(ratings: ArrayLike) -> float:
    """Return Fleiss' kappa: 1 is full agreement, 0 what chance gives, below 0 is worse.

    Every statement needs the same number of ratings, though not from the same raters;
    statements without any are passed over.

    Raises ``UndefinedAgreement`` when statements differ in their number of ratings (the message
    names one by its row, from 0), when none has two, and when all ratings are the same.

    Source: Fleiss (1971).

    >>> round(fleiss_kappa([[0, 0, 0], [0, 2, 2], [2, 2, 2]]), 3)
    0.55
    """
    counts = count_ratings(ratings)
    m_u, usual = counts.m_u, _usual_number(counts.m_u)
    odd = np.flatnonzero((m_u > 0) & (m_u != usual))
    if usual and odd.size:
        others = "the others" if odd.size == 1 else "others"
        raise UndefinedAgreement(
            "Fleiss' kappa needs equally many ratings for every statement; "
            f"statement {odd[0]} has {m_u[odd[0]]}, {others} {usual}. "
            "Use Krippendorff's alpha, which allows gaps."
        )
    return agreement(Statistic.FLEISS_KAPPA, counts)


def krippendorff_alpha(ratings: ArrayLike, level: str = "nominal") -> float:
    """Return Krippendorff's alpha: 1 is full agreement, 0 what chance gives, below 0 is worse.

    Statements with fewer than two ratings have nothing to compare and do not enter. ``level``
    says what the distance between two categories means: "nominal" (same or not), "ordinal"
    (how many ratings lie between them) or "interval" (their difference).

    Raises ``UndefinedAgreement`` when no statement has two ratings and when all ratings that
    can be compared are the same; ``ValueError`` for another ``level``.

    Source: Krippendorff (2011), sections C and D.

    >>> ratings = [[1, 1, np.nan], [2, 2, 3], [3, 3, 3], [np.nan, 1, 2]]
    >>> [round(krippendorff_alpha(ratings, level), 3) for level in ("nominal", "ordinal")]
    [0.455, 0.74]
    """
    if level not in ALPHA_LEVELS:
        raise ValueError(f"level is {level!r}; choose 'nominal', 'ordinal' or 'interval'.")
    return agreement(ALPHA_LEVELS[level], count_ratings(ratings))


def full_agreement(ratings: ArrayLike) -> float:
    """Return the share of statements, from 0 to 1, whose raters all chose the same category.

    A lone rating agrees with nobody: statements with fewer than two ratings do not enter.
    Raises ``UndefinedAgreement`` when no statement has two.

    >>> full_agreement([[0, 0, 0], [0, 2, 2], [2, 2, np.nan], [1, 0, 2]])
    0.5
    """
    return agreement(Statistic.FULL_AGREEMENT, count_ratings(ratings))


def majority_agreement(ratings: ArrayLike, share: float = TWO_THIRDS) -> float:
    """Return the share of statements, from 0 to 1, on which a majority of raters agrees.

    A majority is ``share`` of a statement's raters, or more, in one category. Statements with
    fewer than two ratings do not enter. Raises ``UndefinedAgreement`` when no statement has
    two; ``ValueError`` unless ``share`` is above 0.5 and at most 1.

    >>> majority_agreement([[0, 0, 0], [0, 2, 2], [2, 2, np.nan], [1, 0, 2]])
    0.75
    """
    if not 0.5 < share <= 1:
        raise ValueError(f"share is {share:g}; a majority is above 0.5 of the raters, at most 1.")
    formula = partial(_agreeing_share, share=share)
    return agreement(Statistic.MAJORITY_AGREEMENT, count_ratings(ratings), formula)


def agreement_table(ratings: ArrayLike, *, names: Mapping[float, str] | None = None) -> list[Figure]:
    """Return every figure of agreement, in the order of ``Statistic``; none is ever raised.

    ``names`` are what reasons call the categories, instead of their numbers. Statements with fewer than
    two ratings enter no figure. Fleiss' kappa takes the statements that have the most usual number of
    ratings (of equally usual numbers, the largest).

    >>> table = agreement_table([[0, 0, 0], [0, 2, 2], [2, 2, np.nan], [1, np.nan, np.nan]])
    >>> for figure in table[:2]:
    ...     print(figure.name, round(figure.value, 3), figure.n_statements, figure.left_out)
    Fleiss' kappa 0.25 2 2
    Krippendorff's alpha (nominal) 0.562 3 1
    """
    counts = count_ratings(ratings)
    return [_figure(statistic, counts, names or {}) for statistic in Statistic]


def agreement(
    statistic: Statistic, counts: Counts, formula: Formula | None = None, *, names: Mapping[float, str] | None = None
) -> float:
    """Return ``statistic`` of the statements that can enter it; ``formula`` replaces its own.

    Raises ``UndefinedAgreement`` with the reason when it has no value.
    """
    used = usable(statistic, counts)
    if not counts.n_uc.any():
        raise UndefinedAgreement(f"{statistic} needs ratings, and there are none. Wait until statements are annotated.")
    if not used.n_uc.any():
        raise UndefinedAgreement(
            f"{statistic} needs a statement with at least two ratings; all statements have "
            "at most 1. Have more raters rate the same statements."
        )
    value = float((formula or FORMULAS[statistic])(used, np.ones((1, len(used.n_uc))))[0])
    if np.isnan(value):
        category = float(used.categories[used.n_uc.any(axis=0)][0])
        name = (names or {}).get(category, f"{category:g}")
        raise UndefinedAgreement(
            f"{statistic} cannot tell agreement from chance when all ratings are the same; "
            f"all {used.n_uc.sum()} are {name}. Report the share of full agreement."
        )
    return value


def count_ratings(ratings: ArrayLike) -> Counts:
    """Return how often each statement got each category.

    >>> count_ratings([[1, 5, 5], [1, np.nan, np.nan]]).n_uc
    array([[1, 2],
           [1, 0]])
    """
    matrix = np.asarray(ratings, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(
            f"ratings has the shape {matrix.shape}; give a matrix (statements, raters), NaN for a missing rating."
        )
    given = ~np.isnan(matrix)
    values = matrix[given]  # (ratings,), row by row
    infinite = values[np.isinf(values)]
    if infinite.size:
        raise ValueError(f"ratings has the value {infinite[0]}; mark a missing rating as NaN.")
    categories, codes = np.unique(values, return_inverse=True)
    statements = np.repeat(np.arange(len(matrix)), np.count_nonzero(given, axis=1))
    shape = (len(matrix), len(categories))
    cells = np.bincount(statements * shape[1] + codes, minlength=shape[0] * shape[1])
    return Counts(cells.reshape(shape), categories)


def usable(statistic: Statistic, counts: Counts) -> Counts:
    """Return the counts of the statements that enter ``statistic``, as in ``agreement_table``."""
    m_u = counts.m_u
    enter = m_u >= 2
    if statistic is Statistic.FLEISS_KAPPA:
        enter &= m_u == _usual_number(m_u)
    return Counts(counts.n_uc[enter], counts.categories)


def _figure(statistic: Statistic, counts: Counts, names: Mapping[float, str]) -> Figure:
    value, reason = None, None
    try:
        value = agreement(statistic, counts, names=names)
    except UndefinedAgreement as undefined:  # the table shows the reason in place of the value
        reason = str(undefined)
    used = usable(statistic, counts)
    left_out = int(np.count_nonzero(counts.m_u)) - len(used.n_uc)
    return Figure(statistic, value, len(used.n_uc), int(used.n_uc.sum()), left_out, reason)


def _usual_number(m_u: IntArray) -> int:
    """Return the most usual number of ratings from 2 up, of ties the largest; 0 if there is none.

    A single rating, however usual, can never enter kappa.
    """
    numbers, statements = np.unique(m_u[m_u >= 2], return_counts=True)
    return int(numbers[statements == statements.max()][-1]) if numbers.size else 0


def _fleiss_kappa(counts: Counts, weights: FloatArray) -> FloatArray:
    """Fleiss (1971): (P - P_e) / (1 - P_e), here as 1 - (1 - P) / (1 - P_e).

    The second form loses no digits where nearly all ratings are the same.
    """
    n_uc = counts.n_uc.astype(np.float64)  # (statements, categories)
    m = n_uc[0].sum()
    statements = weights.sum(axis=1)  # (resamples,)
    disagreeing_pairs = (n_uc * (m - n_uc)).sum(axis=1) / (m * (m - 1))  # 1 - P_u
    p_c = weights @ n_uc / (statements * m)[:, None]  # (resamples, categories)
    observed = weights @ disagreeing_pairs / statements  # 1 - P
    expected = (p_c * (1 - p_c)).sum(axis=1)  # 1 - P_e
    return _one_minus_ratio(observed, expected)


def _krippendorff_alpha(counts: Counts, weights: FloatArray, level: str) -> FloatArray:
    """Krippendorff (2011), section D: 1 - D_o / D_e."""
    n_uc = counts.n_uc.astype(np.float64)  # (statements, categories)
    n_c = weights @ n_uc  # (resamples, categories)
    n = n_c.sum(axis=1)
    # The coincidences o_ck, without taking off a rating's pair with itself: that stands on the
    # diagonal, where the distance is 0.
    pair_weights = weights / (counts.m_u - 1)  # (resamples, statements)
    o_ck = (pair_weights[:, None, :] * n_uc.T) @ n_uc  # (resamples, categories, categories)
    distance = _distance(counts.categories, n_c, level)
    observed = (o_ck * distance).sum(axis=(1, 2)) / n
    expected = (n_c[:, :, None] * n_c[:, None, :] * distance).sum(axis=(1, 2)) / (n * (n - 1))
    return _one_minus_ratio(observed, expected)


def _distance(categories: FloatArray, n_c: FloatArray, level: str) -> FloatArray:
    """Return the squared distances, ``(resamples or 1, categories, categories)``.

    The ordinal one, (ratings from c to k - (n_c + n_k) / 2)^2, is the squared difference of the
    two categories' middle ranks, so that it needs no sum for each pair.
    """
    if level == "nominal":
        return 1.0 - np.eye(len(categories))[None]
    places = np.cumsum(n_c, axis=1) - n_c / 2 if level == "ordinal" else categories[None]
    return np.asarray((places[:, :, None] - places[:, None, :]) ** 2)


def _agreeing_share(counts: Counts, weights: FloatArray, share: float) -> FloatArray:
    # The quotient, not share * m_u: 2 of 3 rounds to the very float that 2 / 3 is.
    agreeing = counts.n_uc.max(axis=1) / counts.m_u >= share
    return np.asarray(weights @ agreeing / weights.sum(axis=1))


def _one_minus_ratio(observed: FloatArray, expected: FloatArray) -> FloatArray:
    """Return 1 - observed / expected, NaN where chance has nothing to disagree on."""
    undefined = np.full_like(expected, np.nan)
    return np.asarray(1 - np.divide(observed, expected, out=undefined, where=expected > 0))


# Last, because it names what stands above.
FORMULAS: dict[Statistic, Formula] = {
    Statistic.FLEISS_KAPPA: _fleiss_kappa,
    Statistic.ALPHA_NOMINAL: partial(_krippendorff_alpha, level="nominal"),
    Statistic.ALPHA_ORDINAL: partial(_krippendorff_alpha, level="ordinal"),
    Statistic.ALPHA_INTERVAL: partial(_krippendorff_alpha, level="interval"),
    Statistic.FULL_AGREEMENT: partial(_agreeing_share, share=1.0),
    Statistic.MAJORITY_AGREEMENT: partial(_agreeing_share, share=TWO_THIRDS),
}
