"""Stopping a study, going on with it, and extending it as a whole."""

from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotator import assigning, moving, publishing, stopping, submitting, tasks, wages
from annotator.models import HIT, UNLIMITED, KnownAnswers
from generation.models import AuditEntry, GenerationChunk
from tests.annotator.test_query_counts import fill
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    make_consent_form,
    make_generation,
    make_hit,
    make_hit_type,
    make_run,
)

pytestmark = pytest.mark.django_db

NOW = timezone.now()
PAST = NOW - timedelta(days=1)


@pytest.fixture
def ada():
    return User.objects.create(username="ada")


@pytest.fixture
def study():
    return make_hit_type(lifetime=timedelta(days=20))


def stop(study, by=None):
    ended = stopping.stop(hit_type=study, by=by)
    study.refresh_from_db()
    return ended


def go_on(study, by=None):
    revived = stopping.go_on(hit_type=study, by=by)
    study.refresh_from_db()
    return revived


def extend(study, **options):
    done = stopping.extend(hit_type=study, **{"by": None} | options)
    study.refresh_from_db()
    return done


# --- Stopping


def test_a_stopped_study_gives_no_hit_to_anybody(study):
    make_hit(hit_type=study), make_hit(hit_type=study)
    assert stop(study) == 2
    assert study.stopped_at is not None
    with pytest.raises(assigning.NoHITLeft):
        accept(hit_type=study)


def test_work_under_way_in_a_stopped_study_is_finished_and_counts(study):
    make_hit(hit_type=study)
    assignment = accept(hit_type=study)
    stop(study)
    assert submitting.submit(assignment=assignment, answers=answers()) == submitting.Outcome.COUNTED


def test_other_studies_go_on_when_one_is_stopped(study):
    other = make_hit()
    stop(study)
    assert accept(hit_type=other.hit_type).hit == other


def test_what_a_run_writes_meanwhile_waits_until_the_study_goes_on():
    study = make_hit_type(run=make_run())
    stop(study)
    chunk = study.run.chunks.first()
    make_generation("the sky is blue", run=study.run, chunk=chunk, position=0)
    GenerationChunk.objects.filter(pk=chunk.pk).update(finished_at=timezone.now())
    tasks.publish_new_statements()
    assert not study.hits.exists()
    go_on(study)
    tasks.publish_new_statements()
    assert study.hits.get().generation.text == "the sky is blue"


def test_nothing_is_published_in_a_stopped_study(study):
    stop(study)
    day = timezone.localtime(study.stopped_at).strftime("%B %Y")
    with pytest.raises(publishing.StudyClosed, match=rf"was stopped on .* {day}, .*Go on with it first\.$"):
        publishing.publish(hit_type=study, generations=[make_generation()])
    study.known_answers.add(KnownAnswers.objects.create(generation=make_generation(), expected={"lewd": ["no"]}))
    with pytest.raises(publishing.StudyClosed):
        publishing.publish_known_answers(hit_type=study)


def test_hits_of_a_stopped_study_are_not_extended_one_by_one(study):
    hit = make_hit(hit_type=study)
    stop(study)
    done = moving.extend(ids=[hit.pk], lifetime=timedelta(days=3))
    assert done.left == Counter({"of a study that was stopped: go on with the study first": 1})


def test_who_stops_a_study_is_noted(study, ada):
    make_hit(hit_type=study)
    stop(study, by=ada)
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.by, entry.subject, entry.details) == (
        "study stopped",
        ada,
        f"study {study.pk}",
        {"hits": 1},
    )


def test_stopping_twice_says_so_and_changes_nothing(study):
    stop(study)
    before = study.stopped_at
    with pytest.raises(stopping.NothingToStop, match=r"^Nothing was changed: the study is stopped already\.$"):
        stop(study)
    study.refresh_from_db()
    assert (study.stopped_at, AuditEntry.objects.count()) == (before, 1)


# --- Going on


def test_a_study_that_goes_on_gives_out_its_hits_for_its_whole_lifetime(study, ada):
    hit = make_hit(hit_type=study)
    stop(study)
    assert go_on(study, by=ada) == 1
    assert study.stopped_at is None
    hit.refresh_from_db()
    assert timedelta(days=19.9) < hit.expires_at - timezone.now() < timedelta(days=20)
    assert accept(hit_type=study).hit == hit
    assert AuditEntry.objects.get(act="study resumed").by == ada


