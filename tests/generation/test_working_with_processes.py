"""Real workers in processes of their own: killed, sharing a run, and stopped by a cancellation.

They are started as the Procfile does, on the test database and the real language model. What
the test sends them stands for the periodic task, which is not run here.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import environ
import pytest
import torch
from celery import Celery
from django.conf import settings
from django.db import connection

from generation import runs, working
from generation.models import GenerationRun
from generation.parameters import TopKParameters
from tests.factories import make_run

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 180
LEASE_SECONDS = 3


# --- Where the workers find what ------------------------------------------------------


def database_url(values):
    """The DATABASE_URL of Django's settings of a database; a host that is a folder holds its socket."""
    user, password, name = (quote(str(values[key]), safe="") for key in ("USER", "PASSWORD", "NAME"))
    host = values["HOST"]
    port = f":{values['PORT']}" if values["PORT"] else ""
    if host.startswith("/"):
        return f"postgres://{user}:{password}@{port}/{quote(host, safe='')}/{name}"
    return f"postgres://{user}:{password}@{host}{port}/{name}"


def own_broker(folder):
    """The broker of these tests: a folder, or of the surroundings' Redis the last database."""
    url = os.environ.get("CELERY_BROKER_URL", "")
    if urlsplit(url).scheme in ("redis", "rediss"):
        return urlsplit(url)._replace(path="/15").geturl()
    return url


class Surroundings:
    """A state folder, a queue and the test database; workers that live in them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "models").symlink_to(settings.VAR / "models")
        broker = own_broker(folder)
        self.output = folder / "workers.txt"
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "DATABASE_URL": database_url(connection.settings_dict),
            "CELERY_BROKER_URL": broker,
            "HUMANVAL_VAR": str(folder),
            "HUMANVAL_LEASE_SECONDS": str(LEASE_SECONDS),
            "OMP_NUM_THREADS": "1",  # or workers fight for the processors
        }
        self.queue = Celery("tests", set_as_current=False)
        # Not broker_url: Celery would prefer the environment's.
        self.queue.conf.broker_read_url = self.queue.conf.broker_write_url = broker or "filesystem://localhost/"
        if not broker:
            for name in ("messages", "control"):
                (folder / "queue" / name).mkdir(parents=True)
            self.queue.conf.broker_transport_options = {
                "data_folder_in": str(folder / "queue" / "messages"),
                "data_folder_out": str(folder / "queue" / "messages"),
                "control_folder": str(folder / "queue" / "control"),
            }
        self.workers: list[subprocess.Popen] = []
        self.purge()

    def purge(self) -> None:
        """Let no worker find messages of earlier tests."""
        with self.queue.connection_for_write() as to_broker:
            channel = to_broker.default_channel
            channel.queue_declare("generation", durable=True)
            channel.queue_purge("generation")

    def start_worker(self, name: str = "one") -> subprocess.Popen:
        celery = [
            sys.executable,
            "-m",
            "celery",
            "--app",
            "config",
            "worker",
            "--queues",
            "generation",
            "--pool",
            "solo",
        ]
        with self.output.open("a") as output:
            worker = subprocess.Popen(
                [*celery, "--hostname", f"{name}@%h", "--loglevel", "warning"],
                cwd=ROOT,
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.workers.append(worker)
        return worker

    def kill(self, worker: subprocess.Popen) -> None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def wake(self, run) -> None:
        self.queue.send_task("generation.work_on_run", [run.pk], queue="generation", expires=10)

    def wait_until(self, happened, *, run) -> None:
        """Wake workers each second until it has happened."""
        deadline = time.monotonic() + SECONDS
        next_wake_up = 0.0
        while not happened():
            assert time.monotonic() < deadline, self.output.read_text()
            assert [worker.poll() for worker in self.workers].count(None), self.output.read_text()
            if time.monotonic() > next_wake_up:
                self.wake(run)
                next_wake_up = time.monotonic() + 1
            time.sleep(0.02)


@pytest.fixture
def surroundings(language_model, tmp_path):
    with ended_with_the_test(Surroundings(tmp_path / "state")) as surroundings:
        yield surroundings


@contextmanager
def ended_with_the_test(surroundings):
    try:
        yield surroundings
    finally:
        for worker in surroundings.workers:
            if worker.poll() is None:
                surroundings.kill(worker)
        surroundings.purge()
        surroundings.queue.close()


@pytest.fixture
def one_thread():
    """This process computes as the workers do, to the last digit."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def small_chunks(settings):
    """Chunks of three short statements, which take about two seconds each."""
    settings.CHUNK_SIZE = 3


