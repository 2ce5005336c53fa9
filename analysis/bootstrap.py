"""How sure a figure of agreement is: a bootstrap interval over statements.

Statements are drawn again with replacement, as often as there are, and the figure is computed
anew each time; the interval holds the middle of what comes out. Raters are not drawn: the
interval speaks of other statements judged by such raters.

Two statements with the same counts are the same to every figure, so what is drawn is how often
each pattern of counts occurs. That is the same draw, and three raters and three classes make
ten patterns however many statements there are.

Efron, B. & Tibshirani, R. J. (1993). An Introduction to the Bootstrap, chapter 13: the
percentile interval.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.agreement import (
    FORMULAS,
    Counts,
    FloatArray,
    Statistic,
    UndefinedAgreement,
    agreement,
    count_ratings,
    usable,
)

#: Numbers in the largest array of one batch of resamples: 80 MB.
BATCH_SIZE = 10_000_000


@dataclass(frozen=True)
class Interval:
    """A percentile interval: ``level`` of the resamples' values lie from ``low`` to ``high``.

    ``resamples`` counts those that had a value, ``dropped`` those that had none because chance
    drew statements whose ratings are all the same. Where many are dropped, doubt the interval.
    """

    low: float
    high: float
    level: float
    resamples: int
    dropped: int


def bootstrap_interval(
    ratings: ArrayLike,
    statistic: Statistic,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the bootstrap interval of ``statistic`` over the statements that enter it.

    ``ratings`` has the shape ``(statements, raters)``, NaN for missing; as in
    ``agreement_table``, statements that cannot enter are left out first. The same ratings and
    ``seed`` give the same interval, in whatever order statements and raters stand.

    Raises ``UndefinedAgreement`` when the statistic is undefined, when fewer than two
    statements enter it and when every resample is undefined; ``ValueError`` for ``resamples``
    below 1, for a ``level`` not between 0 and 1, and for what ``agreement_table`` refuses.

    >>> ratings = [[0, 0, 0], [0, 2, 2], [2, 2, 2], [2, 2, np.nan], [1, 1, 1], [1, 1, 0]]
    >>> interval = bootstrap_interval(ratings, Statistic.FULL_AGREEMENT)
    >>> round(interval.low, 3), round(interval.high, 3), interval.dropped
    (0.333, 1.0, 0)
    """
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; give at least 1, better 1000.")
    if not 0 < level < 1:
        raise ValueError(f"level is {level:g}; give a share between 0 and 1, such as 0.95.")
    drawn = _drawn_from(statistic, count_ratings(ratings))
    values = _resampled(statistic, drawn, resamples, np.random.default_rng(seed))
    defined = values[~np.isnan(values)]
    if not defined.size:
        raise UndefinedAgreement(
            f"An interval of {statistic} cannot be given: in all {resamples} resamples the "
            "ratings are all the same. Draw more resamples, or have more statements rated."
        )
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, defined.size, resamples - defined.size)


def _drawn_from(statistic: Statistic, counts: Counts) -> Counts:
    """Return the statements to draw from; raise ``UndefinedAgreement`` if they give no interval."""
    agreement(statistic, counts)  # raises the reason: a figure without a value has no interval
    used = usable(statistic, counts)
    if len(used.n_uc) < 2:
        raise UndefinedAgreement(
            f"An interval of {statistic} needs at least 2 statements to draw from; "
            "only 1 can enter. Have more statements rated by at least two raters."
        )
    return used


def _resampled(statistic: Statistic, drawn: Counts, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return the statistic of each resample, ``(resamples,)``, NaN for undefined."""
    statements = len(drawn.n_uc)
    n_uc, occurrences = np.unique(drawn.n_uc, axis=0, return_counts=True)
    patterns, chances = Counts(n_uc, drawn.categories), occurrences / statements
    batch = max(1, BATCH_SIZE // n_uc.size)
    values = []
    for done in range(0, resamples, batch):
        weights = rng.multinomial(statements, chances, size=min(batch, resamples - done))
        values.append(FORMULAS[statistic](patterns, weights.astype(np.float64)))
    return np.concatenate(values)
