"""Making HITs of statements: once a study, as a run writes them, and with known answers."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from structlog.testing import capture_logs

from annotator import publishing, tasks, wages
from annotator.models import HIT, UNLIMITED, KnownAnswers, Qualification
from generation.models import GenerationChunk
from tests.factories import accept, make_generation, make_group, make_hit, make_hit_type, make_run

pytestmark = pytest.mark.django_db

TOO_LITTLE = {"reward": Decimal("0.01"), "wage_floor": Decimal("8.00")}


@pytest.fixture(autouse=True)
def nothing_said_yet():
    cache.clear()


def texts_of(hit_type):
    return sorted(hit_type.hits.values_list("generation__text", flat=True))


def write(run, *texts):
    """Store the run's next chunk, with these statements."""
    chunk = GenerationChunk.objects.unfinished().filter(run=run).first()
    for position, text in enumerate(texts):
        make_generation(text, run=run, chunk=chunk, position=position)
    GenerationChunk.objects.filter(pk=chunk.pk).update(finished_at=timezone.now())


@pytest.fixture
def run(settings):
    """A run of three chunks."""
    settings.CHUNK_SIZE = 1
    make_group("women")
    return make_run(3)


def make_known_answers(generation=None):
    return KnownAnswers.objects.create(generation=generation or make_generation(), expected={"lewd": ["no"]})


def make_test(**fields):
    grants = Qualification.objects.create(name="reads English")
    return make_hit_type(grants=grants, pass_mark=75, **fields)


# --- Statements


def test_every_statement_becomes_a_hit_with_the_studys_places_and_lifetime():
    study = make_hit_type(max_assignments=5, lifetime=timedelta(days=2))
    assert publishing.publish(hit_type=study, generations=[make_generation(), make_generation()]) == 2
    for hit in HIT.objects.all():
        assert (hit.max_assignments, hit.held_places, hit.is_check) == (5, 0, False)
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


def test_nothing_is_published_below_the_wage_floor():
    study = make_hit_type(**TOO_LITTLE)
    with pytest.raises(wages.PayTooLow, match=r"the wage floor is \$8\.00"):
        publishing.publish(hit_type=study, generations=[make_generation()])
    study.known_answers.add(make_known_answers())
    with pytest.raises(wages.PayTooLow):
        publishing.publish_known_answers(hit_type=study)
    assert not HIT.objects.exists()


def test_a_test_takes_no_statements_whose_answers_nobody_knows():
    test = make_test(title="Can you tell harm?")
    with pytest.raises(
        publishing.KnownAnswersOnly,
        match=r"^“Can you tell harm\?” is a qualification test: choose its statements among those with known answers\. "
        r"Publish others in a study without a qualification to earn\.$",
    ):
        publishing.publish(hit_type=test, generations=[make_generation()])
    assert not HIT.objects.exists()


# --- Known answers


def test_statements_with_known_answers_become_checks_that_everybody_may_judge():
    study = make_hit_type(max_assignments=3, lifetime=timedelta(days=2))
    known = make_known_answers()
    study.known_answers.add(known)
    assert publishing.publish_known_answers(hit_type=study) == 1
    hit = study.hits.get()
    assert (hit.generation, hit.is_check, hit.max_assignments) == (known.generation, True, UNLIMITED)
    assert timedelta(0) < timezone.now() + timedelta(days=2) - hit.expires_at < timedelta(minutes=1)


def test_a_statement_with_known_answers_is_not_published_in_the_same_study_once_more():
    study, other = make_hit_type(), make_hit_type()
    known, unknown = make_known_answers(), make_generation()
    study.known_answers.add(known)
    both = [known.generation, unknown]
    assert publishing.publish(hit_type=study, generations=both) == 1
    assert study.hits.get().generation == unknown
    assert publishing.publish_known_answers(hit_type=study) == 1
    assert publishing.publish(hit_type=study, generations=both) == 0
    assert publishing.publish(hit_type=other, generations=both) == 2
    assert not other.hits.filter(is_check=True).exists()


def test_a_statement_that_is_judged_already_stays_no_check():
    study, known = make_hit_type(), make_known_answers()
    hit = make_hit(hit_type=study, generation=known.generation)
    study.known_answers.add(known)
    assert publishing.publish_known_answers(hit_type=study) == 0
    hit.refresh_from_db()
    assert not hit.is_check


