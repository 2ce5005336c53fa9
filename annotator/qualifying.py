"""Qualifications: granting them, taking them away, and earning them in a test."""

from collections.abc import Iterable

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from annotator.models import (
    GIVEN_BACK_STATUSES,
    HIT,
    Assignment,
    AssignmentStatus,
    Grant,
    HITType,
    Qualification,
    TestResult,
    Worker,
)

log = structlog.get_logger(__name__)


@transaction.atomic
def grant(*, qualification: Qualification, workers: Iterable[Worker], by: User | None) -> int:
    """Give the workers a qualification; return how many did not have it. By nobody: it was earned in a test."""
    before = qualification.grants.count()
    Grant.objects.bulk_create(
        (Grant(qualification=qualification, worker=worker, granted_by=by) for worker in workers), ignore_conflicts=True
    )
    granted = qualification.grants.count() - before
    log.info("qualification_granted", qualification=qualification.pk, workers=granted, by=by and by.pk)
    return granted


def take_away(*, qualification: Qualification, workers: Iterable[Worker], by: User) -> int:
    """Take a qualification from the workers; return how many had it. Their work is kept and paid."""
    taken, _ = qualification.grants.filter(worker__in=workers).delete()
    log.info("qualification_taken_away", qualification=qualification.pk, workers=taken, by=by.pk)
    return taken


def finish_test(*, worker: Worker, hit_type: HITType) -> TestResult | None:
    """Settle a qualification test of which the worker has nothing left; return None before that.

    There is one go: the first result stays, and whoever passes gets the qualification. A statement
    that was returned, expired or not understood is wrong; those about groups that the worker does
    not want to read about are left out, and whoever leaves out more than half does not pass.

    No lock is needed. A worker has one open statement at most, and while there is one something is
    left, so that of two submits at once the one of the open statement settles the test; of two late
    ones the constraint ``test_result_once_a_worker`` lets the first.
    """
    if _left_to(worker, hit_type).exists():
        return None
    right, total = _score(worker, hit_type)
    if not total:
        return None
    return _settle(worker, hit_type, right, total)


def finish_tests() -> int:
    """Settle all tests of which somebody has nothing left, the last statement returned for one; return how many."""
    had = Assignment.objects.filter(hit__is_check=True, hit__hit_type__grants__isnull=False)
    settled = TestResult.objects.filter(worker=OuterRef("worker"), test=OuterRef("hit__hit_type"))
    left = _left_to(OuterRef(OuterRef("worker")), OuterRef("hit__hit_type"))
    over = had.filter(~Exists(settled), ~Exists(left)).order_by().values_list("worker", "hit__hit_type").distinct()
    pairs = list(over)
    workers = Worker.objects.in_bulk([worker for worker, _ in pairs])
    tests = HITType.objects.in_bulk([test for _, test in pairs])
    return sum(finish_test(worker=workers[worker], hit_type=tests[test]) is not None for worker, test in pairs)


def _checks(hit_type: HITType | OuterRef) -> QuerySet[HIT]:
    """The statements of a test, whether or not they can be accepted at the moment."""
    return HIT.objects.filter(
        hit_type=hit_type, is_check=True, disposed_at=None, generation__known_answers__studies=hit_type
    )


def _left_to(worker: Worker | OuterRef, hit_type: HITType | OuterRef) -> QuerySet[HIT]:
    """The statements of a test that the worker is at or has yet to take."""
    own = Assignment.objects.filter(hit=OuterRef("pk"), worker=worker)
    avoided = Worker.avoided_groups.through.objects.filter(worker=worker, targetgroup=OuterRef("generation__group"))
    return _checks(hit_type).filter(
        Exists(own.filter(status=AssignmentStatus.ACCEPTED)) | (~Exists(own) & ~Exists(avoided))
    )


def _score(worker: Worker, hit_type: HITType) -> tuple[int, int]:
    """How many of a test's statements that the worker had were answered as expected, and how many there were."""
    left_out = Q(status__in=GIVEN_BACK_STATUSES, hit__generation__group__avoided_by=worker)
    taken = (
        Assignment.objects.filter(worker=worker, hit__in=_checks(hit_type))
        .exclude(left_out)
        .select_related("annotation", "hit__generation__known_answers")
    )
    fitting = [
        hasattr(assignment, "annotation") and assignment.hit.generation.known_answers.fit(assignment.annotation.answers)
        for assignment in taken
    ]
    return sum(fitting), len(fitting)


@transaction.atomic
def _settle(worker: Worker, test: HITType, right: int, total: int) -> TestResult:
    passed = right * 100 >= test.pass_mark * total and total * 2 >= _checks(test).count()
    result, is_first = TestResult.objects.get_or_create(
        test=test, worker=worker, defaults={"right": right, "total": total, "passed": passed}
    )
    if is_first:
        log.info("test_taken", test=test.pk, worker=worker.pseudonym, right=right, total=total, passed=passed)
        if passed:
            grant(qualification=test.grants, workers=[worker], by=None)
    return result
