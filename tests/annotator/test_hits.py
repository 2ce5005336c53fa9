"""The state of a HIT, in Mechanical Turk's sense."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import make_assignment, make_hit

pytestmark = pytest.mark.django_db


def status(hit, *, at_work=0, submitted=0):
    for _ in range(at_work):
        make_assignment(hit)
    for _ in range(submitted):
        make_assignment(hit, status="submitted", submitted_at=timezone.now())
    hit.refresh_from_db()
    return hit.status


def test_a_hit_with_a_free_place_is_assignable():
    assert status(make_hit(max_assignments=3), at_work=1, submitted=1) == "assignable"


def test_a_hit_whose_places_are_taken_is_unassignable_while_somebody_is_at_work():
    assert status(make_hit(max_assignments=2), at_work=1, submitted=1) == "unassignable"


def test_a_hit_whose_places_are_all_submitted_is_reviewable():
    assert status(make_hit(max_assignments=2), submitted=2) == "reviewable"


def test_a_hit_that_expired_is_reviewable_once_nobody_is_at_work():
    past = timezone.now() - timedelta(days=1)
    assert status(make_hit(expires_at=past), at_work=1) == "unassignable"
    assert status(make_hit(expires_at=past), submitted=1) == "reviewable"


def test_a_hit_under_review_is_reviewing_and_a_disposed_one_is_disposed():
    now = timezone.now()
    assert status(make_hit(reviewing_at=now)) == "reviewing"
    assert status(make_hit(reviewing_at=now, disposed_at=now)) == "disposed"
