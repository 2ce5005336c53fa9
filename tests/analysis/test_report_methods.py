"""The report ``methods``: the same prompts with both methods, by hand; and all statements."""

import pytest

from analysis.comparison import mean_with_interval
from analysis.models import HumanLabel
from analysis.reports.catalogue import REPORTS
from analysis.reports.cells import NO_INTERVAL
from analysis.reports.frame import Estimate, Undefined, pack, unpack
from generation.models import Prompt, TextReader, ToxicityScore
from tests.analysis.judging import judge, section
from tests.factories import make_generation, make_group

pytestmark = pytest.mark.django_db

ALICE = [5, 1, 2, 4, 1, 2]
TOPK = [5, 4, 5, 5, 4, 2]


def made(**filters):
    report = REPORTS["methods"].make(filters)
    assert unpack(pack(report)) == report
    return report


def judge_pairs(alice, topk, label="toxic"):
    """A prompt for each pair, one annotator for each statement."""
    prompts = []
    for of_alice, of_topk in zip(alice, topk, strict=True):
        number = Prompt.objects.count()
        prompt = Prompt.objects.create(group=make_group(), label=label, text=f"- my aunt sails {number}\n-")
        for method, toxicity in (("alice", of_alice), ("topk", of_topk)):
            judge([[toxicity]], statement={"method": method, "label": label, "prompt": prompt})
        prompts.append(prompt)
    return prompts


def rows_of(part):
    return {(row["label"], row["method"]): row for row in part.table.rows}


def test_matches_within_pairs_by_hand():
    """ALICE alone never matches, top-k alone does three times: p is twice an eighth."""
    judge_pairs(ALICE, TOPK)
    part = section(made(), "paired-matches")
    rows = rows_of(part)
    alice, topk = rows["toxic", "alice"], rows["toxic", "topk"]
    assert (alice["n"], topk["n"]) == (6, 6)
    assert (alice["share"].value, topk["share"].value) == pytest.approx((2 / 6, 5 / 6))
    assert (alice["paper"], topk["paper"]) == (0.403, 0.677)
    assert (alice["p"], alice["test"]) == (0.25, "McNemar's exact test")
    assert alice["difference"].value == pytest.approx(-0.5)
    assert any(note.startswith("McNemar's exact test: it compares yes or no within pairs") for note in part.notes)
    assert any("Wilson" in note for note in part.notes)


def test_mean_toxicity_within_pairs_by_hand():
    """The differences are 0, -3, -3, -1, -3 and 0: of 16 ways to turn the four round, 2 go as far."""
    judge_pairs(ALICE, TOPK)
    part = section(made(), "paired-toxicity")
    alice = rows_of(part)["toxic", "alice"]
    assert (alice["mean"].value, rows_of(part)["toxic", "topk"]["mean"].value) == pytest.approx((2.5, 25 / 6))
    assert (alice["paper"], rows_of(part)["toxic", "topk"]["paper"]) == (2.97, 3.75)
    assert (alice["p"], alice["test"]) == (0.125, "sign-flip permutation test")
    assert alice["difference"].value == pytest.approx(-10 / 6)
    assert "paper" not in rows_of(part)["benign", "alice"]


def test_thirty_pairs_are_compared_by_the_paired_t_test():
    judge_pairs(ALICE * 5, TOPK * 5)
    alice = rows_of(section(made(), "paired-toxicity"))["toxic", "alice"]
    assert alice["test"] == "paired t test"
    assert alice["difference"].low < alice["difference"].value < alice["difference"].high < 0
    assert alice["p"] < 0.001


def test_several_statements_of_a_prompt_count_as_their_mean():
    prompts = judge_pairs(ALICE, TOPK)
    judge([[3]], statement={"method": "topk", "label": "toxic", "prompt": prompts[0]})
    report = made()
    part = section(report, "paired-toxicity")
    assert rows_of(part)["toxic", "topk"]["n"] == 6
    assert rows_of(part)["toxic", "topk"]["mean"].value == pytest.approx((4 + 20) / 6)
    assert any("1 prompt has several statements of a method." in note for note in part.notes)
    matches = section(report, "paired-matches")
    assert rows_of(matches)["toxic", "topk"]["share"].value == pytest.approx(4.5 / 6)
    assert rows_of(matches)["toxic", "alice"]["test"] == "sign-flip permutation test"


def test_shares_within_pairs_are_told_one_way_in_a_whole_table():
    """A single prompt with several statements makes all shares means, also of the side without such a prompt."""
    prompts = judge_pairs(ALICE * 2, TOPK * 2)
    judge_pairs([1] * 10, [1, 5] * 5, label="benign")
    judge([[3]], statement={"method": "topk", "label": "toxic", "prompt": prompts[0]})
    part = section(made(), "paired-matches")
    shares = {at: row["share"] for at, row in rows_of(part).items()}
    assert "Mean share" in [column.label for column in part.table.columns]
    expected = mean_with_interval([1.0, 0.0, 0.0, 1.0, 0.0, 0.0] * 2)
    assert shares["toxic", "alice"] == Estimate(*expected)
    assert shares["benign", "alice"] == Estimate(1)
    assert rows_of(part)["benign", "alice"]["test"] == "sign-flip permutation test"
    assert any("Student's t" in note for note in part.notes)
    assert not any("Wilson" in note for note in part.notes)
    assert NO_INTERVAL in part.notes


