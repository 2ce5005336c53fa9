"""Comparisons: against independent libraries, printed examples and hand counts; and that sides may be swapped."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import (
    confint_proportions_2indep,
    proportion_confint,
    proportions_ztest,
)

from analysis import arrangements
from analysis.comparison import (
    WHY,
    CannotCompare,
    difference_of_means,
    difference_of_shares,
    holm,
    mean_with_interval,
    paired_difference,
    paired_difference_of_shares,
    share_with_interval,
)

RATINGS = st.integers(2, 10).map(lambda half: half / 2)
FEW = st.lists(RATINGS, min_size=1, max_size=9)


def drawn(size, seed, loc=3.0):
    return np.random.default_rng(seed).normal(loc, 1.0, size)


# --- Means --------------------------------------------------------------------------------------------


def test_a_mean_has_the_t_interval_of_scipy():
    values = drawn(41, seed=1)
    expected = stats.ttest_1samp(values, 0).confidence_interval()
    assert mean_with_interval(values) == pytest.approx((values.mean(), *expected), rel=1e-12)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([], "The interval of a mean needs at least 10 values; there are 0."),
        ([4], "The interval of a mean needs at least 10 values; there is 1."),
        ([1, 5] * 4 + [3], "The interval of a mean needs at least 10 values; there are 9."),
        ([3] * 12, "All 12 values are 3: without a spread a mean has no interval."),
        ([0.1 + 0.2, 0.3] * 5, "All 10 values are 0.3: without a spread a mean has no interval."),
        ([1, np.nan, 2], "1 of 3 values are missing or infinite; leave them out and say so."),
        ([1, np.inf], "1 of 2 values are missing or infinite; leave them out and say so."),
    ],
)
def test_a_mean_without_an_interval_says_why(values, reason):
    with pytest.raises(CannotCompare) as refused:
        mean_with_interval(values)
    assert str(refused.value) == reason


@pytest.mark.parametrize("values", [[1] * 11 + [2], [5] * 11 + [4]])
def test_an_interval_that_would_leave_the_scale_is_not_given(values):
    assert mean_with_interval(values).low < 1 or mean_with_interval(values).high > 5
    with pytest.raises(CannotCompare, match=r"too near an end of their scale \(1 to 5\)"):
        mean_with_interval(values, (1, 5))
    assert mean_with_interval([2, 4] * 6, (1, 5)) == mean_with_interval([2, 4] * 6)


def test_thirty_values_a_side_are_compared_by_welch_as_scipy_does():
    a, b = drawn(30, seed=2), drawn(50, seed=3, loc=3.6)
    found, expected = difference_of_means(a, b), stats.ttest_ind(a, b, equal_var=False)
    assert (found.test, found.value) == ("Welch's t test", pytest.approx(a.mean() - b.mean()))
    assert found.p == pytest.approx(expected.pvalue, rel=1e-10)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()), rel=1e-10)


def test_fewer_values_on_one_side_are_compared_by_permutation():
    found = difference_of_means(drawn(29, seed=2), drawn(30, seed=3))
    assert found.test == "permutation test"
    assert found.why == WHY["permutation test"]


def welch(x, y, axis):
    of_x, of_y = (side.var(axis, ddof=1) / side.shape[axis] for side in (x, y))
    return (x.mean(axis) - y.mean(axis)) / np.sqrt(of_x + of_y)


def test_few_values_are_permuted_in_all_ways_as_scipy_does():
    a, b = [1, 1, 2, 3, 5], [2, 4, 4, 5, 5, 5]
    expected = stats.permutation_test((a, b), welch, vectorized=True, n_resamples=np.inf)
    as_far = np.abs(expected.null_distribution) > abs(expected.statistic) - 1e-9
    assert len(as_far) == 462
    assert difference_of_means(a, b).p == pytest.approx(as_far.mean(), abs=1e-12)


def test_a_permutation_by_hand():
    """Of the 35 ways to take 3 of 7 different values, 1 has the sum of the three least, and no other lies as far."""
    found = difference_of_means([1, 2, 3], [10, 11, 12, 13])
    assert (found.value, found.p) == (-9.5, pytest.approx(1 / 35))


def test_many_arrangements_are_drawn_and_p_is_never_zero():
    found = difference_of_means(np.arange(29.0), np.arange(100.0, 140.0))
    assert found.p == pytest.approx(1 / 10_000)
    assert difference_of_means(np.arange(29.0), np.arange(100.0, 140.0)) == found


def test_drawn_arrangements_come_near_the_t_test():
    a, b = 1.5 * drawn(25, seed=4, loc=2), drawn(60, seed=5, loc=3.3)
    found, expected = difference_of_means(a, b), stats.ttest_ind(a, b, equal_var=False)
    assert found.p == pytest.approx(expected.pvalue, abs=0.02)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()), abs=0.05)


def two_values(rng, size, spread):
    return rng.choice([3 - spread, 3 + spread], size)


def bell(rng, size, spread):
    return rng.normal(3, spread, size)


UNEQUAL = [
    (two_values, 15, 2.0, 300, 0.1),
    (bell, 15, 1.5, 100, 0.75),
    (bell, 25, 1.6, 300, 1.0),
    (bell, 15, 0.75, 100, 1.5),
]


@pytest.mark.parametrize(("shape", "n", "spread", "m", "other_spread"), UNEQUAL)
def test_equal_means_are_told_apart_once_in_twenty_times_whatever_the_spreads(
    shape, n, spread, m, other_spread, monkeypatch
):
    """A permutation of the bare difference does it more than half, a quarter, a fifth and none of the time."""
    monkeypatch.setattr(arrangements, "DRAWN", 399)
    rng = np.random.default_rng(11)
    found = [difference_of_means(shape(rng, n, spread), bell(rng, m, other_spread)) for _ in range(200)]
    assert {one.test for one in found} == {"permutation test"}
    false_alarms = np.mean([one.p <= 0.05 for one in found])
    covered = np.mean([one.low <= 0 <= one.high for one in found])
    assert 0.01 <= false_alarms <= 0.09  # 5 % within 2.6 standard errors of 200 draws
    assert 0.91 <= covered <= 0.99


def test_a_small_side_of_little_spread_has_power(monkeypatch):
    """Welch's t test finds this difference in 95 of the 100 draws, a permutation of the bare difference in 4."""
    monkeypatch.setattr(arrangements, "DRAWN", 399)
    rng = np.random.default_rng(12)
    found = [difference_of_means(rng.normal(3.7, 0.3, 8), rng.normal(3, 1.5, 100)) for _ in range(100)]
    assert np.mean([one.p <= 0.05 for one in found]) > 0.85