def test_known_answers_that_a_study_has_no_more_are_not_handed_out_any_more():
    test = make_test()
    kept, dropped = make_known_answers(), make_known_answers()
    test.known_answers.set([kept, dropped])
    publishing.publish_known_answers(hit_type=test)
    test.known_answers.remove(dropped)
    assert publishing.publish_known_answers(hit_type=test) == 0
    assert [hit.generation for hit in test.hits.assignable()] == [kept.generation]
    assert accept(hit_type=test).hit.generation == kept.generation
    test.known_answers.add(dropped)
    publishing.publish_known_answers(hit_type=test)
    assert test.hits.assignable().count() == 2


def test_known_answers_can_be_taken_out_of_a_study_that_pays_too_little():
    study = make_hit_type()
    study.known_answers.add(make_known_answers())
    publishing.publish_known_answers(hit_type=study)
    study.reward = TOO_LITTLE["reward"]
    study.known_answers.clear()
    publishing.publish_known_answers(hit_type=study)
    assert not study.hits.assignable().exists()


def test_publishing_known_answers_again_lets_their_lifetime_begin_anew():
    study = make_hit_type()
    study.known_answers.add(make_known_answers())
    publishing.publish_known_answers(hit_type=study)
    ordinary = make_hit(hit_type=study)
    study.hits.update(expires_at=timezone.now())
    publishing.publish_known_answers(hit_type=study)
    assert [hit.is_check for hit in study.hits.assignable()] == [True]
    assert ordinary not in study.hits.assignable()


# --- Studies that are fed from a run


def test_statements_of_a_run_become_hits_of_the_study_that_is_fed_from_it_as_they_are_written(run):
    fed, other = make_hit_type(run=run), make_hit_type()
    write(run, "the sky is blue")
    tasks.publish_new_statements()
    assert (texts_of(fed), texts_of(other)) == (["the sky is blue"], [])
    write(run, "the grass is green")
    tasks.publish_new_statements()
    tasks.publish_new_statements()
    assert texts_of(fed) == ["the grass is green", "the sky is blue"]


def test_two_studies_fed_from_one_run_get_all_of_its_statements(run):
    one, other = make_hit_type(run=run), make_hit_type(run=run)
    write(run, "the sky is blue")
    assert publishing.publish_new_statements() == 2
    assert texts_of(one) == texts_of(other) == ["the sky is blue"]


def test_a_statement_of_the_run_with_known_answers_is_not_published_and_the_others_are(run):
    study = make_hit_type(run=run)
    write(run, "the sky is blue", "the grass is green")
    study.known_answers.add(make_known_answers(run.generations.get(text="the sky is blue")))
    publishing.publish_known_answers(hit_type=study)
    assert publishing.publish_new_statements() == 1
    assert dict(study.hits.values_list("generation__text", "is_check")) == {
        "the sky is blue": True,
        "the grass is green": False,
    }


def test_a_study_below_the_wage_floor_waits_says_so_once_and_goes_on_when_it_pays_enough(run):
    poor, fair = make_hit_type(run=run, **TOO_LITTLE), make_hit_type(run=run)
    write(run, "the sky is blue")
    with capture_logs() as logs:
        tasks.publish_new_statements()
        tasks.publish_new_statements()
    assert (texts_of(poor), texts_of(fair)) == ([], ["the sky is blue"])
    (said,) = [entry for entry in logs if entry["event"] == "not_published"]
    assert said["hit_type"] == poor.pk
    assert "the wage floor is $8.00" in said["reason"]
    poor.reward = Decimal("0.25")
    poor.save()
    tasks.publish_new_statements()
    assert texts_of(poor) == ["the sky is blue"]


def test_when_there_is_nothing_new_one_query_tells_however_many_studies_and_statements_there_are(run):
    def queries():
        with CaptureQueriesContext(connection) as context:
            assert publishing.publish_new_statements() == 0
        return len(context)

    for number in range(3):
        make_hit_type(run=run)
        write(run, f"number {number}")
        publishing.publish_new_statements()
        assert queries() == 1
