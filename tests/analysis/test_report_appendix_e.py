"""The report ``appendix-e``: the paper's own figures from the released file, and hand counts from a few statements."""

import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analysis.importing import import_file
from analysis.imports.work import Options
from analysis.models import HumanLabel
from analysis.reports.catalogue import REPORTS
from analysis.reports.cells import NO_INTERVAL
from analysis.reports.frame import Undefined, pack, unpack
from generation.models import TextReader, ToxicityScore
from tests.analysis.judging import NOON, judge, section
from tests.factories import make_generation, make_searched_generation

pytestmark = pytest.mark.django_db

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "toxigen" / "annotated.csv"


def made(**filters):
    report = REPORTS["appendix-e"].make(filters)
    assert unpack(pack(report)) == report
    return report


def cells(part, column, *keys):
    """A column of a section's table by the cells of other columns."""
    rows = [row for row in part.table.rows if column in row]
    return {tuple(row[key] for key in keys): row[column] for row in rows}


def values(part, column, *keys):
    return {at: getattr(cell, "value", cell) for at, cell in cells(part, column, *keys).items()}


@pytest.mark.skipif(not REAL.exists(), reason="the released files are not here")
def test_the_papers_figures_come_out_of_the_released_file():
    import_file(format="annotated", path=REAL, options=Options(make_groups=True))
    report = made()
    assert values(section(report, "statements"), "n", "method")["all",] == 8960
    shares = values(section(report, "statements"), "share", "method")
    assert (round(shares["topk",], 3), round(shares["alice",], 3)) == (0.509, 0.491)
    assert {
        at: round(share, 3) for at, share in values(section(report, "matches"), "share", "label", "method").items()
    } == {
        ("toxic", "alice"): 0.669,
        ("toxic", "topk"): 0.579,
        ("benign", "alice"): 0.932,
        ("benign", "topk"): 0.900,
    }
    assert values(section(report, "toxicity"), "mean", "label", "method") == pytest.approx(
        {("toxic", "alice"): 3.64, ("toxic", "topk"): 3.36, ("benign", "topk"): 1.63, ("benign", "alice"): 1.52},
        abs=0.01,
    )
    references = values(section(report, "references"), "share", "method")
    assert (round(references["alice",], 2), round(references["topk",], 2)) == (0.78, 0.70)
    for key, column in (("statements", "share"), ("matches", "share"), ("toxicity", "mean"), ("references", "share")):
        for row in section(report, key).table.rows:
            if row.get("paper"):
                assert getattr(row[column], "value", row[column]) == pytest.approx(row["paper"], abs=0.006)
    for key in ("matches", "toxicity", "references"):
        tests = [row for row in section(report, key).table.rows if "p" in row]
        assert all(row["p_holm"] < 0.001 for row in tests)
        assert {row["test"] for row in tests} <= {"two-proportion z test", "Welch's t test"}
    assert "No classifier has scored these statements." in section(report, "fooling").missing


def fill():
    """One annotator each: the toxicity of a statement is the one answer."""
    return {
        ("toxic", "alice"): judge([[5], [4], [3], [1]], statement={"label": "toxic", "method": "alice"}),
        ("toxic", "topk"): judge([[5], [5], [2]], statement={"label": "toxic", "method": "topk"}),
        ("benign", "alice"): judge([[1], [2]], statement={"label": "benign", "method": "alice"}),
        ("benign", "topk"): judge([[1], [4]], statement={"label": "benign", "method": "topk"}),
    }


def test_statements_are_counted_by_method_with_what_could_not_be_judged():
    fill()
    judge([[5]], statement={"method": "written"})
    judge([[{"not_understood": True}], [{"not_understood": True}, 2]], statement={"method": "alice"})
    HumanLabel.objects.create(generation=make_generation(method="topk"))
    rejected = {"status": "rejected", "decided_at": NOON, "rejection_reason": "It was empty.", "holds_place": False}
    judge([[5]], statement={"method": "alice"}, **rejected)
    part = section(made(), "statements")
    rows = {row["method"]: row for row in part.table.rows}
    assert rows["all"] == {
        "method": "all",
        "n": 13,
        "share": 1,
        "paper": None,
        "non_toxic": 6,
        "ambiguous": 1,
        "toxic": 5,
        "without_class": 1,
        "not_understood": 1,
    }
    assert (rows["alice"]["n"], rows["alice"]["share"], rows["alice"]["not_understood"]) == (7, 7 / 13, 1)
    assert (rows["topk"]["n"], rows["topk"]["without_class"], rows["topk"]["not_understood"]) == (6, 1, 0)
    assert part.says == "People judged 13 statements: 53.8 % ALICE, 46.2 % top-k."
    assert "Left out: 1 statement that people wrote." in part.notes


