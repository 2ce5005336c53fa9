"""What a worker does with a wanted HUMANVAL set: wait for the embeddings, draw, compare, and store all at once."""

import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

import numpy as np
import structlog
from django.db import transaction

from analysis.humanval.choosing import (
    MARGIN,
    IntArray,
    Similar,
    count_similar,
    has_direction,
    most_isolated,
    similar_to,
)
from analysis.humanval.errands import carry_out, fail
from analysis.humanval.pool import (
    Share,
    StatementsBeingStored,
    Stratum,
    corpus,
    count_by_stratum,
    humanval_reader,
    machine_generated,
    newest_statement,
    pool_at_random,
    pool_filters,
    shares,
    start_embedding,
)
from analysis.humanval.sets import CannotDraw, refuse_too_few
from analysis.models import HumanvalSet, HumanvalState, HumanvalStatement, RemovedFromTraining
from generation import leases
from generation.auditing import note
from generation.models import TextReader
from generation.read_values import unread, vectors
from generation.readings import ReadingFailed

ROWS_AT_ONCE = 5000
BINS = (0, 1, 2, 5, 10, 50, 100, 1000)
"""Numbers of neighbours from which on they are told together."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Drawn:
    """A set that is drawn and not stored: the statements with their neighbours, and what has to leave training."""

    ids: IntArray
    neighbours: IntArray
    removed: IntArray
    nearest: IntArray
    cosine: np.ndarray
    reader: TextReader
    report: dict


def work_on_set(*, set_id: int, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Draw a wanted set, unless it waits for embeddings or others are at it. Safe to run twice and at once."""
    wanted = HumanvalSet.objects.waiting().filter(pk=set_id).first()
    if wanted is not None and _is_ready(wanted) and (mine := take_up(set_id)):
        draw_leased(mine, is_stopping=is_stopping)


def take_up(set_id: int) -> HumanvalSet | None:
    """Lease a wanted set that nobody draws; ``None``: there is none."""
    token = leases.take_up(HumanvalSet.objects.waiting(), pk=set_id)
    return HumanvalSet.objects.filter(pk=set_id, lease_token=token).first() if token else None


