"""Parts of labelled texts that share no near-duplicates: folds for cross-validation, and validation texts. Pure.

A classifier that was trained on nearly the same sentence as it is tested on does too well. So texts that resemble each
other, by their words or by their embeddings, stay in the same part, and so does what is linked by a chain of such
texts: a component. Components are exact, whatever their size.

``components`` are always (N,) numbers from 0, one a text, the same for all texts of a component; ``toxic`` is (N,)
bool.
"""

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from generation.near_duplicates import linked, word_pairs

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Vectors = NDArray[np.float32]

ROWS_AT_ONCE = 2048
"""The products of so many rows with so many others are held at a time: 16 MB."""
MARGIN = 1e-4
"""A cosine so little below the threshold counts, too: more than the rounding of float32, or another machine's encoder,
makes of it. So no pair above the threshold is missed."""
LENGTH_TOLERANCE = 1e-3


def by_text(texts: Sequence[str]) -> IntArray:
    """(N,) the components of texts that are near-duplicates by their pairs of neighbouring words.

    ``generation.near_duplicates`` says when two are; here what Unicode holds for the same character (NFKC) counts as
    the same, too. A text without words is together with the same ones only.

    >>> by_text(["The tide was low today.", "a cat slept", "the tide was low today!"])
    array([0, 1, 0])
    """
    first: dict[frozenset[tuple[str, ...]] | str, int] = {}
    places: list[int] = []
    distinct: list[str] = []
    for text in texts:
        same = unicodedata.normalize("NFKC", text).casefold()
        key = frozenset(word_pairs(same)) or same.strip()
        if key not in first:
            first[key] = len(distinct)
            distinct.append(same)
        places.append(first[key])
    return _numbered(np.array(linked(distinct), dtype=np.int64)[places])


def by_vector(vectors: Vectors, above: float = 0.9) -> IntArray:
    """(N,) the components of rows whose cosine is above ``above``, from 0 to 1, or less than ``MARGIN`` below it.

    ``vectors`` are (N, E), each of length 1; a row of zeros is alone. Raises ``ValueError``.

    >>> by_vector(np.array([[1, 0], [0, 1], [0.96, 0.28]], dtype=np.float32))
    array([0, 1, 0])
    """
    if not 0 < above <= 1:
        raise ValueError(f"The threshold is a cosine above 0 and up to 1, not {above:g}.")
    _check_lengths(vectors)
    components = np.arange(len(vectors))
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        block = vectors[start : start + ROWS_AT_ONCE]
        for other in range(start, len(vectors), ROWS_AT_ONCE):
            products = block @ vectors[other : other + ROWS_AT_ONCE].T
            rows, columns = np.nonzero(products > above - MARGIN)
            components = _united(components, start + rows, other + columns)
    return _numbered(components)


def joined(*components: ArrayLike) -> IntArray:
    """(N,) the components of texts that are together in any of some ``components``.

    >>> joined([0, 0, 1, 2], [0, 1, 1, 2])
    array([0, 0, 0, 1])
    """
    both = np.asarray(components[0], dtype=np.int64)
    for others in components[1:]:
        _, first, number = np.unique(np.asarray(others, dtype=np.int64), return_index=True, return_inverse=True)
        both = _united(both, np.arange(len(both)), first[number])
    return _numbered(both)


def folds(components: ArrayLike, toxic: ArrayLike, *, k: int, seed: int) -> IntArray:
    """(N,) the fold of each text, from 0 to k - 1: whole components, both classes in each, in proportion.

    A component that is larger than a fold should be makes its fold larger and the others smaller. ``seed`` decides
    between equals. Raises ``ValueError`` if it cannot be done.

    >>> np.bincount(folds([0, 0, 1, 1, 2, 3], [True, False, False, True, True, False], k=2, seed=0))
    array([4, 2])
    """
    if k < 2:
        raise ValueError(f"folds must be a whole number of at least 2, not {k}.")
    return _dealt(components, toxic, [1 / k] * k, seed=seed)


