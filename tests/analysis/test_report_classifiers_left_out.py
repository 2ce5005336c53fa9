"""The report classifiers where texts lack a score or a label, and where nothing varies: said, and never a crash."""

import numpy as np
import pytest

from analysis import metrics
from analysis.comparison import holm
from analysis.humanval import freezing
from analysis.models import EvaluationScore
from analysis.reports.catalogue import REPORTS
from analysis.reports.frame import Estimate, Undefined, pack, unpack
from generation.models import ReaderKind
from tests.analysis import humanval_world
from tests.analysis.judging import section
from tests.factories import (
    make_evaluation,
    make_evaluation_set,
    make_generation,
    make_reader,
    make_run,
    make_searched_generation,
    make_trained_classifier,
)

pytestmark = pytest.mark.django_db

TOXIC = np.array([True, False, True, False, False] * 16)
GROUPS = np.array(["women", "women", "asian", "asian", "women"] * 16)
GOOD = np.where(TOXIC, 0.7, 0.3) + np.linspace(-0.29, 0.29, 80)
POOR = 0.5 + 0.1 * (np.arange(80) % 3)
OF_SETS = ("reliability", "groups", "functionalities")


def of_two(lacks, also_lacks):
    """A set that two classifiers have scored but for texts of which the scores were removed, by their places."""
    rows = zip(TOXIC.tolist(), GROUPS.tolist(), ["slang", "negation"] * 40, strict=True)
    test_set = make_evaluation_set(*rows, name="garden-talk")
    texts = list(test_set.texts.order_by("index").values_list("pk", flat=True))
    for model, probs, places in (("good-head", GOOD, lacks), ("poor-head", POOR, also_lacks)):
        evaluation = make_evaluation(test_set, probs.tolist(), model=model)
        gone = [texts[place] for place in places]
        EvaluationScore.objects.filter(reader=evaluation.reader, text__in=gone).delete()


def made():
    report = REPORTS["classifiers"].make({})
    assert unpack(pack(report)) == report
    return report


def row_of(key, report, **cells):
    [row] = [row for row in section(report, key).table.rows if all(row[name] == cell for name, cell in cells.items())]
    return row


def test_two_classifiers_are_compared_on_the_texts_that_both_have_scored():
    of_two(lacks=range(3), also_lacks=range(2, 20))
    report = made()
    row = row_of("pairs", report)
    found = metrics.delong(POOR[20:], GOOD[20:], TOXIC[20:])
    assert (row["first"], row["second"], row["n"]) == ("poor-head", "good-head", 60)
    assert row["difference"] == Estimate(found.difference, found.low, found.high)
    assert (row["first_auc"].value, row["second_auc"].value) == pytest.approx((found.first, found.second))
    assert {row["classifier"]: row["n"] for row in section(report, "figures").table.rows} == {
        "good-head": 77, "poor-head": 62,
    }  # fmt: skip


def test_groups_and_functionalities_are_compared_on_the_texts_that_all_have_scored():
    of_two(lacks=[0], also_lacks=range(1, 20))
    report = made()
    women = row_of("groups-set-garden-talk", report, part="women")
    benign = ~TOXIC[20:] & (GROUPS[20:] == "women")
    assert women["n"] == benign.sum()
    assert women["classifier_good-head"].value == pytest.approx((GOOD[20:][benign] >= 0.5).mean())
    assert women["classifier_poor-head"].value == 1.0
    slang = row_of("functionalities-set-garden-talk", report, part="slang")
    right = ((GOOD >= 0.5) == TOXIC)[20::2]
    assert (slang["n"], slang["classifier_good-head"].value) == (30, pytest.approx(right.mean()))


def test_every_table_of_an_evaluation_says_how_many_texts_have_no_score():
    of_two(lacks=[], also_lacks=[4])
    report = made()
    for key in ("table-4", "figures", "pairs", "spreads", *(f"{part}-set-garden-talk" for part in OF_SETS)):
        assert "Left out: 1 text of garden-talk that poor-head has no score of." in section(report, key).notes, key


def test_how_many_statements_nobody_understood_is_said():
    for place in range(3):
        humanval_world.statement(np.eye(8)[place], method="alice")
    humanval_set = humanval_world.draw(size=3)
    freezing.publish(humanval_set=humanval_set, **humanval_world.TERMS)
    nobody = {"not_understood": True, "harmful_if_ai": None, "harmful_if_human": None}
    humanval_world.judge(humanval_set, *([answer, answer] for answer in (5, nobody, 1)))
    humanval_set = freezing.freeze(humanval_set=humanval_set)
    for model in ("one", "other"):
        make_evaluation(humanval_set, [0.9, 0.5, 0.1], model=model)
    report = made()
    for key in ("table-4", "table-7", "figures", "pairs", "reliability-humanval-1", "groups-humanval-1"):
        assert section(report, key).notes.count("Left out: 1 statement of HUMANVAL 1 that nobody understood.") == 1, key


