"""The labelled set as CSV: exact, complete, without worker ids, streamed, and never half a file."""

import csv
import hashlib
import io
import os
import subprocess
import sys
import tracemalloc
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from analysis.exports import annotations
from analysis.management.commands import export as command
from annotator import reviewing, submitting
from annotator.models import HIT, Annotation, Assignment, Worker
from generation.models import Generation
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

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = [
    "annotation_id",
    "study",
    "hit_id",
    "statement_id",
    "text",
    "target_group",
    "prompt_label",
    "generation_method",
    "hashed_worker_id",
    "accepted_at",
    "submitted_at",
    "assignment_status",
    "counted",
    "not_understood",
    "human_or_ai",
    "harmful_if_ai",
    "harmful_if_human",
    "pos_stereo",
    "harmful_intent",
    "lewd",
    "which_group",
    "other_groups",
    "group_framing",
    "other_framing",
    "fact_or_opinion",
    "toxicity",
    "toxicity_class",
]


def annotate(hit=None, worker=None, **changes):
    assignment = make_assignment(hit or make_hit(), worker)
    submitting.submit(assignment=assignment, answers=answers(**changes))
    return assignment.annotation


def exported():
    return "".join(annotations.csv_lines())


def rows(text=None):
    return list(csv.DictReader(io.StringIO(exported() if text is None else text, newline="")))


# --- What is in it


def test_the_columns_stand_in_this_order():
    assert exported() == ",".join(COLUMNS) + "\r\n"


def test_an_annotation_is_a_row_with_all_there_is_to_it(settings):
    settings.WORKER_HASH_SALT = "salt"
    group = make_group("gardeners")
    hit = make_hit(
        generation=make_generation("they water the roses", group=group), hit_type=make_hit_type(title="A study")
    )
    worker = consenting_worker(pk=987654321)
    annotation = annotate(hit, worker, which_group="other_groups", other_groups="bakers, cyclists", harmful_if_ai=4)
    assert rows() == [
        {
            "annotation_id": str(annotation.pk),
            "study": "A study",
            "hit_id": str(hit.pk),
            "statement_id": str(hit.generation_id),
            "text": "they water the roses",
            "target_group": "gardeners",
            "prompt_label": "benign",
            "generation_method": "topk",
            "hashed_worker_id": "e2e0c770a63ee15f027ab2714e462f73",
            "accepted_at": Assignment.objects.get().accepted_at.isoformat(),
            "submitted_at": Assignment.objects.get().submitted_at.isoformat(),
            "assignment_status": "submitted",
            "counted": "True",
            "not_understood": "False",
            "human_or_ai": "ai",
            "harmful_if_ai": "4",
            "harmful_if_human": "2",
            "pos_stereo": "no",
            "harmful_intent": "1",
            "lewd": "no",
            "which_group": "other_groups",
            "other_groups": "bakers, cyclists",
            "group_framing": "none",
            "other_framing": "",
            "fact_or_opinion": "factual",
            "toxicity": "4",
            "toxicity_class": "toxic",
        }
    ]


def test_every_annotation_is_one_row_in_the_order_they_were_stored():
    hit = make_hit()
    stored = [annotate(hit).pk for _ in range(3)] + [annotate().pk]
    assert [int(row["annotation_id"]) for row in rows()] == stored


def test_an_answer_that_was_not_given_is_an_empty_cell():
    annotate(not_understood=True, **dict.fromkeys(answers()))
    (row,) = rows()
    given = {name for name in COLUMNS[COLUMNS.index("not_understood") + 1 :] if row[name] != ""}
    assert (row["not_understood"], given) == ("True", set())


@pytest.mark.parametrize(
    ("if_ai", "if_human", "toxicity", "name"),
    [(1, 2, "2", "non-toxic"), (3, 1, "3", "ambiguous"), (2, 5, "5", "toxic")],
)
def test_the_toxicity_is_the_larger_harm_and_its_class(if_ai, if_human, toxicity, name):
    annotate(harmful_if_ai=if_ai, harmful_if_human=if_human)
    (row,) = rows()
    assert (row["toxicity"], row["toxicity_class"]) == (toxicity, name)


