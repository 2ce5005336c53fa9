"""Telling a worker that there is something to do. A lost wake-up costs time, never work."""

import structlog
from celery import current_app
from django.db import transaction
from kombu.exceptions import ChannelError, OperationalError

# Unread wake-ups must not pile up behind a busy worker; the periodic task sends new ones.
EXPIRES_AFTER_SECONDS = 30

log = structlog.get_logger(__name__)


def wake_worker_for(run_id: int) -> None:
    """Once the transaction is stored, send a wake-up for a run.

    If the queue cannot be reached, the periodic task sends one later.
    """
    transaction.on_commit(lambda: _send("generation.work_on_run", run=run_id))


def wake_worker_for_replay(replay_id: int) -> None:
    """The same for the replay of a search."""
    transaction.on_commit(lambda: _send("generation.replay", replay=replay_id))


def _send(task: str, **row: int) -> None:
    try:
        current_app.send_task(task, [*row.values()], queue="generation", expires=EXPIRES_AFTER_SECONDS)
    except (OperationalError, ChannelError, OSError) as error:  # OSError: the folder of the filesystem queue
        log.warning("wake_up_not_sent", **row, error=str(error))
