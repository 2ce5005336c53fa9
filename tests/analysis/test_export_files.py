"""Exports as files: formats, filters, cells that a spreadsheet would run, the command, the page, the audit trail."""

import io
import os
import subprocess
import sys
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis.exports import EXPORTS, parquet, writing
from analysis.exports.filtering import WrongFilter
from analysis.exports.writing import FORMATS, UnknownExport, stream
from analysis.models import DataImport, HumanLabel, ImportedAnnotation
from analysis.released import KEPT
from annotator import submitting
from annotator.models import Assignment
from annotator.spreadsheets import harmless
from generation.models import AuditEntry, Generation, Prompt
from tests.analysis.exported import csv_rows, exported, json_rows, parquet_rows
from tests.factories import (
    answers,
    consenting_worker,
    make_assignment,
    make_generation,
    make_group,
    make_hit,
    make_searched_generation,
)

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]


def annotate(hit=None, worker=None, **changes):
    assignment = make_assignment(hit or make_hit(), worker or consenting_worker())
    submitting.submit(assignment=assignment, answers=answers(**changes))
    return assignment.annotation


# --- Formats


@pytest.mark.parametrize("name", EXPORTS)
def test_all_formats_say_the_same(name):
    prompt = Prompt.objects.create(group=make_group(), label="benign", text='- "one",\n- two\r\n-')
    generation = make_generation(text='she said "hi", 👩🏽\u200d🚀', prompt=prompt, toxic_prob=0.1)
    annotate(make_hit(generation=generation, max_assignments=1), other_framing="=1+1")
    ((as_json,), (as_parquet,), (as_csv,)) = (read(name) for read in (json_rows, parquet_rows, csv_rows))
    assert as_json == as_parquet
    assert list(as_json) == list(as_csv) == [column.name for column in EXPORTS[name].columns({})]
    words = {None: "", True: "true", False: "false"}
    told = {key: words[value] if value is None or isinstance(value, bool) else value for key, value in as_json.items()}
    for key, value in as_csv.items():
        assert (value.lower() if isinstance(as_json[key], bool) else value) == (
            f"{told[key]:g}" if isinstance(told[key], float) else str(told[key])
        )


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_without_rows_has_its_columns_all_the_same(name):
    columns = [column.name for column in EXPORTS[name].columns({})]
    assert exported(name).decode() == ",".join(columns) + "\n"
    assert exported(name, "jsonl") == b""
    assert pyarrow.parquet.read_schema(io.BytesIO(exported(name, "parquet"))).names == columns


def test_parquet_is_written_a_row_group_at_a_time(monkeypatch):
    monkeypatch.setattr(parquet, "BLOCK", 2000)
    monkeypatch.setattr(parquet, "ROW_GROUP", 3000)
    for number in range(60):
        make_generation(f"line one\nline two of {number} {'x' * 200}")
    file = pyarrow.parquet.ParquetFile(io.BytesIO(exported("train", "parquet")))
    assert file.num_row_groups > 2
    assert [row["generation"] for row in file.read().to_pylist()] == [row["generation"] for row in csv_rows("train")]


def test_the_longest_texts_that_can_be_stored_fit_into_parquet():
    prompt = Prompt.objects.create(group=make_group(), label="benign", text="𝄞" * 100_000)
    make_generation("𝄞\n" * 50_000, prompt=prompt)
    assert parquet_rows("train") == json_rows("train")


def test_an_empty_text_in_parquet_is_not_null():
    make_generation()
    (row,) = parquet_rows("train")
    assert (row["prompt"], row["roberta_prediction"]) == ("", None)


def test_rows_stand_in_the_order_in_which_they_were_stored():
    stored = [make_generation().text for _ in range(30)]
    assert [row["generation"] for row in csv_rows("train")] == stored


