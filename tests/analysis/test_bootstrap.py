"""Bootstrap intervals over statements, against exact draws and against a plain loop."""

import time

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from analysis import bootstrap
from analysis.agreement import (
    Ratings,
    Statistic,
    UndefinedAgreement,
    agreement_table,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
)
from analysis.agreement.figures import FORMULAS, SHARES, Entering
from analysis.bootstrap import Interval, Row, bootstrap_interval, figures_with_intervals

NAN = np.nan
COUNTED = [statistic for statistic in Statistic if statistic is not Statistic.COHEN_KAPPA]
RESAMPLED = [statistic for statistic in Statistic if statistic not in SHARES]
TWICE_AND_NEVER = [[0, 0], [1, 1]] * 5
FEW = "it takes at least 10 statements with two ratings or more. Have more statements rated by several raters."
ALIKE = (
    "all resamples give the same value, and without a width it would claim that other statements must give that, too."
)


def some_ratings(*, statements=40, gaps=0.0, seed=3, raters=3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, size=(statements, 1))
    ratings = np.where(rng.random((statements, raters)) < 0.6, truth, rng.integers(0, 3, (statements, raters)))
    return np.where(rng.random(ratings.shape) < gaps, NAN, ratings)


def of_a_pool(*, statements, pool, seed=3):
    """Three ratings a statement by raters of a pool, shuffled."""
    rng = np.random.default_rng(seed)
    raters = (rng.integers(pool, size=(statements, 1)) + np.arange(3)) % pool
    order = rng.permutation(3 * statements)
    columns = np.repeat(np.arange(statements), 3), raters.ravel(), some_ratings(statements=statements).ravel()
    return Ratings.from_long(*(column[order] for column in columns))


def refusal(error_type, *arguments, **options):
    with pytest.raises(error_type) as error:
        bootstrap_interval(*arguments, **options)
    return str(error.value)


@pytest.mark.parametrize("statistic", COUNTED)
@given(weights=st.lists(st.integers(0, 3), min_size=8, max_size=8).filter(lambda weights: sum(weights) > 1))
def test_a_weight_counts_a_statement_as_often_as_repeating_it_would(statistic, weights):
    ratings = some_ratings(statements=8)
    units = Entering(Ratings.from_matrix(ratings)).units(statistic)
    # Statements with the same counts are one row, which weighs what they weigh together.
    rows = [units.n_uc.tolist().index(counts) for counts in Ratings.from_matrix(ratings).n_uc.tolist()]
    by_row = np.bincount(rows, weights=weights, minlength=len(units.n_uc))
    weighted = FORMULAS[statistic](units, np.array([by_row, by_row]))
    repeated = Ratings.from_matrix(np.repeat(ratings, weights, axis=0), categories=range(3))
    expected = {figure.name: NAN if figure.value is None else figure.value for figure in agreement_table(repeated)}
    assert weighted == pytest.approx([expected[statistic]] * 2, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("statistic", "function"),
    [
        (Statistic.FLEISS_KAPPA, fleiss_kappa),
        (Statistic.ALPHA_ORDINAL, lambda ratings: krippendorff_alpha(ratings, "ordinal")),
        (Statistic.GWET_AC1, gwet_ac1),
    ],
)
def test_the_resamples_spread_as_statements_drawn_one_by_one_do(statistic, function):
    ratings = some_ratings()
    rng = np.random.default_rng(7)
    drawn = [function(ratings[rng.integers(0, len(ratings), len(ratings))]) for _ in range(3000)]
    interval = bootstrap_interval(ratings, statistic, resamples=3000)
    assert [interval.low, interval.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.02)


def test_the_interval_of_the_mean_kappa_is_the_basic_one_of_statements_drawn_one_by_one():
    # So much agreement that the percentiles lie elsewhere than the basic interval, which would end above 1.
    ratings = np.array([[0, 0]] * 7 + [[1, 1]] * 7 + [[0, 1]])
    rng = np.random.default_rng(7)
    drawn = [cohen_kappa(ratings[rng.integers(0, len(ratings), len(ratings))]) for _ in range(3000)]
    interval = bootstrap_interval(ratings, Statistic.COHEN_KAPPA, resamples=3000)
    percentiles = np.quantile(drawn, [0.025, 0.975])
    basic = 2 * cohen_kappa(ratings) - percentiles[::-1]
    assert [interval.low, interval.high] == pytest.approx([basic[0], 1], abs=0.02)
    assert basic[1] > 1
    assert basic[0] - percentiles[0] > 0.1


