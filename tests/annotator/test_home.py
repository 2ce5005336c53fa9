"""The annotators' home page: what there is to do, what it pays, what was earned."""

from datetime import timedelta

import pytest
from django.utils import timezone
from django.utils.formats import date_format

from annotator import assigning, helping, reads
from annotator.models import Assignment, Qualification, TestResult, Worker
from annotator.reads import earnings
from generation.runs import cancel_run
from tests.annotator.page import Page
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    log_in,
    make_assignment,
    make_hit,
    make_hit_type,
    make_run,
)

pytestmark = pytest.mark.django_db


def offer(client):
    """The button or the sentence of the only study."""
    page = Page(client.get("/"))
    study = page.one("section", class_="card study")
    (said,) = [
        element.text
        for element in page.elements
        if element.is_in(study) and (element.tag == "button" or element.get("class") == "hint")
    ]
    return said


def test_a_study_is_previewed_before_it_is_accepted(client, study, worker):
    assert f"/study/{study.pk}/" in [link["href"] for link in Page(client.get("/")).all("a")]


def test_a_study_that_others_were_chosen_for_is_not_shown(client, study, worker):
    study.qualifications.add(Qualification.objects.create(name="prequalified"))
    assert Page(client.get("/")).all("section", class_="card study") == []


def test_a_study_whose_qualification_can_be_earned_says_where(client, study, worker):
    qualification = Qualification.objects.create(name="prequalified")
    study.qualifications.add(qualification)
    make_hit_type(grants=qualification, pass_mark=80)
    test, other = Page(client.get("/")).all("section", class_="card study")
    assert "A paid test for the qualification “prequalified”, one go" in test.text
    assert "This study asks for “prequalified”. There is a paid test for it on this page." in other.text


@pytest.mark.parametrize(("passed", "said"), [(True, "You passed"), (False, "You did not pass this time")])
def test_a_test_that_was_taken_says_how_it_went(client, study, worker, passed, said):
    qualification = Qualification.objects.create(name="prequalified")
    test = make_hit_type(grants=qualification, pass_mark=80)
    TestResult.objects.create(test=test, worker=worker, right=3, total=4, passed=passed)
    shown = next(card.text for card in Page(client.get("/")).all("section", class_="card study") if said in card.text)
    assert "3 of 4 statements were answered as expected. The test is paid either way." in shown


def test_a_large_study_counts_what_is_open_up_to_two_hundred(client, study, worker, monkeypatch):
    monkeypatch.setattr(reads, "COUNTED_UP_TO", 2)
    make_hit(hit_type=study)
    assert "2 and more" in [dd.text for dd in Page(client.get("/")).all("dd")]


def test_a_study_offers_the_first_statement_then_the_one_at_work_then_the_next(client, study, worker):
    assert offer(client) == "Take the first statement"
    client.post(f"/study/{study.pk}/accept/")
    assert offer(client) == "Go on with your statement"
    client.post(f"/task/{Assignment.objects.get().key}/", answers())
    assigning.return_assignment(assignment=Assignment.objects.accepted().get())
    make_hit(hit_type=study)
    assert offer(client) == "Take the next statement"


def test_a_study_with_nothing_left_thanks_who_has_worked_in_it(client, study, worker):
    for _ in study.hits.all():
        client.post(f"/study/{study.pk}/accept/")
        client.post(f"/task/{Assignment.objects.accepted().get().key}/", answers())
    assert offer(client) == "That was all: thank you. There is no statement left for you in this study."


def test_a_study_that_is_being_written_says_so(client):
    run = make_run()
    make_hit_type(run=run)
    log_in(client)
    assert offer(client) == "The statements are still being written. Reload this page in a moment."
    cancel_run(run=run)
    assert offer(client) == "There is no statement for you in this study at the moment."


def test_without_a_study_the_page_says_that_nothing_is_wrong(client):
    log_in(client)
    assert ("There is no study for you at the moment. Nothing is wrong with your invitation; come back later.") in Page(
        client.get("/")
    ).text


def test_studies_stand_newest_first(client):
    make_hit_type(title="The first study"), make_hit_type(title="The second study")
    log_in(client)
    headings = [heading.text for heading in Page(client.get("/")).all("h2")]
    assert headings == ["The second study", "The first study", "Your earnings"]