@pytest.mark.parametrize("name", EXPORTS)
def test_more_rows_take_no_more_queries(name):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            exported(name)
        return len(captured)

    hit = make_hit(max_assignments=12)
    annotate(hit)
    few = queries()
    for _ in range(8):
        annotate(hit)
    assert queries() == few


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_the_memory_it_takes_does_not_grow_with_the_number_of_rows(format):
    group = make_group()
    Generation.objects.bulk_create(
        Generation(text=f"{number} {'x' * 4000}", group=group, label="benign", method="topk") for number in range(1000)
    )
    exported("train", format)
    tracemalloc.start()
    try:
        size = sum(map(len, stream("train", format)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size > 4_000_000
    assert peak < 1_000_000


@pytest.mark.django_db(transaction=True)
def test_what_others_do_meanwhile_is_not_in_the_file():
    make_generation("first")
    elsewhere = connection.copy()
    with writing.one_snapshot():
        assert [row["generation"] for row in csv_rows("train")] == ["first"]
        with elsewhere.cursor() as cursor:
            cursor.execute("UPDATE generation_generation SET text = 'changed'")
        assert [row["generation"] for row in csv_rows("train")] == ["first"]
    elsewhere.close()
    assert [row["generation"] for row in csv_rows("train")] == ["changed"]


def test_an_unknown_export_or_format_is_named():
    with pytest.raises(UnknownExport) as refusal:
        stream("passwords")
    assert str(refusal.value) == (
        "There is no export 'passwords'. Choose one of: train, annotated, annotations, wide, mturk, humanval."
    )
    with pytest.raises(UnknownExport) as refusal:
        stream("train", "xlsx")
    assert str(refusal.value) == "There is no format 'xlsx'. Choose one of: csv, jsonl, parquet."


# --- Cells that a spreadsheet would run


FORMULAS = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", " =1", "＝1"]
PLAIN = ["one = two", "a-b", "'=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_begins_like_a_formula_is_left_as_it_is_unless_asked(text):
    make_generation(text)
    assert csv_rows("train")[0]["generation"] == text
    assert csv_rows("train", excel_safe=True)[0]["generation"] == f"'{text}"
    assert harmless(text) == f"'{text}"


@pytest.mark.parametrize("text", PLAIN)
def test_any_other_text_stays_as_it_is_also_for_a_spreadsheet(text):
    make_generation(text)
    assert csv_rows("train", excel_safe=True)[0]["generation"] == text == harmless(text)


@pytest.mark.parametrize("name", ["annotated", "annotations", "mturk"])
def test_imported_words_are_harmless_to_a_spreadsheet_too(name):
    words = ("factual", "ingroup_effect", "lewd", "framing", "stereotyping", "predicted_author", "predicted_group")
    HumanLabel.objects.create(generation=make_generation(), **dict.fromkeys(words, "=1+1"))
    annotation = annotate(make_hit(), worker=consenting_worker(imported_hash="=cmd"))
    columns = dict.fromkeys(KEPT, "+1") | {"assignment_status": "-1"}
    ImportedAnnotation.objects.create(
        annotation=annotation, data_import=DataImport.objects.create(format="mturk"), columns=columns
    )
    plain = [cell for row in csv_rows(name) for cell in row.values()]
    safe = [cell for row in csv_rows(name, excel_safe=True) for cell in row.values()]
    assert any(cell.startswith(("=", "+")) for cell in plain)
    assert safe == [harmless(cell) for cell in plain]


# --- Filters


def statements(filters):
    return [row["generation"] for row in csv_rows("train", filters)]


@pytest.fixture
def four():
    """Statements that differ in everything that can be asked for."""
    make_generation("first", group=make_group("singers"), toxic_prob=0.1)
    make_generation("second", group=make_group("bakers"), label="toxic", toxic_prob=0.5)
    make_generation("third", group=make_group("bakers"), method="alice", toxic_prob=0.9)
    return make_searched_generation(text="fourth")


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ({"group": ["bakers"]}, ["second", "third"]),
        ({"group": ["bakers", "singers"]}, ["first", "second", "third"]),
        ({"label": ["toxic"]}, ["second"]),
        ({"method": ["alice"]}, ["third", "fourth"]),
        ({"imported": "yes"}, ["first", "second", "third"]),
        ({"imported": "no"}, ["fourth"]),
        ({"score_min": "0.5"}, ["second", "third"]),
        ({"score_max": "0.5"}, ["first", "second"]),
        ({"score_min": "0.2", "score_max": "0.6", "group": ["bakers"]}, ["second"]),
        ({"group": "", "score_min": "", "run": ""}, ["first", "second", "third", "fourth"]),
    ],
)
def test_a_filter_leaves_what_was_asked_for(four, filters, left):
    assert statements(filters) == left


def test_statements_of_a_run_or_of_a_study(four):
    assert statements({"run": four.run_id}) == ["fourth"]
    hit = make_hit(generation=four)
    make_hit(generation=four)
    assert statements({"study": [hit.hit_type_id]}) == ["fourth"]


def test_annotations_of_some_days_of_a_study_and_those_that_count():
    first, second, third = annotate(), annotate(), annotate(not_understood=True, **dict.fromkeys(answers()))
    for annotation, day in ((first, 1), (second, 2), (third, 3)):
        moment = datetime(2026, 11, day, 23, 59, tzinfo=UTC)
        Assignment.objects.filter(annotation=annotation).update(
            submitted_at=moment, accepted_at=moment - timedelta(minutes=1)
        )

    def left(**filters):
        return [int(row["annotation_id"]) for row in csv_rows("annotations", filters)]

    assert left(submitted_from="2026-11-02") == [second.pk, third.pk]
    assert left(submitted_to="2026-11-02") == [first.pk, second.pk]
    assert left(submitted_from="2026-11-02", submitted_to="2026-11-02") == [second.pk]
    assert left(submitted_from="0001-01-01", submitted_to="9999-12-31") == [first.pk, second.pk, third.pk]
    assert left(study=[second.assignment.hit.hit_type_id]) == [second.pk]
    assert left(counted="yes") == [first.pk, second.pk]
    assert left(counted="no") == [third.pk]


def test_a_day_is_one_in_utc_to_its_last_microsecond_wherever_the_workspace_is():
    annotation = annotate()
    last = datetime(2026, 11, 2, 23, 59, 59, 999_999, tzinfo=UTC)
    with timezone.override("Asia/Tokyo"):
        for moment, days in ((last, [2]), (last + timedelta(microseconds=1), [3])):
            Assignment.objects.filter(annotation=annotation).update(submitted_at=moment)
            only = {day: dict.fromkeys(("submitted_from", "submitted_to"), f"2026-11-0{day}") for day in (1, 2, 3, 4)}
            assert [day for day, filters in only.items() if csv_rows("annotations", filters)] == days


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        ({"group": ["nobody"]}, "There is no group “nobody”. Give the slug of one that there is."),
        ({"label": ["rude"]}, "There is no label “rude”. Choose one of: benign, toxic."),
        ({"method": ["magic"]}, "There is no method “magic”. Choose one of: topk, alice, written."),
        ({"run": "77"}, "There is no run “77”. Give the number of one that there is."),
        ({"run": "x"}, "There is no run “x”. Give the number of one that there is."),
        ({"study": ["77"]}, "There is no study “77”. Give the number of one that there is."),
        ({"study": ["x"]}, "There is no study “x”. Give the number of one that there is."),
        ({"imported": "maybe"}, "Give “yes” for imported statements alone, or “no” for all others."),
        ({"score_min": "2"}, "A classifier's score is a number from 0 to 1."),
        ({"score_max": "nan"}, "A classifier's score is a number from 0 to 1."),
        ({"score_min": "0.5", "score_max": "0.1"}, "The last score lies before the first: 0.1 is less than 0.5."),
        ({"counted": "yes"}, "The export train has no filter “counted”. It takes: group, label, method, run, imported, "
         "study, score_min, score_max, humanval, classifier."),
    ],
)  # fmt: skip
def test_a_filter_that_cannot_be_is_refused_with_a_sentence(filters, sentence):
    with pytest.raises(WrongFilter) as refusal:
        stream("train", filters=filters)
    assert str(refusal.value) == sentence
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("name", EXPORTS)
def test_every_filter_of_every_export_is_one_the_database_understands(name):
    hit = make_hit(generation=make_searched_generation())
    every = {
        "group": ["women"], "label": ["benign"], "method": ["alice"], "run": hit.generation.run_id, "imported": "no",
        "study": [hit.hit_type_id], "score_min": "0", "score_max": "1", "submitted_from": "2026-01-01",
        "submitted_to": "2026-12-31", "counted": "no",
    }  # fmt: skip
    takes = EXPORTS[name].takes
    filters = {filter: value for filter, value in every.items() if filter in takes}
    assert len(csv_rows(name, filters)) == (name == "train" and hit.generation.toxic_prob is not None)


