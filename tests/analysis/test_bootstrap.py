"""Bootstrap intervals over statements, against exact draws and against a plain loop."""

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import bootstrap
from analysis.agreement import (
    FORMULAS,
    Statistic,
    UndefinedAgreement,
    agreement_table,
    count_ratings,
    usable,
)
from analysis.bootstrap import Interval, bootstrap_interval

NAN = np.nan


def some_ratings(*, statements=40, gaps=0.0, seed=3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, size=(statements, 1))
    ratings = np.where(rng.random((statements, 3)) < 0.6, truth, rng.integers(0, 3, (statements, 3)))
    return np.where(rng.random(ratings.shape) < gaps, NAN, ratings)


def refusal(error_type, *arguments, **options):
    with pytest.raises(error_type) as error:
        bootstrap_interval(*arguments, **options)
    return str(error.value)


@pytest.mark.parametrize("statistic", Statistic)
@given(weights=st.lists(st.integers(0, 3), min_size=8, max_size=8).filter(any))
def test_a_weight_counts_a_statement_as_often_as_repeating_it_would(statistic, weights):
    used = usable(statistic, count_ratings(some_ratings(statements=8)))
    weighted = FORMULAS[statistic](used, np.array([weights, weights], dtype=float))
    repeated = {
        figure.name: NAN if figure.value is None else figure.value
        for figure in agreement_table(np.repeat(some_ratings(statements=8), weights, axis=0))
    }
    assert weighted == pytest.approx([repeated[statistic]] * 2, abs=1e-12, nan_ok=True)


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


def test_two_statements_give_the_values_of_a_coin_thrown_twice():
    # Full agreement of the draws is 0, 1/2 or 1 with the chances 1/4, 1/2 and 1/4.
    ratings = [[0, 0], [0, 1]]
    narrow = bootstrap_interval(ratings, Statistic.FULL_AGREEMENT, level=0.4)
    wide = bootstrap_interval(ratings, Statistic.FULL_AGREEMENT, level=0.6)
    assert (narrow.low, narrow.high) == (0.5, 0.5)
    assert (wide.low, wide.high) == (0, 1)


def test_undefined_resamples_are_dropped_and_counted():
    # Half of the draws take one statement twice, and then all ratings are the same.
    interval = bootstrap_interval([[0, 0], [1, 1]], Statistic.FLEISS_KAPPA, resamples=1000)
    assert interval.resamples + interval.dropped == 1000
    assert interval.dropped == pytest.approx(500, abs=60)
    assert (interval.low, interval.high) == (1, 1)


@pytest.mark.parametrize("statistic", Statistic)
def test_the_interval_holds_the_value_and_is_as_sure_as_asked(statistic):
    ratings = some_ratings(statements=200)
    value = {figure.name: figure.value for figure in agreement_table(ratings)}[statistic]
    wide = bootstrap_interval(ratings, statistic)
    narrow = bootstrap_interval(ratings, statistic, level=0.5)
    assert wide.low < narrow.low < value < narrow.high < wide.high
    assert (wide.level, narrow.level, wide.resamples, wide.dropped) == (0.95, 0.5, 1000, 0)


def test_more_statements_give_a_narrower_interval():
    few = bootstrap_interval(some_ratings(statements=50), Statistic.ALPHA_ORDINAL)
    many = bootstrap_interval(some_ratings(statements=5000), Statistic.ALPHA_ORDINAL)
    # One hundred times the statements, one tenth of the width.
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(10, abs=2)


@pytest.mark.parametrize("statistic", Statistic)
def test_the_same_seed_gives_the_same_interval_in_any_order(statistic):
    ratings = some_ratings(gaps=0.2)
    interval = bootstrap_interval(ratings, statistic, seed=1)
    assert bootstrap_interval(ratings[::-1, ::-1], statistic, seed=1) == interval
    assert bootstrap_interval(ratings, statistic, seed=2) != interval


def test_batches_do_not_change_the_interval(monkeypatch):
    whole = bootstrap_interval(some_ratings(), Statistic.ALPHA_NOMINAL, resamples=50)
    monkeypatch.setattr(bootstrap, "BATCH_SIZE", 7 * 27)
    assert bootstrap_interval(some_ratings(), Statistic.ALPHA_NOMINAL, resamples=50) == whole


def test_statements_that_cannot_enter_are_not_drawn():
    ratings = some_ratings(statements=30)
    lone_ratings = np.array([[0, NAN, NAN]] * 50)
    padded = np.concatenate([ratings, lone_ratings])
    for statistic in Statistic:
        assert bootstrap_interval(padded, statistic) == bootstrap_interval(ratings, statistic)


def test_an_undefined_figure_has_no_interval():
    assert refusal(UndefinedAgreement, [[2, 2], [2, 2]], Statistic.FLEISS_KAPPA) == (
        "Fleiss' kappa cannot tell agreement from chance when all ratings are the same; "
        "all 4 are 2. Report the share of full agreement."
    )


def test_one_statement_has_no_interval():
    assert refusal(UndefinedAgreement, [[0, 1], [0, NAN]], Statistic.FULL_AGREEMENT) == (
        "An interval of Full agreement needs at least 2 statements to draw from; "
        "only 1 can enter. Have more statements rated by at least two raters."
    )


def test_resamples_that_are_all_undefined_give_no_interval():
    # Seed 4 draws the first statement twice.
    assert refusal(UndefinedAgreement, [[0, 0], [1, 1]], Statistic.FLEISS_KAPPA, resamples=1, seed=4) == (
        "An interval of Fleiss' kappa cannot be given: in all 1 resamples the "
        "ratings are all the same. Draw more resamples, or have more statements rated."
    )


@pytest.mark.parametrize(("level", "shown"), [(0, "0"), (1, "1"), (95, "95"), (NAN, "nan")])
def test_a_level_is_a_share_between_0_and_1(level, shown):
    assert refusal(ValueError, [[0, 1]], Statistic.FLEISS_KAPPA, level=level) == (
        f"level is {shown}; give a share between 0 and 1, such as 0.95."
    )


def test_at_least_one_resample_is_drawn():
    assert refusal(ValueError, [[0, 1]], Statistic.FLEISS_KAPPA, resamples=0) == (
        "resamples is 0; give at least 1, better 1000."
    )


def test_an_interval_is_a_plain_value():
    interval = bootstrap_interval([[0, 0], [0, 0]], Statistic.FULL_AGREEMENT, resamples=10)
    assert interval == Interval(low=1.0, high=1.0, level=0.95, resamples=10, dropped=0)
    assert type(interval.low) is float
