"""The dataset folder: two libraries of the field open it, and its card says what was measured."""

import json
from datetime import timedelta
from decimal import Decimal

import numpy as np
import pyarrow.parquet
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from analysis.exports import dataset
from analysis.humanval import comparing
from annotator import reviewing
from annotator.models import Annotation, Assignment, Survey
from generation.models import AuditEntry, Prompt
from tests.analysis.exported import parquet_rows
from tests.analysis.humanval_world import approved, draw, frozen, statement
from tests.factories import (
    answers,
    consenting_worker,
    make_assignment,
    make_generation,
    make_group,
    make_hit,
    make_hit_type,
    make_worker,
)

pytestmark = pytest.mark.django_db

CONFIGS = ["train", "annotated", "annotations", "wide", "humanval"]


def study_of(statements, *, title="A study of sentences", annotators=3, **fields):
    """Statements that were judged, each by the same people."""
    study = make_hit_type(title=title, reward=Decimal("0.25"), max_assignments=annotators, **fields)
    workers = [consenting_worker() for _ in range(annotators)]
    now = timezone.now()
    for number, text in enumerate(statements):
        prompt = Prompt.objects.create(group=make_group(), label="benign", text=f"- {title}\n- {number}\n-")
        hit = make_hit(hit_type=study, generation=make_generation(text, prompt=prompt, toxic_prob=0.25))
        for place, worker in enumerate(workers):
            times = {"accepted_at": now - timedelta(seconds=90), "submitted_at": now}
            assignment = make_assignment(hit, worker, status="submitted", **times)
            harm = 5 if place < number % 3 else 1
            Annotation.objects.create(assignment=assignment, **answers(harmful_if_ai=harm))
    return study


def write(tmp_path, *arguments):
    call_command("export", "dataset", str(tmp_path / "humans"), *arguments)
    return tmp_path / "humans"


def card_of(folder):
    return (folder / "README.md").read_text(encoding="utf-8")


# --- Two libraries of the field open it


@pytest.fixture
def folder(tmp_path):
    study_of(['she said "hello",\nand left', "=1+1", "caf\u00e9 \U0001f680", "the harbor is busy"])
    make_generation("never judged")
    return write(tmp_path, "--license", "cdla-permissive-2.0", "--title", 'Sentences: a "set"')


@pytest.mark.filterwarnings("ignore")
def test_datasets_opens_it(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    assert datasets.get_dataset_config_names(str(folder)) == CONFIGS
    for name in CONFIGS:
        opened = datasets.load_dataset(str(folder), name, cache_dir=str(tmp_path / "cache"))["train"]
        table = pyarrow.parquet.read_table(folder / "data" / f"{name}.parquet")
        assert opened.features.arrow_schema.names == table.schema.names
        assert [opened.features[column].dtype for column in table.schema.names] == [
            {"string": "string", "int64": "int64", "double": "float64", "bool": "bool"}[str(field.type)]
            for field in table.schema
        ]
        assert opened.to_list() == parquet_rows(name)
    assert len(datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))["train"]) == 5


@pytest.mark.filterwarnings("ignore")
def test_mlcroissant_validates_it_and_reads_its_records(folder):
    mlcroissant = pytest.importorskip("mlcroissant")
    opened = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    issues = opened.metadata.ctx.issues
    assert (issues.errors, issues.warnings) == (set(), set())
    assert opened.metadata.name == 'Sentences: a "set"'
    assert [records.id for records in opened.metadata.record_sets] == CONFIGS
    for name in ("train", "humanval"):
        read = [
            {key.split("/")[1]: value.decode() if isinstance(value, bytes) else value for key, value in record.items()}
            for record in opened.records(name)
        ]
        rows = [{column.rstrip("?"): value for column, value in row.items()} for row in parquet_rows(name)]
        texts = ("generation", "text", "prompt", "n_annotators", "toxicity_class", "prompt_label")
        assert [{key: row[key] for key in texts if key in row} for row in read] == [
            {key: row[key] for key in texts if key in row} for row in rows
        ]


# --- What the card says


def test_the_card_says_what_was_measured(folder):
    card = card_of(folder)
    assert 'pretty_name: "Sentences: a \\"set\\""' in card
    assert 'license: "cdla-permissive-2.0"' in card
    assert "| A study of sentences | 4 | 12 | 12 | 3 | 3 |" in card
    assert "$0.25 a statement, the median time was 1 minute 30 seconds (n = 12, the newest): $10.00 an hour." in card
    assert "The wage floor was $8.00 an hour." in card
    # Of four statements none, one, two and none of three annotators say toxic: (2/3 - 5/8) / (1 - 5/8)
    assert "| A study of sentences | Fleiss' kappa | 0.111 |" in card
    assert "none of the 3 pairs does" in card  # that has a mean of their kappas: it is known who gave a rating
    assert "In your opinion, was the text intentionally written to be harmful to anyone?" in card
    assert "Content warning" in card
    assert "    num_examples: 5\n" in card


