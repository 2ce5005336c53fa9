"""Choosing a test set that no training statement resembles, from the statements' embeddings. Pure.

A set for testing tells nothing about a model that was trained on nearly the same sentences. ToxiGen's was chosen "such
that no training statement had cosine similarity above 0.7 with any test statement" (Hartvigsen et al., ACL 2022,
section 4.2). Here that is exact and not approximate: every statement is compared with every one of the set.

The products are made in float32, in blocks. A cosine that they leave in doubt is worked out again in float64, where
the doubt is a bound on their rounding and not a guess: the product of two unit vectors of E components is wrong by at
most about E units in the last place (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).

``vectors`` are always a matrix (N, E) of float32, one row a statement, of any length up to ``LONGEST``. A row of zeros
has no direction and so no cosine: it is similar to nothing, and ``has_direction`` tells which rows those are.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Vectors = NDArray[np.float32]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MARGIN = 1e-4
"""A statement so little below the threshold leaves training, too: the same encoder gives slightly other numbers on
another machine, by less than this, and must not find a training statement above the threshold there."""

PRODUCTS_AT_ONCE = 2**22
"""So many products are held at a time: 16 MB, which a processor's caches nearly hold."""
PAIRS_AT_ONCE = 2**13
ROWS_AT_ONCE = 2**14
UNIT_ROUNDOFF = 2.0**-24
SHORTEST, LONGEST = 1e-15, 1e15
"""Lengths of rows: a shorter one is as good as zero, a longer one is a mistake."""


@dataclass(frozen=True)
class Similar:
    """Rows that are similar to one of the set: (R,) their numbers, ascending, and of each the most similar one.

    ``nearest`` is a number within the set, the first of equals up to the rounding of float32; ``cosine`` is the exact
    cosine with it.
    """

    rows: IntArray
    nearest: IntArray
    cosine: FloatArray


def has_direction(vectors: Vectors) -> BoolArray:
    """(N,) whether each row is other than zero. Raises ``ValueError`` for a row that is not finite or too long."""
    return np.asarray(_norms(vectors) > 0)


def count_similar(
    vectors: Vectors, chosen: IntArray, *, above: float, on_block: Callable[[], None] = lambda: None
) -> IntArray:
    """(C,) how many other rows each of the ``chosen`` rows is similar to: those with a cosine above ``above``.

    ``on_block`` is called between blocks. Raises ``ValueError`` for a threshold outside (0, 1] and for rows that are
    not finite.

    >>> vectors = np.array([[1, 0], [1, 0.1], [0, 1], [0, 0]], dtype=np.float32)
    >>> count_similar(vectors, np.array([0, 2, 3]), above=0.7)
    array([1, 0, 0])
    """
    _check_threshold(above)
    counts = np.zeros(len(chosen), dtype=np.int64)
    found = vectors[chosen]
    doubt = rounding_of(vectors.shape[1])
    for start, products in _products(vectors, found):
        close, values = _above(products, above - doubt)
        rows, columns = np.divmod(close, len(chosen))
        is_sure = values > above + doubt
        doubtful = ~is_sure
        counts += np.bincount(columns[is_sure], minlength=len(chosen))
        exact = cosines(vectors, found, start + rows[doubtful], columns[doubtful]) > above
        counts += np.bincount(columns[doubtful][exact], minlength=len(chosen))
        on_block()
    with_itself = cosines(vectors, found, chosen, np.arange(len(chosen))) > above
    return np.asarray(counts - with_itself)