# --- The audit trail


def test_who_exported_what_is_noted_with_the_number_of_rows():
    user = User.objects.create(username="ada")
    make_generation(group=make_group("bakers"))
    exported("train", "jsonl", {"group": ["bakers"], "score_max": "", "imported": "yes"}, by=user)
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.by) == ("train exported", user)
    assert entry.details == {"format": "jsonl", "rows": 1, "filters": {"group": ["bakers"], "imported": True}}


# --- The page and the download


def test_a_researcher_downloads_what_the_command_writes(admin_client, tmp_path):
    annotate(make_hit('she said "é"'))
    response = admin_client.get("/admin/export/annotations.csv")
    assert response.streaming
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    today = f"{timezone.now():%Y-%m-%d}"
    assert response["Content-Disposition"] == f'attachment; filename="annotations-{today}.csv"'
    call_command("export", "annotations", str(tmp_path / "a.csv"))
    body = b"".join(response.streaming_content)
    assert body == (tmp_path / "a.csv").read_bytes()
    assert response["Content-Length"] == str(len(body))


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("format", FORMATS)
def test_every_export_can_be_downloaded_in_every_format(admin_client, name, format):
    response = admin_client.get(f"/admin/export/{name}.{format}")
    assert (response.status_code, response["Content-Type"]) == (200, writing.CONTENT_TYPES[format])
    response.close()


