"""The report of agreement: every figure with its interval and its n, or with the reason why there is none."""

import json
from datetime import timedelta

import irrCAC.raw
import krippendorff
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa
from statsmodels.stats.proportion import proportion_confint

from analysis.agreement import Statistic
from analysis.models import HumanLabel
from analysis.reports.agreement import make
from analysis.reports.agreement_cells import column_of, lowest_and_highest
from analysis.reports.frame import Estimate, Undefined, pack, unpack
from annotator.models import HITType
from annotator.questions import QUESTIONS
from generation.models import TargetGroup
from tests.analysis.judging import NOON, give, judge, people, rows_by, section
from tests.factories import make_generation, make_group, make_hit, make_hit_type

pytestmark = pytest.mark.django_db

# Harm ratings of three people: classes below, at and above 3.
HARM = [
    [1, 2, 1], [1, 5, 4], [5, 5, 5], [3, 3, 1], [2, 1, 2], [4, 5, 3], [1, 1, 3], [5, 4, 2], [1, 2, 2], [2, 4, 1],
]  # fmt: skip
CLASSES = np.sign(np.array(HARM) - 3) + 1


def values(rows, key="value"):
    return {name: row[key].value for name, row in rows.items()}


def pairs_of(matrix):
    first, second = np.triu_indices(matrix.shape[1], 1)
    return zip(matrix.T[first], matrix.T[second], strict=True)


def gwet(matrix, weights, categories=(0, 1, 2)):
    return irrCAC.raw.CAC(pd.DataFrame(matrix), weights=weights, categories=[*categories]).gwet()["est"][
        "coefficient_value"
    ]


# --- The toxicity class -------------------------------------------------------------------------------


def test_each_figure_of_the_toxicity_class_is_what_independent_packages_compute():
    judge(HARM)
    figures = section(make({}), "figures")
    expected = {
        "Fleiss' kappa": fleiss_kappa(aggregate_raters(CLASSES)[0]),
        "Krippendorff's alpha (nominal)": krippendorff.alpha(CLASSES.T, level_of_measurement="nominal"),
        "Krippendorff's alpha (ordinal)": krippendorff.alpha(CLASSES.T, level_of_measurement="ordinal"),
        "Krippendorff's alpha (interval)": krippendorff.alpha(CLASSES.T, level_of_measurement="interval"),
        "Mean pairwise Cohen's kappa": np.mean([cohen_kappa_score(*pair) for pair in pairs_of(CLASSES)]),
        "Full agreement": np.mean([len({*row}) == 1 for row in CLASSES]),
        "Majority agreement": np.mean([len({*row}) <= 2 for row in CLASSES]),
    }
    found = values(rows_by(figures.table, "figure"))
    assert_allclose([found[name] for name in expected], [*expected.values()], rtol=1e-12)
    gwets = [value for name, value in found.items() if "Gwet" in name]
    assert_allclose(gwets, [gwet(CLASSES, "identity"), gwet(CLASSES, "ordinal")], atol=1e-5)  # irrCAC rounds
    assert len(found) == len(expected) + 2


def test_each_figure_has_its_interval_and_what_it_rests_on():
    judge([*HARM, [1, 5, None], [5, None, None]])
    figures = section(make({}), "figures")
    assert figures.n == {"statements": 12, "annotators": 3, "annotations": 33}
    rows = rows_by(figures.table, "figure")
    for row in rows.values():
        assert row["value"].low <= row["value"].value <= row["value"].high
    numbers = ("statements", "annotators", "ratings", "left_out")
    assert [rows["Fleiss' kappa"][name] for name in numbers] == [10, 3, 30, 2]
    assert [rows["Krippendorff's alpha (ordinal)"][name] for name in numbers] == [11, 3, 32, 1]


def test_pairs_that_share_too_little_are_counted_and_left_out():
    workers = people(4)
    judge(HARM, workers=workers)
    judge([[1, None, None, 5]], workers=workers)
    figures = section(make({}), "figures")
    assert (
        "Mean pairwise Cohen's kappa: of 3 pairs of annotators. Left out: 1, who share fewer than 10 statements or put "
        "all that they share into one category."
    ) in figures.notes