def test_the_card_tells_of_annotators_in_groups_of_five_and_more(tmp_path):
    study_of(["the sea is calm"])
    for gender in ["female"] * 6 + ["male"] * 5 + ["non_binary"]:
        Survey.objects.create(worker=make_worker(), gender=gender)
    card = card_of(write(tmp_path))
    assert (
        "- What is your gender? Female 6 (not counted: Male, Non-binary, Described themselves, Prefer not to say)."
        in card
    )
    assert "Male 5" not in card


def test_without_surveys_the_card_tells_nothing_of_the_annotators(tmp_path):
    study_of(["the sea is calm"])
    Survey.objects.create(worker=make_worker(), gender="female")
    assert "Fewer than 5 of the people who agreed to take part answered the optional survey" in card_of(write(tmp_path))


def test_a_figure_that_is_undefined_has_its_reason_in_the_card(tmp_path):
    study_of(["the sea is calm"])
    assert "undefined: Fleiss' kappa needs at least 2 statements that can enter; there is 1" in card_of(write(tmp_path))


def test_statements_alone_make_a_dataset_of_one_table(tmp_path, capsys):
    make_generation("the sea is calm")
    folder = write(tmp_path)
    assert sorted(path.name for path in folder.rglob("*.*")) == ["README.md", "croissant.json", "train.parquet"]
    card = card_of(folder)
    assert 'license: "unknown"' in card
    assert "No annotations are in this dataset." in card
    assert capsys.readouterr().out.startswith(f"1 row written to {folder / 'data/train.parquet'}.\n")


def test_annotations_of_which_none_counts_are_told_of_all_the_same(tmp_path):
    study_of(["the sea is calm", "the choir sings"])
    reviewing.reject(
        ids=list(Assignment.objects.values_list("pk", flat=True)), reason="Words between two people.", by=None
    )
    folder = write(tmp_path)
    assert {path.stem for path in folder.rglob("*.parquet")} == {"train", "annotations"}
    card = card_of(folder)
    assert "No annotations are in this dataset." not in card
    assert "| A study of sentences | 2 | 6 | 0 | 3 | 3 |" in card
    assert "In all 3 people gave 6 annotations, 0 of which count as labels" in card
    assert "- *A study of sentences*: $0.25 a statement, the expected time was" in card
    table = pyarrow.parquet.read_table(folder / "data" / "annotations.parquet")
    assert "Words between two people." not in card + str(table.to_pylist())


def test_the_card_tells_of_the_annotations_behind_every_table(tmp_path):
    study_of(["the sea is calm"])
    Assignment.objects.filter(pk=Assignment.objects.first().pk).update(holds_place=False)
    for counted, told in (("", "| 3 | 2 |"), ("yes", "| 2 | 2 |"), ("no", "| 3 | 2 |")):
        (tmp_path / counted).mkdir(exist_ok=True)
        folder = write(tmp_path / counted, f"--counted={counted}")
        assert f"| A study of sentences | 1 {told}" in card_of(folder)


def test_no_worker_and_no_pseudonym_is_in_the_folder(tmp_path):
    worker = consenting_worker(pk=987654321, pay_reference="participant 7")
    assignment = make_assignment(make_hit(), worker, status="submitted", submitted_at=timezone.now())
    Annotation.objects.create(assignment=assignment, **answers())
    folder = write(tmp_path)
    everything = card_of(folder) + str(parquet_rows("annotations"))
    for name in ("987654321", worker.pseudonym, "participant 7"):
        assert name not in everything


def test_the_croissant_names_every_file_with_its_hash_and_every_column(folder):
    metadata = json.loads((folder / "croissant.json").read_text())
    assert {file["contentUrl"] for file in metadata["distribution"]} == {f"data/{name}.parquet" for name in CONFIGS}
    assert all(len(file["sha256"]) == 64 for file in metadata["distribution"])
    train = metadata["recordSet"][0]["field"]
    assert [field["source"]["extract"]["column"] for field in train] == pyarrow.parquet.read_schema(
        folder / "data" / "train.parquet"
    ).names


