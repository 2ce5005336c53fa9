"""The ``train`` table: statements with their prompts."""

import pytest

from analysis.importing import MANY, import_file
from generation.models import Generation, Prompt
from tests.analysis.imports.files import (
    annotated_row,
    csv_file,
    import_rows,
    json_lines,
    parquet_file,
    refused,
    train_row,
)
from tests.factories import make_searched_generation

pytestmark = pytest.mark.django_db


def test_statements_and_prompts_are_stored_as_the_file_has_them(tmp_path):
    outcome = import_rows(
        tmp_path, "train",
        train_row(generation=" the ferry leaves at noon", roberta_prediction="0.125"),
        train_row(generation="the lake is deep", generation_method="ALICE", group="asian", prompt_label="1"),
        train_row(generation="without a prompt", prompt="", roberta_prediction=""),
    )  # fmt: skip
    prompt = "- the choir sang\n- the lake is deep\n-"
    assert list(
        Generation.objects.order_by("pk").values_list(
            "prompt__text", "text", "method", "group__slug", "label", "toxic_prob", "run"
        )
    ) == [
        (prompt, " the ferry leaves at noon", "topk", "women", "benign", 0.125, None),
        (prompt, "the lake is deep", "alice", "asian", "toxic", 0.25, None),
        (None, "without a prompt", "topk", "women", "benign", None, None),
    ]
    assert outcome.stored == {"prompts": 2, "statements": 3}
    assert outcome.summary() == "3 rows: 3 new, 0 there already, 0 bad"


def test_a_second_import_changes_nothing_and_repetitions_are_known(tmp_path):
    rows = [train_row(generation="one"), train_row(generation="one"), train_row(generation="one", prompt="- other\n-")]
    assert import_rows(tmp_path, "train", *rows).summary() == "3 rows: 2 new, 1 there already, 0 bad"
    assert import_rows(tmp_path, "train", *rows).summary() == "3 rows: 0 new, 3 there already, 0 bad"
    assert Generation.objects.count() == 2


def test_a_statement_of_a_run_here_is_known_when_it_comes_back(tmp_path):
    own = make_searched_generation(text="the ferry leaves at noon")
    row = train_row(prompt=own.prompt.text, generation=own.text, generation_method="ALICE")
    assert import_rows(tmp_path, "train", row).summary() == "1 rows: 0 new, 1 there already, 0 bad"


def test_a_prompt_with_line_ends_is_taken_as_it_stands(tmp_path):
    import_rows(tmp_path, "train", train_row(prompt="- write \\n for a line end\n-"))
    assert Prompt.objects.get().text == "- write \\n for a line end\n-"


def test_a_statement_that_a_file_of_labels_made_gets_its_prompt(tmp_path):
    import_rows(tmp_path, "annotated", annotated_row(text="one", label="neutral", actual_method="TopK"))
    row = train_row(generation="one", prompt=r"- a\n-")
    outcome = import_rows(tmp_path, "train", row, row | {"prompt": r"- b\n-"})
    assert outcome.summary() == "2 rows: 1 new, 1 there already, 0 bad"
    assert outcome.stored == {"prompts": 2, "prompts of statements known before": 1, "statements": 1}
    labelled, other = Generation.objects.order_by("pk")
    assert (labelled.prompt.text, labelled.toxic_prob, other.prompt.text) == ("- a\n-", 0.25, "- b\n-")
    assert labelled.human_label is not None
    assert import_rows(tmp_path, "train", row).summary() == "1 rows: 0 new, 1 there already, 0 bad"


def test_a_statement_that_is_told_without_a_prompt_too_stays_so(tmp_path):
    rows = [train_row(generation="one", prompt=""), train_row(generation="one", prompt=r"- a\n-")]
    import_rows(tmp_path, "train", rows[0])
    assert import_rows(tmp_path, "train", *rows).summary() == "2 rows: 1 new, 1 there already, 0 bad"
    assert import_rows(tmp_path, "train", *rows).new == 0
    assert import_rows(tmp_path, "train", rows[1]).new == 0