def test_without_a_pair_that_enters_the_reason_alone_tells_of_pairs():
    judge(HARM[:5])
    figures = section(make({}), "figures")
    assert "No two raters share" in rows_by(figures.table, "figure")["Mean pairwise Cohen's kappa"]["value"].reason
    assert "pairs of annotators" not in " ".join(figures.notes)


def test_the_figures_of_the_paper_stand_beside_those_of_the_toxicity_class_alone():
    judge(HARM)
    figures = section(make({}), "figures")
    assert {name: row.get("paper") for name, row in rows_by(figures.table, "figure").items() if "paper" in row} == {
        "Fleiss' kappa": 0.46,
        "Krippendorff's alpha (nominal)": 0.64,
        "Krippendorff's alpha (ordinal)": 0.64,
        "Krippendorff's alpha (interval)": 0.64,
        "Full agreement": 0.5517,
        "Majority agreement": 0.934,
    }
    assert "does not say at which level its alpha of 0.64 is" in " ".join(figures.notes)
    of_question = section(make({"question": "lewd"}), "figures")
    assert "paper" not in {column.key for column in of_question.table.columns}
    assert of_question.paper == ""


def test_a_report_is_stored_as_json_and_comes_back():
    judge(HARM)
    report = make({})
    assert unpack(json.loads(json.dumps(pack(report)))) == report


# --- Questions at their own levels --------------------------------------------------------------------


def every_answer(place):
    return {question.key: question.values[place % len(question.values)] for question in QUESTIONS}


ANSWERS = [
    [every_answer(place * 2 + number * 3) for place in places]
    for number, places in enumerate([(0, 0, 1), (1, 1, 1), (2, 0, 2), (0, 0, 0), (1, 2, 0), (2, 2, 2)] * 2)
]


def codes(question):
    return np.array([[question.order.index(given[question.key]) for given in row] for row in ANSWERS])


def test_each_question_is_measured_at_its_own_level():
    judge(ANSWERS)
    rows = rows_by(section(make({}), "questions").table, "question")
    assert len(rows) == 10
    for question in QUESTIONS:
        row, matrix = rows[question.paper_name], codes(question)
        level = question.level.value
        assert row["level"] == level
        expected = krippendorff.alpha(matrix.T, level_of_measurement=level)
        assert_allclose(row["alpha"].value, expected, rtol=1e-12, err_msg=question.key)
        assert_allclose(row["fleiss_kappa"].value, fleiss_kappa(aggregate_raters(matrix)[0]), rtol=1e-12)
        assert_allclose(row["cohen_kappa"].value, np.mean([cohen_kappa_score(*pair) for pair in pairs_of(matrix)]))
        assert_allclose(row["gwet_ac1"].value, gwet(matrix, "identity", range(len(question.values))), atol=1e-5)
        assert ("gwet_ac2" in row) == (level == "ordinal")
        assert ("alpha_interval" in row) == question.is_scale
        assert (row["statements"], row["annotators"], row["ratings"]) == (12, 3, 36)


def test_a_question_can_be_looked_at_alone():
    judge(ANSWERS)
    report = make({"question": "which_group"})
    names = [row["figure"] for row in section(report, "figures").table.rows]
    assert "Krippendorff's alpha (nominal)" in names
    assert not [name for name in names if "ordinal" in name or "interval" in name or "AC2" in name]
    assert section(report, "figures").title == "Agreement on WHICHGROUP"
    of_group = section(report, "groups").table.rows[0]
    expected = krippendorff.alpha(codes(QUESTIONS[6]).T, level_of_measurement="nominal")
    assert_allclose(of_group["alpha_nominal"].value, expected, rtol=1e-12)


def test_equal_reasons_are_equal_sentences_without_the_statistic_and_the_answer():
    judge([[{"lewd": "maybe", "harmful_intent": 4}] * 2] * 2)
    table = section(make({}), "questions").table
    reasons = {cell.reason for row in table.rows for cell in row.values() if isinstance(cell, Undefined)}
    assert reasons == {
        "All ratings that enter are the same, so agreement cannot be told from chance. Report the share of full "
        "agreement."
    }


# --- In slices ----------------------------------------------------------------------------------------


def alpha(rows):
    return krippendorff.alpha((np.sign(np.array(rows) - 3) + 1).T, level_of_measurement="ordinal")