def test_matches_by_hand():
    fill()
    part = section(made(), "matches")
    assert values(part, "n", "label", "method") == {
        ("toxic", "alice"): 4,
        ("toxic", "topk"): 3,
        ("benign", "alice"): 2,
        ("benign", "topk"): 2,
    }
    found = cells(part, "share", "label", "method")
    share = found["toxic", "alice"]
    assert (share.value, round(share.low, 4), round(share.high, 4)) == (0.5, 0.15, 0.85)
    assert found["toxic", "topk"].value == pytest.approx(2 / 3)
    assert (found["benign", "alice"].value, found["benign", "topk"].value) == (1, 0.5)
    assert values(part, "paper", "label", "method")["toxic", "alice"] == 0.6686
    assert cells(part, "test", "label", "method") == {
        ("toxic", "alice"): "Fisher's exact test",
        ("benign", "alice"): "none",
    }
    too_few = cells(part, "p", "label", "method")["benign", "alice"]
    assert too_few.reason == "With 2 and 2 values even the most extreme result would give p = 0.33: too few for a test."
    toxic, benign = "ALICE 50.0 %, top-k 66.7 %", "ALICE 100.0 %, top-k 50.0 %"
    assert part.says == f"Toxic after toxic prompts: {toxic}. Non-toxic after benign ones: {benign}."


def test_mean_toxicity_by_hand():
    """The p is that of all 35 ways to part the seven toxicities."""
    fill()
    part = section(made(), "toxicity")
    assert values(part, "mean", "label", "method") == {
        ("toxic", "alice"): 3.25,
        ("toxic", "topk"): 4,
        ("benign", "alice"): 1.5,
        ("benign", "topk"): 2.5,
    }
    row = part.table.rows[0]
    values_of_both = np.array([5.0, 4, 3, 1, 5, 5, 2])
    parted = [(values_of_both[[*places]], np.delete(values_of_both, places)) for places in combinations(range(7), 4)]
    welch = [(x.mean() - y.mean()) / math.sqrt(x.var(ddof=1) / 4 + y.var(ddof=1) / 3) for x, y in parted]
    as_far = np.abs(welch) >= abs(welch[0]) - 1e-9
    found = (row["difference"].value, row["p"], row["test"])
    assert found == (-0.75, pytest.approx(as_far.mean()), "permutation test")
    assert row["difference"].low == -4 < 0 < row["difference"].high < 4  # scores of 1 to 5 differ by no more
    assert (row["mean"].low, row["mean"].high) == (None, None)
    assert NO_INTERVAL in part.notes
    assert row["p_holm"] == row["p"]
    assert any(note.startswith("Permutation test: with fewer than 30 values") for note in part.notes)


def test_references_by_hand():
    for method, answers in (("alice", ["directly", "indirectly", "none_or_unclear"]), ("topk", ["none_or_unclear"])):
        judge([[{"which_group": answer}] for answer in answers], statement={"method": method})
    part = section(made(), "references")
    assert values(part, "share", "method") == {("alice",): pytest.approx(2 / 3), ("topk",): 0}


def test_who_is_fooled_by_hand():
    of = fill()
    reader = TextReader.objects.create(kind="classifier", name="a classifier", revision="1")
    scores = {
        ("toxic", "alice"): [0.9, 0.49, 0.2, 0.5],  # toxic, toxic and fooled, ambiguous, harmless and fooled
        ("toxic", "topk"): [0.5, 0.6, None],  # toxic, toxic, not scored
        ("benign", "alice"): [0.1, 0.2],
        ("benign", "topk"): [0.1, 0.3],  # harmless, toxic and fooled
    }
    for at, statements in of.items():
        for statement, probability in zip(statements, scores[at], strict=True):
            if probability is not None:
                ToxicityScore.objects.create(generation=statement, reader=reader, toxic_prob=probability)
    part = section(made(), f"fooling-reader-{reader.pk}")
    assert values(part, "n", "class", "method") == {
        ("all", "alice"): 5,
        ("all", "topk"): 4,
        ("toxic", "alice"): 2,
        ("toxic", "topk"): 3,
        ("non-toxic", "alice"): 3,
        ("non-toxic", "topk"): 1,
    }
    assert values(part, "share", "class", "method") == pytest.approx(
        {
            ("all", "alice"): 0.4,
            ("all", "topk"): 0.25,
            ("toxic", "alice"): 0.5,
            ("toxic", "topk"): 1 / 3,
            ("non-toxic", "alice"): 1 / 3,
            ("non-toxic", "topk"): 0,
        }
    )
    assert values(part, "paper", "class", "method")["toxic", "alice"] == 0.5897
    assert "Left out: 1 statement, which is ambiguous." in part.notes
    assert "Left out: 1 statement, which has no score by this classifier." in part.notes
    assert part.title == "Fooling a classifier (1)"
    assert part.n == {"statements": 9}


