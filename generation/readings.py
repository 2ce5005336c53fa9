"""Having statements read by a model: starting a reading, stopping it, and its end."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import BigIntegerField, Func, Q, QuerySet
from django.utils import timezone
from django.utils.module_loading import import_string

from generation.auditing import note
from generation.models import (
    Generation,
    GenerationRun,
    Label,
    Method,
    Precision,
    ReaderKind,
    Reading,
    ReadingChunk,
    TargetGroup,
    TextReader,
)
from generation.read_values import IDS_AT_ONCE, current_reader, missing, unread
from generation.wakeups import wake_worker_for_reading

ENCODER = "all-minilm-l6-v2"
"""The sentence encoder that comes with the install, and the only one there is."""
EMBEDDED_LANGUAGE_MODEL = "smollm2-135m-instruct"
STATEMENTS_A_CHUNK = {ReaderKind.ENCODER: 1024, ReaderKind.CLASSIFIER: 1024, ReaderKind.LANGUAGE_MODEL: 256}
CHUNKS_AT_ONCE = 100
READINGS_LOOKED_AT = 50
PACE_FOR = 10_000
"""So many statements the time of which is told before anything is started."""
IDS_TOLD = 10
STARTED_ONE_AT_A_TIME = 1_413_829_459
"""Any number; a lock in the database goes by it."""
LONGEST_NAME = Reading._meta.get_field("model").max_length
LONGEST_ABOUT = Reading._meta.get_field("about").max_length
STOPPED = "It was stopped before all were read. What was read is kept; start a new reading for the rest."

log = structlog.get_logger(__name__)


class NothingToRead(ValueError):
    """There are no such statements, or the model has read them all."""


class ReadingFailed(RuntimeError):
    """The statements could not be read; the message says why and what to do."""


def default_model(kind: str) -> str:
    """The model that reads unless another one is named."""
    own = settings.LANGUAGE_MODEL
    return {
        ReaderKind.ENCODER: ENCODER,
        ReaderKind.CLASSIFIER: settings.CLASSIFIER,
        ReaderKind.LANGUAGE_MODEL: EMBEDDED_LANGUAGE_MODEL if "://" in own else own,
    }[ReaderKind(kind)]


def chosen_statements(
    *,
    groups: Iterable[TargetGroup] = (),
    labels: Sequence[str] = (),
    methods: Sequence[str] = (),
    run: GenerationRun | None = None,
) -> tuple[QuerySet[Generation], str]:
    """The statements of any of some groups, labels and methods, and of a run; and in words which these are."""
    wanted = {"group__in": list(groups), "label__in": list(labels), "method__in": list(methods)}
    statements = Generation.objects.filter(**{field: values for field, values in wanted.items() if values})
    if run is not None:
        statements = statements.filter(run=run)
    words = [
        *([str(run)] if run else []),
        *map(str, wanted["group__in"]),
        *(Label(label).label for label in labels),
        *(Method(method).label for method in methods),
    ]
    return statements, ", ".join(words) or "all statements"


@dataclass(frozen=True)
class Pace:
    """How fast a model read, as one worker's ``statements_a_second`` in its newest reading."""

    model: str
    precision: str
    device: str
    statements_a_second: float

    def seconds_for(self, statements: int) -> float:
        return statements / self.statements_a_second


def paces() -> list[Pace]:
    """Of each model that has read lately how fast it did, the newest first."""
    measured = Reading.objects.filter(seconds__gt=0, computed__gt=0)[:READINGS_LOOKED_AT]
    newest: dict[tuple, Reading] = {}
    for reading in measured:
        newest.setdefault((reading.kind, reading.model, reading.precision, reading.device), reading)
    return [
        Pace(reading.model, reading.precision, reading.device, reading.computed / reading.seconds)
        for reading in newest.values()
    ]


@transaction.atomic
def start_reading(
    *,
    kind: str,
    model: str,
    generation_ids: QuerySet[Generation] | Iterable[int],
    about: str = "",
    precision: str = Precision.FLOAT32,
    by=None,
    wake: bool = True,
) -> Reading:
    """Store a reading of those statements that the model has not read yet, and wake a worker for it.

    ``generation_ids`` is a queryset of statements, or their ids. What the model has read is known from its last use: if
    it is another model under the same name by then, the reading ends and says so. If a reading that the model has not
    ended yet has all these statements before it, that is the one: it ``was_under_way``. Raises ``NothingToRead``, and
    ``ValueError`` for what cannot be done.
    """
    check_model(kind, model, precision=precision)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [STARTED_ONE_AT_A_TIME])
    statements = generation_ids if isinstance(generation_ids, QuerySet) else set(generation_ids)
    reader = current_reader(kind, model, precision=precision)
    reading = Reading.objects.create(
        kind=kind, model=model, precision=precision, about=about[:LONGEST_ABOUT], reader=reader, created_by=by
    )
    reading.statements = _make_chunks(reading, _to_read(statements, reader))
    if not reading.statements:
        raise NothingToRead(_why_nothing(statements, reader))
    if under_way := _under_way(reading):
        reading.delete()
        if wake:
            wake_worker_for_reading(under_way.pk)
        return under_way
    reading.save(update_fields=["statements"])
    note(
        "reading started",
        by=by,
        subject=str(reading),
        reader=kind,
        model=model,
        statements=reading.statements,
        about=reading.about,
    )
    log.info("reading_started", reading=reading.pk, kind=kind, model=model, statements=reading.statements)
    if wake:
        wake_worker_for_reading(reading.pk)
    return reading


