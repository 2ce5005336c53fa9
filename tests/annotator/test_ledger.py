"""The ledger: bonuses, approvals at the same moment, and its pages. What the database refuses is tested elsewhere."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotator import paying, reviewing
from annotator.models import Payment
from tests.annotator.threads import at_once
from tests.annotator.work_done import work
from tests.factories import consenting_worker, make_hit_type, make_worker

pytestmark = pytest.mark.django_db

LEDGER, ADD = "/admin/annotator/payment/", "/admin/annotator/payment/add/"


def bonus(worker=None, **changes):
    values = {"amount": Decimal("1.50"), "reason": "For your remarks.", "by": None} | changes
    return paying.pay_bonus(worker=worker or make_worker(), **values)


def test_a_bonus_is_a_row_with_who_gave_it_and_why(admin_user):
    payment = bonus(reason="  For your remarks.\n", by=admin_user)
    payment.refresh_from_db()
    assert (payment.kind, str(payment.amount), payment.reason) == ("bonus", "1.50", "For your remarks.")
    assert (payment.created_by, payment.assignment) == (admin_user, None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"amount": Decimal("0.00")}, "A bonus is more than 0."),
        ({"amount": Decimal("-1")}, "A bonus is more than 0."),
        ({"amount": Decimal("0.001")}, "Ensure that there are no more than 2 decimal places."),
        ({"amount": Decimal("1000000")}, "Ensure that there are no more than 6 digits before the decimal point."),
        ({"reason": " \n"}, "Say what the bonus is for: the worker reads the reason."),
    ],
)
def test_a_bonus_that_cannot_be_is_refused_in_words(changes, said):
    with pytest.raises(ValidationError) as refused:
        bonus(**changes)
    assert said in refused.value.messages
    assert not Payment.objects.exists()


def test_a_bonus_of_nothing_is_none_for_a_statement_either():
    assignment = work(make_hit_type(), seconds=60)
    with pytest.raises(ValidationError, match=r"A bonus is more than 0\."):
        bonus(assignment.worker, amount=Decimal(0), assignment=assignment)


def test_a_bonus_for_a_statement_goes_to_whoever_judged_it():
    assignment = work(make_hit_type(), seconds=60)
    with pytest.raises(ValidationError, match=r"That statement was judged by somebody else\."):
        bonus(make_worker(), assignment=assignment)
    assert bonus(assignment.worker, assignment=assignment).assignment == assignment


def test_a_second_click_is_no_second_bonus():
    worker = make_worker()
    bonus(worker)
    with pytest.raises(paying.BonusRepeated, match=r"The same bonus was added less than a minute ago"):
        bonus(worker, reason=" For your remarks.")
    bonus(worker, reason="For your remarks, once more."), bonus(worker, amount=Decimal("1.51")), bonus(make_worker())
    assert Payment.objects.count() == 4


def test_the_same_bonus_can_be_given_again_later(monkeypatch):
    worker = make_worker()
    bonus(worker)
    monkeypatch.setattr(paying, "SAME_CLICK", timedelta(0))
    bonus(worker)
    assert Payment.objects.filter(worker=worker).count() == 2


@pytest.mark.django_db(transaction=True)
def test_clicks_at_the_same_moment_add_one_bonus():
    worker = make_worker()
    outcomes = at_once(*[lambda: bonus(worker)] * 5)
    assert sum(isinstance(outcome, paying.BonusRepeated) for outcome in outcomes) == 4
    assert Payment.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_approvals_at_the_same_moment_owe_once(django_user_model):
    ada, bob = (django_user_model.objects.create(username=name) for name in ("ada", "bob"))
    pieces = [work(make_hit_type(reward=Decimal("0.30")), seconds=60) for _ in range(4)]
    ids = [piece.pk for piece in pieces]
    at_once(*[lambda by=by: reviewing.approve(ids=ids, by=by) for by in (ada, bob, None, ada)])
    rows = Payment.objects.order_by("assignment_id")
    assert [(row.assignment_id, str(row.amount)) for row in rows] == [(pk, "0.30") for pk in ids]


def test_approving_after_a_rejection_owes_once_and_names_who_did(admin_user):
    rejected = work(make_hit_type(), seconds=60, status="rejected")
    for _ in range(2):
        reviewing.approve_after_all(ids=[rejected.pk], by=admin_user)
    assert Payment.objects.get().created_by == admin_user


# --- Its pages


def messages_of(response):
    return [str(message) for message in response.context["messages"]]


def posted(to, **changes):
    return {"worker": to.pk, "amount": "1.50", "reason": "For your remarks."} | changes


def test_a_bonus_is_added_by_a_form(admin_client, admin_user):
    worker = make_worker()
    response = admin_client.post(ADD, posted(worker), follow=True)
    assert messages_of(response) == [f"A bonus of $1.50 to {worker} is in the ledger."]
    payment = Payment.objects.get()
    assert (payment.worker, payment.kind, payment.created_by) == (worker, "bonus", admin_user)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"amount": "0"}, "A bonus is more than 0."),
        ({"amount": "-3"}, "A bonus is more than 0."),
        ({"amount": "x"}, "Enter a number."),
        ({"amount": "NaN"}, "Enter a number."),
        ({"reason": ""}, "This field is required."),
        ({"reason": " \n"}, "This field is required."),
        ({"reason": "\x00"}, "Null characters are not allowed."),
        ({"worker": "0"}, "Select a valid choice. That choice is not one of the available choices."),
    ],
)
def test_a_bonus_that_cannot_be_is_refused_by_the_form(admin_client, changes, said):
    response = admin_client.post(ADD, posted(make_worker(), **changes))
    assert said in str(response.context["errors"])
    assert not Payment.objects.exists()


def test_sending_the_form_twice_adds_one_bonus(admin_client):
    worker = make_worker()
    admin_client.post(ADD, posted(worker))
    response = admin_client.post(ADD, posted(worker))
    assert "The same bonus was added less than a minute ago and is in the ledger." in response.content.decode()
    assert Payment.objects.count() == 1


def test_the_form_cannot_forge_other_kinds_of_rows(admin_client):
    assignment = work(make_hit_type(), seconds=60)
    admin_client.post(ADD, posted(assignment.worker, kind="assignment", assignment=assignment.pk, created_by=""))
    payment = Payment.objects.get()
    assert (payment.kind, payment.assignment, payment.created_by is None) == ("bonus", None, False)


def test_a_row_is_shown_and_neither_changed_nor_deleted(admin_client):
    payment = bonus()
    address = f"{LEDGER}{payment.pk}/change/"
    assert "For your remarks." in admin_client.get(address).content.decode()
    assert admin_client.post(address, posted(payment.worker, amount="9")).status_code == 403
    assert admin_client.post(f"{LEDGER}{payment.pk}/delete/", {"post": "yes"}).status_code == 403
    assert str(Payment.objects.get().amount) == "1.50"


def test_the_ledger_says_what_its_rows_come_to_as_they_are_filtered(admin_client):
    ada, bob = make_worker(pay_reference="P-ada"), make_worker()
    bonus(ada), bonus(bob, amount=Decimal("2000"))
    paying.make_payout(by=None)
    bonus(ada, amount=Decimal("0.25"))

    def totals(query=""):
        context = admin_client.get(LEDGER + query).context
        return context["cl"].result_count, str(context["total"]), str(context["unpaid"])

    assert totals() == (3, "2001.75", "0.25")
    assert totals("?q=P-ada") == (2, "1.75", "0.25")
    assert totals(f"?q={bob}") == (1, "2000.00", "0")
    assert totals("?paid=no") == (1, "0.25", "0.25")
    assert totals("?paid=yes") == (2, "2001.50", "0")
    assert totals("?paid=perhaps") == (3, "2001.75", "0.25")
    assert totals("?kind__exact=assignment") == (0, "0", "0")
    assert "<strong>$2,001.75</strong> in all" in admin_client.get(LEDGER).content.decode()


def test_the_ledger_takes_as_many_queries_for_few_rows_as_for_many(admin_client):
    def queries():
        with CaptureQueriesContext(connection) as context:
            assert admin_client.get(LEDGER).status_code == 200
        return len(context)

    def add_rows():
        for _ in range(3):
            work(make_hit_type(), seconds=60, status="approved", worker=consenting_worker(), at=timezone.now())

    add_rows()
    few = queries()
    add_rows(), add_rows()
    assert queries() == few