@pytest.mark.parametrize("pool", [3, 7])
def test_many_patterns_are_drawn_with_the_chances_of_few(pool, monkeypatch):
    # A pool of 3 leaves few patterns, drawn as counts; one of 7 many, drawn a statement at a time.
    ratings = of_a_pool(statements=300, pool=pool)
    one = bootstrap_interval(ratings, Statistic.COHEN_KAPPA, resamples=4000)
    for a_statement in (0, 10**9):
        monkeypatch.setattr(bootstrap, "PATTERN_A_STATEMENT", a_statement)
        other = bootstrap_interval(ratings, Statistic.COHEN_KAPPA, resamples=4000)
        assert [other.low, other.high] == pytest.approx([one.low, one.high], abs=0.01)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_the_interval_is_that_of_drawing_statements_one_by_one(level):
    ratings = some_ratings(gaps=0.1)
    ratings = ratings[(~np.isnan(ratings)).sum(axis=1) >= 2]
    rng = np.random.default_rng(7)
    alphas = [
        krippendorff.alpha(ratings[rng.integers(0, len(ratings), len(ratings))].T, level_of_measurement=level)
        for _ in range(3000)
    ]
    statistic = Statistic(f"Krippendorff's alpha ({level})")
    interval = bootstrap_interval(ratings, statistic, resamples=3000)
    # The quantiles of 3000 draws of a spread of 0.1 are themselves sure to about 0.005.
    assert [interval.low, interval.high] == pytest.approx(np.quantile(alphas, [0.025, 0.975]), abs=0.02)


@pytest.mark.parametrize("ratings", [[[0, 0], [0, 1]], [[0, 0]], [[0, 0], [1, 1]] * 20, some_ratings(gaps=0.3)])
@pytest.mark.parametrize("statistic", sorted(SHARES))
def test_a_share_has_wilsons_interval_however_few_or_alike_its_statements_are(statistic, ratings):
    [figure] = agreement_table(ratings, [statistic])
    agreeing = round(figure.value * figure.n_statements)
    interval = bootstrap_interval(ratings, statistic)
    expected = proportion_confint(agreeing, figure.n_statements, method="wilson")
    assert (interval.low, interval.high) == pytest.approx(expected, abs=1e-12)
    assert (interval.level, interval.resamples, interval.dropped) == (0.95, 0, 0)
    assert interval.high - interval.low > 0.05


def test_undefined_resamples_are_dropped_and_counted():
    # One statement of another category than the 11 others: a draw without it has one category only.
    ratings = [[0, 0]] * 10 + [[0, 1], [1, 1]]
    interval = bootstrap_interval(ratings, Statistic.FLEISS_KAPPA, resamples=1000)
    assert interval.resamples + interval.dropped == 1000
    assert interval.dropped == pytest.approx(1000 * (10 / 12) ** 12, abs=40)


@pytest.mark.parametrize("statistic", RESAMPLED)
def test_the_interval_holds_the_value(statistic):
    ratings = some_ratings(statements=200)
    value = {figure.name: figure.value for figure in agreement_table(ratings)}[statistic]
    interval = bootstrap_interval(ratings, statistic)
    assert interval.low < value < interval.high
    assert (interval.level, interval.resamples, interval.dropped) == (0.95, 1000, 0)


def test_the_mean_kappa_has_an_interval_that_stays_on_its_scale():
    # Basic intervals pass the ends of the scale: here -1.2 without a bound.
    ratings = np.array([[0, 1]] * 5 + [[1, 0]] * 5 + [[0, 0]] * 1)
    rng = np.random.default_rng(7)
    drawn = [cohen_kappa(ratings[rng.integers(0, len(ratings), len(ratings))], at_least=2) for _ in range(500)]
    assert 2 * cohen_kappa(ratings) - np.quantile(drawn, 0.975) < -1
    assert bootstrap_interval(ratings, Statistic.COHEN_KAPPA).low == -1