@settings(deadline=None)
@given(FEW, FEW)
def test_sides_that_are_swapped_give_the_same_difference_with_the_other_sign(a, b):
    try:
        found = difference_of_means(a, b)
    except CannotCompare:
        with pytest.raises(CannotCompare):
            difference_of_means(b, a)
        return
    swapped = difference_of_means(b, a)
    assert (swapped.p, swapped.value) == (found.p, -found.value)
    # Of sides that are the same, both calls are one, whose drawn arrangements need not be symmetric.
    if found.low is not None and sorted(a) != sorted(b):
        assert (swapped.low, swapped.high) == pytest.approx((-found.high, -found.low))


@settings(deadline=None, max_examples=25)
@given(st.lists(RATINGS, min_size=12, max_size=12), st.lists(RATINGS, min_size=20, max_size=20), st.randoms())
def test_the_order_of_values_has_no_say(a, b, random):
    assume(len({*a, *b}) > 1)
    assert difference_of_means(random.sample(a, len(a)), b) == difference_of_means(a, b)


@settings(deadline=None)
@given(FEW, FEW)
def test_the_interval_leaves_zero_out_just_where_p_is_at_most_a_twentieth(a, b):
    try:
        found = difference_of_means(a, b)
    except CannotCompare:
        return
    if found.low is None:
        return
    if found.low > 1e-9 or found.high < -1e-9:
        assert found.p <= 0.05
    elif found.low < -1e-9 and found.high > 1e-9:
        assert found.p > 0.05


