"""What models made of statements, read from the database: which readers there are, and the vectors of an encoder.

Nothing here needs a model or torch.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from generation.models import Embedding, Generation, Perplexity, ReaderKind, TextReader, ToxicityScore

VALUES = {
    ReaderKind.ENCODER: Embedding,
    ReaderKind.CLASSIFIER: ToxicityScore,
    ReaderKind.LANGUAGE_MODEL: Perplexity,
}
"""Where the values of each kind of reader are stored, a row a reader and statement."""

IDS_AT_ONCE = 10_000
BYTES_A_NUMBER = 4
BYTES_BEFORE_VECTOR = 18  # of a row in binary COPY: the number of columns, and two lengths and the id
BYTES_OF_HEADER = 19


class NotRead(LookupError):
    """The reader has not read all of the statements that are asked for."""


def readers(kind: str) -> QuerySet[TextReader]:
    """The readers of a kind, the one that was used last first."""
    return TextReader.objects.filter(kind=kind).order_by("-used_at", "-pk")


def current_reader(kind: str, name: str | None = None, *, precision: str | None = None) -> TextReader | None:
    """The reader of that kind that a worker used last, or ``None``; of that name and precision, where they are given.

    A model has a reader for each of its revisions and precisions: the values of one are never mixed with another's.
    """
    wanted = {"name": name, "precision": precision}
    return readers(kind).filter(**{field: value for field, value in wanted.items() if value is not None}).first()


def unread(statements: QuerySet[Generation], reader: TextReader | None) -> QuerySet[Generation]:
    """Those of some statements that the reader has not read: all, if there is no such reader yet."""
    if reader is None:
        return statements
    values = VALUES[ReaderKind(reader.kind)].objects.filter(reader=reader, generation=OuterRef("pk"))
    return statements.filter(~Exists(values))


def missing(reader: TextReader | None, ids: Iterable[int]) -> list[int]:
    """Which of some statements the reader has not read, in ascending order. Ids of no statement are left out."""
    return sorted(
        pk
        for part in _parts(sorted(ids), IDS_AT_ONCE)
        for pk in unread(Generation.objects.filter(pk__in=part), reader).order_by().values_list("pk", flat=True)
    )


def vectors(reader: TextReader, ids: Iterable[int]) -> np.ndarray:
    """(N, E) float32: the embeddings of N distinct statements, in the order of their ids.

    Beside the result, little memory is taken. Raises ``NotRead`` unless the reader has read all of them, and
    ``ValueError`` for one that comes twice.
    """
    wanted = np.fromiter(ids, dtype=np.int64)  # (N,)
    order = wanted.argsort()
    ascending = wanted[order]
    if (ascending[1:] == ascending[:-1]).any():
        raise ValueError("Each statement's vector is given once: one of the ids comes twice.")
    found = np.empty((len(wanted), _dimensions(reader)), dtype=np.float32)
    count = 0
    for rows in _stored(reader, ascending, numbers=found.shape[1]):
        found[order[ascending.searchsorted(rows["id"])]] = rows["vector"]
        count += len(rows)
    if count < len(wanted):
        raise NotRead(
            f"{len(wanted) - count:,} of {len(wanted):,} statements have no embedding by {reader} yet. Have them read: "
            "manage.py read_statements encoder, or Generate, Readings."
        )
    return found


def _dimensions(reader: TextReader) -> int:
    """E, the number of numbers in each of a reader's vectors; 0 if there is none yet."""
    some = Embedding.objects.filter(reader=reader).values_list("vector", flat=True).first()
    return len(some) // BYTES_A_NUMBER if some else 0


def _stored(reader: TextReader, ascending: np.ndarray, *, numbers: int) -> Iterator[np.ndarray]:
    """The stored vectors of some statements, as records of an ``id`` and a ``vector``, a part at a time.

    They come as PostgreSQL's binary COPY, where all rows are equally long, so that none is looked at by itself.
    """
    row = np.dtype(
        {
            "names": ["id", "length", "vector"],
            "formats": [">i8", ">i4", ("<f4", (numbers,))],
            "offsets": [6, BYTES_BEFORE_VECTOR - 4, BYTES_BEFORE_VECTOR],
            "itemsize": BYTES_BEFORE_VECTOR + BYTES_A_NUMBER * numbers,
        }
    )
    query = (
        f"COPY (SELECT generation_id, vector FROM {Embedding._meta.db_table} "  # noqa: S608 - no text of others
        f"WHERE reader_id = {reader.pk:d} AND generation_id = ANY('{{{{{{}}}}}}'::bigint[])) TO STDOUT (FORMAT binary)"
    )
    for part in _parts(ascending.tolist(), IDS_AT_ONCE):
        received = bytearray()
        with connection.cursor() as cursor:
            cursor.copy_expert(query.format(",".join(map(str, part))), _Writable(received))
        body = memoryview(received)[BYTES_OF_HEADER:-2]  # the end is marked by a number of columns of -1
        rows = np.frombuffer(body, dtype=row)
        if (rows["length"] != BYTES_A_NUMBER * numbers).any():
            raise ValueError(f"The stored vectors of {reader} are not equally long.")
        yield rows


class _Writable:
    """A file that keeps what is written into it."""

    def __init__(self, content: bytearray) -> None:
        self.write = content.extend


def _parts(ids: Iterable[int], size: int) -> Iterator[list[int]]:
    rest = iter(ids)
    while part := list(islice(rest, size)):
        yield part
