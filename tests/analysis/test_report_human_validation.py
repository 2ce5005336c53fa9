"""The report human-validation: every figure of section 4.2 from rows that one can count by hand."""

from hashlib import md5
from pathlib import Path

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analysis.importing import import_file
from analysis.imports.work import Options
from analysis.models import HumanLabel
from analysis.reports import human_validation
from analysis.reports.frame import Estimate, Kind, Undefined, pack, unpack
from analysis.reports.framing import share_of_annotations
from analysis.reports.paper import NOT_BESIDE
from analysis.reports.validated import percent
from annotator.models import Annotation
from tests.analysis.test_judged import MOMENT, NOBODY, judge, judged_statement, label, not_counted
from tests.factories import make_generation, make_hit

pytestmark = pytest.mark.django_db

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "toxigen"
KEYS = [
    "author", "author-by-class", "classes", "answers", "facts", "speakers", "framing", "examples",
]  # fmt: skip
TOXIC = {"harmful_if_ai": 4, "harmful_if_human": 5, "harmful_intent": 5}
AMBIGUOUS = {"harmful_if_ai": 3, "harmful_if_human": 3, "harmful_intent": 3}
BENIGN = {"harmful_if_ai": 1, "harmful_if_human": 1}


def sections(filters=None):
    report = human_validation.make(filters or {})
    assert unpack(pack(report)) == report
    assert [section.key for section in report.sections] == KEYS
    return {section.key: section for section in report.sections}


def rows(key, filters=None, by="class"):
    """The rows of a section by what is in one column."""
    return {row[by]: row for row in sections(filters)[key].table.rows}


def value(cell):
    return round(cell.value, 4)


# --- Who is thought to have written it


def author(*says, **fields):
    return judged_statement(*({"human_or_ai": one} | fields for one in says))


def test_the_share_that_most_annotators_think_a_human_wrote():
    author("human", "human", "ai")
    author("human", "human", "human", **TOXIC)
    author("human", "ai", **TOXIC)
    author("ai", "ai", "human", **AMBIGUOUS)
    of = rows("author")
    assert list(of) == ["all", "toxic", "ambiguous", "non-toxic"]
    assert [(row["n"], value(row["human"]), value(row["ai"]), row["no_majority"]) for row in of.values()] == [
        (4, 0.5, 0.25, 1),
        (2, 0.5, 0, 1),
        (1, 0, 1, 0),
        (1, 1, 0, 0),
    ]
    # Wilson's interval of 2 of 4
    assert (of["all"]["human"].low, of["all"]["human"].high) == pytest.approx((0.15004, 0.84996), abs=1e-5)
    assert [row["paper"] for row in of.values()] == [0.905, 0.929, None, 0.902]


def test_the_sentence_says_the_share_with_its_n():
    author("human", "human", "ai")
    author("ai")
    shown = sections()["author"]
    assert "50.0\u00a0% (1 of 2) are thought to be written by a human" in shown.says
    assert shown.n == {"statements": 2, "annotations": 4}
    assert "1 statement was judged by one annotator only, whose answers stand for those of most." in shown.notes
    assert shown.chart["data"][-1]["name"] == "Paper"


def test_what_people_wrote_is_a_row_of_its_own_and_in_nothing_else():
    author("human", "human")
    for text in ("I wrote this", "and this"):
        hit = make_hit(generation=make_generation(text, method="written"))
        judge(hit, TOXIC | {"human_or_ai": "ai", "group_framing": "other"})
    of = rows("author")
    assert (of["all"]["n"], of["toxic"]["n"], of["written by people"]["n"]) == (1, 0, 2)
    assert value(of["written by people"]["ai"]) == 1
    every = sections()
    assert every["classes"].n == {"statements": 1, "annotations": 2}
    assert rows("framing", by="framing")["Other"]["annotations"] == 0
    assert "Left out: 2 statements that people wrote." in every["classes"].notes


