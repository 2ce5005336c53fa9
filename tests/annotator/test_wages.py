"""What work pays an hour, by how long it takes; and that nothing is published below the floor."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from annotator import publishing, wages
from annotator.models import HITType
from tests.annotator.work_done import work, works
from tests.factories import consenting_worker, make_generation, make_hit, make_hit_type, make_run

pytestmark = pytest.mark.django_db

FLOORS = st.decimals("0.00", "9999.99", places=2)
TIMES = st.timedeltas(timedelta(seconds=1), timedelta(days=3))


def study(reward="0.25", floor="8.00", **fields):
    return make_hit_type(reward=Decimal(reward), wage_floor=Decimal(floor), **fields)


def test_the_default_study_pays_eight_dollars_fifty_seven_an_hour():
    wage = wages.as_of_now(make_hit_type())
    assert (wage.rate, wage.floor, wage.enough, wage.measured) == (Decimal("8.57"), Decimal("8.00"), True, False)
    assert wage.sentence == (
        "$8.57 an hour, if a statement takes 1 minute 45 seconds as expected (n = 0, too few to measure it)."
    )


def test_below_ten_submissions_the_expected_time_counts():
    hit_type = study()
    works(hit_type, seconds=200, number=9)
    wage = wages.as_of_now(hit_type)
    assert (wage.n, wage.measured, wage.time) == (9, False, timedelta(seconds=105))
    work(hit_type, seconds=200)
    wage = wages.as_of_now(hit_type)
    assert (wage.n, wage.measured, wage.time, wage.rate) == (10, True, timedelta(seconds=200), Decimal("4.50"))
    assert wage.sentence == "$4.50 an hour, by the median time of the last 10 statements, 3 minutes 20 seconds."


def test_the_time_is_the_median_of_what_was_submitted_and_not_rejected():
    hit_type, other = study(), study()
    for seconds, status in [(60, "submitted"), (100, "approved"), (120, "submitted")]:
        works(hit_type, seconds=seconds, status=status, number=4)
    works(hit_type, seconds=1, status="rejected")
    works(other, seconds=1)
    wage = wages.as_of_now(hit_type)
    assert (wage.n, wage.median) == (12, timedelta(seconds=100))


def test_the_newest_thousand_submissions_count(monkeypatch):
    monkeypatch.setattr(wages, "MEASURE", wages.MEASURE.replace("LIMIT 1000", "LIMIT 10"))
    hit_type = study()
    works(hit_type, seconds=10)
    works(hit_type, seconds=90)
    assert (wages.as_of_now(hit_type).n, wages.as_of_now(hit_type).median) == (10, timedelta(seconds=90))


def test_work_that_took_no_time_is_taken_for_a_second():
    hit_type = study()
    works(hit_type, seconds=0)
    assert wages.as_of_now(hit_type).rate == Decimal("900.00")


def test_several_studies_are_measured_in_one_query_and_then_in_none_for_a_minute(django_assert_num_queries):
    studies = [study(reward="0.30") for _ in range(3)]
    works(studies[0], seconds=90)
    with django_assert_num_queries(1):
        measured = wages.of_studies(HITType.objects.none()) | wages.of_studies(studies)
    assert [measured[hit_type.pk].n for hit_type in studies] == [10, 0, 0]
    studies[0].reward = Decimal("0.45")
    with django_assert_num_queries(0):
        assert wages.of_study(studies[0]).rate == Decimal("18.00")  # the reward is as it is now
    work(studies[0], seconds=90)
    assert (wages.of_study(studies[0]).n, wages.as_of_now(studies[0]).n) == (10, 11)
    cache.clear()
    assert wages.of_study(studies[0]).n == 11


@given(floor=FLOORS, time=TIMES)
def test_the_reward_that_reaches_a_floor_is_the_smallest_one_that_does(floor, time):
    reward = wages.reward_that_reaches(floor, time)
    assert reward == reward.quantize(wages.CENT)
    assert wages.hourly(reward, time) >= floor
    assert reward == 0 or wages.hourly(reward - wages.CENT, time) < floor


@given(reward=FLOORS, floor=FLOORS, time=TIMES)
def test_a_wage_is_enough_exactly_when_the_rate_that_is_shown_reaches_the_floor(reward, floor, time):
    wage = wages.Wage(reward=reward, floor=floor, expected=time, n=0, median=None)
    assert wage.enough == (wage.rate >= floor)


# --- The floor


def test_a_study_below_its_floor_is_refused_with_what_to_do():
    hit_type = study("0.23")
    assert wages.is_below_floor(hit_type)
    with pytest.raises(wages.PayTooLow) as refused:
        wages.refuse_below_floor(hit_type)
    assert str(refused.value) == (
        "This pays $7.88 an hour, if a statement takes 1 minute 45 seconds as expected (n = 0, too few to measure it); "
        "the wage floor is $8.00. "
        "Raise the reward to at least $0.24, or correct the expected time if a trial took less."
    )


def test_a_study_whose_work_takes_longer_than_expected_is_refused():
    hit_type = study()
    wages.refuse_below_floor(hit_type)
    works(hit_type, seconds=120)
    with pytest.raises(wages.PayTooLow, match=r"Raise the reward to at least \$0\.27, or set another wage floor\."):
        wages.refuse_below_floor(hit_type)


def test_nothing_is_published_below_the_floor():
    with pytest.raises(wages.PayTooLow):
        publishing.publish(hit_type=study("0.23"), generations=[make_generation()])


def test_a_running_study_is_held_back_below_its_floor_and_goes_on_above():
    run = make_run()
    chunk = run.chunks.get()
    make_generation(run=run, chunk=chunk, position=0)
    run.chunks.update(finished_at=timezone.now())
    hit_type = study("0.23", run=run)
    other = study(run=run)
    assert publishing.publish_new_statements() == 1
    assert (hit_type.hits.count(), other.hits.count()) == (0, 1)
    HITType.objects.filter(pk=hit_type.pk).update(reward=Decimal("0.24"))
    assert publishing.publish_new_statements() == 1


# --- A worker's own


def test_a_worker_without_work_has_no_rate():
    assert wages.of_worker(consenting_worker()) is None


def own(worker, *, reward="0.25", **fields):
    return work(None, hit=make_hit(), worker=worker, reward=Decimal(reward), **fields)


def test_a_workers_rate_is_their_mean_pay_over_their_median_time():
    worker = consenting_worker()
    own(worker, seconds=60, reward="0.20")
    own(worker, seconds=100, reward="0.40", status="approved")
    own(worker, seconds=900, reward="0.30")
    works(study(), seconds=1)  # others'
    wage = wages.of_worker(worker)
    assert (wage.rate, wage.n, wage.time_in_words) == (Decimal("10.80"), 3, "1 minute 40 seconds")


def test_rejected_work_counts_as_unpaid_and_a_top_up_as_paid():
    worker = consenting_worker()
    own(worker, seconds=100, status="rejected", reward="0.50")
    topped_up = own(worker, seconds=100, reward="0.25")
    topped_up.payments.create(worker=worker, kind="bonus", amount=Decimal("0.05"), reason="Top-up")
    worker.payments.create(kind="bonus", amount=Decimal("9.00"), reason="A gift, which is no pay for a statement")
    wage = wages.of_worker(worker)
    assert (wage.rate, wage.n) == (Decimal("5.40"), 2)
