"""Figures of agreement, proved by printed tables, by other libraries and by invariances."""

import warnings
from functools import partial

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from statsmodels.stats import inter_rater

from analysis.agreement import (
    Figure,
    Statistic,
    UndefinedAgreement,
    agreement_table,
    cohen_kappa,
    fleiss_kappa,
    full_agreement,
    gwet_ac1,
    gwet_ac2,
    krippendorff_alpha,
    majority_agreement,
    statistics_for,
)

NAN = np.nan
LEVELS = ("nominal", "ordinal", "interval")
EVERY_FIGURE = {
    "Fleiss' kappa": fleiss_kappa,
    "Krippendorff's alpha (nominal)": partial(krippendorff_alpha, level="nominal"),
    "Krippendorff's alpha (ordinal)": partial(krippendorff_alpha, level="ordinal"),
    "Krippendorff's alpha (interval)": partial(krippendorff_alpha, level="interval"),
    "Gwet's AC1": gwet_ac1,
    "Gwet's AC2 (ordinal)": gwet_ac2,
    "Mean pairwise Cohen's kappa": partial(cohen_kappa, at_least=2),
    "Full agreement": full_agreement,
    "Majority agreement": majority_agreement,
}
NAMES = list(EVERY_FIGURE)
BEYOND_CHANCE = NAMES[:4]
GWET = NAMES[4:6]
COHEN = NAMES[6]
NOMINAL = [name for name in NAMES if "ordinal" not in name and "interval" not in name]
#: What does not ask who gave a rating.
ANONYMOUS = [name for name in NAMES if name != COHEN]

# Fleiss (1971), table 1: 30 patients, 6 psychiatrists each; depression, personality disorder,
# schizophrenia, neurosis, other. A word is a patient, its digits are the counts.
DIAGNOSES = """
    00060 03003 01401 00006 03030 20400 00402 20310 20040 00006
    10050 11040 03300 10050 02031 00501 30012 51000 02040 10203
    00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""
FLEISS_1971 = [[int(count) for count in patient] for patient in DIAGNOSES.split()]

# Wikipedia, "Fleiss' kappa", worked example: 10 subjects, 14 raters, 5 categories.
FOURTEEN_RATERS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]

# Krippendorff (2011), section C: 4 observers, 12 units.
KRIPPENDORFF_2011 = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T

# Three classes and gaps; the shapes reach from nothing to more raters than statements.
GAPPY = arrays(
    float,
    array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=7),
    elements=st.sampled_from([0.0, 1.0, 2.0, NAN]),
)

# Enough statements for Cohen's kappa of a pair.
WIDE = arrays(float, st.tuples(st.integers(10, 16), st.integers(2, 4)), elements=st.sampled_from([0.0, 1.0, 2.0, NAN]))


def from_counts(table):
    """A matrix of ratings with these counts (statements, categories), equal in each row."""
    return np.array([np.repeat(np.arange(len(row)), row) for row in table], dtype=float)


def random_matrices(*, gaps, number=250):
    """Matrices of 2 to 6 codes, which need be neither whole numbers nor evenly spaced."""
    rng = np.random.default_rng(1971)
    for _ in range(number):
        codes = np.sort(rng.normal(size=rng.integers(2, 7))).round(3)
        skew = rng.dirichlet(np.ones(len(codes)))
        shape = rng.integers(6, 60), rng.integers(2, 9)  # (statements, raters)
        ratings = rng.choice(codes, size=shape, p=skew)
        lean = rng.random(shape) < rng.random()  # some raters follow the first, so that they agree
        ratings = np.where(lean, ratings[:, :1], ratings)
        ratings[rng.random(shape) < gaps] = NAN
        ratings[:2, :2] = codes[[0, -1]][:, None]  # two categories at least: a figure is defined
        yield ratings


def shapes(figures, only=NAMES):
    """All of the figures but the value, the wording of the reason and who gave the ratings."""
    return [
        (figure.name, figure.n_statements, figure.n_pairable, figure.n_ratings, figure.left_out, figure.value is None)
        for figure in figures
        if figure.name in only
    ]


def values(figures, only=NAMES):
    """The figures' values by name, NaN where there is none."""
    return {figure.name: NAN if figure.value is None else figure.value for figure in figures if figure.name in only}


