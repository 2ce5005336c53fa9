"""Several workers in one test: threads, each with a database connection of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from django.db import connections, transaction

SECONDS = 10


def start(function: Callable) -> Future:
    """Call ``function`` in a thread; the future has what it returned or raised."""

    def call():
        try:
            return function()
        finally:
            connections.close_all()

    pool = ThreadPoolExecutor(1)
    future = pool.submit(call)
    pool.shutdown(wait=False)
    return future


def at_once(*functions: Callable) -> list:
    """Call each in a thread of its own, starting together; return what each returned or raised."""
    together = threading.Barrier(len(functions))

    def call_when_all_are_ready(function):
        together.wait(SECONDS)
        return function()

    futures = [start(lambda function=function: call_when_all_are_ready(function)) for function in functions]
    return [future.exception(SECONDS) or future.result() for future in futures]


class Held:
    """``function`` called in a transaction that is stored only when the block ends."""

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.called, self.let_go = threading.Event(), threading.Event()

    def __enter__(self) -> "Held":
        self.future = start(self._run)
        assert self.called.wait(SECONDS)
        return self

    def __exit__(self, *_) -> None:
        self.let_go.set()
        self.future.result(SECONDS)

    def _run(self):
        try:
            with transaction.atomic():
                self.function()
                self.called.set()
                assert self.let_go.wait(SECONDS)
        finally:
            self.called.set()
