"""From stored annotations to the arrays that the statistics take."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from analysis.labels import toxicity, toxicity_class
from annotator.models import Annotation, HITType


def toxicity_classes(hit_type: HITType) -> NDArray[np.float64]:
    """The toxicity class of every counted annotation of a study, (statements, raters), NaN for a gap.

    A row is a statement with at least one counted annotation, its ratings pushed to the left:
    the statistics do not ask who gave a rating.
    """
    rows = (
        Annotation.objects.counted()
        .filter(assignment__hit__hit_type=hit_type)
        .order_by("assignment__hit_id", "pk")
        .values_list("assignment__hit_id", "harmful_if_ai", "harmful_if_human")
    )
    return matrix((hit, *scores) for hit, *scores in rows)


def matrix(rows: Iterable[tuple[int, int, int]]) -> NDArray[np.float64]:
    """Lay (statement, harmful if AI, harmful if human) rows, ordered by statement, out as a matrix.

    >>> matrix([(7, 1, 2), (7, 5, 5), (9, 3, 1)])
    array([[ 0.,  2.],
           [ 1., nan]])
    """
    table = np.array(list(rows), dtype=float).reshape(-1, 3)
    if not len(table):
        return np.empty((0, 0))
    _, row, sizes = np.unique(table[:, 0], return_inverse=True, return_counts=True)
    column = np.arange(len(table)) - (np.cumsum(sizes) - sizes)[row]
    ratings = np.full((len(sizes), sizes.max()), np.nan)
    ratings[row, column] = toxicity_class(toxicity(table[:, 1], table[:, 2]))
    return ratings
