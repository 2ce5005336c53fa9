"""Raw annotations: they become the work of workers in a study that was done and paid elsewhere."""

import json
from datetime import UTC, datetime

import pytest

from analysis.importing import import_file
from analysis.imports.answers import RELEASED_COLUMNS
from analysis.models import ImportedAnnotation
from analysis.released import WORKER
from annotator.models import HIT, Annotation, Assignment, Consent, ConsentForm, HITType, Payment, Worker
from generation.models import Generation
from tests.analysis.imports.files import (
    OWN,
    annotation_row,
    import_rows,
    refused,
    ticked,
    train_row,
    unanswered,
)
from tests.factories import answers, consenting_worker

pytestmark = pytest.mark.django_db


def annotations(tmp_path, *rows, **options):
    return import_rows(tmp_path, "annotations", *rows, **options)


def the_fault(tmp_path, **changes):
    [fault] = refused(annotations, tmp_path, annotation_row(), annotation_row(**changes)).faults
    assert fault.line == 3
    return fault


# --- The released columns


def test_an_annotation_becomes_an_approved_assignment_in_an_imported_study(tmp_path):
    outcome = annotations(tmp_path, annotation_row(**{"Input.prompt": r"- one\n-"}))
    annotation = Annotation.objects.counted().get()
    assert annotation.answers == answers(group_framing="moral_judgement", fact_or_opinion="opinion")
    assignment = annotation.assignment
    assert (assignment.status, assignment.holds_place, assignment.reward) == ("approved", True, 0)
    assert assignment.worker.imported_hash == "a" * 32
    assert (assignment.consent.form.version, assignment.consent.form.published_at is not None) == (0, True)
    statement = assignment.hit.generation
    assert (statement.text, statement.prompt.text) == ("the harbor is busy in spring", "- one\n-")
    assert (statement.label, statement.method, statement.group.slug) == ("benign", "alice", "women")
    study = assignment.hit.hit_type
    assert (study.title, study.imported, study.reward) == ("Imported annotations", True, 0)
    assert outcome.stored == {
        "studies": 1, "prompts": 1, "statements": 1, "workers": 1, "HITs": 1, "annotations": 1,
    }  # fmt: skip


def test_nothing_is_owed_and_nothing_can_be_taken_up(tmp_path):
    annotations(tmp_path, annotation_row(), annotation_row(**{WORKER: "b"}))
    assert not Payment.objects.exists()
    assert not HIT.objects.assignable().exists()
    assert ConsentForm.objects.current() is None


def test_a_second_import_changes_nothing(tmp_path):
    rows = [annotation_row(), annotation_row(), annotation_row(**{WORKER: "b"})]
    assert annotations(tmp_path, *rows).summary() == "3 rows: 2 new, 1 there already, 0 bad"
    before = list(Assignment.objects.values())
    assert annotations(tmp_path, *rows).summary() == "3 rows: 0 new, 3 there already, 0 bad"
    assert list(Assignment.objects.values()) == before
    assert HITType.objects.count() == Generation.objects.count() == 1
    assert Worker.objects.count() == Consent.objects.count() == 2


def test_another_answer_of_the_same_person_is_told_and_not_stored(tmp_path):
    annotations(tmp_path, annotation_row())
    outcome = annotations(tmp_path, annotation_row(**ticked("lewd", "maybe")))
    assert outcome.notes == ["1 rows differ from what is stored; nothing was changed."]
    assert Annotation.objects.get().lewd == "no"


def test_a_hit_has_as_many_places_as_annotators_and_gets_more_with_a_second_file(tmp_path):
    annotations(tmp_path, annotation_row(), annotation_row(**{WORKER: "b"}))
    assert HIT.objects.values_list("max_assignments", "held_places").get() == (2, 2)
    annotations(tmp_path, annotation_row(), annotation_row(**{WORKER: "c"}))
    assert HIT.objects.values_list("max_assignments", "held_places").get() == (3, 3)


def test_a_study_is_named_by_its_title(tmp_path):
    annotations(tmp_path, annotation_row(), study="Pilot")
    annotations(tmp_path, annotation_row(**{WORKER: "b"}), study="Pilot")
    annotations(tmp_path, annotation_row(), study="Main")
    assert list(HITType.objects.order_by("pk").values_list("title", flat=True)) == ["Pilot", "Main"]
    assert Generation.objects.count() == 1


def test_a_study_that_runs_here_takes_no_imported_work(tmp_path):
    from tests.factories import make_hit_type

    running = make_hit_type(title="Pilot")
    annotations(tmp_path, annotation_row(), study="Pilot")
    assert not running.hits.exists()


def test_statements_that_are_stored_already_are_used(tmp_path):
    import_rows(
        tmp_path, "train", train_row(generation="the lake is deep", prompt=r"- one\n-", generation_method="ALICE")
    )
    row = {"Input.text": "the lake is deep", "Input.prompt": "- one\n-", "Input.prompt_label": ""}
    annotations(tmp_path, annotation_row(**row))
    assert HIT.objects.get().generation == Generation.objects.get()
    annotations(tmp_path, annotation_row(**row | {"Input.prompt": "- two\n-", "Input.prompt_label": "0"}))
    assert Generation.objects.count() == 2


