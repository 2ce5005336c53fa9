"""The statistics that need only how many raters put each statement into each category.

Each formula takes the counts of S distinct rows and weights ``(resamples, S)``, and returns one value a resample, NaN
for undefined. A weight is how often a row counts: as often as it occurs in the figure itself, any number of times in a
bootstrap resample. So both come from the same lines.
"""

import numpy as np

from analysis.agreement.ratings import Counts, FloatArray

TWO_THIRDS = 2 / 3


def fleiss_kappa(counts: Counts, weights: FloatArray) -> FloatArray:
    """Fleiss (1971): (P - P_e) / (1 - P_e), here as 1 - (1 - P) / (1 - P_e).

    The second form loses no digits where nearly all ratings are the same.
    """
    n_uc = counts.n_uc.astype(np.float64)  # (statements, categories)
    m = n_uc[0].sum()
    statements = weights.sum(axis=1)  # (resamples,)
    disagreeing_pairs = (m**2 - (n_uc**2).sum(axis=1)) / (m * (m - 1))  # 1 - P_u
    p_c = weights @ n_uc / (statements * m)[:, None]  # (resamples, categories)
    observed = weights @ disagreeing_pairs / statements  # 1 - P
    expected = (p_c * (1 - p_c)).sum(axis=1)  # 1 - P_e
    return one_minus_ratio(observed, expected)


def krippendorff_alpha(counts: Counts, weights: FloatArray, level: str) -> FloatArray:
    """Krippendorff (2011), section D: 1 - D_o / D_e."""
    n_uc = counts.n_uc.astype(np.float64)  # (statements, categories)
    n_c = weights @ n_uc  # (resamples, categories)
    n = n_c.sum(axis=1)
    o_ck = _coincidences(n_uc, weights / (counts.m_u - 1))  # (resamples, categories, categories)
    distance = _distance(counts.categories, n_c, level)
    observed = (o_ck * distance).sum(axis=(1, 2)) / n
    expected = (n_c[:, :, None] * n_c[:, None, :] * distance).sum(axis=(1, 2)) / (n * (n - 1))
    return one_minus_ratio(observed, expected)


def _coincidences(n_uc: FloatArray, pair_weights: FloatArray) -> FloatArray:
    """Return the coincidences o_ck of each resample.

    A rating's pair with itself is not taken off: that stands on the diagonal, where the distance is 0.
    """
    categories = n_uc.shape[1]
    products = (n_uc[:, :, None] * n_uc[:, None, :]).reshape(len(n_uc), categories**2)
    return (pair_weights @ products).reshape(len(pair_weights), categories, categories)


def _distance(categories: FloatArray, n_c: FloatArray, level: str) -> FloatArray:
    """Return the squared distances, ``(resamples or 1, categories, categories)``.

    The ordinal one, (ratings from c to k - (n_c + n_k) / 2)^2, is the squared difference of the
    two categories' middle ranks, so that it needs no sum for each pair.
    """
    if level == "nominal":
        return 1.0 - np.eye(len(categories))[None]
    places = np.cumsum(n_c, axis=1) - n_c / 2 if level == "ordinal" else categories[None]
    return np.asarray((places[:, :, None] - places[:, None, :]) ** 2)


def gwet(counts: Counts, weights: FloatArray, *, ordinal: bool) -> FloatArray:
    """Gwet (2014), with missing ratings: (p_a - p_e) / (1 - p_e), as 1 - (1 - p_a) / (1 - p_e).

    p_a is of the statements with two ratings or more, p_e of all that have one.
    """
    n_uc = counts.n_uc.astype(np.float64)  # r_ik: (statements, categories)
    m, q = counts.m_u, n_uc.shape[1]
    w_kl = ordinal_weights(q) if ordinal else np.eye(q)
    pairs = np.maximum(m * (m - 1), 1)
    agreeing = (n_uc * (n_uc @ w_kl - 1)).sum(axis=1) / pairs
    disagreeing = np.where(m >= 2, 1 - agreeing, 0.0)
    pairable = weights @ (m >= 2)  # (resamples,)
    pi_k = weights @ (n_uc / m[:, None]) / weights.sum(axis=1)[:, None]  # (resamples, categories)
    expected = w_kl.sum() / (q * (q - 1)) * (pi_k * (1 - pi_k)).sum(axis=1)  # p_e
    return one_minus_ratio(weights @ disagreeing, pairable * (1 - expected))


def ordinal_weights(q: int) -> FloatArray:
    """Return Gwet's ordinal weights of q categories: how far a pair of them agrees, 1 to 0.

    1 - C(|k - l| + 1, 2) / C(q, 2): they depend on the order of the categories alone, not on their distances.

    Source: Gwet (2014).

    >>> ordinal_weights(3).round(3).tolist()
    [[1.0, 0.667, 0.0], [0.667, 1.0, 0.667], [0.0, 0.667, 1.0]]
    """
    apart = abs(np.subtract.outer(np.arange(q), np.arange(q)))
    return np.asarray(1 - apart * (apart + 1) / (q * (q - 1)))


def agreeing_share(counts: Counts, weights: FloatArray, share: float) -> FloatArray:
    # The quotient, not share * m_u: 2 of 3 rounds to the very float that 2 / 3 is.
    agreeing = counts.n_uc.max(axis=1) / counts.m_u >= share
    return np.asarray(weights @ agreeing / weights.sum(axis=1))


def one_minus_ratio(observed: FloatArray, expected: FloatArray) -> FloatArray:
    """Return 1 - observed / expected, NaN where chance has nothing to disagree on."""
    undefined = np.full_like(expected, np.nan)
    return np.asarray(1 - np.divide(observed, expected, out=undefined, where=expected > 0))
