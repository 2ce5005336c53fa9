"""Withdrawing consent: no statement more, past answers kept or deleted as wished, and the pay stays."""

import csv
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.exports.writing import stream
from analysis.ratings import toxicity_classes
from annotator import assigning, consenting, drafting, submitting
from annotator.models import HIT, Annotation, Assignment, Consent, Payment, Survey
from annotator.reads import earnings
from tests.annotator.page import Page
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    log_in,
    make_assignment,
    make_consent,
    make_consent_form,
    make_hit,
    make_hit_type,
    make_worker,
)

pytestmark = pytest.mark.django_db

KEEP, DELETE = {"answers": "keep", "sure": "on"}, {"answers": "delete", "sure": "on"}


def submitted(worker=None, hit=None, **changes):
    """An assignment of the worker with answers."""
    assignment = make_assignment(hit, worker)
    submitting.submit(assignment=assignment, answers=answers(**changes))
    assignment.refresh_from_db()
    return assignment


def approve(assignment):
    Assignment.objects.filter(pk=assignment.pk).update(status="approved", decided_at=timezone.now())


def withdraw(worker, *, delete_answers=False):
    return consenting.withdraw(worker=worker, delete_answers=delete_answers)


def free_places(hit):
    hit.refresh_from_db()
    return hit.free_places


# --- The act


def test_withdrawing_ends_the_consent_to_every_version_and_nobody_elses():
    worker, other = consenting_worker(), consenting_worker()
    make_consent(worker, make_consent_form(version=2))
    done = withdraw(worker)
    assert (done.consents, done.returned, done.deleted) == (2, False, 0)
    assert not worker.consents.filter(withdrawn_at=None).exists()
    assert other.consents.filter(withdrawn_at=None).exists()


def test_an_earlier_withdrawal_keeps_its_time():
    worker = make_worker()
    then = datetime(2026, 10, 3, tzinfo=UTC)
    make_consent(worker, withdrawn_at=then)
    make_consent(worker)
    withdraw(worker)
    assert worker.consents.order_by("pk").first().withdrawn_at == then


@pytest.mark.parametrize("delete_answers", [False, True])
def test_the_open_statement_is_returned_and_its_place_is_free(delete_answers):
    hit = make_hit(max_assignments=1)
    assignment = make_assignment(hit)
    drafting.save_draft(assignment=assignment, typed={"lewd": "no"})
    assert withdraw(assignment.worker, delete_answers=delete_answers).returned
    assignment.refresh_from_db()
    assert (assignment.status, assignment.draft) == ("returned", None)
    assert free_places(hit) == 1


def test_past_answers_are_kept_as_labels_unless_deleted():
    assignment = submitted()
    assert withdraw(assignment.worker).deleted == 0
    assert Annotation.objects.counted().get().assignment == assignment
    assignment.refresh_from_db()
    assert assignment.answers_deleted_at is None


def test_deleting_takes_all_answers_and_frees_their_places():
    hit = make_hit(max_assignments=1)
    worker = submitted(hit=hit).worker
    submitted(worker, not_understood=True)
    other = submitted()
    assert free_places(hit) == 0
    assert withdraw(worker, delete_answers=True).deleted == 2
    assert Annotation.objects.get().assignment == other
    assert free_places(hit) == 1
    assert HIT.objects.assignable().filter(pk=hit.pk).exists()
    for assignment in worker.assignments.all():
        assert (assignment.status, assignment.holds_place) == ("submitted", False)
        assert timezone.now() - assignment.answers_deleted_at < timedelta(minutes=1)


def test_deleting_takes_drafts_and_what_was_said_about_oneself():
    worker, other = consenting_worker(), consenting_worker()
    expired = make_assignment(worker=worker, status="expired", holds_place=False, given_back_at=timezone.now())
    drafting.save_draft(assignment=expired, typed={"lewd": "no"})
    Survey.objects.create(worker=worker, gender="female")
    Survey.objects.create(worker=other, gender="male")
    withdraw(worker, delete_answers=True)
    expired.refresh_from_db()
    assert expired.draft is None
    assert Survey.objects.get().worker == other


def test_without_deletion_the_survey_stays():
    worker = consenting_worker()
    Survey.objects.create(worker=worker)
    withdraw(worker)
    assert Survey.objects.exists()


