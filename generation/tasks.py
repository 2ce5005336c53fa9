"""Queue tasks: each takes ids, calls one act and is safe to run twice."""

from functools import partial

from celery import shared_task
from celery.signals import worker_ready
from django.db import OperationalError

from generation import counting, reading, replaying, stopping, trying, working
from generation.models import GenerationRun, Reading, Replay, Trial
from generation.wakeups import (
    ask_to_count,
    wake_worker_for,
    wake_worker_for_reading,
    wake_worker_for_replay,
    wake_worker_for_trial,
)

RUNS_COUNTED_AT_ONCE = 3


@shared_task(
    name="generation.work_on_run",
    autoretry_for=(OperationalError,),  # the database restarting; anything else ends on the run's page
    retry_backoff=True,
    max_retries=5,
)
def work_on_run(run_id: int) -> None:
    working.work_on_run(
        run_id=run_id,
        is_stopping=stopping.asked.is_set,
        between_chunks=partial(trying.work_on_waiting_trials, is_stopping=stopping.asked.is_set),
    )


@shared_task(
    name="generation.replay",
    autoretry_for=(OperationalError,),
    retry_backoff=True,
    max_retries=5,
)
def replay(replay_id: int) -> None:
    replaying.work_on_replay(replay_id=replay_id, is_stopping=stopping.asked.is_set)


@shared_task(
    name="generation.trial",
    autoretry_for=(OperationalError,),
    retry_backoff=True,
    max_retries=5,
)
def trial(trial_id: int) -> None:
    trying.work_on_trial(trial_id=trial_id, is_stopping=stopping.asked.is_set)


@shared_task(
    name="generation.read_statements",
    autoretry_for=(OperationalError,),
    retry_backoff=True,
    max_retries=5,
)
def read_statements(reading_id: int) -> None:
    """What people wait for goes before readings, which may take hours."""
    reading.work_on_readings(
        first=reading_id,
        is_stopping=stopping.asked.is_set,
        others_wait=lambda: GenerationRun.objects.waiting().exists() or Replay.objects.waiting().exists(),
        between_chunks=partial(trying.work_on_waiting_trials, is_stopping=stopping.asked.is_set),
    )


@shared_task(name="generation.count_near_duplicates", autoretry_for=(OperationalError,), max_retries=5)
def count_near_duplicates(run_id: int) -> None:
    counting.count_near_duplicates(run_id=run_id)


@shared_task(name="generation.wake_open_runs")
def wake_open_runs() -> None:
    """Wake workers for trials, runs with a free chunk, replays and readings: after a lost wake-up, or a lapsed lease.

    The same for ended runs that nobody has counted yet.
    """
    for trial_id in Trial.objects.waiting().values_list("pk", flat=True):
        wake_worker_for_trial(trial_id)
    for run_id in GenerationRun.objects.waiting().values_list("pk", flat=True):
        wake_worker_for(run_id)
    for replay_id in Replay.objects.waiting().values_list("pk", flat=True):
        wake_worker_for_replay(replay_id)
    for reading_id in Reading.objects.waiting().values_list("pk", flat=True):
        wake_worker_for_reading(reading_id)
    for run_id in GenerationRun.objects.never_counted().values_list("pk", flat=True)[:RUNS_COUNTED_AT_ONCE]:
        ask_to_count(run_id)


@worker_ready.connect
def wake_on_start(**_) -> None:
    """A worker that comes back takes up what was left, without waiting for the periodic task."""
    wake_open_runs()