@pytest.mark.parametrize(
    ("key", "one", "other"),
    [
        ("groups", {"group": "asian"}, {"group": "women"}),
        ("methods", {"method": "topk"}, {"method": "written"}),
        ("labels", {"label": "benign"}, {"label": "toxic"}),
    ],
)
def test_agreement_in_each_slice_is_that_of_its_statements(key, one, other):
    workers = people(3)
    halves = HARM[:5] * 2, HARM[5:] * 2
    for fields, rows in zip((one, other), halves, strict=True):
        fields = {"group": make_group(fields["group"])} if "group" in fields else fields
        judge(rows, workers=workers, statement=fields)
    names = dict(TargetGroup.objects.values_list("slug", "name"))
    named = [names.get(value, {"topk": "top-k", "written": "written by a person"}.get(value, value)) for [value] in
             (one.values(), other.values())]  # fmt: skip
    found = section(make({}), key)
    rows = rows_by(found.table, "slice")
    assert {*rows} == {*named}
    for name, harm in zip(named, halves, strict=True):
        assert_allclose(rows[name]["alpha_ordinal"].value, alpha(harm), rtol=1e-12)
        assert rows[name]["alpha_ordinal"].low is not None
        assert rows[name]["statements"] == 10
    assert {len(trace["y"]) for trace in found.chart["data"]} == {2}


@pytest.mark.parametrize(
    ("apart", "expected"),
    [
        (timedelta(days=1), ["2026-03-02", "2026-03-03"]),
        (timedelta(days=40), ["2026-03-02", "2026-04-06"]),
        (timedelta(days=200), ["2026-03", "2026-09"]),
    ],
)
def test_time_is_told_by_day_week_or_month_as_it_is_long(apart, expected):
    workers = people(3)
    judge(HARM[:4], workers=workers)
    judge(HARM[4:], workers=workers, at=NOON + apart)
    rows = rows_by(section(make({}), "times").table, "slice")
    assert [*rows] == expected
    assert_allclose(rows[expected[1]]["alpha_ordinal"].value, alpha(HARM[4:]), rtol=1e-12)


def test_a_statement_stands_where_its_last_annotation_was_submitted():
    study, [early, late] = make_hit_type(), people(2)
    judge([[1], [5]], study=study, workers=[early])
    for hit in study.hits.all():
        give(hit, late, 1, at=NOON + timedelta(days=3))
    rows = rows_by(section(make({}), "times").table, "slice")
    assert [(name, row["statements"]) for name, row in rows.items()] == [("2026-03-05", 2)]


# --- Filters ------------------------------------------------------------------------------------------


def test_only_what_the_filters_leave_enters():
    study = make_hit_type()
    judge(HARM[:4], study=study)
    judge(HARM[4:])
    report = make({"study": HITType.objects.filter(pk=study.pk)})
    assert section(report, "figures").n["statements"] == 4
    rows = rows_by(section(report, "figures").table, "figure")
    assert_allclose(rows["Krippendorff's alpha (ordinal)"]["value"].value, alpha(HARM[:4]), rtol=1e-12)


# --- What cannot be told ------------------------------------------------------------------------------


def cells(report):
    return [cell for part in report.sections if part.table for row in part.table.rows for cell in row.values()]


def test_without_annotations_it_says_so():
    [only] = make({}).sections
    assert only.missing == "There are no annotations here. Publish a study, or import judgements."
    assert (only.table, only.n["annotations"]) == (None, 0)
    [filtered] = make({"label": ["toxic"]}).sections
    assert filtered.missing == "There are no annotations here. Publish a study, or choose other filters."


def test_imported_labels_say_nothing_of_agreement():
    HumanLabel.objects.create(generation=make_generation(), toxicity_ai=1, toxicity_human=1, intent=1)
    assert make({}).sections[0].missing == (
        "There are no single annotations here: 1 imported label holds only what annotators said together, not who said "
        "what. Publish a study, or import single annotations."
    )
    filtered = make({"label": ["toxic" if make_generation().label == "benign" else "benign"]})
    assert filtered.sections[0].missing == "There are no annotations here. Publish a study, or choose other filters."


