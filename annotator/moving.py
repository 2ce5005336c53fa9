"""Moving HITs between Mechanical Turk's states, as a researcher wishes.

Every act takes many HITs, locked in the order of their ids, changes those it may and says why it
left the others. Whether a HIT is assignable, unassignable or reviewable is not moved but follows
from its places and its lifetime.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta

import structlog
from django.contrib.postgres.functions import TransactionNow
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest, Now
from django.utils import timezone

from annotator import wages
from annotator.models import HIT, UNLIMITED, Assignment, AssignmentStatus, HITStatus, HITType
from annotator.reviewing import GONE, Done

REVIEWED_WHEN_COMPLETE = (
    "{status}, and a HIT is reviewed once its places are filled or it has expired and nobody is at work on it"
)
NOT_UNDER_REVIEW = "not under review"
NOT_DECIDED = "holding submitted work that is neither approved nor rejected yet"
DISPOSED = "disposed of, which is final"
BELOW_FLOOR = "of a study that pays less than its wage floor: raise the reward or top it up first"
EXPIRED_BEFORE = "expired already"
IS_A_CHECK = "about a statement with known answers, which has places for everybody: extend it by days alone"
TOO_MANY_PLACES = f"at the limit: a HIT has at most {UNLIMITED:,} places"
IMPORTED = "of a study of imported work, which hands nothing out"
STOPPED = "of a study that was stopped: go on with the study first"
STILL_EXPIRED = "expired all the same: add days, or nobody can take the new places"

log = structlog.get_logger(__name__)


class NothingToExtend(ValueError):
    """Neither places nor time were given to add."""


@transaction.atomic
def set_reviewing(*, ids: Iterable[int]) -> Done:
    """Mark reviewable HITs as being under review."""

    def why_not(hit: HIT, study: HITType) -> str:
        if hit.status == HITStatus.REVIEWABLE:
            return ""
        return DISPOSED if hit.disposed_at else REVIEWED_WHEN_COMPLETE.format(status=hit.status.label)

    return _update("hits_set_reviewing", ids, why_not, reviewing_at=Now())


@transaction.atomic
def set_reviewable(*, ids: Iterable[int]) -> Done:
    """Take back the mark of those under review."""
    return _update(
        "hits_set_reviewable",
        ids,
        lambda hit, study: "" if hit.status == HITStatus.REVIEWING else NOT_UNDER_REVIEW,
        reviewing_at=None,
    )


@transaction.atomic
def dispose(*, ids: Iterable[int]) -> Done:
    """Close reviewable and reviewing HITs all of whose work is decided, for good; answers and pay stay."""
    ids = set(ids)
    hits = _lock(ids)
    # Asked when the HITs are locked, so that no submit can take a place of theirs meanwhile.
    undecided = set(
        Assignment.objects.filter(hit__in=hits, status=AssignmentStatus.SUBMITTED).values_list("hit", flat=True)
    )

    def why_not(hit: HIT, study: HITType) -> str:
        if hit.disposed_at:
            return DISPOSED
        if hit.status not in (HITStatus.REVIEWABLE, HITStatus.REVIEWING):
            return REVIEWED_WHEN_COMPLETE.format(status=hit.status.label)
        return NOT_DECIDED if hit.pk in undecided else ""

    return _update("hits_disposed", ids, why_not, disposed_at=Now())


@transaction.atomic
def expire_now(*, ids: Iterable[int]) -> Done:
    """End the lifetime of HITs: nobody can accept them any more; who is at work may finish."""

    def why_not(hit: HIT, study: HITType) -> str:
        if hit.disposed_at:
            return DISPOSED
        return EXPIRED_BEFORE if hit.expires_at <= timezone.now() else ""

    # The moment before the first lock: who waited for one of them finds the HIT expired.
    return _update("hits_expired", ids, why_not, expires_at=TransactionNow())


@transaction.atomic
def extend(*, ids: Iterable[int], places: int = 0, lifetime: timedelta = timedelta(0)) -> Done:
    """Add places and time to HITs; one under review is assignable again, one that expired lives from now on.

    Raises ``NothingToExtend``.
    """
    if places < 0 or lifetime < timedelta(0) or not (places or lifetime):
        raise NothingToExtend("Say by how many places or days the HITs are extended: at least one of either.")

    _lock_studies(ids := set(ids))
    underpaid = _underpaid_studies(ids)

    def why_not(hit: HIT, study: HITType) -> str:
        if hit.disposed_at:
            return DISPOSED
        if hit.hit_type_id in underpaid:
            return BELOW_FLOOR
        if study.stopped_at:
            return STOPPED
        if hit.is_check and places:
            return IS_A_CHECK
        return TOO_MANY_PLACES if hit.max_assignments + places > UNLIMITED else ""

    changes = {"max_assignments": F("max_assignments") + places, "reviewing_at": None}
    if lifetime:
        changes["expires_at"] = Greatest("expires_at", Now()) + lifetime
    done = _update("hits_extended", ids, why_not, **changes)
    if expired := HIT.objects.filter(pk__in=done.changed, expires_at__lte=Now()).count():
        done.remarks[STILL_EXPIRED] = expired
    return done


def _lock_studies(ids: set[int]) -> None:
    """Lock the studies of HITs, before these, so that none is stopped meanwhile: stopping would not see what we do."""
    studies = HITType.objects.filter(pk__in=HIT.objects.filter(pk__in=ids).values("hit_type")).order_by("pk")
    list(studies.select_for_update(no_key=True).values_list("pk"))


def _underpaid_studies(ids: set[int]) -> set[int]:
    """The studies of HITs that pay less than their wage floor."""
    studies = HITType.objects.filter(hits__in=ids).distinct()
    return {hit_type.pk for hit_type in studies if wages.is_below_floor(hit_type)}


def _update(event: str, ids: Iterable[int], why_not: Callable[[HIT, HITType], str], **changes) -> Done:
    ids = set(ids)
    changed, left = [], Counter()
    hits = _lock(ids)
    # Read when the HITs are locked, so that a study that is being stopped is known to be.
    studies = HITType.objects.in_bulk({hit.hit_type_id for hit in hits})
    for hit in hits:
        ids.remove(hit.pk)
        study = studies[hit.hit_type_id]
        if reason := IMPORTED if study.imported else why_not(hit, study):
            left[reason] += 1
        else:
            changed.append(hit.pk)
    if ids:
        left[GONE] += len(ids)
    HIT.objects.filter(pk__in=changed).update(**changes)
    log.info(event, hits=changed)
    return Done(changed, left)


def _lock(ids: Iterable[int]) -> list[HIT]:
    return list(HIT.objects.filter(pk__in=ids).order_by("pk").select_for_update(no_key=True))