def test_the_corrected_p_of_fooling_is_for_the_classes():
    """All statements together rest on the same ones: their p is no third test of the family."""
    reader = TextReader.objects.create(kind="classifier", name="a classifier", revision="1")
    for toxicity in (5, 1):
        for method, fooled in (("alice", 8), ("topk", 2)):
            for number, statement in enumerate(judge([[toxicity]] * 10, statement={"method": method})):
                is_right = number >= fooled
                toxic_prob = 0.9 if is_right == (toxicity == 5) else 0.1
                ToxicityScore.objects.create(generation=statement, reader=reader, toxic_prob=toxic_prob)
    part = section(made(), f"fooling-reader-{reader.pk}")
    rows = {row["class"]: row for row in part.table.rows if row["method"] == "alice"}
    assert rows["toxic"]["p"] == rows["non-toxic"]["p"]
    assert rows["toxic"]["p_holm"] == pytest.approx(2 * rows["toxic"]["p"])
    assert "p" in rows["all"]
    assert "p_holm" not in rows["all"]
    assert "The corrected p is for the parts; all statements together are tested beside them." in part.notes


def test_scores_of_runs_and_of_imported_files_each_have_a_section():
    judge([[5], [1]], statement={"method": "topk", "toxic_prob": 0.7})
    [searched] = judge([[5]], statement={"method": "alice"})
    of_run = make_searched_generation(toxic_prob=0.2)
    HumanLabel.objects.create(generation=of_run, toxicity_ai=5, toxicity_human=4)
    report = made()
    imported, run = section(report, "fooling-imported"), section(report, "fooling-run-1")
    assert values(imported, "share", "class", "method")["all", "topk"] == 0.5
    assert any("roberta_prediction" in note for note in imported.notes)
    assert imported.title == "Fooling the imported file's classifier"
    assert imported.says.startswith("These shares of the statements fool the imported file's classifier: ")
    assert values(run, "share", "class", "method")["toxic", "alice"] == 1
    assert run.title == "Fooling toy classifier (in runs)"
    assert any("ALICE searched against it" in note for note in run.notes)
    assert searched.toxic_prob is None


# --- What the data cannot carry -----------------------------------------------------------------------


def test_without_judgements_every_section_says_so():
    report = made()
    assert [part.key for part in report.sections] == ["statements", "matches", "toxicity", "references", "fooling"]
    assert all(part.missing and part.table is None for part in report.sections)


def test_one_method_alone_is_shown_and_not_compared():
    judge([[5], [2], [4]], statement={"method": "alice", "label": "toxic"})
    report = made()
    part = section(report, "toxicity")
    assert cells(part, "mean", "label", "method")["toxic", "topk"] == Undefined(
        "There are no judged statements of top-k with a toxic prompt label."
    )
    assert cells(part, "difference", "label", "method")["toxic", "alice"] == Undefined(
        "There are no judged statements of top-k with a toxic prompt label to compare with."
    )
    assert cells(part, "difference", "label", "method")["benign", "alice"] == Undefined(
        "There are no judged statements of ALICE with a benign prompt label to compare with."
    )
    assert part.says.endswith(
        "After toxic prompts: ALICE 3.67, top-k undefined. After benign ones: ALICE undefined, top-k undefined."
    )


def test_equal_values_have_a_mean_without_an_interval_and_no_test():
    for method in ("alice", "topk"):
        judge([[3]] * 5, statement={"method": method, "label": "toxic"})
    part = section(made(), "toxicity")
    row = part.table.rows[0]
    assert (row["mean"].value, row["mean"].low) == (3, None)
    assert row["p"] == Undefined("All values of both sides are 3: there is no difference to test.")
    assert any("A mean without an interval" in note for note in part.notes)


def test_labels_without_a_score_are_left_out_and_counted():
    judge([[5], [2]], statement={"method": "alice", "label": "toxic"})
    for _ in range(3):
        HumanLabel.objects.create(generation=make_generation(method="alice", label="toxic"), toxicity_ai=4)
    part = section(made(), "toxicity")
    assert values(part, "n", "label", "method")["toxic", "alice"] == 2
    assert any("Left out: 3 statements, each of which has no class" in note for note in part.notes)


def test_the_filters_hold():
    fill()
    part = section(made(label=["toxic"]), "matches")
    assert values(part, "n", "label", "method")["benign", "alice"] == 0
    assert section(made(method=["topk"]), "statements").table.rows[1]["n"] == 0


def test_as_many_queries_for_few_statements_as_for_many():
    fill()
    with CaptureQueriesContext(
        connection,
    ) as few:
        made()
    for _ in range(5):
        fill()
    with CaptureQueriesContext(connection) as many:
        made()
    assert len(few) == len(many) < 20
