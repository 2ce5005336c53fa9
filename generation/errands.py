"""Carrying out what somebody waits for, a replay or a trial: whatever goes wrong ends on its page."""

from collections.abc import Callable

import structlog
from django.db import OperationalError, models

from generation import leases
from generation.stopping import WorkerStopping
from generation.working import reasons_to_fail, reasons_to_pause

log = structlog.get_logger(__name__)


def carry_out(
    row: models.Model | None,
    work: Callable[[Callable[[], None]], None],
    *,
    load: Callable[[], object],
    is_stopping: Callable[[], bool],
) -> None:
    """``load`` models and do ``work`` for a leased row; work calls what it is given at every step, to keep the lease.

    Once ``is_stopping`` says so, the row is given back for others to take up at once.
    """
    if row is None:
        return

    def on_step() -> None:
        if is_stopping():
            raise WorkerStopping
        leases.keep(row)

    try:
        on_step()
        load()
        leases.begin(row)
        work(on_step)
    except WorkerStopping:
        leases.give_back(row)
    except leases.FinishedElsewhere as lost:
        log.info("lease_lost", row=str(row), reason=str(lost))
    except (*reasons_to_pause(), *reasons_to_fail()) as error:
        fail(row, str(error))
    except OperationalError:
        raise  # the database is away: it is taken up again when it is back
    except Exception as error:
        # Whatever it was, the page has to say so; the queue would only log it.
        fail(row, f"The worker stopped with an error: {type(error).__name__}: {error}")
        raise


def fail(row: models.Model, reason: str) -> None:
    log.warning("failed", row=str(row), reason=reason)
    leases.finish(row, failure=reason)
