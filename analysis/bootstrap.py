"""How sure a figure of agreement is: its 95 % interval, by a bootstrap over statements or, of a share, Wilson's.

Statements are drawn again with replacement, as often as there are, and the figure is computed
anew each time; the interval holds the middle of what comes out. Raters are not drawn: the
interval speaks of other statements judged by such raters.

Statements with the same counts are the same to every figure, so what is drawn is how often each
pattern of counts occurs. That is the same draw, and three raters and three classes make ten
patterns however many statements there are. For the mean pairwise kappa a pattern is who chose what.

The kappa of few statements is too low on average, and a resample has fewer than there were. So the interval of the
mean pairwise kappa is the basic one, which takes that shift off: twice the figure less the percentiles.

Of few statements the resamples are too alike: of 5 the interval holds the true alpha in 60 % of cases, of 10 in 90 %.
So below ``FEWEST`` there is none, nor where all resamples give the same. The two shares have Wilson's interval, which
is sound however few statements there are and however many agree.

Efron, B. & Tibshirani, R. J. (1993). An Introduction to the Bootstrap, chapter 13: the
percentile interval. Davison, A. C. & Hinkley, D. V. (1997). Bootstrap Methods and their Application, section 5.2:
the basic interval.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.agreement import Figure, Ratings, Statistic, UndefinedAgreement
from analysis.agreement.figures import FORMULAS, SHARES, Entering, Units, figure
from analysis.agreement.ratings import FloatArray, IntArray

LEVEL = 0.95
#: Statements with two ratings or more that an interval by resamples takes.
FEWEST = 10
FEW = f"it takes at least {FEWEST} statements with two ratings or more. Have more statements rated by several raters."
ALIKE = (
    "all resamples give the same value, and without a width it would claim that other statements must give that, too."
)
ALL_UNDEFINED = "in all resamples it is undefined, as where all ratings are the same. Have more statements rated."
ONE_SIDED = (
    "the pairs of raters share so few statements that nearly all resamples fall on one side of the figure. Use "
    "Krippendorff's alpha."
)
#: Values that differ by no more are the same.
ROUNDING = 1e-12
#: Numbers in the largest array of one batch of resamples: 80 MB.
BATCH_SIZE = 10_000_000
#: Drawing how often a pattern occurs takes as long as drawing so many statements.
PATTERN_A_STATEMENT = 10


@dataclass(frozen=True)
class Interval:
    """A percentile interval: ``level`` of the resamples' values lie from ``low`` to ``high``; for the mean pairwise
    kappa the basic interval of the same resamples; for the shares Wilson's, which takes none.

    ``resamples`` counts those that had a value, ``dropped`` those that had none because chance drew statements whose
    ratings are all the same, or of each pair of raters. Where many are dropped, doubt the interval.
    """

    low: float
    high: float
    level: float
    resamples: int
    dropped: int


@dataclass(frozen=True)
class Row:
    """A figure with its interval, or with the reason why it has none, a sentence to go on after a colon.

    A figure without a value has its own reason.
    """

    figure: Figure
    interval: Interval | None
    no_interval: str | None = None


def figures_with_intervals(
    ratings: Ratings | ArrayLike,
    statistics: Sequence[Statistic] = tuple(Statistic),
    *,
    names: Mapping[float, str] | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Row]:
    """Return each figure with its interval, as ``agreement_table`` and ``bootstrap_interval`` do alone.

    Ratings are counted once, and what takes the same statements shares the draws.

    >>> ratings = Ratings.from_long([1, 1, 2, 2, 3, 3], ["a", "b", "a", "b", "a", "b"], [0, 0, 2, 2, 0, 2])
    >>> [row] = figures_with_intervals(ratings, [Statistic.FULL_AGREEMENT])
    >>> round(row.figure.value, 3), round(row.interval.low, 3), round(row.interval.high, 3)
    (0.667, 0.208, 0.939)
    """
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; give at least 1, better 1000.")
    entering = Entering(Ratings.of(ratings))
    rows = {statistic: Row(figure(statistic, entering, names or {}), None) for statistic in statistics}
    drawn: dict[str, list[Statistic]] = {}  # what takes the same statements
    for statistic, row in rows.items():
        if row.figure.value is None:
            continue
        if statistic in SHARES:
            rows[statistic] = Row(row.figure, _wilson(row.figure.value, row.figure.n_statements))
        elif row.figure.n_pairable < FEWEST:
            rows[statistic] = Row(row.figure, None, FEW)
        else:
            drawn.setdefault(entering.rule(statistic), []).append(statistic)
    for together in drawn.values():
        resampled = _resampled(together, entering.units(together[0]), resamples, np.random.default_rng(seed))
        for statistic, values in resampled.items():
            rows[statistic] = _with_interval(rows[statistic].figure, values)
    return [rows[statistic] for statistic in statistics]


def bootstrap_interval(
    ratings: Ratings | ArrayLike,
    statistic: Statistic,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Return the 95 % interval of ``statistic`` over the statements that enter it.

    ``ratings`` are ``Ratings`` or have the shape ``(statements, raters)``, NaN for missing; as in
    ``agreement_table``, statements that cannot enter are left out first. The same ratings and
    ``seed`` give the same interval, in whatever order statements and raters stand; of the mean pairwise kappa, in
    whatever order the ratings stand.

    Raises ``UndefinedAgreement`` when the statistic is undefined and, but for the shares, when fewer than ``FEWEST``
    statements with two ratings enter it, when every resample is undefined and when all give the same; ``ValueError``
    for ``resamples`` below 1 and for what ``agreement_table`` refuses.

    >>> ratings = [[0, 0, 0], [0, 2, 2], [2, 2, 2], [2, 2, np.nan], [1, 1, 1], [1, 1, 0]] * 2
    >>> interval = bootstrap_interval(ratings, Statistic.ALPHA_NOMINAL)
    >>> round(interval.low, 3), round(interval.high, 3), interval.dropped
    (0.339, 0.911, 0)
    """
    [row] = figures_with_intervals(ratings, [statistic], resamples=resamples, seed=seed)
    if row.interval is None:
        raise UndefinedAgreement(row.figure.reason or f"{statistic} has no interval: {row.no_interval}")
    return row.interval


