"""The annotators' home page: what there is to do, what it pays, what was earned."""

import pytest
from django.utils import timezone

from annotator import assigning
from annotator.models import Assignment
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


def test_a_study_offers_the_first_statement_then_the_one_at_work_then_the_next(client, study, worker):
    assert offer(client) == "Take the first statement"
    client.post("/accept/")
    assert offer(client) == "Go on with your statement"
    client.post(f"/task/{Assignment.objects.get().key}/", answers())
    assigning.return_assignment(assignment=Assignment.objects.accepted().get())
    make_hit(hit_type=study)
    assert offer(client) == "Take the next statement"


def test_a_study_with_nothing_left_thanks_who_has_worked_in_it(client, study, worker):
    for _ in study.hits.all():
        client.post("/accept/")
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
    assert (
        "There is no study for you at the moment. Nothing is wrong with your invitation; please come back later."
    ) in Page(client.get("/")).text


def test_studies_stand_newest_first(client):
    make_hit_type(title="The first study"), make_hit_type(title="The second study")
    log_in(client)
    headings = [heading.text for heading in Page(client.get("/")).all("h2")]
    assert headings == ["The second study", "The first study", "Your earnings"]


def test_the_home_page_says_what_there_is_what_it_pays_and_what_was_earned(client):
    hits = [make_hit()]
    hits += [make_hit(hit_type=hits[0].hit_type) for _ in range(2)]
    make_assignment(hits[0], status="submitted", submitted_at=timezone.now())  # another worker's
    worker = log_in(client)
    client.post(f"/task/{accept(worker).key}/", answers())
    page = Page(client.get("/"))
    assert [(dt.text, dd.text) for dt, dd in zip(page.all("dt"), page.all("dd"), strict=True)] == [
        ("Pay", "$0.25 a statement"),
        ("Time", "under 3 minutes each"),
        ("Done by you", "1"),
        ("Still open for you", "1"),
        ("Statements done", "1"),
        ("Approved", "$0.00"),
        ("Waiting for approval", "$0.25"),
    ]


def test_rejected_work_pays_nothing_and_approved_work_is_said_to_be():
    worker, now = consenting_worker(), timezone.now()
    make_assignment(worker=worker, status="approved", submitted_at=now)
    make_assignment(worker=worker, status="submitted", submitted_at=now)
    make_assignment(worker=worker, status="rejected", submitted_at=now, rejection_reason="It was left empty.")
    make_assignment(worker=worker, status="returned", given_back_at=now, holds_place=False)
    tally = earnings(worker)
    assert (tally.submitted, str(tally.approved), str(tally.pending), str(tally.total)) == (3, "0.25", "0.25", "0.50")


@pytest.mark.parametrize("studies", [1, 6])
def test_the_home_page_takes_as_many_queries_for_one_study_as_for_many(client, django_assert_num_queries, studies):
    for _ in range(studies):
        make_hit()
    log_in(client)
    with django_assert_num_queries(5):
        client.get("/")
