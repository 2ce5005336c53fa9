"""Payouts: each row of the ledger in exactly one of them, and a file that whoever pays can use."""

import csv
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from hypothesis import example, given
from hypothesis import strategies as st

from annotator import paying, payout_files
from annotator.models import PaidOut, Panel, Payment, Payout, Qualification
from tests.annotator.threads import at_once, in_the_background, stored_at_the_end, wait_until_somebody_waits_for_a_lock
from tests.annotator.work_done import work
from tests.factories import consenting_worker, make_hit, make_hit_type, make_worker

pytestmark = pytest.mark.django_db

PAYOUTS, MAKE = "/admin/annotator/payout/", "/admin/annotator/payout/make/"


def bonus(worker=None, amount="1.00", reason="For your remarks."):
    return Payment.objects.create(worker=worker or make_worker(), kind="bonus", amount=Decimal(amount), reason=reason)


def rows_of(payout):
    return list(csv.DictReader("".join(payout_files.csv_lines(payout)).splitlines()))


def test_a_payout_takes_every_row_that_is_in_none_yet(admin_user):
    old = [bonus(), bonus()]
    first = paying.make_payout(by=admin_user)
    new = bonus()
    second = paying.make_payout(by=None)
    assert (first.created_by, set(first.payments.all()), set(second.payments.all())) == (admin_user, set(old), {new})
    assert not Payment.objects.unpaid().exists()


def test_a_payout_of_nothing_is_refused():
    with pytest.raises(
        paying.NothingToPay, match=r"Nothing is unpaid: every row of the ledger is in a payout already."
    ):
        paying.make_payout(by=None)
    assert not Payout.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_clicks_at_the_same_moment_make_one_payout():
    for _ in range(3):
        bonus()
    outcomes = at_once(*[lambda: paying.make_payout(by=None)] * 5)
    assert sum(isinstance(outcome, paying.NothingToPay) for outcome in outcomes) == 4
    assert (Payout.objects.count(), PaidOut.objects.count()) == (1, 3)


@pytest.mark.django_db(transaction=True)
def test_a_row_that_is_written_meanwhile_is_in_the_next_payout_if_not_in_this_one():
    bonus()
    worker = make_worker()
    with stored_at_the_end(lambda: paying.make_payout(by=None)):
        late = bonus(worker)
        waiting = in_the_background(lambda: paying.make_payout(by=None))
        wait_until_somebody_waits_for_a_lock()
        assert Payout.objects.count() == 0  # reading goes on
    assert list(waiting.result().payments.all()) == [late]


# --- The file


def test_the_file_has_a_row_a_worker_with_what_the_payer_knows_them_by():
    panel = Panel.objects.create(name="Spring panel")
    ada, bob = consenting_worker(pay_reference="P-1", panel=panel), consenting_worker()
    for note in ("sent to Ada", "", "Ada, new link", "sent to Ada"):
        ada.invitations.create(note=note)
    make_worker().invitations.create(note="somebody without pay")
    test = make_hit_type(grants=Qualification.objects.create(name="reads English"), pass_mark=80, reward="0.10")
    study = make_hit_type(reward=Decimal("0.30"))
    for hit_type in (study, study, test):
        work(hit_type, seconds=60, status="approved", worker=ada, hit=make_hit(hit_type=hit_type))
    work(study, seconds=60, status="submitted", worker=ada, hit=make_hit(hit_type=study))  # not owed yet
    bonus(ada, "2.05"), bonus(bob, "0.50")
    payout = paying.make_payout(by=None)
    day = f"{payout.created_at or Payout.objects.get().created_at:%Y-%m-%d}"
    known = {"payout": str(payout.pk), "currency": "USD", "first_day": day, "last_day": day}
    of_ada = {
        "worker": ada.pseudonym,
        "pay_reference": "P-1",
        "panel": "Spring panel",
        "invitation_notes": "sent to Ada; Ada, new link",
        "amount": "2.75",
        "assignments": "2",
        "tests": "1",
        "bonuses": "1",
    }
    of_bob = {
        "worker": bob.pseudonym,
        "pay_reference": "",
        "panel": "",
        "invitation_notes": "",
        "amount": "0.50",
        "assignments": "0",
        "tests": "0",
        "bonuses": "1",
    }
    assert rows_of(payout) == sorted([of_ada | known, of_bob | known], key=lambda row: row["worker"])