def shown(name, value, n_statements, n_ratings, *, left_out, reason=None, n_raters=3, n_pairable=None):
    n_pairable = n_statements if n_pairable is None else n_pairable
    return Figure(name, value, n_statements, n_ratings, left_out, reason, n_raters, n_pairable)


def close_to(expected):
    return pytest.approx(expected, abs=1e-12, nan_ok=True)


def refusal(error_type, function, *arguments):
    with pytest.raises(error_type) as error:
        function(*arguments)
    return str(error.value)


class TestPrintedValues:
    def test_fleiss_kappa_of_the_psychiatric_diagnoses_is_0430(self):
        assert fleiss_kappa(from_counts(FLEISS_1971)) == pytest.approx(0.430, abs=0.0005)

    def test_fleiss_kappa_of_ten_subjects_and_fourteen_raters_is_0210(self):
        assert fleiss_kappa(from_counts(FOURTEEN_RATERS)) == pytest.approx(0.210, abs=0.0005)

    @pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
    def test_alpha_of_four_observers_and_twelve_units_is_as_krippendorff_prints(self, level, printed):
        assert krippendorff_alpha(KRIPPENDORFF_2011, level) == pytest.approx(printed, abs=0.0005)

    def test_alpha_is_nominal_unless_told_otherwise(self):
        nominal = krippendorff_alpha(KRIPPENDORFF_2011, level="nominal")
        assert krippendorff_alpha(KRIPPENDORFF_2011) == nominal

    def test_two_raters_who_always_swap_two_categories_have_kappa_minus_1(self):
        assert fleiss_kappa([[0, 1], [1, 0]]) == -1
        # D_o = 1 and D_e = 2/3, as there are 2 x 2 unlike pairs among 4 x 3 / 2.
        assert krippendorff_alpha([[0, 1], [1, 0]]) == pytest.approx(-0.5, abs=1e-12)


class TestOtherLibraries:
    @pytest.mark.parametrize("table", [FLEISS_1971, FOURTEEN_RATERS])
    def test_statsmodels_has_the_same_kappa_of_the_printed_tables(self, table):
        assert fleiss_kappa(from_counts(table)) == pytest.approx(inter_rater.fleiss_kappa(table), abs=1e-12)

    @pytest.mark.parametrize("level", LEVELS)
    def test_the_krippendorff_package_has_the_same_alpha_of_the_printed_table(self, level):
        expected = krippendorff.alpha(KRIPPENDORFF_2011.T, level_of_measurement=level)
        assert krippendorff_alpha(KRIPPENDORFF_2011, level) == pytest.approx(expected, abs=1e-12)

    def test_fleiss_kappa_is_that_of_statsmodels(self):
        for ratings in random_matrices(gaps=0):
            table, _ = inter_rater.aggregate_raters(ratings)
            expected = inter_rater.fleiss_kappa(table)
            assert fleiss_kappa(ratings) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("gaps", [0, 0.3, 0.6])
    @pytest.mark.parametrize("level", LEVELS)
    def test_alpha_is_that_of_the_krippendorff_package(self, level, gaps):
        for ratings in random_matrices(gaps=gaps):
            expected = krippendorff.alpha(ratings.T, level_of_measurement=level)
            assert krippendorff_alpha(ratings, level) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("gaps", [0, 0.3])
    def test_shares_are_those_of_counting_statement_by_statement(self, gaps):
        for ratings in random_matrices(gaps=gaps):
            rated = [row[~np.isnan(row)].tolist() for row in ratings]
            rated = [row for row in rated if len(row) >= 2]
            full = sum(len(set(row)) == 1 for row in rated)
            majority = sum(3 * max(map(row.count, row)) >= 2 * len(row) for row in rated)
            assert full_agreement(ratings) == pytest.approx(full / len(rated), abs=1e-12)
            assert majority_agreement(ratings) == pytest.approx(majority / len(rated), abs=1e-12)


