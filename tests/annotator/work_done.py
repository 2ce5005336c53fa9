"""Work that was done before a test begins: stored as it is, each piece by a worker of its own, in a time given."""

from datetime import timedelta

from django.utils import timezone

from annotator.models import Assignment
from tests.factories import consenting_worker, make_assignment, make_hit

BY_STATUS = {
    "submitted": {},
    "approved": {"decided_at": timezone.now()},
    "rejected": {"decided_at": timezone.now(), "rejection_reason": "It was left empty."},
}


def work(hit_type, *, seconds, status="submitted", worker=None, hit=None, **fields) -> Assignment:
    """One assignment of the study that took so long, done just now."""
    now = fields.pop("at", None) or timezone.now()
    times = {
        "accepted_at": now - timedelta(seconds=seconds),
        "deadline": now + timedelta(minutes=30),
        "submitted_at": now,
    }
    return make_assignment(
        hit or hit_type.hits.first() or make_hit(hit_type=hit_type),
        worker or consenting_worker(),
        status=status,
        holds_place=False,
        **times | BY_STATUS[status] | fields,
    )


def works(hit_type, *, seconds, number=10, **fields) -> list[Assignment]:
    return [work(hit_type, seconds=seconds, **fields) for _ in range(number)]


def work_of_many(hit, done) -> None:
    """Submitted work on one HIT in one go: of each worker, what was promised and how many seconds it took."""
    now = timezone.now()
    Assignment.objects.bulk_create(
        Assignment(
            hit=hit,
            worker=worker,
            consent=worker.consents.all()[0],
            status="submitted",
            holds_place=False,
            reward=reward,
            accepted_at=now - timedelta(seconds=seconds),
            deadline=now + timedelta(minutes=30),
            submitted_at=now,
        )
        for worker, reward, seconds in done
    )
