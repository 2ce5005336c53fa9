"""Comparing what was stored since with a HUMANVAL set: what is too similar leaves training, too.

What was removed for a set is never taken back, and more may be added, also to a frozen set: its statements, its labels
and its checksum stay as they are.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import structlog
from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Greatest, Now

from analysis.humanval.choosing import similar_to
from analysis.humanval.drawing import closest_allowed, store_removed
from analysis.humanval.freezing import WrongState
from analysis.humanval.pool import (
    StatementsBeingStored,
    corpus,
    humanval_reader,
    machine_generated,
    newest_statement,
    start_embedding,
)
from analysis.models import HumanvalSet
from generation.auditing import note
from generation.models import Reading
from generation.read_values import NotRead, unread, vectors
from generation.wakeups import ask_for

COMPARE = "analysis.compare_with_humanval"
"""The task of the queue that compares newer statements with a set."""

ONE_AT_A_TIME = 733_214_061
"""Any number; a lock in the database goes by it and the set's id."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Compared:
    """How many statements were compared with a set, and how many of them left training."""

    statements: int
    removed: int


def not_compared(humanval_set: HumanvalSet) -> int:
    """How many statements were stored since the set was last compared; exports for training leave them out."""
    return machine_generated().filter(pk__gt=humanval_set.compared_up_to).count()


@transaction.atomic
def ask_to_compare(*, humanval_set: HumanvalSet, by=None) -> Reading | None:
    """Have a worker compare a set with all statements; the reading that embeds them, where that comes first.

    The wish is kept until it is done. Raises ``WrongState``.
    """
    refuse_undrawn(humanval_set)
    reading = start_embedding(machine_generated(), about=_about(humanval_set), by=by)
    HumanvalSet.objects.filter(pk=humanval_set.pk).update(compare_asked_at=Now(), reading=reading)
    if reading is None:
        ask_for(COMPARE, humanval_set=humanval_set.pk)
    return reading


def waiting_to_be_compared():
    """Sets that are to be compared, and whose statements are not being embedded just now."""
    return HumanvalSet.objects.drawn().filter(
        Q(reading=None) | Q(reading__finished_at__isnull=False), compare_asked_at__isnull=False
    )


def work_on_comparison(*, set_id: int) -> None:
    """Compare a set that is to be, unless others are at it; later, if statements are being stored or embedded."""
    with _alone_at(set_id) as is_alone:
        humanval_set = waiting_to_be_compared().filter(pk=set_id).first() if is_alone else None
        if humanval_set is None or _has_to_wait(humanval_set):
            return
        try:
            compare(humanval_set=humanval_set)
        except (StatementsBeingStored, NotRead) as later:
            log.info("humanval_put_off", humanval=humanval_set.version, reason=str(later))


def _has_to_wait(humanval_set: HumanvalSet) -> bool:
    """Whether embeddings are missing; they are being made then, unless that failed: then somebody has to ask anew."""
    if humanval_set.reading and humanval_set.reading.failure:
        return unread(machine_generated(), humanval_reader()).exists()
    reading = start_embedding(machine_generated(), about=_about(humanval_set), by=humanval_set.created_by)
    if reading is not None:
        HumanvalSet.objects.filter(pk=humanval_set.pk).update(reading=reading)
    return reading is not None


def _about(humanval_set: HumanvalSet) -> str:
    return f"statements to compare with {humanval_set}"


@contextmanager
def _alone_at(set_id: int) -> Iterator[bool]:
    """Whether no other worker compares the set; the lock goes with the worker's connection."""
    key = [ONE_AT_A_TIME, set_id]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
        [is_alone] = cursor.fetchone()
    try:
        yield is_alone
    finally:
        if is_alone and connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)


def compare(*, humanval_set: HumanvalSet, by=None, on_step: Callable[[], None] = lambda: None) -> Compared:
    """Compare every statement for training with a set, and remove what is too similar. Safe to run twice and at once.

    Raises ``WrongState``, ``StatementsBeingStored``, and ``read_values.NotRead`` where embeddings are missing.
    """
    refuse_undrawn(humanval_set)
    up_to = newest_statement()
    own = np.fromiter(humanval_set.statements.values_list("generation", flat=True), dtype=np.int64)
    removed = np.fromiter(humanval_set.removed.values_list("generation", flat=True), dtype=np.int64)
    ids = corpus(up_to)
    ids = ids[~np.isin(ids, np.concatenate([own, removed]))]
    reader = humanval_reader()
    similar = similar_to(
        vectors(reader, ids), vectors(reader, own), above=closest_allowed(humanval_set.threshold), on_block=on_step
    )
    rows = zip(ids[similar.rows].tolist(), own[similar.nearest].tolist(), similar.cosine.tolist(), strict=True)
    with transaction.atomic():
        HumanvalSet.objects.select_for_update(of=("self",)).get(pk=humanval_set.pk)
        added = store_removed(humanval_set, rows)
        HumanvalSet.objects.filter(pk=humanval_set.pk).update(
            compared_up_to=Greatest("compared_up_to", up_to), reading=None
        )
        # Who asked for it since wants what was stored since.
        HumanvalSet.objects.filter(pk=humanval_set.pk, compare_asked_at=humanval_set.compare_asked_at).update(
            compare_asked_at=None
        )
        note("humanval set compared", by=by, subject=str(humanval_set), statements=len(ids), removed=added, up_to=up_to)
    humanval_set.refresh_from_db()
    log.info("humanval_compared", humanval=humanval_set.version, statements=len(ids), removed=added)
    return Compared(statements=len(ids), removed=added)


def refuse_undrawn(humanval_set: HumanvalSet) -> None:
    """Raise ``WrongState`` for a set that has no statements yet."""
    if not humanval_set.is_drawn:
        raise WrongState(f"{humanval_set} is {humanval_set.get_state_display()}: it has no statements to compare with.")