def test_annotations_that_all_were_not_understood_are_told_of():
    judge([[{"not_understood": True}] * 2])
    [only] = make({}).sections
    assert only.missing == "No annotation here counts, of 2: 2 not understood. Have more statements judged."


def test_annotations_that_do_not_count_for_other_reasons_are_told_of():
    judge([[1, 1]], holds_place=False)
    assert make({}).sections[0].missing == (
        "No annotation here counts, of 2: 2 late, when the place was taken. Have more statements judged."
    )


def test_one_annotator_agrees_with_nobody():
    judge([[1], [5], [3]])
    report = make({})
    for row in section(report, "figures").table.rows:
        assert isinstance(row["value"], Undefined)
        assert "No statement has two ratings or more." in row["value"].reason
        assert row["pairable"] == 0
    assert not [cell for cell in cells(report) if isinstance(cell, Estimate)]


def test_one_category_cannot_be_told_from_chance():
    judge([[5, 5, 5]] * 3)
    rows = rows_by(section(make({}), "figures").table, "figure")
    for name in ("Fleiss' kappa", "Krippendorff's alpha (nominal)", "Krippendorff's alpha (ordinal)"):
        assert "All ratings that enter are the same" in rows[name]["value"].reason
    assert rows["Full agreement"]["value"].value == 1.0


def test_a_group_with_two_statements_has_its_figures_with_their_doubt():
    workers = people(3)
    judge(HARM[2:], workers=workers)
    judge(HARM[:2], workers=workers, statement={"group": make_group("asian")})
    report = make({})
    row = rows_by(section(report, "groups").table, "slice")[TargetGroup.objects.get(slug="asian").name]
    assert row["statements"] == 2
    assert row["full_agreement"].value == 0.5
    wilson = proportion_confint(1, 2, method="wilson")
    assert_allclose([row["full_agreement"].low, row["full_agreement"].high], wilson, rtol=1e-9)
    assert row["alpha_ordinal"].low is None


def test_every_table_says_of_which_figures_there_is_no_interval_and_why():
    workers = people(3)
    judge(HARM, workers=workers)
    judge(HARM[:2], workers=workers, statement={"group": make_group("asian")})
    report = make({})
    name = TargetGroup.objects.get(slug="asian").name
    few = "it takes at least 10 statements with two ratings or more."
    of_group = f"No interval of {name} (Fleiss' kappa, Krippendorff's alpha (ordinal), Gwet's AC2 (ordinal)): {few}"
    assert [of_group in note for note in section(report, "groups").notes].count(True) == 1
    assert not [note for note in section(report, "figures").notes if note.startswith("No interval")]
    judge([[5, 5, 5]] * 12, workers=workers, study=(alike := make_hit_type(max_assignments=3)))
    judge([[1, 1, 1]] * 12, workers=workers, study=alike)
    report = make({"study": HITType.objects.filter(pk=alike.pk)})
    for key, of in (("figures", "Fleiss' kappa, "), ("questions", "Toxicity class ("), ("methods", "top-k (")):
        [note] = [note for note in section(report, key).notes if "all resamples give the same value" in note]
        assert note.startswith(f"No interval of {of}")


def test_a_single_statement_has_shares_alone():
    judge([[1, 5, 1]])
    rows = rows_by(section(make({}), "figures").table, "figure")
    assert rows["Majority agreement"]["value"].value == 1
    assert rows["Majority agreement"]["value"].low > 0.2
    assert "Only one statement can enter" in rows["Fleiss' kappa"]["value"].reason
    assert "Only one statement can enter" in rows["Krippendorff's alpha (ordinal)"]["value"].reason


def test_resamples_without_a_value_are_told_of_in_every_table():
    judge([[1, 1, 1]] * 10 + [[5, 5, 1], [1, 5, 5]])
    report = make({})
    for key, of in (("figures", ""), ("questions", " of Toxicity class"), ("methods", " of top-k")):
        notes = " ".join(section(report, key).notes)
        assert f"Fleiss' kappa{of}: in " in notes
        assert "resamples all ratings were the same; they are left out of its interval. Doubt it." in notes
        assert "resamples all ratings of each pair of annotators were the same" in notes or key == "methods"
        assert not [note for note in section(report, key).notes if "AC2" in note and "Doubt" in note]


