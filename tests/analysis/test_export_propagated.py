"""Propagated labels: a chosen classifier's probabilities as ``roberta_prediction``, and what is told of it."""

import json
import re

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analysis.exports.filtering import WrongFilter
from analysis.exports.propagated import propagated
from analysis.exports.sql import as_cells
from analysis.exports.train import TRAIN
from generation.models import AuditEntry, Generation, Precision, Prompt, ReaderKind
from tests.analysis.exported import csv_rows, json_rows, parquet_rows
from tests.factories import (
    make_generation,
    make_group,
    make_reader,
    make_toxicity_score,
    make_trained_classifier,
)

pytestmark = pytest.mark.django_db

DATA = {"statements": 200, "toxic": 90, "benign": 110, "alice": 100, "topk": 100, "left_out": {}, "humanval": [1, 2]}


def classifier(name="weather-head", **fields):
    return make_reader(ReaderKind.CLASSIFIER, name=name, **fields)


def scored_by(reader, **probabilities):
    """Statements with these texts, each with a probability; ``None``: this reader has not scored it."""
    made = []
    for text, probability in probabilities.items():
        made.append(make_generation(text, toxic_prob=0.5))
        if probability is not None:
            make_toxicity_score(made[-1], probability, reader=reader)
    return made


def predictions(filters=None):
    return {row["generation"]: row["roberta_prediction"] for row in json_rows("train", filters)}


# --- The column


def test_the_prediction_is_the_chosen_classifiers_and_empty_where_it_has_scored_nothing():
    reader = classifier()
    scored_by(reader, rain=0.125, sun=None)
    make_toxicity_score(Generation.objects.get(text="rain"), 0.75, reader=classifier("another"))
    assert predictions({"classifier": str(reader.pk)}) == {"rain": 0.125, "sun": None}
    assert [row["roberta_prediction"] for row in csv_rows("train", {"classifier": reader.pk})] == ["0.125", ""]
    assert [row["roberta_prediction"] for row in parquet_rows("train", {"classifier": reader.pk})] == [0.125, None]


def test_without_a_classifier_it_is_what_was_stored_with_the_statement():
    scored_by(classifier(), rain=0.125)
    assert predictions() == {"rain": 0.5}


def test_a_classifier_is_named_by_its_number_or_by_its_name_for_the_revision_used_last():
    first = classifier(revision="files aa")
    (rain,) = scored_by(first, rain=0.125)
    second = classifier(revision="files bb")
    make_toxicity_score(rain, 0.25, reader=second)
    assert predictions({"classifier": "weather-head"}) == {"rain": 0.25}
    assert predictions({"classifier": str(first.pk)}) == {"rain": 0.125}


@pytest.mark.parametrize("given", ["nobody", "77", "encoder"])
def test_a_classifier_that_there_is_not_is_refused_with_what_to_do(given):
    make_reader(ReaderKind.ENCODER, name="encoder")
    with pytest.raises(WrongFilter) as refusal:
        csv_rows("train", {"classifier": given})
    assert str(refusal.value) == (
        f"No classifier “{given}” has scored statements. Have it read them first: manage.py read_statements classifier "
        "--model NAME, or Generate, Readings."
    )


def test_other_exports_have_no_such_filter():
    with pytest.raises(WrongFilter, match="The export annotated has no filter “classifier”"):
        csv_rows("annotated", {"classifier": classifier().pk})


@pytest.mark.parametrize(
    ("limits", "left"),
    [({"score_min": "0.5"}, ["snow"]), ({"score_max": "0.5"}, ["rain"]), ({}, ["rain", "sun", "snow"])],
)
def test_the_filters_of_scores_are_about_the_chosen_classifiers(limits, left):
    reader = classifier()
    scored_by(reader, rain=0.125, sun=None, snow=0.75)
    assert [row["generation"] for row in csv_rows("train", {"classifier": reader.pk, **limits})] == left


def test_the_audit_trail_keeps_the_classifiers_number():
    reader = classifier()
    csv_rows("train", {"classifier": "weather-head"})
    assert AuditEntry.objects.get().details["filters"] == {"classifier": reader.pk}


