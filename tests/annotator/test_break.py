"""A break is suggested after so much work, kindly: one may go on, or stop, and loses nothing."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotator.models import Annotation, Assignment
from tests.annotator.page import Page
from tests.factories import accept, answers, lapse

pytestmark = pytest.mark.django_db


@pytest.fixture
def tired(worker):
    """An assignment of a worker who has worked for 22 minutes; the study suggests a break after 20."""
    began = timezone.now() - timedelta(minutes=22)
    assignment = accept(worker)
    Assignment.objects.update(working_since=began, accepted_at=timezone.now() - timedelta(minutes=1))
    return assignment


def break_path(study):
    return f"/study/{study.pk}/break/"


def test_a_submit_leads_to_the_break_when_one_is_due_and_the_answers_are_stored(client, study, tired):
    response = client.post(f"/task/{tired.key}/", answers())
    assert (response.status_code, response["Location"]) == (302, break_path(study))
    assert Annotation.objects.get().assignment == tired


def test_the_page_says_for_how_long_one_has_worked(client, study, tired):
    page = Page(client.post(f"/task/{tired.key}/", answers(), follow=True))
    assert page.one("h1").text == "Time for a break"
    assert page.one(class_="lead").text.startswith("You have worked for 22 minutes without a break.")


def test_its_button_goes_on_with_the_next_statement(client, study, tired):
    page = Page(client.post(f"/task/{tired.key}/", answers(), follow=True))
    form = page.one("button", class_=None).ancestors[-1]
    response = client.post(form["action"], page.sends(form))
    following = Assignment.objects.accepted().get()
    assert (response.status_code, response["Location"]) == (302, f"/task/{following.key}/")
    assert following != tired


def test_accepting_without_saying_that_one_rested_leads_back_to_the_break(client, study, tired):
    client.post(f"/task/{tired.key}/", answers())
    for posted in ({}, {"rested": "0"}, {"rested": ""}):
        assert client.post(f"/study/{study.pk}/accept/", posted)["Location"] == break_path(study)


def test_the_break_can_be_left_for_the_home_page_or_ended_by_stopping(client, study, tired):
    page = Page(client.post(f"/task/{tired.key}/", answers(), follow=True))
    assert "/" in [link["href"] for link in page.all("a") if link.is_in(page.one("main"))]
    assert page.one("form", class_="stop")["action"] == "/stop/"


def test_who_has_not_worked_lately_is_not_told_for_how_long(client, study, tired):
    lapse(tired)
    assert "You have worked" not in Page(client.get(break_path(study))).text


@pytest.mark.parametrize(("minutes", "is_due"), [(5, True), (12, False)])
def test_long_statements_are_no_break_but_time_after_the_last_submit_is(client, study, tired, minutes, is_due):
    client.post(f"/task/{tired.key}/", answers())
    now = timezone.now()
    Assignment.objects.update(
        accepted_at=now - timedelta(minutes=40),
        submitted_at=now - timedelta(minutes=minutes),
        working_since=now - timedelta(minutes=40),
    )
    assert ("You have worked" in Page(client.get(break_path(study))).text) is is_due
    response = client.post(f"/study/{study.pk}/accept/")
    assert (response["Location"] == break_path(study)) is is_due


def test_who_has_never_worked_is_not_told_for_how_long(client, study, worker):
    assert "You have worked" not in Page(client.get(break_path(study))).text


@pytest.mark.parametrize("number", ["0", "999999", "9" * 30])
def test_a_break_from_a_study_that_does_not_exist_is_refused(client, worker, number):
    assert client.get(f"/study/{number}/break/").status_code == 404
