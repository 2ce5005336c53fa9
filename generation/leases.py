"""Leases on what somebody waits for, a replay or a trial: one worker has it at a time, and if that dies another.

Such a row has ``lease_expires_at``, ``leases``, ``finished_at`` and ``failure``, and a queryset ``waiting()``.
"""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone

MAX_LEASES = 3
LOADING = timedelta(minutes=10)
"""How long the largest models may take to be loaded, or fetched."""
STOPPED_EACH_TIME = (
    f"Its worker stopped {MAX_LEASES} times before the end. See the workers' logs; a machine short of memory does this."
)


class FinishedElsewhere(RuntimeError):
    """Somebody else finished it, or it was asked for anew."""


def take_up(waiting: models.QuerySet, *, pk: int) -> bool:
    """Lease the row with this id, if it is still waiting. Return whether it was.

    The lease lasts while models are loaded, when nobody can ``keep`` it: a worker that dies of that has taken the row
    up like any other, and is not followed by others without end. ``begin`` then shortens the lease.
    """
    end = timezone.now() + max(_length(), LOADING)
    return bool(waiting.filter(pk=pk).update(lease_expires_at=end, leases=F("leases") + 1))


def begin(row: models.Model) -> None:
    """Go on with a lease of the usual length: the models are loaded. Raise ``FinishedElsewhere`` as ``keep`` does."""
    _renew(row)


def is_worn_out(row: models.Model) -> bool:
    """Whether it was taken up so often without an end that it would stop every worker in turn."""
    return row.leases > MAX_LEASES


def keep(row: models.Model) -> None:
    """Put off the end of a lease once half of it has gone; raise ``FinishedElsewhere`` if others were quicker."""
    if row.lease_expires_at - timezone.now() > _length() / 2:
        return
    _renew(row)


def _renew(row: models.Model) -> None:
    end = timezone.now() + _length()
    if not _unfinished(row).update(lease_expires_at=end):
        raise FinishedElsewhere(f"{row} was finished by somebody else.")
    row.lease_expires_at = end


def give_back(row: models.Model) -> None:
    """Let others take it up at once; a worker that stops in good order does not count against it."""
    _unfinished(row).update(lease_expires_at=None, leases=Greatest(F("leases") - 1, 0))


def finish(row: models.Model, **found) -> bool:
    """Store what was found, or the ``failure``, once and for all. Return whether the row was unfinished."""
    return bool(_unfinished(row).update(finished_at=timezone.now(), lease_expires_at=None, **found))


def _unfinished(row: models.Model) -> models.QuerySet:
    return type(row).objects.filter(pk=row.pk, finished_at=None)


def _length() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)