def test_the_ends_of_the_interval_are_the_last_shifts_that_the_test_does_not_reject():
    a, b = np.array([1.0, 2.5, 3.2, 4.1, 2.2]), np.array([3.0, 4.4, 5.9, 4.7, 6.1])
    found = difference_of_means(a, b)
    for end, inside in ((found.low, 1e-6), (found.high, -1e-6)):
        assert difference_of_means(a - (end + inside), b).p > 0.05
        assert difference_of_means(a - (end - inside), b).p <= 0.05


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([], [1, 2], "A comparison needs two sides; there are 0 values on one and 2 on the other."),
        ([1], [5], "With 1 and 1 values even the most extreme result would give p = 1: too few for a test."),
        (
            [1, 2, 3],
            [5, 5, 5],
            "With 3 and 3 values even the most extreme result would give p = 0.1: too few for a test.",
        ),
        (
            [1],
            [2, 3] * 10,
            "With 1 and 20 values the spread of a side is not known: means need at least 2 on each.",
        ),
        ([2] * 40, [2] * 35, "All values of both sides are 2: there is no difference to test."),
        ([1, 2, np.nan], [1], "1 of 3 values are missing or infinite; leave them out and say so."),
    ],
)
def test_sides_that_cannot_be_compared_say_why(a, b, reason):
    with pytest.raises(CannotCompare) as refused:
        difference_of_means(a, b)
    assert str(refused.value) == reason


def test_sides_of_one_value_each_have_a_p_and_no_interval():
    found = difference_of_means([1] * 40, [5] * 40)
    assert (found.value, found.low, found.high, found.test) == (-4, None, None, "permutation test")
    assert found.p < 1e-10
    few = difference_of_means([1] * 4, [5] * 5)
    assert (few.p, few.low) == (pytest.approx(1 / 126), None)


def test_sides_of_one_value_each_need_no_memory_for_arrangements():
    tracemalloc.start()
    found = [difference_of_means([1] * 5000, [5] * 5000), paired_difference([1] * 5000, [5] * 5000)]
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert all(0 < one.p < 1e-10 for one in found)
    assert taken < 2e6  # ten thousand arrangements would take 400 MB and more


def test_a_matrix_is_no_row_of_values():
    with pytest.raises(ValueError, match="in one row"):
        mean_with_interval([[1, 2], [3, 4]])


# --- Means within pairs -------------------------------------------------------------------------------


def test_thirty_pairs_are_compared_by_the_paired_t_test_as_scipy_does():
    a, b = drawn(30, seed=6), drawn(30, seed=7, loc=3.4)
    found, expected = paired_difference(a, b), stats.ttest_rel(a, b)
    assert found.test == "paired t test"
    assert found.p == pytest.approx(expected.pvalue, rel=1e-10)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()), rel=1e-10)


@pytest.mark.parametrize("pairs", [6, 9, 14])
def test_fewer_pairs_are_turned_round_in_all_ways_as_scipy_does(pairs):
    a, b = drawn(pairs, seed=8), drawn(pairs, seed=9, loc=3.5)
    expected = stats.permutation_test(
        (a, b),
        lambda x, y, axis: (x - y).mean(axis),
        vectorized=True,
        permutation_type="samples",
        n_resamples=np.inf,
    )
    found = paired_difference(a, b)
    assert (found.test, found.p) == ("sign-flip permutation test", pytest.approx(expected.pvalue, abs=1e-12))


def test_drawn_turns_come_near_the_t_test():
    a, b = drawn(29, seed=10), drawn(29, seed=11, loc=3.3)
    found, expected = paired_difference(a, b), stats.ttest_rel(a, b)
    assert found.test == "sign-flip permutation test"
    assert found.p == pytest.approx(expected.pvalue, abs=0.02)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()), abs=0.05)