@pytest.mark.parametrize("file", ["passwords.csv", "annotations.xlsx"])
def test_an_export_that_does_not_exist_cannot_be_downloaded(admin_client, file):
    assert admin_client.get(f"/admin/export/{file}").status_code == 404


def test_a_download_takes_the_filters_of_the_page(admin_client):
    make_generation("=first", group=make_group("bakers"))
    make_generation("second")
    response = admin_client.get("/admin/export/train.csv?group=bakers&excel_safe=on&run=&study=")
    assert b"".join(response.streaming_content).decode().splitlines()[1].split(",")[1] == "'=first"


def test_a_wrong_filter_is_said_beside_its_field(admin_client):
    response = admin_client.get("/admin/export/train.csv?score_min=2")
    assert response.status_code == 400
    page = response.content.decode()
    assert "A classifier&#x27;s score is a number from 0 to 1." in page
    assert '<details class="panel which-rows" open>' in page


def test_a_filter_that_the_export_does_not_have_is_said_too(admin_client):
    response = admin_client.get("/admin/export/train.csv?counted=yes")
    assert response.status_code == 400
    page = response.content.decode()
    sentence = "The export train has no filter “Annotations”. It takes: Groups; Prompt labels; Methods; Run; "
    assert page.count(sentence) == 2
    assert "“counted”" not in page


def test_what_is_wrong_is_said_at_the_top_with_a_link_to_the_field(admin_client):
    page = admin_client.get("/admin/export/train.csv?submitted_from=2026-01-05").content.decode()
    top = page[page.index("<strong>Nothing was exported.</strong>") : page.index("Before you download")]
    assert '<a href="#id_submitted_from">Submitted from</a>: The export train has no filter' in top
    assert 'id="id_submitted_from"' in page
    assert "Nothing was exported" not in admin_client.get("/admin/export/").content.decode()


def test_the_page_reads_no_more_however_much_there_is(admin_client):
    def queries():
        with CaptureQueriesContext(connection) as captured:
            page = admin_client.get("/admin/export/").content.decode()
        assert "annotations.parquet" in page
        return len(captured)

    queries()
    few = queries()
    for _ in range(3):
        annotate()
    assert queries() == few


