"""What must never be false is refused by the database, also from raw SQL and bulk writes."""

from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from annotator.models import (
    HIT,
    Annotation,
    Assignment,
    Consent,
    ConsentForm,
    HITType,
    Worker,
)
from annotator.questions import QUESTIONS
from generation.models import Generation
from tests.annotator.threads import in_the_background, stored_at_the_end, wait_until_somebody_waits_for_a_lock
from tests.factories import (
    answers,
    consenting_worker,
    make_assignment,
    make_consent,
    make_consent_form,
    make_generation,
    make_hit,
    make_hit_type,
    make_worker,
)

pytestmark = pytest.mark.django_db

KEYS = [question.key for question in QUESTIONS]


@contextmanager
def refused_by(constraint):
    """The block breaks this constraint, at once or when the transaction ends."""
    with pytest.raises(IntegrityError) as refusal, transaction.atomic():  # noqa: PT012 - some are checked at the end
        yield
        connection.check_constraints()
    assert refusal.value.__cause__.diag.constraint_name == constraint


def row(model, instance):
    return model.objects.filter(pk=instance.pk)


def given_back(status):
    return {"status": status, "holds_place": False, "given_back_at": timezone.now()}


def submitted(**fields):
    return {"status": "submitted", "submitted_at": timezone.now()} | fields


# --- Workers, consent forms and consents


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_a_worker_is_blocked_with_a_reason(reason):
    worker = make_worker()
    with refused_by("worker_blocked_with_a_reason"):
        row(Worker, worker).update(blocked_at=timezone.now(), blocked_reason=reason)


@pytest.mark.parametrize(
    "change",
    [{"title": "Other"}, {"warning": "Other"}, {"purpose": "Other"}, {"version": 9}, {"published_at": None}],
    ids=lambda change: next(iter(change)),
)
def test_a_published_consent_form_never_changes(change):
    form = make_consent_form()
    with refused_by("consent_form_frozen_once_published"):
        row(ConsentForm, form).update(**change)


def test_the_refusal_to_change_a_consent_form_says_what_to_do():
    form = make_consent_form(version=3)
    with (
        pytest.raises(IntegrityError, match=r"Consent form version 3 is published: make a new version instead\."),
        transaction.atomic(),
    ):
        row(ConsentForm, form).update(title="Other")


def test_a_draft_of_a_consent_form_can_be_changed_and_published():
    draft = make_consent_form(published_at=None)
    row(ConsentForm, draft).update(title="Better", published_at=timezone.now())
    draft.refresh_from_db()
    assert (draft.title, draft.published_at is None) == ("Better", False)


def test_a_worker_consents_to_a_version_once():
    worker = consenting_worker()
    with refused_by("consent_in_force_once_a_version"):
        Consent.objects.bulk_create([Consent(worker=worker, form=ConsentForm.objects.get())])


def test_an_assignment_rests_on_a_consent_of_its_own_worker():
    somebody_elses = make_consent(make_worker())
    with refused_by("assignment_rests_on_its_workers_consent"):
        make_assignment(worker=make_worker(), consent=somebody_elses)


def test_a_consent_that_an_assignment_rests_on_cannot_pass_to_another_worker():
    assignment = make_assignment()
    with refused_by("assignment_rests_on_its_workers_consent"):
        Consent.objects.update(worker=make_worker())
    assert assignment.consent.worker == assignment.worker


def test_an_assignment_needs_a_consent():
    with pytest.raises(IntegrityError, match='"consent_id" of relation "annotator_assignment" violates not-null'):
        Assignment.objects.create(hit=make_hit(), worker=make_worker(), consent_id=None, deadline=in_half_an_hour())


def in_half_an_hour():
    return timezone.now() + timedelta(minutes=30)


# --- Studies and HITs


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ({"reward": "-0.01"}, "hit_type_reward_not_negative"),
        ({"max_assignments": 0}, "hit_type_has_assignments"),
        ({"assignment_duration": timedelta(0)}, "hit_type_assignment_duration_positive"),
    ],
)
def test_a_study_pays_takes_time_and_asks_somebody(change, constraint):
    study = make_hit_type()
    with refused_by(constraint):
        row(HITType, study).update(**change)


def test_a_statement_is_in_a_study_once():
    hit = make_hit()
    with refused_by("hit_once_a_study"):
        make_hit(hit_type=hit.hit_type, generation=hit.generation)


def test_a_hit_asks_somebody():
    with refused_by("hit_has_assignments"):
        make_hit(max_assignments=0)


def test_a_hit_never_has_more_assignments_than_places():
    hit = make_hit(max_assignments=3)
    for _ in range(3):
        make_assignment(hit)
    with refused_by("hit_never_over_its_max_assignments"):
        make_assignment(hit)