@settings(deadline=None)
@given(st.lists(st.tuples(RATINGS, RATINGS), min_size=6, max_size=17))
def test_pairs_that_are_swapped_give_the_same_difference_with_the_other_sign(pairs):
    a, b = np.array(pairs).T
    try:
        found = paired_difference(a, b)
    except CannotCompare:
        with pytest.raises(CannotCompare):
            paired_difference(b, a)
        return
    swapped, reversed_ = paired_difference(b, a), paired_difference(a[::-1], b[::-1])
    assert (swapped.p, swapped.value) == (found.p, -found.value)
    assert reversed_ == found
    # Of differences that are the same the other way round, both calls are one, as above.
    if found.low is not None and sorted(a - b) != sorted(b - a):
        assert (swapped.low, swapped.high) == pytest.approx((-found.high, -found.low))


def test_the_ends_of_a_paired_interval_are_the_last_shifts_that_are_not_rejected():
    a, b = drawn(8, seed=12), drawn(8, seed=13, loc=3.5)
    found = paired_difference(a, b)
    for end, inside in ((found.low, 1e-6), (found.high, -1e-6)):
        assert paired_difference(a - (end + inside), b).p > 0.05
        assert paired_difference(a - (end - inside), b).p <= 0.05


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([], [], "With 0 pairs even the most extreme result would give p = 1: a test needs at least 6."),
        ([1] * 5, [2] * 5, "With 5 pairs even the most extreme result would give p = 0.062: a test needs at least 6."),
        ([1, 2] * 4, [1, 2] * 4, "None of the 8 pairs differs: there is no difference to test."),
        ([np.nan] * 6, [1] * 6, "6 of 6 values are missing or infinite; leave them out and say so."),
    ],
)
def test_pairs_that_cannot_be_compared_say_why(a, b, reason):
    with pytest.raises(CannotCompare) as refused:
        paired_difference(a, b)
    assert str(refused.value) == reason


def test_pairs_that_all_differ_by_the_same_have_a_p_and_no_interval():
    found = paired_difference([2, 3, 4] * 12, [1, 2, 3] * 12)
    assert (found.value, found.low, found.high, found.test) == (1, None, None, "sign-flip permutation test")
    assert found.p == pytest.approx(2 / 2**36)


def test_sides_of_different_length_are_no_pairs():
    with pytest.raises(ValueError, match="there are 2 first and 1 second ones"):
        paired_difference([1, 2], [1])


# --- Shares -------------------------------------------------------------------------------------------


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_share_has_the_wilson_interval_of_statsmodels(share):
    k, n = share
    found = share_with_interval(k, n)
    assert found == pytest.approx((k / n, *proportion_confint(k, n, method="wilson")), abs=1e-12)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_a_share_of_none_and_of_all_ends_at_0_and_1():
    assert share_with_interval(0, 7).low == 0
    assert share_with_interval(7, 7).high == 1


def test_there_is_no_share_of_nothing_and_none_of_more_than_all():
    with pytest.raises(CannotCompare, match="There is nothing to take a share of"):
        share_with_interval(0, 0)
    with pytest.raises(ValueError, match="8 of 7 is no share"):
        share_with_interval(8, 7)