def validation(components: ArrayLike, toxic: ArrayLike, *, share: float, seed: int) -> BoolArray:
    """(N,) whether each text is for validation: whole components, about a ``share`` of both classes.

    Both classes are in either part. Raises ``ValueError`` if it cannot be done.

    >>> validation([0, 0, 0, 1, 2], [True, False, True, True, False], share=0.4, seed=0)
    array([False, False, False,  True,  True])
    """
    if not 0 < share < 1:
        raise ValueError(f"The share of the validation texts is a number between 0 and 1, not {share:g}.")
    return np.asarray(_dealt(components, toxic, [1 - share, share], seed=seed) == 1)


def _dealt(components: ArrayLike, toxic: ArrayLike, shares: Sequence[float], *, seed: int) -> IntArray:
    """(N,) the part of each text, by the ``shares`` of the parts.

    Each part is given both classes by the smallest components that do it. The others, the largest first, go where
    they lower the squared distance from what the parts should have of each class the most.
    """
    numbers = _numbered(np.asarray(components))
    labels = np.asarray(toxic, dtype=bool)
    count = numbers.max(initial=-1) + 1
    sizes = np.stack([np.bincount(numbers[labels == label], minlength=count) for label in (False, True)], axis=1)
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(sizes[order].sum(axis=1), kind="stable")]
    part_of = _with_both_classes(order, sizes, shares)
    totals = sizes.sum(axis=0).tolist()
    lacking = [[share * total for total in totals] for share in shares]
    for component in [*part_of, *(each for each in order[::-1].tolist() if each not in part_of)]:
        size = sizes[component].tolist()
        if component not in part_of:
            changes = [
                sum(n * (n - 2 * lack) / total for n, lack, total in zip(size, lacks, totals, strict=True)) / share
                for lacks, share in zip(lacking, shares, strict=True)
            ]
            part_of[component] = changes.index(min(changes))
        lacks = lacking[part_of[component]]
        lacks[:] = [lack - n for lack, n in zip(lacks, size, strict=True)]
    parts = np.array([part_of[component] for component in range(len(sizes))], dtype=np.int64)
    return np.asarray(parts[numbers])


def _with_both_classes(order: IntArray, sizes: IntArray, shares: Sequence[float]) -> dict[int, int]:
    """The part of a few components, the first of ``order`` that can be, so that each part has both classes.

    Those of both classes, which may be large, are left to the largest parts. Raises ``ValueError`` for too few.
    """
    has_benign, has_toxic = (sizes[order] > 0).T
    benign, toxic, both = (
        order[mask].tolist() for mask in (has_benign & ~has_toxic, has_toxic & ~has_benign, has_benign & has_toxic)
    )
    pairs = list(zip(benign, toxic, strict=False))
    if (most := len(pairs) + len(both)) < len(shares):
        raise ValueError(
            f"Toxic and benign texts are needed in each of {len(shares)} parts, and near-duplicates stay together: "
            f"these {sizes.sum()} texts, {sizes[:, 1].sum()} of them toxic, are enough for {most}. "
            "Ask for fewer parts, or add texts of the rarer class."
        )
    smallest_first = sorted(range(len(shares)), key=shares.__getitem__)
    givers = [*pairs, *((component,) for component in both)]
    return {component: part for part, those in zip(smallest_first, givers, strict=False) for component in those}


def _united(components: IntArray, rows: IntArray, columns: IntArray) -> IntArray:
    """The components after those of ``rows`` and ``columns`` have become one, pair by pair."""
    apart = components[rows] != components[columns]
    if not apart.any():
        return components
    edges = components[rows[apart]], components[columns[apart]]
    graph = coo_array((np.ones(len(edges[0]), dtype=bool), edges), shape=(len(components),) * 2)
    return np.asarray(connected_components(graph, directed=False)[1][components], dtype=np.int64)


def _numbered(components: IntArray) -> IntArray:
    """The same components, numbered from 0 in the order in which they come."""
    _, first, number = np.unique(components, return_index=True, return_inverse=True)
    return np.asarray(first.argsort().argsort()[number], dtype=np.int64)


def _check_lengths(vectors: Vectors) -> None:
    squares = np.einsum("ne,ne->n", vectors, vectors)
    if wrong := np.flatnonzero(~((np.abs(squares - 1) < LENGTH_TOLERANCE) | (squares == 0))).tolist():
        raise ValueError(f"The vectors are of length 1; that of row {wrong[0]} is {np.sqrt(squares[wrong[0]]):g}.")
