"""An import is stored whole or not at all, and never twice."""

import csv
import io

import pytest
from django.contrib.auth.models import User

from analysis.importing import WrongOption, import_file
from analysis.imports.faults import Faults, csv_lines
from analysis.imports.work import Options
from analysis.models import DataImport, HumanLabel
from annotator.models import Annotation, HITType, Worker
from generation.models import AuditEntry, Demonstration, Generation, Prompt, TargetGroup
from tests.analysis.imports.files import (
    ROWS,
    WORKER,
    annotated_row,
    csv_file,
    import_rows,
    refused,
    train_row,
)
from tests.annotator.threads import at_once, in_the_background, stored_at_the_end, wait_until_somebody_waits_for_a_lock
from tests.factories import make_group

pytestmark = pytest.mark.django_db

BAD = {
    "train": {"roberta_prediction": "2"},
    "annotated": {"intent": "9"},
    "annotations": {"Answer.lewd.1": "x"},
    "mturk": {"AssignmentStatus": "x"},
}


@pytest.mark.parametrize("format", ROWS)
def test_one_bad_row_and_nothing_is_stored(tmp_path, format):
    make = ROWS[format]
    refusal = refused(import_rows, tmp_path, format, make(), make(**BAD[format]), make())
    assert str(refusal) == (
        "Nothing was stored: 1 of 3 rows is bad. Mend the file, or choose “If a row is bad: leave it out, and store "
        "the others” (on the command line --on-fault skip)."
    )
    for model in (Generation, Prompt, HITType, Worker, Annotation, HumanLabel, DataImport, AuditEntry):
        assert not model.objects.exists(), model


@pytest.mark.parametrize("format", ROWS)
def test_bad_rows_can_be_skipped(tmp_path, format):
    make = ROWS[format]
    outcome = import_rows(tmp_path, format, make(), make(**BAD[format]), on_fault="skip")
    assert outcome.summary() == "2 rows: 1 new, 0 there already, 1 bad"
    assert [fault.line for fault in outcome.faults] == [3]


def test_a_file_of_bad_rows_alone_is_refused_also_when_they_are_skipped(tmp_path):
    refusal = refused(import_rows, tmp_path, "train", train_row(generation=""), on_fault="skip")
    assert str(refusal) == "Nothing was stored: 1 of 1 rows is bad."


@pytest.mark.parametrize("format", ROWS)
def test_a_header_alone_is_no_fault(tmp_path, format):
    path = csv_file(tmp_path / "empty.csv", [], columns=list(ROWS[format]()))
    assert import_file(format=format, path=path).summary() == "0 rows: 0 new, 0 there already, 0 bad"


@pytest.mark.parametrize("format", ROWS)
def test_groups_are_made_on_request_alone(tmp_path, format):
    column = {"train": "group", "annotated": "target_group"}.get(format, "Input.target_group")
    row = ROWS[format](**{column: "left-handed people"})
    assert "These groups are not known: left_handed." in str(refused(import_rows, tmp_path, format, row))
    outcome = import_rows(tmp_path, format, row, make_groups=True)
    assert outcome.stored["groups"] == 1
    assert TargetGroup.objects.get(slug="left_handed").words == "left handed people"


def test_of_many_unknown_groups_the_first_are_named(tmp_path):
    rows = [train_row(group=f"club {number}") for number in range(25)]
    sentence = str(refused(import_rows, tmp_path, "train", *rows))
    assert "These groups are not known: club_0, club_1, club_2" in sentence
    assert "club_19 and 5 more. Tick “Make groups" in sentence
    assert "club_20" not in sentence


def test_faults_are_written_for_spreadsheets():
    faults = Faults()
    for value in ("=1+1", " +1", "-1", "@x", "\tx", "\rx", "plain", ""):
        faults.add(2, "What is wrong.", value=value)
    rows = list(csv.reader(io.StringIO("".join(csv_lines(faults, file="train.csv")), newline="")))
    assert [value for _, _, _, value, _ in rows[1:]] == [
        "'=1+1", "' +1", "'-1", "'@x", "'\tx", "'\rx", "plain", "",
    ]  # fmt: skip


def test_an_import_is_kept_with_its_counts_and_noted(tmp_path):
    ada = User.objects.create_user("ada")
    path = csv_file(tmp_path / "train.csv", [train_row(), train_row(generation="")])
    import_file(format="train", path=path, options=Options(on_fault="skip"), by=ada)
    record = DataImport.objects.get()
    assert (record.state, record.rows, record.new, record.known, record.bad) == ("finished", 2, 1, 0, 1)
    assert (record.file_name, record.created_by, record.options) == ("train.csv", ada, {"on_fault": "skip"})
    assert record.faults.values_list("line", "column").get() == (3, "generation")
    entry = AuditEntry.objects.get(act="file imported")
    assert (entry.by, entry.subject) == (ada, f"import {record.pk}")
    assert entry.details == {"format": "train", "file": "train.csv", "new": 1, "known": 0, "bad": 1}


def test_labels_say_which_import_they_came_by(tmp_path):
    import_rows(tmp_path, "annotated", annotated_row())
    assert HumanLabel.objects.get().data_import == DataImport.objects.get()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"on_fault": "ignore"}, "on-fault cannot be 'ignore'. Choose one of: refuse, skip."),
        ({"label": "rude"}, "label cannot be 'rude'. Choose one of: benign, toxic."),
        ({"study": "x" * 201}, "A study's title has at most 200 characters; this one has 201."),
    ],
)
def test_options_that_make_no_sense_are_refused(options, sentence):
    with pytest.raises(WrongOption) as wrong:
        Options(**options)
    assert str(wrong.value) == sentence


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(WrongOption, match=r"There is no format 'gold'\. Choose one of: demonstrations, prompts, train"):
        import_file(format="gold", path=tmp_path)


# --- At the same time


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("format", ["train", "annotations"])
def test_two_imports_of_one_file_at_once_neither_double_nor_fail(tmp_path, format):
    make_group()
    rows = [ROWS[format]() | ({WORKER: f"w{number}"} if format == "annotations" else {}) for number in range(20)]
    path = csv_file(tmp_path / "rows.csv", rows)
    one, other = at_once(*[lambda: import_file(format=format, path=path)] * 2)
    assert sorted([one.new, other.new]) == [0, 20]
    assert (Generation if format == "train" else Annotation).objects.count() == 20


@pytest.mark.django_db(transaction=True)
def test_two_imports_of_demonstrations_at_once_neither_double_nor_fail(tmp_path):
    make_group()
    path = tmp_path / "neutral_women.txt"
    path.write_text("".join(f"the ferry number {number} is late\n" for number in range(20)))
    one, other = at_once(*[lambda: import_file(format="demonstrations", path=path)] * 2)
    assert sorted([one.new, other.new]) == [0, 20]
    assert Demonstration.objects.count() == Demonstration.history.count() == 20


@pytest.mark.django_db(transaction=True)
def test_an_import_waits_for_a_sentence_that_somebody_is_adding(tmp_path):
    group = make_group()
    path = tmp_path / "neutral_women.txt"
    path.write_text("the choir sang\nthe lake is deep\n")
    add = lambda: Demonstration.objects.create(group=group, label="benign", text="the choir sang")  # noqa: E731
    with stored_at_the_end(add):
        running = in_the_background(lambda: import_file(format="demonstrations", path=path))
        wait_until_somebody_waits_for_a_lock()
    assert (running.result().new, running.result().known) == (1, 1)
