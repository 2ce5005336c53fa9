"""How far raters agree: kappas, Krippendorff's alpha, Gwet's coefficients and plain shares.

A label is worth what its raters' agreement is worth, so each figure is either right or refused
with a reason: where the textbook formula divides by zero, no number is made up.

``ratings`` are ``Ratings`` or a matrix ``(statements, raters)`` of category codes, any finite numbers, NaN for
missing; anything else raises ``ValueError``. Only the mean pairwise Cohen's kappa asks who gave a rating. To the
others the columns of a matrix may be a pool of thousands, or each statement's ratings pushed to the left.

Symbols, after Krippendorff (2011): ``n_uc`` counts the raters who put statement u into category
c, ``m_u`` the raters of u, ``n_c`` the ratings in category c, ``n`` all ratings.

Fleiss, J. L. (1971). Measuring nominal scale agreement among many raters. Psychological
Bulletin 76(5), 378-382. Krippendorff, K. (2011). Computing Krippendorff's alpha-reliability.
University of Pennsylvania, Annenberg School for Communication. Gwet, K. L. (2014). Handbook of Inter-Rater
Reliability, 4th edition. Advanced Analytics.
"""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from analysis.agreement import counted
from analysis.agreement.figures import (
    ALPHA_LEVELS,
    Entering,
    Figure,
    Statistic,
    UndefinedAgreement,
    agreement,
    agreement_table,
    refuse_unknown,
    statistics_for,
)
from analysis.agreement.paired import STATEMENTS_A_PAIR
from analysis.agreement.ratings import Ratings

__all__ = [
    "Figure",
    "Ratings",
    "Statistic",
    "UndefinedAgreement",
    "agreement_table",
    "cohen_kappa",
    "fleiss_kappa",
    "full_agreement",
    "gwet_ac1",
    "gwet_ac2",
    "krippendorff_alpha",
    "majority_agreement",
    "statistics_for",
]


def fleiss_kappa(ratings: Ratings | ArrayLike) -> float:
    """Return Fleiss' kappa: 1 is full agreement, 0 what chance gives, below 0 is worse.

    Every statement needs the same number of ratings, though not from the same raters;
    statements without any are passed over.

    Raises ``UndefinedAgreement`` when statements differ in their number of ratings (the message
    names one by its id, of a matrix its row from 0), when fewer than two have two, and when all ratings are the same.

    Source: Fleiss (1971).

    >>> round(fleiss_kappa([[0, 0, 0], [0, 2, 2], [2, 2, 2]]), 3)
    0.55
    """
    ratings = Ratings.of(ratings)
    entering = Entering(ratings)
    m_u, usual = entering.m_u, entering.usual_number
    odd = np.flatnonzero(m_u != usual)
    if usual and odd.size:
        others = "the others" if odd.size == 1 else "others"
        raise UndefinedAgreement(
            "Fleiss' kappa needs equally many ratings for every statement; "
            f"statement {ratings.statement_ids[odd[0]]} has {m_u[odd[0]]}, {others} {usual}. "
            "Use Krippendorff's alpha, which allows gaps."
        )
    return agreement(Statistic.FLEISS_KAPPA, entering)


def krippendorff_alpha(ratings: Ratings | ArrayLike, level: str = "nominal") -> float:
    """Return Krippendorff's alpha: 1 is full agreement, 0 what chance gives, below 0 is worse.

    Statements with fewer than two ratings have nothing to compare and do not enter. ``level``
    says what the distance between two categories means: "nominal" (same or not), "ordinal"
    (how many ratings lie between them) or "interval" (their difference).

    Raises ``UndefinedAgreement`` when fewer than two statements have two ratings and when all ratings that
    can be compared are the same; ``ValueError`` for another ``level``.

    Source: Krippendorff (2011), sections C and D.

    >>> ratings = [[1, 1, np.nan], [2, 2, 3], [3, 3, 3], [np.nan, 1, 2]]
    >>> [round(krippendorff_alpha(ratings, level), 3) for level in ("nominal", "ordinal")]
    [0.455, 0.74]
    """
    refuse_unknown(level)
    return agreement(ALPHA_LEVELS[level], Entering(Ratings.of(ratings)))