def test_more_statements_give_a_narrower_interval():
    few = bootstrap_interval(some_ratings(statements=50), Statistic.ALPHA_ORDINAL)
    many = bootstrap_interval(some_ratings(statements=5000), Statistic.ALPHA_ORDINAL)
    # One hundred times the statements, one tenth of the width.
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(10, abs=2)


@pytest.mark.parametrize("statistic", [statistic for statistic in COUNTED if statistic not in SHARES])
def test_the_same_seed_gives_the_same_interval_in_any_order(statistic):
    ratings = some_ratings(gaps=0.2)
    interval = bootstrap_interval(ratings, statistic, seed=1)
    assert bootstrap_interval(ratings[::-1, ::-1], statistic, seed=1) == interval
    assert bootstrap_interval(ratings, statistic, seed=2) != interval


def test_the_same_seed_gives_the_same_interval_of_the_mean_kappa_in_whatever_order_the_ratings_stand():
    rng = np.random.default_rng(0)
    statements, raters = np.indices((40, 3))
    columns = statements.ravel(), raters.ravel(), some_ratings(gaps=0.1).ravel()
    order = rng.permutation(120)
    interval = bootstrap_interval(Ratings.from_long(*columns), Statistic.COHEN_KAPPA)
    shuffled = Ratings.from_long(*(column[order] for column in columns))
    assert bootstrap_interval(shuffled, Statistic.COHEN_KAPPA) == interval


@pytest.mark.parametrize("statistic", [Statistic.ALPHA_NOMINAL, Statistic.COHEN_KAPPA])
@pytest.mark.parametrize("pool", [3, 9])
def test_batches_do_not_change_the_interval(statistic, pool, monkeypatch):
    ratings = of_a_pool(statements=100, pool=pool)
    whole = bootstrap_interval(ratings, statistic, resamples=50)
    monkeypatch.setattr(bootstrap, "BATCH_SIZE", 7 * 30)
    assert bootstrap_interval(ratings, statistic, resamples=50) == whole


def test_figures_together_have_the_intervals_that_they_have_alone():
    ratings = some_ratings(gaps=0.2)
    rows = figures_with_intervals(ratings, resamples=200, seed=5)
    assert [row.figure for row in rows] == agreement_table(ratings)
    for row in rows:
        assert row.interval == bootstrap_interval(ratings, row.figure.name, resamples=200, seed=5)


def test_a_figure_without_a_value_stands_with_its_reason_among_the_others():
    kappa, full = figures_with_intervals([[2, 2], [2, 2]], [Statistic.FLEISS_KAPPA, Statistic.FULL_AGREEMENT])
    assert (kappa.figure.value, kappa.interval, kappa.no_interval) == (None, None, None)
    assert kappa.figure.reason.startswith("Fleiss' kappa cannot tell agreement from chance")
    assert (full.figure.value, full.interval.high) == (1, 1)


@pytest.mark.parametrize("statistic", RESAMPLED)
def test_a_figure_of_fewer_than_ten_statements_says_why_it_has_no_interval(statistic):
    nine = some_ratings(statements=9, raters=2)
    if statistic is Statistic.COHEN_KAPPA:  # of nine statements it has no value either
        assert "who share at least 10 statements" in refusal(UndefinedAgreement, nine, statistic)
        return
    [row] = figures_with_intervals(nine, [statistic])
    assert row == Row(agreement_table(nine, [statistic])[0], None, FEW)
    assert refusal(UndefinedAgreement, nine, statistic) == f"{statistic} has no interval: {FEW}"
    assert bootstrap_interval(some_ratings(statements=10, raters=2), statistic).low < 1


@pytest.mark.parametrize("statistic", [Statistic.GWET_AC1, Statistic.GWET_AC2])
def test_lone_ratings_are_not_among_the_statements_that_an_interval_of_gwet_takes(statistic):
    mostly_alone = [[0, 1]] * 9 + [[0, NAN]] * 500 + [[1, NAN]] * 500
    assert refusal(UndefinedAgreement, mostly_alone, statistic) == f"{statistic} has no interval: {FEW}"
    enough = bootstrap_interval([[0, 1], [1, 1], *mostly_alone], statistic)
    assert enough.low < enough.high
    assert enough.dropped == 0


