"""Demonstrations and prompts: folders, text files and tables of them."""

import pytest
from django.contrib.auth.models import Permission, User

from analysis.importing import import_file
from analysis.imports import reading
from analysis.imports.work import Options
from generation.models import Demonstration, Label, Prompt, TargetGroup
from tests.analysis.imports.files import csv_file, json_lines, parquet_file, refused
from tests.factories import make_demonstrations, make_group

pytestmark = pytest.mark.django_db


def write(folder, name, *lines):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def demonstrations(path, *, by=None, **options):
    return import_file(format="demonstrations", path=path, options=Options(**options), by=by)


def prompts(path, **options):
    return import_file(format="prompts", path=path, options=Options(**options))


def sets():
    return set(Demonstration.objects.values_list("group__slug", "label", "text"))


# --- Demonstrations


def test_a_folder_is_read_with_the_labels_and_groups_of_its_file_names(tmp_path):
    write(tmp_path, "gender/neutral_women_sentences.txt", "- my aunt drives a crane", "", "  the choir sang  ")
    write(tmp_path, "hate_mental_disability_sentences.txt", "a placeholder")
    write(tmp_path, "neutral_lgbtq.txt", "the chess club meets")
    write(tmp_path, "README.txt", "what this is")
    write(tmp_path, "hate_women.md", "no text file")
    outcome = demonstrations(tmp_path)
    assert sets() == {
        ("women", "benign", "my aunt drives a crane"),
        ("women", "benign", "the choir sang"),
        ("mental_dis", "toxic", "a placeholder"),
        ("lgbtq", "benign", "the chess club meets"),
    }
    assert outcome.summary() == "4 rows: 4 new, 0 there already, 0 bad"
    assert outcome.stored == {"demonstrations": 4}
    assert outcome.notes == ["Left out, since their names say no label and group: README.txt.", "Files read: 3."]


def test_a_second_import_changes_nothing(tmp_path):
    path = write(tmp_path, "neutral_women.txt", "the choir sang", "the choir sang", "the lake is deep")
    assert demonstrations(path).summary() == "3 rows: 2 new, 1 there already, 0 bad"
    assert demonstrations(path).summary() == "3 rows: 0 new, 3 there already, 0 bad"


def test_what_is_imported_says_so_and_begins_its_history(tmp_path):
    ada = User.objects.create_user("ada")
    demonstrations(write(tmp_path, "neutral_women.txt", "the choir sang"), by=ada)
    demonstration = Demonstration.objects.get()
    assert (demonstration.origin, demonstration.created_by) == ("imported", ada)
    version = demonstration.history.get()
    assert (version.history_type, version.history_user, version.text) == ("+", ada, "the choir sang")
    assert version.history_change_reason == "imported from neutral_women.txt"


def test_one_that_was_retired_stays_so(tmp_path):
    from django.utils import timezone

    [demonstration] = make_demonstrations(texts=["the choir sang"])
    Demonstration.objects.update(retired_at=timezone.now(), retired_reason="too short")
    outcome = demonstrations(write(tmp_path, "neutral_women.txt", "the choir sang"))
    assert outcome.known == 1
    assert outcome.notes == ["Demonstrations of the file that were retired here, and stay so: 1."]
    demonstration.refresh_from_db()
    assert demonstration.retired_at is not None


def test_a_sentence_that_is_too_long_is_a_fault_with_its_file_and_line(tmp_path):
    write(tmp_path, "neutral_women.txt", "fine", "", "x" * 501)
    refusal = refused(demonstrations, tmp_path)
    assert str(refusal) == (
        "Nothing was stored: 1 of 2 rows is bad. Mend the file, or choose “If a row is bad: leave it out, and store "
        "the others” (on the command line --on-fault skip)."
    )
    [fault] = refusal.faults
    assert (fault.file, fault.line, fault.message) == (
        "neutral_women.txt", 3, "The text has 501 characters; at most 500 are possible.",
    )  # fmt: skip
    assert not Demonstration.objects.exists()


def test_unknown_groups_are_all_named_and_made_if_asked_for(tmp_path):
    write(tmp_path, "neutral_immigrant_sentences.txt", "the ferry leaves at noon")
    write(tmp_path, "neutral_bisexual.txt", "the lake is deep")
    assert "These groups are not known: bisexual, immigrant. Tick “Make groups" in str(
        refused(demonstrations, tmp_path)
    )
    assert not TargetGroup.objects.filter(slug="immigrant").exists()
    outcome = demonstrations(tmp_path, make_groups=True)
    assert outcome.stored == {"groups": 2, "demonstrations": 2}
    assert TargetGroup.objects.get(slug="immigrant").name == "Immigrant"


def test_toxic_sets_are_filled_by_those_only_who_may(tmp_path):
    ada = User.objects.create_user("ada")
    path = write(tmp_path, "hate_women.txt", "a placeholder")
    assert "your account may not fill toxic sets" in str(refused(demonstrations, path, by=ada))
    ada.user_permissions.add(Permission.objects.get(codename="fill_toxic_set"))
    assert demonstrations(path, by=User.objects.get()).new == 1
    assert demonstrations(path).known == 1  # the operator at the command line may