# --- It stays one query with an index for it


def test_the_scores_are_looked_up_by_the_index_of_reader_and_statement():
    reader = classifier()
    scored_by(reader, rain=0.125)
    filters = {"classifier": reader}
    sql, parameters = as_cells(TRAIN, TRAIN.columns(filters), filters, excel_safe=False)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        cursor.execute(f"EXPLAIN {sql}", parameters)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert re.search(r"Index Scan using toxicity_score_once .*\n +Index Cond: \(\(reader_id = \d+\) AND", plan)


def test_more_scores_take_no_more_queries():
    reader = classifier()

    def queries():
        with CaptureQueriesContext(connection) as captured:
            csv_rows("train", {"classifier": reader.pk})
        return len(captured)

    scored_by(reader, rain=0.125)
    few = queries()
    scored_by(reader, sun=0.5, snow=0.75)
    assert queries() == few


# --- And back again


def test_what_was_exported_is_imported_with_the_classifiers_probabilities(tmp_path):
    reader = classifier()
    prompt = Prompt.objects.create(group=make_group(), label="benign", text="- one\n- two\n-")
    make_toxicity_score(make_generation("rain", prompt=prompt, toxic_prob=0.5), 0.125, reader=reader)
    scored_by(reader, sun=None)
    file = tmp_path / "train.csv"
    call_command("export", "train", str(file), "--classifier", "weather-head")
    call_command("import", "train", str(file))
    assert predictions() == {"rain": 0.5, "sun": 0.5}, "what is stored already stays"
    Generation.objects.all().delete()
    call_command("import", "train", str(file))
    assert predictions() == {"rain": 0.125, "sun": None}


# --- What is told of the classifier


def test_the_command_says_how_many_statements_have_no_score(tmp_path, capsys):
    reader = classifier(revision="files aa")
    scored_by(reader, rain=0.125, sun=None)
    call_command("export", "train", str(tmp_path / "a.csv"), "--classifier", "weather-head")
    assert capsys.readouterr().out == (
        f"2 rows written to {tmp_path / 'a.csv'}.\n"
        "1 of 2 statements has no score by weather-head (files aa): there roberta_prediction is empty. To have them "
        "scored: manage.py read_statements classifier --model weather-head --precision float32\n"
    )
    call_command("export", "train", str(tmp_path / "a.csv"))
    assert capsys.readouterr().out == f"2 rows written to {tmp_path / 'a.csv'}.\n"


@pytest.fixture
def trained():
    reader = classifier(revision="files aa", precision=Precision.BFLOAT16)
    rain, _, snow = scored_by(reader, rain=0.125, sun=None, snow=0.75)
    make_trained_classifier("weather-head", revision="files aa", data=DATA, seed=7, trained_on=[rain, snow])
    return reader


def test_the_card_names_the_classifier_its_revision_and_precision_and_what_it_was_trained_on(trained, tmp_path, capsys):
    call_command("export", "dataset", str(tmp_path / "set"), "--classifier", "weather-head")
    card = (tmp_path / "set" / "README.md").read_text()
    told = [
        "roberta_prediction of train is the probability that the statement is toxic by weather-head (revision files "
        "aa, bfloat16): a label propagated by a classifier, not what people made of the statement.",
        "1 of 3 statements has no score by weather-head (files aa, bfloat16): there roberta_prediction is empty. To "
        "have them scored: manage.py read_statements classifier --model weather-head --precision bfloat16",
        "This classifier is weather-head, trained here from all-minilm-l6-v2 (head on frozen embeddings, seed 7) on "
        "200 statements with the labels of their prompts: 90 toxic, 110 benign; 100 by ALICE, 100 by top-k.",
        "HUMANVAL 1, 2, and what is too similar to its statements, was left out of its training.",
        "It was trained on 2 of the statements in train: of these its probabilities are closer to the labels than of "
        "others.",
    ]
    assert "## The propagated labels\n\n" + "\n\n".join(told) in card
    assert "toxic by weather-head (files aa, bfloat16); empty where there is none. |" in card
    metadata = json.loads((tmp_path / "set" / "croissant.json").read_text())
    assert metadata["rai:machineAnnotationTools"] == told
    (field,) = (f for f in metadata["recordSet"][0]["field"] if f["name"] == "train/roberta_prediction")
    assert "weather-head (files aa, bfloat16)" in field["description"]
    assert told[1] in capsys.readouterr().out


