"""HUMANVAL sets as studies, frozen with their labels: what is refused, what is stored, and what never changes."""

import hashlib
import io
import json
import math

import pyarrow.parquet
import pytest
from django.utils import timezone

from analysis.exports.filtering import WrongFilter
from analysis.humanval import freezing
from analysis.humanval.freezing import NotReady, WrongState, freeze, has_changed, missing, new_version, publish
from analysis.models import HumanvalSet
from annotator import assigning, reviewing, stopping, wages
from annotator.models import Annotation, Assignment, HITType, KnownAnswers
from generation.models import AuditEntry, Generation
from tests.analysis.exported import csv_rows, exported, json_rows, parquet_rows
from tests.analysis.humanval_world import (
    apart,
    approved,
    draw,
    frozen,
    ids_of,
    judge,
    published,
    removed_for,
    statement,
)
from tests.analysis.judging import people
from tests.factories import consenting_worker, make_hit, make_hit_type

pytestmark = pytest.mark.django_db


# --- Publishing


def test_a_set_becomes_a_study_with_three_annotators_a_statement():
    apart(4)
    drawn = draw(size=4)
    assert publish(humanval_set=drawn) == 4
    assert drawn.state == "published"
    assert drawn.hit_type.max_assignments == 3
    assert sorted(drawn.hit_type.hits.values_list("generation", flat=True)) == ids_of(drawn)
    assert AuditEntry.objects.get(act="humanval set published").details["hits"] == 4


def test_it_is_published_once():
    drawn = published()
    with pytest.raises(
        WrongState, match=r"HUMANVAL 1 is with annotators, and only one that is drawn can be published\."
    ):
        publish(humanval_set=drawn)
    assert HITType.objects.count() == 1


def test_pay_below_the_floor_publishes_nothing():
    apart(2)
    drawn = draw(size=2)
    with pytest.raises(wages.PayTooLow, match="Raise the reward"):
        publish(humanval_set=drawn, reward="0.01")
    drawn.refresh_from_db()
    assert (drawn.state, drawn.hit_type) == ("drawn", None)
    assert not HITType.objects.exists()


def test_statements_whose_answers_became_known_are_named_and_not_published():
    apart(3)
    drawn = draw(size=3)
    known, checked, _ = ids_of(drawn)
    KnownAnswers.objects.create(generation_id=known, expected={"lewd": ["no"]})
    make_hit(generation=Generation.objects.get(pk=checked), is_check=True)
    with pytest.raises(WrongState, match=rf"since it was drawn: {known}, {checked}\. Draw another set"):
        publish(humanval_set=drawn)
    assert HumanvalSet.objects.get().state == "drawn"
    assert not HITType.objects.filter(humanval_sets=drawn).exists()


# --- Freezing


def test_a_frozen_set_has_the_labels_that_its_annotators_gave():
    drawn = published(3)
    judge(drawn, (1, {"harmful_if_ai": 2, "harmful_if_human": 1, "lewd": "yes"}), (5, 4), (None, None))
    stopping.stop(hit_type=drawn.hit_type, by=None)
    freeze(humanval_set=drawn)
    first, second, third = drawn.statements.order_by("generation")
    assert (first.annotators, first.harmful_if_ai, first.harmful_if_human) == (2, 1.5, 1)
    assert (first.toxicity_class, first.share_agreeing) == ("non-toxic", 1)
    assert first.answers["lewd"] == "disagreement"
    assert first.answers["factual?"] == "factual"
    assert (second.toxicity_class, second.harmful_if_ai) == ("toxic", 4.5)
    assert (third.annotators, third.toxicity_class, third.harmful_if_ai, third.answers) == (0, "", None, {})
    assert freezing.counts(drawn) == {
        "classes": {"non-toxic": 1, "ambiguous": 0, "toxic": 1},
        "without_label": 1,
        "fewer_annotators": 0,
    }


def test_its_agreement_is_stored_with_n_and_a_reason_where_it_is_undefined():
    figures = {row["name"]: row for row in frozen((1, 1), (5, 5), (3, 5)).agreement["figures"]}
    assert figures["Full agreement"]["value"] == pytest.approx(2 / 3)
    assert figures["Full agreement"]["n_statements"] == 3
    assert figures["Full agreement"]["interval"]["low"] < 2 / 3
    alike = frozen((1, 1), (1, 1))
    kappa = next(row for row in alike.agreement["figures"] if row["name"] == "Fleiss' kappa")
    assert kappa["value"] is None
    assert kappa["reason"]


def test_work_on_other_statements_of_the_study_does_not_count():
    drawn = published(2)
    other = make_hit(hit_type=drawn.hit_type, max_assignments=1)
    approved(other, 5)
    judge(drawn, (1, 1), (1, 1))
    freeze(humanval_set=drawn)
    assert drawn.statements.count() == 2
    assert {row["n_ratings"] for row in drawn.agreement["figures"] if row["value"] is not None} <= {4}