def may_see(client, *codenames):
    """Log somebody in who has these permissions; return which exports they are shown and which they get."""
    user = User.objects.create(username=f"eve {codenames}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    page = client.get("/admin/export/").content.decode()
    shown = [name for name in EXPORTS if f"{name}.csv" in page]
    return shown, [name for name in EXPORTS if client.get(f"/admin/export/{name}.csv").status_code == 200]


def test_every_export_takes_the_permission_to_read_statements_and_those_of_judgements_another(client):
    assert may_see(client, "view_generation") == (["train"], ["train"])
    assert may_see(client, "view_annotation") == ([], [])
    assert client.get("/admin/export/").status_code == 403
    assert may_see(client, "view_generation", "view_annotation") == ([*EXPORTS], [*EXPORTS])


def test_the_way_to_the_page_is_shown_to_those_who_may_open_it(client):
    in_the_sidebar = '<a href="/admin/export/" class='
    may_see(client, "view_annotation")
    assert in_the_sidebar not in client.get("/admin/").content.decode()
    may_see(client, "view_generation")
    assert in_the_sidebar in client.get("/admin/").content.decode()


# --- The command


def test_the_command_writes_the_file_and_says_how_many_rows(tmp_path, capsys):
    annotate(), annotate()
    file = tmp_path / "labels.csv"
    call_command("export", "annotations", str(file))
    assert capsys.readouterr().out == f"2 rows written to {file}.\n"
    assert file.read_bytes() == exported("annotations")
    assert file.stat().st_mode & 0o777 == 0o666 & ~writing._umask()


@pytest.mark.parametrize("format", FORMATS)
def test_the_files_ending_says_the_format_or_an_option_does(tmp_path, format):
    make_generation()
    call_command("export", "train", str(tmp_path / f"a.{format}"))
    call_command("export", "train", str(tmp_path / "b"), "--format", format)
    assert (tmp_path / f"a.{format}").read_bytes() == (tmp_path / "b").read_bytes() == exported("train", format)


def test_the_command_takes_the_filters_and_notes_that_nobody_in_particular_ran_it(tmp_path, capsys):
    make_generation("-first", group=make_group("bakers"))
    make_generation("second")
    file = tmp_path / "train.csv"
    call_command("export", "train", str(file), "--group", "bakers", "--group", "women", "--score-min=", "--excel-safe")
    call_command("export", "train", str(file), "--group", "bakers", "--excel-safe")
    assert file.read_text().splitlines()[1].split(",")[1] == "'-first"
    entry = AuditEntry.objects.first()
    assert (entry.by, entry.details["filters"], entry.details["excel_safe"]) == (None, {"group": ["bakers"]}, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "a.xlsx"], "a.xlsx does not say in which format to write: let it end in .csv, .jsonl or .parquet, "
         "or give --format csv|jsonl|parquet."),
        (["train", "a.csv", "--format", "xlsx"], "There is no format 'xlsx'. Choose one of: csv, jsonl, parquet."),
        (["train", "a.jsonl", "--excel-safe"], "--excel-safe is for spreadsheets, which read CSV and not jsonl. "
         "Leave it out."),
        (["train", "a.csv", "--group", "nobody"], "There is no group “nobody”. Give the slug of one that there is."),
        (["train", "a.csv", "--license", "cc0-1.0"], "The export train has no --license; export dataset has one."),
        (["dataset", "a", "--excel-safe"], "The dataset has no --excel-safe: its tables are Parquet."),
    ],
)  # fmt: skip
def test_a_wrong_argument_ends_with_status_2_and_a_sentence(tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CommandError) as refusal:
        call_command("export", *arguments)
    assert (str(refusal.value), refusal.value.returncode) == (sentence, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_there_is_replaced(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("old\n" * 1000)
    call_command("export", "annotations", str(file))
    assert file.read_bytes() == exported("annotations")


def test_an_export_that_breaks_off_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def breaks_off(*_, **__):
        raise ConnectionError("the database went away")

    monkeypatch.setattr(writing, "note_export", breaks_off)
    file = tmp_path / "labels.csv"
    file.write_text("the old one")
    with pytest.raises(CommandError):
        call_command("export", "annotations", str(file))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("labels.csv", "the old one")]


def test_a_full_disk_is_an_error_and_leaves_the_database_usable():
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(28, "No space left on device")

    make_generation()
    with pytest.raises(OSError, match="No space left on device"):
        writing.write(EXPORTS["train"], "csv", Full(), {})
    assert len(csv_rows("train")) == 1


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("nowhere/labels.csv", "No such file or directory"),
        ("file/labels.csv", "Not a directory"),
        ("folder.csv", "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_said_in_a_sentence(tmp_path, place, reason):
    (tmp_path / "file").touch()
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(CommandError) as refusal:
        call_command("export", "annotations", str(tmp_path / place))
    assert str(refusal.value) == (
        f"{tmp_path / place} cannot be written: {reason}. Choose another folder or free some space."
    )
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder.csv"]


def test_an_unknown_export_ends_with_exit_code_2_and_a_sentence(tmp_path):
    done = subprocess.run(
        [sys.executable, "manage.py", "export", "passwords", str(tmp_path / "x.csv")],
        cwd=ROOT,
        env={**os.environ, "HUMANVAL_VAR": str(tmp_path), "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"},
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "CommandError: There is no export 'passwords'. "
        "Choose one of: train, annotated, annotations, wide, mturk, humanval, dataset.\n"
    )
