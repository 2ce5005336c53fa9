"""Keeping a lease from a thread, for work that has no steps at which it could be kept."""

import threading
from collections.abc import Callable

import structlog
from django.conf import settings
from django.db import Error, connection

log = structlog.get_logger(__name__)


class Keeper(threading.Thread):
    """Calls ``keep`` from time to time while something is worked on, on a database connection of its own.

    That is every quarter of a lease, or ``every`` so many seconds if that is sooner. It cannot end the work: once
    ``keep`` raises ``lost``, it only stops. ``of`` is what the lease is of, as logs name it.
    """

    def __init__(
        self, keep: Callable[[], object], *, lost: type[Exception], of: object, every: float = float("inf")
    ) -> None:
        super().__init__(daemon=True, name=f"keeper of {of}")
        self._keep, self._lost, self._of, self._every = keep, lost, of, every
        self._done = threading.Event()

    def run(self) -> None:
        try:
            while not self._done.wait(min(settings.LEASE_SECONDS / 4, self._every)):
                try:
                    self._keep()
                except self._lost:
                    return
                except Error as error:  # the database is away; it may be back the next time
                    log.warning("lease_not_kept", of=str(self._of), error=str(error))
                    connection.close()
        finally:
            connection.close()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_exception) -> None:
        self._done.set()
        self.join()