def test_the_study_at_work_stands_first_then_those_with_work(client):
    first, second = make_hit_type(title="At work"), make_hit_type(title="With work")
    make_hit_type(title="Without")
    make_hit(hit_type=first), make_hit(hit_type=second)
    accept(log_in(client), hit_type=first)
    page = Page(client.get("/"))
    assert [heading.text for heading in page.all("h2")] == ["At work", "With work", "Without", "Your earnings"]
    previews = [link["href"] for link in page.all("a") if link["href"].startswith("/study/")]
    assert len(previews) == 3


def buttons(client, path="/"):
    page = Page(client.get(path))
    return [button.text for button in page.all("button") if button.is_in(page.one("main"))]


def test_at_the_daily_cap_the_page_says_until_when_and_offers_only_what_is_left(client, study, worker):
    given = accept(worker, hit_type=study)
    assigning.return_assignment(assignment=given)
    type(study).objects.filter(pk=study.pk).update(daily_cap=1, title="Small")
    make_hit(hit_type=make_hit_type(title="Large"))
    page = Page(client.get("/"))
    free_at = date_format(timezone.localtime(given.accepted_at + timedelta(hours=24)), "H:i e, j F")
    assert page.one("p", class_="notice").text == (
        "“Small”: you were given as many statements within 24 hours as this study allows, those in all studies and "
        f"those that you returned counted. More would be too much for one day. You can go on from {free_at}."
    )
    assert buttons(client) == ["Take the first statement"]
    assert buttons(client, f"/study/{study.pk}/") == []
    assert f"You can go on from {free_at}." in Page(client.get(f"/study/{study.pk}/")).text


def test_who_is_blocked_reads_why_and_is_offered_nothing(client, study, worker):
    Worker.objects.update(blocked_at=timezone.now(), blocked_reason="Ask Ada.")
    assert Page(client.get("/")).one("div", class_="notice").text == (
        "You cannot take on work at present: Ask Ada.What you sent is kept and paid."
    )
    assert buttons(client) == buttons(client, f"/study/{study.pk}/") == []
    assert "You cannot take on work at present: Ask Ada." in Page(client.get(f"/study/{study.pk}/")).text


def test_the_home_page_says_what_there_is_what_it_pays_and_what_was_earned(client):
    hits = [make_hit()]
    hits += [make_hit(hit_type=hits[0].hit_type) for _ in range(2)]
    make_assignment(hits[0], status="submitted", submitted_at=timezone.now())  # another worker's
    worker = log_in(client)
    client.post(f"/task/{accept(worker).key}/", answers())
    page = Page(client.get("/"))
    assert [(dt.text, dd.text) for dt, dd in zip(page.all("dt"), page.all("dd"), strict=True)] == [
        ("Pay", "$0.25 a statement"),
        ("Time", "1 minute 45 seconds each, as expected"),
        ("That is", "$8.57 an hour"),
        ("Done by you", "1"),
        ("Still open for you", "1"),
        ("Statements done", "1"),
        ("Approved", "$0.00"),
        ("Waiting for approval", "$0.25"),
    ]


def test_rejected_work_pays_nothing_and_approved_work_is_said_to_be():
    worker, now = consenting_worker(), timezone.now()
    make_assignment(worker=worker, status="approved", submitted_at=now, decided_at=now)
    make_assignment(worker=worker, status="submitted", submitted_at=now)
    decision = {"decided_at": now, "rejection_reason": "It was left empty.", "holds_place": False}
    make_assignment(worker=worker, status="rejected", submitted_at=now, **decision)
    make_assignment(worker=worker, status="returned", given_back_at=now, holds_place=False)
    tally = earnings(worker)
    assert (tally.submitted, str(tally.approved), str(tally.pending), str(tally.total)) == (3, "0.25", "0.25", "0.50")


@pytest.mark.parametrize("studies", [1, 6])
def test_the_home_page_takes_as_many_queries_for_one_study_as_for_many(client, django_assert_num_queries, studies):
    for _ in range(studies):
        make_hit()
    log_in(client)
    helping.help_lines()  # read once a minute
    with django_assert_num_queries(7):
        client.get("/")