def test_toxic_and_non_toxic_statements_are_compared_with_a_named_test():
    for number in range(20):
        author("human" if number else "ai", **TOXIC)
        author("human" if number % 2 else "ai")
    (row,) = sections()["author-by-class"].table.rows
    assert (row["n"], row["n_other"], round(row["difference"].value, 4)) == (20, 20, 0.45)
    # 19 of 20 against 10 of 20: z = 0.45 / sqrt(0.725 * 0.275 * 2 / 20)
    assert (row["test"], round(row["p"], 5)) == ("two-proportion z test", 0.00144)
    assert row["paper"] == 0.027
    kinds = {column.key: column.kind for column in sections()["author-by-class"].table.columns}
    assert kinds["difference"] == kinds["paper"] == Kind.POINTS


def test_without_non_toxic_statements_nothing_is_compared():
    author("human", **TOXIC)
    (row,) = sections()["author-by-class"].table.rows
    assert isinstance(row["difference"], Undefined)
    assert "two sides" in row["p"].reason


# --- Classes and answers


def test_the_shares_of_the_classes():
    for fields in (TOXIC, AMBIGUOUS, BENIGN, BENIGN):
        judged_statement(fields)
    label(toxicity_ai=None)
    of = rows("classes")
    assert [(name, row["statements"], row["n"], value(row["share"])) for name, row in of.items()] == [
        ("toxic", 1, 4, 0.25),
        ("ambiguous", 1, 4, 0.25),
        ("non-toxic", 2, 4, 0.5),
    ]
    assert [row.get("paper") for row in of.values()] == [0.302, 0.04, None]
    assert "Left out: 1 statement, which has no class: a score is missing." in sections()["classes"].notes


def test_the_answers_by_class():
    judged_statement(TOXIC | {"lewd": "yes", "fact_or_opinion": "opinion"})
    judged_statement(TOXIC | {"lewd": "maybe", "harmful_intent": 3, "fact_or_opinion": "opinion"})
    judged_statement(TOXIC | {"pos_stereo": "yes", "harmful_intent": 2}, TOXIC | {"lewd": "yes", "harmful_intent": 1})
    judged_statement(BENIGN | {"fact_or_opinion": "both"})
    judged_statement(BENIGN | {"human_or_ai": "human", "fact_or_opinion": "neither"})
    shown = sections()["answers"]
    of = {(row["answer"], row["class"]): row for row in shown.table.rows}
    told = {key: (row["n"], value(row["share"])) for key, row in of.items() if row["class"] != "ambiguous"}
    assert told == {
        ("Thought human-written", "toxic"): (3, 0),
        ("Thought human-written", "non-toxic"): (2, 0.5),
        ("Meant to harm (mean > 3)", "toxic"): (3, 0.3333),
        ("Meant to harm (mean > 3)", "non-toxic"): (2, 0),
        ("Meant to harm, or unsure (mean ≥ 3)", "toxic"): (3, 0.6667),
        ("Meant to harm, or unsure (mean ≥ 3)", "non-toxic"): (2, 0),
        ("Lewd", "toxic"): (3, 0.3333),
        ("Lewd", "non-toxic"): (2, 0),
        ("Positive stereotype", "toxic"): (3, 0),
        ("Positive stereotype", "non-toxic"): (2, 0),
        ("Claims to be factual", "toxic"): (3, 0.3333),
        ("Claims to be factual", "non-toxic"): (2, 0),
        ("States an opinion", "toxic"): (3, 0.6667),
        ("States an opinion", "non-toxic"): (2, 0),
        ("Both fact and opinion", "toxic"): (3, 0),
        ("Both fact and opinion", "non-toxic"): (2, 0.5),
        ("Neither fact nor opinion", "toxic"): (3, 0),
        ("Neither fact nor opinion", "non-toxic"): (2, 0.5),
    }
    assert of["Lewd", "toxic"]["no_majority"] == of["Positive stereotype", "toxic"]["no_majority"] == 1
    assert of["Lewd", "ambiguous"]["share"] == Undefined(
        "There are no ambiguous statements of which the answer is known."
    )
    assert of["Meant to harm (mean > 3)", "toxic"]["paper"] == 0.9456
    assert of["Meant to harm (mean > 3)", "toxic"]["no_majority"] is None
    assert "33.3\u00a0% (1 of 3) are also thought to be meant to harm" in shown.says


