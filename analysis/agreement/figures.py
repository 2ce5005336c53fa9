"""Each statistic: which statements enter it, its value, or the reason why it has none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from analysis.agreement.counted import TWO_THIRDS, agreeing_share, fleiss_kappa, gwet, krippendorff_alpha
from analysis.agreement.paired import STATEMENTS_A_PAIR, Pairs, mean_kappa
from analysis.agreement.ratings import BoolArray, Counts, FloatArray, IntArray, Ratings


class Statistic(StrEnum):
    """The figures of agreement; the value is the name to show."""

    FLEISS_KAPPA = "Fleiss' kappa"
    ALPHA_NOMINAL = "Krippendorff's alpha (nominal)"
    ALPHA_ORDINAL = "Krippendorff's alpha (ordinal)"
    ALPHA_INTERVAL = "Krippendorff's alpha (interval)"
    GWET_AC1 = "Gwet's AC1"
    GWET_AC2 = "Gwet's AC2 (ordinal)"
    COHEN_KAPPA = "Mean pairwise Cohen's kappa"
    FULL_AGREEMENT = "Full agreement"
    MAJORITY_AGREEMENT = "Majority agreement"


ALPHA_LEVELS = {
    "nominal": Statistic.ALPHA_NOMINAL,
    "ordinal": Statistic.ALPHA_ORDINAL,
    "interval": Statistic.ALPHA_INTERVAL,
}
#: What takes categories to have an order, or even a distance.
ORDERED = frozenset({Statistic.ALPHA_ORDINAL, Statistic.ALPHA_INTERVAL, Statistic.GWET_AC2})
SHARES = frozenset({Statistic.FULL_AGREEMENT, Statistic.MAJORITY_AGREEMENT})
#: What takes chance from the statements that enter: of a single one it is 0 or -1 / (m - 1), whatever they are.
OF_SEVERAL = frozenset({Statistic.FLEISS_KAPPA, *ALPHA_LEVELS.values()})


class UndefinedAgreement(ValueError):
    """These ratings have no such figure; the message is the reason, a sentence for the user.

    ``in_short`` is the reason for where the statistic and the ratings stand beside it, in a table: in it are neither
    the statistic's name nor a category nor a count of ratings, so that equal reasons are equal sentences.
    """

    def __init__(self, reason: str, in_short: str = "") -> None:
        super().__init__(reason)
        self.in_short = in_short or reason


NO_RATINGS = "There are no ratings. Wait until statements are annotated."
ALONE = "No statement has two ratings or more. Have more raters rate the same statements."
ONE_STATEMENT = (
    "Only one statement can enter, and of one the figure is the same whatever the ratings are. Have more statements "
    "rated by at least two raters."
)
ALL_THE_SAME = (
    "All ratings that enter are the same, so agreement cannot be told from chance. Report the share of full agreement."
)
NO_PAIR = (
    "No two raters share at least {at_least} statements that they did not all put into one category. Use "
    "Krippendorff's alpha, which does not ask who rated."
)


@dataclass(frozen=True)
class Figure:
    """A figure as it must be shown: with its n, or with the reason why there is none.

    ``n_statements``, ``n_ratings`` and ``n_raters`` entered the figure; ``left_out`` counts the statements that have
    ratings but could not enter. ``n_pairable`` counts the statements that entered with two ratings or more: only to
    Gwet's coefficients others have something to say, too. One of ``value`` and ``reason`` is None; ``in_short`` is
    the reason as ``UndefinedAgreement`` has it for tables.

    ``n_pairs`` and ``pairs_left_out`` are None but of the mean over pairs of raters: how many entered, and how many
    share a statement but do not enter.
    """

    name: Statistic
    value: float | None
    n_statements: int
    n_ratings: int
    left_out: int
    reason: str | None
    n_raters: int
    n_pairable: int
    n_pairs: int | None = None
    pairs_left_out: int | None = None
    in_short: str | None = field(default=None, compare=False)


#: What enters a statistic: counts of statements, or the judgements of pairs of raters.
Units = Counts | Pairs
#: Units of S rows and weights (resamples, S) in, values (resamples,) out, NaN for undefined.
Formula = Callable[[Any, FloatArray], FloatArray]
FORMULAS: dict[Statistic, Formula] = {
    Statistic.FLEISS_KAPPA: fleiss_kappa,
    Statistic.ALPHA_NOMINAL: partial(krippendorff_alpha, level="nominal"),
    Statistic.ALPHA_ORDINAL: partial(krippendorff_alpha, level="ordinal"),
    Statistic.ALPHA_INTERVAL: partial(krippendorff_alpha, level="interval"),
    Statistic.GWET_AC1: partial(gwet, ordinal=False),
    Statistic.GWET_AC2: partial(gwet, ordinal=True),
    Statistic.COHEN_KAPPA: mean_kappa,
    Statistic.FULL_AGREEMENT: partial(agreeing_share, share=1.0),
    Statistic.MAJORITY_AGREEMENT: partial(agreeing_share, share=TWO_THIRDS),
}


def statistics_for(level: str) -> tuple[Statistic, ...]:
    """Return the statistics that fit answers at a level of measurement, in the order of ``Statistic``.

    Nominal answers have no order, so what rests on one is left out; the others have all: what asks for less than
    the answers have is true, if less sharp. Raises ``ValueError`` for another ``level``.

    >>> [str(statistic) for statistic in statistics_for("nominal")][:3]
    ["Fleiss' kappa", "Krippendorff's alpha (nominal)", "Gwet's AC1"]
    """
    refuse_unknown(level)
    return tuple(statistic for statistic in Statistic if level != "nominal" or statistic not in ORDERED)


def refuse_unknown(level: str) -> None:
    if level not in ALPHA_LEVELS:
        raise ValueError(f"level is {level!r}; choose 'nominal', 'ordinal' or 'interval'.")


def agreement_table(
    ratings: Ratings | ArrayLike,
    statistics: Sequence[Statistic] = tuple(Statistic),
    *,
    names: Mapping[float, str] | None = None,
) -> list[Figure]:
    """Return the figures of ``statistics``, all of them unless told; none is ever raised.

    ``names`` are what reasons call the categories, instead of their numbers. Statements with fewer than
    two ratings enter no figure but Gwet's, whose chance agreement counts every rating. Fleiss' kappa takes the
    statements that have the most usual number of ratings (of equally usual numbers, the largest), Cohen's those of
    pairs of raters who share enough of them, as in ``cohen_kappa``.

    >>> table = agreement_table([[0, 0, 0], [0, 2, 2], [2, 2, np.nan], [1, np.nan, np.nan]])
    >>> for figure in table[:2]:
    ...     print(figure.name, round(figure.value, 3), figure.n_statements, figure.left_out)
    Fleiss' kappa 0.25 2 2
    Krippendorff's alpha (nominal) 0.562 3 1
    """
    ratings = Ratings.of(ratings)
    units = Entering(ratings)
    return [figure(statistic, units, names or {}) for statistic in statistics]


class Entering:
    """What enters each statistic, worked out once for those that take the same statements.

    ``at_least`` is how many statements two raters share to enter the mean over pairs.
    """

    def __init__(self, ratings: Ratings, *, at_least: int = STATEMENTS_A_PAIR) -> None:
        self.ratings, self.at_least = ratings, at_least
        self.m_u = ratings.m_u
        self.usual_number = usual_number(self.m_u)
        self._pairs: Pairs | None = None

    def rule(self, statistic: Statistic) -> str:
        """Return the name of what the statistic takes: the same for those that take the same."""
        if statistic is Statistic.COHEN_KAPPA:
            return "pairs"
        if statistic in (Statistic.GWET_AC1, Statistic.GWET_AC2):
            return "rated"
        return "equally rated" if statistic is Statistic.FLEISS_KAPPA else "pairable"

    def statements(self, statistic: Statistic, m_u: IntArray | None = None) -> BoolArray:
        """Return which statements can enter, or which of those with ``m_u`` ratings; not for pairs of raters."""
        m_u = self.m_u if m_u is None else m_u
        match self.rule(statistic):
            case "rated":
                return np.ones(len(m_u), dtype=np.bool_)
            case "equally rated":
                return np.asarray((m_u == self.usual_number) & (m_u >= 2))
            case _:
                return np.asarray(m_u >= 2)

    def units(self, statistic: Statistic) -> Units:
        if statistic is not Statistic.COHEN_KAPPA:
            counts = self.ratings.counts
            return counts.only(self.statements(statistic, counts.m_u))
        if self._pairs is None:
            self._pairs = Pairs.of(self.ratings, self.at_least)
        return self._pairs


def agreement(
    statistic: Statistic,
    entering: Entering,
    formula: Formula | None = None,
    *,
    names: Mapping[float, str] | None = None,
) -> float:
    """Return ``statistic`` of what enters it; ``formula`` replaces its own.

    Raises ``UndefinedAgreement`` with the reason when it has no value.
    """
    names = names or {}
    ratings = entering.ratings
    if not ratings.n_ratings:
        raise UndefinedAgreement(
            f"{statistic} needs ratings, and there are none. Wait until statements are annotated.", NO_RATINGS
        )
    if entering.m_u.max() < 2:
        raise UndefinedAgreement(
            f"{statistic} needs a statement with at least two ratings; all statements have "
            "at most 1. Have more raters rate the same statements.",
            ALONE,
        )
    units = entering.units(statistic)
    if isinstance(units, Pairs) and not units.n_pairs:
        raise _no_pair(statistic, units, ratings, names)
    if statistic in (Statistic.GWET_AC1, Statistic.GWET_AC2) and len(ratings.categories) < 2:
        raise UndefinedAgreement(
            f"{statistic} needs a scale with at least two categories; {_all_the_same(ratings.codes, ratings, names)}",
            ALL_THE_SAME,
        )
    if statistic in OF_SEVERAL and units.occurrences.sum() < 2:
        raise UndefinedAgreement(
            f"{statistic} needs at least 2 statements that can enter; there is 1, and of one it is the same "
            "whatever the ratings are. Have more statements rated by at least two raters.",
            ONE_STATEMENT,
        )
    value = float((formula or FORMULAS[statistic])(units, units.occurrences[None].astype(np.float64))[0])
    if np.isnan(value):
        entered = ratings.codes[ratings.of_statements(entering.statements(statistic))]
        raise UndefinedAgreement(
            f"{statistic} cannot tell agreement from chance when all ratings are the same; "
            f"{_all_the_same(entered, ratings, names)}",
            ALL_THE_SAME,
        )
    return value


def figure(statistic: Statistic, entering: Entering, names: Mapping[float, str]) -> Figure:
    """Return the figure of ``statistic`` with its n, or with the reason why it has no value."""
    value, reason, in_short = None, None, None
    try:
        value = agreement(statistic, entering, names=names)
    except UndefinedAgreement as undefined:  # the table shows the reason in place of the value
        reason, in_short = str(undefined), undefined.in_short
    ratings, statements = entering.ratings, len(entering.m_u)
    units = entering.units(statistic)
    if isinstance(units, Pairs):
        n_raters, n_ratings = units.raters_and_ratings(len(ratings.rater_ids))
        n = units.n_statements
        return Figure(
            statistic, value, n, n_ratings, statements - n, reason, n_raters, n, units.n_pairs, units.left_out, in_short
        )
    enter = entering.statements(statistic)
    given = ratings.of_statements(enter)
    n = int(np.count_nonzero(enter))
    pairable = int(np.count_nonzero(entering.m_u[enter] >= 2))
    n_raters, left_out = ratings.n_raters(given), statements - n
    return Figure(statistic, value, n, int(given.sum()), left_out, reason, n_raters, pairable, in_short=in_short)


def usual_number(m_u: IntArray) -> int:
    """Return the most usual number of ratings from 2 up, of ties the largest; 0 if there is none.

    A single rating, however usual, can never enter kappa.
    """
    numbers = np.bincount(m_u)[2:][::-1]
    return len(numbers) + 1 - int(numbers.argmax()) if numbers.size else 0


def _all_the_same(codes: IntArray, ratings: Ratings, names: Mapping[float, str]) -> str:
    category = float(ratings.categories[codes[0]])
    return f"all {len(codes)} are {names.get(category, f'{category:g}')}. Report the share of full agreement."


def _no_pair(statistic: Statistic, pairs: Pairs, ratings: Ratings, names: Mapping[float, str]) -> UndefinedAgreement:
    if len(ratings.categories) < 2 or not np.any(ratings.codes != ratings.codes[0]):
        return UndefinedAgreement(
            f"{statistic} cannot tell agreement from chance when all ratings are the same; "
            f"{_all_the_same(ratings.codes, ratings, names)}",
            ALL_THE_SAME,
        )
    found = "the only pair does not" if pairs.left_out == 1 else f"none of the {pairs.left_out} pairs does"
    return UndefinedAgreement(
        f"{statistic} needs two raters who share at least {pairs.at_least} statements and did not put all of them "
        f"into one category; {found}. "
        "Use Krippendorff's alpha, which does not ask who rated.",
        NO_PAIR.format(at_least=pairs.at_least),
    )
