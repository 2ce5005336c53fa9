"""How each rater stands to the others, by hand, by scikit-learn and by crowd-kit."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.metrics import cohen_kappa_score

from analysis.agreement import Ratings, UndefinedAgreement, cohen_kappa
from analysis.annotators import (
    NO_MAJORITY,
    NOBODY_ELSE,
    Ability,
    Measure,
    annotator_agreement,
    dawid_skene,
    kappa_interval,
    pair_agreement,
    scale_bias,
)

NAN = np.nan
GAPPY = arrays(
    float,
    array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=8),
    elements=st.sampled_from([0.0, 1.0, 2.0, NAN]),
)


def of_raters(*columns):
    """Ratings of raters a, b, c … from a column of each, None for missing."""
    raters = [chr(ord("a") + place) for place, column in enumerate(columns) for _ in column]
    statements = [statement for column in columns for statement in range(len(column))]
    values = [NAN if value is None else value for column in columns for value in column]
    return Ratings.from_long(statements, raters, values)


def kappa_by_scikit_learn(one, other):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cohen_kappa_score(np.array(one, dtype=int), np.array(other, dtype=int))


def majority_of_others(ratings, rater):
    """The rater's answers and what more than half of the others said, statement by statement."""
    for row in ratings:
        others = [value for place, value in enumerate(row) if place != rater and not np.isnan(value)]
        most = [value for value in set(others) if 2 * others.count(value) > len(others)]
        if not np.isnan(row[rater]) and most:
            yield row[rater], most[0]


class TestAgreementWithTheOthers:
    def test_a_rater_is_compared_with_what_more_than_half_of_the_others_say(self):
        a, *_ = annotator_agreement(of_raters([0, 1, 1, 1], [0, 1, 0, 1], [0, 1, 0, 0]))
        # The others agree on the first three statements; on the last one says 1, one says 0.
        assert a.with_majority == Measure(pytest.approx(2 / 3), 3)
        assert a.with_others == Measure(pytest.approx((1 + 1 + 0 + 0.5) / 4), 4)
        assert (a.rater, a.n_ratings) == ("a", 4)

    @given(GAPPY)
    def test_all_measures_are_those_of_going_through_the_statements(self, ratings):
        found = {one.rater: one for one in annotator_agreement(Ratings.from_matrix(ratings))}
        for rater in range(ratings.shape[1]):
            answers = list(majority_of_others(ratings, rater))
            if rater not in found:
                assert np.isnan(ratings[:, rater]).all()
                continue
            one = found[rater]
            assert one.n_ratings == np.count_nonzero(~np.isnan(ratings[:, rater]))
            assert one.with_majority.n == len(answers)
            if answers:
                agreeing = np.mean([own == most for own, most in answers])
                assert one.with_majority.value == pytest.approx(agreeing, abs=1e-12)
            if len(answers) >= 2:
                expected = kappa_by_scikit_learn(*zip(*answers, strict=True))
                kappa = NAN if one.kappa.value is None else one.kappa.value
                assert kappa == pytest.approx(expected, abs=1e-12, nan_ok=True)

    def test_a_rater_alone_on_all_statements_has_a_reason(self):
        _, b = annotator_agreement(of_raters([0, None], [None, 1]))
        assert b.with_others == b.with_majority == b.kappa == Measure(None, 0, NOBODY_ELSE)

    def test_others_who_never_agree_are_no_majority(self):
        a, *_ = annotator_agreement(of_raters([0, 0], [0, 1], [1, 0]))
        assert a.with_others == Measure(0.5, 2)
        assert a.with_majority == a.kappa == Measure(None, 0, NO_MAJORITY)

    def test_kappa_of_one_statement_or_of_one_category_has_a_reason(self):
        one, _ = annotator_agreement(of_raters([0], [1]))
        assert one.kappa == Measure(None, 1, "It needs at least 2 statements; there is 1.")
        always, _ = annotator_agreement(of_raters([2, 2, 2], [2, 2, 2]))
        assert always.with_majority == Measure(1.0, 3)
        assert always.kappa == Measure(
            None, 3, "All 3 statements were put into one category by both, which chance would do, too."
        )

    def test_without_ratings_there_is_nobody(self):
        nothing = Ratings.from_long([], [], [])
        assert annotator_agreement(nothing) == scale_bias(nothing) == pair_agreement(nothing) == []


