"""Who rated what how, and how many raters put each statement into each category."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Ids and values that are whole numbers are coded by a table while it has at most so many places a rating.
PLACES_A_RATING = 8
#: Odd multipliers that spread neighbouring keys over the slots of a table; the first is 2^64 over the golden ratio.
HASH_FACTORS = np.array([11400714819323198485, 14029467366897019727], dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings in the long form: one place a rating in three arrays of codes.

    A code is a place in ``statement_ids``, ``rater_ids`` and ``categories``. Nothing here is as large as
    statements × raters, so that the pool may be of any size. Make one by ``from_long`` or ``from_matrix``.
    """

    statements: IntArray  # (ratings,)
    raters: IntArray  # (ratings,)
    codes: IntArray  # (ratings,)
    statement_ids: NDArray[Any]  # (statements,)
    rater_ids: NDArray[Any]  # (raters,)
    categories: FloatArray  # (categories,), ascending

    @classmethod
    def from_long(
        cls,
        statements: ArrayLike | Sequence[Hashable],
        raters: ArrayLike | Sequence[Hashable],
        values: ArrayLike,
        *,
        categories: ArrayLike | None = None,
    ) -> "Ratings":
        """Return the ratings of three equally long columns; a rating whose value is NaN is missing.

        ``statements`` and ``raters`` are any ids, ``values`` numbers. ``categories`` are those of the scale,
        whether chosen or not; without them, those that occur. Only Gwet's AC1 and AC2 ask for them, because
        their chance depends on how many categories there are.

        Raises ``ValueError`` for columns of different lengths, a missing id, an infinite value, a value that is
        not among ``categories``, and a rater who rated a statement twice.

        >>> ratings = Ratings.from_long(["s", "s", "t"], ["ann", "bob", "ann"], [1, 5, np.nan])
        >>> ratings.n_ratings, ratings.statement_ids.tolist(), ratings.categories.tolist()
        (2, ['s'], [1.0, 5.0])
        """
        numbers = np.asarray(values, dtype=np.float64)
        if numbers.ndim != 1:
            raise ValueError(f"values has the shape {numbers.shape}; give a column, one value a rating.")
        columns = [_column("statements", statements), _column("raters", raters)]
        for name, column in zip(("statements", "raters"), columns, strict=True):
            if len(column) != len(numbers):
                raise ValueError(
                    f"{name} has {len(column)} entries, values has {len(numbers)}; give one of each for every rating."
                )
        given = ~np.isnan(numbers)
        if not given.all():
            numbers = numbers[given]
            columns = [column[given] for column in columns]
        (statement_ids, statement_codes), (rater_ids, rater_codes) = (_coded(column) for column in columns)
        _refuse_twice(statement_codes, rater_codes, statement_ids, rater_ids)
        kinds, codes = _categories(numbers, categories)
        return cls(statement_codes, rater_codes, codes, statement_ids, rater_ids, kinds)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, *, categories: ArrayLike | None = None) -> "Ratings":
        """Return the ratings of a matrix ``(statements, raters)``, NaN for missing; ids are rows and columns from 0.

        >>> Ratings.from_matrix([[1, 5, np.nan], [np.nan, np.nan, np.nan], [1, 1, 1]]).statement_ids
        array([0, 2])
        """
        table = np.asarray(matrix, dtype=np.float64)
        if table.ndim != 2:
            raise ValueError(
                f"ratings has the shape {table.shape}; give a matrix (statements, raters), NaN for a missing rating."
            )
        rows, columns = np.nonzero(~np.isnan(table))
        (statement_ids, statement_codes), (rater_ids, rater_codes) = _coded(rows), _coded(columns)
        kinds, codes = _categories(table[rows, columns], categories)
        return cls(statement_codes, rater_codes, codes, statement_ids, rater_ids, kinds)

    @classmethod
    def of(cls, ratings: "Ratings | ArrayLike") -> "Ratings":
        """Return ``ratings`` as they are, or those of a matrix."""
        return ratings if isinstance(ratings, Ratings) else cls.from_matrix(ratings)

    @property
    def n_ratings(self) -> int:
        return int(self.codes.size)

    @cached_property
    def m_u(self) -> IntArray:
        """The number of ratings of each statement, ``(statements,)``."""
        return np.bincount(self.statements, minlength=len(self.statement_ids))

    @cached_property
    def n_uc(self) -> IntArray:
        """How many raters put each statement into each category, ``(statements, categories)``."""
        shape = len(self.statement_ids), len(self.categories)
        cells = np.bincount(self.statements * shape[1] + self.codes, minlength=shape[0] * shape[1])
        return cells.reshape(shape)

    @cached_property
    def counts(self) -> "Counts":
        """The distinct rows of ``n_uc`` and how many statements have each, which is all that most statistics need.

        Where few rows are possible, a row is read as a number whose digits are its counts, and ``n_uc`` is not made.
        """
        statements, categories = len(self.statement_ids), len(self.categories)
        base = int(self.m_u.max(initial=0)) + 1
        if base**categories > PLACES_A_RATING * statements + 1000:
            first, occurrences = distinct_rows(self.n_uc)
            return Counts(self.n_uc[first], self.categories, occurrences)
        digits = base ** np.arange(categories)[::-1]
        number = np.bincount(self.statements, weights=digits.astype(np.float64)[self.codes], minlength=statements)
        occurrences = np.bincount(number.astype(np.int64))
        rows = np.flatnonzero(occurrences)
        return Counts(rows[:, None] // digits % base, self.categories, occurrences[rows])

    def of_statements(self, enter: BoolArray) -> BoolArray:
        """Return which ratings are of the statements that ``enter``, ``(ratings,)``."""
        return enter[self.statements]

    def n_raters(self, of: BoolArray) -> int:
        """Return how many raters gave the ratings ``of``, ``(ratings,)``."""
        return int(np.count_nonzero(np.bincount(self.raters[of], minlength=1)))


@dataclass(frozen=True, eq=False)
class Counts:
    """How many raters put a statement into each category, and how many statements have just these counts.

    The rows are distinct and in lexical order.
    """

    n_uc: IntArray  # (rows, categories)
    categories: FloatArray  # (categories,), ascending
    occurrences: IntArray  # (rows,): statements

    @cached_property
    def m_u(self) -> IntArray:
        """The number of ratings of each statement of a row, ``(rows,)``."""
        return np.asarray(self.n_uc.sum(axis=1))

    def only(self, enter: BoolArray) -> "Counts":
        """Return the counts of the rows that ``enter``."""
        return Counts(self.n_uc[enter], self.categories, self.occurrences[enter])

    @property
    def largest(self) -> int:
        """Numbers a resample that the formulas hold in their largest array."""
        return int(max(self.n_uc.size, self.n_uc.shape[1] ** 2))


def distinct_rows(table: IntArray) -> tuple[IntArray, IntArray]:
    """Return where each distinct row of ``table`` stands first, and how often it occurs.

    The rows come in lexical order. No number is below 0.
    """
    key = np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        # Keys are below the number of rows: the product stays far below 2 ** 63.
        keys, key = _coded(key * (int(column.max(initial=0)) + 1) + column)
        if len(keys) == len(table):
            break
    _, first, occurrences = np.unique(key, return_index=True, return_counts=True)
    return first, occurrences


# --- Codes -------------------------------------------------------------------------------------


def _column(name: str, ids: ArrayLike | Sequence[Hashable]) -> NDArray[Any]:
    """Return ids as an array of one dimension; what is no array and not of one kind keeps its objects."""
    if hasattr(ids, "__array__"):
        column = np.asarray(ids)
    else:
        entries = list(ids)  # type: ignore[arg-type]
        of_one_kind = {type(entry) for entry in entries} in ({int}, {str})
        column = np.asarray(entries) if of_one_kind else np.fromiter(entries, dtype=object, count=len(entries))
    if column.ndim != 1:
        raise ValueError(f"{name} has the shape {column.shape}; give a column, one id a rating.")
    return column


def _coded(column: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Return the distinct entries, ascending where they have an order, and the place of each entry among them."""
    if column.dtype.kind == "b":
        column = column.astype(np.int64)
    if column.dtype.kind in "iu" and column.size:
        low = int(column.min())
        places = int(column.max()) - low + 1
        if places <= PLACES_A_RATING * column.size + 1000:
            return _coded_by_table(column, low, places)
    if column.dtype.kind == "O":
        return _coded_objects(column)
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise ValueError("A rating has no id of its statement or rater (NaN); leave it out or give it one.")
    entries, codes = np.unique(column, return_inverse=True)
    return entries, codes


def _coded_by_table(column: NDArray[Any], low: int, places: int) -> tuple[NDArray[Any], IntArray]:
    shifted = (column - low if low else column).astype(np.int64, copy=False)
    occurs = np.zeros(places, dtype=np.bool_)
    occurs[shifted] = True
    entries = np.flatnonzero(occurs)
    if len(entries) == places:
        return entries + low, shifted
    code = np.cumsum(occurs, dtype=np.int64) - 1
    return entries + low, code[shifted]


def _coded_objects(column: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    entries = dict.fromkeys(column.tolist())
    if any(entry is None or entry != entry for entry in entries):
        raise ValueError("A rating has no id of its statement or rater (None or NaN); leave it out or give it one.")
    try:
        ordered = sorted(entries)
    except TypeError:  # ids without an order stand as they came
        ordered = list(entries)
    place = {entry: code for code, entry in enumerate(ordered)}
    codes = np.fromiter((place[entry] for entry in column), dtype=np.int64, count=len(column))
    return np.fromiter(ordered, dtype=object, count=len(ordered)), codes


def _categories(values: FloatArray, scale: ArrayLike | None) -> tuple[FloatArray, IntArray]:
    """Return the categories, ascending, and each value's place among them."""
    lowest, highest = (values.min(), values.max()) if values.size else (0.0, 0.0)
    for extreme in (lowest, highest):
        if np.isinf(extreme):
            raise ValueError(f"ratings has the value {extreme}; mark a missing rating as NaN.")
    is_small = max(-lowest, highest) < 1e9
    if is_small and ((whole := values.astype(np.int64)) == values).all():
        entries, codes = _coded(whole)
        found = entries.astype(np.float64)
    else:
        found = np.unique(values)
        codes = np.searchsorted(found, values)
    if scale is None:
        return found, codes
    categories = np.unique(np.asarray(scale, dtype=np.float64))
    foreign = found[~np.isin(found, categories)]
    if foreign.size:
        given = ", ".join(f"{category:g}" for category in categories)
        raise ValueError(f"ratings has the value {foreign[0]:g}, which is not among the categories {given}.")
    return categories, np.searchsorted(categories, found)[codes]


def _refuse_twice(statements: IntArray, raters: IntArray, statement_ids: NDArray[Any], rater_ids: NDArray[Any]) -> None:
    keys = statements * max(len(rater_ids), 1)
    keys += raters
    repeated = _repeated(keys)
    if repeated is not None:
        statement, rater = divmod(repeated, len(rater_ids))
        raise ValueError(
            f"Rater {rater_ids[rater]} rated statement {statement_ids[statement]} more than once; "
            "keep one rating of each rater a statement."
        )


def _repeated(keys: IntArray) -> int | None:
    """Return a key that occurs twice, or None; in a time that grows with the keys, as sorting them would not.

    Each key writes its place into a slot of a table. A key that then finds another place there lost it, to itself or
    to one that has the same slot by chance. Few are left to try again, and fewer to be sorted.
    """
    for factor in HASH_FACTORS:
        bits = int(keys.size + 1).bit_length()
        slots = ((keys.view(np.uint64) * factor) >> np.uint64(64 - bits)).view(np.int64)
        table = np.empty(1 << bits, dtype=np.int32)
        places = np.arange(keys.size, dtype=np.int32)
        table[slots] = places
        found = table[slots]
        lost = np.flatnonzero(found != places)
        equal = lost[keys[found[lost]] == keys[lost]]
        if equal.size:
            return int(keys[equal].min())
        keys = keys[lost]
    rest = np.sort(keys)
    repeated = rest[1:][rest[1:] == rest[:-1]]
    return int(repeated[0]) if repeated.size else None