def test_filters_reach_each_table_that_has_them(tmp_path):
    study = study_of(["the sea is calm"])
    study_of(["the choir sings"], title="Another study")
    folder = write(tmp_path, "--study", str(study.pk), "--counted", "yes")
    assert pyarrow.parquet.read_table(folder / "data" / "train.parquet")["generation"].to_pylist() == [
        "the sea is calm"
    ]
    assert "Another study" not in card_of(folder)


# --- Whole or not at all


def test_it_is_noted_in_the_audit_trail_once(folder):
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.by, entry.details["rows"]["train"]) == ("dataset exported", None, 5)


def test_a_folder_that_is_there_is_not_written_into(tmp_path):
    make_generation()
    (tmp_path / "humans").mkdir()
    (tmp_path / "humans" / "notes.txt").write_text("mine")
    with pytest.raises(CommandError, match=r"is there already\. Give a new name, or remove it first\."):
        write(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["humans", "notes.txt"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "There is no statement to export with these filters."),
        (["--license", "a licence of mine"], "'a licence of mine' is no identifier of a licence. Give one such as "
         "cdla-permissive-2.0 or cc-by-4.0."),
    ],
)  # fmt: skip
def test_what_cannot_be_written_leaves_nothing_behind(tmp_path, arguments, sentence):
    with pytest.raises(CommandError) as refusal:
        write(tmp_path, *arguments)
    assert str(refusal.value) == sentence
    assert list(tmp_path.iterdir()) == []


def test_what_breaks_off_leaves_nothing_behind(tmp_path, monkeypatch):
    make_generation()
    monkeypatch.setattr(dataset, "croissant", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- With a test set


def test_a_frozen_test_set_is_left_out_of_training_and_told_in_the_card(tmp_path):
    test_set = frozen((1, 1), (5, 5))
    near = statement(list(np.eye(64)[0] + 0.05 * np.eye(64)[9]), "the tide comes in")
    far = statement(np.eye(64)[11], "the choir sings")
    comparing.compare(humanval_set=test_set)
    statement(np.eye(64)[12], "not compared")
    folder = write(tmp_path)
    train = pyarrow.parquet.read_table(folder / "data" / "train.parquet")["generation"].to_pylist()
    assert train == [far.text]
    assert near.text not in train
    assert len(pyarrow.parquet.read_table(folder / "data" / "humanval.parquet")) == 2
    assert not (folder / "data" / "annotated.parquet").exists()
    card = card_of(folder)
    assert "`humanval` is version 1 of the test set: 2 statements" in card
    assert f"SHA-256 of its rows: `{test_set.checksum}`" in card
    assert "no statement there has a cosine similarity above 0.7 with a statement of the test set" in card
    assert "1 statement was left out for that." in card


def test_what_could_not_be_compared_is_told_in_the_card_and_in_the_terminal(tmp_path, capsys):
    test_set = frozen((1, 1), (5, 5))
    study = make_hit_type(max_assignments=1)
    statement(np.eye(64)[12], "not compared")
    written = make_generation("an old proverb", method="written")
    approved(make_hit(hit_type=study, generation=written), 1)
    card, said = card_of(write(tmp_path)), capsys.readouterr().out
    for told in (
        f"1 statement was stored after the last comparison with {test_set} and left out of the tables for training. "
        "Compare it, and export again: manage.py build_humanval --update-removed 1",
        "1 statement that a person wrote was left out of annotated: only what models wrote is compared with "
        f"{test_set}.",
    ):
        assert told in card
        assert told in said
    comparing.compare(humanval_set=test_set)
    (tmp_path / "compared").mkdir()
    assert "after the last comparison" not in card_of(write(tmp_path / "compared"))


def test_days_do_not_keep_the_test_set_out_of_the_folder(tmp_path):
    frozen((1, 1))
    folder = write(tmp_path, "--submitted-from", "2030-01-01")
    assert len(pyarrow.parquet.read_table(folder / "data" / "humanval.parquet")) == 1


def test_another_version_can_be_chosen_and_must_be_frozen(tmp_path):
    frozen((1, 1))
    frozen((5, 5))
    assert "version 1 of the test set" in card_of(write(tmp_path, "--humanval", "1"))
    drawn = draw(size=1)
    with pytest.raises(CommandError, match=rf"HUMANVAL {drawn.version} is not frozen: it has no labels yet"):
        call_command("export", "dataset", str(tmp_path / "other"), "--humanval", str(drawn.version))


def test_without_a_frozen_set_the_card_tells_of_none(tmp_path):
    study_of(["the sea is calm"])
    assert "## The test set" not in card_of(write(tmp_path))
