"""Toxicity labels from the two harm questions, as the ToxiGen study made them.

An annotator says on a scale from 1 to 5 how harmful a statement would be seen if an AI system
wrote it and if a person wrote it. The label counts the worse of the two (ToxiGen, section 4.2,
footnote 8), so that a statement cannot pass because only one kind of author is forgiven.

A missing answer is NaN and stays NaN: a label is never made from half of what it needs.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

SCALE_LOW, SCALE_MIDDLE, SCALE_HIGH = 1, 3, 5

#: The three classes; the code of a class is its place here, so that codes order by harm.
TOXICITY_CLASSES = ("non-toxic", "ambiguous", "toxic")


def toxicity(harmful_if_ai: ArrayLike, harmful_if_human: ArrayLike) -> FloatArray:
    """Return the toxicity of each annotation: the larger of its two harm ratings.

    Both arguments have the same shape, usually ``(annotations,)``, and so has the result:
    values from 1 (benign) to 5 (very offensive), NaN where either rating is missing.

    Raises ``ValueError`` for a rating outside 1 to 5 and for shapes that differ.

    Source: ToxiGen (Hartvigsen et al., ACL 2022), footnote 8.

    >>> toxicity([1, 2, 5], [3, 2, np.nan])
    array([ 3.,  2., nan])
    """
    return np.asarray(np.maximum(*_harm_ratings(harmful_if_ai, harmful_if_human)))


def toxicity_class(toxicity: ArrayLike) -> FloatArray:
    """Return the class of each toxicity as a code, the index into ``TOXICITY_CLASSES``.

    Below 3 is 0 (non-toxic), exactly 3 is 1 (ambiguous), above 3 is 2 (toxic); NaN stays NaN,
    which is why the codes are floats. The result has the shape of ``toxicity``; a single number
    gives an array of no dimensions. Raises ``ValueError`` for a toxicity outside 1 to 5.

    Source: ToxiGen, footnote 8.

    >>> toxicity_class([1, 2.5, 3, 3.5, 5, np.nan])
    array([ 0.,  0.,  1.,  2.,  2., nan])
    >>> TOXICITY_CLASSES[int(toxicity_class(4))]
    'toxic'
    """
    return np.asarray(np.sign(_on_scale("toxicity", toxicity) - SCALE_MIDDLE) + 1)


def statement_toxicity(harmful_if_ai: ArrayLike, harmful_if_human: ArrayLike) -> FloatArray:
    """Return the toxicity of each statement: the larger of its two mean harm ratings.

    Both arguments have the shape ``(statements, raters)`` with NaN where a rater did not answer.
    The result has the shape ``(statements,)``, values from 1 to 5, NaN for a statement that
    lacks every rating of either question.

    Raises ``ValueError`` for a rating outside 1 to 5, for shapes that differ and for arrays
    that are not matrices.

    >>> statement_toxicity([[1, 2, 3], [4, np.nan, 5]], [[1, 1, 1], [5, np.nan, 5]])
    array([2., 5.])
    """
    if_ai, if_human = _harm_ratings(harmful_if_ai, harmful_if_human)
    if if_ai.ndim != 2:
        raise ValueError(
            f"harmful_if_ai has the shape {if_ai.shape}; give a matrix (statements, raters), NaN for a missing rating."
        )
    return np.asarray(np.maximum(_mean_over_raters(if_ai), _mean_over_raters(if_human)))


def statement_class(harmful_if_ai: ArrayLike, harmful_if_human: ArrayLike) -> FloatArray:
    """Return the class code of each statement, from the larger of its two mean harm ratings.

    Takes and raises what ``statement_toxicity`` does; the result has the shape ``(statements,)``
    and the codes of ``toxicity_class``. The means decide, not the classes of single annotations:
    ratings of 1, 3 and 5 make an ambiguous statement.

    >>> statement_class([[1, 3, 5], [1, 2, 1], [np.nan] * 3], [[1, 1, 1], [3, 4, 4], [np.nan] * 3])
    array([ 1.,  2., nan])
    """
    return toxicity_class(statement_toxicity(harmful_if_ai, harmful_if_human))


def _harm_ratings(harmful_if_ai: ArrayLike, harmful_if_human: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both ratings as checked arrays of one shape."""
    if_ai = _on_scale("harmful_if_ai", harmful_if_ai)
    if_human = _on_scale("harmful_if_human", harmful_if_human)
    # numpy would stretch (statements, 1) and (statements,) to a square of invented pairs
    if if_ai.shape != if_human.shape:
        raise ValueError(
            f"harmful_if_ai has the shape {if_ai.shape} and harmful_if_human {if_human.shape}; "
            "give both ratings of the same annotations, NaN for a missing one."
        )
    return if_ai, if_human


def _on_scale(name: str, ratings: ArrayLike) -> FloatArray:
    """Return ``ratings`` as floats; raise ``ValueError`` for the first one off the scale."""
    values = np.asarray(ratings, dtype=np.float64)
    outside = values[(values < SCALE_LOW) | (values > SCALE_HIGH)]
    if outside.size:
        raise ValueError(
            f"{name} has the value {outside.flat[0]:g}; the scale runs from {SCALE_LOW} to "
            f"{SCALE_HIGH}. Mark a missing rating as NaN."
        )
    return values


def _mean_over_raters(ratings: FloatArray) -> FloatArray:
    """Return the mean of each row's ratings, ``(statements,)``, NaN for a row of NaN only.

    Unlike ``np.nanmean`` it does so without a warning: a statement nobody rated is no mishap.
    """
    given = ~np.isnan(ratings)
    total = np.where(given, ratings, 0.0).sum(axis=1)
    raters = given.sum(axis=1)
    missing = np.full(len(ratings), np.nan)
    return np.asarray(np.divide(total, raters, out=missing, where=raters > 0))