def test_what_was_earned_stays_and_pending_work_is_still_paid():
    worker = consenting_worker()
    approve(submitted(worker))
    pending = submitted(worker)
    before = earnings(worker)
    withdraw(worker, delete_answers=True)
    assert earnings(worker) == before
    assert (before.approved, before.pending) == (pending.reward, pending.reward)
    approve(pending)
    assert Payment.objects.filter(worker=worker).total() == 2 * pending.reward


def test_exports_and_agreement_are_without_deleted_answers():
    study = make_hit_type()
    hit = make_hit("the library opens at nine", hit_type=study)
    leaving = submitted(hit=hit, harmful_if_ai=5)
    staying = submitted(hit=hit)
    withdraw(leaving.worker, delete_answers=True)
    rows = list(csv.DictReader(b"".join(stream("annotations")).decode().splitlines()))
    assert [row["annotation_id"] for row in rows] == [str(staying.annotation.pk)]
    assert toxicity_classes(study).rater_ids.tolist() == [staying.worker_id]
    assert Annotation.objects.counted().get().assignment == staying


def test_a_statement_whose_answers_were_deleted_is_not_given_to_its_worker_again_but_to_others():
    hit = make_hit(max_assignments=1)
    worker = submitted(hit=hit).worker
    withdraw(worker, delete_answers=True)
    make_consent(worker)
    with pytest.raises(assigning.NoHITLeft):
        accept(worker, hit_type=hit.hit_type)
    assert accept(hit_type=hit.hit_type).hit == hit


def test_withdrawing_twice_does_nothing_more():
    worker = submitted().worker
    withdraw(worker, delete_answers=True)
    times = list(worker.assignments.values_list("answers_deleted_at", flat=True))
    done = withdraw(worker, delete_answers=True)
    assert (done.consents, done.returned, done.deleted) == (0, False, 0)
    assert list(worker.assignments.values_list("answers_deleted_at", flat=True)) == times


def test_answers_can_be_deleted_after_a_withdrawal_that_kept_them():
    worker = submitted().worker
    withdraw(worker)
    done = withdraw(worker, delete_answers=True)
    assert (done.consents, done.deleted) == (0, 1)


def test_after_withdrawing_no_statement_is_given_until_the_worker_agrees_anew():
    make_hit()
    worker = consenting_worker()
    withdraw(worker)
    with pytest.raises(assigning.ConsentMissing):
        accept(worker)
    consenting.give_consent(worker=worker, form=Consent.objects.get().form)
    assert accept(worker).consent == worker.consents.get(withdrawn_at=None)


@pytest.mark.parametrize("place_is_taken", [False, True])
def test_answers_that_come_after_the_deletion_are_not_stored(place_is_taken):
    hit = make_hit(max_assignments=1)
    assignment = make_assignment(hit)
    withdraw(assignment.worker, delete_answers=True)
    if place_is_taken:
        make_assignment(hit)
    submitting.submit(assignment=assignment, answers=answers())
    assert not Annotation.objects.exists()
    assignment.refresh_from_db()
    assert assignment.status == "returned"


def test_withdrawing_asks_as_little_of_the_database_for_many_answers_as_for_one():
    counts = []
    for number in (1, 6):
        worker = consenting_worker()
        for _ in range(number):
            submitted(worker)
        with CaptureQueriesContext(connection) as queries:
            withdraw(worker, delete_answers=True)
        counts.append(len(queries))
    assert counts[0] == counts[1]


# --- The page


def open_page(client):
    return Page(client.get("/withdraw/"))


def message(response):
    return Page(response).one(class_="messages").text


def test_the_page_says_what_happens_and_asks_what_becomes_of_the_answers(client, worker):
    submitted(worker), submitted(worker)
    page = open_page(client)
    assert page.one("h1").text == "Withdraw your consent"
    assert page.one("legend").text == "Your past answers, to 2 statements"
    assert [radio["value"] for radio in page.all("input", type="radio")] == ["keep", "delete"]
    assert not [box for box in page.all("input") if "checked" in box.attributes], "nothing is chosen beforehand"
    assert "What you have earned stays yours" in page.text
    assert Consent.objects.filter(withdrawn_at=None).exists(), "reading the page withdraws nothing"


def test_keeping_withdraws_and_says_what_was_done(client, worker, assignment):
    submitted()
    response = client.post("/withdraw/", KEEP, follow=True)
    assert response.redirect_chain == [("/withdraw/", 302)]
    assert message(response) == (
        "You have withdrawn your consent. The statement that was open was returned. Your past answers are kept. "
        "What you have earned stays yours."
    )
    assert Annotation.objects.exists()
    assert not worker.consents.filter(withdrawn_at=None).exists()


