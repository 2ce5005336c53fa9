"""Asking for the replay of a search, taking it up, and storing what it showed."""

from collections.abc import Sequence

import structlog
from django.db import transaction
from django.utils import timezone

from generation import leases
from generation.auditing import note
from generation.models import Generation, Method, Replay
from generation.wakeups import wake_worker_for_replay

log = structlog.get_logger(__name__)


class NotASearch(ValueError):
    """Only what ALICE wrote in a run can be replayed."""


def is_replayable(generation: Generation) -> bool:
    """Whether there was a search for the statement, and what it takes to repeat it."""
    return generation.method == Method.ALICE and generation.run is not None and generation.prompt is not None


@transaction.atomic
def request_replay(*, generation: Generation, requested_by=None) -> bool:
    """Have the search for a statement replayed, unless that is under way or done. Return whether it will be.

    One that failed is tried anew. Raises ``NotASearch``.
    """
    if not is_replayable(generation):
        raise NotASearch(f"Statement {generation.pk} cannot be replayed: ALICE did not write it in a run.")
    replay, is_new = Replay.objects.select_for_update().get_or_create(
        generation=generation, defaults={"requested_by": requested_by}
    )
    if not is_new:
        if not replay.failure:
            return False
        replay.requested_by, replay.requested_at = requested_by, timezone.now()
        replay.finished_at, replay.failure, replay.leases = None, "", 0
        replay.save()
    note("replay asked for", by=requested_by, subject=str(replay))
    log.info("replay_requested", generation=generation.pk)
    wake_worker_for_replay(replay.pk)
    return True


def lease_replay(*, replay_id: int) -> Replay | None:
    """Take up a replay, or return ``None`` if it is finished, gone, in other hands or worn out, which fails it."""
    if not leases.take_up(Replay.objects.waiting(), pk=replay_id):
        return None
    replay = Replay.objects.select_related("generation__run", "generation__prompt", "generation__group").get(
        pk=replay_id
    )
    if leases.is_worn_out(replay):
        leases.finish(replay, failure=leases.STOPPED_EACH_TIME)
        return None
    return replay


def store_replay(*, replay: Replay, text: str, steps: Sequence, environment: dict) -> bool:
    """Store a finished replay, as ``search_steps.packed`` makes its steps. Return whether it was unfinished."""
    stored = leases.finish(replay, text=text, steps=list(steps), environment=environment)
    log.info("replay_stored", generation=replay.generation_id, steps=len(steps))
    return stored