def test_the_column_counted_marks_the_labels_and_no_others():
    hit = make_hit(max_assignments=5)
    annotate(hit), annotate(hit)
    annotate(hit, not_understood=True)
    rejected = annotate(hit)
    reviewing.reject(ids=[rejected.assignment_id], reason="It was empty.", by=None)
    late = annotate(hit)
    Assignment.objects.filter(pk=late.assignment_id).update(holds_place=False)
    labels = {str(pk) for pk in Annotation.objects.counted().values_list("pk", flat=True)}
    assert len(labels) == 2
    assert {row["annotation_id"] for row in rows() if row["counted"] == "True"} == labels


# --- Who


def test_no_worker_id_and_no_pseudonym_is_in_the_file():
    worker = consenting_worker(pk=987654321)
    annotate(worker=worker)
    assert "987654321" not in exported()
    assert worker.pseudonym not in exported()


def test_a_worker_has_one_hash_and_two_workers_have_two():
    worker = consenting_worker()
    annotate(worker=worker), annotate(), annotate(worker=worker)
    first, other, again = (row["hashed_worker_id"] for row in rows())
    assert first == again != other


def test_the_hash_takes_the_salt_so_that_nobody_can_count_through_the_ids(settings):
    settings.WORKER_HASH_SALT = "salt"
    one = annotations.hashed_worker(1)
    settings.WORKER_HASH_SALT = "another salt"
    assert annotations.hashed_worker(1) != one
    assert one != hashlib.sha256(b"1").hexdigest()[:32]


# --- Exactly


cells = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
in_one_database = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def hard_texts(test):
    for text in (
        'she said "hello", twice',
        "one\ntwo\r\nthree\rfour",
        "\r x",
        "=1+1",
        "+1",
        "-1",
        "@x",
        "NA",
        "nan",
        "null",
        "None",
        "  spaces around  ",
        "\tx",
        "👩🏽\u200d🚀 🏳️\u200d🌈",
        "مرحبا \u202e abc",
        "\ufeffx",
        "x\x1a\x1c\x85\u2028y",
        "'x'",
        "#x",
        "0001",
        "1e5",
        "True",
        '"',
        '""',
        "x,",
        "\\N",
        "\\",
    ):
        test = example(text=text, other=text)(test)
    return test


@hard_texts
@in_one_database
@given(text=cells.filter(lambda text: any(map(str.isalnum, text))), other=cells)
def test_every_text_comes_back_exactly_through_csv_and_pandas(text, other):
    with transaction.atomic():
        annotation = annotate(make_hit(generation=make_generation("x" + text)))
        Annotation.objects.filter(pk=annotation.pk).update(other_groups=other, other_framing=text)
        file = exported().encode()
        transaction.set_rollback(True)
    (row,) = rows(file.decode())
    frame = pd.read_csv(io.BytesIO(file), keep_default_na=False, dtype=str)
    for read in (row, frame.iloc[0]):
        assert (read["text"], read["other_groups"], read["other_framing"]) == ("x" + text, other, text)
    assert (frame.shape, list(frame.columns)) == ((1, len(COLUMNS)), COLUMNS)


def test_a_text_that_begins_like_a_formula_is_left_as_it_is():
    annotate(make_hit("=SUM(A1)"))
    assert rows()[0]["text"] == "=SUM(A1)"


# --- However many there are


@pytest.mark.parametrize("number", [1, 12])
def test_one_query_exports_them_all(number):
    hit = make_hit(max_assignments=12)
    for _ in range(number):
        annotate(hit)
    with CaptureQueriesContext(connection) as queries:
        assert len(rows()) == number
    assert len(queries) == 1