def draw_leased(
    wanted: HumanvalSet,
    *,
    first: Callable[[Callable[..., None]], object] = lambda on_step: None,
    is_stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Draw and store a set that was taken up, or let it fail with the reason.

    ``first`` is done before, and calls what it is given at every step.
    """

    def work(on_step: Callable[..., None]) -> None:
        first(on_step)
        store(wanted, draw(wanted, on_step=on_step, on_read=lambda: leases.begin(wanted)))

    refusals = (CannotDraw, ReadingFailed, StatementsBeingStored)
    carry_out(wanted, work, refusals=refusals, is_stopping=is_stopping, state=HumanvalState.FAILED)


def draw(
    wanted: HumanvalSet,
    *,
    on_step: Callable[[], None] = lambda: None,
    on_read: Callable[[], None] = lambda: None,
) -> Drawn:
    """Choose the statements of a set and find what is too similar to them; nothing is stored.

    The statements up to ``compared_up_to`` are there to choose from and to compare with. ``on_read`` is called when
    the embeddings are read, ``on_step`` between blocks of the comparison. Raises ``CannotDraw`` and
    ``read_values.NotRead``.
    """
    clock = Clock()
    filters, up_to = pool_filters(wanted.filters), wanted.compared_up_to
    reader = humanval_reader()
    ids = corpus(up_to)
    embeddings = vectors(reader, ids)
    usable = has_direction(embeddings)
    clock.lap("reading the embeddings")
    on_read()
    strata, found = _candidates(wanted, filters, ids, usable)
    every = np.concatenate([*found, np.zeros(0, np.int64)])
    clock.lap("drawing the candidates")
    neighbours = count_similar(embeddings, every, above=wanted.threshold, on_block=on_step)
    clock.lap("comparing the candidates with all statements")
    chosen = _choose(strata, found, neighbours)
    rows = every[chosen]
    similar = similar_to(embeddings, embeddings[rows], above=closest_allowed(wanted.threshold), on_block=on_step)
    clock.lap("comparing the set with all statements")
    within = count_similar(embeddings[rows], np.arange(len(rows)), above=wanted.threshold, on_block=on_step)
    clock.lap("comparing the set with itself")
    outside = ~np.isin(similar.rows, rows)
    removed = Similar(similar.rows[outside], similar.nearest[outside], similar.cosine[outside])
    report = {
        "statements": len(ids),
        "pool": sum(share.available for share in strata),
        "candidates": len(every),
        "chosen": len(rows),
        "pairs_within": int(within.sum()) // 2,
        "removed": len(removed.rows),
        "training": len(ids) - len(rows) - len(removed.rows),
        "without_direction": int((~usable).sum()),
        "neighbours": _in_bins(neighbours[chosen]),
        "neighbours_of_candidates": _in_bins(neighbours),
        "strata": _strata_report(strata, ids[rows], ids[removed.rows]),
        "margin": MARGIN,
        "up_to": up_to,
        "encoder": str(reader),
        "software": {"python": platform.python_version(), "numpy": np.__version__},
        "seconds": clock.laps,
    }
    return Drawn(
        ids[rows], neighbours[chosen], ids[removed.rows], ids[rows][removed.nearest], removed.cosine, reader, report,
    )  # fmt: skip


def closest_allowed(threshold: float) -> float:
    """The cosine up to which a statement stays in training: so far below the threshold that it holds elsewhere, too."""
    return max(threshold - MARGIN, 0)


@transaction.atomic
def store(wanted: HumanvalSet, drawn: Drawn) -> None:
    """Store a drawn set, once and whole. Raises ``leases.FinishedElsewhere`` if others have, or are at it."""
    found = {"report": drawn.report, "reader": drawn.reader, "reading": None}
    if not leases.finish(wanted, state=HumanvalState.DRAWN, **found):
        raise leases.FinishedElsewhere(f"{wanted} was taken up or finished by somebody else.")
    statements = zip(drawn.ids.tolist(), drawn.neighbours.tolist(), strict=True)
    HumanvalStatement.objects.bulk_create(
        HumanvalStatement(humanval_set=wanted, generation_id=pk, neighbours=number) for pk, number in statements
    )
    store_removed(wanted, zip(drawn.removed.tolist(), drawn.nearest.tolist(), drawn.cosine.tolist(), strict=True))
    told = {name: drawn.report[name] for name in ("statements", "chosen", "removed")}
    note("humanval set drawn", by=wanted.created_by, subject=str(wanted), **told)
    log.info("humanval_drawn", humanval=wanted.version, **told)
    wanted.refresh_from_db()


def store_removed(humanval_set: HumanvalSet, rows: Iterable[tuple[int, int, float]]) -> int:
    """Store what leaves training, as (statement, nearest of the set, cosine); how many were not there yet."""
    before = humanval_set.removed.count()
    made = (
        RemovedFromTraining(humanval_set=humanval_set, generation_id=pk, nearest_id=nearest, cosine=cosine)
        for pk, nearest, cosine in rows
    )
    while part := list(islice(made, ROWS_AT_ONCE)):
        RemovedFromTraining.objects.bulk_create(part, ignore_conflicts=True)
    return humanval_set.removed.count() - before


class Clock:
    """How long each part took, in seconds."""

    def __init__(self) -> None:
        self.laps: list[tuple[str, float]] = []
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps.append((name, round(now - self._since, 3)))
        self._since = now


def _is_ready(wanted: HumanvalSet) -> bool:
    """Whether the statements that there were are embedded; if not, they are being embedded, or the set failed."""
    if wanted.reading and not wanted.reading.finished_at:
        return False
    try:
        up_to = fix_statements(wanted)
    except StatementsBeingStored as later:
        log.info("humanval_put_off", humanval=wanted.version, reason=str(later))
        return False
    about = f"all machine-generated statements, for {wanted}"
    failed = wanted.reading and wanted.reading.failure
    if failed and unread(machine_generated(up_to), humanval_reader()).exists():
        reason = f"The statements could not be embedded ({wanted.reading}): {failed}"
        fail(wanted, reason, state=HumanvalState.FAILED)
        return False
    reading = start_embedding(machine_generated(up_to), about=about, by=wanted.created_by)
    if reading is not None:
        HumanvalSet.objects.filter(pk=wanted.pk, finished_at=None).update(reading=reading)
    return reading is None


def fix_statements(wanted: HumanvalSet) -> int:
    """The id of the last statement that the set is drawn from and compared with: the newest at the first time.

    So what is written while the statements are being embedded does not put off the drawing. Raises
    ``StatementsBeingStored``.
    """
    if wanted.compared_up_to is None:
        unfixed = HumanvalSet.objects.filter(pk=wanted.pk, finished_at=None, compared_up_to=None)
        unfixed.update(compared_up_to=newest_statement())
        wanted.refresh_from_db()
    return wanted.compared_up_to


def _candidates(
    wanted: HumanvalSet, filters: Mapping, ids: IntArray, usable: np.ndarray
) -> tuple[list[Share], list[IntArray]]:
    """The places of each stratum, and the rows of its candidates in their random order; none without a direction."""
    at_random = pool_at_random(filters, seed=wanted.seed, up_to=wanted.compared_up_to)
    refuse_too_few(sum(map(len, at_random.values())), wanted.size)
    there: dict[Stratum, IntArray] = {}
    for stratum, pks in at_random.items():
        rows = np.searchsorted(ids, pks[np.isin(pks, ids)])
        there[stratum] = rows[usable[rows]]
    available = {stratum: len(rows) for stratum, rows in there.items()}
    if not sum(available.values()):
        raise CannotDraw("filters", "No statement to choose from has an embedding that could be compared.")
    strata = shares(filters, available, size=wanted.size, seed=wanted.seed)
    nothing = np.zeros(0, np.int64)
    return strata, [there.get(share.stratum, nothing)[: share.places * wanted.candidates] for share in strata]


def _choose(strata: list[Share], found: list[IntArray], neighbours: IntArray) -> IntArray:
    """The places among all candidates of those that are taken: of each stratum the most isolated."""
    taken, start = [np.zeros(0, np.int64)], 0
    for share, rows in zip(strata, found, strict=True):
        taken.append(start + most_isolated(neighbours[start : start + len(rows)], share.places))
        start += len(rows)
    return np.concatenate(taken)


def _in_bins(neighbours: IntArray) -> list[dict]:
    """How many statements have so many neighbours, in bins; empty ones are left out."""
    bins = np.searchsorted(BINS, neighbours, side="right") - 1
    counts = np.bincount(bins, minlength=len(BINS)).tolist()
    ends = [start - 1 for start in BINS[1:]] + [None]
    return [
        {"from": start, "to": end, "statements": count}
        for start, end, count in zip(BINS, ends, counts, strict=True)
        if count
    ]


def _strata_report(strata: list[Share], chosen: IntArray, removed: IntArray) -> list[dict]:
    """Each stratum of the set, and each other one that loses statements, with what it has."""
    chosen_of, removed_of = count_by_stratum(chosen.tolist()), count_by_stratum(removed.tolist())
    others = [Share(stratum, 0, 0, 0) for stratum in sorted(removed_of.keys() - {share.stratum for share in strata})]
    return [
        {
            **dict(zip(("group", "label", "method"), share.stratum, strict=True)),
            "available": share.available,
            "wanted": share.wanted,
            "found": chosen_of[share.stratum],
            "removed": removed_of[share.stratum],
        }
        for share in [*strata, *others]
    ]