@pytest.mark.parametrize("statistic", RESAMPLED)
def test_resamples_that_are_all_alike_give_no_interval(statistic):
    [row] = figures_with_intervals(TWICE_AND_NEVER, [statistic])
    assert (row.figure.value, row.interval, row.no_interval) == (1, None, ALIKE)


@pytest.mark.parametrize(("statements", "holding"), [(10, 0.85), (40, 0.9)])
def test_the_interval_of_alpha_holds_the_true_one_about_as_often_as_it_says(statements, holding):
    everything = some_ratings(statements=100_000, seed=1)
    true = krippendorff_alpha(everything)
    intervals = [
        bootstrap_interval(everything[place : place + statements], Statistic.ALPHA_NOMINAL)
        for place in range(0, 200 * statements, statements)
    ]
    assert np.mean([interval.low <= true <= interval.high for interval in intervals]) > holding


def test_a_mean_of_kappas_of_few_statements_each_has_no_interval():
    # 2,000 pairs who share 10 statements each: so many that the mean of nearly every resample is below that of all.
    statements = np.arange(20_000)
    raters = statements[:, None] // 10 * 2 + np.arange(2)
    values = some_ratings(statements=20_000, raters=2)
    ratings = Ratings.from_long(np.repeat(statements, 2), raters.ravel(), values.ravel())
    assert refusal(UndefinedAgreement, ratings, Statistic.COHEN_KAPPA, resamples=200) == (
        "Mean pairwise Cohen's kappa has no interval: the pairs of raters share so few statements that "
        "nearly all resamples fall on one side of the figure. Use Krippendorff's alpha."
    )


@pytest.mark.parametrize("statistic", Statistic)
def test_a_thousand_resamples_take_no_loop_over_statements(statistic):
    # 20,000 statements from a pool: a loop over them in Python would take minutes.
    ratings = of_a_pool(statements=20_000, pool=200)
    started = time.perf_counter()
    bootstrap_interval(ratings, statistic)
    assert time.perf_counter() - started < 20


def test_statements_that_cannot_enter_are_not_drawn():
    ratings = some_ratings(statements=30)
    lone_ratings = np.array([[0, NAN, NAN]] * 50)
    padded = np.concatenate([ratings, lone_ratings])
    for statistic in set(Statistic) - {Statistic.GWET_AC1, Statistic.GWET_AC2}:
        assert bootstrap_interval(padded, statistic) == bootstrap_interval(ratings, statistic)


def test_lone_ratings_are_drawn_for_gwet_who_counts_them():
    ratings = some_ratings(statements=30)
    padded = np.concatenate([ratings, [[0, NAN, NAN]] * 50])
    interval = bootstrap_interval(padded, Statistic.GWET_AC1)
    assert interval.low < gwet_ac1(padded) < interval.high
    assert interval != bootstrap_interval(ratings, Statistic.GWET_AC1)


def test_an_undefined_figure_has_no_interval():
    assert refusal(UndefinedAgreement, [[2, 2], [2, 2]], Statistic.FLEISS_KAPPA) == (
        "Fleiss' kappa cannot tell agreement from chance when all ratings are the same; "
        "all 4 are 2. Report the share of full agreement."
    )


def test_resamples_that_are_all_undefined_give_no_interval():
    # Seed 2 draws none of the two statements that differ.
    ratings = [[0, 0]] * 30 + [[0, 1], [1, 1]]
    assert refusal(UndefinedAgreement, ratings, Statistic.FLEISS_KAPPA, resamples=1, seed=2) == (
        "Fleiss' kappa has no interval: in all resamples it is undefined, as where all ratings are the same. "
        "Have more statements rated."
    )


def test_at_least_one_resample_is_drawn():
    assert refusal(ValueError, [[0, 1]], Statistic.FLEISS_KAPPA, resamples=0) == (
        "resamples is 0; give at least 1, better 1000."
    )


def test_an_interval_is_a_plain_value():
    interval = bootstrap_interval(some_ratings(), Statistic.ALPHA_NOMINAL, resamples=10)
    assert interval == Interval(interval.low, interval.high, level=0.95, resamples=10, dropped=0)
    assert type(interval.low) is float