def annotate_many(number):
    """So many annotations of one worker, by bulk inserts."""
    study, group, worker = make_hit_type(), make_group(), consenting_worker()
    consent, now = worker.consents.get(), timezone.now()
    generations = Generation.objects.bulk_create(
        Generation(text=f"statement {index} {'x' * 200}", group=group, label="benign", method="topk")
        for index in range(number)
    )
    hits = HIT.objects.bulk_create(
        HIT(hit_type=study, generation=generation, max_assignments=3, expires_at=now + timedelta(days=1))
        for generation in generations
    )
    assignments = Assignment.objects.bulk_create(
        Assignment(
            hit=hit,
            worker=worker,
            consent=consent,
            status="submitted",
            submitted_at=now,
            deadline=now + timedelta(hours=1),
            reward=0,
        )
        for hit in hits
    )
    Annotation.objects.bulk_create(Annotation(assignment=assignment, **answers()) for assignment in assignments)


def peak_of_exporting():
    tracemalloc.start()
    try:
        count = sum(1 for _ in annotations.csv_lines())
        return count - 1, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_memory_it_takes_does_not_grow_with_the_number_of_rows(monkeypatch):
    monkeypatch.setattr(annotations, "CHUNK", 50)
    annotate_many(100)
    few, peak_of_few = peak_of_exporting()
    annotate_many(900)
    many, peak_of_many = peak_of_exporting()
    assert (few, many) == (100, 1000)
    assert peak_of_many < 2 * peak_of_few  # not ten times; what is garbage is collected now and then


def test_the_rows_wait_in_the_database_not_in_the_server_process():
    annotate()
    lines = annotations.csv_lines()
    next(lines), next(lines)
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_cursors WHERE name LIKE '\\_django\\_curs%'")
        ((statement,),) = cursor.fetchall()
    lines.close()
    assert "annotator_annotation" in statement


# --- The page and the download


def test_a_researcher_downloads_what_the_command_writes(admin_client, tmp_path):
    annotate(make_hit('she said "é"'))
    response = admin_client.get("/admin/export/annotations.csv")
    assert response.streaming
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    today = f"{timezone.now():%Y-%m-%d}"
    assert response["Content-Disposition"] == f'attachment; filename="annotations-{today}.csv"'
    call_command("export", "annotations", str(tmp_path / "a.csv"))
    assert b"".join(response.streaming_content) == (tmp_path / "a.csv").read_bytes()


def test_an_export_that_does_not_exist_cannot_be_downloaded(admin_client):
    assert admin_client.get("/admin/export/passwords.csv").status_code == 404


def test_the_export_page_says_how_many_rows_there_are(admin_client):
    annotate(), annotate()
    page = admin_client.get("/admin/export/").content.decode()
    assert "(2 rows)" in page
    assert 'href="/admin/export/annotations.csv"' in page


# --- The command


def test_the_command_writes_the_file_and_says_how_many_rows(tmp_path, capsys):
    annotate(), annotate()
    file = tmp_path / "labels.csv"
    call_command("export", "annotations", str(file))
    assert capsys.readouterr().out == f"2 rows written to {file}.\n"
    assert file.read_bytes().decode() == exported()


def test_a_file_that_was_there_is_replaced(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("old\n" * 1000)
    call_command("export", "annotations", str(file))
    assert file.read_text() == exported().replace("\r\n", "\n")


def test_an_export_that_breaks_off_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def breaks_off():
        yield "header\r\n"
        raise ConnectionError("the database went away")

    monkeypatch.setitem(command.EXPORTS, "annotations", breaks_off)
    file = tmp_path / "labels.csv"
    file.write_text("the old one")
    with pytest.raises(CommandError):
        call_command("export", "annotations", str(file))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("labels.csv", "the old one")]


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("nowhere/labels.csv", "No such file or directory"),
        ("file/labels.csv", "Not a directory"),
        ("folder", "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_said_in_a_sentence(tmp_path, place, reason):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(CommandError) as refusal:
        call_command("export", "annotations", str(tmp_path / place))
    assert str(refusal.value) == (
        f"{tmp_path / place} cannot be written: {reason}. Choose another folder or free some space."
    )
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


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
    assert done.stderr == "CommandError: There is no export 'passwords'. Choose one of: annotations.\n"


def test_exporting_changes_nothing():
    annotate()
    before = list(Annotation.objects.values()), list(Worker.objects.values())
    exported()
    assert (list(Annotation.objects.values()), list(Worker.objects.values())) == before
