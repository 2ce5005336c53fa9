"""Gwet's AC1 and AC2, proved by his worked example, by irrCAC and by what they are for."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.agreement import (
    Ratings,
    Statistic,
    UndefinedAgreement,
    agreement_table,
    fleiss_kappa,
    gwet_ac1,
    gwet_ac2,
    krippendorff_alpha,
)
from analysis.agreement.counted import ordinal_weights

NAN = np.nan

# Gwet (2014), the worked example of his software: 12 units, 4 raters, 5 categories, with gaps; unit 12 has one rating.
GWET_2014 = np.array(
    [
        [1, 1, NAN, 1],
        [2, 2, 3, 2],
        [3, 3, 3, 3],
        [3, 3, 3, 3],
        [2, 2, 2, 2],
        [1, 2, 3, 4],
        [4, 4, 4, 4],
        [1, 1, 2, 1],
        [2, 2, 2, 2],
        [NAN, 5, 5, 5],
        [NAN, NAN, 1, 1],
        [NAN, NAN, 3, NAN],
    ]
)


def by_irrcac(ratings, weights, categories):
    """The coefficient by the package irrCAC, a port of Gwet's own R functions; its categories have to be named."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from irrCAC.raw import CAC

        cac = CAC(pd.DataFrame(ratings), weights=weights, categories=list(map(float, categories)), digits=15)
        return float(cac.gwet()["est"]["coefficient_value"])


def random_ratings(seed, *, categories, gaps):
    rng = np.random.default_rng(seed)
    shape = rng.integers(6, 40), rng.integers(2, 7)  # (statements, raters)
    ratings = rng.choice(categories, size=shape, p=rng.dirichlet(np.ones(len(categories))))
    ratings = np.where(rng.random(shape) < rng.random(), ratings[:, :1], ratings).astype(float)
    ratings[rng.random(shape) < gaps] = NAN
    ratings[0, :2] = categories[:2]
    return ratings[~np.isnan(ratings).all(axis=1)]  # irrCAC divides by the ratings of each statement


def test_ac1_of_gwets_example_is_as_printed():
    # The documentation of irrCAC and of Gwet's R package print 0.77544, with p_a 0.81818 and p_e 0.19032.
    assert gwet_ac1(GWET_2014) == pytest.approx(0.77544, abs=0.000005)


def test_his_example_has_the_kappa_and_alpha_that_he_prints_beside():
    # Krippendorff's alpha of the same table: 0.74342, as the documentation of irrCAC prints it.
    assert krippendorff_alpha(GWET_2014) == pytest.approx(0.74342, abs=0.000005)


@pytest.mark.parametrize(("function", "weights"), [(gwet_ac1, "identity"), (gwet_ac2, "ordinal")], ids=["AC1", "AC2"])
class TestIrrCAC:
    def test_has_the_same_value_of_gwets_example(self, function, weights):
        expected = by_irrcac(GWET_2014, weights, range(1, 6))
        assert function(GWET_2014) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("gaps", [0, 0.3, 0.6])
    def test_has_the_same_value_of_random_ratings_on_a_named_scale(self, function, weights, gaps):
        for seed in range(60):
            ratings = random_ratings(seed, categories=[1, 2, 3, 4, 5], gaps=gaps)
            expected = by_irrcac(ratings, weights, range(1, 6))
            named = Ratings.from_matrix(ratings, categories=range(1, 6))
            assert function(named) == pytest.approx(expected, abs=1e-12)

    def test_has_the_same_value_of_the_categories_that_occur(self, function, weights):
        for seed in range(60):
            ratings = random_ratings(seed, categories=[-2, 0, 1, 7], gaps=0.2)
            occurring = np.unique(ratings[~np.isnan(ratings)])
            # Our weights take the places of the categories, irrCAC's their numbers.
            ranks = np.where(np.isnan(ratings), NAN, np.searchsorted(occurring, ratings) + 1)
            expected = by_irrcac(ranks, weights, range(1, len(occurring) + 1))
            assert function(ratings) == pytest.approx(expected, abs=1e-12)


def test_the_weights_are_those_of_irrcac():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from irrCAC.weights import Weights
    for q in range(2, 8):
        assert ordinal_weights(q) == pytest.approx(Weights([float(one) for one in range(q)])["ordinal"], abs=1e-12)


def test_two_categories_are_all_or_nothing_to_the_weights_so_that_ac2_is_ac1():
    ratings = [[0, 0, 1], [1, 1, NAN], [1, 1, 1], [0, 1, 0]]
    assert gwet_ac2(ratings) == gwet_ac1(ratings)


def test_where_nearly_all_say_the_same_ac1_stays_high_and_kappa_falls():
    # 98 of 100 statements get 0 from both raters, and on two they differ: the paradox AC1 was made for.
    ratings = [[0, 0]] * 98 + [[0, 1], [1, 0]]
    assert fleiss_kappa(ratings) == pytest.approx(-0.0101, abs=0.0001)
    # p_a 0.98; pi 0.99 and 0.01; p_e = 2 * 0.99 * 0.01.
    assert gwet_ac1(ratings) == pytest.approx((0.98 - 0.0198) / (1 - 0.0198), abs=1e-12)


def test_a_lone_rating_counts_for_how_frequent_its_category_is():
    # p_a 1/2; without the lone ratings pi is 3/4 and 1/4, with them 5/8 and 3/8.
    assert gwet_ac1([[0, 0], [0, 1]]) == pytest.approx((0.5 - 0.375) / (1 - 0.375), abs=1e-12)
    with_lone = [[0, 0], [0, 1], [0, NAN], [NAN, 1]]
    assert gwet_ac1(with_lone) == pytest.approx((0.5 - 0.46875) / (1 - 0.46875), abs=1e-12)


def test_categories_that_nobody_chose_lower_what_chance_gives():
    ratings = [[0, 0], [0, 1], [1, 1]]
    named = Ratings.from_matrix(ratings, categories=[0, 1, 2])
    # p_a 2/3, pi 1/2 each: p_e is 1/2 of two categories and 1/4 of three.
    assert gwet_ac1(ratings) == pytest.approx((2 / 3 - 1 / 2) / (1 - 1 / 2), abs=1e-12)
    assert gwet_ac1(named) == pytest.approx((2 / 3 - 1 / 4) / (1 - 1 / 4), abs=1e-12)


@given(st.lists(st.sampled_from([0, 1]), min_size=2, max_size=9))
def test_one_answer_for_all_is_full_agreement_on_a_scale_that_has_others(statements):
    named = Ratings.from_matrix([[2, 2]] * len(statements), categories=[0, 1, 2])
    assert (gwet_ac1(named), gwet_ac2(named)) == (1, 1)


@pytest.mark.parametrize("function", [gwet_ac1, gwet_ac2])
def test_a_scale_of_one_category_has_no_chance(function):
    with pytest.raises(UndefinedAgreement) as error:
        function([[2, 2], [2, 2]])
    assert str(error.value).partition(" needs ")[2] == (
        "a scale with at least two categories; all 4 are 2. Report the share of full agreement."
    )


def test_a_single_statement_has_a_value():
    assert gwet_ac1([[0, 1, 0]]) == pytest.approx((1 / 3 - 4 / 9) / (1 - 4 / 9), abs=1e-12)


def test_the_figure_says_how_many_statements_can_agree():
    [ac1] = agreement_table(GWET_2014, [Statistic.GWET_AC1])
    assert (ac1.n_statements, ac1.n_pairable, ac1.n_ratings, ac1.n_raters, ac1.left_out) == (12, 11, 41, 4, 0)
