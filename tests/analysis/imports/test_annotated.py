"""The ``annotated`` table: statements with what people together made of them."""

import pytest

from analysis.importing import import_file
from analysis.models import HumanLabel
from generation.models import Generation
from tests.analysis.imports.files import annotated_row, import_rows, json_lines, refused, train_row
from tests.factories import make_generation, make_group

pytestmark = pytest.mark.django_db


def test_labels_are_stored_with_their_statements(tmp_path):
    outcome = import_rows(
        tmp_path, "annotated",
        annotated_row(text=r"b'the caf\xc3\xa9 is open'", label="hate", actual_method="CBS", intent="", framing=""),
    )  # fmt: skip
    label = HumanLabel.objects.get()
    assert label.generation.text == "the café is open"
    assert (label.generation.label, label.generation.method, label.generation.run) == ("toxic", "alice", None)
    assert (label.factual, label.framing, label.predicted_author) == ("factual", "", "human")
    assert (label.intent, label.toxicity_ai, label.toxicity_human) == (None, 1.333333333, 2.0)
    assert label.predicted_group == "['the text directly references women', 'it is unclear who is referenced']"
    assert outcome.stored == {"statements": 1, "labels": 1}


def test_a_second_import_changes_nothing_and_tells_of_differences(tmp_path):
    row = annotated_row(text="one")
    import_rows(tmp_path, "annotated", row, row)
    assert import_rows(tmp_path, "annotated", row).summary() == "1 rows: 0 new, 1 there already, 0 bad"
    outcome = import_rows(tmp_path, "annotated", row | {"intent": "5"})
    assert outcome.known == 1
    assert outcome.notes == ["1 rows differ from what is stored; nothing was changed."]
    assert HumanLabel.objects.get().intent == 1


def test_a_label_is_attached_to_the_statement_that_is_stored_already(tmp_path):
    import_rows(tmp_path, "train", train_row(generation="the lake is deep"))
    outcome = import_rows(tmp_path, "annotated", annotated_row(text="the lake is deep"))
    assert outcome.stored == {"labels": 1}
    assert HumanLabel.objects.get().generation == Generation.objects.get()


@pytest.mark.parametrize(
    "stored", [{"group": "asian"}, {"label": "toxic"}, {"method": "alice"}, {"text": "The lake is deep"}]
)
def test_another_group_label_method_or_text_is_another_statement(tmp_path, stored):
    group = make_group(stored.pop("group", "women"))
    make_generation(**{"text": "the lake is deep", "group": group} | stored)
    assert import_rows(tmp_path, "annotated", annotated_row(text="the lake is deep")).stored["statements"] == 1


def test_where_the_file_says_no_label_the_stored_statement_does(tmp_path):
    make_generation("the lake is deep", label="toxic", group=make_group())
    row = annotated_row(text="the lake is deep")
    del row["label"]
    assert import_rows(tmp_path, "annotated", row, label="benign").stored == {"labels": 1}


def test_without_a_stored_statement_the_option_says_the_label(tmp_path):
    row = annotated_row()
    del row["label"]
    refusal = refused(import_rows, tmp_path, "annotated", row)
    assert [(fault.line, fault.column, fault.message) for fault in refusal.faults] == [
        (2, "label", "The row says no label, and no statement with this text and group is stored. "
                     "Fill it in, or say --label.")
    ]  # fmt: skip
    import_rows(tmp_path, "annotated", row, label="toxic")
    assert Generation.objects.get().label == "toxic"


def test_rows_without_a_label_can_be_skipped(tmp_path):
    outcome = import_rows(tmp_path, "annotated", annotated_row(label=""), annotated_row(), on_fault="skip")
    assert outcome.summary() == "2 rows: 1 new, 0 there already, 1 bad"


def test_lists_of_json_are_kept_as_python_writes_them(tmp_path):
    import_file(
        format="annotated",
        path=json_lines(tmp_path / "a.jsonl", [annotated_row(predicted_group=["one", "two"], intent=2)]),
    )
    assert HumanLabel.objects.values_list("predicted_group", "intent").get() == ("['one', 'two']", 2)


@pytest.mark.parametrize(
    ("changes", "column", "sentence"),
    [
        ({"toxicity_ai": "5.5"}, "toxicity_ai", "5.5 is not in the range from 1 to 5."),
        ({"intent": "0"}, "intent", "0 is not in the range from 1 to 5."),
        ({"text": "b'\\xff'"}, "text", "The text looks like a Python bytes literal, but its bytes are not UTF-8."),
        ({"label": "spam"}, "label", "This word is not known here. Known are: neutral, benign, 0, hate, toxic, 1."),
        ({"factual?": "x" * 101}, "factual?", "There are 101 characters; at most 100 are possible."),
        (
            {"predicted_author": "a\0"},
            "predicted_author",
            "There is a NUL character (U+0000), which no text has. Remove it.",
        ),
    ],
)
def test_faults_name_their_column(tmp_path, changes, column, sentence):
    [fault] = refused(import_rows, tmp_path, "annotated", annotated_row(), annotated_row(**changes)).faults
    assert (fault.line, fault.column, fault.message) == (3, column, sentence)
