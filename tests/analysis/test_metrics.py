"""Figures of detection and calibration, against scikit-learn, plain loops, and what must not change them."""

import math
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score, roc_auc_score

from analysis import metrics
from analysis.comparison import share_with_interval
from analysis.metrics import Bin, Counts, Rate

NAN = math.nan
SHARES = ("accuracy", "false_positive_rate")
PERCENTILES = ("auc", "f1")
ALL = {*PERCENTILES, *SHARES, "calibration_error", "spread"}

coarse = st.integers(0, 8).map(lambda eighths: eighths / 8)  # with ties, and exact
texts = st.lists(st.tuples(coarse, coarse, st.booleans()), min_size=1, max_size=40)
of_both_classes = texts.filter(lambda rows: len({toxic for *_, toxic in rows}) == 2)


def columns(rows):
    return [np.array(column) for column in zip(*rows, strict=True)]


def drawn(n, seed=0, groups=5, shift=0.0):
    """Texts with calibrated probabilities, but for group "0", which gets ``shift`` more."""
    rng = np.random.default_rng(seed)
    probs = 1 / (1 + np.exp(-1.5 * rng.normal(size=n)))
    toxic, codes = rng.random(n) < probs, rng.integers(groups, size=n)
    return np.clip(probs + shift * (codes == 0), 0, 1), toxic, codes.astype(str).tolist()


def figures_of(probs, toxic, groups):
    counts = metrics.at_threshold(probs, toxic)
    return {name: getattr(counts, name) for name in ("f1", "accuracy", "false_positive_rate")} | {
        "auc": metrics.auc(probs, toxic),
        "calibration_error": metrics.calibration_error(probs, toxic),
        "spread": metrics.spread(metrics.false_positive_rates(probs, toxic, groups)),
    }


class TestDetection:
    @settings(deadline=None)
    @given(of_both_classes)
    def test_auc_is_that_of_scikit_learn(self, rows):
        scores, _, toxic = columns(rows)
        assert metrics.auc(scores, toxic) == pytest.approx(roc_auc_score(toxic, scores), abs=1e-12)

    @settings(deadline=None)
    @given(texts, coarse)
    def test_counts_give_the_figures_of_scikit_learn(self, rows, threshold):
        probs, _, toxic = columns(rows)
        taken, found = probs >= threshold, metrics.at_threshold(probs, toxic, threshold)
        expected = [
            figure(toxic, taken, zero_division=np.nan) for figure in (f1_score, precision_score, recall_score)
        ] + [accuracy_score(toxic, taken), recall_score(~toxic, ~taken, zero_division=np.nan)]
        given = [found.f1, found.precision, found.recall, found.accuracy, 1 - found.false_positive_rate]
        assert given == pytest.approx(expected, abs=1e-12, nan_ok=True)

    @settings(deadline=None)
    @given(of_both_classes, st.randoms())
    def test_neither_order_nor_a_rising_transformation_changes_the_auc(self, rows, random):
        scores, _, toxic = columns(rows)
        order = random.sample(range(len(rows)), len(rows))
        assert metrics.auc(scores[order] ** 3 - 7, toxic[order]) == metrics.auc(scores, toxic)

    @settings(deadline=None)
    @given(of_both_classes)
    def test_scores_turned_round_have_the_rest_of_the_auc(self, rows):
        scores, _, toxic = columns(rows)
        assert metrics.auc(-scores, toxic) == pytest.approx(1 - metrics.auc(scores, toxic), abs=1e-12)

    def test_a_text_at_the_threshold_is_taken_for_toxic(self):
        assert metrics.at_threshold([0.5, 0.5, 0.49], [True, False, True]) == Counts(1, 1, 1, 0)

    def test_what_one_class_does_not_define_is_nan(self):
        benign = metrics.at_threshold([0.1, 0.2], [False, False])
        assert math.isnan(metrics.auc([0.1, 0.2], [False, False]))
        assert math.isnan(metrics.auc([0.1, 0.2], [True, True]))
        assert [math.isnan(figure) for figure in (benign.f1, benign.precision, benign.recall)] == [True] * 3
        assert (benign.accuracy, benign.false_positive_rate) == (1.0, 0.0)
        assert math.isnan(metrics.at_threshold([0.1], [True]).false_positive_rate)

    def test_no_texts_have_no_figures(self):
        counts = metrics.at_threshold([], [])
        undefined = [counts.f1, counts.accuracy, metrics.auc([], []), metrics.calibration_error([], [])]
        assert (counts, metrics.reliability([], [])) == (Counts(0, 0, 0, 0), [])
        assert all(map(math.isnan, undefined))
        assert metrics.false_positive_rates([], [], []) == {}
        found = metrics.intervals([], [], groups=[])
        assert set(found) == ALL
        assert np.isnan(list(found.values())).all()