def test_annotations_that_do_not_count_are_told_of_beside_the_figures():
    judge(HARM)
    judge([[1]], status="rejected", decided_at=NOON, rejection_reason="Empty.", holds_place=False)
    assert "1 annotation does not count: 1 rejected." in section(make({}), "figures").notes


def test_what_kind_of_interval_each_figure_has_is_said():
    judge(HARM)
    assert (
        "Intervals: 95 %; of full and majority agreement Wilson's, of the mean of Cohen's kappa the basic bootstrap, "
        "of the others the percentile bootstrap, with 1,000 resamples of statements."
    ) in " ".join(section(make({}), "figures").notes)


def test_a_second_answer_of_the_same_person_to_the_same_statement_is_left_out():
    [worker] = people(1)
    [statement] = judge([[1]], workers=[worker])
    give(make_hit(generation=statement), worker, 5)
    figures = section(make({}), "figures")
    assert figures.n["annotations"] == 1
    assert "1 annotation is left out: the annotator had judged the same statement before" in " ".join(figures.notes)
    assert isinstance(figures.table.rows[0]["value"], Undefined)


# --- What each section says first ---------------------------------------------------------------------


def test_the_figures_lead_with_kappa_and_how_often_two_thirds_agree():
    judge(HARM)
    says = section(make({}), "figures").says
    rows = rows_by(section(make({}), "figures").table, "figure")
    kappa, majority = rows["Fleiss' kappa"]["value"], rows["Majority agreement"]["value"]
    assert says.startswith(f"Fleiss' kappa is {kappa.value:.3f} (".replace("-", "−"))
    assert " of 10 statements (paper: 0.46); at least two thirds of the annotators agree on " in says
    assert f"agree on {100 * majority.value:.1f}\u00a0% ({100 * majority.low:.1f} to " in says
    assert "of 10 statements (paper: 93.4\u00a0%). " in says


def test_figures_that_are_undefined_are_said_to_be():
    judge([[1], [5]])
    report = make({})
    assert section(report, "figures").says.startswith(
        "Fleiss' kappa is undefined (the table says why), and how often two thirds agree cannot be told."
    )
    assert section(report, "questions").says == (
        "Krippendorff's alpha at its level is undefined for every question: the table says why."
    )
    assert "is undefined for every day: the table says why." in section(report, "times").says


def test_kappa_may_be_undefined_where_shares_are_not():
    judge([[5, 5]] * 3)
    assert section(make({}), "figures").says.startswith(
        "Fleiss' kappa is undefined (the table says why); at least two thirds of the annotators agree on 100.0\u00a0% ("
    )


def test_slices_lead_with_the_lowest_and_the_highest_by_name():
    workers = people(3)
    judge(HARM[:5], workers=workers)
    judge(HARM[5:], workers=workers, statement={"group": make_group("asian")})
    shown = section(make({}), "groups")
    lowest, highest = sorted(shown.table.rows, key=lambda row: row["alpha_ordinal"].value)
    start = "Agreement on the toxicity class: Krippendorff's alpha (ordinal) is lowest for "
    assert shown.says.startswith(f"{start}{lowest['slice']}, ")
    assert f" and highest for {highest['slice']}, " in shown.says
    assert f"{highest['alpha_ordinal'].value:.3f}".replace("-", "−") in shown.says
    only = section(make({}), "methods")
    assert only.says.endswith("for top-k, the only method.")


def test_equal_and_missing_figures_of_slices_are_told_truly():
    column = column_of(Statistic.ALPHA_ORDINAL)
    name, none = column.label, Undefined("No.")
    one, two = Estimate(0.25, 0.1, 0.4), Estimate(0.5)
    assert lowest_and_highest({"a": one, "b": none}, column, "group") == (
        f"{name} is 0.250 (0.100 to 0.400) for a. It is undefined for 1 of 2 groups: the table says why."
    )
    assert lowest_and_highest({"a": two, "b": two}, column, "group") == f"{name} is 0.500 for each of 2 groups."
    assert lowest_and_highest({"a": one, "b": two, "c": two, "d": none}, column, "group") == (
        f"{name} is lowest for a, 0.250 (0.100 to 0.400), and highest for c and 1 other, 0.500. It is undefined for "
        "1 of 4 groups: the table says why."
    )