@example((4, 20), (5, 20))  # 4.5 expected
@example((5, 20), (5, 20))
@given(
    st.integers(20, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.integers(20, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
)
def test_two_shares_are_compared_as_statsmodels_and_scipy_do(first, second):
    (k1, n1), (k2, n2) = first, second
    found = difference_of_shares(k1, n1, k2, n2)
    expected = confint_proportions_2indep(k1, n1, k2, n2, method="newcomb")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-12)
    if stats.contingency.expected_freq([[k1, n1 - k1], [k2, n2 - k2]]).min() >= 5:
        assert found.test == "two-proportion z test"
        assert found.p == pytest.approx(proportions_ztest([k1, k2], [n1, n2])[1], abs=1e-12)
    else:
        assert found.test == "Fisher's exact test"
        assert found.p == pytest.approx(stats.fisher_exact([[k1, n1 - k1], [k2, n2 - k2]])[1], abs=1e-12)
    swapped = difference_of_shares(k2, n2, k1, n1)
    assert (swapped.value, swapped.p) == (pytest.approx(-found.value), pytest.approx(found.p))


def test_newcombes_printed_examples_of_two_shares():
    """Newcombe (1998), Statistics in Medicine 17, 873-890, table II, method 10."""
    for counts, low, high in [((56, 70, 48, 80), 0.0524, 0.3339), ((9, 10, 3, 10), 0.1705, 0.8090)]:
        found = difference_of_shares(*counts)
        assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_shares_of_none_on_both_sides_differ_by_zero_with_an_interval():
    found = difference_of_shares(0, 50, 0, 50)
    assert (found.value, found.p) == (0, 1)
    assert found.low < 0 < found.high


def test_too_few_for_a_share_to_differ_say_so():
    with pytest.raises(CannotCompare, match=r"With 2 and 3 values even the most extreme result would give p = 0\.1"):
        difference_of_shares(2, 2, 0, 3)
    with pytest.raises(CannotCompare, match="there are 0 values on one and 9 on the other"):
        difference_of_shares(0, 0, 3, 9)


# --- Shares within pairs ------------------------------------------------------------------------------


def of_counts(both, only_first, only_second, neither):
    first = [1] * (both + only_first) + [0] * (only_second + neither)
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    return first, second


@pytest.mark.parametrize("counts", [(1, 1, 7, 12), (59, 6, 16, 80), (14, 5, 0, 22), (3, 4, 4, 9), (0, 40, 10, 0)])
def test_paired_shares_have_the_p_of_statsmodels(counts):
    found = paired_difference_of_shares(*of_counts(*counts))
    both, only_first, only_second, neither = counts
    assert found.p == pytest.approx(mcnemar([[both, only_first], [only_second, neither]], exact=True).pvalue)
    assert found.test == "McNemar's exact test"
    assert found.value == pytest.approx((only_first - only_second) / sum(counts))


def test_printed_intervals_of_paired_shares():
    """Newcombe (1998), Statistics in Medicine 17, 2635-2650; Fagerland, Lydersen & Laake (2017), chapter 8."""
    for counts, low, high in [((36, 12, 2, 0), 0.0569, 0.3404), ((59, 6, 16, 80), -0.1186, -0.0046)]:
        found = paired_difference_of_shares(*of_counts(*counts))
        assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=6, max_size=60))
def test_paired_shares_that_are_swapped_give_the_same_with_the_other_sign(pairs):
    first, second = np.array(pairs, dtype=float).T
    found, swapped = paired_difference_of_shares(first, second), paired_difference_of_shares(second, first)
    assert (swapped.value, swapped.low, swapped.high) == pytest.approx((-found.value, -found.high, -found.low))
    assert swapped.p == found.p
    assert -1 <= found.low <= found.value <= found.high <= 1


def test_paired_shares_where_no_pair_differs_have_p_1_and_an_interval():
    found = paired_difference_of_shares(*of_counts(10, 0, 0, 10))
    assert (found.value, found.p) == (0, 1)
    assert found.low < 0 < found.high


def test_five_pairs_are_too_few_for_shares():
    with pytest.raises(CannotCompare, match="a test needs at least 6"):
        paired_difference_of_shares([1] * 5, [0] * 5)


def test_a_share_within_pairs_is_of_yes_and_no():
    with pytest.raises(ValueError, match="values 0 and 1"):
        paired_difference_of_shares([0.5] * 6, [1] * 6)


# --- Several tests ------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_p_values_are_corrected_as_statsmodels_does(p_values):
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())


def test_no_p_values_have_no_correction_and_others_are_refused():
    assert holm([]) == []
    for wrong in (1.2, -0.1, np.nan):
        with pytest.raises(ValueError, match="is no p value"):
            holm([0.2, wrong])


def test_every_test_says_why_it_fits():
    assert all(why.endswith(".") and why[0].islower() for why in WHY.values())