def test_deleting_withdraws_and_says_what_was_done(client, worker):
    submitted(worker)
    response = client.post("/withdraw/", DELETE, follow=True)
    assert message(response) == (
        "You have withdrawn your consent. Your answers to 1 statement are deleted, and with them what you had begun "
        "and what you had said about yourself. What you have earned stays yours."
    )
    assert not Annotation.objects.exists()
    page = Page(response)
    assert page.one("h1").text == "You have withdrawn"
    assert page.all("form", class_="consent") == []


def test_who_kept_the_answers_can_have_them_deleted_later(client, worker):
    submitted(worker)
    page = Page(client.post("/withdraw/", KEEP, follow=True))
    form = page.one("form", class_="consent")
    assert "Your answers to 1 statement are kept." in page.text
    response = client.post("/withdraw/", page.sends(form) | {"sure": "on"}, follow=True)
    assert message(response).startswith("Your answers to 1 statement are deleted")
    assert not Annotation.objects.exists()


@pytest.mark.parametrize(
    ("posted", "sentence"),
    [
        ({}, "Choose what is to happen to your past answers. Tick the box to confirm."),
        ({"answers": "delete"}, "Tick the box to confirm."),
        ({"sure": "on"}, "Choose what is to happen to your past answers."),
        ({"answers": "burn", "sure": "on"}, "Choose what is to happen to your past answers."),
    ],
)
def test_nothing_is_done_that_was_not_chosen_and_confirmed(client, worker, posted, sentence):
    submitted(worker)
    response = client.post("/withdraw/", posted)
    assert response.status_code == 422
    assert Page(response).one(role="alert").text == sentence
    assert worker.consents.filter(withdrawn_at=None).exists()
    assert Annotation.objects.exists()


def test_the_choice_is_kept_when_the_box_was_forgotten(client, worker):
    page = Page(client.post("/withdraw/", {"answers": "delete"}))
    (chosen,) = [radio for radio in page.all("input", type="radio") if "checked" in radio.attributes]
    assert chosen["value"] == "delete"


def test_after_withdrawing_the_pages_with_statements_lead_to_the_form(client, worker, assignment):
    client.post("/withdraw/", KEEP)
    for address in ("/", f"/task/{assignment.key}/"):
        assert client.get(address)["Location"] == "/consent/"
    response = client.post(f"/task/{assignment.key}/", answers())
    assert response.status_code == 403
    assert not Annotation.objects.exists()


def test_after_withdrawing_the_worker_still_sees_work_and_pay_and_can_agree_anew(client, worker):
    client.post("/withdraw/", DELETE)
    for address in ("/work/", "/debrief/", "/help/", "/preferences/"):
        assert client.get(address).status_code == 200, address
    page = Page(client.get("/consent/"))
    client.post("/consent/", page.sends(page.one("form", class_="consent")) | {"agree": "on"})
    assert client.get("/").status_code == 200


def test_who_never_agreed_has_nothing_to_withdraw(client):
    make_consent_form()
    log_in(client, make_worker())
    page = open_page(client)
    assert page.one("h1").text == "Nothing to withdraw"
    assert page.all("form", class_="consent") == []


def test_the_way_to_withdraw_is_on_the_consent_form_the_preferences_and_the_debrief(client, worker):
    for address in ("/consent/", "/preferences/", "/debrief/"):
        assert Page(client.get(address)).one("a", href="/withdraw/").text == "Withdraw your consent", address


anything = st.one_of(
    st.text(max_size=20), st.sampled_from(["\x00", "x" * 100_000, "keep", "delete", "on", "DELETE", " delete"])
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(posted=st.fixed_dictionaries({}, optional=dict.fromkeys(["answers", "sure"], anything)))
def test_anything_at_all_withdraws_or_is_refused_in_words(client, worker, posted):
    with transaction.atomic():
        response = client.post("/withdraw/", posted)
        withdrawn = not worker.consents.filter(withdrawn_at=None).exists()
        transaction.set_rollback(True)
    assert response.status_code in (302, 422)
    assert withdrawn == (response.status_code == 302)
    if withdrawn:
        assert posted["answers"] in ("keep", "delete")
