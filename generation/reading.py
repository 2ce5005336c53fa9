"""What a worker does with a reading: lease a chunk, have its statements read, store that, until none is left."""

import time
from collections.abc import Callable, Iterable
from functools import partial

import structlog
from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from generation import working
from generation.chunks import LeaseLost
from generation.keeping import Keeper
from generation.models import Generation, Precision, ReaderKind, Reading, ReadingChunk, TextReader
from generation.read_values import missing, unread
from generation.reading_chunks import begin, give_back_chunk, keep_lease, lease_next_chunk, store_chunk, store_values
from generation.reading_texts import Portion, load_model, read_all
from generation.readings import ENCODER, ReadingFailed, fail_reading, no_number
from generation.stopping import WorkerStopping

STINT = 60
"""Seconds that a worker stays with a reading while others wait; longer, if the model took long to load."""
LOADS_WORTH = 4
EMBEDDED_AT_ONCE = 1024

log = structlog.get_logger(__name__)


def work_on_readings(
    *,
    first: int,
    is_stopping: Callable[[], bool] = lambda: False,
    others_wait: Callable[[], bool] = lambda: False,
    between_chunks: Callable[[], None] = lambda: None,
) -> None:
    """Work on the readings that wait, a stint each in turn from the ``first`` on, until none waits or others do.

    Safe to run twice and at once. ``others_wait`` says whether there is something that goes before readings.
    """
    reading_id: int | None = first
    while reading_id is not None and not is_stopping():
        work_on_reading(
            reading_id=reading_id, is_stopping=is_stopping, others_wait=others_wait, between_chunks=between_chunks
        )
        if others_wait():
            return
        waiting = Reading.objects.waiting().order_by("pk").values_list("pk", flat=True)
        reading_id = waiting.filter(pk__gt=reading_id).first() or waiting.first()


def work_on_reading(
    *,
    reading_id: int,
    is_stopping: Callable[[], bool] = lambda: False,
    others_wait: Callable[[], bool] = lambda: False,
    between_chunks: Callable[[], None] = lambda: None,
) -> None:
    """Work on a reading until no chunk is free, it ends, ``others_wait`` or a stint is over. Safe to run twice, too.

    Whatever goes wrong ends the reading with the reason: what was read is kept, and another one reads the rest.
    """
    portion = Portion()
    stint_ends = None
    while stint_ends is None or time.monotonic() < stint_ends:
        _do_between(between_chunks, reading_id)
        if is_stopping() or others_wait():
            return
        chunk = lease_next_chunk(reading_id=reading_id, is_loaded=stint_ends is not None)
        if chunk is None:
            return
        started = time.monotonic()
        try:
            reader = begin_with(chunk, is_first=stint_ends is None)
            if stint_ends is None:
                stint_ends = time.monotonic() + max(STINT, LOADS_WORTH * (time.monotonic() - started))
            read_chunk(chunk=chunk, reader=reader, is_stopping=is_stopping, portion=portion)
            continue
        except LeaseLost as lost:  # others have that chunk, or the reading ended: then there is no next one
            log.info("lease_lost", reading=reading_id, reason=str(lost))
            give_back_chunk(chunk=chunk)
            continue
        except WorkerStopping:
            pass
        except _reasons_to_fail() as error:
            fail_reading(reading_id=reading_id, reason=str(error))
        except OperationalError:
            raise  # the database is away: the reading goes on when it is back
        except Exception as error:
            # Whatever it was, the reading's page has to say so; the queue would only log it.
            reason = f"The worker stopped with an error: {type(error).__name__}: {error}"
            fail_reading(reading_id=reading_id, reason=reason)
            raise
        give_back_chunk(chunk=chunk)
        return


