"""The debrief: thanks, what it was for, what it earned, and the ways on."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session

from annotator import consenting, submitting
from annotator.models import Assignment, Survey
from tests.annotator.page import Page
from tests.factories import (
    answers,
    consenting_worker,
    log_in,
    make_assignment,
    make_consent,
    make_consent_form,
    make_hit,
    make_worker,
)

pytestmark = pytest.mark.django_db


def visit(client):
    return Page(client.get("/debrief/"))


def facts(page):
    return dict(zip((term.text for term in page.all("dt")), (value.text for value in page.all("dd")), strict=True))


def worked(worker, seconds, **fields):
    """A statement that the worker submitted after so long."""
    assignment = make_assignment(make_hit(), worker, **fields)
    submitting.submit(assignment=assignment, answers=answers())
    assignment.refresh_from_db()
    Assignment.objects.filter(pk=assignment.pk).update(submitted_at=assignment.accepted_at + timedelta(seconds=seconds))


def test_stopping_returns_the_open_statement_and_leads_to_the_debrief(client, worker, assignment):
    response = client.post("/stop/", follow=True)
    assert response.redirect_chain == [("/debrief/", 302)]
    assert Page(response).one("h1").text == "Thank you"
    assignment.refresh_from_db()
    assert assignment.status == "returned"


def test_stopping_says_that_an_open_statement_was_returned(client, assignment):
    page = Page(client.post("/stop/", follow=True))
    assert page.one(class_="messages").text == "A statement was open. It was returned, without penalty."


def test_it_says_what_was_done_earned_and_how_long_it_took(client, worker):
    worked(worker, 95)
    worked(worker, 30)
    Assignment.objects.filter(worker=worker).first()
    assert facts(visit(client)) == {
        "Statements done": "2",
        "Time worked": "2 minutes 5 seconds",
        "Approved": "$0.00",
        "Waiting for approval": "$0.50",
    }


def test_late_work_is_time_up_to_its_deadline(client, worker):
    worked(worker, 7200)
    assert facts(visit(client))["Time worked"] == "30 minutes"


def test_before_any_work_there_is_nothing_to_divide(client, worker):
    assert facts(visit(client))["Time worked"] == "no time"


def test_the_words_are_those_of_the_form_the_worker_agreed_to_last(client):
    worker = consenting_worker()
    make_consent(worker, make_consent_form(version=2, debrief="We compare **dialects**. <script>alert(1)</script>"))
    make_consent_form(version=3, debrief="Never agreed to.")
    log_in(client, worker)
    page = visit(client)
    assert page.one("strong").text == "dialects"
    assert "Never agreed to." not in page.text
    assert "alert(1)" not in page.text


@pytest.mark.parametrize("debrief", ["", " \n"])
def test_a_form_without_a_debrief_has_words_of_ours(client, debrief):
    make_consent_form(debrief=debrief)
    worked(log_in(client), 60)
    assert "The statements that you judged were written by a computer program." in visit(client).text


def test_it_offers_the_survey_until_it_is_answered(client, worker):
    assert visit(client).one("a", href="/survey/").text == "Answer the survey"
    Survey.objects.create(worker=worker)
    assert visit(client).one("a", href="/survey/").text == "Change or delete your answers"


def test_it_leads_to_work_and_pay_withdrawal_help_and_back(client, worker):
    page = visit(client)
    assert "open your invite link again" in page.text
    targets = {link["href"] for link in page.all("a") if link.is_in(page.one("main"))}
    assert {"/", "/work/", "/withdraw/", "/survey/"} <= targets
    assert page.one("a", href="/help/")


def test_logging_out_ends_the_session(client, worker):
    page = visit(client)
    form = page.one("form", action="/leave/")
    client.post(form["action"], page.sends(form))
    assert not Session.objects.exists()
    assert Page(client.get("/")).one("h1").text == "People judge what machines write"


def test_after_a_withdrawal_it_is_there_without_the_survey(client, worker):
    consenting.withdraw(worker=worker, delete_answers=False)
    page = visit(client)
    assert page.one("h1").text == "Thank you"
    assert page.all("a", href="/survey/") == []


def test_somebody_who_never_agreed_can_stop_too(client):
    make_consent_form()
    log_in(client, make_worker())
    response = client.post("/stop/", follow=True)
    assert response.status_code == 200
    assert "that you judged" not in Page(response).text
    assert "A statement was open" not in Page(response).text


def test_it_shows_without_work_of_others(client, worker):
    worked(consenting_worker(), 60)
    assert facts(visit(client))["Statements done"] == "0"