@pytest.mark.parametrize(
    ("rows", "status", "sentence"),
    [
        (((1, 1), (1, None)), "approved", "1 place is free."),
        (((1, None), (None, None)), "approved", "3 places are free."),
        (((1, 1), (1, 1)), "submitted", "4 pieces of work wait for review."),
    ],
)
def test_it_is_not_frozen_before_the_study_is_done(rows, status, sentence):
    drawn = published(2)
    judge(drawn, *rows, status=status)
    assert missing(drawn).sentence == sentence
    with pytest.raises(NotReady) as refusal:
        freeze(humanval_set=drawn)
    assert str(refusal.value).startswith(f"Nothing was frozen: {sentence} Wait, or stop the study and review")
    drawn.refresh_from_db()
    assert (drawn.state, drawn.checksum) == ("published", "")


def test_work_under_way_is_waited_for():
    drawn = published(1)
    worker = consenting_worker()
    assigning.accept_next(worker=worker, hit_type_id=drawn.hit_type_id)
    assert missing(drawn).sentence == "1 place is free, 1 statement is being judged."


def test_a_stopped_study_is_frozen_with_the_judgements_there_are():
    drawn = published(2)
    judge(drawn, (1, 5), (1, None))
    stopping.stop(hit_type=drawn.hit_type, by=None)
    assert missing(drawn).is_nothing
    freeze(humanval_set=drawn)
    assert sorted(drawn.statements.values_list("annotators", flat=True)) == [1, 2]
    assert freezing.counts(drawn)["fewer_annotators"] == 1


def test_without_any_judgement_nothing_is_frozen():
    drawn = published(2)
    stopping.stop(hit_type=drawn.hit_type, by=None)
    with pytest.raises(NotReady, match="no statement has a judgement that counts"):
        freeze(humanval_set=drawn)


def test_only_a_published_set_is_frozen_and_once():
    apart(1)
    drawn = draw(size=1)
    with pytest.raises(WrongState, match=r"HUMANVAL 1 is drawn, and only one that is with annotators can be frozen\."):
        freeze(humanval_set=drawn)
    once = frozen()
    with pytest.raises(WrongState, match=r"is frozen, and only one that is with annotators"):
        freeze(humanval_set=once)


# --- Checksum and export


def test_the_checksum_can_be_worked_out_again_from_the_exported_file():
    drawn = frozen((1, {"harmful_if_ai": 2, "harmful_if_human": 2, "which_group": "indirectly"}), (5, 4), (2, 3))
    rows = pyarrow.parquet.read_table(io.BytesIO(exported("humanval", "parquet"))).to_pylist()
    lines = sorted(json.dumps(list(row.values()), ensure_ascii=False, separators=(",", ":")) for row in rows)
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == drawn.checksum


def test_the_export_has_the_frozen_labels_whatever_is_answered_later():
    drawn = frozen((1, 1), (5, 5))
    before = csv_rows("humanval")
    work = Assignment.objects.filter(hit__generation=ids_of(drawn)[0])
    reviewing.reopen(ids=list(work.values_list("pk", flat=True)))
    assert [row["toxicity_class"] for row in csv_rows("humanval")] == ["non-toxic", "toxic"]
    assert csv_rows("humanval") == before
    assert csv_rows("annotated") != before


def test_the_frozen_rows_are_those_that_were_exported_before_the_freezing():
    drawn = published(2)
    judge(drawn, (1, {"harmful_if_ai": 4, "lewd": "maybe", "which_group": "indirectly"}), (5, 4))
    before = json_rows("humanval")
    freeze(humanval_set=drawn)
    assert json_rows("humanval") == before
    assert parquet_rows("humanval") == before


def test_a_statement_that_nobody_understood_is_exported_without_a_label():
    drawn = published(2)
    judge(drawn, (1, 1), (None, None))
    stopping.stop(hit_type=drawn.hit_type, by=None)
    freeze(humanval_set=drawn)
    row = json_rows("humanval")[1]
    assert row["n_annotators"] == 0
    assert row["text"]
    assert {row[name] for name in ("toxicity_class", "toxicity_ai", "share_agreeing", "lewd", "intent")} == {None}


def test_the_newest_version_is_exported_unless_another_one_is_asked_for():
    first = frozen((1, 1))
    frozen((5, 5))
    assert [row["toxicity_class"] for row in csv_rows("humanval")] == ["toxic"]
    assert [row["toxicity_class"] for row in csv_rows("humanval", {"humanval_version": "1"})] == ["non-toxic"]
    assert csv_rows("humanval", {"study": str(first.hit_type_id)}) == []
    assert len(csv_rows("humanval", {"study": str(first.hit_type_id), "humanval_version": "1"})) == 1
    assert csv_rows("humanval", {"label": "toxic"}) == []
    with pytest.raises(WrongFilter, match=r"HUMANVAL 2 is frozen: its labels belong to no day\. Leave the days out"):
        exported("humanval", "csv", {"submitted_from": "2026-01-01"})
    with pytest.raises(WrongFilter, match="There is no frozen HUMANVAL set with the version “7”"):
        exported("humanval", "csv", {"humanval_version": "7"})


