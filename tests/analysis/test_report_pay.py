"""What was paid, is owed and is promised, and what an hour brings: amounts and times that are known by hand."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis.exports.workers import hashed_worker
from analysis.reports import pay
from analysis.reports.catalogue import REPORTS
from analysis.reports.filters import filters_from
from analysis.reports.frame import Estimate, Kind, Undefined, pack, unpack
from annotator import paying
from annotator.models import HIT, Annotation, Assignment
from tests.annotator.work_done import work, works
from tests.factories import answers, consenting_worker, make_assignment, make_hit, make_hit_type

pytestmark = pytest.mark.django_db


def made(**asked):
    return pay.make(filters_from(asked, REPORTS["pay"]))


def section(key, **asked):
    return next(section for section in made(**asked).sections if section.key == key)


def row(section, **cells):
    [found] = [row for row in section.table.rows if cells.items() <= row.items()]
    return found


def amounts(**asked):
    return {row["what"]: row["amount"] for row in section("money", **asked).table.rows}


def study(title="Weather", reward="0.25", floor="8.00", **fields):
    return make_hit_type(title=title, reward=Decimal(reward), wage_floor=Decimal(floor), **fields)


def approve(assignment):
    """As reviewing does: the database enters it in the ledger."""
    Assignment.objects.filter(pk=assignment.pk).update(status="approved", decided_at=timezone.now())


def fill(hit, **fields):
    """One of its places, by work that counts."""
    done = work(hit.hit_type, seconds=60, hit=hit, **fields)
    Assignment.objects.filter(pk=done.pk).update(holds_place=True)


def test_without_a_study_it_says_so():
    make_hit_type(imported=True, reward=0)
    [only] = made().sections
    assert only.missing.startswith("There is no study whose work is paid here.")


def test_money_is_paid_owed_waiting_or_promised():
    weather = study()
    hit = make_hit(hit_type=weather, max_assignments=5)
    ada, bob, eve = consenting_worker(), consenting_worker(), consenting_worker()
    first = work(weather, seconds=60, hit=hit, worker=ada)
    approve(first)
    paying.make_payout(by=None)
    second = work(weather, seconds=60, hit=make_hit(hit_type=weather, max_assignments=1), worker=ada)
    approve(second)
    paying.pay_bonus(worker=ada, amount=Decimal("1.10"), reason="For your remarks.", by=None)
    fill(hit, worker=bob)  # waits for review
    make_assignment(hit, eve)  # under way
    HIT.objects.filter(pk=second.hit_id).update(expires_at=timezone.now() - timedelta(days=1))
    hit.refresh_from_db()
    assert hit.free_places == 3
    assert amounts() == {
        "Entered in the ledger: approved work": 0.50,
        "Entered in the ledger: qualification test": 0.0,
        "Entered in the ledger: bonus": 1.10,
        pay.PAID: 0.25,
        pay.OWED: 1.35,
        pay.WAITING: 0.25,
        pay.PROMISED: 1.00,  # one under way and three places free
    }
    assert section("money").says.startswith("$0.25 were paid and $1.35 are owed; work for $0.25 waits for review,")


def test_a_study_alone_has_its_own_ledger_without_gifts():
    weather, other = study(), study("Sport")
    approve(work(weather, seconds=60))
    done = work(other, seconds=60)
    approve(done)
    paying.pay_bonus(worker=done.worker, amount=Decimal(2), reason="For good work.", by=None)
    paying.pay_bonus(worker=done.worker, amount=Decimal(3), reason="Top-up.", by=None, assignment=done)
    assert amounts(study=[str(other.pk)])[pay.OWED] == 3.25
    assert amounts(study=[str(weather.pk)])[pay.OWED] == 0.25
    assert amounts()[pay.OWED] == 5.50
    assert section("money").notes[0].endswith("Bonuses and qualification tests that belong to no study are counted.")
    assert len(section("studies", study=[str(other.pk)]).table.rows) == 1


def test_hourly_pay_is_mean_pay_over_median_time_and_a_study_below_its_floor_is_named():
    slow = study(reward="0.25")
    for seconds in (100, 150, 200, 200, 200, 200, 250, 300, 310, 320):
        work(slow, seconds=seconds)
    quick = study("Sport", reward="0.30")
    works(quick, seconds=90, number=3)
    found = section("studies")
    assert found.says == "1 of 2 studies pays less an hour than the floor."
    assert section("studies", study=[str(slow.pk)]).says == "1 of 1 study pays less an hour than the floor."
    slowly = row(found, study="Weather")
    # Of 10 values the interval of the median is between the 2nd and the 9th.
    assert slowly["median"] == Estimate(200.0, 150.0, 310.0)
    assert slowly["paid_an_hour"].value == pytest.approx(4.50)
    assert slowly["paid_an_hour"].low == pytest.approx(900 / 310)
    assert slowly["paid_an_hour"].high == pytest.approx(6.00)
    assert (slowly["pays_an_hour"], slowly["floor"], slowly["floor_is"]) == (4.50, 8.00, pay.BELOW)
    quickly = row(found, study="Sport")
    assert quickly["paid_an_hour"] == Estimate(12.0)
    assert quickly["pays_an_hour"] == 10.28  # by the 105 seconds that are expected
    assert quickly["floor_is"] == pay.REACHED
    assert found.n == {"studies": 2, "pieces of work": 13}


def test_rejected_work_pays_its_bonuses_and_bonuses_raise_the_hour():
    weather = study(reward="0.20")
    work(weather, seconds=72, status="rejected")
    done = work(weather, seconds=72)
    paying.pay_bonus(worker=done.worker, amount=Decimal("0.60"), reason="Top-up.", by=None, assignment=done)
    # 0.80 for two pieces of 72 seconds
    assert row(section("studies"), study="Weather")["paid_an_hour"].value == pytest.approx(20.0)


def test_an_annotator_is_a_hash_with_work_and_earnings():
    weather = study(reward="0.25")
    ada = consenting_worker()
    for status in ("submitted", "submitted", "rejected"):
        work(weather, seconds=90, worker=ada, hit=make_hit(hit_type=weather), status=status)
    approve(ada.assignments.filter(status="submitted").first())
    paying.pay_bonus(worker=ada, amount=Decimal(5), reason="For your remarks.", by=None)
    found = section("annotators")
    [only] = found.table.rows
    assert only["hash"] == hashed_worker(ada.pk)
    assert only["hash"].startswith(only["annotator"])
    assert ada.pseudonym not in str(found)
    assert [only[key] for key in ("submitted", "approved", "rejected", "waiting")] == [3, 1, 1, 1]
    assert only["earned"] == 5.25
    assert only["median"] == Estimate(90.0)
    assert only["hourly"].value == pytest.approx(0.50 / 3 * 40)
    assert found.says.startswith("1 annotator earned $5.25 so far.")


def test_a_study_without_work_says_so_and_nothing_is_0_an_hour():
    study()
    found = row(section("studies"), study="Weather")
    assert found["median"] == found["paid_an_hour"] == Undefined("Nothing was submitted.")
    assert found["floor_is"] == pay.REACHED
    assert section("annotators").missing == "Nobody has submitted anything yet."
    assert section("progress").says == "No statement was published yet."
    assert section("review").says == "Nothing waits for review."
    assert isinstance(section("review").table.rows[0]["share"], Undefined)


def test_a_piece_of_work_that_took_no_time_pays_no_infinite_rate():
    work(study(reward="0.01"), seconds=0)
    assert row(section("studies"), study="Weather")["paid_an_hour"].value == pytest.approx(36.0)


def test_how_far_a_study_is_and_how_long_it_takes_at_this_pace():
    weather = study()
    hit = make_hit(hit_type=weather, max_assignments=16)
    now = timezone.now()
    for _ in range(4):
        fill(hit, at=now - timedelta(hours=2))
    closed = make_hit(hit_type=weather, max_assignments=3)
    HIT.objects.filter(pk=closed.pk).update(expires_at=now - timedelta(hours=1))
    found = row(section("progress"), study="Weather")
    assert [found[key] for key in ("wanted", "filled", "taken", "free", "closed", "today")] == [19, 4, 0, 12, 3, 4]
    assert found["state"] == "running"
    assert found["last"] == f"{now - timedelta(hours=2):%Y-%m-%d %H:%M}"
    assert found["left"] == pytest.approx(timedelta(hours=6).total_seconds(), rel=0.01)  # 12 places at 2 an hour
    assert section("progress").says == "4 of 19 places are filled."


def test_without_a_pace_it_says_why():
    weather = study()
    make_hit(hit_type=weather)
    assert isinstance(row(section("progress"), study="Weather")["left"], Undefined)


def test_flagged_work_that_waits_is_counted():
    weather = study()
    cache.clear()
    for seconds in (5, 100):
        done = work(weather, seconds=seconds)
        Annotation.objects.create(assignment=done, **answers())
    found = section("review")
    assert row(found, what="Pieces of work")["flagged"] == 1  # too fast
    assert row(found, what="Annotators")["flagged"] == 1
    assert found.says == "Of the 2 oldest pieces of work that wait, 1 asks for a second look."


def test_imported_work_is_left_out():
    elsewhere = make_hit_type(imported=True, reward=0)
    works(elsewhere, seconds=60, number=2, status="approved")
    study()
    assert section("studies").n["pieces of work"] == 0
    assert section("annotators").missing


@pytest.mark.parametrize(
    ("n", "low", "high"), [(5, None, None), (6, 1, 6), (10, 2, 9), (20, 6, 15), (25, 8, 18), (100, 40, 61)]
)
def test_the_interval_of_a_median_is_between_the_ranks_of_the_tables(n, low, high):
    """The ranks are those of Conover's and Hahn and Meeker's tables."""
    found = pay.median_cell(range(1, n + 1))
    assert (found.value, found.low, found.high) == ((n + 1) / 2, low, high)


def test_it_can_be_stored_and_money_is_money():
    work(study(), seconds=60)
    report = made()
    assert unpack(pack(report)) == report
    kinds = {column.key: column.kind for section in report.sections for column in section.table.columns}
    assert {kinds[key] for key in ("amount", "paid_an_hour", "reward", "floor", "earned", "hourly")} == {Kind.MONEY}


def test_it_reads_work_in_as_many_queries_for_much_as_for_little(django_assert_num_queries):
    weather = study()
    works(weather, seconds=60, number=2)
    cache.clear()
    with CaptureQueriesContext(connection) as few:
        made()
    works(weather, seconds=60, number=20)
    cache.clear()
    with django_assert_num_queries(len(few)):
        made()
