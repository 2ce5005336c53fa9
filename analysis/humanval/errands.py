"""Carrying out what a worker has leased, a drawing or a proof: whatever goes wrong ends on the set's page."""

from collections.abc import Callable

import structlog
from django.db import OperationalError, models

from generation import leases
from generation.read_values import NotRead
from generation.stopping import WorkerStopping

log = structlog.get_logger(__name__)


def carry_out(
    row: models.Model,
    work: Callable[[Callable[..., None]], None],
    *,
    refusals: tuple[type[Exception], ...],
    is_stopping: Callable[[], bool] = lambda: False,
    **failed: str,
) -> None:
    """Do ``work`` for a leased row; work calls what it is given at every step, to keep the lease.

    Once ``is_stopping`` says so, or where embeddings went missing, the row is given back for others to take up.
    ``refusals`` end it in their own words; ``failed`` are the other fields of a row that failed.
    """
    if leases.is_worn_out(row):
        fail(row, leases.STOPPED_EACH_TIME, **failed)
        return

    def on_step(*_: int) -> None:
        if is_stopping():
            raise WorkerStopping
        leases.keep(row)

    try:
        work(on_step)
    except WorkerStopping:
        leases.give_back(row)
    except NotRead as later:
        log.info("humanval_put_off", row=str(row), reason=str(later))
        leases.drop(row)
    except leases.FinishedElsewhere as lost:
        log.info("lease_lost", row=str(row), reason=str(lost))
    except refusals as refused:
        fail(row, str(refused), **failed)
    except OperationalError:
        raise  # the database is away: it is taken up again when it is back
    except Exception as error:
        # Whatever it was, the set's page has to say so; the queue would only log it.
        fail(row, f"The worker stopped with an error: {type(error).__name__}: {error}", **failed)
        raise


def fail(row: models.Model, reason: str, **failed: str) -> None:
    """End a row with the reason that its page shows, unless it is others' by now."""
    if leases.finish(row, failure=reason, **failed):
        log.warning("failed", row=str(row), reason=reason)
