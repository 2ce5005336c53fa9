"""``manage.py import``: counts and sentences for whoever sits at the command line."""

import csv
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from generation.models import Demonstration, Generation
from tests.analysis.imports.files import REAL, csv_file, train_row

pytestmark = pytest.mark.django_db


def run(*args):
    """What the command prints, and what it complains of."""
    out, err = StringIO(), StringIO()
    try:
        call_command("import", *map(str, args), stdout=out, stderr=err)
    except CommandError as error:
        return out.getvalue(), f"{err.getvalue()}{error}", error.returncode
    return out.getvalue(), err.getvalue(), 0


def test_the_counts_are_printed(tmp_path):
    path = csv_file(tmp_path / "train.csv", [train_row(), train_row(), train_row()])
    assert run("train", path) == (
        "3 rows: 3 new, 0 there already, 0 bad.\nStored: 1 prompts, 3 statements.\n", "", 0,
    )  # fmt: skip
    assert run("train", path) == ("3 rows: 0 new, 3 there already, 0 bad.\n", "", 0)


def test_a_bad_file_fails_with_its_faults_on_the_screen_and_in_a_file(tmp_path):
    path = csv_file(tmp_path / "train.csv", [train_row(generation="")] * 12)
    faults = tmp_path / "faults.csv"
    out, err, code = run("train", path, "--faults", faults)
    assert (out, code) == ("", 1)
    lines = err.splitlines()
    assert lines[0] == "Line 2, generation: The text is empty. Fill it in or remove the row."
    assert lines[10:] == [f"… and 2 more; all are in {faults}.", "Nothing was stored: 12 of 12 rows are bad."]
    with faults.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    assert rows[0] == {
        "file": "train.csv", "line": "2", "column": "generation", "value": "",
        "message": "The text is empty. Fill it in or remove the row.",
    }  # fmt: skip


def test_skipped_rows_are_told_and_the_others_stored(tmp_path):
    path = csv_file(tmp_path / "train.csv", [train_row(), train_row(group="martian")])
    out, err, code = run("train", path, "--on-fault", "skip")
    assert code == 0
    assert out.startswith("2 rows: 1 new, 0 there already, 1 bad.\n")
    assert err == (
        "Line 3, group: The group martian is not known. Make it, or tick “Make groups that are not known yet” "
        "(on the command line --make-groups).\n"
    )


def test_options_are_passed_on(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_bytes("the café is open\n".encode("cp1252"))
    run("demonstrations", path, "--group", "tall", "--label", "benign", "--make-groups", "--encoding", "cp1252")
    assert Demonstration.objects.values_list("group__slug", "text").get() == ("tall", "the café is open")


def test_a_missing_file_fails_with_a_sentence(tmp_path):
    assert run("train", tmp_path / "none.csv")[1:] == (f"There is no file {tmp_path / 'none.csv'}.", 1)


def test_a_faults_file_that_cannot_be_written_is_told(tmp_path):
    path = csv_file(tmp_path / "train.csv", [train_row()])
    assert (
        "cannot be written: No such file or directory." in run("train", path, "--faults", tmp_path / "no" / "f.csv")[1]
    )


@pytest.mark.parametrize("argument", [("gold", "x.csv"), ("train",), ("train", "x.csv", "--on-fault", "ignore")])
def test_wrong_arguments_are_refused(argument):
    with pytest.raises(CommandError):
        call_command("import", *argument)


# --- The real files


needs_real_files = pytest.mark.skipif(not REAL.is_dir(), reason="the real files are not there: ../shared/data/toxigen")


@needs_real_files
def test_the_real_annotated_table_is_imported_once():
    path = REAL / "annotated.csv"
    assert run("annotated", path)[0].startswith("8,960 rows: 8,960 new, 0 there already, 0 bad.\n")
    assert run("annotated", path)[0] == "8,960 rows: 0 new, 8,960 there already, 0 bad.\n"
    assert not Generation.objects.filter(text__startswith="b'").exists()


@needs_real_files
def test_the_real_demonstrations_are_imported_once():
    path = REAL / "demonstrations"
    assert "These groups are not known: immigrant, bisexual." in run("demonstrations", path)[1]
    assert run("demonstrations", path, "--make-groups")[0].startswith("627 rows: 587 new, 40 there already, 0 bad.\n")
    assert run("demonstrations", path)[0].startswith("627 rows: 0 new, 627 there already, 0 bad.\n")
    assert Demonstration.objects.values("group").distinct().count() == 14


@needs_real_files
def test_the_real_prompt_file_is_imported_once():
    path = REAL / "neutral_women_1k.txt"
    assert run("prompts", path)[0].startswith("1,000 rows: 1,000 new, 0 there already, 0 bad.\n")
    assert run("prompts", path)[0] == "1,000 rows: 0 new, 1,000 there already, 0 bad.\n"
