"""The results of a Mechanical Turk batch."""

from datetime import UTC, datetime

import pytest

from analysis.models import ImportedAnnotation
from annotator.models import Annotation, Assignment, HITType, Worker
from tests.analysis.imports.files import import_rows, mturk_row, refused
from tests.factories import answers

pytestmark = pytest.mark.django_db


def mturk(tmp_path, *rows, **options):
    return import_rows(tmp_path, "mturk", *rows, **options)


def test_a_batch_is_read_with_its_times_and_decisions(tmp_path):
    outcome = mturk(
        tmp_path,
        mturk_row(),
        mturk_row(WorkerId="c", AssignmentStatus="Rejected", RequesterFeedback="no answer fits", ApprovalTime=""),
        mturk_row(WorkerId="d", AssignmentStatus="Rejected"),
        mturk_row(WorkerId="e", AssignmentStatus="Submitted", ApprovalTime=""),
    )
    approved = Assignment.objects.get(worker__imported_hash="b" * 32)
    assert approved.accepted_at == datetime(2020, 11, 16, 18, 15, tzinfo=UTC)
    assert approved.submitted_at == datetime(2020, 11, 16, 18, 17, tzinfo=UTC)
    assert approved.decided_at == datetime(2020, 11, 17, 16, 0, tzinfo=UTC)
    assert approved.annotation.answers == answers(group_framing="moral_judgement", fact_or_opinion="opinion")
    assert list(
        Assignment.objects.filter(status="rejected").order_by("pk").values_list("rejection_reason", flat=True)
    ) == [
        "no answer fits",
        "Rejected where the work was done; no reason was given.",
    ]
    assert Annotation.objects.counted().count() == 2
    assert outcome.notes == ["1 annotations were neither approved nor rejected; they are stored as approved."]


def test_the_study_is_named_by_the_batch_or_as_asked(tmp_path):
    mturk(tmp_path, mturk_row())
    mturk(tmp_path, mturk_row(), study="Batch 7")
    assert list(HITType.objects.order_by("pk").values_list("title", flat=True)) == [
        "Is this statement harmful?",
        "Batch 7",
    ]


def test_its_columns_are_kept_but_for_the_worker(tmp_path):
    mturk(tmp_path, mturk_row(WorkerId="A2SUAM7KA91JFZ"))
    kept = ImportedAnnotation.objects.get().columns
    assert (kept["HITId"], kept["Reward"], kept["LifetimeApprovalRate"]) == ("3XYZ", "$0.25", "100% (10/10)")
    assert "WorkerId" not in kept
    assert "A2SUAM7KA91JFZ" not in str(kept)
    assert Worker.objects.get().imported_hash != "A2SUAM7KA91JFZ"


def test_a_second_import_changes_nothing(tmp_path):
    mturk(tmp_path, mturk_row())
    assert mturk(tmp_path, mturk_row()).summary() == "1 rows: 0 new, 1 there already, 0 bad"


def test_only_the_text_is_needed_of_the_inputs(tmp_path):
    row = mturk_row()
    for column in ("Input.prompt", "Input.time", "Input.generation_method", "Input.prompt_label", "Input.target_group"):
        del row[column]
    mturk(tmp_path, row, group="women", label="toxic", method="topk")
    assert Assignment.objects.get().hit.generation.label == "toxic"


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"AssignmentStatus": "Returned"}, "AssignmentStatus"),
        ({"AcceptTime": "noon"}, "AcceptTime"),
        ({"SubmitTime": "Mon Nov 16 10:15:00 QQQ 2020"}, "SubmitTime"),
        ({"WorkerId": ""}, "WorkerId"),
        ({"Title": "x" * 201}, "Title"),
        ({"RequesterFeedback": "a\0"}, "RequesterFeedback"),
    ],
)
def test_faults_name_their_column(tmp_path, changes, column):
    [fault] = refused(mturk, tmp_path, mturk_row(**changes)).faults
    assert (fault.line, fault.column) == (2, column)