class TestBias:
    def test_is_the_mean_difference_from_the_mean_of_the_others(self):
        a, b, c = scale_bias(of_raters([1, 5, None], [2, 4, 3], [3, 3, None]))
        assert a.difference == Measure(pytest.approx(((1 - 2.5) + (5 - 3.5)) / 2), 2)
        assert a.differences.tolist() == [-1.5, 1.5]
        assert b.difference == Measure(0.0, 2)  # the third statement is b's alone
        assert c.difference == Measure(pytest.approx(((3 - 1.5) + (3 - 4.5)) / 2), 2)

    @given(GAPPY, st.floats(-3, 3))
    def test_who_rates_higher_by_a_number_is_higher_by_that_number(self, ratings, shift):
        before = scale_bias(Ratings.from_matrix(ratings))
        ratings[:, 0] += shift
        after = scale_bias(Ratings.from_matrix(ratings))
        for one, other in zip(before, after, strict=True):
            if one.rater == 0 and one.difference.n:
                assert other.difference.value == pytest.approx(one.difference.value + shift, abs=1e-9)

    def test_a_rater_alone_has_a_reason(self):
        _, b = scale_bias(of_raters([1, None], [None, 5]))
        assert b.difference == Measure(None, 0, NOBODY_ELSE)
        assert b.differences.size == 0


class TestPairs:
    @given(GAPPY)
    def test_each_pair_is_as_scikit_learn_says(self, ratings):
        for pair in pair_agreement(Ratings.from_matrix(ratings)):
            one, other = ratings[:, pair.first], ratings[:, pair.second]
            shared = ~np.isnan(one) & ~np.isnan(other)
            assert pair.n_shared == pair.kappa.n == shared.sum() > 0
            assert pair.agreement == pytest.approx(np.mean(one[shared] == other[shared]), abs=1e-12)
            if pair.n_shared >= 2:
                kappa = NAN if pair.kappa.value is None else pair.kappa.value
                expected = kappa_by_scikit_learn(one[shared], other[shared])
                assert kappa == pytest.approx(expected, abs=1e-12, nan_ok=True)

    @given(GAPPY)
    def test_every_two_raters_who_met_are_a_pair(self, ratings):
        given_ = ~np.isnan(ratings)
        together = given_.T.astype(int) @ given_
        met = {(one, other) for one, other in zip(*np.nonzero(together), strict=True) if one < other}
        pairs = pair_agreement(Ratings.from_matrix(ratings))
        assert {(pair.first, pair.second) for pair in pairs} == met
        assert [pair.n_shared for pair in pairs] == sorted((pair.n_shared for pair in pairs), reverse=True)

    def test_those_who_share_most_come_first_and_few_may_be_left_out(self):
        ratings = of_raters([0, 1, 0, 1], [0, 1, 1, None], [0, None, None, None])
        found = [(pair.first, pair.second, pair.n_shared) for pair in pair_agreement(ratings)]
        assert found == [("a", "b", 3), ("a", "c", 1), ("b", "c", 1)]
        assert len(pair_agreement(ratings, at_least=2)) == 1
        assert len(pair_agreement(ratings, limit=2)) == 2

    def test_a_pair_without_a_kappa_has_the_reason(self):
        [pair] = pair_agreement(of_raters([0], [0]))
        assert pair.kappa == Measure(None, 1, "It needs at least 2 statements; there is 1.")

    def test_the_mean_over_the_pairs_is_the_mean_kappa(self):
        ratings = Ratings.from_matrix(np.random.default_rng(0).integers(0, 3, (15, 4)))
        kappas = [pair.kappa.value for pair in pair_agreement(ratings)]
        assert np.mean(kappas) == pytest.approx(cohen_kappa(ratings), abs=1e-12)


class TestIntervalOfKappa:
    def test_is_that_of_drawing_statements_one_by_one(self):
        one, other = of_two = np.random.default_rng(0).integers(0, 3, (2, 60))
        other[:30] = one[:30]
        draws = np.random.default_rng(1).integers(0, 60, (1000, 60))
        kappas = [kappa_by_scikit_learn(*of_two[:, drawn]) for drawn in draws]
        [pair] = pair_agreement(Ratings.from_matrix(of_two.T))
        interval = kappa_interval(pair.table)
        assert interval == pytest.approx(np.quantile(kappas, [0.025, 0.975]), abs=0.03)
        first, _ = annotator_agreement(Ratings.from_matrix(of_two.T))
        assert kappa_interval(first.table) == interval

    def test_of_few_statements_and_of_full_agreement_there_is_none(self):
        assert kappa_interval(np.array([[5, 1], [1, 2]])) == "it takes at least 10 statements."
        assert "all resamples give the same value" in kappa_interval(np.array([[20, 0], [0, 20]]))