def test_the_file_stays_the_same_when_more_is_owed():
    worker = make_worker()
    bonus(worker), bonus()
    payout = paying.make_payout(by=None)
    before = list(payout_files.csv_lines(payout))
    bonus(worker)
    paying.make_payout(by=None)
    assert list(payout_files.csv_lines(payout)) == before


def test_the_file_takes_as_many_queries_for_one_worker_as_for_many(django_assert_num_queries):
    for _ in range(3):
        bonus()
    payout = paying.make_payout(by=None)
    with django_assert_num_queries(2):
        list(payout_files.csv_lines(payout))


def test_what_people_typed_is_no_formula_and_no_other_cell():
    worker = make_worker(pay_reference='=HYPERLINK("http://example.org")')
    worker.invitations.create(note='@SUM(A1),"x"\n-1')
    bonus(worker)
    (row,) = csv.DictReader(payout_files.csv_lines(paying.make_payout(by=None)))
    assert row["pay_reference"] == '\'=HYPERLINK("http://example.org")'
    assert row["invitation_notes"] == '\'@SUM(A1),"x"\n-1'


@given(st.text())
@example(" =1+1")
@example("\t=1+1")
def test_no_cell_begins_as_a_formula(text):
    cell = payout_files.harmless(text)
    assert cell.removeprefix("'") == text.removeprefix("'")
    assert not cell.strip().startswith(tuple("=+-@＝＋－＠"))


# --- Its pages


def messages_of(response):
    return [str(message) for message in response.context["messages"]]


def test_the_list_says_what_is_unpaid_and_makes_the_payout(admin_client, admin_user):
    worker = make_worker()
    bonus(worker, "1200.00"), bonus(worker), bonus()
    page = admin_client.get(PAYOUTS).content.decode()
    assert "Make a payout of everything unpaid ($1,202.00 to 2 people)" in page
    response = admin_client.post(MAKE, follow=True)
    payout = Payout.objects.get()
    assert payout.created_by == admin_user
    assert messages_of(response) == [
        f"This is payout {payout.pk}. Fetch payout-{payout.pk}.csv and hand it to whoever pays."
    ]
    page = response.content.decode()
    assert "1,202.00" in page
    assert f'href="/admin/annotator/payout/{payout.pk}/file/"' in page
    page = admin_client.get(PAYOUTS).content.decode()
    assert "Nothing is unpaid" in page
    assert "Make a payout" not in page


def test_an_empty_list_says_that_nothing_was_paid_out_yet(admin_client):
    page = admin_client.get(PAYOUTS).content.decode()
    assert "Nothing was paid out yet. As soon as something is owed, a button above makes a payout of it." in page
    assert "reset your filters" not in page


def test_a_second_press_says_that_nothing_is_unpaid(admin_client):
    bonus()
    admin_client.post(MAKE)
    said = messages_of(admin_client.post(MAKE, follow=True))[-1]
    assert said == "Nothing is unpaid: every row of the ledger is in a payout already."
    assert Payout.objects.count() == 1


def test_the_file_is_fetched_from_the_page(admin_client):
    bonus()
    payout = paying.make_payout(by=None)
    response = admin_client.get(f"{PAYOUTS}{payout.pk}/file/")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"] == f'attachment; filename="payout-{payout.pk}.csv"'
    assert b"".join(response).decode() == "".join(payout_files.csv_lines(payout))
    assert admin_client.get(f"{PAYOUTS}{payout.pk + 1}/file/").status_code == 404


def test_the_rows_of_a_payout_are_found_in_the_ledger(admin_client):
    inside, _ = bonus(), paying.make_payout(by=None)
    bonus()
    payout = Payout.objects.get()
    ledger = admin_client.get(f"/admin/annotator/payment/?paid={payout.pk}")
    assert list(ledger.context["cl"].result_list) == [inside]
    for none in ("9" * 30, payout.pk + 1):
        assert not admin_client.get(f"/admin/annotator/payment/?paid={none}").context["cl"].result_list


def test_who_has_no_part_in_paying_gets_nothing_of_it(client):
    bonus()
    payout = paying.make_payout(by=None)
    bonus()
    client.force_login(User.objects.create(username="eve", is_staff=True))
    assert client.get(f"{PAYOUTS}{payout.pk}/file/").status_code == 403
    assert client.post(MAKE).status_code == 403
    assert client.get(MAKE).status_code == 405
    assert Payout.objects.count() == 1