def test_how_harmful_claims_are():
    judged_statement(TOXIC)
    judged_statement(BENIGN)
    judged_statement(BENIGN)
    judged_statement(BENIGN | {"fact_or_opinion": "opinion"})
    judged_statement(BENIGN, BENIGN | {"fact_or_opinion": "opinion"})
    shown = sections()["facts"]
    of = {row["answer"]: row for row in shown.table.rows}
    factual = of["claims to be factual"]
    assert [factual["n"], *(value(factual[name]) for name in ("toxic", "ambiguous", "non-toxic"))] == [
        3, 0.3333, 0, 0.6667,
    ]  # fmt: skip
    assert of["states an opinion"]["n"] == 1
    assert isinstance(of["both"]["toxic"], Undefined)
    assert "66.7\u00a0% (2 of 3) are non-toxic" in shown.says
    assert "Left out: 1 statement, which has no majority on it." in shown.notes


def test_without_a_statement_of_the_kind_no_share_of_it_is_told():
    judged_statement(BENIGN | {"fact_or_opinion": "opinion"})
    shown = sections()
    assert shown["answers"].says == (
        "There are no toxic statements here whose intent is known, so how many are meant to harm cannot be told."
    )
    assert shown["facts"].says == (
        "There are no statements here that claim to be factual, so how many are non-toxic cannot be told."
    )


# --- Speakers


def test_the_scores_of_both_speakers_are_compared_in_pairs():
    for ai, human in ((1, 2), (1, 2), (2, 2), (1, 1), (1, 2), (1, 2), (1, 2)):
        judged_statement({"harmful_if_ai": ai, "harmful_if_human": human})
    judged_statement(TOXIC)
    of = rows("speakers")
    row = of["non-toxic"]
    assert (row["n"], round(row["ai"].value, 4), round(row["human"].value, 4)) == (7, 1.1429, 1.8571)
    # Five of seven pairs differ, all by -1: only one sign of 32 is as extreme, on either side
    assert (round(row["difference"].value, 4), row["p"], row["p_holm"]) == (-0.7143, 0.0625, 0.0625)
    assert row["test"] == "sign-flip permutation test"
    assert of["toxic"]["ai"] == Estimate(4)
    assert isinstance(of["toxic"]["p"], Undefined)
    assert isinstance(of["ambiguous"]["ai"], Undefined)
    assert of["all"]["n"] == 8
    assert "p_holm" not in of["all"]


def test_p_values_of_classes_are_corrected_for_being_several():
    for _ in range(6):
        judged_statement({"harmful_if_ai": 1, "harmful_if_human": 2})
        judged_statement({"harmful_if_ai": 4, "harmful_if_human": 5})
    of = rows("speakers")
    assert [of[name]["p"] for name in ("toxic", "non-toxic")] == [0.03125, 0.03125]
    assert [of[name]["p_holm"] for name in ("toxic", "non-toxic")] == [0.0625, 0.0625]


def test_a_statement_that_lacks_a_score_is_left_out_and_counted():
    label(toxicity_ai=None)
    label(toxicity_ai=2, toxicity_human=2)
    shown = sections()["speakers"]
    assert {row["class"]: row["n"] for row in shown.table.rows}["all"] == 1
    assert "Left out: 1 statement, which lacks one of the scores." in shown.notes


# --- Framing


def framed(*framings):
    return judged_statement(*({"group_framing": one} for one in framings))


def test_the_shares_of_framings_by_majority_and_by_annotations():
    framed("moral_judgement", "moral_judgement", "none")
    framed("moral_judgement", "other")
    framed("none", "none")
    framed("none")
    label(framing="moral")
    of = rows("framing", by="framing")
    moral, none = of["Moral judgement"], of["No individual or group is targeted"]
    assert (moral["statements"], moral["n"], value(moral["share"])) == (2, 5, 0.4)
    assert (none["statements"], value(none["share"])) == (2, 0.4)
    assert (of["Without a majority"]["statements"], of["Other"]["statements"]) == (1, 0)
    assert "annotations" not in of["Without a majority"]
    assert (moral["annotations"], value(moral["of_annotations"])) == (3, 0.375)
    assert (none["annotations"], of["Other"]["annotations"]) == (4, 1)
    shown = sections()["framing"]
    assert shown.says == "The most common framing is moral judgement: 40.0\u00a0% (2 of 5) of the statements."
    assert any("8 annotations to 4 statements" in note for note in shown.notes)


