"""Drawing a set in real processes: one killed in the middle of storing, and two at the same set."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

import pytest
from django.conf import settings
from django.db import connection, transaction

from analysis.humanval import drawing, pool, sets
from analysis.models import HumanvalSet, HumanvalStatement, RemovedFromTraining
from generation.models import Generation
from tests.analysis.humanval_world import ids_of, removed_for, scattered
from tests.factories import make_generation
from tests.generation.test_working_with_processes import database_url

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
LEASE_SECONDS = 2
DRAW = """
import sys, django
django.setup()
from analysis.humanval import drawing
drawing.work_on_set(set_id=int(sys.argv[1]))
"""


def start(wanted):
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": database_url(connection.settings_dict),
        "HUMANVAL_VAR": str(settings.VAR),
        "HUMANVAL_LEASE_SECONDS": str(LEASE_SECONDS),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.Popen([sys.executable, "-c", DRAW, str(wanted.pk)], cwd=ROOT, env=environment)


def wait_until(happened):
    deadline = time.monotonic() + SECONDS
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def somebody_waits_for_a_lock():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = %s::regclass", [REMOVED])
        return cursor.fetchone()[0] > 0


REMOVED = RemovedFromTraining._meta.db_table


@pytest.fixture
def wanted():
    scattered(10)
    wanted = sets.ask_for_set(size=16, seed=1, wake=False)
    drawing.fix_statements(wanted)
    return wanted


def test_a_worker_killed_while_it_stores_leaves_nothing_and_another_one_draws_the_same(wanted):
    expected = drawing.draw(wanted)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {REMOVED} IN ACCESS EXCLUSIVE MODE")
        worker = start(wanted)
        wait_until(somebody_waits_for_a_lock)  # its statements are inserted, and not committed
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    wait_until(lambda: not somebody_waits_for_a_lock())
    assert worker.returncode == -signal.SIGKILL
    assert not HumanvalStatement.objects.exists()
    wanted.refresh_from_db()
    assert (wanted.state, wanted.leases) == ("wanted", 1)
    assert wanted.lease_expires_at is not None

    def is_drawn():
        second = start(wanted)
        assert second.wait(timeout=SECONDS) == 0
        return HumanvalSet.objects.get().state == "drawn"

    wait_until(is_drawn)
    wanted.refresh_from_db()
    assert wanted.leases == 2
    assert sorted(ids_of(wanted)) == sorted(expected.ids.tolist())
    assert removed_for(wanted) == dict(zip(expected.removed.tolist(), expected.nearest.tolist(), strict=True))


def hold_a_statement(stored, released):
    """Store one in a transaction that stays open."""
    with transaction.atomic():
        make_generation("stored later")
        stored.set()
        released.wait(SECONDS)
    connection.close()


def store_some(texts):
    """Store some, one after the other, as far as nobody holds them up."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '100ms'")
    for text in texts:
        make_generation(text)
        time.sleep(0.05)
    connection.close()


def test_the_newest_statement_is_waited_for_and_holds_nobody_up(monkeypatch):
    make_generation()
    stored, released = Event(), Event()
    importing = Thread(target=hold_a_statement, args=[stored, released])
    importing.start()
    assert stored.wait(SECONDS)
    texts = [f"stored meanwhile {number}" for number in range(8)]
    others = Thread(target=store_some, args=[texts])
    others.start()
    monkeypatch.setattr(pool, "PATIENCE", 0.5)
    with pytest.raises(pool.StatementsBeingStored, match="An import or a run is storing statements"):
        pool.newest_statement()
    others.join()
    assert Generation.objects.filter(text__in=texts).count() == len(texts)
    released.set()
    importing.join()
    assert pool.newest_statement() == Generation.objects.latest("pk").pk


def test_two_workers_at_the_same_set_draw_it_once(wanted):
    workers = [start(wanted), start(wanted)]
    assert [worker.wait(timeout=SECONDS) for worker in workers] == [0, 0]
    wanted.refresh_from_db()
    assert (wanted.state, wanted.leases, wanted.statements.count()) == ("drawn", 1, 16)