class TestInvariances:
    @given(GAPPY, st.randoms(use_true_random=False))
    def test_the_order_of_raters_changes_nothing(self, ratings, random):
        order = random.sample(range(ratings.shape[1]), ratings.shape[1])
        before, after = agreement_table(ratings), agreement_table(ratings[:, order])
        assert shapes(after) == shapes(before)
        assert [figure.n_raters for figure in after] == [figure.n_raters for figure in before]
        assert values(after) == close_to(values(before))

    @given(GAPPY, st.randoms(use_true_random=False))
    def test_who_gave_which_rating_of_a_statement_is_nothing_to_all_but_cohen(self, ratings, random):
        shuffled = np.array([random.sample(row, len(row)) for row in ratings.tolist()]).reshape(ratings.shape)
        before, after = agreement_table(ratings), agreement_table(shuffled)
        assert shapes(after, ANONYMOUS) == shapes(before, ANONYMOUS)
        assert values(after, ANONYMOUS) == close_to(values(before, ANONYMOUS))

    @given(WIDE, st.randoms(use_true_random=False))
    def test_many_statements_of_few_raters_may_stand_in_any_order(self, ratings, random):
        rows = random.sample(range(ratings.shape[0]), ratings.shape[0])
        columns = random.sample(range(ratings.shape[1]), ratings.shape[1])
        before, after = agreement_table(ratings), agreement_table(ratings[rows][:, columns])
        assert shapes(after) == shapes(before)
        assert values(after) == close_to(values(before))

    @given(GAPPY, st.randoms(use_true_random=False))
    def test_the_order_of_statements_changes_nothing(self, ratings, random):
        order = random.sample(range(len(ratings)), len(ratings))
        before, after = agreement_table(ratings), agreement_table(ratings[order])
        assert shapes(after) == shapes(before)
        assert values(after) == close_to(values(before))

    @given(GAPPY, st.permutations([-1.5, 0.0, 7.0]))
    def test_nominal_figures_do_not_depend_on_the_names_of_the_categories(self, ratings, names):
        renamed = np.select([ratings == code for code in range(3)], names, NAN)
        before, after = agreement_table(ratings), agreement_table(renamed)
        assert shapes(after, NOMINAL) == shapes(before, NOMINAL)
        assert values(after, NOMINAL) == close_to(values(before, NOMINAL))

    @given(WIDE, st.permutations([-1.5, 0.0, 7.0]))
    def test_nor_does_the_mean_kappa_of_pairs(self, ratings, names):
        renamed = np.select([ratings == code for code in range(3)], names, NAN)
        before, after = agreement_table(ratings), agreement_table(renamed)
        assert shapes(after, [COHEN]) == shapes(before, [COHEN])
        assert values(after, [COHEN]) == close_to(values(before, [COHEN]))

    @given(GAPPY)
    def test_ordinal_figures_depend_on_the_order_of_the_categories_only(self, ratings):
        ordinal = [Statistic.ALPHA_ORDINAL, Statistic.GWET_AC2]
        alpha = close_to(values(agreement_table(ratings), ordinal))
        assert values(agreement_table(np.exp(3 * ratings)), ordinal) == alpha
        assert values(agreement_table(-ratings), ordinal) == alpha

    @given(GAPPY)
    def test_interval_alpha_does_not_depend_on_zero_and_unit(self, ratings):
        interval = [Statistic.ALPHA_INTERVAL]
        alpha = close_to(values(agreement_table(ratings), interval))
        assert values(agreement_table(5 - 0.3 * ratings), interval) == alpha

    @given(GAPPY)
    def test_statements_and_raters_without_any_rating_change_nothing(self, ratings):
        padded = np.pad(ratings, ((2, 1), (1, 2)), constant_values=NAN)
        assert agreement_table(padded) == agreement_table(ratings)

    def test_a_pool_of_raters_gives_what_the_same_ratings_side_by_side_give(self):
        rng = np.random.default_rng(5)
        ratings = rng.integers(0, 3, size=(200, 3)).astype(float)
        pool = np.full((200, 500), NAN)
        for statement, row in zip(pool, ratings, strict=True):
            statement[rng.choice(500, size=3, replace=False)] = row
        side_by_side = values(agreement_table(ratings), ANONYMOUS)
        assert values(agreement_table(pool), ANONYMOUS) == side_by_side
        assert values(agreement_table(np.asfortranarray(pool)), ANONYMOUS) == side_by_side
        assert {figure.n_raters for figure in agreement_table(pool) if figure.name in ANONYMOUS} == {
            len(np.flatnonzero((pool == pool).any(axis=0)))
        }

    @given(GAPPY)
    def test_a_value_is_a_number_of_at_most_1_and_never_comes_with_a_warning(self, ratings):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            figures = agreement_table(ratings)
        found = values(figures)
        assert not any(value > 1 for value in found.values())
        # AC2 may be lower: its chance agreement is above one half where neighbours agree in part.
        assert not any(value < -1 for name, value in found.items() if name != Statistic.GWET_AC2)

    @given(GAPPY)
    def test_majority_is_never_below_full_agreement(self, ratings):
        found = values(agreement_table(ratings))
        assert not found["Majority agreement"] < found["Full agreement"]


