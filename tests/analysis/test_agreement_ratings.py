"""Ratings in the long form: any ids, gaps, and what is refused."""

import tracemalloc
import uuid

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from analysis.agreement import Ratings, agreement_table, fleiss_kappa
from analysis.agreement.ratings import distinct_rows

NAN = np.nan
GAPPY = arrays(
    float,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=14),
    elements=st.sampled_from([0.0, 1.0, 2.5, NAN]),
)


def long_form(matrix):
    """Statements, raters and values of a matrix, gaps and all, row by row."""
    statements, raters = np.indices(matrix.shape)
    return statements.ravel(), raters.ravel(), matrix.ravel()


def refusal(*arguments, **options):
    with pytest.raises(ValueError) as error:
        Ratings.from_long(*arguments, **options)
    return str(error.value)


@given(GAPPY, st.randoms(use_true_random=False))
def test_the_long_form_gives_what_its_matrix_gives_in_any_order(matrix, random):
    columns = long_form(matrix)
    order = random.sample(range(matrix.size), matrix.size)
    shuffled = Ratings.from_long(*(column[order] for column in columns))
    assert agreement_table(shuffled) == agreement_table(matrix)


@pytest.mark.parametrize(
    "ids",
    [
        lambda number: [f"rater {one}" for one in number],
        lambda number: [uuid.UUID(int=int(one) * 7**30) for one in number],
        lambda number: [("pool", int(one)) for one in number],
        lambda number: [one if one % 2 else str(one) for one in number.tolist()],
        lambda number: number * 10**15 - 3,
        lambda number: number.astype(np.uint8),
        lambda number: number / 3,
        lambda number: pd.Series([f"rater {one}" for one in number]),
        lambda number: pd.Series(number, index=number[::-1]),
    ],
)
def test_ids_may_be_anything(ids):
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((30, 4)) < 0.2, NAN, rng.integers(0, 3, (30, 4)))
    statements, raters, values = long_form(matrix)
    found = agreement_table(Ratings.from_long(ids(statements), ids(raters), values))
    for one, other in zip(found, agreement_table(matrix), strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-12)
        assert (one.n_statements, one.n_raters, one.n_pairs) == (other.n_statements, other.n_raters, other.n_pairs)


def test_numbers_and_words_that_look_alike_are_different_raters():
    ratings = Ratings.from_long([1, 1], [7, "7"], [0, 1])
    assert ratings.rater_ids.tolist() == [7, "7"]


def test_a_missing_value_is_no_rating():
    ratings = Ratings.from_long(["s", "t", "t"], ["a", "a", "b"], [NAN, 1, 2])
    assert (ratings.n_ratings, ratings.statement_ids.tolist(), ratings.m_u.tolist()) == (2, ["t"], [2])


def test_categories_are_in_order_and_may_be_named():
    ratings = Ratings.from_long([1, 1], [1, 2], [5, 1], categories=[5, 4, 3, 2, 1])
    assert ratings.categories.tolist() == [1, 2, 3, 4, 5]
    assert ratings.n_uc.tolist() == ratings.counts.n_uc.tolist() == [[1, 0, 0, 0, 1]]


def test_fleiss_kappa_calls_the_odd_statement_by_its_id():
    ratings = Ratings.from_long(["s1", "s1", "s2", "s2", "s3"], ["a", "b", "a", "b", "a"], [0, 1, 1, 1, 0])
    with pytest.raises(ValueError, match="statement s3 has 1, the others 2"):
        fleiss_kappa(ratings)


def test_a_pool_of_any_size_takes_the_memory_of_its_ratings():
    # A matrix of 20,000 statements and 20,000 raters would take 3.2 GB.
    size = 20_000
    values = np.arange(3 * size) % 3
    tracemalloc.start()
    agreement_table(Ratings.from_long(np.repeat(np.arange(size), 3), np.arange(3 * size) % size, values))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


class TestRefused:
    def test_a_rater_who_rated_a_statement_twice(self):
        assert refusal(["s", "t", "s"], ["ann", "ann", "ann"], [0, 0, 1]) == (
            "Rater ann rated statement s more than once; keep one rating of each rater a statement."
        )

    def test_a_rating_that_is_missing_is_not_the_second(self):
        assert Ratings.from_long(["s", "s"], ["ann", "ann"], [0, NAN]).n_ratings == 1

    @given(st.integers(0, 4998), st.integers(0, 2**32), st.integers(1, 5))
    def test_a_rater_who_rated_twice_is_found_among_many(self, place, seed, times):
        rng = np.random.default_rng(seed)
        statements, raters = rng.permutation(5000) * 3, rng.integers(0, 300, 5000)
        others = np.full(times, place)
        columns = [np.concatenate([column, column[others]]) for column in (statements, raters)]
        order = rng.permutation(5000 + times)
        told = refusal(*(column[order] for column in columns), np.zeros(5000 + times))
        assert told.startswith(f"Rater {raters[place]} rated statement {statements[place]} more than once;")

    def test_columns_of_different_lengths(self):
        assert refusal([1, 2], [1, 2, 3], [0, 1, 0]) == (
            "statements has 2 entries, values has 3; give one of each for every rating."
        )
        assert refusal([1, 2, 3], [1, 2], [0, 1, 0]) == (
            "raters has 2 entries, values has 3; give one of each for every rating."
        )

    def test_what_is_no_column(self):
        assert refusal([1, 2], [1, 2], [[0], [1]]) == (
            "values has the shape (2, 1); give a column, one value a rating."
        )
        assert refusal(np.ones((2, 1)), [1, 2], [0, 1]) == (
            "statements has the shape (2, 1); give a column, one id a rating."
        )

    @pytest.mark.parametrize("missing", [None, NAN])
    def test_a_rating_of_nobody(self, missing):
        assert refusal([1, 2], ["ann", missing], [0, 1]) == (
            "A rating has no id of its statement or rater (None or NaN); leave it out or give it one."
        )

    def test_a_rating_of_no_statement(self):
        assert refusal(np.array([1.5, NAN]), [1, 2], [0, 1]) == (
            "A rating has no id of its statement or rater (NaN); leave it out or give it one."
        )

    def test_an_infinite_value(self):
        assert refusal([1], [1], [np.inf]) == "ratings has the value inf; mark a missing rating as NaN."

    def test_a_value_that_is_no_category_of_the_scale(self):
        assert refusal([1, 1], [1, 2], [0, 9], categories=[0, 1]) == (
            "ratings has the value 9, which is not among the categories 0, 1."
        )


@given(arrays(np.int64, array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=9), elements=st.integers(0, 5)))
def test_distinct_rows_are_those_of_numpy(table):
    first, occurrences = distinct_rows(table)
    if table.size:
        rows, counts = np.unique(table, axis=0, return_counts=True)
        assert table[first].tolist() == rows.tolist()
        assert occurrences.tolist() == counts.tolist()


@pytest.mark.parametrize("categories", [3, 30])
@given(ratings=GAPPY)
def test_counts_are_the_distinct_rows_of_the_table_whether_few_or_many_are_possible(ratings, categories):
    # With 30 categories so many rows are possible that they are found by sorting.
    named = Ratings.from_matrix(ratings, categories=[2.5, *range(categories - 1)])
    rows, occurrences = np.unique(named.n_uc, axis=0, return_counts=True)
    assert named.counts.n_uc.tolist() == rows.tolist()
    assert named.counts.occurrences.tolist() == occurrences.tolist()
    assert named.counts.m_u.tolist() == rows.sum(axis=1).tolist()