def gwet_ac1(ratings: Ratings | ArrayLike) -> float:
    """Return Gwet's AC1: 1 is full agreement, 0 what chance gives, below 0 is worse.

    Chance is small where nearly all ratings are the same, so that AC1 stays high where raters nearly always agree
    on a frequent category, and kappa and alpha fall. Statements with one rating count for how frequent a category
    is. The number of categories enters: name those of the scale (``Ratings.from_long``) if some were never chosen.

    Raises ``UndefinedAgreement`` when no statement has two ratings and when there is one category only.

    Source: Gwet (2014); first Gwet (2008), British Journal of Mathematical and Statistical Psychology 61(1), 29-48.

    >>> round(gwet_ac1([[0, 0, 0], [0, 2, 2], [2, 2, 2]]), 3)
    0.561
    """
    return agreement(Statistic.GWET_AC1, Entering(Ratings.of(ratings)))


def gwet_ac2(ratings: Ratings | ArrayLike) -> float:
    """Return Gwet's AC2 with his ordinal weights: as ``gwet_ac1``, but neighbours on the scale agree in part.

    The weights depend on the order of the categories and on how many lie between, not on their numbers.

    Raises ``UndefinedAgreement`` as ``gwet_ac1`` does.

    Source: Gwet (2014), with the weights that he calls ordinal.

    >>> round(gwet_ac2([[1, 1, 2], [3, 2, 3], [1, 1, 1]]), 3)
    0.664
    """
    return agreement(Statistic.GWET_AC2, Entering(Ratings.of(ratings)))


def cohen_kappa(ratings: Ratings | ArrayLike, at_least: int = STATEMENTS_A_PAIR) -> float:
    """Return the mean of Cohen's kappa over the pairs of raters, each weighted by the statements that the pair shares.

    A pair enters if it shares ``at_least`` so many statements and did not put all of them into one category, where
    kappa is undefined. The kappa of a few statements is too low on average, so that a mean over many such pairs, as a
    crowd leaves them, would be a wrong number that looks sure; ``at_least`` 2 takes every pair that has a kappa.

    Raises ``UndefinedAgreement`` when no pair enters; ``ValueError`` for ``at_least`` below 2.

    Source: Light (1971), the mean of Cohen's (1960) kappas; where all raters rate all statements, it is just that.

    >>> round(cohen_kappa([[0, 0, 0], [0, 2, 2], [2, 2, 2]], at_least=2), 3)
    0.6
    """
    if at_least < 2:
        raise ValueError(f"at_least is {at_least}; the kappa of fewer than 2 statements is undefined.")
    return agreement(Statistic.COHEN_KAPPA, Entering(Ratings.of(ratings), at_least=at_least))


def full_agreement(ratings: Ratings | ArrayLike) -> float:
    """Return the share of statements, from 0 to 1, whose raters all chose the same category.

    A lone rating agrees with nobody: statements with fewer than two ratings do not enter.
    Raises ``UndefinedAgreement`` when no statement has two.

    >>> full_agreement([[0, 0, 0], [0, 2, 2], [2, 2, np.nan], [1, 0, 2]])
    0.5
    """
    return agreement(Statistic.FULL_AGREEMENT, Entering(Ratings.of(ratings)))


def majority_agreement(ratings: Ratings | ArrayLike, share: float = counted.TWO_THIRDS) -> float:
    """Return the share of statements, from 0 to 1, on which a majority of raters agrees.

    A majority is ``share`` of a statement's raters, or more, in one category. Statements with
    fewer than two ratings do not enter. Raises ``UndefinedAgreement`` when no statement has
    two; ``ValueError`` unless ``share`` is above 0.5 and at most 1.

    >>> majority_agreement([[0, 0, 0], [0, 2, 2], [2, 2, np.nan], [1, 0, 2]])
    0.75
    """
    if not 0.5 < share <= 1:
        raise ValueError(f"share is {share:g}; a majority is above 0.5 of the raters, at most 1.")
    formula = partial(counted.agreeing_share, share=share)
    return agreement(Statistic.MAJORITY_AGREEMENT, Entering(Ratings.of(ratings)), formula)