class TestMeaning:
    @pytest.mark.parametrize("name", NAMES)
    def test_perfect_agreement_on_two_categories_is_1(self, name):
        assert EVERY_FIGURE[name]([[0, 0, 0], [2, 2, 2], [0, 0, 0]]) == 1.0

    @pytest.mark.parametrize("name", BEYOND_CHANCE)
    @given(ratings=st.lists(st.permutations([0, 2]), min_size=2, max_size=9))
    def test_two_raters_who_always_disagree_on_two_categories_are_below_0(self, name, ratings):
        assert EVERY_FIGURE[name](ratings) < 0

    @pytest.mark.parametrize("name", BEYOND_CHANCE[:2])
    @given(ratings=st.lists(st.permutations([0, 1, 2]), min_size=2, max_size=9))
    def test_two_raters_who_always_disagree_are_below_0_at_nominal_level(self, name, ratings):
        assert EVERY_FIGURE[name]([row[:2] for row in ratings]) < 0

    def test_full_agreement_counts_statements_whose_raters_all_agree(self):
        assert full_agreement([[1, 1, 1], [1, 1, 2], [2, 2, NAN], [1, 2, NAN]]) == 0.5

    def test_a_lone_rating_agrees_with_nobody(self):
        ratings = [[1, 1], [1, 2], [2, NAN], [NAN, NAN]]
        assert full_agreement(ratings) == 0.5
        assert majority_agreement(ratings) == 0.5

    def test_unanimous_raters_agree_fully_even_when_only_one_category_occurs(self):
        assert full_agreement([[2, 2], [2, 2]]) == 1
        assert majority_agreement([[2, 2], [2, 2]]) == 1

    @pytest.mark.parametrize(
        ("row", "reached"),
        [
            ([1, 1, 2], True),
            ([1, 1, 1, 1, 2, 3], True),
            ([1, 1, 2, 3], False),
            ([1, 2], False),
            ([1, 1, 1, 2, 2], False),
        ],
    )
    def test_a_majority_is_two_thirds_of_the_raters_or_more(self, row, reached):
        assert majority_agreement([row]) == reached

    def test_another_majority_can_be_asked_for(self):
        assert majority_agreement([[1, 1, 1, 2, 2], [1, 1, 2, 2, 3]], share=0.6) == 0.5


