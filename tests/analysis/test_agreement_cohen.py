"""The mean pairwise kappa of Cohen, against scikit-learn's kappa of each pair."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import cohen_kappa_score

from analysis.agreement import Ratings, Statistic, UndefinedAgreement, agreement_table, cohen_kappa
from analysis.agreement.paired import Pairs, mean_kappa

NAN = np.nan


def pairs_by_hand(ratings, at_least):
    """Each pair's shared statements and kappa by scikit-learn, of the pairs that have one."""
    found = []
    for one, other in itertools.combinations(ratings.T, 2):
        shared = ~np.isnan(one) & ~np.isnan(other)
        if shared.sum() >= at_least:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kappa = cohen_kappa_score(one[shared].astype(int), other[shared].astype(int))
            if not np.isnan(kappa):
                found.append((shared.sum(), kappa))
    return found


def by_hand(ratings, at_least):
    pairs = pairs_by_hand(ratings, at_least)
    return np.average([kappa for _, kappa in pairs], weights=[shared for shared, _ in pairs]) if pairs else NAN


def ours(ratings, at_least):
    try:
        return cohen_kappa(ratings, at_least=at_least)
    except UndefinedAgreement:
        return NAN


def random_ratings(seed, *, gaps):
    rng = np.random.default_rng(seed)
    shape = rng.integers(4, 60), rng.integers(2, 9)  # (statements, raters)
    ratings = rng.choice(4, size=shape, p=rng.dirichlet(np.ones(4)))
    ratings = np.where(rng.random(shape) < rng.random(), ratings[:, :1], ratings).astype(float)
    ratings[rng.random(shape) < gaps] = NAN
    return ratings


def test_cohens_own_example_has_the_kappa_he_prints():
    # Cohen (1960), table 1: two clinicians, 200 patients, three diagnoses, here as numbers of patients: kappa 0.492.
    table = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
    one, other = np.indices((3, 3))
    ratings = np.repeat(np.stack([one.ravel(), other.ravel()], axis=1), table.ravel(), axis=0)
    assert cohen_kappa(ratings) == pytest.approx(0.492, abs=0.0005)


@pytest.mark.parametrize("gaps", [0, 0.2, 0.5])
@pytest.mark.parametrize("at_least", [2, 5, 10])
def test_the_mean_is_that_of_scikit_learns_kappas_weighted_by_statements_shared(at_least, gaps):
    defined = 0
    for seed in range(80):
        ratings = random_ratings(seed, gaps=gaps)
        expected = by_hand(ratings, at_least)
        defined += not np.isnan(expected)
        assert ours(ratings, at_least) == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert defined >= 10


def test_where_all_rate_all_it_is_the_plain_mean_of_light():
    ratings = random_ratings(7, gaps=0)
    kappas = [kappa for _, kappa in pairs_by_hand(ratings, 2)]
    assert len(kappas) == ratings.shape[1] * (ratings.shape[1] - 1) / 2 >= 3
    assert cohen_kappa(ratings, at_least=2) == pytest.approx(np.mean(kappas), abs=1e-12)


def test_the_figure_counts_what_entered_and_the_pairs_that_did_not():
    ratings = np.full((22, 4), NAN)
    ratings[:12, :2] = np.random.default_rng(1).integers(0, 2, (12, 2))  # 0 and 1 share 12 statements
    ratings[12:21, 2:] = np.random.default_rng(2).integers(0, 2, (9, 2))  # 2 and 3 share 9
    ratings[0, 2] = 1  # 2 shares one with 0 and with 1
    ratings[21, 3] = 0
    [figure] = agreement_table(ratings, [Statistic.COHEN_KAPPA])
    assert figure.value == pytest.approx(by_hand(ratings, 10), abs=1e-12)
    assert (figure.n_statements, figure.n_pairable, figure.n_ratings, figure.n_raters) == (12, 12, 24, 2)
    assert (figure.n_pairs, figure.pairs_left_out, figure.left_out) == (1, 3, 10)