def test_framings_that_are_equally_common_are_both_named():
    framed("blames_for_cause")
    framed("suggests_solution")
    framed("none")
    framed("none")
    assert sections()["framing"].says == (
        "The most common framings are blames for cause and suggests solution: each is the answer of most annotators "
        "on 1 statement of 4."
    )


def test_without_any_framing_the_sentence_says_so():
    framed("none")
    assert sections()["framing"].says.startswith("On no statement do more than half of the annotators agree")


def test_without_annotations_their_shares_are_not_there():
    label()
    shown = sections()["framing"]
    assert [column.key for column in shown.table.columns] == ["framing", "statements", "n", "share"]
    assert "Shares of single annotations cannot be given: imported labels do not hold them." in shown.notes
    assert not any(note.startswith("No individual or group") for note in shown.notes)
    label(framing="")
    (note,) = (note for note in sections()["framing"].notes if note.startswith("No individual or group"))
    assert "so 1 imported label is read that answers other questions and has no word for a framing" in note


def test_annotations_that_always_agree_are_worth_as_many_as_there_are_statements():
    k, n = np.array([3, 3, 0, 0, 0]), np.full(5, 3)
    agreeing = share_of_annotations(k, n)
    assert value(agreeing) == 0.4
    # Wilson's interval of 2 of 5
    assert (agreeing.low, agreeing.high) == pytest.approx((0.1176, 0.7693), abs=1e-4)
    single = share_of_annotations(np.array([1, 1, 0, 0, 0]), np.ones(5, int))
    assert (single.low, single.high) == pytest.approx((agreeing.low, agreeing.high))
    none = share_of_annotations(np.zeros(4, int), np.full(4, 3))
    # 0 of 4
    assert (none.value, none.low, none.high) == pytest.approx((0, 0, 0.4899), abs=1e-4)
    # One statement is worth one annotation: 2/3 of 1
    lone = share_of_annotations(np.array([2]), np.array([3]))
    assert lone.low < 0.15
    assert lone.high > 0.95
    assert isinstance(share_of_annotations(np.array([], int), np.array([], int)), Undefined)


def test_annotations_that_differ_within_statements_are_worth_no_more_than_there_are():
    for k in (np.ones(6, int), np.array([1, 1, 1, 1, 2, 0])):
        spread = share_of_annotations(k, np.full(6, 2))
        # Wilson's interval of 6 of 12
        assert (spread.low, spread.high) == pytest.approx((0.2538, 0.7462), abs=1e-4)


# --- Examples


def test_an_example_of_each_class_and_method_is_shown():
    human = {"human_or_ai": "human"}
    judged_statement(TOXIC | human | {"group_framing": "other"}, TOXIC | human, text="they rig sails", method="alice")
    judged_statement(TOXIC | human, text="they mend nets")
    texts = [f"the bakery opens at {hour}" for hour in range(5)]
    for text in texts:
        judged_statement(BENIGN | human | {"which_group": "indirectly"}, text=text)
    judged_statement(AMBIGUOUS, text="thought to be by AI")
    judge(make_hit(generation=make_generation("by hand", method="written")), TOXIC | human)
    label(make_generation("with a label"), predicted_author="human", intent=None, toxicity_human=None, framing="x")
    shown = sections()["examples"]
    assert shown.table.columns[0].kind is Kind.STATEMENT
    assert shown.says.startswith("3 examples of 8 machine-generated statements")
    first = min(texts, key=lambda text: md5(text.encode(), usedforsecurity=False).hexdigest())
    assert [row["text"] for row in shown.table.rows] == ["they rig sails", "they mend nets", first]
    assert (shown.table.rows[0], shown.table.rows[2]) == (
        {
            "text": "they rig sails",
            "class": "toxic",
            "author": "Human/AI (ALICE)",
            "ai": 4,
            "human": 5,
            "intent": "Harm",
            "framing": "direct reference, no majority on the framing",
            "n": 2,
        },
        {
            "text": first,
            "class": "non-toxic",
            "author": "Human/AI (top-k)",
            "ai": 1,
            "human": 1,
            "intent": "Benign",
            "framing": "indirect reference, no framing",
            "n": 1,
        },
    )