@pytest.mark.parametrize(
    "raw",
    ["A2SUAM7KA91JFZ", "a2suam7ka91jfz", "AMQ3FB9D7M8A", "ada@example.org", "amzn1.account.AEQ5", "f0e1", "x" * 300],
)
def test_what_does_not_look_like_a_hash_is_hashed(tmp_path, raw):
    annotations(tmp_path, annotation_row(**{WORKER: raw}), annotation_row(**{WORKER: f"{raw}2"}))
    hashes = set(Worker.objects.values_list("imported_hash", flat=True))
    assert [len(found) for found in hashes] == [32, 32]
    assert not any(raw in found for found in hashes)
    assert annotations(tmp_path, annotation_row(**{WORKER: f" {raw} "})).known == 1


@pytest.mark.parametrize("hashed", ["0123456789abcdef" * 2, "ABCDEF" * 6, "f" * 64])
def test_a_hash_is_kept(tmp_path, hashed):
    annotations(tmp_path, annotation_row(**{WORKER: hashed}))
    assert Worker.objects.get().imported_hash == hashed


def test_a_number_from_elsewhere_is_not_taken_for_that_of_a_worker_here(tmp_path):
    worker = consenting_worker()
    annotations(tmp_path, annotation_row(**{WORKER: str(worker.pk)}))
    assert Annotation.objects.get().assignment.worker != worker


def test_a_fault_does_not_show_who_it_was(tmp_path):
    fault = the_fault(tmp_path, **{WORKER: "ada\0@example.org"})
    assert (fault.column, fault.value) == (WORKER, "")


def test_a_line_that_cannot_be_read_is_not_quoted(tmp_path):
    line = json.dumps({WORKER: "A2SUAM7KA91JFZ"} | annotation_row(**{WORKER: "A2SUAM7KA91JFZ"}))
    path = tmp_path / "annotations.jsonl"
    path.write_text(f'{line}\n{line[:200]}\n{line[:-1]}, "more": 1}}\n[1, "A2SUAM7KA91JFZ"]\n')
    faults = refused(import_file, format="annotations", path=path).faults
    assert [(fault.line, fault.value) for fault in faults] == [(2, ""), (3, ""), (4, "")]
    assert "A2SUAM7KA91JFZ" not in str(faults.kept)


def test_a_row_without_answers_was_not_understood(tmp_path):
    annotations(tmp_path, annotation_row(**unanswered()))
    annotation = Annotation.objects.get()
    assert annotation.not_understood
    assert set(annotation.answers.values()) == {None}


def test_our_column_says_that_a_text_was_not_understood(tmp_path):
    annotations(tmp_path, annotation_row(**{"Answer.notUnderstood.on": "true"} | ticked("lewd", None)))
    annotation = Annotation.objects.get()
    assert (annotation.not_understood, annotation.lewd, annotation.harmful_if_ai) == (True, None, 1)


@pytest.mark.parametrize(("true", "false"), [("TRUE", "FALSE"), ("1", "0"), ("True", "False"), ("true", "")])
def test_truth_may_be_written_in_any_way(tmp_path, true, false):
    words = {"true": true, "false": false}
    annotations(tmp_path, {column: words.get(value, value) for column, value in annotation_row().items()})
    assert Annotation.objects.get().answers == answers(group_framing="moral_judgement", fact_or_opinion="opinion")


def test_two_answers_to_one_question_are_a_fault_that_names_it(tmp_path):
    fault = the_fault(tmp_path, **{"Answer.toAI.1": "true", "Answer.toAI.4": "true"})
    assert fault.column == "Answer.toAI.1 to Answer.toAI.5"
    assert fault.message == (
        "harmful_if_ai has one answer: exactly one of Answer.toAI.1 to Answer.toAI.5 is true, but 2 are true."
    )


def test_a_question_left_out_is_a_fault(tmp_path):
    assert the_fault(tmp_path, **ticked("lewd", None)).message.endswith("is true, but none is true.")


def test_a_word_that_is_not_known_is_a_fault_that_lists_the_known_ones(tmp_path):
    fault = the_fault(tmp_path, **{"Answer.factSelect": "perhaps"})
    assert (fault.column, fault.value) == ("Answer.factSelect", "perhaps")
    assert fault.message.startswith("This word is not known here. Known are: factual, fact, yes, opinion, both,")


