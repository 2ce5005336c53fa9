"""Topping a study up to its wage floor: exact to the cent, once, whoever clicks and how often."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, Sum
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotator import paying, reviewing, wages
from annotator.models import Assignment, HITType, Payment, Worker
from tests.annotator.threads import in_the_background, stored_at_the_end, wait_until_somebody_waits_for_a_lock
from tests.annotator.work_done import work, work_of_many, works
from tests.factories import consenting_worker, make_assignment, make_hit, make_hit_type

pytestmark = pytest.mark.django_db

CENTS = st.decimals("0.00", "1.00", places=2)


@pytest.fixture
def ada():
    return User.objects.create(username="ada")


def slow_study(**fields):
    """A study of $0.25 whose ten statements took four minutes each, so that the floor of $8.00 takes $0.54."""
    hit_type = make_hit_type(**fields)
    return hit_type, works(hit_type, seconds=240)


def top_up(hit_type, by=None, **options):
    return paying.top_up(hit_type=hit_type, by=by, **options)


def bonuses(assignment):
    return [str(payment.amount) for payment in assignment.payments.filter(kind="bonus")]


def reward_of(hit_type):
    return HITType.objects.values_list("reward", flat=True).get(pk=hit_type.pk)


def test_a_top_up_raises_the_reward_and_pays_the_difference(ada):
    hit_type, done = slow_study()
    announced = paying.what_a_top_up_takes(hit_type)
    assert announced == paying.TopUp(Decimal("0.54"), Decimal("0.54"), True, 10, Decimal("2.90"))
    assert top_up(hit_type, ada) == announced
    assert reward_of(hit_type) == Decimal("0.54")
    payment = done[0].payments.get()
    assert (payment.worker, payment.kind, str(payment.amount)) == (done[0].worker, "bonus", "0.29")
    assert (payment.reason, payment.created_by) == (
        "Top-up to $0.54 a statement, so that the work pays $8.00 an hour.",
        ada,
    )
    hit_type.refresh_from_db()
    assert not paying.what_a_top_up_takes(hit_type).is_needed


def test_a_study_that_pays_enough_needs_no_top_up():
    hit_type = make_hit_type()
    works(hit_type, seconds=60)
    done = top_up(hit_type)
    assert (done.is_needed, done.reward, Payment.objects.count()) == (False, Decimal("0.25"), 0)


def test_a_study_without_work_has_its_reward_raised_by_the_expected_time():
    hit_type = make_hit_type(expected_time=timedelta(minutes=4))
    done = top_up(hit_type)
    assert (done.reward, done.bonuses, done.total) == (Decimal("0.54"), 0, Decimal(0))
    assert reward_of(hit_type) == Decimal("0.54")


def test_the_second_click_pays_nothing():
    hit_type, _ = slow_study()
    top_up(hit_type)
    assert not top_up(hit_type).is_needed
    assert (Payment.objects.count(), reward_of(hit_type)) == (10, Decimal("0.54"))


def test_earlier_top_ups_of_a_statement_are_subtracted():
    hit_type, done = slow_study()
    top_up(hit_type)
    works(hit_type, seconds=480, number=30)
    assert top_up(hit_type).needed == Decimal("1.07")
    assert bonuses(done[0]) == ["0.53", "0.29"]  # the newest first: 0.25 + 0.29 + 0.53


def test_what_else_was_paid_for_a_statement_counts_and_a_gift_does_not(ada):
    hit_type, (first, second, third, *_) = slow_study()
    pay = {"amount": Decimal("0.20"), "reason": "For the long text.", "by": ada}
    paying.pay_bonus(worker=first.worker, assignment=first, **pay)
    paying.pay_bonus(worker=second.worker, **pay)
    paying.pay_bonus(worker=third.worker, assignment=third, **pay | {"amount": Decimal("2.00")})
    top_up(hit_type)
    assert (bonuses(first), bonuses(second), bonuses(third)) == (["0.09", "0.20"], ["0.29"], ["2.00"])


def test_rejected_and_open_work_gets_none_until_it_is_submitted_or_approved_after_all(ada):
    hit_type, _ = slow_study()
    rejected = work(hit_type, seconds=240, status="rejected")
    taken = make_assignment(make_hit(hit_type=hit_type))
    top_up(hit_type)
    assert (bonuses(rejected), bonuses(taken)) == ([], [])
    reviewing.approve_after_all(ids=[rejected.pk], by=ada)
    Assignment.objects.filter(pk=taken.pk).update(status="submitted", submitted_at=taken.accepted_at)
    hit_type.refresh_from_db()
    assert paying.what_a_top_up_takes(hit_type) == paying.TopUp(
        Decimal("0.54"), Decimal("0.54"), False, 2, Decimal("0.58")
    )
    top_up(hit_type)
    assert (bonuses(rejected), bonuses(taken)) == (["0.29"], ["0.29"])


def test_work_done_at_a_lower_reward_is_topped_up_though_the_reward_was_raised_by_hand():
    hit_type, done = slow_study()
    HITType.objects.filter(pk=hit_type.pk).update(reward=Decimal("0.60"))
    done_since = work(hit_type, seconds=240, reward=Decimal("0.60"))
    assert top_up(hit_type).raises_reward is False
    assert (bonuses(done[0]), bonuses(done_since), reward_of(hit_type)) == (["0.29"], [], Decimal("0.60"))


def test_what_was_not_agreed_to_is_not_paid():
    hit_type, _ = slow_study()
    agreed = paying.what_a_top_up_takes(hit_type).needed
    works(hit_type, seconds=300, number=30)
    with pytest.raises(paying.CannotTopUp) as refused:
        top_up(hit_type, agreed=agreed)
    assert str(refused.value) == (
        "Nothing was paid: the working time has changed since you opened the page. A statement now needs $0.67, "
        "by the median time of the last 40 statements, 5 minutes. Look at the new figures and confirm them."
    )
    assert (Payment.objects.count(), reward_of(hit_type)) == (0, Decimal("0.25"))
    assert top_up(hit_type, agreed=Decimal("0.67")).bonuses == 40


def test_a_reward_beyond_what_can_be_paid_is_refused():
    hit_type = make_hit_type(expected_time=timedelta(days=60))
    with pytest.raises(paying.CannotTopUp, match=r"It would take a reward of \$11,520\.00, which is more than"):
        top_up(hit_type)


@pytest.fixture
def crowd(db):
    """Twenty-six workers, and a study of one statement."""
    workers = [consenting_worker() for _ in range(26)]
    return list(
        Worker.objects.prefetch_related("consents").filter(pk__in=[worker.pk for worker in workers])
    ), make_hit()


def everybodys_pay():
    """What each assignment was promised and given besides."""
    extra = Sum("payments__amount", filter=Q(payments__kind="bonus"), default=Decimal(0))
    return {one.pk: one.reward + one.extra for one in Assignment.objects.annotate(extra=extra)}


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    floor=st.decimals("0.00", "30.00", places=2),
    reward=CENTS,
    rounds=st.lists(st.lists(st.tuples(CENTS, st.integers(1, 900)), min_size=5, max_size=13), min_size=1, max_size=2),
)
def test_afterwards_everybody_has_what_the_floor_takes_and_nobody_more(crowd, floor, reward, rounds):
    workers, hit = crowd
    with transaction.atomic():
        HITType.objects.update(wage_floor=floor, reward=reward)
        free = iter(workers)
        for done in rounds:
            work_of_many(hit, [(next(free), promised, seconds) for promised, seconds in done])
            before = everybodys_pay()
            hit_type = HITType.objects.get()
            needed = wages.as_of_now(hit_type).reward_needed
            announced, made = paying.what_a_top_up_takes(hit_type), top_up(hit_type)
            assert announced == made
            assert made.reward == reward_of(hit_type) >= needed
            after = everybodys_pay()
            assert after == {pk: max(needed, paid) for pk, paid in before.items()}
            assert made.total == sum(after.values()) - sum(before.values())
            assert not top_up(hit_type).is_needed
        transaction.set_rollback(True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("raised_by_hand", [False, True])
def test_clicks_at_the_same_moment_pay_once(raised_by_hand):
    hit_type, _ = slow_study()
    if raised_by_hand:
        HITType.objects.filter(pk=hit_type.pk).update(reward=Decimal("0.54"))
    with stored_at_the_end(lambda: top_up(hit_type)) as first:
        second = in_the_background(lambda: top_up(hit_type))
        wait_until_somebody_waits_for_a_lock()
    assert (first.result().bonuses, second.result().bonuses) == (10, 0)
    assert Payment.objects.total() == Decimal("2.90")


# --- The study's page


def page_of(client, hit_type):
    return client.get(f"/admin/annotator/hittype/{hit_type.pk}/change/").content.decode()


def messages_of(response):
    return [str(message) for message in response.context["messages"]]


def press(client, hit_type, **posted):
    return client.post(f"/admin/annotator/hittype/{hit_type.pk}/top-up/", posted, follow=True)


def test_the_page_of_a_study_says_what_a_top_up_costs_and_makes_it(admin_client, admin_user):
    hit_type, _ = slow_study()
    page = page_of(admin_client, hit_type)
    assert "<strong>10 bonuses, $2.90 in all</strong>" in page
    assert "raises the reward from $0.25 to <strong>$0.54</strong> a HIT" in page
    assert '<input type="hidden" name="agreed" value="0.54">' in page
    response = press(admin_client, hit_type, agreed="0.54")
    said = "The reward is $0.54 from now on; 10 bonuses, $2.90 in all, went to the ledger for work done before."
    assert messages_of(response) == [said]
    assert Payment.objects.first().created_by == admin_user
    assert "Top up for" not in page_of(admin_client, hit_type)
    history = admin_client.get(f"/admin/annotator/hittype/{hit_type.pk}/history/").content.decode()
    assert said in history


def test_a_second_press_says_that_nothing_was_changed(admin_client):
    hit_type, _ = slow_study()
    press(admin_client, hit_type, agreed="0.54")
    assert messages_of(press(admin_client, hit_type, agreed="0.54")) == [
        "Nothing was changed: the study needs no top-up."
    ]


@pytest.mark.parametrize(
    ("agreed", "said"),
    [
        ("0.50", "Nothing was paid: the working time has changed since you opened the page."),
        ("sNaN", "What you confirmed cannot be read."),
        ("x\x00", "What you confirmed cannot be read."),
    ],
)
def test_a_press_on_other_figures_pays_nothing(admin_client, agreed, said):
    hit_type, _ = slow_study()
    (message,) = messages_of(press(admin_client, hit_type, agreed=agreed))
    assert message.startswith(said)
    assert not Payment.objects.exists()


def test_who_may_not_change_studies_or_pay_gets_no_button_and_cannot_press_it(client):
    hit_type, _ = slow_study()
    guest = User.objects.create(username="eve", is_staff=True)
    client.force_login(guest)
    assert press(client, hit_type, agreed="0.54").status_code == 403
    assert client.get(f"/admin/annotator/hittype/{hit_type.pk}/top-up/").status_code == 405
