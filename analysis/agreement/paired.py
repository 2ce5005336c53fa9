"""Cohen's kappa of each pair of raters, and its mean over the pairs.

Light, R. J. (1971). Measures of response agreement for qualitative data: some generalizations and alternatives.
Psychological Bulletin 76(5), 365-377: the mean over the pairs. Cohen, J. (1960). A coefficient of agreement for
nominal scales. Educational and Psychological Measurement 20(1), 37-46.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from analysis.agreement.ratings import FloatArray, IntArray, Ratings, distinct_rows

#: The kappa of one statement is 0 or undefined, whatever the two raters say.
STATEMENTS_A_KAPPA = 2
#: A pair enters the mean with so many statements shared. The kappa of a few statements is too low on average, the more
#: so as pairs who agree on all of them in one category drop out: with two statements 0.35 comes out where 0.5 is true.
STATEMENTS_A_PAIR = 10


@dataclass(frozen=True, eq=False)
class Judged:
    """Each statement that two raters judged, once for every two of them: ``(judgements,)`` each.

    ``pair`` is the smaller rater's code times the number of raters plus the larger's; ``first`` and ``second`` are
    the codes of their categories. ``row`` is the place in ``occurrences``: statements that the same raters put into
    the same categories are one row.
    """

    row: IntArray
    pair: IntArray
    first: IntArray
    second: IntArray
    occurrences: IntArray  # (rows,): statements

    def __len__(self) -> int:
        return len(self.pair)


def judged_in_pairs(ratings: Ratings) -> Judged:
    """Return what each two raters of a statement made of it; empty if no statement has two ratings."""
    raters, categories = len(ratings.rater_ids), len(ratings.categories)
    order = np.argsort(ratings.statements * max(raters, 1) + ratings.raters)
    choices = (ratings.raters * categories + ratings.codes)[order]  # by statement, then rater
    begins = np.cumsum(ratings.m_u) - ratings.m_u
    found: list[tuple[IntArray, ...]] = []
    rows = 0
    for m in np.unique(ratings.m_u[ratings.m_u >= 2]):
        table = choices[begins[ratings.m_u == m][:, None] + np.arange(m)]  # (statements, m)
        where, occurrences = distinct_rows(table)
        one, other = np.triu_indices(int(m), 1)
        row = np.repeat(np.arange(rows, rows + len(where)), len(one))
        found.append((row, table[where][:, one].ravel(), table[where][:, other].ravel(), occurrences))
        rows += len(where)
    if not found:
        return Judged(*(np.empty(0, dtype=np.int64),) * 5)
    row, first, second, occurrences = (np.concatenate(column) for column in zip(*found, strict=True))
    pair = first // categories * raters + second // categories
    return Judged(row, pair, first % categories, second % categories, occurrences)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The judgements of the pairs of raters that enter the mean: those who share enough statements and did not put
    all of them into one category, where kappa is undefined."""

    judged: Judged
    n_pairs: int
    left_out: int  # pairs who share a statement, but do not enter
    categories: int
    at_least: int  # statements a pair

    @classmethod
    def of(cls, ratings: Ratings, at_least: int = STATEMENTS_A_PAIR) -> "Pairs":
        judged = judged_in_pairs(ratings)
        _, pair = np.unique(judged.pair, return_inverse=True)
        shared = np.bincount(pair, weights=judged.occurrences[judged.row])
        one = np.zeros(len(shared), dtype=np.int64)
        one[pair] = judged.first  # a category that the pair chose: it chose others if any of its choices is another
        others = (judged.first != one[pair]) | (judged.second != one[pair])
        enters = (shared >= at_least) & (np.bincount(pair, weights=others) > 0)
        keep = enters[pair]
        rows, row = np.unique(judged.row[keep], return_inverse=True)
        kept = Judged(row, judged.pair[keep], judged.first[keep], judged.second[keep], judged.occurrences[rows])
        return cls(kept, int(enters.sum()), int((~enters).sum()), len(ratings.categories), at_least)

    @property
    def occurrences(self) -> IntArray:
        return self.judged.occurrences

    @property
    def largest(self) -> int:
        """Numbers a resample that the formula holds in its largest array."""
        return max(len(self.judged), 1)

    @property
    def n_statements(self) -> int:
        return int(self.occurrences.sum())

    def raters_and_ratings(self, raters: int) -> tuple[int, int]:
        """Return how many of ``raters`` raters, and how many of their ratings, enter."""
        judged = self.judged
        both = np.concatenate([judged.pair // raters, judged.pair % raters])
        ratings = np.unique(np.tile(judged.row, 2) * raters + both)  # a rater may be in several pairs of a row
        return len(np.unique(both)), int(judged.occurrences[ratings // raters].sum())

    @cached_property
    def sums(self) -> "Sums":
        return Sums(self.judged, self.categories)


class Sums:
    """What the kappas of pairs are made of: who sums what, as sparse matrices of ones."""

    def __init__(self, judged: Judged, categories: int) -> None:
        from scipy.sparse import csr_array  # loaded by what works figures out, not by what shows them

        def summing(group: IntArray, groups: int, numbers: IntArray, of: int) -> Any:
            return csr_array((np.ones(len(group)), (group, numbers)), shape=(groups, of))

        rows = len(judged.occurrences)
        pairs, pair = np.unique(judged.pair, return_inverse=True)
        firsts, first = np.unique(pair * categories + judged.first, return_inverse=True)
        seconds, second = np.unique(pair * categories + judged.second, return_inverse=True)
        differs = judged.first != judged.second
        n = len(pairs)
        #: Statements that the first and the second rater of a pair put into a category.
        self.first = summing(first, len(firsts), judged.row, rows)
        self.second = summing(second, len(seconds), judged.row, rows)
        self.shared = summing(firsts // categories, n, np.arange(len(firsts)), len(firsts))
        self.differing = summing(pair[differs], n, judged.row[differs], rows)
        #: Where both used a category.
        both, self.in_first, self.in_second = np.intersect1d(firsts, seconds, assume_unique=True, return_indices=True)
        self.chance = summing(both // categories, n, np.arange(len(both)), len(both))

    def kappas(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return N and kappa of each pair, ``(pairs, resamples)``, for weights ``(resamples, rows)``.

        N statements are shared, D of them judged differently, r_c and s_c put into category c by the one and by the
        other: kappa = 1 - (D / N) / (1 - sum of r_c s_c / N^2), NaN where it is undefined or rests on one statement.
        """
        by_row = np.ascontiguousarray(weights.T)  # (rows, resamples)
        first, second = self.first @ by_row, self.second @ by_row
        shared, differing = self.shared @ first, self.differing @ by_row
        possible = shared**2 - self.chance @ (first[self.in_first] * second[self.in_second])
        undefined = np.full_like(possible, np.nan)
        defined = (shared >= STATEMENTS_A_KAPPA) & (possible > 0)
        return shared, 1 - np.divide(differing * shared, possible, out=undefined, where=defined)


def mean_kappa(pairs: Pairs, weights: FloatArray) -> FloatArray:
    """Light (1971): the mean of the pairs' kappas, here each weighted by the statements that the pair shares.

    A pair without a kappa in a resample does not enter it.
    """
    shared, kappa = pairs.sums.kappas(weights)
    defined = ~np.isnan(kappa)
    entering = np.where(defined, shared, 0.0).sum(axis=0)
    total = np.where(defined, shared * kappa, 0.0).sum(axis=0)
    return np.asarray(np.divide(total, entering, out=np.full_like(entering, np.nan), where=entering > 0))
