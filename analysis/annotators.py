"""How each rater stands to the others, and how each two of them agree.

All take ``Ratings``; raters come in the order of ``Ratings.rater_ids``. What cannot be computed for a rater is a
reason in its place; what cannot be computed for anybody raises ``UndefinedAgreement``.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.agreement import Ratings, UndefinedAgreement
from analysis.agreement.paired import STATEMENTS_A_KAPPA, judged_in_pairs
from analysis.agreement.ratings import BoolArray, FloatArray, IntArray
from analysis.bootstrap import FEWEST, percentiles

NOBODY_ELSE = "Nobody else rated a statement that this annotator rated."
NO_MAJORITY = "On no statement of this annotator do more than half of the others agree."
ONE_STATEMENT = "It needs at least 2 statements; there is 1."
RESAMPLES = 1000


@dataclass(frozen=True)
class Measure:
    """A number of one rater or pair, with the statements ``n`` it rests on; without a ``value``, the ``reason``."""

    value: float | None
    n: int
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class AnnotatorAgreement:
    """How far a rater agrees with the others.

    The majority of the others is the category that more than half of a statement's other raters chose; where there is
    none, the statement does not enter. ``with_majority`` is the share of statements with the majority's category,
    ``kappa`` Cohen's kappa of the rater and that majority, of the counts in ``table``, ``(categories, categories)``.
    ``with_others`` is the mean over statements of the share of the others who chose what the rater chose.
    """

    rater: Any
    n_ratings: int
    with_others: Measure
    with_majority: Measure
    kappa: Measure
    table: IntArray


@dataclass(frozen=True, eq=False)
class Bias:
    """How far above (or below) the mean of the others a rater's values are, on the scale's own unit.

    ``difference`` is the mean of ``differences``, one for each statement that others rated, too.
    """

    rater: Any
    difference: Measure
    differences: FloatArray


@dataclass(frozen=True, eq=False)
class PairAgreement:
    """How far two raters agree on the statements that both rated; ``agreement`` is a share.

    ``table`` counts what the one (rows) and the other (columns) chose, ``(categories, categories)``.
    """

    first: Any
    second: Any
    n_shared: int
    agreement: float
    kappa: Measure
    table: IntArray


@dataclass(frozen=True)
class Ability:
    """The probability that an answer of a rater is right, by the model of Dawid and Skene.

    It rests on the statements that somebody else rated, too.
    """

    rater: Any
    right: Measure


def annotator_agreement(ratings: Ratings) -> list[AnnotatorAgreement]:
    """Return how far each rater agrees with the others; empty without ratings.

    >>> ratings = Ratings.from_matrix([[0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1]])
    >>> third = annotator_agreement(ratings)[2]
    >>> third.with_majority.value, third.with_others.value, third.kappa.value
    (0.5, 0.5, 0.0)
    """
    if not ratings.n_ratings:
        return []
    raters, q = len(ratings.rater_ids), len(ratings.categories)
    others = ratings.n_uc[ratings.statements]  # (ratings, categories)
    others[np.arange(ratings.n_ratings), ratings.codes] -= 1
    n_others = others.sum(axis=1)
    is_shared = n_others > 0
    same = others[np.arange(ratings.n_ratings), ratings.codes] / np.maximum(n_others, 1)
    majority = others.argmax(axis=1)
    has_majority = is_shared & (2 * others.max(axis=1) > n_others)
    tables = _tables(ratings, majority, has_majority, raters, q)
    n_shared, n_compared = _by_rater(ratings, is_shared), tables.sum(axis=(1, 2))
    sum_same = np.bincount(ratings.raters[is_shared], weights=same[is_shared], minlength=raters)
    agreeing = np.trace(tables, axis1=1, axis2=2)
    n_ratings = np.bincount(ratings.raters, minlength=raters)
    found = []
    for rater, table in enumerate(tables):
        shared, compared = int(n_shared[rater]), int(n_compared[rater])
        why_not = NO_MAJORITY if shared else NOBODY_ELSE
        found.append(
            AnnotatorAgreement(
                ratings.rater_ids[rater],
                int(n_ratings[rater]),
                Measure(float(sum_same[rater] / shared), shared) if shared else Measure(None, 0, NOBODY_ELSE),
                Measure(float(agreeing[rater] / compared), compared) if compared else Measure(None, 0, why_not),
                _kappa(table) if compared else Measure(None, 0, why_not),
                table,
            )
        )
    return found


def scale_bias(ratings: Ratings) -> list[Bias]:
    """Return each rater's mean difference from the mean of the others; empty without ratings.

    The values are taken to be evenly spaced numbers, as the answers on a scale from 1 to 5.

    >>> [bias.difference.value for bias in scale_bias(Ratings.from_matrix([[1, 2, 3], [4, 4, 4]]))]
    [-0.75, 0.0, 0.75]
    """
    values = ratings.categories[ratings.codes]
    total = np.bincount(ratings.statements, weights=values, minlength=len(ratings.statement_ids))
    n_others = ratings.m_u[ratings.statements] - 1
    is_shared = n_others > 0
    mean_of_others = (total[ratings.statements] - values) / np.maximum(n_others, 1)
    differences = (values - mean_of_others)[is_shared]
    raters = ratings.raters[is_shared]
    order = np.argsort(raters, kind="stable")
    n_shared = np.bincount(raters, minlength=len(ratings.rater_ids))
    by_rater = np.split(differences[order], np.cumsum(n_shared)[:-1]) if n_shared.size else []
    return [
        Bias(rater, Measure(float(own.mean()), len(own)) if own.size else Measure(None, 0, NOBODY_ELSE), own)
        for rater, own in zip(ratings.rater_ids, by_rater, strict=True)
    ]


def pair_agreement(ratings: Ratings, *, at_least: int = 1, limit: int | None = None) -> list[PairAgreement]:
    """Return how far each two raters agree who share ``at_least`` so many statements; those who share most first.

    Of a large pool nearly every two raters who met are a pair: ``limit`` says how many to return.

    >>> [pair] = pair_agreement(Ratings.from_matrix([[0, 0], [0, 1], [1, 1]]))
    >>> pair.n_shared, round(pair.agreement, 3), round(pair.kappa.value, 3)
    (3, 0.667, 0.4)
    """
    judged = judged_in_pairs(ratings)
    if not len(judged):
        return []
    q = len(ratings.categories)
    pairs, pair = np.unique(judged.pair, return_inverse=True)
    cells = (pair * q + judged.first) * q + judged.second
    counts = np.bincount(cells, weights=judged.occurrences[judged.row], minlength=len(pairs) * q * q)
    tables = counts.astype(np.int64).reshape(-1, q, q)
    shared = tables.sum(axis=(1, 2))
    order = np.argsort(-shared, kind="stable")
    order = order[shared[order] >= at_least][:limit]
    first, second = np.divmod(pairs, len(ratings.rater_ids))
    return [
        PairAgreement(
            ratings.rater_ids[first[place]],
            ratings.rater_ids[second[place]],
            int(shared[place]),
            float(np.trace(tables[place]) / shared[place]),
            _kappa(tables[place]),
            tables[place],
        )
        for place in order
    ]


def kappa_interval(table: IntArray, seed: int = 0) -> tuple[float, float] | str:
    """Return the 95 % interval of Cohen's kappa of counts, ``(categories, categories)``, or why there is none.

    The percentiles of a bootstrap over its statements, under the conditions of ``analysis.bootstrap``.

    >>> low, high = kappa_interval(np.array([[40, 10], [10, 40]]))
    >>> round(low, 2), round(high, 2)
    (0.42, 0.74)
    """
    n = int(table.sum())
    if n < FEWEST:
        return f"it takes at least {FEWEST} statements."
    drawn = np.random.default_rng(seed).multinomial(n, table.ravel() / n, size=RESAMPLES)
    return percentiles(_kappas(drawn.reshape(RESAMPLES, *table.shape)))


def dawid_skene(ratings: Ratings, *, names: Mapping[float, str] | None = None, iterations: int = 100) -> list[Ability]:
    """Return each rater's ability by the model of Dawid and Skene (1979), as crowd-kit fits it.

    The model says how probable each class is for each statement, from who chose what and how reliable they are. A
    rater's ability is the mean, over the rater's answers, of the probability that the class answered is the true one.
    Only statements with two ratings or more enter: on the others the rater would be right by the rater's own word.

    The rater's answer is among the model's evidence everywhere. Without it good raters come out too low, as the truth
    is then less sure than they are (0.95 as 0.87, 400 statements of five raters); with it those who only guess come out
    too high (near 1/2 of three guessers and three classes, not 1/3).

    Raises ``UndefinedAgreement`` without ratings, of one rater, where no statement has two ratings, and where all
    ratings that enter are the same. ``names`` are what the reason calls the categories.

    Dawid, A. P. & Skene, A. M. (1979). Maximum likelihood estimation of observer error-rates using the EM algorithm.
    Applied Statistics 28(1), 20-28.

    >>> ratings = Ratings.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> [round(ability.right.value, 2) for ability in dawid_skene(ratings)]
    [1.0, 1.0, 0.67]
    """
    enters = ratings.m_u[ratings.statements] >= 2
    _refuse_unfit(ratings, enters, names or {})
    import pandas as pd

    statements, raters, codes = ratings.statements[enters], ratings.raters[enters], ratings.codes[enters]
    answers = pd.DataFrame({"task": statements, "worker": raters, "label": codes})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # crowd-kit uses what pandas deprecates
        from crowdkit.aggregation import DawidSkene

        probabilities = DawidSkene(n_iter=iterations).fit_predict_proba(answers)
    chances = probabilities.reindex(index=range(len(ratings.statement_ids)), columns=range(len(ratings.categories)))
    n_ratings = np.bincount(raters, minlength=len(ratings.rater_ids))
    right = np.bincount(raters, weights=chances.to_numpy()[statements, codes], minlength=len(ratings.rater_ids))
    return [
        Ability(rater, Measure(float(of / n), int(n)) if n else Measure(None, 0, NOBODY_ELSE))
        for rater, n, of in zip(ratings.rater_ids, n_ratings, right, strict=True)
    ]


def _refuse_unfit(ratings: Ratings, enters: BoolArray, names: Mapping[float, str]) -> None:
    if not ratings.n_ratings:
        raise UndefinedAgreement("Ability needs ratings, and there are none. Wait until statements are annotated.")
    if len(ratings.rater_ids) == 1:
        raise UndefinedAgreement(
            "Ability needs at least two annotators; there is 1. Have more annotators judge the same statements."
        )
    codes = ratings.codes[enters]
    if not codes.size:
        raise UndefinedAgreement(
            "Ability needs a statement with at least two ratings; all statements have at most 1. "
            "Have more raters rate the same statements."
        )
    if (codes == codes[0]).all():
        category = float(ratings.categories[codes[0]])
        raise UndefinedAgreement(
            f"Ability cannot be told when all ratings of statements with two or more are the same; all {len(codes)} "
            f"are {names.get(category, f'{category:g}')}."
        )


def _by_rater(ratings: Ratings, chosen: BoolArray) -> IntArray:
    return np.bincount(ratings.raters[chosen], minlength=len(ratings.rater_ids))


def _tables(ratings: Ratings, majority: IntArray, has_majority: BoolArray, raters: int, q: int) -> IntArray:
    """Return each rater's table of own category and majority of the others, ``(raters, categories, categories)``."""
    cells = (ratings.raters * q + ratings.codes) * q + majority
    return np.bincount(cells[has_majority], minlength=raters * q * q).reshape(raters, q, q)


def _kappas(tables: IntArray) -> FloatArray:
    """Return Cohen's kappa of each table of counts, ``(tables, categories, categories)``; NaN for undefined."""
    n = tables.sum(axis=(1, 2))
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    differing = n - np.trace(tables, axis1=1, axis2=2)
    undefined = np.full(len(tables), np.nan)
    return np.asarray(1 - np.divide(differing * n, n**2 - chance, out=undefined, where=n**2 > chance))


def _kappa(table: IntArray) -> Measure:
    n = int(table.sum())
    if n < STATEMENTS_A_KAPPA:
        return Measure(None, n, ONE_STATEMENT)
    kappa = float(_kappas(table[None])[0])
    if np.isnan(kappa):
        return Measure(None, n, f"All {n} statements were put into one category by both, which chance would do, too.")
    return Measure(kappa, n)
