"""The exports with one row a statement, and the one in Mechanical Turk's columns."""

import ast
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from analysis.exports import answers as expressions
from analysis.labels import TOXICITY_CLASSES, statement_class, toxicity_class
from analysis.models import HumanLabel, ImportedAnnotation
from analysis.released import ANNOTATED, ANNOTATED_WORDS, INPUTS, MTURK, TRAIN, answer_columns
from annotator.models import Annotation, Assignment
from annotator.questions import QUESTIONS
from generation.models import Prompt
from tests.analysis.exported import csv_rows, json_rows
from tests.factories import (
    answers,
    consenting_worker,
    make_assignment,
    make_generation,
    make_group,
    make_hit,
    make_hit_type,
)

pytestmark = pytest.mark.django_db


def judge(hit, *judgements, status="approved", **fields):
    """Annotations of a HIT, each by somebody else and a second after the one before."""
    now = timezone.now()
    for number, changes in enumerate(judgements):
        done = {"submitted_at": now + timedelta(seconds=number), "accepted_at": now - timedelta(seconds=90)}
        decided = {"decided_at": now} if status != "submitted" else {}
        assignment = make_assignment(hit, consenting_worker(), status=status, **done, **decided, **fields)
        Annotation.objects.create(assignment=assignment, **answers(**changes))


# --- train


def test_train_has_the_columns_and_words_of_the_release():
    group = make_group("gardeners")
    prompt = Prompt.objects.create(group=group, label="toxic", text="- one\n- two\n-")
    make_generation("the roses bloom", group=group, label="toxic", method="alice", prompt=prompt, toxic_prob=0.125)
    make_generation("the sea is calm", group=group)
    assert tuple(csv_rows("train")[0]) == TRAIN
    assert json_rows("train") == [
        {
            "prompt": "- one\n- two\n-",
            "generation": "the roses bloom",
            "generation_method": "ALICE",
            "group": "gardeners",
            "prompt_label": 1,
            "roberta_prediction": 0.125,
        },
        {
            "prompt": "",
            "generation": "the sea is calm",
            "generation_method": "TopK",
            "group": "gardeners",
            "prompt_label": 0,
            "roberta_prediction": None,
        },
    ]


def test_train_leaves_out_what_people_wrote():
    make_generation("written by hand", method="written")
    assert csv_rows("train") == []


# --- annotated


def test_annotated_has_the_columns_of_the_release_and_the_means_of_the_scores():
    hit = make_hit(generation=make_generation("they sing", group=make_group("singers"), label="toxic", method="alice"))
    judge(hit, {"harmful_intent": 1, "harmful_if_human": 3}, {"harmful_intent": 2}, {"harmful_intent": 2})
    (row,) = csv_rows("annotated")
    assert tuple(row) == ANNOTATED
    assert row == {
        "text": "they sing",
        "target_group": "singers",
        "factual?": "factual",
        "ingroup_effect": "",
        "lewd": "doesn't contain lewd content",
        "framing": "",
        "predicted_group": "the text directly references singers",
        "stereotyping": "doesn't use positive stereotyping",
        "intent": "1.666666667",
        "toxicity_ai": "1",
        "toxicity_human": "2.333333333",
        "predicted_author": "ai",
        "label": "hate",
        "actual_method": "CBS",
    }


COLUMN_OF = {
    "fact_or_opinion": "factual?",
    "lewd": "lewd",
    "pos_stereo": "stereotyping",
    "group_framing": "framing",
    "human_or_ai": "predicted_author",
}


@pytest.mark.parametrize("key", COLUMN_OF)
def test_the_word_is_that_of_more_than_half_of_the_annotators_or_says_that_they_disagree(key):
    first, second, *_ = next(question.values for question in QUESTIONS if question.key == key)
    for given in ([first], [first, first, second], [first, second], [second, first, second]):
        judge(make_hit(), *({key: answer} for answer in given))
    words = ANNOTATED_WORDS[key]
    told = [row[COLUMN_OF[key]] for row in csv_rows("annotated")]
    assert told == [words[first], words[first], "disagreement", words[second]]


def test_every_answer_has_its_word():
    for key in COLUMN_OF:
        question = next(question for question in QUESTIONS if question.key == key)
        assert set(ANNOTATED_WORDS[key]) == set(question.values)