def some_reliable_raters(*, right, statements=400, seed=0):
    """Ratings by raters who each give the true class with a probability, else any."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, size=(statements, 1))
    guesses = (truth + rng.integers(1, 3, size=(statements, len(right)))) % 3
    return np.where(rng.random((statements, len(right))) < right, truth, guesses).astype(float)


class TestDawidSkene:
    def test_ability_is_the_probability_of_being_right(self):
        right = [0.95, 0.9, 0.8, 0.7, 0.5]
        abilities = dawid_skene(Ratings.from_matrix(some_reliable_raters(right=right)))
        assert [ability.right.value for ability in abilities] == pytest.approx(right, abs=0.06)
        assert [(ability.rater, ability.right.n) for ability in abilities] == [(rater, 400) for rater in range(5)]

    def test_is_the_chance_of_each_class_by_how_often_it_was_met_in_crowd_kits_own_matrices(self):
        matrix = some_reliable_raters(right=[0.9, 0.7, 0.8], statements=60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from crowdkit.aggregation import DawidSkene

            tasks, workers = np.indices(matrix.shape)
            table = pd.DataFrame(
                {"task": tasks.ravel(), "worker": workers.ravel(), "label": matrix.ravel().astype(int)}
            )
            model = DawidSkene(n_iter=100).fit(table)
        met = model.probas_.mean()
        for ability in dawid_skene(Ratings.from_matrix(matrix)):
            rightly = np.diag(model.errors_.loc[ability.rater].sort_index()[[0, 1, 2]])
            assert ability.right.value == pytest.approx(rightly @ met[[0, 1, 2]], abs=1e-9)

    def test_gaps_ids_and_the_order_of_ratings_do_not_matter(self):
        matrix = some_reliable_raters(right=[0.9, 0.7, 0.8, 0.6], statements=80)
        matrix[np.random.default_rng(1).random(matrix.shape) < 0.3] = NAN
        statements, raters = np.indices(matrix.shape)
        order = np.random.default_rng(2).permutation(matrix.size)
        ids = np.array(["ann", "bob", "cyd", "dan"])
        columns = statements.ravel() * 7, ids[raters.ravel()], matrix.ravel()
        named = dawid_skene(Ratings.from_long(*(column[order] for column in columns)))
        plain = dawid_skene(Ratings.from_matrix(matrix))
        assert [one.rater for one in named] == ids.tolist()
        assert [one.right.value for one in named] == pytest.approx([one.right.value for one in plain], abs=1e-6)

    def test_a_rater_whom_nobody_can_check_has_no_ability(self):
        matrix = some_reliable_raters(right=[0.9, 0.7, 0.8], statements=60)
        alone = np.full((30, 4), NAN)
        alone[:, 3] = np.random.default_rng(0).integers(0, 3, 30)
        matrix = np.concatenate([np.column_stack([matrix, np.full(60, NAN)]), alone])
        *_, last = dawid_skene(Ratings.from_matrix(matrix))
        assert last == Ability(3, Measure(None, 0, NOBODY_ELSE))

    def test_statements_that_nobody_else_rated_change_nothing(self):
        matrix = some_reliable_raters(right=[0.9, 0.7, 0.8], statements=60)
        alone = np.full((30, 3), NAN)
        alone[:, 1] = np.random.default_rng(0).integers(0, 3, 30)
        padded = dawid_skene(Ratings.from_matrix(np.concatenate([matrix, alone])))
        assert padded == dawid_skene(Ratings.from_matrix(matrix))
        assert [one.right.n for one in padded] == [60] * 3

    def test_guessers_are_flattered_as_the_report_says(self):
        guesses = [np.random.default_rng(seed).integers(0, 3, (60, 3)) for seed in range(7)]
        abilities = [one.right.value for matrix in guesses for one in dawid_skene(Ratings.from_matrix(matrix))]
        assert np.mean(abilities) == pytest.approx(0.5, abs=0.05)

    @pytest.mark.parametrize(
        ("columns", "reason"),
        [
            ([], "Ability needs ratings, and there are none. Wait until statements are annotated."),
            (
                [[0, 1]],
                "Ability needs at least two annotators; there is 1. Have more annotators judge the same statements.",
            ),
            (
                [[0, None], [None, 1]],
                "Ability needs a statement with at least two ratings; all statements have at most 1. "
                "Have more raters rate the same statements.",
            ),
            (
                [[0, 0, 1], [0, 0, None]],
                "Ability cannot be told when all ratings of statements with two or more are the same; all 4 are "
                "non-toxic.",
            ),
        ],
    )
    def test_what_cannot_be_told_has_a_reason(self, columns, reason):
        with pytest.raises(UndefinedAgreement) as error:
            dawid_skene(of_raters(*columns), names={0: "non-toxic"})
        assert str(error.value) == reason