class TestUndefined:
    @pytest.mark.parametrize("ratings", [np.empty((0, 3)), np.empty((3, 0)), np.full((4, 3), NAN)])
    def test_without_ratings_there_is_no_figure(self, ratings):
        assert {name: refusal(UndefinedAgreement, EVERY_FIGURE[name], ratings) for name in NAMES} == {
            name: f"{name} needs ratings, and there are none. Wait until statements are annotated." for name in NAMES
        }

    def test_without_two_raters_on_one_statement_there_is_no_figure(self):
        ratings = [[1, NAN], [NAN, 2], [NAN, NAN]]
        assert {name: refusal(UndefinedAgreement, EVERY_FIGURE[name], ratings) for name in NAMES} == {
            name: f"{name} needs a statement with at least two ratings; all statements have "
            "at most 1. Have more raters rate the same statements."
            for name in NAMES
        }

    def test_one_category_cannot_tell_agreement_from_chance(self):
        ratings = [[2, 2, 2], [2, 2, 2]]
        assert {name: refusal(UndefinedAgreement, EVERY_FIGURE[name], ratings) for name in BEYOND_CHANCE} == {
            name: f"{name} cannot tell agreement from chance when all ratings are the same; "
            "all 6 are 2. Report the share of full agreement."
            for name in BEYOND_CHANCE
        }

    def test_a_lone_rating_in_another_category_does_not_save_alpha(self):
        assert refusal(UndefinedAgreement, krippendorff_alpha, [[1.5, 1.5], [1.5, 1.5], [0, NAN]]) == (
            "Krippendorff's alpha (nominal) cannot tell agreement from chance when all ratings "
            "are the same; all 4 are 1.5. Report the share of full agreement."
        )

    def test_a_reason_calls_the_categories_by_their_names(self):
        [kappa, *_] = agreement_table([[0, 0], [0, 0]], names={0: "non-toxic"})
        assert "all 4 are non-toxic." in kappa.reason

    def test_kappa_names_the_statement_with_another_number_of_ratings(self):
        ratings = np.tile([0.0, 1.0, 2.0], (20, 1))
        ratings[17, 0] = NAN
        assert refusal(UndefinedAgreement, fleiss_kappa, ratings) == (
            "Fleiss' kappa needs equally many ratings for every statement; statement 17 has 2, "
            "the others 3. Use Krippendorff's alpha, which allows gaps."
        )

    def test_kappa_names_the_first_of_several_statements(self):
        ratings = [[0, 1, 2], [NAN, NAN, NAN], [1, NAN, NAN], [1, 1, NAN], [2, 2, 2]]
        assert refusal(UndefinedAgreement, fleiss_kappa, ratings) == (
            "Fleiss' kappa needs equally many ratings for every statement; statement 2 has 1, "
            "others 3. Use Krippendorff's alpha, which allows gaps."
        )

    @pytest.mark.parametrize("name", [name for name in NAMES if "alpha" in name or "Fleiss" in name])
    @pytest.mark.parametrize("statement", [[0, 1, 1], [0, 1, 2], [0, 0, 0]])
    def test_one_statement_has_neither_a_kappa_nor_an_alpha(self, name, statement):
        # Alpha would be 0 and Fleiss' kappa -1/2, whatever the three raters say.
        assert refusal(UndefinedAgreement, EVERY_FIGURE[name], [statement]) == (
            f"{name} needs at least 2 statements that can enter; there is 1, and of one it is the same whatever the "
            "ratings are. Have more statements rated by at least two raters."
        )

    def test_undefined_agreement_is_a_value_error(self):
        assert issubclass(UndefinedAgreement, ValueError)


class TestRefusals:
    def test_an_unknown_level_is_answered_with_the_three(self):
        assert refusal(ValueError, krippendorff_alpha, [[0, 1]], "ratio") == (
            "level is 'ratio'; choose 'nominal', 'ordinal' or 'interval'."
        )

    @pytest.mark.parametrize("name", NAMES)
    def test_infinite_ratings_are_refused(self, name):
        assert refusal(ValueError, EVERY_FIGURE[name], [[0, 1], [-np.inf, 1]]) == (
            "ratings has the value -inf; mark a missing rating as NaN."
        )

    @pytest.mark.parametrize("name", NAMES)
    def test_only_a_matrix_will_do(self, name):
        assert refusal(ValueError, EVERY_FIGURE[name], [0, 1, 1]) == (
            "ratings has the shape (3,); give a matrix (statements, raters), NaN for a missing rating."
        )

    @pytest.mark.parametrize(("share", "shown"), [(0.5, "0.5"), (1.2, "1.2"), (NAN, "nan")])
    def test_a_share_that_is_no_majority_is_refused(self, share, shown):
        assert refusal(ValueError, majority_agreement, [[0, 1]], share) == (
            f"share is {shown}; a majority is above 0.5 of the raters, at most 1."
        )


