"""The report of annotators: each one against the others, and each two of them."""

import json
from datetime import timedelta

import numpy as np
import pytest
from django.conf import settings
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.proportion import proportion_confint

from analysis.exports.workers import hashed_worker
from analysis.reports import annotators
from analysis.reports.annotators import make, names_of
from analysis.reports.frame import Estimate, Undefined, pack, unpack
from tests.analysis.judging import NOON, give, judge, people, rows_by, section
from tests.factories import make_hit, make_hit_type

pytestmark = pytest.mark.django_db

# Harm ratings of three people: the last one often stands alone.
HARM = [[1, 2, 5], [1, 1, 1], [5, 4, 1], [3, 3, 3], [2, 1, 4], [4, 5, 5], [1, 1, 3], [5, 4, 2], [1, 1, 1], [5, 5, 5]]
CLASSES = np.sign(np.array(HARM) - 3) + 1


@pytest.fixture
def workers():
    return people(3)


def rows(report, workers, key="annotators"):
    by_hash = rows_by(section(report, key).table, "hash")
    return [by_hash[hashed_worker(worker.pk)] for worker in workers]


def test_each_annotator_is_compared_with_the_majority_of_the_others(workers):
    judge(HARM, workers=workers)
    found = rows(make({}), workers)
    for place, row in enumerate(found):
        others = np.delete(CLASSES, place, axis=1)
        agreed = others[:, 0] == others[:, 1]
        own, majority = CLASSES[agreed, place], others[agreed, 0]
        assert_allclose(row["majority"].value, np.mean(own == majority), rtol=1e-12)
        wilson = proportion_confint(np.sum(own == majority), len(own), method="wilson")
        assert_allclose([row["majority"].low, row["majority"].high], wilson, rtol=1e-9)
        assert row["compared"] == agreed.sum()
        assert_allclose(row["kappa"].value, cohen_kappa_score(own, majority), rtol=1e-12)
        agreeing = np.sum(others == CLASSES[:, [place]]) / 2
        assert_allclose(row["others"].value, agreeing / 10, rtol=1e-12)
        wilson = proportion_confint(agreeing, 10, method="wilson")
        assert_allclose([row["others"].low, row["others"].high], wilson, rtol=1e-9)
        assert (row["annotations"], row["shared"]) == (10, 10)
    assert section(make({}), "annotators").n == {"annotators": 3, "annotations": 30, "statements": 10}


def test_who_often_stands_alone_has_the_least_ability(workers):
    judge(HARM, workers=workers)
    judge([[None, None, 5]] * 3, workers=workers)
    found = rows(make({}), workers)
    abilities = [row["ability"].value for row in found]
    assert abilities[2] < 0.7 < 0.9 < min(abilities[:2])
    assert [row["checked"] for row in found] == [10, 10, 10]
    for row in found:
        wilson = proportion_confint(row["ability"].value * 10, 10, method="wilson")
        assert_allclose([row["ability"].low, row["ability"].high], wilson, rtol=1e-9)
    assert "three who only guess" in " ".join(section(make({}), "annotators").notes)


def test_whom_nobody_can_check_has_no_ability(workers):
    judge([row[:2] for row in HARM], workers=workers[:2])
    judge([[None, None, 5], [None, None, 1]], workers=workers)
    *_, last = rows(make({}), workers)
    assert last["ability"] == Undefined("Nobody else rated a statement that this annotator rated.")
    assert last["checked"] == 0


def test_each_kappa_of_ten_statements_has_its_interval(workers):
    judge([*HARM * 2, [1, 5, 5], [5, 1, 5]], workers=workers)
    report = make({})
    pairs = section(report, "pairs").table.rows
    for cell in [row["kappa"] for row in (*rows(report, workers), *pairs)]:
        assert -1 <= cell.low < cell.value < cell.high <= 1
    for key in ("annotators", "pairs"):
        assert "of kappa the percentiles of 1,000 resamples" in " ".join(section(report, key).notes)


def test_annotations_that_do_not_count_are_told_of(workers):
    judge(HARM, workers=workers)
    judge([[1]], workers=workers[:1], holds_place=False)
    judge([[{"not_understood": True}]], workers=workers[:1])
    assert "2 annotations do not count: 1 not understood; 1 late, when the place was taken." in (
        section(make({}), "annotators").notes
    )


def test_bias_is_the_mean_difference_from_the_mean_of_the_others(workers):
    judge([[{"harmful_intent": answer} for answer in row] for row in HARM], workers=workers)
    matrix = np.array(HARM)
    for place, row in enumerate(rows(make({}), workers, "bias")):
        differences = matrix[:, place] - np.delete(matrix, place, axis=1).mean(axis=1)
        assert_allclose(row["harmful_intent"].value, differences.mean(), rtol=1e-12, atol=1e-15)
        interval = stats.t.interval(0.95, 9, differences.mean(), stats.sem(differences))
        assert_allclose([row["harmful_intent"].low, row["harmful_intent"].high], interval, rtol=1e-9)
        assert (row["harmful_if_ai"].value, row["n"]) == (0, 10)


