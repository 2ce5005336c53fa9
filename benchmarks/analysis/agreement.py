"""Agreement figures against the packages krippendorff and statsmodels, their bootstrap, and how they grow.

The same input for all is what a crowd leaves behind: three columns, shuffled, of who rated which statement how. It has
100,000 statements of three places each, one in ten of them empty, and a pool of 5,000 raters. The packages take
matrices, and what turns the columns into one is counted for them, as our own counting is for us. The matrix that they
document, raters × statements, would take 4 GB and them minutes, so they get the one they are fastest with: a
statement's ratings side by side, (statements, 3), whoever gave them. The packages ask no more of it.

Fleiss' kappa needs equally many ratings: it has the columns of the statements without an empty place.

Beside it the matrix as krippendorff documents it is handed to both, of 10,000 statements and the same pool (400 MB).
"""

from collections.abc import Callable

import krippendorff
import numpy as np
from statsmodels.stats import inter_rater

from analysis.agreement import Ratings, Statistic, agreement_table, fleiss_kappa, krippendorff_alpha
from analysis.bootstrap import figures_with_intervals
from benchmarks.figure import best_seconds, report

STATEMENTS, POOL, PLACES, CLASSES, EMPTY = 100_000, 5_000, 3, 3, 0.1
FEW_STATEMENTS = 10_000
#: A pool of which pairs of raters share ten statements and more, as the mean over pairs asks for.
SMALL_POOL = 50
LEVELS = ("nominal", "ordinal", "interval")
AS_FAST, TOLERANCE = 5, 1e-12
RESAMPLES, RESAMPLED = 1000, 20
GROWTH = 2
ROUNDS = 5

Columns = tuple[np.ndarray, np.ndarray, np.ndarray]


def main() -> None:
    many = columns(STATEMENTS)
    against_the_packages(many)
    as_documented()
    resampled()
    grown(columns(FEW_STATEMENTS), many)


def columns(statements: int, *, pool: int = POOL, seed: int = 0) -> Columns:
    """Statements, raters and classes of the ratings that were given, in any order."""
    random = np.random.default_rng(seed)
    truth = random.integers(CLASSES, size=(statements, 1))
    noise = random.integers(CLASSES, size=(statements, PLACES))
    classes = np.where(random.random((statements, PLACES)) < 0.7, truth, noise).astype(float)
    # Three different raters of each statement: steps around the pool that never make it full.
    steps = random.integers(1, pool // PLACES, size=(statements, PLACES)).cumsum(axis=1)
    raters = (random.integers(pool, size=(statements, 1)) + steps) % pool
    given = random.permutation(np.flatnonzero(random.random(classes.size) >= EMPTY))
    return given // PLACES, raters.ravel()[given], classes.ravel()[given]


def without_empty_places(ratings: Columns) -> Columns:
    statements, raters, classes = ratings
    full = (np.bincount(statements) == PLACES)[statements]
    return np.unique(statements[full], return_inverse=True)[1], raters[full], classes[full]


def side_by_side(ratings: Columns) -> np.ndarray:
    """The matrix (statements, places) that the packages are fastest with."""
    statements, _, classes = ratings
    order = np.argsort(statements, kind="stable")
    ordered = statements[order]
    numbers = np.bincount(ordered)
    place = np.arange(len(ordered)) - (np.cumsum(numbers) - numbers)[ordered]
    matrix = np.full((len(numbers), PLACES), np.nan)
    matrix[ordered, place] = classes[order]
    return matrix


def against_the_packages(ratings: Columns) -> None:
    for level in LEVELS:
        compare(
            f"krippendorff_alpha_{level}_against_krippendorff",
            lambda level=level: krippendorff_alpha(Ratings.from_long(*ratings), level),
            lambda level=level: krippendorff.alpha(side_by_side(ratings).T, level_of_measurement=level),
        )
    full = without_empty_places(ratings)
    compare(
        "fleiss_kappa_against_statsmodels",
        lambda: fleiss_kappa(Ratings.from_long(*full)),
        lambda: inter_rater.fleiss_kappa(inter_rater.aggregate_raters(side_by_side(full).astype(int))[0]),
    )


def as_documented() -> None:
    statements, raters, classes = columns(FEW_STATEMENTS)
    matrix = np.full((FEW_STATEMENTS, POOL), np.nan)
    matrix[statements, raters] = classes
    compare(
        "krippendorff_alpha_of_a_matrix_of_the_pool",
        lambda: krippendorff_alpha(matrix),
        lambda: krippendorff.alpha(matrix.T, level_of_measurement="nominal"),
        rounds=2,
    )


def compare(name: str, ours: Callable[[], float], theirs: Callable[[], float], rounds: int = ROUNDS) -> None:
    difference = abs(ours() - theirs())
    ratio = times_as_long(theirs, ours, rounds=rounds)
    goal = f">= {AS_FAST} and equal to {TOLERANCE:g}"
    report(name, ratio, unit="times as fast", goal=goal, ok=ratio >= AS_FAST and difference <= TOLERANCE)


def times_as_long(one: Callable[[], object], other: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The ratio of their best times; they take turns, so that what else the machine does disturbs both."""
    seconds = [(best_seconds(one, rounds=1), best_seconds(other, rounds=1)) for _ in range(rounds)]
    return min(first for first, _ in seconds) / min(second for _, second in seconds)


def resampled() -> None:
    """A figure with its interval in the time of the figure alone, columns and all."""
    for statistic in Statistic:
        pool = SMALL_POOL if statistic is Statistic.COHEN_KAPPA else POOL
        ratings = columns(FEW_STATEMENTS, pool=pool)

        def once(ratings=ratings, statistic=statistic):
            return agreement_table(Ratings.from_long(*ratings), [statistic])

        def with_interval(ratings=ratings, statistic=statistic):
            return figures_with_intervals(Ratings.from_long(*ratings), [statistic], resamples=RESAMPLES)

        [row] = with_interval()
        ratio = times_as_long(with_interval, once)
        ok = ratio <= RESAMPLED and row.interval is not None
        report(
            f"bootstrap_of_{statistic.name.lower()}",
            ratio,
            unit="times one estimate",
            goal=f"<= {RESAMPLED} for {RESAMPLES} resamples",
            ok=ok,
            pool=pool,
        )


def grown(few: Columns, many: Columns) -> None:
    """The time an annotation takes of ten times as many, all figures of agreement together."""
    seconds = [
        best_seconds(lambda ratings=ratings: agreement_table(Ratings.from_long(*ratings)), rounds=ROUNDS)
        / len(ratings[0])
        for ratings in (few, many)
    ]
    ratio = seconds[1] / seconds[0]
    report(
        "time_an_annotation_of_ten_times_as_many",
        ratio,
        unit="times",
        goal=f"<= {GROWTH}: linear",
        ok=ratio <= GROWTH,
        annotations=[len(few[0]), len(many[0])],
    )
