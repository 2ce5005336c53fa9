"""Making HITs of statements: once a study, and as a run writes them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotator import publishing, tasks
from annotator.models import HIT
from tests.factories import make_generation, make_group, make_hit_type, make_run

pytestmark = pytest.mark.django_db


def texts_of(hit_type):
    return sorted(hit_type.hits.values_list("generation__text", flat=True))


def write(run, *texts):
    """Store what the run's worker has written so far."""
    chunk = run.chunks.first()
    before = chunk.generations.count()
    for position, text in enumerate(texts, start=before):
        make_generation(text, run=run, chunk=chunk, position=position)


def test_every_statement_becomes_a_hit_with_the_studys_places_and_lifetime():
    study = make_hit_type(max_assignments=5, lifetime=timedelta(days=2))
    assert publishing.publish(hit_type=study, generations=[make_generation(), make_generation()]) == 2
    for hit in HIT.objects.all():
        assert (hit.max_assignments, hit.held_places) == (5, 0)
        assert timedelta(0) < timezone.now() + timedelta(days=2) - hit.expires_at < timedelta(minutes=1)


def test_publishing_again_makes_hits_of_the_new_statements_only():
    study, first, second = make_hit_type(), make_generation(), make_generation()
    publishing.publish(hit_type=study, generations=[first])
    assert publishing.publish(hit_type=study, generations=[first, second]) == 1
    assert study.hits.count() == 2


def test_a_statement_can_be_in_two_studies():
    one, other, generation = make_hit_type(), make_hit_type(), make_generation()
    publishing.publish(hit_type=one, generations=[generation])
    assert publishing.publish(hit_type=other, generations=[generation]) == 1


def test_statements_of_a_run_become_hits_of_the_study_that_is_fed_from_it_as_they_are_written():
    make_group("women")
    run = make_run()
    fed, other = make_hit_type(run=run), make_hit_type()
    write(run, "the sky is blue")
    tasks.publish_new_statements()
    assert (texts_of(fed), texts_of(other)) == (["the sky is blue"], [])
    write(run, "the grass is green")
    tasks.publish_new_statements()
    tasks.publish_new_statements()
    assert texts_of(fed) == ["the grass is green", "the sky is blue"]


def test_two_studies_fed_from_one_run_get_all_of_its_statements():
    run = make_run()
    one, other = make_hit_type(run=run), make_hit_type(run=run)
    write(run, "the sky is blue")
    assert publishing.publish_new_statements() == 2
    assert texts_of(one) == texts_of(other) == ["the sky is blue"]