class TestCalibration:
    def test_a_worked_example(self):
        found = metrics.reliability([0.05, 0.3, 0.35, 0.95, 1.0], [0, 0, 1, 1, 1])
        rounded = [tuple(round(number, 4) for number in bin) for bin in found]
        assert rounded == [(0.0, 0.1, 1, 0.05, 0.0), (0.3, 0.4, 2, 0.325, 0.5), (0.9, 1.0, 2, 0.975, 1.0)]
        # (1 · 0.05 + 2 · 0.175 + 2 · 0.025) / 5
        assert metrics.calibration_error([0.05, 0.3, 0.35, 0.95, 1.0], [0, 0, 1, 1, 1]) == pytest.approx(0.09)

    @pytest.mark.parametrize("tenths", range(10))
    def test_a_probability_at_an_edge_belongs_above_it(self, tenths):
        [bin] = metrics.reliability([tenths / 10], [True])
        assert bin == Bin(tenths / 10, (tenths + 1) / 10, 1, tenths / 10, 1.0)

    @settings(deadline=None)
    @given(texts, st.integers(1, 12), st.randoms())
    def test_bins_hold_every_text_once_in_whatever_order(self, rows, bins, random):
        probs, _, toxic = columns(rows)
        order = random.sample(range(len(rows)), len(rows))
        found = metrics.reliability(probs, toxic, bins)
        assert sum(bin.n for bin in found) == len(rows)
        assert all(bin.low <= bin.mean_prob <= bin.high for bin in found)
        assert metrics.reliability(probs[order], toxic[order], bins) == found

    @settings(deadline=None)
    @given(texts)
    def test_of_one_bin_it_is_how_far_the_means_are_apart(self, rows):
        probs, _, toxic = columns(rows)
        assert metrics.calibration_error(probs, toxic, bins=1) == pytest.approx(abs(probs.mean() - toxic.mean()))


class TestGroups:
    def test_a_rate_counts_the_benign_texts_of_its_group(self):
        rates = metrics.false_positive_rates(
            [0.9, 0.2, 0.8, 0.9, 0.1, 0.9], [0, 0, 0, 1, 0, 0], ["women", "women", "asian", "asian", "", "lgbtq"]
        )
        assert rates == {"asian": Rate(1.0, 1), "lgbtq": Rate(1.0, 1), "women": Rate(0.5, 2)}

    def test_a_group_of_toxic_texts_only_has_no_rate(self):
        [rate] = metrics.false_positive_rates([0.9], [True], ["women"]).values()
        assert math.isnan(rate.rate)
        assert rate.n == 0

    def test_small_groups_do_not_count_in_the_spread(self):
        rates = {"women": Rate(0.2, 40), "asian": Rate(0.5, 10), "lgbtq": Rate(1.0, 9), "black": Rate(NAN, 0)}
        assert metrics.spread(rates) == pytest.approx(0.3)
        assert metrics.spread(rates, least=0) == pytest.approx(0.8)
        assert math.isnan(metrics.spread(rates, least=20))


@pytest.mark.parametrize("figures", [metrics.auc, metrics.at_threshold, metrics.reliability, metrics.intervals])
class TestRefusals:
    def test_a_missing_score(self, figures):
        with pytest.raises(ValueError) as error:
            figures([0.1, NAN, 0.3], [0, 1, 1])
        assert str(error.value) == (
            "Text 2 has no score (NaN); have every text scored, or leave it out with its label."
        )
        with pytest.raises(ValueError, match=r"^2 texts, the first of them number 1, have no score \(NaN\);"):
            figures([NAN, NAN, 0.3], [0, 1, 1])

    def test_a_label_that_is_neither(self, figures):
        for labels in ([0, 1, 2], [0.0, NAN, 1.0], ["toxic", "benign", "toxic"]):
            with pytest.raises(ValueError, match=r"^Labels are true or 1 for toxic, and false or 0 for benign;"):
                figures([0.1, 0.2, 0.3], labels)

    def test_scores_and_labels_of_different_number(self, figures):
        with pytest.raises(ValueError, match=r"^There are scores of shape \(2,\) and labels of shape \(3,\);"):
            figures([0.1, 0.2], [0, 1, 1])

    def test_what_is_no_probability(self, figures):
        if figures is metrics.auc:
            assert figures([-3.0, 5.0], [0, 1]) == 1.0
        else:
            with pytest.raises(ValueError, match=r"^5 is no probability: give numbers from 0 to 1"):
                figures([0.3, 5.0], [0, 1])