def test_a_file_whose_name_says_nothing_needs_group_and_label(tmp_path):
    path = write(tmp_path, "mine.txt", "the choir sang")
    assert "Give “Group” (on the command line --group) and “Label” (" in str(refused(demonstrations, path))
    demonstrations(path, group="women", label=Label.BENIGN)
    assert sets() == {("women", "benign", "the choir sang")}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"label": "benign"},
            "The name hate_women.txt says the label toxic, but “Label” (on the command line --label) says benign.",
        ),
        (
            {"group": "asian"},
            "The name hate_women.txt says the group women, but “Group” (on the command line --group) says asian.",
        ),
    ],
)
def test_an_option_that_contradicts_a_file_name_is_refused(tmp_path, options, sentence):
    path = write(tmp_path, "hate_women.txt", "a placeholder")
    write(tmp_path, "neutral_women.txt", "the choir sang")
    assert str(refused(demonstrations, path, **options)).startswith(sentence)
    assert str(refused(demonstrations, tmp_path, **options)).startswith(sentence)
    assert not Demonstration.objects.exists()


def test_options_that_say_what_a_file_name_says_are_taken(tmp_path):
    demonstrations(write(tmp_path, "hate_women.txt", "a placeholder"), group="women", label="toxic")
    assert sets() == {("women", "toxic", "a placeholder")}


@pytest.mark.parametrize("writes", [csv_file, json_lines, parquet_file])
def test_tables_of_demonstrations_are_read(tmp_path, writes):
    rows = [
        {"label": "neutral", "group": "women", "text": "the choir sang"},
        {"label": "1", "group": "asian", "text": "a placeholder"},
    ]
    suffix = {csv_file: "csv", json_lines: "jsonl", parquet_file: "parquet"}[writes]
    demonstrations(writes(tmp_path / f"sets.{suffix}", rows))
    assert sets() == {("women", "benign", "the choir sang"), ("asian", "toxic", "a placeholder")}


def test_faults_of_a_table_name_their_column(tmp_path):
    rows = [
        {"group": "women", "label": "", "text": "a"},
        {"group": "", "label": "0", "text": "b"},
        {"group": "women", "label": "0", "text": "two\nlines"},
        {"group": "women", "label": "0", "text": " "},
    ]
    refusal = refused(demonstrations, csv_file(tmp_path / "sets.csv", rows))
    assert [(fault.line, fault.column, fault.message.split(".")[0]) for fault in refusal.faults] == [
        (2, "label", "The row says no label"),
        (3, "group", "The row says no group"),
        (4, "text", "A demonstration is one line: a prompt puts each on a line of its own"),
        (6, "text", "The text is empty"),
    ]


def test_a_folder_without_such_files_is_refused(tmp_path):
    write(tmp_path, "notes.txt", "nothing")
    assert "there is no file named as published: hate_GROUP….txt" in str(refused(demonstrations, tmp_path))


def test_a_list_without_line_ends_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LONGEST_LINE", 1000)
    path = write(tmp_path, "neutral_women.txt", "the choir sang", "x" * 1001)
    assert "Line 2 of neutral_women.txt has more than 1,000 characters" in str(refused(demonstrations, path))


def test_a_list_in_utf_16_without_its_mark_is_refused(tmp_path):
    path = tmp_path / "neutral_women.txt"
    path.write_bytes("the choir sang\n".encode("utf-16-le"))
    said = "Give “Encoding: utf-16-le” (on the command line --encoding utf-16-le), or utf-16-be for a file of"
    assert said in str(refused(demonstrations, path, encoding="utf-16"))


# --- Prompts


def test_a_prompt_file_is_read_with_its_line_ends(tmp_path):
    path = write(tmp_path, "neutral_women_1k.txt", r"- the choir sang\n- the lake is deep\n-", "", r"- one\n-")
    assert prompts(path).summary() == "2 rows: 2 new, 0 there already, 0 bad"
    assert set(Prompt.objects.values_list("group__slug", "label", "text")) == {
        ("women", "benign", "- the choir sang\n- the lake is deep\n-"),
        ("women", "benign", "- one\n-"),
    }
    assert prompts(path).summary() == "2 rows: 0 new, 2 there already, 0 bad"


def test_a_prompt_that_a_run_has_drawn_is_known(tmp_path):
    Prompt.objects.create(group=make_group(), label=Label.BENIGN, text="- one\n-")
    assert prompts(write(tmp_path, "neutral_women_1k.txt", r"- one\n-")).known == 1


def test_a_table_of_prompts_is_read(tmp_path):
    rows = [{"group": "women", "label": "benign", "text": "- one\n-"}]
    assert prompts(csv_file(tmp_path / "prompts.csv", rows)).new == 1


def test_an_encoding_is_looked_for_in_text_files_too(tmp_path):
    path = tmp_path / "neutral_women.txt"
    path.write_bytes("café\n".encode("cp1252"))
    assert "byte 4, in line 1, is 0xE9" in str(refused(demonstrations, path))
    demonstrations(path, encoding="cp1252")
    assert sets() == {("women", "benign", "café")}