def check_model(kind: str, model: str, *, precision: str = Precision.FLOAT32) -> None:
    """Raise ``ValueError`` unless a worker can try to read with this model."""
    if kind not in ReaderKind.values:
        raise ValueError(f"There is no kind of reader {kind!r}. Choose one of: {', '.join(ReaderKind.values)}.")
    if precision not in Precision.values:
        raise ValueError(f"There is no precision {precision!r}. Choose one of: {', '.join(Precision.values)}.")
    if not model.strip():
        raise ValueError("Name the model.")
    if len(model) > LONGEST_NAME:
        raise ValueError(f"The model's name has {len(model)} characters. At most {LONGEST_NAME} can be stored.")
    if "://" in model:
        raise ValueError(
            "A completions server does not tell how probable it finds a given text. Choose a model that the workers "
            f"load themselves: {default_model(kind)!r}, a folder, or a model id."
        )
    if kind == ReaderKind.ENCODER and model != ENCODER:
        raise ValueError(f"There is no sentence encoder {model!r}. Choose {ENCODER!r}, which comes with the install.")


@transaction.atomic
def stop_reading(*, reading: Reading, by=None) -> bool:
    """End a reading; what was read is kept. Return whether it had not ended yet."""
    stopped = _end(reading.pk, failure=STOPPED)
    if stopped:
        note("reading stopped", by=by, subject=str(reading))
    return stopped


def fail_reading(*, reading_id: int, reason: str) -> bool:
    """End a reading with the reason that its page shows."""
    return _end(reading_id, failure=reason)


def finish_reading_if_complete(*, reading_id: int) -> bool:
    """End a reading none of whose chunks is left; if some statements have no number, that is why it is incomplete."""
    chunks = ReadingChunk.objects.filter(reading=reading_id)
    if chunks.filter(finished_at=None).exists():
        return False
    noted = chunks.exclude(without_number=[]).values_list("without_number", flat=True)
    without = list(chain.from_iterable(noted))
    return _end(reading_id, failure=no_number(Reading.objects.get(pk=reading_id).model, without) if without else "")


def no_number(model: str, ids: Sequence[int]) -> str:
    """Why these statements were not read."""
    some = ", ".join(map(str, ids[:IDS_TOLD])) + (", …" if len(ids) > IDS_TOLD else "")
    return (
        f"{model} makes no number of {len(ids):,} statement{'' if len(ids) == 1 else 's'} ({some}): its weights are "
        "broken, or too small a precision overflows. Choose another model, or float32."
    )


def embed_missing(
    ids: QuerySet[Generation] | Iterable[int], on_step: Callable[[int, int], None] = lambda done, total: None
) -> TextReader:
    """Embed those statements that have no embedding yet, in this process; the encoder that all have been read by.

    ``on_step`` is called with how many are done, of how many. What was read is stored also if it raises. Raises
    ``ReadingFailed``.
    """
    # By name: who starts readings is in the web process, which never imports torch.
    embed = import_string("generation.reading.embed_missing")
    return embed(ids, on_step)


def _end(reading_id: int, *, failure: str = "") -> bool:
    ended = Reading.objects.unended().filter(pk=reading_id).update(finished_at=timezone.now(), failure=failure)
    if ended:
        log.info("reading_ended", reading=reading_id, failure=failure)
    return bool(ended)


def _to_read(statements: QuerySet[Generation] | set[int], reader: TextReader | None) -> Iterator[int]:
    """The ids of those that the reader has not read, in ascending order; of a queryset never all at once."""
    if not isinstance(statements, QuerySet):
        return iter(missing(reader, statements))
    chosen = unread(Generation.objects.filter(pk__in=statements), reader)
    return chosen.order_by("pk").values_list("pk", flat=True).iterator(chunk_size=IDS_AT_ONCE)


def _make_chunks(reading: Reading, ids: Iterator[int]) -> int:
    """Store the chunks of a reading; how many statements are in them."""
    size = STATEMENTS_A_CHUNK[ReaderKind(reading.kind)]
    parts = enumerate(iter(lambda: list(islice(ids, size)), []))
    chunks = (ReadingChunk(reading=reading, index=index, generations=part) for index, part in parts)
    count = 0
    while some := list(islice(chunks, CHUNKS_AT_ONCE)):
        ReadingChunk.objects.bulk_create(some)
        count += sum(len(chunk.generations) for chunk in some)
    return count


def _under_way(wanted: Reading) -> Reading | None:
    """An earlier reading by the same model that has not ended, and all whose statements are still to be read there."""
    same = Reading.objects.unended().filter(kind=wanted.kind, model=wanted.model, precision=wanted.precision)
    for reading in same.filter(Q(reader=None) | Q(reader=wanted.reader), pk__lt=wanted.pk).order_by("pk"):
        left = _statements_of(reading.chunks.filter(finished_at=None))
        if not _statements_of(wanted.chunks.all()).difference(left).exists():
            reading.was_under_way = True
            return reading
    return None


def _statements_of(chunks: QuerySet[ReadingChunk]) -> QuerySet:
    """The ids of their statements, one a row."""
    each = Func("generations", function="unnest", output_field=BigIntegerField(), set_returning=True)
    return chunks.order_by().values_list(each, flat=True)


def _why_nothing(statements: QuerySet[Generation] | set[int], reader: TextReader | None) -> str:
    if reader is None or not Generation.objects.filter(pk__in=statements).exists():
        return "There are no such statements. Choose others."
    return (
        f"{reader} has read all of these statements: there is nothing left to do. If its files have changed since, "
        "manage.py read_statements looks at them itself."
    )