def order(count, *, seed=7):
    return make_run(
        count=count, seed=seed, language_model=settings.LANGUAGE_MODEL, topk=TopKParameters(max_new_tokens=8)
    )


def stored(run):
    """The statements of a run by chunk and place."""
    return list(run.generations.order_by("chunk__index", "position").values_list("chunk__index", "position", "text"))


def state_of(run):
    return GenerationRun.objects.get(pk=run.pk).state


def assert_complete(run, *, count):
    """Every place is filled once and no text is there twice."""
    statements = stored(run)
    places = [(chunk, position) for chunk, position, _ in statements]
    assert places == [(place // 3, place % 3) for place in range(count)]
    assert len({text.lower() for *_, text in statements}) == count


# --- The tests --------------------------------------------------------------------------


def test_a_worker_killed_in_the_middle_of_a_run_and_started_again_completes_it_with_nothing_lost_or_doubled(
    surroundings, one_thread
):
    undisturbed = order(9)
    working.work_on_run(run_id=undisturbed.pk)
    assert state_of(undisturbed) == "finished"

    run = order(9)
    worker = surroundings.start_worker()
    in_the_middle = run.chunks.exclude(finished_at=None).exists
    surroundings.wait_until(lambda: in_the_middle() and run.chunks.exclude(lease_token=None).exists(), run=run)
    surroundings.kill(worker)

    assert worker.returncode == -signal.SIGKILL
    assert state_of(run) == "running"
    assert 3 <= len(stored(run)) < 9
    [held] = run.chunks.exclude(lease_token=None)
    assert held.generations.count() == 0

    surroundings.start_worker()
    surroundings.wait_until(lambda: state_of(run) != "running", run=run)
    assert state_of(run) == "finished"
    assert_complete(run, count=9)
    assert stored(run) == stored(undisturbed)
    held.refresh_from_db()
    assert held.leases >= 2


def test_a_worker_asked_to_stop_ends_at_its_next_step_and_leaves_no_lease_behind(surroundings):
    run = order(300)
    worker = surroundings.start_worker()
    surroundings.wait_until(run.generations.exists, run=run)
    worker.terminate()
    assert worker.wait(timeout=SECONDS) == 0
    assert state_of(run) == "running"
    assert not run.chunks.exclude(lease_token=None).exists()
    assert len(stored(run)) == 3 * run.chunks.exclude(finished_at=None).count() < 300


def test_two_workers_share_a_run_and_a_cancelled_run_is_left_for_the_next(surroundings):
    for name in ("one", "two"):
        surroundings.start_worker(name)
    long = order(300)
    in_hand = long.chunks.exclude(lease_token=None)
    surroundings.wait_until(lambda: in_hand.count() == 2 and long.generations.exists(), run=long)
    runs.cancel_run(run=long)
    kept = stored(long)

    short = order(6, seed=8)
    surroundings.wait_until(lambda: state_of(short) == "finished", run=short)
    assert_complete(short, count=6)
    assert (short.cells.get().stored, long.cells.get().stored) == (6, len(kept))
    assert (state_of(long), stored(long)) == ("cancelled", kept)
    assert long.chunks.filter(leases=0).count() > 80


@pytest.mark.parametrize(
    "values",
    [
        {"HOST": "127.0.0.1", "PORT": 5432, "USER": "postgres", "PASSWORD": "p@ss/w:rd%", "NAME": "test_a b"},
        {"HOST": "/var/lib/a b/postgres", "PORT": 5432, "USER": "postgres", "PASSWORD": "", "NAME": "test_humanval"},
        {"HOST": "/tmp/humanval-1f", "PORT": "", "USER": "postgres", "PASSWORD": "", "NAME": "test_humanval"},
        {"HOST": "", "PORT": "", "USER": "", "PASSWORD": "", "NAME": "test_humanval"},
    ],
)
def test_the_settings_read_the_address_of_the_test_database_as_it_was_meant(values):
    parsed = environ.Env().db_url_config(database_url(values))
    assert {key: parsed[key] for key in values} == values