def begin_with(chunk: ReadingChunk, *, is_first: bool) -> TextReader:
    """Load a leased chunk's model, unless it was the last that this process loaded, and say which reader that is.

    Raises ``ReadingFailed`` if it is not the reader that the reading was begun with.
    """
    from generation.devices import describe

    reading = chunk.reading
    model = load_model(reading.kind, reading.model, precision=reading.precision)
    begin(chunk=chunk)
    if is_first:
        reader = _reader_of(reading.kind, reading.model, model.revision, reading.precision)
        begun = Reading.objects.unended().filter(pk=reading.pk)
        begun.filter(reader=None).update(reader=reader)
        begun.update(device=describe(model.device))
        reading.refresh_from_db(fields=["reader"])
    if reading.reader.revision != model.revision:
        raise ReadingFailed(
            f"The files of {reading.model} on this worker's machine are others than those that the reading was started "
            f"with: {model.revision or 'unknown'} here, {reading.reader.revision or 'unknown'} there. If they were "
            "changed on purpose, start the reading once more: what comes of it is kept apart from the old. Otherwise "
            "give all workers the same files first."
        )
    return reading.reader


def known_reader(kind: str, name: str, *, precision: str = Precision.FLOAT32) -> TextReader:
    """Load a model and say which reader it is, as its files are now. Raises ``ReadingFailed``."""
    try:
        return _reader_of(kind, name, load_model(kind, name, precision=precision).revision, precision)
    except _reasons_to_fail() as error:
        raise ReadingFailed(str(error)) from error


def read_chunk(
    *, chunk: ReadingChunk, reader: TextReader, is_stopping: Callable[[], bool] = lambda: False, portion: Portion
) -> None:
    """Read the statements of a leased chunk that the reader has not read yet, and store what it makes of them."""

    def on_step() -> None:
        if is_stopping():
            raise WorkerStopping
        keep_lease(chunk=chunk)

    started = time.monotonic()
    statements = unread(Generation.objects.filter(pk__in=chunk.generations), reader)
    with Keeper(partial(begin, chunk=chunk), lost=LeaseLost, of=chunk):
        values = read_all(
            list(statements.values_list("pk", "text")),
            model=load_model(reader.kind, reader.name, precision=reader.precision),
            on_step=on_step,
            portion=portion,
        )
    store_chunk(chunk=chunk, reader=reader, values=values, seconds=time.monotonic() - started)
    log.info("chunk_read", reading=chunk.reading_id, chunk=chunk.index, statements=len(values))


def embed_missing(ids: QuerySet[Generation] | Iterable[int], on_step: Callable[[int, int], None]) -> TextReader:
    """``readings.embed_missing``."""
    try:
        model = load_model(ReaderKind.ENCODER, ENCODER)
        reader = _reader_of(ReaderKind.ENCODER, ENCODER, model.revision, Precision.FLOAT32)
        if isinstance(ids, QuerySet):
            left = list(unread(Generation.objects.filter(pk__in=ids), reader).values_list("pk", flat=True))
        else:
            left = missing(reader, set(ids))
        portion = Portion()
        on_step(0, len(left))
        for start in range(0, len(left), EMBEDDED_AT_ONCE):
            part = Generation.objects.filter(pk__in=left[start : start + EMBEDDED_AT_ONCE])
            values = read_all(
                list(part.values_list("pk", "text")),
                model=model,
                on_step=lambda start=start: on_step(start, len(left)),
                portion=portion,
            )
            with transaction.atomic():
                store_values(reader=reader, values=values)
            if without := sorted(pk for pk, value in values.items() if value is None):
                raise ReadingFailed(no_number(ENCODER, without))
            on_step(min(start + EMBEDDED_AT_ONCE, len(left)), len(left))
        return reader
    except _reasons_to_fail() as error:
        raise ReadingFailed(str(error)) from error


def _reader_of(kind: str, name: str, revision: str, precision: str) -> TextReader:
    """The row of a loaded model, which is the current reader of its name from now on."""
    used = {"used_at": timezone.now()}
    return TextReader.objects.update_or_create(
        kind=kind, name=name, revision=revision, precision=precision, defaults=used
    )[0]


def _do_between(between_chunks: Callable[[], None], reading_id: int) -> None:
    try:
        between_chunks()
    except Exception:
        log.exception("error_between_chunks", reading=reading_id)  # not the reading's


def _reasons_to_fail() -> tuple[type[Exception], ...]:
    """What is told on the reading's page in the error's own words."""
    return (*working.reasons_to_pause(), *working.reasons_to_fail(), ReadingFailed)