def test_an_example_of_an_imported_label_says_what_is_not_known():
    label(make_generation("they bake"), intent=None, framing="new", predicted_group="x", toxicity_human=3)
    (row,) = sections()["examples"].table.rows
    assert row["class"] == "ambiguous"
    assert row["framing"] == "reference unknown, framing unknown"
    assert (row["intent"], row["n"]) == (
        Undefined("Nobody answered HARMFULINTENT."),
        Undefined("The imported label does not say how many."),
    )


def test_without_anybody_fooled_there_is_no_example():
    judged_statement({})
    shown = sections()["examples"]
    assert shown.table is None
    assert shown.missing.startswith("None of these statements is thought human-written")


# --- What stands beside, and what counts once


@pytest.mark.parametrize(
    ("filters", "stands"),
    [
        ({}, True),
        ({"method": ["alice", "topk"]}, True),
        ({"method": ["alice"]}, False),
        ({"label": ["benign"]}, False),
        ({"imported": False}, False),
    ],
)
def test_the_papers_figures_stand_only_beside_all_that_they_are_of(filters, stands):
    for fields in (TOXIC, BENIGN):
        judged_statement(fields, method="alice", label="benign", run=None)
    every = sections(filters if "imported" not in filters else {"imported": True})
    for key in ("author", "author-by-class", "classes", "answers"):
        table = every[key].table
        assert ("paper" in [column.key for column in table.columns]) == stands, key
        assert any(row.get("paper") is not None for row in table.rows) == stands, key
        assert (NOT_BESIDE in every[key].notes) != stands
    assert any(trace["name"] == "Paper" for trace in every["classes"].chart["data"]) == stands


def test_of_somebody_who_judged_a_statement_again_the_first_answer_counts_and_a_note_says_so():
    generation = make_generation()
    (ada,) = judge(make_hit(generation=generation), {"group_framing": "moral_judgement"})
    judge(make_hit(generation=generation), {"group_framing": "other"}, workers=[ada])
    judge(make_hit(generation=generation), {"group_framing": "moral_judgement"})
    framing = sections()["framing"]
    of = {row["framing"]: row for row in framing.table.rows}
    assert (of["Moral judgement"]["annotations"], of["Other"]["annotations"]) == (2, 0)
    assert framing.n == {"statements": 1, "annotations": 2}
    assert any(note.startswith("1 annotation is left out: the annotator had judged") for note in framing.notes)


# --- What is missing, and why


def missing(filters=None):
    """The reason that all sections give."""
    every = sections(filters)
    (reason,) = {section.missing for section in every.values()}
    assert all(section.table is section.chart is None for section in every.values())
    return reason


def test_with_nothing_every_section_says_what_to_do():
    assert missing() == "There are no annotations and no imported labels here. Publish a study, or import judgements."
    assert missing({"method": ["alice"]}).endswith("or choose other filters.")


def test_all_not_understood():
    judge(make_hit(), NOBODY | {"not_understood": True}, {"not_understood": True})
    assert missing() == "None of the 2 annotations here makes a label: 2 not understood. Have more statements judged."


def test_nothing_counts():
    not_counted(make_generation())
    assert missing() == (
        "None of the 5 annotations here makes a label: 2 not understood, 1 of statements with known answers, "
        "1 rejected, 1 late, when the place was taken. Have more statements judged."
    )


def test_only_what_people_wrote():
    judged_statement({}, method="written")
    assert missing().startswith("People wrote all that the filters leave (1 judged statement)")