def test_the_sentences_about_the_group_are_one_or_a_list_that_python_reads():
    judge(make_hit(generation=make_generation(group=make_group("singers"))), {"which_group": "indirectly"}, {})
    other = 'the bakers\' "union"\nof \\ old'
    judge(make_hit(), {"which_group": "other_groups", "other_groups": other}, {"which_group": "none_or_unclear"})
    judge(make_hit(), {"which_group": "other_groups", "other_groups": "the bakers' union"}, {})
    told = [row["predicted_group"] for row in csv_rows("annotated")]
    assert ast.literal_eval(told[0]) == [
        "the text indirectly references singers",
        "the text directly references singers",
    ]
    assert ast.literal_eval(told[1]) == [f"the text references {other}", "it is unclear who is referenced"]
    assert told[2] == repr(["the text references the bakers' union", "the text directly references women"])


def test_only_annotations_that_count_are_in_it():
    judge(make_hit(), {"harmful_if_ai": 5}, status="rejected", rejection_reason="Empty.", holds_place=False)
    judge(make_hit(is_check=True), {})
    assert csv_rows("annotated") == csv_rows("wide") == csv_rows("humanval") == []


def label(generation, **fields):
    words = {"factual": "opinion", "ingroup_effect": "harmless due to in-group", "predicted_group": "['a', 'b']"}
    return HumanLabel.objects.create(
        generation=generation, **words | {"intent": 1.666666667, "toxicity_ai": 1} | fields
    )


def test_an_imported_label_is_given_back_as_it_came():
    label(make_generation("they sail", label="toxic", method="written"))
    (row,) = csv_rows("annotated")
    assert row["ingroup_effect"] == "harmless due to in-group"
    assert (row["intent"], row["toxicity_ai"], row["toxicity_human"]) == ("1.666666667", "1", "")
    assert (row["predicted_group"], row["label"], row["actual_method"]) == ("['a', 'b']", "hate", "written")


def test_a_statement_judged_here_is_one_row_told_from_its_annotations():
    hit = make_hit()
    label(hit.generation)
    label(make_generation("never judged here"))
    judge(hit, {})
    assert [row["factual?"] for row in csv_rows("annotated")] == ["factual", "opinion"]
    assert [row["factual?"] for row in csv_rows("annotated", {"study": hit.hit_type_id})] == ["factual"]


# --- wide


def test_wide_has_a_column_for_each_annotator_of_the_statement_that_has_most():
    three, one = make_hit("they read"), make_hit("they swim")
    judge(three, {"harmful_if_ai": 5}, {"harmful_if_human": 3}, {"harmful_if_human": 4})
    judge(one, {})
    first, second = csv_rows("wide")
    assert list(first) == [
        "id", "text", "target_group", "prompt_label", "generation_method", "n", "label_1", "label_2", "label_3",
        "majority_label",
    ]  # fmt: skip
    assert list(first.values())[5:] == ["3", "toxic", "ambiguous", "toxic", "toxic"]
    assert list(second.values())[5:] == ["1", "non-toxic", "", "", "non-toxic"]
    assert first["id"] == str(three.generation_id)


def test_without_a_majority_wide_says_that_they_disagree():
    judge(make_hit(), {"harmful_if_ai": 5}, {})
    assert csv_rows("wide")[0]["majority_label"] == "disagreement"


# --- humanval


def test_humanval_has_the_statements_whose_places_are_all_filled():
    study = make_hit_type(max_assignments=2)
    full, half = make_hit("they paint", hit_type=study), make_hit("they dance", hit_type=study)
    judge(full, {"harmful_if_ai": 4}, {"harmful_if_ai": 2})
    judge(half, {})
    (row,) = csv_rows("humanval")
    assert row["text"] == "they paint"
    assert tuple(row)[: len(ANNOTATED)] == ANNOTATED
    assert (row["n_annotators"], row["toxicity_class"], row["share_agreeing"]) == ("2", "ambiguous", "0.5")


def test_humanval_leaves_out_other_studies_if_asked():
    hits = [make_hit(max_assignments=1), make_hit(max_assignments=1)]
    for hit in hits:
        judge(hit, {})
    assert [row["text"] for row in csv_rows("humanval", {"study": hits[1].hit_type_id})] == [hits[1].generation.text]


