"""Putting statements before annotators: making HITs of generations."""

from collections.abc import Iterable
from datetime import datetime

import structlog
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone
from django.utils.formats import date_format

from annotator import wages
from annotator.models import HIT, UNLIMITED, HITType
from generation.auditing import note
from generation.models import Generation, GenerationChunk

BATCH = 1000
SAID_EVERY = 3600
"""That a study waits for better pay is logged once in so many seconds, not at every look."""

log = structlog.get_logger(__name__)


class KnownAnswersOnly(Exception):
    """A qualification test cannot have statements whose right answers nobody knows."""


class StudyClosed(Exception):
    """The study hands nothing out: it was stopped, or holds imported work; the message says what to do."""


class ImportedStudy(StudyClosed):
    """The study holds work that was done elsewhere."""


@transaction.atomic
def publish(*, hit_type: HITType, generations: Iterable[Generation]) -> int:
    """Make one HIT of each statement, skipping those the study has; return how many were made.

    Skipped as well are those with known answers in this study: they test the annotators.
    Raises ``KnownAnswersOnly``, ``StudyClosed`` or ``wages.PayTooLow``.
    """
    lock_open_study(hit_type)
    refuse_test(hit_type)
    wages.refuse_below_floor(hit_type)
    known = set(hit_type.known_answers.values_list("generation", flat=True))
    return _make_hits(
        hit_type,
        (generation.pk for generation in generations if generation.pk not in known),
        max_assignments=hit_type.max_assignments,
    )


@transaction.atomic
def publish_known_answers(*, hit_type: HITType, by: User | None = None) -> int:
    """Offer the study's statements with known answers from now on, and no others; return how many HITs were made.

    Everybody may judge them. One that is judged in this study already, without being a check, stays
    as it is. Raises ``wages.PayTooLow`` or ``StudyClosed``.
    """
    chosen = list(hit_type.known_answers.order_by("pk").values_list("generation", flat=True))
    checks = hit_type.hits.filter(is_check=True, disposed_at=None)
    now = timezone.now()
    _expire(checks.exclude(generation__in=chosen).filter(expires_at__gt=now), at=now)
    made = _offer_known_answers(hit_type, chosen) if chosen else 0
    if made:
        note("known answers published", by=by, subject=f"study {hit_type.pk}", hits=made)
    return made


@transaction.atomic
def make_missing_known_answers(*, hit_type: HITType) -> int:
    """Make HITs of the study's known answers that have none, and leave the others as they are; return how many.

    Raises ``wages.PayTooLow`` or ``StudyClosed``.
    """
    missing = hit_type.known_answers.exclude(generation__hits__hit_type=hit_type)
    chosen = list(missing.order_by("pk").values_list("generation", flat=True))
    return _offer_known_answers(hit_type, chosen) if chosen else 0


@transaction.atomic
def _offer_known_answers(hit_type: HITType, chosen: list[int]) -> int:
    lock_open_study(hit_type)
    wages.refuse_below_floor(hit_type)
    made = _make_hits(hit_type, chosen, max_assignments=UNLIMITED, is_check=True)
    offered = hit_type.hits.filter(is_check=True, disposed_at=None, generation__in=chosen)
    _expire(offered, at=timezone.now() + hit_type.lifetime)
    return made


@transaction.atomic
def publish_run(*, hit_type: HITType, by: User | None = None) -> int:
    """Publish what the study's run has written and the study does not have; return how many HITs were made.

    Who decided that is noted; what comes by itself after that is not. Raises what ``publish`` does.
    """
    made = publish(
        hit_type=hit_type,
        generations=Generation.objects.filter(run=hit_type.run_id).exclude(hits__hit_type=hit_type).only("pk"),
    )
    if by is not None:
        note("statements published", by=by, subject=f"study {hit_type.pk}", run=hit_type.run_id, hits=made)
    return made


def publish_new_statements() -> int:
    """Publish what runs have written since the last time, where the pay reaches the floor; return how many HITs.

    A chunk of a run is stored whole and published whole, so that looking for chunks without a HIT finds all.
    """
    published = HIT.objects.filter(hit_type=OuterRef(OuterRef("pk")), is_check=False, generation__chunk=OuterRef("pk"))
    new = GenerationChunk.objects.filter(run=OuterRef("run"), finished_at__isnull=False).filter(~Exists(published))
    open_studies = HITType.objects.filter(Exists(new), stopped_at=None)
    return sum(_publish_run_if_paid_enough(hit_type) for hit_type in open_studies)


def lock_open_study(hit_type: HITType) -> HITType:
    """The study as it is stored, locked, so that it is not stopped until we are done. Raises ``StudyClosed``."""
    stored = HITType.objects.select_for_update(no_key=True, of=("self",)).get(pk=hit_type.pk)
    refuse_closed(stored)
    return stored


def refuse_to_publish(hit_type: HITType) -> None:
    """Raise what ``publish`` would, whatever the statements."""
    refuse_closed(hit_type)
    refuse_test(hit_type)
    wages.refuse_below_floor(hit_type)


def refuse_closed(hit_type: HITType) -> None:
    """Raise ``StudyClosed`` for a study that was stopped or imported."""
    refuse_imported(hit_type)
    if hit_type.stopped_at:
        raise StudyClosed(
            f"“{hit_type}” was stopped on {date_format(timezone.localtime(hit_type.stopped_at), 'j F Y, H:i e')}. "
            "Go on with it first."
        )


def refuse_test(hit_type: HITType) -> None:
    """Raise ``KnownAnswersOnly`` for a qualification test."""
    if hit_type.is_test:
        raise KnownAnswersOnly(
            f"“{hit_type}” is a qualification test: choose its statements among those with known answers. "
            "Publish others in a study without a qualification to earn."
        )


def refuse_imported(hit_type: HITType) -> None:
    """Raise ``ImportedStudy`` for a study of imported work."""
    if hit_type.imported:
        raise ImportedStudy(
            f"“{hit_type}” holds work that was done elsewhere and imported: nothing of it is handed out, paid, stopped "
            "or extended here. Make a study of your own for new work."
        )


def _publish_run_if_paid_enough(hit_type: HITType) -> int:
    try:
        return publish_run(hit_type=hit_type)
    except StudyClosed:
        return 0  # stopped since we looked
    except wages.PayTooLow as refused:
        if cache.add(f"pay_too_low_{hit_type.pk}", True, SAID_EVERY):
            log.warning("not_published", hit_type=hit_type.pk, reason=str(refused))
        return 0


@transaction.atomic
def _expire(hits: QuerySet[HIT], *, at: datetime) -> None:
    """Set when HITs expire, with their rows locked in the order in which everybody locks several."""
    locked = list(hits.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
    HIT.objects.filter(pk__in=locked).update(expires_at=at)


def _make_hits(hit_type: HITType, generation_ids: Iterable[int], **fields) -> int:
    """Make HITs of the statements of which the study has none yet; return how many."""
    before = hit_type.hits.count()
    expires_at = timezone.now() + hit_type.lifetime
    HIT.objects.bulk_create(
        (HIT(hit_type=hit_type, generation_id=pk, expires_at=expires_at, **fields) for pk in generation_ids),
        ignore_conflicts=True,
        batch_size=BATCH,
    )
    made = hit_type.hits.count() - before
    if made:
        log.info("hits_published", hit_type=hit_type.pk, hits=made, known_answers=fields.get("is_check", False))
    return made