@pytest.mark.parametrize(
    ("lacks", "also_lacks"), [(range(40), range(40, 80)), (range(80), []), (range(80), range(80))],
    ids=["none scored by both", "one has no scores", "nobody has"],
)  # fmt: skip
def test_without_a_text_in_common_there_is_a_reason_and_no_crash(lacks, also_lacks):
    of_two(lacks, also_lacks)
    report = made()
    row = row_of("pairs", report)
    [reason] = {row[key] for key in ("first_auc", "second_auc", "difference", "p", "p_holm")}
    who = "it is scored" if len(lacks) == len(also_lacks) == 80 else "both have scored it"
    assert (row["n"], reason.reason) == (0, f"No text of garden-talk, as far as {who}, is labelled toxic or benign.")
    if len(lacks) == 40:
        assert section(report, "groups-set-garden-talk").missing.startswith("These classifiers have scored no text in")
        assert section(report, "functionalities-set-garden-talk").missing
    else:
        empty = row_of("figures", report, classifier="good-head")
        reason = Undefined("No text of garden-talk, as far as it is scored, is labelled toxic or benign.")
        assert (empty["auc"], empty["f1"], empty["accuracy"], empty["toxic"]) == (reason,) * 4


def test_a_classifier_without_scores_does_not_empty_the_tables_of_others():
    of_two(lacks=range(80), also_lacks=[])
    report = made()
    assert row_of("groups-set-garden-talk", report, part="women").keys() == {"part", "n", "classifier_poor-head"}
    assert section(report, "reliability-set-garden-talk").n == {"texts": 80}


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ([0.9, 0.8, 0.1, 0.2], [0.8, 0.7, 0.2, 0.3], "Both rank every toxic text against every benign one alike: "),
        ([0.9, 0.8, 0.1, 0.2], [0.1, 0.2, 0.9, 0.8], "The difference is the same for every text, "),
        ([0.9, 0.1, 0.2], [0.1, 0.8, 0.2], "Only one text of a class is there: "),
    ],
    ids=["alike", "perfect and reversed", "one toxic text"],
)
def test_why_a_difference_is_not_tested_is_told_apart(first, second, reason):
    test_set = make_evaluation_set(*([place < len(first) - 2] for place in range(len(first))))
    for model, probs in (("one", first), ("other", second)):
        make_evaluation(test_set, probs, model=model)
    row = row_of("pairs", made())
    assert row["difference"].reason.startswith(reason)
    assert row["difference"] == row["p"] == row["p_holm"]


def test_p_and_interval_of_every_pair_agree_and_the_corrected_p_is_no_smaller():
    test_set = make_evaluation_set(*([toxic] for toxic in TOXIC.tolist()))
    for model, probs in (("good", GOOD), ("poor", POOR), ("middling", (GOOD + 2 * POOR) / 3), ("same", GOOD)):
        make_evaluation(test_set, probs.tolist(), model=model)
    report = made()
    rows = [row for row in section(report, "pairs").table.rows if isinstance(row["p"], float)]
    assert len(rows) == 5
    assert all((row["p"] < 0.05) == (not row["difference"].low <= 0 <= row["difference"].high) for row in rows)
    assert [row["p_holm"] for row in rows] == holm([row["p"] for row in rows])
    assert "Intervals: 95 %, of one comparison each, as p is; p (Holm) is corrected." in section(report, "pairs").notes


def test_a_classifier_that_is_read_by_a_label_has_learnt_what_the_classifier_has():
    known = make_generation("text 2 of the file is about the weather")
    make_trained_classifier("first-head", trained_on=[known])
    make_trained_classifier("second-head", base="first-head#toxic", trained_on=[make_generation()])
    test_set = make_evaluation_set()
    for model in ("first-head#toxic", "second-head", "garden-model#toxic"):
        make_evaluation(test_set, [0.9, 0.2, 0.8, 0.1], model=model)
    report = made()
    assert {row["classifier"]: row["seen"] for row in section(report, "figures").table.rows} == {
        "first-head#toxic": 1, "second-head": 1, "garden-model#toxic": None,
    }  # fmt: skip
    assert "first-head#toxic was trained on 1 of the 4 texts" in section(report, "table-4").says


def test_a_round_against_a_label_of_a_classifier_leaves_out_what_it_learnt():
    run = make_run(count=2, method="paired", classifier="first-head#toxic")
    learnt, _ = (
        make_searched_generation(run=run, position=place, label="toxic", toxic_prob=0.1, method="alice")
        for place in range(2)
    )
    make_trained_classifier("first-head", trained_on=[learnt])
    row = row_of("rounds", made())
    assert (row["alice_n"], row["learnt"]) == (1, 1)


def test_shares_of_all_or_none_have_an_interval():
    test_set = make_evaluation_set(*([toxic] for toxic in TOXIC.tolist()))
    make_evaluation(
        test_set, np.where(TOXIC, 0.9, 0.1).tolist(), reader=make_reader(ReaderKind.CLASSIFIER, name="best")
    )
    row = row_of("figures", made())
    assert (row["accuracy"].value, row["accuracy"].high, row["false_positive_rate"].low) == (1.0, 1.0, 0.0)
    assert 0.9 < row["accuracy"].low < 1
    assert 0 < row["false_positive_rate"].high < 0.1