def test_further_refusals():
    with pytest.raises(ValueError, match=r"^There are 1 groups and 2 texts; give one a text, empty for none"):
        metrics.false_positive_rates([0.1, 0.2], [0, 1], ["women"])
    with pytest.raises(ValueError, match=r"^bins is 0; give at least 1, usually 10"):
        metrics.reliability([0.1], [1], bins=0)
    with pytest.raises(ValueError, match=r"^resamples is 0; give at least 1, better 1000"):
        metrics.intervals([0.1], [1], resamples=0)
    with pytest.raises(ValueError, match=r"^Text 2 has no score"):
        metrics.delong([0.1, 0.2], [0.1, NAN], [0, 0])


class TestIntervals:
    def test_resamples_spread_as_texts_drawn_one_by_one_do(self):
        probs, toxic, groups = drawn(300, shift=0.4)
        probs = probs.round(1)  # with ties
        rng, again = np.random.default_rng(1), []
        for _ in range(1500):
            places = rng.integers(300, size=300)
            again.append(figures_of(probs[places], toxic[places], [groups[place] for place in places]))
        found = metrics.intervals(probs, toxic, groups=groups, resamples=3000)
        actual = figures_of(probs, toxic, groups)
        for name in ALL - {*SHARES}:
            low, high = np.quantile([figures[name] for figures in again], [0.025, 0.975])
            ends = (low, high) if name in PERCENTILES else (2 * actual[name] - high, 2 * actual[name] - low)
            assert found[name] == pytest.approx(ends, abs=0.015), name

    @pytest.mark.parametrize(("shift", "n"), [(0.0, 150), (0.25, 500)])
    def test_they_hold_the_truth_about_as_often_as_they_say(self, shift, n):
        truth = figures_of(*drawn(400_000, seed=99, shift=shift))
        times, held = 120, dict.fromkeys(truth, 0)
        for seed in range(times):
            probs, toxic, groups = drawn(n, seed=seed, shift=shift)
            for name, (low, high) in metrics.intervals(probs, toxic, groups=groups, resamples=300).items():
                held[name] += low <= truth[name] <= high
        assert {name: number for name, number in held.items() if number / times < 0.87} == {}

    def test_calibration_that_chance_could_give_is_not_told_from_none(self):
        low, high = metrics.intervals(*drawn(500)[:2])["calibration_error"]
        assert low == 0
        assert high < 0.15

    @settings(deadline=None, max_examples=20)
    @given(st.randoms())
    def test_the_order_of_texts_does_not_matter(self, random):
        probs, toxic, groups = drawn(60)
        order = random.sample(range(60), 60)
        again = metrics.intervals(probs[order], toxic[order], groups=[groups[i] for i in order], resamples=40, least=3)
        assert again == metrics.intervals(probs, toxic, groups=groups, resamples=40, least=3)

    def test_another_seed_draws_others(self):
        probs, toxic, _ = drawn(60)
        assert metrics.intervals(probs, toxic, seed=1) != metrics.intervals(probs, toxic, seed=2)

    def test_few_texts_of_a_class_leave_out_what_is_about_them(self):
        probs, toxic = np.linspace(0.02, 0.98, 60), np.arange(60) % 7 == 0  # nine toxic ones
        found = metrics.intervals(probs, toxic)
        without = {name for name, (low, high) in found.items() if math.isnan(low) and math.isnan(high)}
        assert without == {"auc", "f1"}

    def test_resamples_that_are_all_the_same_give_no_interval(self):
        found = metrics.intervals([0.1] * 20 + [0.9] * 20, [False] * 20 + [True] * 20)
        assert np.isnan([found[name] for name in found.keys() - SHARES]).all()

    @pytest.mark.parametrize(("prob", "wrong"), [(0.1, 0), (0.9, 20)], ids=["all right", "all wrong"])
    def test_shares_have_wilsons_also_of_none_or_all(self, prob, wrong):
        found = metrics.intervals([prob] * 20, [False] * 20)
        assert found["false_positive_rate"] == share_with_interval(wrong, 20)[1:]
        assert found["accuracy"] == share_with_interval(20 - wrong, 20)[1:]
        assert metrics.intervals([prob], [False])["false_positive_rate"] == share_with_interval(wrong // 20, 1)[1:]

    def test_without_two_groups_that_count_the_spread_has_none(self):
        probs, toxic, _ = drawn(60)
        assert "spread" not in metrics.intervals(probs, toxic)
        assert all(map(math.isnan, metrics.intervals(probs, toxic, groups=["women"] * 60)["spread"]))

    def test_many_texts_take_bounded_memory_and_seconds(self):
        probs, toxic, groups = drawn(40_000, groups=13)
        begin = time.perf_counter()
        metrics.intervals(probs, toxic, groups=groups, resamples=200)
        assert time.perf_counter() - begin < 10
        tracemalloc.start()
        metrics.intervals(probs, toxic, groups=groups, resamples=200)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200e6  # all resamples together would be 64 MB an array, a thousand of them 320 MB


def delong_by_pairs(first, second, toxic):
    """DeLong et al. (1988), equations 3 to 6: over all pairs of a toxic and a benign text."""
    v10, v01 = [], []
    for scores in (first, second):
        wins = np.sign(scores[toxic][:, None] - scores[~toxic][None, :]) / 2 + 0.5
        v10.append(wins.mean(axis=1))
        v01.append(wins.mean(axis=0))
    covariance = np.cov(v10) / toxic.sum() + np.cov(v01) / (~toxic).sum()
    difference = np.mean(v10[0]) - np.mean(v10[1])
    return difference, covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]


