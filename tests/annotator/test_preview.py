"""Before accepting: what a study asks, takes and pays, and none of its statements."""

from datetime import timedelta

import pytest

from annotator.models import Qualification
from annotator.questions import QUESTIONS
from tests.annotator.page import Page
from tests.factories import accept, answers, log_in, make_hit, make_hit_type, make_worker

pytestmark = pytest.mark.django_db


def preview(client, study):
    return Page(client.get(f"/study/{study.pk}/"))


def test_it_shows_no_statement(client, study, worker):
    content = client.get(f"/study/{study.pk}/").content.decode()
    for hit in study.hits.all():
        assert hit.generation.text not in content


def test_it_shows_no_statement_to_somebody_at_work_either(client, study, assignment):
    assert assignment.hit.generation.text not in client.get(f"/study/{study.pk}/").content.decode()


def test_it_shows_the_nine_questions(client, study, worker):
    asked = preview(client, study).one(class_="card asked")
    for question in QUESTIONS:
        assert question.wording in asked.text


def test_it_says_what_the_study_pays_and_takes(client, worker):
    study = make_hit_type(
        reward="0.40",
        expected_time=timedelta(seconds=90),
        assignment_duration=timedelta(hours=1, minutes=30),
        auto_approval_delay=timedelta(days=2),
        daily_cap=20,
        break_after=timedelta(minutes=25),
    )
    make_hit(hit_type=study)
    page = preview(client, study)
    assert {dt.text: dd.text for dt, dd in zip(page.all("dt"), page.all("dd"), strict=True)} == {
        "Pay": "$0.40 a statement",
        "Time each": "about 1 minute 30 seconds",
        "At most": "20 statements in 24 hours",
        "Done by you": "0",
        "Still open for you": "1",
    }
    assert "That makes $16.00 an hour, if a statement takes 1 minute 30 seconds as expected." in page.text
    assert "You have 1 hour 30 minutes for each statement." in page.text
    assert "Work that nobody has looked at after 2 days is approved automatically." in page.text
    assert "After 25 minutes without a break, one is suggested." in page.text


def test_its_button_accepts(client, study, worker):
    page = preview(client, study)
    (button,) = [button for button in page.all("button") if button.is_in(page.one("main"))]
    assert button.text == "Accept the first statement"
    form = button.ancestors[-1]
    assert form["action"] == f"/study/{study.pk}/accept/"
    assert client.post(form["action"], page.sends(form))["Location"].startswith("/task/")


def test_its_button_says_where_one_is(client, study, worker):
    assignment = accept(worker)
    assert "Go on with your statement" in preview(client, study).text
    client.post(f"/task/{assignment.key}/", answers())
    client.post(f"/task/{accept(worker).key}/return/")
    make_hit(hit_type=study)
    assert "Accept the next statement" in preview(client, study).text


def test_with_nothing_left_it_says_so_and_has_no_button(client, study, worker):
    for _ in study.hits.all():
        client.post(f"/task/{accept(worker).key}/", answers())
    page = preview(client, study)
    assert "There is no statement left for you in this study." in page.text
    assert not [button for button in page.all("button") if button.is_in(page.one("main"))]


def test_without_consent_it_leads_to_the_consent_form(client, study):
    log_in(client, make_worker())
    page = preview(client, study)
    assert page.one("a", href="/consent/").is_in(page.one("main"))
    assert not [button for button in page.all("button") if button.is_in(page.one("main"))]


def test_it_says_which_qualifications_one_lacks_and_which_one_has(client, study, worker):
    english = Qualification.objects.create(name="Reads English", description="You read it without effort.")
    careful = Qualification.objects.create(name="Careful")
    test = make_hit_type(title="A test", grants=careful, pass_mark=80)
    study.qualifications.add(english, careful)
    english.grants.create(worker=worker)
    page = preview(client, study)
    needed = page.one("h2", id="needed").ancestors[-1]
    assert [item.text for item in page.all("li") if item.is_in(needed)] == [
        "Careful You do not have it yet.",
        "Reads English: You read it without effort. You have it.",
    ]
    assert "You cannot take part in this study yet: see above what it asks for." in page.text
    assert "at least 80 % of its statements as expected earns the qualification “Careful”" in preview(client, test).text
    assert "A statement that you return, let expire or do not understand counts as not" in preview(client, test).text
    assert "Whoever leaves out more than half cannot pass." in preview(client, test).text


@pytest.mark.parametrize(("passed", "words"), [(True, "you passed"), (False, "you did not pass this time")])
def test_a_test_that_one_has_taken_says_how_it_ended(client, worker, passed, words):
    test = make_hit_type(grants=Qualification.objects.create(name="Careful"), pass_mark=80)
    test.results.create(worker=worker, right=8, total=10, passed=passed)
    page = preview(client, test)
    assert f"You have taken this test: {words}" in page.text
    assert not [button for button in page.all("button") if button.is_in(page.one("main"))]


@pytest.mark.parametrize("number", ["0", "999999", "9" * 30])
def test_a_study_that_does_not_exist_is_refused(client, worker, number):
    assert client.get(f"/study/{number}/").status_code == 404


def test_a_study_that_others_were_chosen_for_is_refused_as_if_it_did_not_exist(client, study, worker):
    study.qualifications.add(Qualification.objects.create(name="Chosen"))
    response, of_none = client.get(f"/study/{study.pk}/"), client.get("/study/999999/")
    assert (response.status_code, Page(response).text) == (404, Page(of_none).text)
