"""Acts in threads, each with a database connection of its own."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connection, connections, transaction


def on_its_own_connection(act):
    """Return what the act returned or raised."""
    try:
        return act()
    except Exception as error:
        return error
    finally:
        connections.close_all()


def at_once(*acts):
    """Start the acts together and return what each returned or raised, in their order."""
    start = threading.Barrier(len(acts))

    def run(act):
        start.wait()
        return on_its_own_connection(act)

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(run, acts))


def in_the_background(act):
    """Start the act; the result() of what is returned waits for it."""
    thread = ThreadPoolExecutor(1)
    running = thread.submit(on_its_own_connection, act)
    thread.shutdown(wait=False)
    return running


@contextmanager
def stored_at_the_end(act):
    """The act is done in a transaction that ends with the block."""
    done, end = threading.Event(), threading.Event()

    def run():
        with transaction.atomic():
            result = act()
            done.set()
            assert end.wait(10), "the block waited for this act"
        return result

    running = in_the_background(run)
    try:
        assert done.wait(10), running.result()
        yield running
    finally:
        end.set()
        if isinstance(running.result(), AssertionError):
            raise running.result()


def wait_until_somebody_waits_for_a_lock():
    time.sleep(0.1)  # who was let go a moment ago may still be listed
    with connection.cursor() as cursor:
        for _ in range(500):
            cursor.execute("SELECT pg_stat_clear_snapshot(), pg_sleep(0.01)")
            cursor.execute(
                "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            if cursor.rowcount:
                return
    pytest.fail("nobody waited for a lock")