class TestDeLong:
    @settings(deadline=None)
    @given(texts.filter(lambda rows: 2 <= sum(toxic for *_, toxic in rows) <= len(rows) - 2))
    def test_it_is_what_all_pairs_of_texts_give(self, rows):
        first, second, toxic = columns(rows)
        found, (difference, variance) = metrics.delong(first, second, toxic), delong_by_pairs(first, second, toxic)
        assert found.difference == pytest.approx(difference, abs=1e-12)
        if variance < 1e-12:
            assert all(map(math.isnan, found[3:]))
        else:
            z = difference / math.sqrt(variance)
            assert found.z == pytest.approx(z, abs=1e-9)
            assert found.p == pytest.approx(2 * stats.norm.sf(abs(z)), abs=1e-9)

    @settings(deadline=None)
    @given(of_both_classes)
    def test_the_aucs_are_those_of_each_alone(self, rows):
        first, second, toxic = columns(rows)
        found = metrics.delong(first, second, toxic)
        alone = metrics.auc(first, toxic), metrics.auc(second, toxic)
        assert (found.first, found.second) == pytest.approx(alone, abs=1e-12)

    @settings(deadline=None)
    @given(of_both_classes)
    def test_swapped_classifiers_turn_the_difference_round(self, rows):
        first, second, toxic = columns(rows)
        found, swapped = metrics.delong(first, second, toxic), metrics.delong(second, first, toxic)
        expected = (found.second, found.first, -found.difference, -found.high, -found.low, -found.z, found.p)
        assert tuple(swapped) == pytest.approx(expected, abs=1e-12, nan_ok=True)

    @settings(deadline=None)
    @given(of_both_classes, st.randoms())
    def test_neither_order_nor_a_rising_transformation_changes_it(self, rows, random):
        first, second, toxic = columns(rows)
        order = random.sample(range(len(rows)), len(rows))
        again = metrics.delong(np.exp(first[order]), second[order] * 3 - 1, toxic[order])
        assert tuple(again) == pytest.approx(tuple(metrics.delong(first, second, toxic)), abs=1e-9, nan_ok=True)

    def test_identical_classifiers_have_no_p_value(self):
        probs, toxic, _ = drawn(50)
        found = metrics.delong(probs, probs**2, toxic)
        assert found.difference == 0.0
        assert all(map(math.isnan, found[3:]))

    def test_a_perfect_and_a_reversed_classifier_differ_and_vary_in_nothing(self):
        found = metrics.delong([0.9, 0.8, 0.1, 0.2], [0.1, 0.2, 0.9, 0.8], [True, True, False, False])
        assert found[:3] == (1.0, 0.0, 1.0)
        assert all(map(math.isnan, found[3:]))

    def test_one_class_has_no_aucs_and_one_text_of_a_class_no_test(self):
        assert all(map(math.isnan, metrics.delong([0.1, 0.2], [0.3, 0.1], [False, False])))
        found = metrics.delong([0.1, 0.2, 0.3], [0.3, 0.1, 0.2], [True, False, False])
        assert (found.first, found.second) == (0.0, 1.0)
        assert all(map(math.isnan, found[3:]))

    def test_of_equally_good_classifiers_it_rejects_one_in_twenty(self):
        rng, rejected, held = np.random.default_rng(3), 0, 0
        for _ in range(400):
            truth = rng.normal(size=200)
            found = metrics.delong(truth + rng.normal(size=200), truth + rng.normal(size=200), truth > 0)
            rejected += found.p < 0.05
            held += found.low <= 0 <= found.high
        assert 6 <= rejected <= 36  # four standard deviations about 20
        assert held == 400 - rejected

    def test_a_million_texts_take_seconds(self):
        rng = np.random.default_rng(0)
        toxic = rng.random(1_000_000) < 0.4
        begin = time.perf_counter()
        metrics.delong(toxic + rng.normal(size=toxic.size), toxic + rng.normal(size=toxic.size), toxic)
        assert time.perf_counter() - begin < 20
