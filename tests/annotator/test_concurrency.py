"""Many at once: real threads, each with a connection of its own, against the real database."""

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections, transaction
from django.db.models import Q

from annotator import assigning, consenting, submitting
from annotator.models import HIT, Annotation, Assignment
from annotator.submitting import Outcome
from tests.annotator.threads import (
    at_once,
    in_the_background,
    stored_at_the_end,
    wait_until_somebody_waits_for_a_lock,
)
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    lapse,
    make_assignment,
    make_consent_form,
    make_hit,
    make_hit_type,
    make_worker,
)

pytestmark = pytest.mark.django_db(transaction=True)


def submit(assignment):
    return submitting.submit(assignment=assignment, answers=answers())


def accept_or_none(worker):
    try:
        return accept(worker)
    except assigning.NoHITLeft:
        return None


class Study:
    """Workers that go through a study in threads, and what the acts told them."""

    def __init__(self, seed, workers):
        self.seed = seed
        self.workers = workers
        self.outcomes = []  # (assignment id, outcome); list.append is atomic
        self.over = threading.Event()

    def run(self):
        with ThreadPoolExecutor(1) as periodic:
            expiring = periodic.submit(self.expire)
            try:
                results = at_once(*(lambda at=at: self.work(*at) for at in enumerate(self.workers)))
            finally:
                self.over.set()
        assert [*results, expiring.result()] == [None] * (len(self.workers) + 1)

    def expire(self):
        """The periodic task, far too often."""
        while not self.over.wait(0.01):
            assigning.expire_lapsed()
        connections.close_all()

    def work(self, number, worker):
        chance = random.Random(f"{self.seed} {number}")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            assignment = accept_or_none(worker)
            if assignment:
                self.do(chance.random(), assignment, worker)
            elif not HIT.objects.filter(Q(free_places__gt=0) | Q(open_assignments__gt=0)).exists():
                return  # nothing is open, and nobody is at work any more who could give a place back
            else:
                time.sleep(0.005)
        raise TimeoutError

    def do(self, roll, assignment, worker):
        if roll < 0.1:
            assigning.return_assignment(assignment=assignment)
        elif roll < 0.2:
            lapse(assignment)  # and forgotten
        elif roll < 0.35:
            lapse(assignment)
            time.sleep(0.02)
            self.submit(assignment)
        elif roll < 0.6:
            first, second = at_once(
                lambda: self.submit_and_accept(assignment, worker), lambda: self.submit_and_accept(assignment, worker)
            )
            assert first == second or None in (first, second), (first, second)
        else:
            self.submit(assignment)

    def submit_and_accept(self, assignment, worker):
        self.submit(assignment)
        return accept_or_none(worker)

    def submit(self, assignment):
        self.outcomes.append((assignment.pk, submit(assignment)))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_twelve_workers_at_once_give_every_hit_exactly_three_labels(seed):
    hit_type = make_hit_type(max_assignments=3)
    hits = [make_hit(hit_type=hit_type) for _ in range(10)]
    study = Study(seed, [consenting_worker() for _ in range(12)])

    study.run()

    labels = Counter(Annotation.objects.counted().values_list("assignment__hit", flat=True))
    assert dict(labels) == {hit.pk: 3 for hit in hits}
    assert set(HIT.objects.values_list("held_places", "open_assignments", "free_places")) == {(3, 0, 0)}
    stored = [pk for pk, outcome in study.outcomes if outcome is not Outcome.STORED_BEFORE]
    assert sorted(stored) == sorted({pk for pk, _ in study.outcomes}), "a submit was stored twice or not at all"
    assert sorted(Annotation.objects.values_list("assignment", flat=True)) == sorted(stored)
    told = {pk for pk, outcome in study.outcomes if outcome in (Outcome.COUNTED, Outcome.LATE)}
    assert set(Annotation.objects.counted().values_list("assignment", flat=True)) == told


def test_of_twelve_workers_one_gets_the_last_place():
    make_hit(max_assignments=1)
    workers = [consenting_worker() for _ in range(12)]
    given = at_once(*(lambda worker=worker: accept_or_none(worker) for worker in workers))
    assert [type(result) for result in given if result is not None] == [Assignment]


def test_workers_who_come_at_once_spread_over_the_hits():
    hit_type = make_hit_type(max_assignments=1)
    for _ in range(6):
        make_hit(hit_type=hit_type)
    workers = [consenting_worker() for _ in range(6)]
    given = at_once(*(lambda worker=worker: accept(worker) for worker in workers))
    assert len({assignment.hit_id for assignment in given}) == 6


def test_a_double_click_on_accept_gives_one_assignment():
    make_hit(), make_hit()
    worker = consenting_worker()
    first, second = at_once(lambda: accept(worker), lambda: accept(worker))
    assert first == second
    assert Assignment.objects.count() == 1