def test_known_words_with_a_comma_are_quoted_and_each_is_named_once(tmp_path):
    assert the_fault(tmp_path, **{"Answer.refTarget": "perhaps"}).message == (
        "This word is not known here. Known are: direct, directly, “yes, directly”, indirect, indirectly, "
        "“yes, indirectly”, unclear, none_or_unclear, none, no, no reference, other, other_groups, others."
    )
    framing = the_fault(tmp_path, **{"Answer.framingQ": "perhaps"}).message
    assert "Known are: moral, moral_judgement, moral judgment, cause," in framing


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"Answer.writer.1": "maybe"}, "Answer.writer.1"),
        ({WORKER: " "}, WORKER),
        ({WORKER: "a\0b"}, WORKER),
        ({"Input.text": ""}, "Input.text"),
        ({"Input.target_group": "martian"}, "Input.target_group"),
        ({"Input.prompt_label": "", "Input.text": "new"}, "Input.prompt_label"),
        ({"Input.generation_method": "", "Input.text": "new"}, "Input.generation_method"),
        ({"Input.prompt_label": "so"}, "Input.prompt_label"),
        ({"Answer.stateGroup": "\0"}, "Answer.stateGroup"),
    ],
)
def test_faults_name_their_column(tmp_path, changes, column):
    assert the_fault(tmp_path, **changes).column == column


def test_the_binary_label_and_the_options_stand_in(tmp_path):
    annotations(tmp_path, annotation_row(**{"Input.prompt_label": "", "Input.binary_prompt_label": "1"}))
    assert Generation.objects.get().label == "toxic"
    silent = dict.fromkeys(("Input.prompt_label", "Input.generation_method", "Input.target_group"), "")
    annotations(tmp_path, annotation_row(**silent), label="benign", method="topk", group="asian")
    assert Generation.objects.values_list("label", "method", "group__slug").last() == ("benign", "topk", "asian")


def test_columns_without_a_question_are_kept_and_those_about_the_annotator_are_not(tmp_path):
    row = annotation_row(**{"Answer.inGroup.on": "true", "Input.time": "3.5"})
    outcome = annotations(tmp_path, row | {"Answer.annotatorAge": "30", "Answer.annotatorRace": "w", "Mood": "good"})
    assert ImportedAnnotation.objects.get().columns == {"Answer.inGroup.on": "true", "Input.time": "3.5"}
    assert outcome.notes[0].endswith("that were left out: Mood.")
    assert outcome.notes[1] == (
        "Not stored, since what annotators say of themselves is kept apart from answers: "
        "Answer.annotatorAge, Answer.annotatorRace."
    )


def test_missing_answer_columns_refuse_the_file(tmp_path):
    row = annotation_row()
    del row["Answer.stereo.2"]
    assert "lacks the column Answer.stereo.2. It has: Input." in str(refused(annotations, tmp_path, row))
    assert "Answer.stereo.2" in RELEASED_COLUMNS


# --- Humanval's own export


def test_our_own_export_is_read(tmp_path):
    annotations(tmp_path, OWN)
    annotation = Annotation.objects.counted().get()
    assert annotation.answers == answers()
    assignment = annotation.assignment
    assert assignment.hit.hit_type.title == "Is this statement harmful?"
    assert assignment.accepted_at == datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
    assert assignment.submitted_at == datetime(2026, 1, 5, 10, 2, tzinfo=UTC)
    assert (assignment.worker.imported_hash, assignment.hit.generation.method) == ("c" * 32, "alice")


def test_rejected_work_is_stored_and_does_not_count(tmp_path):
    row = OWN | {"assignment_status": "rejected", "counted": "false", "rejection_reason": "all answers are the same"}
    annotations(tmp_path, row, OWN | {"hashed_worker_id": "d"})
    rejected = Assignment.objects.get(status="rejected")
    assert (rejected.rejection_reason, rejected.holds_place) == ("all answers are the same", False)
    assert Annotation.objects.counted().count() == 1
    assert HIT.objects.values_list("max_assignments", "held_places").get() == (1, 1)


def test_work_that_did_not_count_does_not_count_here(tmp_path):
    annotations(tmp_path, OWN | {"counted": "false"})
    assert not Annotation.objects.counted().exists()


def test_undecided_work_is_stored_as_approved_and_told(tmp_path):
    outcome = annotations(tmp_path, OWN | {"assignment_status": "submitted"})
    assert Assignment.objects.get().status == "approved"
    assert outcome.notes == ["1 annotations were neither approved nor rejected; they are stored as approved."]


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"harmful_if_ai": "6"}, "harmful_if_ai"),
        ({"harmful_if_ai": "1.5"}, "harmful_if_ai"),
        ({"lewd": ""}, "lewd"),
        ({"lewd": "rather"}, "lewd"),
        ({"assignment_status": "accepted"}, "assignment_status"),
        ({"accepted_at": "now"}, "accepted_at"),
        ({"counted": "perhaps"}, "counted"),
        ({"submitted_at": "2026-01-05T09:00:00+00:00"}, ""),
        ({"study": "x" * 201}, "study"),
    ],
)
def test_faults_of_our_own_export_name_their_column(tmp_path, changes, column):
    [fault] = refused(annotations, tmp_path, OWN | changes).faults
    assert (fault.line, fault.column) == (2, column)