def test_a_bulk_insert_cannot_fill_more_than_the_places():
    hit = make_hit(max_assignments=3)
    workers = [consenting_worker() for _ in range(4)]
    with refused_by("hit_never_over_its_max_assignments"):
        Assignment.objects.bulk_create(
            Assignment(hit=hit, worker=worker, consent=worker.consents.get(), deadline=in_half_an_hour(), reward=0)
            for worker in workers
        )
    assert hit.assignments.count() == 0


def test_submitted_work_cannot_take_a_place_that_is_not_there():
    hit = make_hit(max_assignments=1)
    late = make_assignment(hit, **submitted(holds_place=False))
    make_assignment(hit)
    with refused_by("hit_never_over_its_max_assignments"):
        row(Assignment, late).update(holds_place=True)


def test_a_hit_cannot_have_its_places_cut_below_those_that_are_held():
    hit = make_hit(max_assignments=3)
    for _ in range(2):
        make_assignment(hit)
    with refused_by("hit_never_over_its_max_assignments"):
        row(HIT, hit).update(max_assignments=1)


def counts(hit):
    hit.refresh_from_db()
    return hit.held_places, hit.open_assignments, hit.free_places


def test_the_counts_of_a_hit_follow_inserts_updates_and_deletes():
    hit = make_hit(max_assignments=3)
    assert counts(hit) == (0, 0, 3)
    first, second = make_assignment(hit), make_assignment(hit)
    assert counts(hit) == (2, 2, 1)
    row(Assignment, first).update(**submitted())
    assert counts(hit) == (2, 1, 1)
    row(Assignment, first).update(holds_place=False)
    assert counts(hit) == (1, 1, 2)
    row(Assignment, second).update(**given_back("returned"))
    assert counts(hit) == (0, 0, 3)
    row(Assignment, first).update(holds_place=True)
    assert counts(hit) == (1, 0, 2)
    row(Assignment, first).delete()
    assert counts(hit) == (0, 0, 3)


def test_an_update_of_many_assignments_counts_each_for_its_own_hit():
    one, other = make_hit(), make_hit()
    for hit in (one, one, other):
        make_assignment(hit)
    assert (counts(one), counts(other)) == ((2, 2, 1), (1, 1, 2))
    Assignment.objects.update(**given_back("expired"))
    assert (counts(one), counts(other)) == ((0, 0, 3), (0, 0, 3))


@pytest.mark.parametrize("column", ["held_places", "open_assignments"])
def test_the_counts_of_a_hit_cannot_be_written_by_hand(column):
    hit = make_hit()
    make_assignment(hit)
    with refused_by("hit_counts_follow_its_assignments"):
        row(HIT, hit).update(**{column: 0})


@pytest.mark.parametrize("column", ["held_places", "open_assignments"])
def test_a_new_hit_has_no_places_taken(column):
    with refused_by("hit_counts_follow_its_assignments"):
        make_hit(**{column: 1})


def test_a_hit_read_before_an_accept_cannot_be_saved_over_it():
    stale = make_hit()
    make_assignment(stale)
    with refused_by("hit_counts_follow_its_assignments"):
        stale.save()


def test_a_hit_keeps_its_statement_and_its_study():
    hit = make_hit()
    with refused_by("hit_keeps_its_study_and_statement"):
        row(HIT, hit).update(generation=make_generation())
    with refused_by("hit_keeps_its_study_and_statement"):
        row(HIT, hit).update(hit_type=make_hit_type())


# --- The text of a statement


def test_the_text_of_a_statement_in_a_hit_never_changes():
    generation = make_hit("the sky is blue").generation
    with refused_by("generation_text_frozen_in_a_hit"):
        row(Generation, generation).update(text="the sky is green")
    with refused_by("generation_text_frozen_in_a_hit"), connection.cursor() as cursor:
        cursor.execute("UPDATE generation_generation SET text = 'the sky is green' WHERE id = %s", [generation.pk])


def test_who_wrote_a_statement_in_a_hit_never_changes():
    generation = make_hit("the sky is blue").generation
    with refused_by("generation_text_frozen_in_a_hit"):
        row(Generation, generation).update(method="alice")


def test_the_refusal_to_change_a_text_names_the_statement():
    generation = make_hit().generation
    with (
        pytest.raises(IntegrityError, match=f"Generation {generation.pk} is in a HIT: its text cannot change."),
        transaction.atomic(),
    ):
        row(Generation, generation).update(text="other")


def test_the_text_of_a_statement_outside_of_hits_can_change():
    generation = make_generation("the sky is blue")
    assert row(Generation, generation).update(text="the sky is grey") == 1


def test_other_columns_of_a_statement_in_a_hit_can_change():
    hit = make_hit("the sky is blue")
    assert row(Generation, hit.generation).update(text="the sky is blue", tokens=7) == 1


