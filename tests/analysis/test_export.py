"""The export of annotations: exact, complete, and without worker ids."""

import hashlib
import io

import pandas as pd
import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from analysis.exports import EXPORTS
from analysis.exports.filtering import IS_COUNTED
from analysis.exports.workers import hashed_worker
from annotator import reviewing, submitting
from annotator.models import Annotation, Assignment, Worker
from generation.models import AuditEntry
from tests.analysis.exported import csv_rows, exported, json_rows, parquet_rows
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
    "prompt",
]


def annotate(hit=None, worker=None, **changes):
    assignment = make_assignment(hit or make_hit(), worker)
    submitting.submit(assignment=assignment, answers=answers(**changes))
    return assignment.annotation


def rows():
    return csv_rows("annotations")


# --- What is in it


def test_the_columns_stand_in_this_order():
    assert exported("annotations").decode() == ",".join(COLUMNS) + "\n"


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
            "accepted_at": Assignment.objects.get().accepted_at.isoformat(timespec="microseconds"),
            "submitted_at": Assignment.objects.get().submitted_at.isoformat(timespec="microseconds"),
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
            "prompt": "",
        }
    ]


def test_every_annotation_is_one_row_in_the_order_they_were_stored():
    hit = make_hit()
    stored = [annotate(hit).pk for _ in range(3)] + [annotate().pk]
    assert [int(row["annotation_id"]) for row in rows()] == stored


def test_an_answer_that_was_not_given_is_an_empty_cell():
    annotate(not_understood=True, **dict.fromkeys(answers()))
    (row,) = rows()
    asked = COLUMNS[COLUMNS.index("not_understood") + 1 : COLUMNS.index("prompt")]
    given = {name for name in asked if row[name] != ""}
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
    assert {str(pk) for pk in Annotation.objects.filter(IS_COUNTED).values_list("pk", flat=True)} == labels


def test_json_and_parquet_have_numbers_and_truth_values_where_csv_has_words():
    annotate(harmful_if_ai=4)
    annotate(not_understood=True, **dict.fromkeys(answers()))
    for read in (json_rows, parquet_rows):
        first, second = read("annotations")
        assert list(first) == COLUMNS
        assert (first["counted"], first["harmful_if_ai"], first["toxicity"]) == (True, 4, 4)
        assert (second["counted"], second["harmful_if_ai"], second["lewd"]) == (False, None, None)
        assert (second["not_understood"], second["other_groups"]) == (True, "")


# --- Who


def test_no_worker_id_and_no_pseudonym_is_in_the_file():
    worker = consenting_worker(pk=987654321)
    annotate(worker=worker)
    file = exported("annotations").decode()
    assert "987654321" not in file
    assert worker.pseudonym not in file


def test_a_worker_has_one_hash_and_two_workers_have_two():
    worker = consenting_worker()
    annotate(worker=worker), annotate(), annotate(worker=worker)
    first, other, again = (row["hashed_worker_id"] for row in rows())
    assert first == again != other


def test_the_hash_takes_the_salt_so_that_nobody_can_count_through_the_ids(settings):
    settings.WORKER_HASH_SALT = "salt"
    one = hashed_worker(1)
    settings.WORKER_HASH_SALT = "another salt"
    assert hashed_worker(1) != one
    assert one != hashlib.sha256(b"1").hexdigest()[:32]


@pytest.mark.parametrize("salt", ["salt", "ein längeres Salz", "s" * 64, "s" * 65])
def test_the_database_makes_the_same_hash_as_python(settings, salt):
    settings.WORKER_HASH_SALT = salt
    worker = consenting_worker()
    annotate(worker=worker)
    assert rows()[0]["hashed_worker_id"] == hashed_worker(worker.pk)


def test_a_worker_whose_work_was_imported_keeps_the_hash_of_the_file():
    annotate(worker=consenting_worker(imported_hash="as in the file"))
    assert rows()[0]["hashed_worker_id"] == "as in the file"


@pytest.mark.parametrize("name", ["annotations", "mturk"])
def test_no_statement_that_the_database_logs_tells_the_salt(settings, name):
    settings.WORKER_HASH_SALT = "salt"
    annotate()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL log_statement = 'all'; SET LOCAL client_min_messages = log")  # and tell us
        connection.connection.notices.clear()
        exported(name)
        cursor.execute("SET LOCAL client_min_messages TO DEFAULT")
    logged = "".join(connection.connection.notices)
    assert "annotator_annotation" in logged
    for secret in ("salt", "73616c74", "45575a42", "2f3d3028"):  # in hexadecimal, and as the pads of the HMAC
        assert secret not in logged.replace("export_salt", "")


def test_why_work_was_rejected_is_in_no_file_but_mechanical_turks():
    rejected = annotate()
    reviewing.reject(ids=[rejected.assignment_id], reason="Words between two people.", by=None)
    told = {name: "Words between two people." in exported(name, "jsonl").decode() for name in EXPORTS}
    assert [name for name, tells in told.items() if tells] == ["mturk"]


# --- Exactly


cells = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
in_one_database = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
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
def test_every_text_comes_back_exactly_in_every_format(text, other):
    with transaction.atomic():
        annotation = annotate(make_hit(generation=make_generation("x" + text)))
        Annotation.objects.filter(pk=annotation.pk).update(other_groups=other, other_framing=text)
        file = exported("annotations")
        (row,), (line,), (record,) = rows(), json_rows("annotations"), parquet_rows("annotations")
        transaction.set_rollback(True)
    frame = pd.read_csv(io.BytesIO(file), keep_default_na=False, dtype=str)
    for read in (row, frame.iloc[0], line, record):
        assert (read["text"], read["other_groups"], read["other_framing"]) == ("x" + text, other, text)
    assert (frame.shape, list(frame.columns)) == ((1, len(COLUMNS)), COLUMNS)


def test_exporting_changes_nothing_but_the_audit_trail():
    annotate()
    before = list(Annotation.objects.values()), list(Worker.objects.values())
    exported("annotations")
    assert (list(Annotation.objects.values()), list(Worker.objects.values())) == before
    assert AuditEntry.objects.get().act == "annotations exported"