def test_of_a_classifier_from_elsewhere_the_card_says_whose_it_is_and_no_training(tmp_path):
    reader = classifier("someone/roberta", revision="")
    scored_by(reader, rain=0.125)
    make_trained_classifier("weather-head", data=DATA)
    call_command("export", "dataset", str(tmp_path / "set"), "--classifier", str(reader.pk))
    card = (tmp_path / "set" / "README.md").read_text()
    assert "toxic by someone/roberta (revision unknown, float32): a label" in card
    assert "trained here" not in card
    assert "no score" not in card


def test_without_a_classifier_the_card_tells_of_none(tmp_path):
    scored_by(classifier(), rain=0.125)
    call_command("export", "dataset", str(tmp_path / "set"))
    assert "propagated" not in (tmp_path / "set" / "README.md").read_text()
    assert "rai:machineAnnotationTools" not in json.loads((tmp_path / "set" / "croissant.json").read_text())


@pytest.mark.filterwarnings("ignore")
def test_mlcroissant_reads_which_classifier_it_was(trained, tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant")
    call_command("export", "dataset", str(tmp_path / "set"), "--classifier", str(trained.pk))
    opened = mlcroissant.Dataset(jsonld=str(tmp_path / "set" / "croissant.json"))
    assert (opened.metadata.ctx.issues.errors, opened.metadata.ctx.issues.warnings) == (set(), set())
    assert "by weather-head (revision files aa, bfloat16)" in opened.metadata.machine_annotation_tools[0]


def test_every_table_of_the_dataset_takes_the_scores_of_the_same_classifier(tmp_path):
    reader = classifier()
    scored_by(reader, rain=0.125, snow=0.75)
    folder = tmp_path / "set"
    call_command("export", "dataset", str(folder), "--classifier", str(reader.pk), "--score-min", "0.6")
    assert "there are 1." in (folder / "README.md").read_text()


def test_the_command_refuses_a_classifier_that_there_is_not(tmp_path):
    with pytest.raises(CommandError, match="No classifier “nobody” has scored statements"):
        call_command("export", "train", str(tmp_path / "a.csv"), "--classifier", "nobody")
    assert list(tmp_path.iterdir()) == []


# --- The page and the API


def test_the_page_offers_the_classifiers_that_have_read_statements(admin_client):
    reader = classifier(revision="files aa")
    make_reader(ReaderKind.ENCODER, name="no-classifier")
    page = admin_client.get("/admin/export/").content.decode()
    assert f'<option value="{reader.pk}">weather-head (files aa)</option>' in page
    assert "no-classifier" not in page


def test_a_download_and_the_api_take_it(admin_client):
    reader = classifier()
    scored_by(reader, rain=0.125)
    for address in (
        f"/admin/export/train.csv?classifier={reader.pk}",
        "/api/exports/train/csv/?classifier=weather-head",
    ):
        response = admin_client.get(address)
        assert response.status_code == 200
        assert b"".join(response.streaming_content).decode().splitlines()[1].endswith(",0.125")
    refused = admin_client.get("/api/exports/train/csv/?classifier=nobody")
    assert refused.status_code == 400
    assert list(refused.json()["errors"]) == ["classifier"]


def test_of_trainings_that_came_to_the_same_files_the_one_of_the_classifiers_name_is_told():
    for name in ("weather-head", "same-again"):
        make_trained_classifier(name, revision="files aa", data=DATA)
    reader = classifier("/srv/classifiers/weather-head#toxic", revision="files aa")
    scored_by(reader, rain=0.5)
    assert propagated({"classifier": reader}).trained.name == "weather-head"