@pytest.mark.django_db(transaction=True)
def test_a_text_cannot_change_while_somebody_puts_it_into_a_hit():
    generation, hit_type = make_generation("the sky is blue"), make_hit_type()
    with stored_at_the_end(lambda: make_hit(hit_type=hit_type, generation=generation)):
        changing = in_the_background(lambda: row(Generation, generation).update(text="the sky is green"))
        wait_until_somebody_waits_for_a_lock()
    assert changing.result().__cause__.diag.constraint_name == "generation_text_frozen_in_a_hit"
    generation.refresh_from_db()
    assert generation.text == "the sky is blue"


@pytest.mark.django_db(transaction=True)
def test_a_hit_waits_for_a_change_of_its_text_that_is_under_way():
    generation, hit_type = make_generation("the sky is blue"), make_hit_type()
    with stored_at_the_end(lambda: row(Generation, generation).update(text="the sky is green")):
        adding = in_the_background(lambda: make_hit(hit_type=hit_type, generation=generation))
        wait_until_somebody_waits_for_a_lock()
        assert generation.hits.count() == 0
    adding.result()
    assert HIT.objects.get().generation.text == "the sky is green"


# --- Assignments


def test_a_worker_has_one_assignment_a_hit_ever():
    assignment = make_assignment(**given_back("returned"))
    with refused_by("assignment_once_a_hit_ever"):
        make_assignment(assignment.hit, assignment.worker)


def test_a_worker_has_one_open_assignment():
    assignment = make_assignment()
    with refused_by("assignment_one_open_a_worker"):
        make_assignment(make_hit(), assignment.worker)


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ({"holds_place": False}, "assignment_accepted_holds_a_place"),
        ({"status": "returned", "given_back_at": timezone.now()}, "assignment_given_back_frees_its_place"),
        ({"status": "expired", "given_back_at": timezone.now()}, "assignment_given_back_frees_its_place"),
        ({"status": "returned", "holds_place": False}, "assignment_given_back_frees_its_place"),
        ({"status": "submitted"}, "assignment_submitted_when_its_status_says_so"),
        ({"submitted_at": timezone.now()}, "assignment_submitted_when_its_status_says_so"),
        ({"deadline": timezone.now() - timedelta(days=1)}, "assignment_has_time"),
    ],
)
def test_an_assignment_is_in_a_state_that_can_be(change, constraint):
    assignment = make_assignment()
    with refused_by(constraint):
        row(Assignment, assignment).update(**change)


def test_an_assignment_stays_with_its_hit_and_its_worker():
    assignment = make_assignment()
    with refused_by("assignment_keeps_its_hit_and_worker"):
        row(Assignment, assignment).update(hit=make_hit())
    worker = consenting_worker()
    with refused_by("assignment_keeps_its_hit_and_worker"):
        row(Assignment, assignment).update(worker=worker, consent=worker.consents.get())


# --- Annotations


def annotate(assignment=None, **fields):
    """Store an annotation past the acts, with the bulk write that checks nothing in Python."""
    assignment = assignment or make_assignment(**submitted())
    return Annotation.objects.bulk_create([Annotation(assignment=assignment, **fields)])[0]


def test_an_assignment_has_one_annotation():
    annotation = annotate(**answers())
    with refused_by("annotator_annotation_assignment_id_key"):
        annotate(annotation.assignment, **answers())


def test_there_are_nine_questions():
    assert len(QUESTIONS) == 9


@pytest.mark.parametrize("key", KEYS)
def test_an_annotation_lacks_none_of_the_nine_answers(key):
    with refused_by("annotation_is_complete_or_not_understood"):
        annotate(**answers(**{key: None}))


@pytest.mark.parametrize("key", KEYS)
def test_an_answer_cannot_be_taken_away_later(key):
    annotation = annotate(**answers())
    with refused_by("annotation_is_complete_or_not_understood"):
        row(Annotation, annotation).update(**{key: None})


@pytest.mark.parametrize("key", KEYS)
def test_a_text_that_was_not_understood_may_lack_any_answer(key):
    annotation = annotate(not_understood=True, **answers(**{key: None}))
    assert row(Annotation, annotation).filter(**{f"{key}__isnull": True}).exists()


@pytest.mark.parametrize("not_understood", [False, True])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        (question.key, value)
        for question in QUESTIONS
        for value in ((0, 6) if question.is_scale else ("", "zz", question.values[0][:-1]))
    ],
)
def test_an_answer_out_of_range_is_refused(key, value, not_understood):
    with refused_by(f"annotation_{key}_in_range"):
        annotate(not_understood=not_understood, **answers(**{key: value}))


@pytest.mark.parametrize(
    ("key", "value"), [(question.key, value) for question in QUESTIONS for value in question.values]
)
def test_every_option_of_every_question_can_be_stored(key, value):
    annotation = annotate(**answers(**{key: value}))
    annotation.refresh_from_db()
    assert getattr(annotation, key) == value


def test_work_that_was_annotated_cannot_be_deleted():
    annotation = annotate(**answers())
    with refused_by("annotator_annotation_assignment_id_12229d07_fk_annotator"):
        Assignment.objects.filter(pk=annotation.assignment_id)._raw_delete("default")