def similar_to(
    vectors: Vectors, test: Vectors, *, above: float, on_block: Callable[[], None] = lambda: None
) -> Similar:
    """The rows of ``vectors`` with a cosine above ``above`` with any row of ``test``, (S, E).

    ``above`` may be anything below 1; at 0 and below, rows that point away are found, but none without a direction.
    ``on_block`` is called between blocks. Raises ``ValueError`` for rows that are not finite.

    >>> vectors = np.array([[3, 0], [0, 5], [0.6, -0.8], [0, 0]], dtype=np.float32)
    >>> similar_to(vectors, np.array([[0, 1], [2, 0]], dtype=np.float32), above=0.7)
    Similar(rows=array([0, 1]), nearest=array([1, 0]), cosine=array([1., 1.]))
    """
    doubt = rounding_of(vectors.shape[1])
    parts: list[tuple[IntArray, IntArray, FloatArray]] = []
    for start, products in _products(vectors, test):
        close, _ = _above(products, above - doubt)
        rows = np.unique(close // len(test))
        nearest = products[rows].argmax(axis=1)
        cosine = cosines(vectors, test, start + rows, nearest)
        # Of a row whose best one is in doubt, all pairs that are.
        in_doubt = products[rows, nearest] <= above + doubt
        for place in np.flatnonzero(in_doubt):
            others = np.flatnonzero(products[rows[place]] > above - doubt)
            exact = cosines(vectors, test, np.full(len(others), start + rows[place]), others)
            nearest[place], cosine[place] = others[exact.argmax()], exact.max()
        is_similar = cosine > above
        parts.append((start + rows[is_similar], nearest[is_similar], cosine[is_similar]))
        on_block()
    nothing = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    rows, nearest, cosine = (np.concatenate(part) for part in zip(nothing, *parts, strict=True))
    return Similar(rows, nearest, cosine)


def cosines(vectors: Vectors, others: Vectors, rows: IntArray, columns: IntArray) -> FloatArray:
    """(P,) the cosine of ``vectors[rows[i]]`` with ``others[columns[i]]`` in float64, from -1 to 1.

    0 where one of them has no direction.
    """
    found = np.zeros(len(rows))
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        part = slice(start, start + PAIRS_AT_ONCE)
        one, other = vectors[rows[part]].astype(np.float64), others[columns[part]].astype(np.float64)
        lengths = np.sqrt(np.einsum("pe,pe->p", one, one)), np.sqrt(np.einsum("pe,pe->p", other, other))
        products = np.einsum("pe,pe->p", one, other)
        is_defined = np.minimum(*lengths) >= SHORTEST
        np.divide(products, lengths[0] * lengths[1], out=found[part], where=is_defined)
    return np.asarray(found.clip(-1, 1))


def rounding_of(components: int) -> float:
    """By how much the float32 product of two vectors of so many components, each made a unit vector, may be wrong."""
    return 1.01 * (components + 8) * UNIT_ROUNDOFF


def equal_shares(available: Sequence[int], size: int, order: Sequence[int]) -> list[int]:
    """How many of ``size`` places each stratum gets: as equally many as there are, ``available``, allow.

    What a stratum lacks is shared among the others; what then cannot be shared equally goes, one each, to the first
    strata of ``order``, a permutation of them. Raises ``ValueError`` for more places than there are statements.

    >>> equal_shares([10, 2, 10], 13, order=[2, 1, 0])
    [5, 2, 6]
    """
    if size > sum(available):
        raise ValueError(f"There are {sum(available)} statements for {size} places.")
    shares = [0] * len(available)
    while left := size - sum(shares):
        with_room = [place for place in order if shares[place] < available[place]]
        each = left // len(with_room)
        for place in with_room if each else with_room[:left]:
            shares[place] += min(max(each, 1), available[place] - shares[place])
    return shares


def most_isolated(neighbours: IntArray, size: int) -> IntArray:
    """(size,) the places of those with the fewest neighbours; of equals the first.

    >>> most_isolated(np.array([2, 0, 2, 1]), 3)
    array([1, 3, 0])
    """
    return np.asarray(np.argsort(neighbours, kind="stable")[:size])


def checksum(rows: Iterable[Sequence[str | int | float | None]]) -> str:
    """The SHA-256 of the rows of a table, whatever their order, in hexadecimal.

    Each row is written as a JSON array, without blanks and with letters as they are (UTF-8); numbers as Python writes
    them, so that whole floats end in ".0". The rows are sorted and parted by single newlines.

    >>> checksum([["b", 1.0], ["a", None]]) == checksum([["a", None], ["b", 1.0]])
    True
    >>> hashlib.sha256(b'["a",null]\\n["b",1.0]').hexdigest() == checksum([["b", 1.0], ["a", None]])
    True
    """
    lines = sorted(json.dumps(list(row), ensure_ascii=False, separators=(",", ":"), allow_nan=False) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _check_threshold(above: float) -> None:
    if not 0 < above <= 1:
        raise ValueError(f"The threshold is a cosine above 0 and up to 1, not {above:g}.")


def _products(vectors: Vectors, others: Vectors) -> Iterator[tuple[int, Vectors]]:
    """In blocks of rows, the number of the first and the (B, O) float32 products, all made unit vectors.

    A block's products are overwritten by the next one's.
    """
    others_unit = np.ascontiguousarray(_unit(others).T)
    height = max(1, PRODUCTS_AT_ONCE // max(1, len(others)))
    room = np.empty((height, len(others)), dtype=np.float32)
    for start in range(0, len(vectors) if len(others) else 0, height):
        block = _unit(vectors[start : start + height])
        yield start, np.matmul(block, others_unit, out=room[: len(block)])


def _above(products: Vectors, bound: float) -> tuple[IntArray, Vectors]:
    """The places of the products above a bound in row-major order, and the products there."""
    flat = products.reshape(-1)
    places = np.flatnonzero(flat > np.float32(bound))
    return places, flat[places]


def _unit(vectors: Vectors) -> Vectors:
    """(N, E) the rows at length 1; those without a direction stay zero."""
    norms = _norms(vectors)
    scale = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
    return np.asarray(vectors * scale.astype(np.float32)[:, None], dtype=np.float32)


def _norms(vectors: Vectors) -> FloatArray:
    """(N,) the lengths of the rows, 0 of those without a direction. Raises ``ValueError`` for one that cannot be."""
    norms = np.empty(len(vectors))
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        part = vectors[start : start + ROWS_AT_ONCE]
        norms[start : start + len(part)] = np.sqrt(np.einsum("ne,ne->n", part, part, dtype=np.float64))
    if wrong := np.flatnonzero(~(norms <= LONGEST)).tolist():
        raise ValueError(f"The vector in row {wrong[0]} is not finite, or too long.")
    norms[norms < SHORTEST] = 0
    return norms