def percentiles(values: FloatArray) -> tuple[float, float] | str:
    """Return between what the middle 95 % of the resamples' ``values`` lie, NaN for undefined, or why there is none."""
    defined = values[~np.isnan(values)]
    if not defined.size:
        return ALL_UNDEFINED
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return (float(low), float(high)) if high - low > ROUNDING else ALIKE


def _wilson(share: float, n: int) -> Interval:
    from analysis.comparison import share_with_interval  # loads scipy: only by what works figures out

    _, low, high = share_with_interval(round(share * n), n)
    return Interval(low, high, LEVEL, resamples=0, dropped=0)


def _with_interval(figure: Figure, values: FloatArray) -> Row:
    """Return the figure with the interval of its values in the resamples, ``(resamples,)``."""
    found = percentiles(values)
    if isinstance(found, str):
        return Row(figure, None, found)
    low, high = found
    if figure.name is Statistic.COHEN_KAPPA and figure.value is not None:
        low, high = max(2 * figure.value - high, -1.0), min(2 * figure.value - low, 1.0)
        if not low <= figure.value <= high:
            return Row(figure, None, ONE_SIDED)
    dropped = int(np.count_nonzero(np.isnan(values)))
    return Row(figure, Interval(low, high, LEVEL, len(values) - dropped, dropped))


def _resampled(
    statistics: Sequence[Statistic], units: Units, resamples: int, rng: np.random.Generator
) -> dict[Statistic, FloatArray]:
    """Return the value of each statistic in each resample, ``(resamples,)``, NaN for undefined."""
    values: dict[Statistic, list[FloatArray]] = {statistic: [] for statistic in statistics}
    for weights in times_drawn(units.occurrences, resamples, max(1, BATCH_SIZE // units.largest), rng):
        for statistic in statistics:
            values[statistic].append(FORMULAS[statistic](units, weights))
    return {statistic: np.concatenate(batches) for statistic, batches in values.items()}


def times_drawn(occurrences: IntArray, resamples: int, batch: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield how often each pattern is drawn, ``(resamples of a batch, patterns)``.

    Few patterns are drawn as counts, many a statement at a time: the same chances, whichever takes less time.
    """
    statements, patterns = int(occurrences.sum()), len(occurrences)
    of_statement = np.repeat(np.arange(patterns), occurrences)
    for done in range(0, resamples, batch):
        size = min(batch, resamples - done)
        if patterns * PATTERN_A_STATEMENT < statements:
            yield rng.multinomial(statements, occurrences / statements, size=size).astype(np.float64)
        else:
            drawn = of_statement[rng.integers(statements, size=(size, statements))]
            drawn += patterns * np.arange(size)[:, None]
            yield np.bincount(drawn.ravel(), minlength=size * patterns).reshape(size, patterns).astype(np.float64)