class TestAgreementTable:
    def test_shows_each_value_with_its_n(self):
        ratings = [[0, 0, 0], [0, 2, 2], [2, 2, NAN], [1, NAN, NAN], [NAN, NAN, NAN]]
        kappa, nominal, ordinal, interval, ac1, ac2, cohen, full, majority = agreement_table(ratings)
        equal_part, paired_part = ratings[:2], ratings[:3]
        assert kappa == shown(Statistic.FLEISS_KAPPA, fleiss_kappa(equal_part), 2, 6, left_out=2)
        # The lone rating has a part in how frequent the categories are, though nobody can agree with it.
        assert ac1 == shown(Statistic.GWET_AC1, gwet_ac1(ratings), 4, 9, left_out=0, n_pairable=3)
        assert ac2 == shown(Statistic.GWET_AC2, gwet_ac2(ratings), 4, 9, left_out=0, n_pairable=3)
        assert (cohen.value, cohen.n_statements, cohen.n_ratings, cohen.n_raters, cohen.left_out) == (None, 0, 0, 0, 4)
        assert (cohen.n_pairs, cohen.pairs_left_out) == (0, 3)
        for figure, level in zip((nominal, ordinal, interval), LEVELS, strict=True):
            assert figure.name == f"Krippendorff's alpha ({level})"
            assert figure.value == krippendorff_alpha(paired_part, level)
        assert full == shown(Statistic.FULL_AGREEMENT, 2 / 3, 3, 8, left_out=1)
        assert majority == shown(Statistic.MAJORITY_AGREEMENT, 1.0, 3, 8, left_out=1)
        assert shapes([nominal, ordinal, interval]) == [
            (f"Krippendorff's alpha ({level})", 3, 3, 8, 1, False) for level in LEVELS
        ]

    def test_counts_the_raters_whose_ratings_enter(self):
        ratings = [[0, 1, NAN, NAN], [1, NAN, 1, NAN], [NAN, NAN, NAN, 0]]
        assert {figure.name: figure.n_raters for figure in agreement_table(ratings)} == {
            **dict.fromkeys(NAMES, 3),
            **dict.fromkeys(GWET, 4),
            COHEN: 0,
        }

    def test_has_the_statistics_that_are_asked_for_in_their_order(self):
        asked = [Statistic.FULL_AGREEMENT, Statistic.FLEISS_KAPPA]
        assert [figure.name for figure in agreement_table([[0, 1]], asked)] == asked

    def test_nominal_answers_have_no_figure_that_rests_on_an_order(self):
        assert [str(statistic) for statistic in statistics_for("nominal")] == NOMINAL
        assert [str(statistic) for statistic in statistics_for("ordinal")] == NAMES
        assert [str(statistic) for statistic in statistics_for("interval")] == NAMES
        assert refusal(ValueError, statistics_for, "ratio") == (
            "level is 'ratio'; choose 'nominal', 'ordinal' or 'interval'."
        )

    def test_kappa_takes_the_larger_of_two_equally_usual_numbers(self):
        kappa = agreement_table([[0, 1, NAN], [0, 0, 1], [1, 1, NAN], [1, 1, 1]])[0]
        assert (kappa.n_statements, kappa.n_ratings, kappa.left_out) == (2, 6, 2)
        assert kappa.value == fleiss_kappa([[0, 0, 1], [1, 1, 1]])

    def test_kappa_takes_the_most_usual_number_though_it_be_the_smaller(self):
        kappa = agreement_table([[0, 1, NAN], [0, 0, 1], [1, 1, NAN]])[0]
        assert (kappa.n_statements, kappa.n_ratings, kappa.left_out) == (2, 4, 1)

    def test_kappa_passes_over_lone_ratings_however_usual(self):
        kappa = agreement_table([[0, NAN], [1, NAN], [NAN, 1], [0, 1], [1, 0]])[0]
        assert (kappa.value, kappa.n_statements, kappa.left_out) == (-1, 2, 3)

    def test_an_undefined_figure_has_its_reason_and_its_n(self):
        table = {figure.name: figure for figure in agreement_table([[2, 2], [2, 2], [1, NAN]])}
        for name in BEYOND_CHANCE:
            reason = (
                f"{name} cannot tell agreement from chance when all ratings are the same; "
                "all 4 are 2. Report the share of full agreement."
            )
            assert table[name] == shown(Statistic(name), None, 2, 4, left_out=1, reason=reason, n_raters=2)
        for name in NAMES[-2:]:
            assert table[name] == shown(Statistic(name), 1.0, 2, 4, left_out=1, n_raters=2)

    def test_without_pairs_every_figure_has_n_0_and_the_statements_left_out(self):
        figures = agreement_table([[1, NAN], [NAN, 2], [NAN, NAN]])
        assert shapes(figures, ["Fleiss' kappa", *NAMES[-2:]]) == [
            (name, 0, 0, 0, 2, True) for name in ("Fleiss' kappa", *NAMES[-2:])
        ]
        assert shapes(figures, GWET) == [(name, 2, 0, 2, 0, True) for name in GWET]

    def test_without_ratings_every_figure_has_n_0_and_its_reason(self):
        figures = agreement_table(np.empty((0, 0)))
        assert shapes(figures) == [(name, 0, 0, 0, 0, True) for name in NAMES]
        assert figures[0].reason == (
            "Fleiss' kappa needs ratings, and there are none. Wait until statements are annotated."
        )