def test_the_colours_of_bias_have_their_middle_at_zero(workers):
    judge(HARM, workers=workers)
    [heatmap] = section(make({}), "bias").chart["data"]
    assert (heatmap["zmid"], heatmap["colorscale"][1]) == (0, [0.5, "#ffffff"])


def test_a_statement_that_nobody_else_judged_has_no_part_in_bias(workers):
    judge([*HARM, [5, None, None]], workers=workers)
    first = rows(make({}), workers, "bias")[0]
    assert first["n"] == 10
    assert rows(make({}), workers)[0]["annotations"] == 11


def test_time_is_the_median_of_what_was_timed(workers):
    study = make_hit_type()
    for seconds in (10, 20, 90):
        judge([[1]], study=study, workers=workers[:1], seconds=seconds)
    give(make_hit(), workers[0], 1, seconds=0)
    give(make_hit(), workers[1], 1, seconds=0)
    first, second = rows(make({}), workers[:2])
    assert (first["time"], first["timed"]) == (Estimate(20), 3)
    for seconds in (30, 40, 50):
        judge([[1]], study=study, workers=workers[:1], seconds=seconds)
    assert rows(make({}), workers[:1])[0]["time"] == Estimate(35, 10, 90)
    assert second["time"] == Undefined("The file that the work came from does not say when it began and ended.")
    assert second["timed"] == 0


def test_each_pair_has_its_agreement_and_kappa(workers):
    judge(HARM, workers=workers)
    judge([[5, 1, None]] * 2, workers=workers)
    report = make({})
    names = [row["annotator"] for row in rows(report, workers)]
    table = section(report, "pairs").table
    assert [row["shared"] for row in table.rows] == [12, 10, 10]
    classes = np.vstack([CLASSES, [[2, 0, -1]] * 2])
    for row in table.rows:
        one, other = names.index(row["first"]), names.index(row["second"])
        both = classes[: row["shared"], [one, other]]
        assert_allclose(row["agreement"].value, np.mean(both[:, 0] == both[:, 1]), rtol=1e-12)
        assert_allclose(row["kappa"].value, cohen_kappa_score(*both.T), rtol=1e-12)


def test_pairs_that_share_little_are_counted_and_left_out(workers):
    judge([[1, 1, None]] * 5, workers=workers)
    judge([[1, 5, 5]] * 4, workers=workers)
    pairs = section(make({}), "pairs")
    assert (len(pairs.table.rows), pairs.n) == (1, {"pairs": 3})
    assert "2 pairs share fewer than 5 statements: left out." in pairs.notes


def test_of_many_pairs_the_first_are_shown_and_all_are_counted(workers, monkeypatch):
    monkeypatch.setattr(annotators, "PAIRS_SHOWN", 2)
    judge(HARM, workers=workers)
    pairs = section(make({}), "pairs")
    assert len(pairs.table.rows) == 2
    assert "The table has the first 2 of 3 pairs." in pairs.notes


def test_of_many_annotators_the_figure_shows_those_with_most_annotations(workers, monkeypatch):
    monkeypatch.setattr(annotators, "DRAWN", 2)
    judge([*HARM, [1, 1, None], [None, 1, None]], workers=workers)
    found = section(make({}), "annotators")
    assert [row["annotations"] for row in found.table.rows] == [12, 11, 10]
    assert len(found.chart["data"][0]["x"]) == 2
    assert "The figure shows the 2 of 3 who gave most annotations." in found.notes


# --- Who they are


def test_annotators_have_the_hashes_of_the_exports(workers):
    workers[1].imported_hash = "A1B2"
    workers[1].save()
    judge(HARM, workers=workers)
    table = section(make({}), "annotators").table
    assert {row["hash"] for row in table.rows} == {
        hashed_worker(workers[0].pk), "A1B2", hashed_worker(workers[2].pk)
    }  # fmt: skip
    told = str(pack(make({})))
    assert workers[0].pseudonym not in told
    assert settings.WORKER_HASH_SALT not in told


def test_names_are_as_short_as_tells_them_apart():
    assert names_of({1: "0123456789", 2: "abcdefghij"}) == {1: "01234567", 2: "abcdefgh"}
    assert names_of({1: "012345678x", 2: "012345678y"}) == {1: "012345678x", 2: "012345678y"}
    assert names_of({1: "0123456789abc", 2: "012345678"}) == {1: "0123456789", 2: "012345678"}


# --- What cannot be told


def test_without_annotations_it_says_so():
    [only] = make({}).sections
    assert only.missing == "There are no annotations here. Publish a study, or import judgements."
    assert only.n == {"annotators": 0, "annotations": 0, "statements": 0}