def test_files_for_training_have_nothing_of_the_set_nor_what_is_too_similar():
    own, near, far = statement([1, 0, 0]), statement([1, 0.1, 0]), statement([0, 0, 1])
    drawn = draw(size=1)
    while ids_of(drawn) != [far.pk]:  # the isolated one is first, but there is one candidate a place here
        drawn = draw(size=1, seed=drawn.seed + 1)
    drawn = draw(size=2)
    kept = {own.pk, near.pk, far.pk} - set(ids_of(drawn)) - set(removed_for(drawn))
    newer = statement([0, 1, 0], "not compared yet")
    assert len(csv_rows("train")) == 4
    texts = {row["generation"] for row in csv_rows("train", {"humanval": str(drawn.version)})}
    assert len(texts) == len(kept)
    assert newer.text not in texts
    with pytest.raises(WrongFilter, match="There is no HUMANVAL set that was drawn with the version “99”"):
        exported("train", "csv", {"humanval": "99"})


def test_human_labels_for_training_have_nothing_of_the_set():
    drawn = frozen((1, 1), (5, 5))
    study = make_hit_type(max_assignments=1)
    compared = statement([0] * 63 + [1], "for training")
    approved(make_hit(hit_type=study, generation=compared), 4)
    HumanvalSet.objects.filter(pk=drawn.pk).update(compared_up_to=compared.pk)
    assert len(csv_rows("annotated")) == 3
    assert [row["text"] for row in csv_rows("annotated", {"humanval": "1"})] == ["for training"]


# --- Later versions


def test_later_answers_make_a_new_version_and_leave_the_old_one_as_it_is():
    workers = people(2)
    first = published(2)
    judge(first, (1, 1), (1, 5), workers=workers)
    freeze(humanval_set=first)
    assert not has_changed(first)
    work = Assignment.objects.get(hit__generation=ids_of(first)[1], worker=workers[1])
    reviewing.reopen(ids=[work.pk])
    assert has_changed(first)
    with pytest.raises(NotReady, match="1 place is free"):
        new_version(humanval_set=first)
    assert HumanvalSet.objects.count() == 1

    hit = first.hit_type.hits.get(generation=ids_of(first)[1])
    approved(hit, 1)
    second = new_version(humanval_set=first)
    assert (second.version, second.based_on, second.state) == (2, first, "frozen")
    assert ids_of(second) == ids_of(first)
    assert removed_for(second) == removed_for(first)
    assert second.checksum != first.checksum
    assert [row["share_agreeing"] for row in json_rows("humanval")] == [1, 1]
    assert [row["share_agreeing"] for row in json_rows("humanval", {"humanval_version": "1"})] == [1, 0.5]
    assert not has_changed(second)


def test_the_same_answers_have_the_same_checksum_and_other_ones_another():
    first = frozen((1, 1), (5, 4))
    own = Annotation.objects.filter(assignment__hit__generation=ids_of(first)[0])
    own.update(harmful_if_ai=2)
    second = new_version(humanval_set=first)
    own.update(harmful_if_ai=1)
    third = new_version(humanval_set=second)
    assert first.checksum == third.checksum != second.checksum


def test_nothing_is_frozen_anew_without_other_answers():
    first = frozen((1, 1), (5, 4))
    with pytest.raises(WrongState, match=r"Nothing was frozen: the answers are those that HUMANVAL 1 was frozen with"):
        new_version(humanval_set=first)
    Annotation.objects.update(harmful_if_ai=2)
    second = new_version(humanval_set=first)
    with pytest.raises(WrongState, match=r"HUMANVAL 2 has the statements of HUMANVAL 1 with later answers"):
        new_version(humanval_set=first)
    with pytest.raises(WrongState, match="the answers are those that HUMANVAL 2 was frozen with"):
        new_version(humanval_set=second)
    assert HumanvalSet.objects.count() == 2


def test_answers_that_were_withdrawn_are_a_change():
    first = frozen((1, 1), (5, 5))
    Annotation.objects.order_by("pk").first().delete()
    assert has_changed(first)


def test_only_a_frozen_set_is_frozen_anew():
    with pytest.raises(WrongState, match="only one that is frozen can be frozen anew"):
        new_version(humanval_set=published())


def test_no_number_of_a_set_is_no_number():
    def walk(value):
        if isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                yield from walk(inner)
        elif isinstance(value, float):
            yield value

    drawn = frozen((1, 1), (1, 1))
    assert all(math.isfinite(number) for number in walk([drawn.report, drawn.agreement]))
    assert drawn.frozen_at <= timezone.now()
