"""Queue tasks: each takes ids, calls one act and is safe to run twice."""

import threading

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down
from django.db import OperationalError

from generation import replaying, working
from generation.models import GenerationRun, Replay
from generation.wakeups import wake_worker_for, wake_worker_for_replay

stopping = threading.Event()


@worker_shutting_down.connect
def stop_in_good_order(**_) -> None:
    """Without this, a worker asked to stop would go on to the end of its run."""
    stopping.set()


@shared_task(
    name="generation.work_on_run",
    autoretry_for=(OperationalError,),  # the database restarting; anything else ends on the run's page
    retry_backoff=True,
    max_retries=5,
)
def work_on_run(run_id: int) -> None:
    working.work_on_run(run_id=run_id, is_stopping=stopping.is_set)


@shared_task(
    name="generation.replay",
    autoretry_for=(OperationalError,),
    retry_backoff=True,
    max_retries=5,
)
def replay(replay_id: int) -> None:
    replaying.work_on_replay(replay_id=replay_id, is_stopping=stopping.is_set)


@shared_task(name="generation.wake_open_runs")
def wake_open_runs() -> None:
    """Wake workers for runs with a free chunk and for replays: after a lost wake-up, or a lapsed lease."""
    for run_id in GenerationRun.objects.waiting().values_list("pk", flat=True):
        wake_worker_for(run_id)
    for replay_id in Replay.objects.waiting().values_list("pk", flat=True):
        wake_worker_for_replay(replay_id)


@worker_ready.connect
def wake_on_start(**_) -> None:
    """A worker that comes back takes up what was left, without waiting for the periodic task."""
    wake_open_runs()