def test_a_double_click_on_submit_is_stored_once():
    make_hit()
    assignment = accept()
    outcomes = at_once(lambda: submit(assignment), lambda: submit(assignment))
    assert sorted(outcome.value for outcome in outcomes) == ["counted", "stored_before"]
    assert Annotation.objects.count() == 1


def test_of_submitting_and_returning_at_once_the_submit_is_never_lost():
    for _ in range(8):
        assignment = make_assignment(make_hit(max_assignments=1))
        outcome, _ = at_once(
            lambda: submit(assignment),  # noqa: B023 - runs within this turn of the loop
            lambda: assigning.return_assignment(assignment=assignment),  # noqa: B023
        )
        assignment.refresh_from_db()
        assert outcome in (Outcome.COUNTED, Outcome.LATE)
        assert (assignment.status, assignment.holds_place) == ("submitted", True)


def test_a_late_submit_and_an_accept_at_once_take_the_last_place_once():
    for _ in range(8):
        hit = make_hit(max_assignments=1)
        late = lapse(make_assignment(hit))
        assigning.expire_lapsed()
        other = consenting_worker()
        outcome, given = at_once(
            lambda: submit(late),  # noqa: B023 - runs within this turn of the loop
            lambda: accept(other, hit_type=hit.hit_type),  # noqa: B023
        )
        hit.refresh_from_db()
        assert hit.held_places == 1
        if isinstance(given, Assignment):
            assert outcome is Outcome.LATE_UNCOUNTED
        else:
            assert (outcome, type(given)) == (Outcome.LATE, assigning.NoHITLeft)


def test_two_workers_late_on_each_others_next_statement_do_not_block_each_other():
    for _ in range(6):
        hit_type = make_hit_type()
        one, other = make_hit(hit_type=hit_type), make_hit(hit_type=hit_type)
        ada, bob = lapse(make_assignment(one)).worker, lapse(make_assignment(other)).worker
        given = at_once(
            lambda: accept(ada, hit_type=hit_type),  # noqa: B023 - runs within this turn of the loop
            lambda: accept(bob, hit_type=hit_type),  # noqa: B023
        )
        assert [assignment.hit for assignment in given] == [other, one]


def test_a_late_submit_under_way_is_waited_for_before_the_next_statement_is_given():
    hit_type = make_hit_type()
    worker = consenting_worker()
    late = lapse(make_assignment(make_hit(hit_type=hit_type), worker))
    fresh = make_hit(hit_type=hit_type)
    with stored_at_the_end(lambda: submit(late)) as submitted:
        accepting = in_the_background(lambda: accept(worker))
        wait_until_somebody_waits_for_a_lock()
    assert (submitted.result(), accepting.result().hit) == (Outcome.LATE, fresh)
    late.refresh_from_db()
    assert late.status == "submitted"


def test_an_assignment_being_submitted_is_not_expired():
    late = lapse(make_assignment())
    with stored_at_the_end(lambda: submit(late)) as submitted:
        assert assigning.expire_lapsed() == 0
    assert submitted.result() is Outcome.LATE


def test_a_hit_that_somebody_is_just_taking_is_passed_over_for_another():
    hit_type = make_hit_type()
    busy, other = (make_hit(hit_type=hit_type, shuffle=shuffle) for shuffle in (0.1, 0.9))
    ada, bob = consenting_worker(), consenting_worker()
    with stored_at_the_end(lambda: make_assignment(busy, ada)):
        assert accept(bob).hit == other


def test_the_last_hit_is_waited_for_while_somebody_else_may_yet_take_its_last_place():
    hit = make_hit(max_assignments=2)
    ada, bob = consenting_worker(), consenting_worker()
    with stored_at_the_end(lambda: make_assignment(hit, ada)):
        accepting = in_the_background(lambda: accept(bob))
        wait_until_somebody_waits_for_a_lock()
    assert accepting.result().hit == hit


def test_a_worker_who_waits_for_one_hit_holds_no_other():
    hit_type = make_hit_type(max_assignments=1)
    first, second = (make_hit(hit_type=hit_type, shuffle=shuffle) for shuffle in (0.1, 0.9))
    ada, bob, eve = (consenting_worker() for _ in range(3))
    with transaction.atomic():
        make_assignment(second, ada)
        with stored_at_the_end(lambda: make_assignment(first, bob)):
            accepting = in_the_background(lambda: accept_or_none(eve))
            wait_until_somebody_waits_for_a_lock()
        wait_until_somebody_waits_for_a_lock()  # first is full now, and second may yet come free
        HIT.objects.select_for_update().get(pk=first.pk)
    assert accepting.result() is None


def test_consent_given_twice_at_once_is_stored_once():
    worker, form = make_worker(), make_consent_form()
    given = at_once(*[lambda: consenting.give_consent(worker=worker, form=form)] * 2)
    assert given == [worker.consents.get()] * 2
