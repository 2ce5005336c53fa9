"""Leasing a chunk of a reading, keeping the lease, and storing what a model made of its statements exactly once."""

import uuid
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from generation.chunks import MAX_LEASES, LeaseLost
from generation.leases import LOADING
from generation.models import Generation, ReaderKind, Reading, ReadingChunk, TextReader
from generation.read_values import VALUES
from generation.readings import fail_reading, finish_reading_if_complete, no_number

ROWS_AT_ONCE = 500

log = structlog.get_logger(__name__)


@transaction.atomic
def lease_next_chunk(*, reading_id: int, is_loaded: bool = False) -> ReadingChunk | None:
    """Take up the first free chunk of a reading, or return ``None`` if there is none.

    Unless the model ``is_loaded``, the lease lasts while it is, when nobody can keep it; ``begin`` shortens it. A
    chunk that was taken up ``MAX_LEASES`` times without being stored fails the reading: it would stop every worker in
    turn.
    """
    chunk = (
        ReadingChunk.objects.free()
        .filter(reading=reading_id)
        .select_related("reading__reader")
        .select_for_update(skip_locked=True, of=("self",))
        .order_by("index")
        .first()
    )
    if chunk is None:
        return None
    if chunk.leases >= MAX_LEASES:
        fail_reading(
            reading_id=reading_id,
            reason=f"Statements {chunk.generations[0]} to {chunk.generations[-1]} were taken up {chunk.leases} times "
            "and their worker stopped each time. See the workers' logs; a machine short of memory does this.",
        )
        return None
    if chunk.leases:
        log.warning("lapsed_chunk_taken_up_again", reading=reading_id, chunk=chunk.index, leases=chunk.leases)
    chunk.lease_token = uuid.uuid4()
    chunk.lease_expires_at = timezone.now() + (_length() if is_loaded else max(_length(), LOADING))
    chunk.leases += 1
    chunk.save(update_fields=["lease_token", "lease_expires_at", "leases"])
    Reading.objects.unended().filter(pk=reading_id).update(started_at=Coalesce("started_at", timezone.now()))
    return chunk


def begin(*, chunk: ReadingChunk) -> None:
    """Go on with a lease of the usual length: the model is loaded. Raise ``LeaseLost`` as ``keep_lease`` does."""
    _renew(chunk)


def keep_lease(*, chunk: ReadingChunk) -> None:
    """Put off the end of a lease once half of it has gone; raise ``LeaseLost`` if it is ours no more."""
    if chunk.lease_expires_at - timezone.now() > _length() / 2:
        return
    _renew(chunk)


def give_back_chunk(*, chunk: ReadingChunk) -> None:
    """Let others take a chunk up at once; a worker that is alive does not count against it.

    If somebody else has it by now, they keep it.
    """
    unfinished = ReadingChunk.objects.filter(pk=chunk.pk, finished_at=None)
    unfinished.update(leases=Greatest(F("leases") - 1, 0))
    unfinished.filter(lease_token=chunk.lease_token).update(lease_token=None, lease_expires_at=None)


@transaction.atomic
def store_chunk(*, chunk: ReadingChunk, reader: TextReader, values: dict[int, dict | None], seconds: float) -> None:
    """Store the ``values`` of a chunk's statements, count them, and end a complete reading, all at once.

    Statements of no number are noted; if there are only such from the start, the reading ends. Raises ``LeaseLost`` if
    somebody else has the chunk by now or the reading ended; nothing is stored then.
    """
    ours = ReadingChunk.objects.filter(pk=chunk.pk, lease_token=chunk.lease_token, finished_at=None)
    reading = Reading.objects.unended().filter(pk=chunk.reading_id)
    # The lock on the reading keeps it from being stopped meanwhile, and of two workers that store the last two chunks
    # it lets the second see that both are stored. Everybody locks the chunk first.
    if not ours.select_for_update().exists() or not reading.select_for_update(no_key=True).exists():
        raise LeaseLost(f"{chunk} is not ours any more.")
    store_values(reader=reader, values=values)
    without = sorted(pk for pk, value in values.items() if value is None)
    ours.update(lease_token=None, lease_expires_at=None, finished_at=timezone.now(), without_number=without)
    reading.update(
        read=F("read") + len(chunk.generations) - len(without),
        computed=F("computed") + len(values),
        seconds=F("seconds") + seconds,
    )
    if not finish_reading_if_complete(reading_id=chunk.reading_id) and reading.filter(read=0).exists():
        fail_reading(reading_id=chunk.reading_id, reason=no_number(reader.name, without))


def store_values(*, reader: TextReader, values: dict[int, dict | None]) -> None:
    """Store what a reader made of statements, by their ids; what is stored already stays as it is.

    What is no number is not stored, nor what was made of a statement that was deleted meanwhile. Called in a
    transaction.
    """
    rows = VALUES[ReaderKind(reader.kind)]
    # In the order of the ids, so that two workers that store the same statements do not wait for each other in turn.
    there = Generation.objects.filter(pk__in=values).order_by("pk").select_for_update(no_key=True)
    rows.objects.bulk_create(
        (
            rows(reader=reader, generation_id=pk, **value)
            for pk in there.values_list("pk", flat=True)
            if (value := values[pk]) is not None
        ),
        ignore_conflicts=True,
        batch_size=ROWS_AT_ONCE,
    )


def _renew(chunk: ReadingChunk) -> None:
    end = timezone.now() + _length()
    ours = ReadingChunk.objects.filter(
        pk=chunk.pk, lease_token=chunk.lease_token, finished_at=None, reading__finished_at=None
    )
    if not ours.update(lease_expires_at=end):
        raise LeaseLost(f"{chunk} is not ours any more.")
    chunk.lease_expires_at = end


def _length() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)
