"""Whether this worker was asked to stop. Without asking, it would go on to the end of what it is at."""

import threading

from celery.signals import worker_shutting_down

asked = threading.Event()


class WorkerStopping(Exception):
    """This worker was asked to stop; what it has begun is left to others."""


@worker_shutting_down.connect
def stop_in_good_order(**_) -> None:
    asked.set()