def test_a_rating_that_enters_two_pairs_counts_once():
    ratings = np.random.default_rng(3).integers(0, 2, size=(12, 3))
    [figure] = agreement_table(ratings, [Statistic.COHEN_KAPPA])
    assert (figure.n_ratings, figure.n_raters, figure.n_pairs) == (36, 3, 3)


@given(
    arrays(float, (10, 3), elements=st.sampled_from([0.0, 1.0, 2.0])),
    st.lists(st.integers(0, 3), min_size=10, max_size=10),
)
def test_a_weight_counts_a_statement_as_often_as_repeating_it_would(ratings, weights):
    # Rows of distinct statements stand in the order of their pattern: find each row's place by its ratings.
    pairs = Pairs.of(Ratings.from_matrix(ratings, categories=range(3)), at_least=2)
    drawn = np.repeat(ratings, weights, axis=0)
    enters = {
        (one, other)
        for one, other in itertools.combinations(range(3), 2)
        if len(np.unique(ratings[:, [one, other]])) > 1
    }
    kappas = []
    for one, other in enters:
        if len(drawn) >= 2 and len(np.unique(drawn[:, [one, other]])) > 1:
            kappas.append(cohen_kappa_score(drawn[:, one], drawn[:, other]))
    patterns, place = np.unique(ratings, axis=0, return_inverse=True)
    by_pattern = np.bincount(place.ravel(), weights=weights, minlength=len(patterns))
    found = mean_kappa(pairs, np.stack([by_pattern, by_pattern])) if enters else [NAN, NAN]
    expected = np.mean(kappas) if kappas else NAN
    assert found == pytest.approx([expected] * 2, abs=1e-12, nan_ok=True)


def test_a_large_pool_needs_no_table_of_all_its_pairs():
    # Five million raters: a table of all pairs would have 10^13 places.
    ratings = random_ratings(5, gaps=0.2)
    statements, raters = np.nonzero(~np.isnan(ratings))
    pool = np.random.default_rng(0).choice(5_000_000, size=ratings.shape[1], replace=False)
    crowd = np.arange(50_000)
    long = Ratings.from_long(
        np.concatenate([statements, 1000 + crowd // 2]),
        np.concatenate([pool[raters], 10_000_000 + crowd]),
        np.concatenate([ratings[statements, raters], crowd % 4]),
    )
    assert cohen_kappa(long) == pytest.approx(by_hand(ratings, 10), abs=1e-12)


class TestUndefined:
    def reason(self, ratings, **options):
        with pytest.raises(UndefinedAgreement) as error:
            cohen_kappa(ratings, **options)
        return str(error.value)

    def test_raters_who_share_few_statements_have_no_mean(self):
        assert self.reason([[0, 1, NAN], [1, 1, NAN], [0, NAN, 0]]) == (
            "Mean pairwise Cohen's kappa needs two raters who share at least 10 statements and did not put all of "
            "them into one category; none of the 2 pairs does. Use Krippendorff's alpha, which does not ask who rated."
        )

    def test_the_kappa_of_one_statement_says_nothing(self):
        assert self.reason([[0, 1]], at_least=2).endswith(
            "share at least 2 statements and did not put all of them into one category; the only pair does not. "
            "Use Krippendorff's alpha, which does not ask who rated."
        )

    def test_pairs_who_know_one_category_only_are_left_out(self):
        # 0 and 1 always say 0; 2 and 3 always say 1; they never meet.
        ratings = np.full((24, 4), NAN)
        ratings[:12, :2], ratings[12:, 2:] = 0, 1
        assert "none of the 2 pairs does" in self.reason(ratings)

    def test_one_category_cannot_tell_agreement_from_chance(self):
        assert self.reason(np.ones((12, 2))) == (
            "Mean pairwise Cohen's kappa cannot tell agreement from chance when all ratings are the same; "
            "all 24 are 1. Report the share of full agreement."
        )

    def test_a_pair_that_shares_nothing_is_refused_as_input(self):
        with pytest.raises(ValueError) as error:
            cohen_kappa([[0, 1]], at_least=1)
        assert str(error.value) == "at_least is 1; the kappa of fewer than 2 statements is undefined."