def test_one_annotator_has_nobody_to_be_compared_with(workers):
    judge([[1], [5]], workers=workers[:1])
    report = make({})
    [row] = rows(report, workers[:1])
    nobody = Undefined("Nobody else rated a statement that this annotator rated.")
    assert (row["majority"], row["kappa"], row["others"]) == (nobody, nobody, nobody)
    assert "needs at least two annotators; there is 1." in row["ability"].reason
    assert (row["annotations"], row["shared"], row["time"]) == (2, 0, Estimate(60))
    assert rows(report, workers[:1], "bias")[0]["harmful_intent"] == nobody
    assert section(report, "pairs").missing == (
        "There is one annotator: a pair needs two. Have more annotators judge the same statements."
    )


def test_annotators_who_never_met_are_no_pair(workers):
    judge([[1, None], [None, 5]], workers=workers[:2])
    assert section(make({}), "pairs").missing == (
        "No two annotators judged the same statement. Have more annotators judge the same statements."
    )


def test_pairs_that_all_share_little_are_said(workers):
    judge([[1, 5, 1]] * 2, workers=workers)
    assert section(make({}), "pairs").missing == (
        "No two annotators share 5 statements or more; the most that a pair shares is 2. "
        "Have more annotators judge the same statements."
    )


def test_one_class_alone_gives_no_kappa_and_no_ability(workers):
    judge([[5, 5, 5]] * 6, workers=workers)
    report = make({})
    for row in rows(report, workers):
        assert row["majority"].value == 1.0
        assert "All 6 statements were put into one category by both" in row["kappa"].reason
        assert "all 18 are toxic" in row["ability"].reason
    for row in rows(report, workers, "bias"):
        assert (row["harmful_if_ai"].value, row["harmful_if_ai"].low) == (0, None)
    assert "A mean without an interval" in " ".join(section(report, "bias").notes)
    assert isinstance(section(report, "pairs").table.rows[0]["kappa"], Undefined)


def test_only_the_first_answer_of_somebody_to_a_statement_counts(workers):
    [statement] = judge([[1, 1]], workers=workers[:2])
    give(make_hit(generation=statement), workers[0], 5, at=NOON + timedelta(days=1))
    report = make({})
    assert rows(report, workers[:1])[0]["annotations"] == 1
    assert rows(report, workers[:1])[0]["majority"].value == 1.0  # by the later answer it would be 0
    assert "1 annotation is left out" in " ".join(section(report, "annotators").notes)


def test_a_report_is_stored_as_json_and_comes_back(workers):
    judge([*HARM, [5, None, None]], workers=workers)
    report = make({})
    assert unpack(json.loads(json.dumps(pack(report)))) == report


# --- What each section says first


def test_sections_lead_with_the_median_and_the_ends(workers):
    judge(HARM, workers=workers)
    report = make({})
    found = sorted(row["majority"].value for row in section(report, "annotators").table.rows)
    low, middle, high = (f"{100 * value:.1f}\u00a0%" for value in found)
    assert section(report, "annotators").says.startswith(
        "Agreement with the majority of the others on the toxicity class: "
        f"median {middle} over 3 annotators, from {low} to {high}."
    )
    pairs = sorted(row["agreement"].value for row in section(report, "pairs").table.rows)
    low, middle, high = (f"{100 * value:.1f}\u00a0%" for value in pairs)
    assert f"both judged: median {middle} over 3 pairs, from {low} to {high}." in section(report, "pairs").says


def test_bias_leads_with_the_largest_difference_that_is_sure(workers):
    judge([[1 + number % 2, 1, 4 + number % 2] for number in range(12)], workers=workers)
    shown = section(make({}), "bias")
    told = [
        cell
        for row in shown.table.rows
        for cell in row.values()
        if isinstance(cell, Estimate) and cell.low is not None and (cell.low > 0 or cell.high < 0)
    ]
    largest = max(told, key=lambda cell: abs(cell.value))
    assert shown.says.startswith(f"{len(told)} of ")
    assert f"the largest is {largest.value:.2f} (" in shown.says
    assert f"of annotator {hashed_worker(workers[2].pk)[:8]} on " in shown.says


def test_one_annotator_has_sections_that_say_what_is_undefined(workers):
    judge([[1], [5]], workers=workers[:1])
    report = make({})
    assert "toxicity class: undefined for every annotator; the table says why." in section(report, "annotators").says
    assert section(report, "bias").says.startswith("Differences from the others are undefined for every annotator")
    assert section(report, "pairs").says == "How often two annotators chose the same toxicity class cannot be told."


def test_a_pair_alone_and_differences_that_are_not_sure_are_told_truly(workers):
    judge([[1, 1]] * 6, workers=workers[:2])
    report = make({})
    assert "both judged: 100.0\u00a0%, of the only pair." in section(report, "pairs").says
    assert "None of 6 mean differences from the others has an interval without 0." in section(report, "bias").says