def test_hits_that_had_expired_before_the_study_was_stopped_stay_so(study):
    expired, disposed, alive = (
        make_hit(hit_type=study, expires_at=PAST),
        make_hit(hit_type=study),
        make_hit(hit_type=study),
    )
    HIT.objects.filter(pk=disposed.pk).update(disposed_at=NOW)
    assert stop(study) == 1
    assert go_on(study) == 1
    assert list(study.hits.assignable()) == [alive]
    expired.refresh_from_db()
    assert expired.expires_at == PAST


def test_known_answers_that_a_stopped_study_was_given_are_offered_when_it_goes_on_and_those_it_lost_are_not(study):
    kept, lost, new = (
        KnownAnswers.objects.create(generation=make_generation(), expected={"lewd": ["no"]}) for _ in range(3)
    )
    study.known_answers.set([kept, lost])
    publishing.publish_known_answers(hit_type=study)
    stop(study)
    study.known_answers.set([kept, new])
    go_on(study)
    assert {hit.generation for hit in study.hits.assignable()} == {kept.generation, new.generation}


def test_a_study_below_its_wage_floor_does_not_go_on(study):
    stop(study)
    study.reward = Decimal("0.01")
    study.save()
    with pytest.raises(wages.PayTooLow):
        go_on(study)
    study.refresh_from_db()
    assert study.stopped_at


def test_a_study_that_was_not_stopped_cannot_go_on(study):
    with pytest.raises(stopping.NothingToStop, match=r"^Nothing was changed: the study is not stopped\.$"):
        go_on(study)


# --- Extending all of it


def test_all_hits_of_a_study_get_places_and_days_and_new_ones_as_many(study, ada):
    alive = make_hit(hit_type=study, expires_at=NOW + timedelta(days=3), max_assignments=3)
    expired = make_hit(hit_type=study, expires_at=PAST, max_assignments=3, reviewing_at=NOW)
    done = extend(study, places=2, lifetime=timedelta(days=5), by=ada)
    assert sorted(done.changed) == [alive.pk, expired.pk]
    alive.refresh_from_db(), expired.refresh_from_db()
    assert (alive.max_assignments, alive.expires_at) == (5, NOW + timedelta(days=8))
    assert (expired.max_assignments, expired.reviewing_at) == (5, None)
    assert timedelta(days=4.9) < expired.expires_at - timezone.now() < timedelta(days=5)
    assert study.max_assignments == 5
    entry = AuditEntry.objects.get(act="study extended")
    assert (entry.by, entry.details) == (ada, {"places": 2, "days": 5, "hits": 2})


def test_what_an_extension_leaves_as_it_is_is_said(study):
    make_hit(hit_type=study, is_check=True, max_assignments=UNLIMITED)
    make_hit(hit_type=study, max_assignments=UNLIMITED - 1)
    make_hit(hit_type=study, disposed_at=NOW)
    late = make_hit(hit_type=study, expires_at=PAST)
    done = extend(study, places=2)
    assert done.changed == [late.pk]
    assert done.left == Counter({moving.IS_A_CHECK: 1, moving.TOO_MANY_PLACES: 1, moving.DISPOSED: 1})
    assert done.remarks == Counter({moving.STILL_EXPIRED: 1})


def test_known_answers_get_the_days_alone(study):
    check = make_hit(hit_type=study, is_check=True, max_assignments=UNLIMITED, expires_at=PAST)
    assert extend(study, places=2, lifetime=timedelta(days=1)).left == Counter()
    check.refresh_from_db()
    assert (check.max_assignments, check.expires_at > timezone.now()) == (UNLIMITED, True)


def test_a_study_is_not_extended_below_its_floor_nor_when_stopped_nor_by_nothing(study):
    with pytest.raises(moving.NothingToExtend, match=r"^Say by how many places or days the study is extended: "):
        extend(study)
    stop(study)
    with pytest.raises(publishing.StudyClosed):
        extend(study, places=1)
    poor = make_hit_type(reward="0.01")
    with pytest.raises(wages.PayTooLow):
        extend(poor, places=1)


def test_nine_thousand_hits_are_stopped_extended_and_go_on_with_a_few_queries():
    study = make_hit_type()
    make_consent_form()
    fill(study, hits=9000, workers=0)

    def queries(act):
        with CaptureQueriesContext(connection) as context:
            act()
        return len([query for query in context if "SAVEPOINT" not in query["sql"]])

    assert queries(lambda: stop(study)) <= 7
    assert not study.hits.assignable().exists()
    assert queries(lambda: go_on(study)) <= 10
    assert queries(lambda: extend(study, places=1)) <= 16
    assert study.hits.assignable().filter(max_assignments=4).count() == 9000
    assert accept(consenting_worker(), hit_type=study)