def test_labels_beyond_the_reach_of_a_filter():
    label()
    hit = make_hit()
    filters = {"study": [hit.hit_type]}
    assert "1 imported label belongs to no study and no day" in missing(filters)
    judge(hit, {})
    assert any(note.startswith("Left out: 1 imported label.") for note in sections(filters)["classes"].notes)
    assert not any("imported" in note for note in sections({"method": ["alice"]})["classes"].notes)


def test_labels_out_of_reach_are_those_of_the_other_filters_that_nobody_judged():
    hit = make_hit(generation=make_generation(method="alice"))
    judge(hit, {})
    for method in ("alice", "topk", "topk"):
        label(make_generation(method=method))
    label(hit.generation)
    filters = {"study": [hit.hit_type], "method": ["alice"]}
    notes = sections(filters)["classes"].notes
    assert next(note for note in notes if "imported" in note).startswith("Left out: 1 imported label.")


def test_what_was_left_out_is_counted():
    not_counted(make_generation())
    judged_statement({}, {})
    assert (
        "Left out: 5 annotations that make no label (2 not understood, 1 of statements with known answers, 1 rejected, "
        "1 late, when the place was taken)." in sections()["author"].notes
    )


def test_labels_without_anything_say_what_they_lack():
    HumanLabel.objects.create(generation=make_generation())
    reasons = {key: section.missing for key, section in sections().items()}
    assert all(reasons.values())
    assert reasons["author"] == "Of 1 judged statement none has an answer to HUMANORAI."
    assert reasons["framing"] == "Of 1 judged statement none has an answer to GROUPFRAMING."


@pytest.mark.parametrize("fields", [TOXIC, AMBIGUOUS, BENIGN])
def test_everything_of_one_class_by_one_annotator(fields):
    (worker,) = judge(make_hit(), fields)
    for _ in range(2):
        judge(make_hit(), fields, workers=[worker])
    every = sections()
    assert not any(section.missing for key, section in every.items() if key not in ("examples", "author-by-class"))
    assert [row["statements"] for row in every["classes"].table.rows if row["statements"]] == [3]
    assert Annotation.objects.filter(assignment__submitted_at=MOMENT).count() == 3


def test_a_share_in_words_says_of_how_many():
    assert percent(0, 0) == "none (of 0)"
    assert percent(1, 3) == "33.3\u00a0% (1 of 3)"


def test_the_queries_do_not_grow_with_the_statements():
    counts = []
    for _ in range(2):
        for number in range(6):
            judged_statement({"human_or_ai": "human"} | (TOXIC if number % 2 else BENIGN), {})
            label()
        with CaptureQueriesContext(connection) as queries:
            human_validation.make({})
        counts.append(len(queries))
    assert counts[0] == counts[1] < 15


@pytest.mark.skipif(not REAL.exists(), reason="the released files are not here")
def test_the_large_sample_of_the_release():
    import_file(format="annotated", path=REAL / "annotated.csv", options=Options(make_groups=True))
    every = sections()
    of = {row["class"]: row for row in every["author"].table.rows}
    assert [(row["n"], value(row["human"]), row["no_majority"]) for row in of.values()] == [
        (8960, 0.8971, 0),
        (3026, 0.9349, 0),
        (368, 0.8777, 0),
        (5566, 0.8778, 0),
    ]
    assert [value(row["share"]) for row in every["classes"].table.rows] == [0.3377, 0.0411, 0.6212]
    intent = {row["answer"]: row["share"] for row in every["answers"].table.rows if row["class"] == "toxic"}
    assert value(intent["Meant to harm (mean > 3)"]) == 0.8665
    assert value(intent["Meant to harm, or unsure (mean ≥ 3)"]) == 0.9395
    assert "93.2\u00a0% (1,219 of 1,308) are non-toxic" in every["facts"].says
    speakers = {row["class"]: (value(row["ai"]), value(row["human"])) for row in every["speakers"].table.rows}
    assert speakers["toxic"] == (4.2675, 4.3792)
    assert (
        every["framing"].says
        == "The most common framing is moral judgement: 21.2\u00a0% (1,898 of 8,960) of the statements."
    )
    assert len(every["examples"].table.rows) == 6
