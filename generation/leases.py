"""Leases on what somebody waits for, a replay or a trial: one worker has it at a time, and if that dies another.

Such a row has ``lease_expires_at``, ``leases``, ``finished_at`` and ``failure``, and a queryset ``waiting()``. If it
has a ``lease_token``, too, only who took it up last can keep it, give it back or finish it.
"""

from datetime import timedelta
from uuid import UUID, uuid4

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


def take_up(waiting: models.QuerySet, *, pk: int) -> UUID | None:
    """Lease the row with this id, if it is still waiting. Return the token of the lease; ``None``: it was not.

    The lease lasts while models are loaded, when nobody can ``keep`` it: a worker that dies of that has taken the row
    up like any other, and is not followed by others without end. ``begin`` then shortens the lease.
    """
    token = uuid4()
    lease = {"lease_expires_at": timezone.now() + max(_length(), LOADING), "leases": F("leases") + 1}
    if _has_token(waiting.model):
        lease["lease_token"] = token
    return token if waiting.filter(pk=pk).update(**lease) else None


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
    if not _mine(row).update(lease_expires_at=end):
        raise FinishedElsewhere(f"{row} was taken up or finished by somebody else.")
    row.lease_expires_at = end


def give_back(row: models.Model) -> None:
    """Let others take it up at once; a worker that stops in good order does not count against it."""
    _mine(row).update(**_no_lease(row), leases=_one_less())


def drop(row: models.Model) -> None:
    """Let others take it up at once; it counts as taken up, since what went wrong may go wrong again."""
    _mine(row).update(**_no_lease(row))


def forgive(row: models.Model) -> None:
    """Go on, but let it not count as taken up: the worker was asked to stop, and may not come to the end."""
    _mine(row).update(leases=_one_less())


def finish(row: models.Model, **found) -> bool:
    """Store what was found, or the ``failure``, once and for all. Return whether it was unfinished, and ours."""
    return bool(_mine(row).update(**{"finished_at": timezone.now(), **_no_lease(row), **found}))


def call_off(row: models.Model, **found) -> bool:
    """Finish it whoever is at it. Return whether it was unfinished."""
    return bool(_unfinished(row).update(finished_at=timezone.now(), **_no_lease(row), **found))


def _unfinished(row: models.Model) -> models.QuerySet:
    return type(row).objects.filter(pk=row.pk, finished_at=None)


def _mine(row: models.Model) -> models.QuerySet:
    unfinished = _unfinished(row)
    return unfinished.filter(lease_token=row.lease_token) if _has_token(row) else unfinished


def _no_lease(row: models.Model) -> dict[str, None]:
    return dict.fromkeys(("lease_expires_at", "lease_token") if _has_token(row) else ("lease_expires_at",))


def _has_token(model: models.Model | type[models.Model]) -> bool:
    return any(field.name == "lease_token" for field in model._meta.concrete_fields)


def _one_less() -> Greatest:
    return Greatest(F("leases") - 1, 0)


def _length() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)
