"""The page of a worker's own work: each state in words, what it pays, and nothing of others or of statements."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from annotator import helping, own_work, paying, wages
from annotator.models import Assignment
from tests.annotator.page import Page
from tests.annotator.work_done import work
from tests.factories import (
    consenting_worker,
    log_in,
    make_assignment,
    make_generation,
    make_group,
    make_hit,
    make_hit_type,
    make_worker,
    numbers,
)

pytestmark = pytest.mark.django_db

NOW = timezone.now()
TODAY, IN_THREE_DAYS, IN_THIRTY_DAYS = (
    f"{moment:%-d %B %Y}" for moment in (NOW, NOW + timedelta(days=3), NOW + timedelta(days=30))
)


@pytest.fixture
def worker(client):
    return log_in(client)


@pytest.fixture
def study():
    return make_hit_type(title="Is this statement harmful?")


def own(study, worker, **fields):
    fields = {"seconds": 105, "hit": make_hit(f"the moon is made of rock {next(numbers)}", hit_type=study)} | fields
    return work(study, worker=worker, **fields)


def given_back(study, worker, status):
    hit = make_hit(hit_type=study)
    return make_assignment(hit, worker, status=status, holds_place=False, given_back_at=timezone.now())


def shown(client):
    """The statements of the page, each as its four parts."""
    page = Page(client.get("/work/"))
    items = [item for ol in page.all("ol") for item in page.all("li") if item.is_in(ol)]
    return [{name: page_part(page, item, name) for name in ("what", "pay", "state", "when")} for item in items]


def page_part(page, item, name):
    (part,) = [element for element in page.all(class_=name) if element.is_in(item)]
    return part.text


def facts(client):
    page = Page(client.get("/work/"))
    return {dt.text: dd.text for dt, dd in zip(page.all("dt"), page.all("dd"), strict=True)}


@pytest.mark.parametrize(
    ("fields", "pay", "state"),
    [
        ({}, "$0.25", f"Waiting for approval; approved automatically on {IN_THREE_DAYS} at the latest."),
        ({"status": "approved"}, "$0.25", f"Approved on {TODAY}."),
        (
            {"status": "rejected", "rejection_reason": "You answered <b>before</b> the text could be read."},
            "not paid",
            f"Rejected on {TODAY}. It can still be approved until {IN_THIRTY_DAYS}: write to the contact in the "
            "consent form. The reason: You answered <b>before</b> the text could be read.",
        ),
        (
            {"status": "rejected", "decided_at": NOW - timedelta(days=31)},
            "not paid",
            f"Rejected on {NOW - timedelta(days=31):%-d %B %Y}. The reason: It was left empty.",
        ),
        (
            {"status": "approved", "answers_deleted_at": NOW},
            "$0.25",
            f"Approved on {TODAY}. Your answers were deleted as you asked; the pay stays.",
        ),
        ({"at": NOW - timedelta(days=4)}, "$0.25", "Waiting for approval; approved automatically in a moment."),
    ],
)
def test_submitted_work_says_what_became_of_it(client, worker, study, fields, pay, state):
    own(study, worker, **fields)
    (row,) = shown(client)
    assert (row["what"], row["pay"], row["state"]) == ("Is this statement harmful?", pay, state)
    assert row["when"].endswith("UTC · took 1 minute 45 seconds")


def test_each_row_says_which_statement_it_is_and_what_group_it_is_about(client, worker, study):
    statement = make_generation("the moon is made of rock", group=make_group("women", words="women"))
    own(study, worker, hit=make_hit(hit_type=study, generation=statement))
    assert Page(client.get("/work/")).one("p", class_="which").text == f"Statement {statement.pk}, about women"


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("returned", "Returned, which costs you nothing."),
        ("expired", "Time ran out, which costs you nothing."),
    ],
)
def test_what_was_given_back_costs_nothing(client, worker, study, status, state):
    given_back(study, worker, status)
    (row,) = shown(client)
    assert (row["pay"], row["state"], "took" in row["when"]) == ("–", state, False)


def test_the_statement_that_one_is_at_can_be_gone_on_with(client, worker, study):
    assignment = make_assignment(make_hit(hit_type=study), worker)
    (row,) = shown(client)
    assert row["state"].startswith("You are at it, until ")
    assert f"/task/{assignment.key}/" in [link["href"] for link in Page(client.get("/work/")).all("a")]
    Assignment.objects.update(accepted_at=NOW - timedelta(hours=2), deadline=NOW - timedelta(hours=1))
    (row,) = shown(client)
    assert row["state"] == "Time ran out, which costs you nothing."


def test_a_text_that_was_not_understood_is_said_to_be(client, worker, study):
    client.post(f"/task/{make_assignment(make_hit(hit_type=study), worker).key}/", {"not_understood": "on"})
    (row,) = [row for row in shown(client) if "not understood" in row["state"]]
    assert row["state"].startswith("You marked the text as not understood. Waiting for approval;")
    assert row["pay"] == "$0.25"


def test_bonuses_stand_with_their_reasons_by_their_statement_or_on_their_own(client, worker, study):
    assignment = own(study, worker, status="approved")
    top_up = {"amount": Decimal("0.05"), "reason": "Top-up to $0.30 a statement.", "by": None}
    paying.pay_bonus(worker=worker, assignment=assignment, **top_up)
    paying.pay_bonus(worker=worker, amount=Decimal("2.00"), reason="For <your> remarks.", by=None)
    (row,) = shown(client)
    assert row["state"] == f"Approved on {TODAY}. $0.05 besides. Top-up to $0.30 a statement."
    (on_its_own,) = Page(client.get("/work/")).all("ul")
    assert on_its_own.text == f"For <your> remarks. $2.00 {TODAY}"


def test_a_bonus_to_rejected_work_is_said_to_be_paid(client, worker, study):
    assignment = own(study, worker, status="rejected", decided_at=NOW - timedelta(days=31))
    paying.pay_bonus(worker=worker, assignment=assignment, amount=Decimal("0.05"), reason="Top-up.", by=None)
    (row,) = shown(client)
    assert row["pay"] == "bonus only"
    assert row["state"].endswith("It was left empty. $0.05 as a bonus, which is paid all the same. Top-up.")


def test_older_bonuses_are_counted(client, worker, monkeypatch):
    monkeypatch.setattr(own_work, "NEWEST_BONUSES", 2)
    for number in range(5):
        paying.pay_bonus(worker=worker, amount=Decimal("1.00"), reason=f"Remark {number}", by=None)
    text = Page(client.get("/work/")).text
    assert "Remark 4" in text
    assert "Remark 2" not in text
    assert "And 3 before these." in text


def test_the_page_sums_up_what_was_earned_and_how_long_it_took(client, worker, study, monkeypatch):
    monkeypatch.setattr(wages, "ENOUGH_TO_TELL", 4)
    own(study, worker, seconds=100, status="approved", reward=Decimal("0.50"))
    own(study, worker, seconds=200)
    own(study, worker, seconds=300, status="rejected")
    given_back(study, worker, "returned")
    paying.pay_bonus(worker=worker, amount=Decimal("2.00"), reason="For your remarks.", by=None)
    paying.make_payout(by=None)
    own(study, worker, seconds=400, status="approved")
    assert facts(client) == {
        "Approved work": "$0.75",
        "Bonuses": "$2.00",
        "Waiting for approval": "$0.25 for 1 statement",
        "Rejected, not paid": "$0.25 for 1 statement",
        "Handed over to whoever pays": "$2.50",
        "Time at work": "16 minutes 40 seconds for 4 statements",
        "Pay an hour, as it stands": "$3.60 (n = 4)",  # 0.25 at the mean, 250 seconds at the median
    }


def test_time_past_the_deadline_is_no_time_at_work(worker, study):
    late = own(study, worker, seconds=7200)
    Assignment.objects.filter(pk=late.pk).update(deadline=late.accepted_at + timedelta(minutes=30))
    assert own_work.tally(worker).time == timedelta(minutes=30)


def test_a_few_statements_do_not_tell_what_the_work_pays_an_hour(client, worker, study):
    for _ in range(wages.ENOUGH_TO_TELL - 1):
        own(study, worker, seconds=100)
    assert facts(client)["Pay an hour, as it stands"] == "too few statements to tell yet (n = 9)"
    assert "What your work pays an hour is shown here from your 10th statement on." in Page(client.get("/work/")).text
    own(study, worker, seconds=100)
    assert facts(client)["Pay an hour, as it stands"] == "$9.00 (n = 10)"


def test_without_work_there_is_no_rate_and_nothing_is_missing(client, worker):
    page = Page(client.get("/work/"))
    assert "Nothing yet." in page.text
    assert "What your work pays an hour is shown here from your 10th statement on." in page.text
    assert "n =" not in page.text


def test_nothing_of_others_and_nothing_of_statements_is_shown(client, worker, study):
    own(study, worker)
    other = consenting_worker()
    own(make_hit_type(title="A study of others"), other, status="rejected", rejection_reason="Only for them.")
    paying.pay_bonus(worker=other, amount=Decimal("77.00"), reason="Only for them.", by=None)
    text = Page(client.get("/work/")).text
    assert len(shown(client)) == 1
    for secret in ("A study of others", "Only for them.", "77.00", "moon"):
        assert secret not in text


def test_twenty_five_statements_stand_on_a_page_newest_first(client, worker, study):
    for days in range(27):
        own(study, worker, at=NOW - timedelta(days=days))
    first = Page(client.get("/work/"))
    assert [link["href"] for link in first.all("a", rel="next")] == ["?page=2"]
    assert "Page 1 of 2" in first.text
    rows = shown(client)
    assert (len(rows), rows[0]["when"].split(",")[0]) == (25, TODAY)
    assert len(Page(client.get("/work/?page=2")).all("ol")[0].text) > 0
    for strange in ("0", "3", "-1", "x", "9" * 5000, "²", "%00"):
        assert client.get(f"/work/?page={strange}").status_code == 200


def test_the_page_needs_no_consent_and_no_more_than_the_link(client, study):
    worker = make_worker()
    log_in(client, worker)
    assert client.get("/work/").status_code == 200
    assert client.post("/work/").status_code == 405
    client.post("/leave/")
    assert client.get("/work/").status_code == 403


def test_a_blocked_worker_still_sees_what_they_earned(client, worker, study):
    own(study, worker, status="approved")
    worker.blocked_at, worker.blocked_reason = timezone.now(), "Ask Ada."
    worker.save()
    assert facts(client)["Approved work"] == "$0.25"


@pytest.mark.parametrize("number", [1, 20])
def test_the_page_takes_as_many_queries_for_one_statement_as_for_many(
    client, worker, study, django_assert_num_queries, number
):
    for _ in range(number):
        assignment = own(study, worker, status="approved")
        assignment.payments.create(worker=worker, kind="bonus", amount=Decimal("0.01"), reason="Top-up")
    helping.help_lines()  # read once a minute
    with django_assert_num_queries(11):
        client.get("/work/")
