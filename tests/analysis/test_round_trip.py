"""What is exported and imported again is equal: rows of every kind, in every format; and the released file, too."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import transaction
from django.utils import timezone

from analysis.importing import import_file
from analysis.imports.work import Options
from analysis.models import HumanLabel
from annotator.models import Annotation, HITType, Worker
from generation.models import Generation, Prompt, TargetGroup
from tests.analysis.exported import exported, parquet_rows
from tests.factories import (
    answers,
    consenting_worker,
    make_assignment,
    make_generation,
    make_group,
    make_hit,
    make_hit_type,
    make_searched_generation,
)

pytestmark = pytest.mark.django_db

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "toxigen"
FORMATS = ("csv", "jsonl", "parquet")
IDS = ("annotation_id", "hit_id", "statement_id")
"""Numbers of the database that wrote the file. Another one gives its own."""

TEXTS = (
    'she said "hello", twice',
    "one\ntwo\r\nthree\rfour",
    "=1+1",
    "@x",
    "  spaces around\t",
    "NULL",
    "nan x",
    "True",
    "0001",
    "1e5",
    "👩🏽\u200d🚀 مرحبا \u202e abc",
    "\ufeffx",
    "x\x1a\x1c\x85\u2028y",
    "\\N",
    "\\. \\",
    "b'caf\\xc3\\xa9'",
    'b"x\'y"',
    "b'é\n\"'",
    "'x'",
    "x,",
)
NOBODY = dict.fromkeys(answers())


def fill():
    """Statements with and without a prompt, of a run and of none; judged here, labelled elsewhere, or neither."""
    prompt = Prompt.objects.create(group=make_group(), label="toxic", text='- "one", =two\n- 三, \\n\n-')
    for number, text in enumerate(TEXTS):
        make_generation(
            text,
            group=make_group(("women", "bakers")[number % 2]),
            label=("benign", "toxic")[number % 2],
            method=("topk", "alice")[number // 2 % 2],
            toxic_prob=(None, 0.1, 1e-7, 0.30000000000000004, 1)[number % 5],
        )
    judged = [make_generation(text, label="toxic", prompt=prompt, toxic_prob=0.5) for text in TEXTS]
    judged.append(make_searched_generation(text="found by ALICE"))
    judge_everything(judged)
    label_elsewhere()


def judge_everything(statements):
    study, second = make_hit_type(title='The "first" study, =1'), make_hit_type(title="Another study")
    workers = [consenting_worker() for _ in range(4)]
    moment = datetime(2026, 11, 2, 8, 5, 3, 120_000, tzinfo=UTC)
    judgements = (
        {"harmful_if_ai": 5, "group_framing": "other", "other_framing": 'they "say", it\'s\n=so'},
        {"which_group": "other_groups", "other_groups": "=bakers, 'cyclists'", "human_or_ai": "human"},
        {"harmful_intent": 2, "lewd": "maybe", "pos_stereo": "yes", "fact_or_opinion": "both"},
        {"not_understood": True, **NOBODY},
        {"not_understood": True},
    )
    for number, statement in enumerate(statements):
        hit = make_hit(hit_type=(study, second)[number % 2], generation=statement, max_assignments=4)
        for place, worker in enumerate(workers):
            moment += timedelta(seconds=61)
            kind = number + place
            decided = {"status": "approved", "decided_at": moment + timedelta(hours=1)}
            if kind % 5 == 1:
                decided |= {"status": "rejected", "rejection_reason": "=It was empty.", "holds_place": False}
            elif kind % 5 == 2:
                decided = {"status": "submitted"}
            elif kind % 7 == 3:
                decided |= {"holds_place": False}
            times = {"accepted_at": moment, "submitted_at": moment + timedelta(seconds=40)}
            assignment = make_assignment(hit, worker, **times, **decided)
            Annotation.objects.create(assignment=assignment, **answers(**judgements[kind % 5]))


def label_elsewhere():
    words = {"factual": "opinion", "ingroup_effect": "harmless due to in-group", "predicted_group": "['a', \"b's\"]"}
    scores = {"intent": 1.666666667, "toxicity_ai": 1, "toxicity_human": None}
    for number, text in enumerate(TEXTS):
        method = ("topk", "alice", "written")[number % 3]
        statement = make_generation(text, group=make_group("gardeners"), method=method, label="toxic")
        HumanLabel.objects.create(generation=statement, **(words if number % 2 else {}), **scores)


def exported_from_elsewhere(name, format, path, fill=fill):
    """An export of a database that is empty again afterwards."""
    with transaction.atomic():
        fill()
        path.write_bytes(exported(name, format))
        rows = parquet_rows(name)
        transaction.set_rollback(True)
    return rows


def same(rows, others):
    """Whether rows are equal but for the numbers of their database, and these tell the same rows apart."""
    numbers = {name: {} for name in IDS}
    for row, other in zip(rows, others, strict=True):
        for name in IDS:
            if name in row:
                assert numbers[name].setdefault(row.pop(name), other[name]) == other.pop(name)
        assert row == other
    for pairs in numbers.values():
        assert len(set(pairs.values())) == len(pairs)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["train", "annotated", "annotations", "mturk"])
def test_what_is_exported_and_imported_again_is_equal(tmp_path, name, format):
    path = tmp_path / f"{name}.{format}"
    rows = exported_from_elsewhere(name, format, path)
    assert len(rows) > 25
    outcome = import_file(format=name, path=path, options=Options(make_groups=True))
    assert (outcome.new, outcome.bad) == (len(rows), 0)
    again = exported(name, format)
    same(rows, parquet_rows(name))
    if name != "annotations":
        assert again == path.read_bytes()
    second = import_file(format=name, path=path)
    assert (second.new, second.known) == (0, len(rows))
    assert exported(name, format) == again


@pytest.mark.parametrize("name", ["train", "annotated", "annotations", "mturk"])
def test_what_comes_back_to_where_it_was_exported_is_known(tmp_path, name):
    fill()
    path = tmp_path / f"{name}.csv"
    path.write_bytes(exported(name))
    before = {name: exported(name) for name in ("train", "annotated", "annotations", "mturk", "wide")}
    stored = [model.objects.count() for model in (Annotation, HumanLabel, Worker, HITType, Generation)]
    outcome = import_file(format=name, path=path)
    assert (outcome.new, outcome.known, outcome.stored) == (0, len(parquet_rows(name)), {})
    assert not any("differ" in sentence for sentence in outcome.notes)
    assert {name: exported(name) for name in before} == before
    assert [model.objects.count() for model in (Annotation, HumanLabel, Worker, HITType, Generation)] == stored


def test_a_worker_here_is_the_same_person_in_work_that_comes_from_elsewhere(tmp_path):
    fill()
    path = tmp_path / "annotations.csv"
    path.write_bytes(exported("annotations").replace(b"Another study", b"One that was elsewhere"))
    workers = set(Worker.objects.values_list("pk", flat=True))
    outcome = import_file(format="annotations", path=path)
    assert 0 < outcome.new < len(parquet_rows("annotations"))
    assert set(Worker.objects.values_list("pk", flat=True)) == workers
    assert import_file(format="annotations", path=path).new == 0


def test_annotations_that_come_back_into_another_study_are_known(tmp_path):
    fill()
    path = tmp_path / "annotations.csv"
    path.write_bytes(exported("annotations"))
    assert import_file(format="annotations", path=path, options=Options(study="Again")).new == 0
    assert not HITType.objects.filter(title="Again").exists()


def test_another_answer_that_comes_back_is_told(tmp_path):
    moment = timezone.now()
    hit = make_hit(generation=make_generation("the choir sang"))
    assignment = make_assignment(hit, consenting_worker(), status="submitted", accepted_at=moment, submitted_at=moment)
    annotation = Annotation.objects.create(assignment=assignment, **answers())
    path = tmp_path / "annotations.csv"
    path.write_bytes(exported("annotations"))
    Annotation.objects.filter(pk=annotation.pk).update(lewd="maybe")
    outcome = import_file(format="annotations", path=path)
    assert (outcome.known, outcome.notes[-1]) == (1, "1 rows differ from what is stored; nothing was changed.")


def test_a_label_of_a_statement_that_people_judged_here_is_known_and_told(tmp_path):
    fill()
    path = tmp_path / "annotated.csv"
    path.write_bytes(exported("annotated"))
    judged = len(parquet_rows("annotated")) - HumanLabel.objects.count()
    [sentence] = import_file(format="annotated", path=path).notes
    assert sentence == f"{judged} rows are about statements that people judged here: their labels were not stored."


def test_groups_come_back_by_their_slugs(tmp_path):
    exported_from_elsewhere("train", "csv", tmp_path / "train.csv")
    import_file(format="train", path=tmp_path / "train.csv", options=Options(make_groups=True))
    assert TargetGroup.objects.filter(slug="bakers").exists()


@pytest.mark.skipif(not REAL.exists(), reason="the released files are not here")
@pytest.mark.parametrize("format", FORMATS)
def test_the_released_table_comes_back_equal(tmp_path, format):
    path = tmp_path / f"annotated.{format}"

    def released():
        import_file(format="annotated", path=REAL / "annotated.csv", options=Options(make_groups=True))

    rows = exported_from_elsewhere("annotated", format, path, released)
    assert len(rows) == 8960
    import_file(format="annotated", path=path, options=Options(make_groups=True))
    assert exported("annotated", format) == path.read_bytes()
