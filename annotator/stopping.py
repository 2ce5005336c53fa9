"""Stopping a study, going on with it, and extending all of its HITs at once.

Each act locks the study first, so that nothing is published meanwhile, and then the HITs in the order of their ids, as
everybody who locks several. Who accepts a HIT at that moment has it and may finish; who comes later finds
none. Nothing is read of the statements or the work, so that thousands of HITs take a second.
"""

from collections import Counter
from datetime import timedelta

import structlog
from django.contrib.auth.models import User
from django.contrib.postgres.functions import TransactionNow
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest, Now

from annotator import publishing, wages
from annotator.models import HIT, UNLIMITED, HITType
from annotator.moving import DISPOSED, IS_A_CHECK, STILL_EXPIRED, TOO_MANY_PLACES, NothingToExtend
from annotator.reviewing import Done
from generation.auditing import note

log = structlog.get_logger(__name__)


class NothingToStop(Exception):
    """The study is stopped already; or, for going on, is not stopped. The message says so."""


@transaction.atomic
def stop(*, hit_type: HITType, by: User | None) -> int:
    """Let nobody accept the study's HITs from now on, and make no new ones; return how many HITs ended.

    Work under way may be finished, and is paid and counts. Raises ``NothingToStop`` or ``publishing.ImportedStudy``.
    """
    study = _lock(hit_type)
    if study.stopped_at:
        raise NothingToStop("Nothing was changed: the study is stopped already.")
    living = study.hits.filter(disposed_at=None, expires_at__gt=Now())
    # The moment before the first lock: who waited for one of them finds the HIT expired, whenever they began to wait.
    ended = _change(living, expires_at=TransactionNow())
    HITType.objects.filter(pk=study.pk).update(stopped_at=TransactionNow())
    note("study stopped", by=by, subject=f"study {study.pk}", hits=ended)
    log.info("study_stopped", hit_type=study.pk, hits=ended)
    return ended


@transaction.atomic
def go_on(*, hit_type: HITType, by: User | None) -> int:
    """Let a stopped study go on; return how many HITs can be accepted again, or have their lifetime anew.

    They are those that stopping ended: what had expired before stays so. Statements that its run has written since, and
    known answers that it was given since, come besides. Raises ``NothingToStop``, ``wages.PayTooLow`` or
    ``publishing.ImportedStudy``.
    """
    study = _lock(hit_type)
    if study.stopped_at is None:
        raise NothingToStop("Nothing was changed: the study is not stopped.")
    wages.refuse_below_floor(study)
    taken_out = Q(is_check=True) & ~Q(generation__in=study.known_answers.values("generation"))
    ended = study.hits.filter(~taken_out, disposed_at=None, expires_at=study.stopped_at)
    HITType.objects.filter(pk=study.pk).update(stopped_at=None)
    revived = _change(ended, expires_at=Now() + study.lifetime)
    publishing.make_missing_known_answers(hit_type=study)
    note("study resumed", by=by, subject=f"study {study.pk}", hits=revived)
    log.info("study_resumed", hit_type=study.pk, hits=revived)
    return revived


@transaction.atomic
def extend(*, hit_type: HITType, by: User | None, places: int = 0, lifetime: timedelta = timedelta(0)) -> Done:
    """Add places and time to all HITs of a study, as ``moving.extend`` does to some.

    New statements of the study have as many places then. Known answers have places for everybody and get the time
    alone. Raises ``NothingToExtend``, ``wages.PayTooLow`` or ``publishing.StudyClosed``.
    """
    if places < 0 or lifetime < timedelta(0) or not (places or lifetime):
        raise NothingToExtend("Say by how many places or days the study is extended: at least one of either.")
    publishing.refuse_imported(hit_type)
    study = publishing.lock_open_study(hit_type)
    wages.refuse_below_floor(study)
    left = _left_by_extending(study, places, lifetime)
    changed = _extend_hits(study, places, lifetime)
    if places and study.max_assignments + places <= UNLIMITED:
        HITType.objects.filter(pk=study.pk).update(max_assignments=F("max_assignments") + places)
    expired = study.hits.filter(pk__in=changed, expires_at__lte=Now()).count()
    days = lifetime / timedelta(days=1)
    note("study extended", by=by, subject=f"study {study.pk}", places=places, days=days, hits=len(changed))
    log.info("study_extended", hit_type=study.pk, hits=len(changed))
    return Done(changed, left, +Counter({STILL_EXPIRED: expired}))


def _extend_hits(study: HITType, places: int, lifetime: timedelta) -> list[int]:
    """The ids of the HITs that were extended."""
    to_judge = study.hits.filter(is_check=False, disposed_at=None, max_assignments__lte=UNLIMITED - places)
    checks = study.hits.filter(is_check=True, disposed_at=None)
    if not lifetime:
        checks = checks.none()
    ids = _locked(to_judge | checks)
    later = {"expires_at": Greatest("expires_at", Now()) + lifetime} if lifetime else {}
    hits = HIT.objects.filter(pk__in=ids)
    hits.filter(is_check=False).update(max_assignments=F("max_assignments") + places, reviewing_at=None, **later)
    hits.filter(is_check=True).update(reviewing_at=None, **later)
    return ids


def _left_by_extending(study: HITType, places: int, lifetime: timedelta) -> Counter[str]:
    """Why HITs are left as they are, and how many."""
    hits = study.hits.filter(disposed_at=None)
    return +Counter(
        {
            DISPOSED: study.hits.exclude(disposed_at=None).count(),
            IS_A_CHECK: hits.filter(is_check=True).count() if places and not lifetime else 0,
            TOO_MANY_PLACES: hits.filter(is_check=False, max_assignments__gt=UNLIMITED - places).count(),
        }
    )


def _lock(hit_type: HITType) -> HITType:
    publishing.refuse_imported(hit_type)
    return HITType.objects.select_for_update(no_key=True, of=("self",)).get(pk=hit_type.pk)


def _change(hits: QuerySet[HIT], **fields) -> int:
    """Lock HITs in the order of their ids and change them; return how many."""
    return HIT.objects.filter(pk__in=_locked(hits)).update(**fields)


def _locked(hits: QuerySet[HIT]) -> list[int]:
    return list(hits.order_by("pk").select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))