@pytest.mark.parametrize(("writes", "suffix"), [(json_lines, "jsonl"), (parquet_file, "parquet")])
def test_other_formats_are_read_alike(tmp_path, writes, suffix):
    rows = [
        train_row(generation="one", prompt_label=1, roberta_prediction=0.5),
        train_row(generation="two", prompt_label=0, roberta_prediction=None),
    ]
    import_file(format="train", path=writes(tmp_path / f"train.{suffix}", rows))
    assert set(Generation.objects.values_list("text", "label", "toxic_prob")) == {
        ("one", "toxic", 0.5),
        ("two", "benign", None),
    }


def test_every_fault_names_its_line_and_column(tmp_path):
    refusal = refused(
        import_rows, tmp_path, "train",
        train_row(generation="two\nlines are one cell"),
        train_row(generation=" "),
        train_row(generation_method="beam"),
        train_row(group="martian"),
        train_row(prompt_label="2"),
        train_row(roberta_prediction="1.5"),
        train_row(roberta_prediction="high"),
        train_row(prompt="a\0b"),
        train_row(generation_method="written"),
        train_row(generation_method=""),
        train_row(prompt_label=""),
        train_row(group=""),
    )  # fmt: skip
    assert [(fault.line, fault.column, fault.value, fault.message) for fault in refusal.faults] == [
        (4, "generation", " ", "The text is empty. Fill it in or remove the row."),
        (5, "generation_method", "beam", "This word is not known here. Known are: alice, cbs, topk, top-k, written."),
        (
            6,
            "group",
            "martian",
            "The group martian is not known. Make it, or tick “Make groups that are not known yet” "
            "(on the command line --make-groups).",
        ),
        (7, "prompt_label", "2", "This word is not known here. Known are: neutral, benign, 0, hate, toxic, 1."),
        (8, "roberta_prediction", "1.5", "1.5 is not in the range from 0 to 1."),
        (9, "roberta_prediction", "high", "This is no number. Write one from 0 to 1."),
        (10, "prompt", "a␀b", "There is a NUL character (U+0000), which no text has. Remove it."),
        (11, "generation_method", "written", "This table has what language models wrote: ALICE or TopK."),
        (
            12,
            "generation_method",
            "",
            "The row says no method. Write ALICE or TopK, or give “Method” (on the command "
            "line --method) for all such rows.",
        ),
        (
            13,
            "prompt_label",
            "",
            "The row says no label. Write 0 or 1, or give “Label” (on the command line --label) for all such rows.",
        ),
        (
            14,
            "group",
            "",
            "The row says no group. Fill it in, or give “Group” (on the command line --group) for all such rows.",
        ),
    ]
    assert str(refusal).startswith("Nothing was stored: 11 of 12 rows are bad. These groups are not known: martian.")
    assert not Generation.objects.exists()
    assert not Prompt.objects.exists()


def test_options_stand_in_where_the_file_is_silent(tmp_path):
    row = train_row(group="", prompt_label="", generation_method="")
    import_rows(tmp_path, "train", row, group="asian", label="toxic", method="alice")
    assert Generation.objects.values_list("group__slug", "label", "method").get() == ("asian", "toxic", "alice")


def test_columns_that_are_not_known_are_left_out_and_named(tmp_path):
    outcome = import_rows(tmp_path, "train", train_row(comment="x", source="y"))
    [note] = outcome.notes
    assert note.startswith("Columns of train-")
    assert note.endswith(".csv that were left out: comment and source.")


def test_missing_columns_refuse_the_file(tmp_path):
    refusal = refused(
        import_file, format="train", path=csv_file(tmp_path / "train.csv", [{"prompt": "a", "group": "b"}])
    )
    assert str(refusal) == (
        "train.csv lacks the columns generation, generation_method, prompt_label and roberta_prediction. "
        "It has: prompt, group."
    )


def test_the_overview_knows_at_once_how_much_a_large_file_held(tmp_path, admin_client):
    import_rows(tmp_path, "train", *(train_row(generation=f"boat {number} sails") for number in range(MANY)))
    assert f"≈ {MANY:,}" in admin_client.get("/admin/").content.decode()
