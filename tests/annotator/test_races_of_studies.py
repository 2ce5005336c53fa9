"""Publishing and stopping while others do the same or take statements: real threads, each with a connection."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotator import assigning, choosing, moving, publishing, stopping, submitting
from annotator.models import HIT, Assignment, StatementDraw
from tests.annotator.test_choosing import WOMEN, make_statements
from tests.annotator.threads import (
    at_once,
    in_the_background,
    stored_at_the_end,
    wait_until_somebody_waits_for_a_lock,
)
from tests.factories import accept, answers, consenting_worker, make_consent_form, make_hit, make_hit_type

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_clicks_on_publish_at_once_make_one_draw():
    study = make_hit_type()
    make_statements(30)
    agreed = choosing.draw(hit_type=study, filters=WOMEN, a_cell=10, seed=1).fingerprint

    def publish():
        return choosing.publish_draw(hit_type=study, filters=WOMEN, a_cell=10, seed=1, agreed=agreed, by=None)

    results = at_once(publish, publish)
    assert {type(result) for result in results} == {StatementDraw, choosing.PublishedBefore}
    assert (HIT.objects.count(), StatementDraw.objects.count()) == (10, 1)


def test_two_draws_at_once_publish_no_statement_twice():
    study = make_hit_type()
    make_statements(12)
    acts = [
        lambda seed=seed: choosing.publish_draw(hit_type=study, filters=WOMEN, a_cell=6, seed=seed, by=None)
        for seed in (1, 2)
    ]
    one, other = at_once(*acts)
    assert (one.made, other.made) == (6, 6)
    assert study.hits.values("generation").distinct().count() == 12


def test_who_waits_for_a_hit_of_a_study_that_is_being_stopped_is_given_none():
    study, worker = make_hit_type(), consenting_worker()
    make_hit(hit_type=study)
    with stored_at_the_end(lambda: stopping.stop(hit_type=study, by=None)):
        waiting = in_the_background(lambda: accept(worker, hit_type=study))
        wait_until_somebody_waits_for_a_lock()
    assert isinstance(waiting.result(), assigning.NoHITLeft)
    assert not Assignment.objects.exists()


def test_stopping_waits_for_who_is_just_accepting_and_lets_them_finish():
    study, worker = make_hit_type(), consenting_worker()
    make_hit(hit_type=study)
    with stored_at_the_end(lambda: accept(worker, hit_type=study)) as accepting:
        stop = in_the_background(lambda: stopping.stop(hit_type=study, by=None))
        wait_until_somebody_waits_for_a_lock()
    assert stop.result() == 1
    assert not study.hits.assignable().exists()
    assert submitting.submit(assignment=accepting.result(), answers=answers()) == submitting.Outcome.COUNTED


def test_who_stops_a_study_waits_for_who_extends_one_of_its_hits():
    study = make_hit_type()
    hit = make_hit(hit_type=study, expires_at=timezone.now() - timedelta(days=1))
    with stored_at_the_end(lambda: moving.extend(ids=[hit.pk], lifetime=timedelta(days=2))):
        stop = in_the_background(lambda: stopping.stop(hit_type=study, by=None))
        wait_until_somebody_waits_for_a_lock()
    assert stop.result() == 1
    assert not study.hits.assignable().exists()


def test_nothing_is_published_behind_the_back_of_who_stops_a_study():
    study = make_hit_type()
    statements = make_statements(3)
    with stored_at_the_end(lambda: stopping.stop(hit_type=study, by=None)):
        publish = in_the_background(lambda: publishing.publish(hit_type=study, generations=statements))
        wait_until_somebody_waits_for_a_lock()
    assert isinstance(publish.result(), publishing.StudyClosed)
    assert not HIT.objects.exists()


def test_many_accept_while_the_study_is_stopped_and_nobody_afterwards():
    make_consent_form()
    study = make_hit_type()
    for _ in range(10):
        make_hit(hit_type=study)
    workers = [consenting_worker() for _ in range(8)]
    acts = [lambda worker=worker: accept(worker, hit_type=study) for worker in workers]
    *results, ended = at_once(*acts, lambda: stopping.stop(hit_type=study, by=None))
    assert ended == 10
    assert {type(result) for result in results} <= {Assignment, assigning.NoHITLeft}
    for worker in workers:
        for assignment in worker.assignments.accepted():
            submitting.submit(assignment=assignment, answers=answers())
        with pytest.raises(assigning.NoHITLeft):
            accept(worker, hit_type=study)


def test_stopping_and_extending_at_once_end_in_a_stopped_study():
    study = make_hit_type()
    hits = [make_hit(hit_type=study) for _ in range(5)]

    def extend():
        return stopping.extend(hit_type=study, by=None, places=1)

    extended, ended = at_once(extend, lambda: stopping.stop(hit_type=study, by=None))
    assert isinstance(extended, publishing.StudyClosed) or len(extended.changed) == len(hits)
    assert ended == 5
    assert not study.hits.assignable().exists()
