"""Choosing a test set from embeddings: exact against a plain float64 computation, and what degenerate input gives."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.humanval import choosing
from analysis.humanval.choosing import (
    checksum,
    cosines,
    count_similar,
    equal_shares,
    has_direction,
    most_isolated,
    rounding_of,
    similar_to,
)

DIMENSIONS = 384


def clustered(number, *, seed=0, noise=0.6, dimensions=DIMENSIONS):
    """Vectors around a few centres, so that many cosines lie about the threshold."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(2, number // 10), dimensions))
    vectors = centres[random.integers(len(centres), size=number)] + noise * random.standard_normal((number, dimensions))
    return vectors.astype(np.float32)


def all_cosines(one, other):
    """(N, M) in float64, straight from the definition; 0 for a row of zeros."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    lengths = np.linalg.norm(one, axis=1)[:, None] * np.linalg.norm(other, axis=1)[None]
    return np.divide(one @ other.T, lengths, out=np.zeros((len(one), len(other))), where=lengths > 0)


# --- Counting neighbours, and finding what is similar to a set


@pytest.mark.parametrize("above", [0.3, 0.6, 0.7, 0.74])
@pytest.mark.parametrize("at_once", [50, 1000, 2**22], ids=["many blocks", "some blocks", "one block"])
def test_neighbours_are_those_of_the_definition(above, at_once, monkeypatch):
    monkeypatch.setattr(choosing, "PRODUCTS_AT_ONCE", at_once)
    vectors = clustered(700)
    chosen = np.random.default_rng(1).permutation(len(vectors))[:60]
    expected = (all_cosines(vectors, vectors[chosen]) > above).sum(axis=0) - 1  # without itself
    assert expected.max() > 3
    assert count_similar(vectors, chosen, above=above).tolist() == expected.tolist()


@pytest.mark.parametrize("at_once", [50, 2**22])
def test_what_is_similar_to_a_set_is_that_of_the_definition_with_its_nearest(at_once, monkeypatch):
    monkeypatch.setattr(choosing, "PRODUCTS_AT_ONCE", at_once)
    vectors, test = np.split(clustered(730), [700])
    expected = all_cosines(vectors, test)
    rows = np.flatnonzero((expected > 0.73).any(axis=1))
    assert 5 < len(rows) < 600
    found = similar_to(vectors, test, above=0.73)
    assert found.rows.tolist() == rows.tolist()
    assert found.nearest.tolist() == expected[rows].argmax(axis=1).tolist()
    np.testing.assert_allclose(found.cosine, expected[rows].max(axis=1), rtol=0, atol=1e-12)


def near_the_threshold(above, number=400):
    """A unit vector and others whose cosines with it lie so close to ``above`` that float32 cannot tell the side."""
    random = np.random.default_rng(5)
    base = random.standard_normal(DIMENSIONS)
    base /= np.linalg.norm(base)
    aside = random.standard_normal((number, DIMENSIONS))
    aside -= (aside @ base)[:, None] * base
    aside /= np.linalg.norm(aside, axis=1)[:, None]
    wanted = above + random.uniform(-3e-7, 3e-7, size=number)
    vectors = wanted[:, None] * base + np.sqrt(1 - wanted**2)[:, None] * aside
    return base[None].astype(np.float32), vectors.astype(np.float32)


def test_cosines_that_float32_cannot_decide_are_decided_exactly():
    test, vectors = near_the_threshold(0.7)
    exact = all_cosines(vectors, test)[:, 0]
    in_float32 = (vectors @ test.T)[:, 0] > np.float32(0.7)
    assert (in_float32 != (exact > 0.7)).any()  # or this would prove nothing
    assert similar_to(vectors, test, above=0.7).rows.tolist() == np.flatnonzero(exact > 0.7).tolist()
    both = np.concatenate([vectors, test])
    assert count_similar(both, np.array([len(vectors)]), above=0.7).tolist() == [(exact > 0.7).sum()]


def test_the_one_of_the_set_that_is_above_is_found_though_float32_prefers_another():
    base, test = near_the_threshold(0.7)
    exact = all_cosines(base, test)[0]
    in_float32 = np.array(
        [choosing._unit(base) @ choosing._unit(test[[place]]).T for place in range(len(test))]
    ).ravel()
    below, above = np.flatnonzero(exact <= 0.7), np.flatnonzero(exact > 0.7)
    misled = [(one, other) for one in below for other in above if in_float32[one] > in_float32[other]]
    assert misled  # or this would prove nothing
    for pair in misled[:50]:
        found = similar_to(base, test[list(pair)], above=0.7)
        assert (found.rows.tolist(), found.nearest.tolist()) == ([0], [1])


def test_the_bound_on_the_rounding_holds():
    vectors = clustered(300)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    error = np.abs((unit @ unit.T).astype(np.float64) - all_cosines(vectors, vectors)).max()
    assert 0 < error < rounding_of(DIMENSIONS) < choosing.MARGIN


def test_the_length_of_a_vector_does_not_matter():
    vectors = clustered(200)
    scaled = vectors * np.random.default_rng(2).uniform(1e-3, 1e3, size=(200, 1)).astype(np.float32)
    chosen = np.arange(20)
    assert count_similar(scaled, chosen, above=0.6).tolist() == count_similar(vectors, chosen, above=0.6).tolist()


def test_identical_statements_are_all_similar_to_each_other():
    vectors = np.repeat(clustered(1), 500, axis=0)
    assert count_similar(vectors, np.array([0, 7]), above=0.7).tolist() == [499, 499]
    found = similar_to(vectors, vectors[:3], above=0.7)
    assert found.rows.tolist() == list(range(500))
    assert set(found.nearest.tolist()) == {0}
    assert found.cosine.min() == pytest.approx(1, abs=1e-12)


def test_nothing_is_above_a_threshold_of_one():
    vectors = np.repeat(clustered(1), 5, axis=0)
    assert count_similar(vectors, np.array([0]), above=1.0).tolist() == [0]


def test_a_vector_without_direction_is_similar_to_nothing():
    vectors = np.array([[0, 0], [1, 0], [0, 0], [1e-20, 0]], dtype=np.float32)
    assert has_direction(vectors).tolist() == [False, True, False, False]
    assert count_similar(vectors, np.arange(4), above=1e-6).tolist() == [0, 0, 0, 0]
    assert similar_to(vectors, vectors[:2], above=0).rows.tolist() == [1]
    assert cosines(vectors, vectors, np.array([0, 1, 3]), np.array([1, 1, 1])).tolist() == [0, 1, 0]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e20])
def test_a_vector_that_cannot_be_is_refused(value):
    vectors = np.array([[1, 0], [value, 0]], dtype=np.float32)
    for act in (
        lambda: has_direction(vectors),
        lambda: count_similar(vectors, np.array([0]), above=0.7),
        lambda: similar_to(vectors, vectors[:1], above=0.7),
    ):
        with pytest.raises(ValueError, match="row 1 is not finite, or too long"):
            act()


@pytest.mark.parametrize("above", [0, -0.1, 1.01, float("nan")])
def test_a_threshold_is_a_cosine_above_zero(above):
    with pytest.raises(ValueError, match="a cosine above 0 and up to 1, not"):
        count_similar(clustered(3), np.array([0]), above=above)


def test_nobody_chosen_and_nothing_there_are_no_mishap():
    nothing, some = np.zeros((0, 3), np.float32), clustered(3, dimensions=3)
    assert count_similar(some, np.zeros(0, np.int64), above=0.7).tolist() == []
    assert similar_to(nothing, some, above=0.7).rows.tolist() == []
    assert similar_to(some, nothing, above=0.7).rows.tolist() == []


def test_the_lease_can_be_kept_between_blocks(monkeypatch):
    monkeypatch.setattr(choosing, "PRODUCTS_AT_ONCE", 100)
    steps = []
    count_similar(clustered(50), np.arange(10), above=0.7, on_block=lambda: steps.append(1))
    similar_to(clustered(50), clustered(10), above=0.7, on_block=lambda: steps.append(2))
    assert steps == [1] * 5 + [2] * 5


# --- Shares


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.data())
def test_shares_are_as_equal_as_the_statements_allow(available, data):
    size = data.draw(st.integers(0, sum(available)))
    order = data.draw(st.permutations(range(len(available))))
    shares = equal_shares(available, size, order)
    assert sum(shares) == size
    assert all(0 <= share <= there for share, there in zip(shares, available, strict=True))
    # Whoever has less than another one by more than the remainder has all there is.
    most = max(shares)
    assert all(share >= most - 1 or share == there for share, there in zip(shares, available, strict=True))


def test_what_cannot_be_shared_goes_to_the_first_in_order():
    assert equal_shares([9, 9, 9], 4, [1, 0, 2]) == [1, 2, 1]
    assert equal_shares([1, 9, 9], 12, [2, 1, 0]) == [1, 5, 6]


def test_more_places_than_statements_are_refused():
    with pytest.raises(ValueError, match="There are 5 statements for 6 places"):
        equal_shares([2, 3], 6, [0, 1])


def test_the_most_isolated_come_first_and_equals_in_their_order():
    assert most_isolated(np.array([3, 0, 1, 0, 1]), 4).tolist() == [1, 3, 2, 4]


# --- Checksum


def test_the_checksum_is_of_the_sorted_rows_as_json():
    rows = [["ü", 1.5, None, 3], ["a\nb", 2.0, "x", 0]]
    text = '["a\\nb",2.0,"x",0]\n["ü",1.5,null,3]'
    assert checksum(rows) == checksum(rows[::-1]) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("changed", [["ü", 1.5, None, 4], ["u", 1.5, None, 3], ["ü", 1.5, "", 3]])
def test_any_other_cell_has_another_checksum(changed):
    assert checksum([changed]) != checksum([["ü", 1.5, None, 3]])


def test_a_row_that_is_there_twice_is_not_one_that_is_there_once():
    assert checksum([["a"], ["a"]]) != checksum([["a"]])


def test_no_number_is_no_number():
    with pytest.raises(ValueError, match="not JSON compliant"):
        checksum([[float("nan")]])
