"""Putting statements before annotators: making HITs of generations."""

from collections.abc import Iterable

import structlog
from django.db import transaction
from django.utils import timezone

from annotator.models import HIT, HITType
from generation.models import Generation

BATCH = 1000

log = structlog.get_logger(__name__)


@transaction.atomic
def publish(*, hit_type: HITType, generations: Iterable[Generation]) -> int:
    """Make one HIT of each statement, skipping those the study has; return how many were made."""
    before = hit_type.hits.count()
    expires_at = timezone.now() + hit_type.lifetime
    HIT.objects.bulk_create(
        (
            HIT(
                hit_type=hit_type,
                generation=generation,
                max_assignments=hit_type.max_assignments,
                expires_at=expires_at,
            )
            for generation in generations
        ),
        ignore_conflicts=True,
        batch_size=BATCH,
    )
    made = hit_type.hits.count() - before
    if made:
        log.info("hits_published", hit_type=hit_type.pk, hits=made)
    return made


def publish_new_statements() -> int:
    """Publish what the runs that studies are fed from have written since the last time."""
    return sum(
        publish(
            hit_type=hit_type,
            generations=Generation.objects.filter(run=hit_type.run_id).exclude(hits__hit_type=hit_type),
        )
        for hit_type in HITType.objects.exclude(run=None)
    )
