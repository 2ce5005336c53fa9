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


def ask_to_count(run_id: int) -> None:
    """The same for counting what an ended run wrote twice over; that takes no model."""
    ask_for("generation.count_near_duplicates", run=run_id)


def wake_worker_for_trial(trial_id: int) -> None:
    """The same for the trial of a prompt, which somebody waits for."""
    transaction.on_commit(lambda: _send("generation.trial", trial=trial_id))


def wake_worker_for_reading(reading_id: int) -> None:
    """The same for a reading."""
    transaction.on_commit(lambda: _send("generation.read_statements", reading=reading_id))


def ask_for(task: str, **row: int) -> None:
    """The same for any task that takes one row and no model."""
    transaction.on_commit(lambda: _send(task, queue="default", **row))


def ask_for_report(task: str, **row: int) -> None:
    """The same for a report, which takes long: what has to happen every few seconds must not wait for it."""
    transaction.on_commit(lambda: _send(task, queue="reports", **row))


def ask_for_model(task: str, **row: int) -> None:
    """The same for any task that takes one row and loads a model."""
    transaction.on_commit(lambda: _send(task, **row))


def _send(task: str, *, queue: str = "generation", **row: int) -> None:
    try:
        current_app.send_task(task, [*row.values()], queue=queue, expires=EXPIRES_AFTER_SECONDS)
    except (OperationalError, ChannelError, OSError) as error:  # OSError: the folder of the filesystem queue
        log.warning("wake_up_not_sent", **row, error=str(error))
