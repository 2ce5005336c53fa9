"""Workers as the Procfile has them: what has to happen every few seconds does not wait for a report."""

import shlex
import subprocess
import sys
import time
from functools import partial

import pytest
from django.db import connection, transaction
from django.utils import timezone

from analysis.models import HumanLabel, StoredReport
from analysis.reports import storing
from annotator.models import HIT
from generation import wakeups
from generation.models import GenerationChunk
from tests.factories import make_generation, make_hit_type, make_run
from tests.generation.test_working_with_processes import ROOT, Surroundings

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 90


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    found = Surroundings(tmp_path / "state")
    monkeypatch.setattr(wakeups, "current_app", found.queue)
    yield found
    for worker in found.workers:
        found.kill(worker)


def start(surroundings, name):
    """The Procfile's line of this name."""
    lines = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines())
    with surroundings.output.open("a") as output:
        surroundings.workers.append(
            subprocess.Popen(
                [sys.executable, "-m", *shlex.split(lines[name])],
                cwd=ROOT,
                env=surroundings.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        )


def wait_until(happened, surroundings, *, do):
    """Do something each second until it has happened."""
    deadline = time.monotonic() + SECONDS
    while not happened():
        assert time.monotonic() < deadline, surroundings.output.read_text()
        do()
        time.sleep(1)


def test_statements_are_published_while_a_report_is_worked_out(surroundings):
    run = make_run(1)
    make_hit_type(run=run)
    chunk = run.chunks.get()
    make_generation(run=run, chunk=chunk, position=0)
    GenerationChunk.objects.filter(pk=chunk.pk).update(finished_at=timezone.now())
    stored = storing.look_at("human-validation", {})
    again = partial(surroundings.queue.send_task, storing.WORK_OUT, [stored.pk], queue="reports")
    publish = partial(surroundings.queue.send_task, "annotator.publish_new_statements", queue="default")
    with transaction.atomic():
        with connection.cursor() as cursor:  # the report waits for these, and takes as long as we like
            cursor.execute(f"LOCK TABLE {HumanLabel._meta.db_table} IN ACCESS EXCLUSIVE MODE")
        start(surroundings, "default")
        start(surroundings, "reports")
        at_work = StoredReport.objects.filter(lease_expires_at__isnull=False)
        wait_until(at_work.exists, surroundings, do=again)
        assert not HIT.objects.exists()
        wait_until(HIT.objects.exists, surroundings, do=publish)
        assert at_work.exists()
    wait_until(StoredReport.objects.filter(payload__isnull=False).exists, surroundings, do=lambda: None)