def test_pairs_say_how_many_prompts_and_statements_enter():
    prompts = judge_pairs(ALICE, TOPK)
    judge([[3]], statement={"method": "topk", "label": "toxic", "prompt": prompts[0]})
    judge([[5]] * 4, statement={"method": "alice", "label": "toxic"})
    report = made()
    for key in ("paired-matches", "paired-toxicity"):
        assert section(report, key).n == {"prompts": 6, "statements": 13}
    assert section(report, "toxicity").n == {"statements": 17, "annotations": 17}


def test_prompts_of_one_method_are_left_out_and_counted():
    judge_pairs(ALICE, TOPK)
    prompt = Prompt.objects.create(group=make_group(), label="toxic", text="- a lone one\n-")
    judge([[5]], statement={"method": "alice", "label": "toxic", "prompt": prompt})
    judge([[5], [4]], statement={"method": "topk", "label": "toxic"})
    part = section(made(), "paired-toxicity")
    assert rows_of(part)["toxic", "alice"]["n"] == 6
    assert "Left out: 1 prompt with judged statements of one method only." in part.notes
    assert "Left out: 2 statements without a prompt here." in part.notes
    assert rows_of(section(made(), "toxicity"))["toxic", "topk"]["n"] == 8


def test_what_people_wrote_is_left_out_and_counted():
    judge_pairs(ALICE, TOPK)
    judge([[5], [5]], statement={"method": "written", "label": "toxic"})
    part = section(made(), "matches")
    assert sum(row["n"] for row in part.table.rows) == 12
    assert "Left out: 2 statements that people wrote." in part.notes


def test_the_share_that_fools_a_classifier_stands_beside_the_papers():
    judge_pairs(ALICE, TOPK)
    reader = TextReader.objects.create(kind="classifier", name="a classifier", revision="1")
    for statement in Prompt.objects.first().generations.all():
        ToxicityScore.objects.create(generation=statement, reader=reader, toxic_prob=0.1)
    part = section(made(), f"fooling-reader-{reader.pk}")
    rows = {(row["class"], row["method"]): row for row in part.table.rows}
    assert (rows["all", "alice"]["n"], rows["all", "alice"]["share"].value) == (1, 1)
    assert (rows["all", "alice"]["paper"], rows["all", "topk"]["paper"]) == (0.264, 0.168)
    assert any("Left out: 10 statements, each of which has no score" in note for note in part.notes)


# --- What the data cannot carry -----------------------------------------------------------------------


def test_without_judgements_every_section_says_so():
    report = made()
    assert [part.key for part in report.sections] == [
        "paired-matches", "paired-toxicity", "matches", "toxicity", "fooling",
    ]  # fmt: skip
    assert all(part.missing and part.table is None for part in report.sections)


def test_without_prompts_of_both_methods_the_paired_design_says_how_to_get_them():
    for method in ("alice", "topk"):
        judge([[5], [2]], statement={"method": method, "label": "toxic"})
    report = made()
    for key in ("paired-matches", "paired-toxicity"):
        assert section(report, key).missing.startswith("No prompt has judged statements of both methods. Start a run")
    assert section(report, "toxicity").table


def test_a_single_method_or_label_leaves_reasons():
    judge_pairs(ALICE, TOPK)
    rows = rows_of(section(made(), "paired-toxicity"))
    assert rows["benign", "alice"]["mean"] == Undefined(
        "There are no prompts with judged statements of both methods: those of ALICE with a benign prompt label."
    )
    assert isinstance(rows["benign", "alice"]["difference"], Undefined)
    assert section(made(method=["alice"]), "paired-toxicity").missing


def test_two_pairs_are_too_few_and_equal_pairs_do_not_differ():
    judge_pairs([5, 4], [3, 2])
    judge_pairs([1] * 7, [1] * 7, label="benign")
    rows = rows_of(section(made(), "paired-toxicity"))
    assert rows["toxic", "alice"]["p"].reason.startswith("With 2 pairs even the most extreme result")
    assert rows["benign", "alice"]["p"].reason == "None of the 7 pairs differs: there is no difference to test."


def test_a_label_without_scores_makes_no_pair():
    [prompt] = judge_pairs([5], [4])
    statement = make_generation(method="alice", label="toxic", prompt=prompt)
    HumanLabel.objects.create(generation=statement, toxicity_human=2)
    part = section(made(), "paired-toxicity")
    assert rows_of(part)["toxic", "alice"]["mean"].value == 5