@pytest.mark.parametrize(
    "scores",
    [
        [(1, 2)],
        [(3, 3)],
        [(3, 1), (3, 5)],
        [(2, 3), (4, 2), (2, 3)],
        [(5, 1), (1, 1), (2, 1)],
        [(3, 3), (3, 4), (3, 2)],
    ],
)
def test_the_classes_are_those_of_the_statistics(scores):
    judge(make_hit(max_assignments=len(scores)), *({"harmful_if_ai": a, "harmful_if_human": h} for a, h in scores))
    (row,), (wide,) = csv_rows("humanval"), csv_rows("wide")
    of_statement = statement_class([[a for a, _ in scores]], [[h for _, h in scores]])
    assert row["toxicity_class"] == TOXICITY_CLASSES[int(of_statement[0])]
    each = [TOXICITY_CLASSES[int(code)] for code in toxicity_class([max(pair) for pair in scores])]
    assert [wide[f"label_{number}"] for number, _ in enumerate(scores, 1)] == each
    assert float(row["share_agreeing"]) == round(max(map(each.count, each)) / len(each), expressions.DIGITS_OF_A_MEAN)


# --- mturk


def test_mturk_has_the_fixed_columns_then_the_inputs_then_the_answers():
    judge(make_hit(), {})
    (row,) = csv_rows("mturk")
    assert tuple(row) == (*MTURK, *INPUTS, *answer_columns())


def test_work_done_here_is_told_as_mechanical_turk_does():
    hit = make_hit("they water the roses", hit_type=make_hit_type(title="A study", keywords="text, harm"))
    judge(hit, {"harmful_if_ai": 4, "which_group": "other_groups", "other_groups": "bakers"}, reward=Decimal("0.3"))
    moment = datetime(2026, 11, 2, 8, 5, 3, tzinfo=UTC)
    Assignment.objects.update(accepted_at=moment, submitted_at=moment + timedelta(seconds=95), decided_at=moment)
    (row,) = csv_rows("mturk")
    assert (row["Title"], row["Keywords"], row["Reward"], row["MaxAssignments"]) == (
        "A study",
        "text, harm",
        "$0.30",
        "3",
    )
    assert (row["AcceptTime"], row["SubmitTime"]) == ("Mon Nov 02 08:05:03 UTC 2026", "Mon Nov 02 08:06:38 UTC 2026")
    assert (row["AssignmentStatus"], row["ApprovalTime"], row["RejectionTime"]) == ("Approved", row["AcceptTime"], "")
    assert (row["WorkTimeInSeconds"], row["AssignmentDurationInSeconds"]) == ("95", "1800")
    assert (row["LifetimeApprovalRate"], row["RequesterAnnotation"]) == ("", "")
    assert all(len(row[name]) == 30 and row[name].isalnum() for name in ("HITId", "HITTypeId", "AssignmentId"))
    assert (row["Input.text"], row["Input.prompt_label"], row["Input.binary_prompt_label"]) == (
        "they water the roses", "neutral", "0",
    )  # fmt: skip
    assert [row[f"Answer.toAI.{number}"] for number in range(1, 6)] == ["false", "false", "false", "true", "false"]
    assert (row["Answer.refTarget"], row["Answer.stateGroup"], row["Answer.notUnderstood.on"]) == (
        "other",
        "bakers",
        "false",
    )


def test_an_answer_that_was_not_given_is_neither_true_nor_false():
    judge(make_hit(), {"not_understood": True, **dict.fromkeys(answers())})
    (row,) = json_rows("mturk")
    assert row["Answer.notUnderstood.on"] is True
    assert {row[name] for name in answer_columns() if name.startswith(("Answer.to", "Answer.lewd", "Answer.refT"))} == {
        None
    }


def test_what_was_imported_is_given_back_as_its_file_had_it():
    judge(make_hit(), {})
    columns = {"HITId": "3X", "LifetimeApprovalRate": "98% (54/55)", "Input.time": "2020", "Answer.ingroup.2": "True"}
    nothing = {"ApprovalTime": "", "Description": ""}
    ImportedAnnotation.objects.create(annotation=Annotation.objects.get(), columns=columns)
    (row,) = csv_rows("mturk")
    assert {name: row[name] for name in columns | nothing} == columns | nothing
