"""Wake-ups: sent to the right queue, for runs that wait, and never a reason to fail."""

import threading

import pytest
from celery import Celery

from generation import tasks, wakeups
from generation.runs import cancel_run
from tests.factories import make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def wake(django_capture_on_commit_callbacks):
    """Wake a worker for a run, as after the transaction was stored."""

    def wake(run_id):
        with django_capture_on_commit_callbacks(execute=True):
            wakeups.wake_worker_for(run_id)

    return wake


def queue_at(url):
    """An application that sends there; given as ``broker``, Celery would prefer the environment's."""
    app = Celery("tests", set_as_current=False)
    app.conf.broker_write_url = url
    return app


def test_a_wake_up_names_the_run_and_expires(monkeypatch, wake):
    sent = []

    class Queue:
        def send_task(self, *message, **options):
            sent.append((message, options))

    monkeypatch.setattr(wakeups, "current_app", Queue())
    wake(12)
    assert sent == [(("generation.work_on_run", [12]), {"queue": "generation", "expires": 30})]


def test_the_periodic_task_wakes_workers_for_runs_that_wait_and_has_ended_ones_counted(
    sent, django_capture_on_commit_callbacks
):
    waiting, cancelled = make_run(), make_run()
    cancel_run(run=cancelled)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.wake_open_runs()
    assert sent == [
        ("generation.work_on_run", [waiting.pk], "generation"),
        ("generation.count_near_duplicates", [cancelled.pk], "default"),
    ]


def test_a_worker_that_starts_wakes_workers_for_the_runs_that_wait(sent, django_capture_on_commit_callbacks):
    run = make_run()
    with django_capture_on_commit_callbacks(execute=True):
        tasks.wake_on_start()
    assert sent == [("generation.work_on_run", [run.pk], "generation")]


def test_a_queue_that_cannot_be_reached_is_noted_and_no_more(monkeypatch, wake, caplog):
    monkeypatch.setattr(wakeups, "current_app", queue_at("redis://127.0.0.1:1/0"))
    wake(12)
    [record] = caplog.records
    assert (record.msg["event"], record.msg["run"], record.levelname) == ("wake_up_not_sent", 12, "WARNING")


def test_a_queue_folder_that_cannot_be_written_is_noted_and_no_more(monkeypatch, wake, caplog, tmp_path):
    options = {name: str(tmp_path / "messages") for name in ("data_folder_in", "data_folder_out")}
    full = queue_at("filesystem://localhost/")
    full.conf.broker_transport_options = options | {"control_folder": str(tmp_path / "control")}
    (tmp_path / "messages").write_text("not a folder")
    monkeypatch.setattr(wakeups, "current_app", full)
    wake(12)
    assert [record.msg["event"] for record in caplog.records] == ["wake_up_not_sent"]


def test_a_thread_of_the_web_server_sends_to_the_project_s_queue(settings):
    found = []

    def look():
        found.append((wakeups.current_app.main, wakeups.current_app.conf.broker_url))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [("humanval", settings.CELERY_BROKER_URL)]
