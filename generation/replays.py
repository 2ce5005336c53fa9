"""Asking for the replay of a search, taking it up, and storing what it showed."""

from collections.abc import Sequence
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone

from generation.models import Generation, Method, Replay
from generation.wakeups import wake_worker_for_replay

MAX_LEASES = 3
STOPPED_EACH_TIME = (
    "Its worker stopped {leases} times before the end. See the workers' logs; a machine short of memory does this."
)

log = structlog.get_logger(__name__)


class NotASearch(ValueError):
    """Only what ALICE wrote in a run can be replayed."""


class ReplayLost(RuntimeError):
    """Somebody else finished the replay, or it was asked for anew."""


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
    log.info("replay_requested", generation=generation.pk)
    wake_worker_for_replay(replay.pk)
    return True


def lease_replay(*, replay_id: int) -> Replay | None:
    """Take up a replay, or return ``None`` if it is finished, gone or in other hands.

    One that was taken up ``MAX_LEASES`` times without an end fails: it would stop every worker in turn.
    """
    taken = Replay.objects.waiting().filter(pk=replay_id)
    if not taken.update(lease_expires_at=_lease_end(), leases=F("leases") + 1):
        return None
    replay = Replay.objects.select_related("generation__run", "generation__prompt", "generation__group").get(
        pk=replay_id
    )
    if replay.leases > MAX_LEASES:
        fail_replay(replay=replay, reason=STOPPED_EACH_TIME.format(leases=MAX_LEASES))
        return None
    return replay


def keep_replay(*, replay: Replay) -> None:
    """Put off the end of a lease once half of it has gone; raise ``ReplayLost`` if others were quicker."""
    if replay.lease_expires_at - timezone.now() > _lease_length() / 2:
        return
    end = _lease_end()
    if not Replay.objects.filter(pk=replay.pk, finished_at=None).update(lease_expires_at=end):
        raise ReplayLost(f"{replay} was finished by somebody else.")
    replay.lease_expires_at = end


def give_back_replay(*, replay: Replay) -> None:
    """Let others take it up at once; a worker that stops in good order does not count against it."""
    Replay.objects.filter(pk=replay.pk, finished_at=None).update(
        lease_expires_at=None, leases=Greatest(F("leases") - 1, 0)
    )


def store_replay(*, replay: Replay, text: str, steps: Sequence, environment: dict) -> bool:
    """Store a finished replay, as ``search_steps.packed`` makes its steps. Return whether it was unfinished."""
    stored = _finish(replay, text=text, steps=list(steps), environment=environment)
    log.info("replay_stored", generation=replay.generation_id, steps=len(steps))
    return stored


def fail_replay(*, replay: Replay, reason: str) -> bool:
    """Note why there is no replay; its page shows the reason. Return whether it was unfinished."""
    log.warning("replay_failed", generation=replay.generation_id, reason=reason)
    return _finish(replay, failure=reason)


def _finish(replay: Replay, **found) -> bool:
    unfinished = Replay.objects.filter(pk=replay.pk, finished_at=None)
    return bool(unfinished.update(finished_at=timezone.now(), lease_expires_at=None, **found))


def _lease_length() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)


def _lease_end():
    return timezone.now() + _lease_length()
