"""Starting, ending and cancelling a run."""

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import structlog
from django.db import transaction
from django.utils import timezone

from generation.models import (
    OPEN_STATES,
    Demonstration,
    GenerationChunk,
    GenerationRun,
    Label,
    Method,
    RunState,
    TargetGroup,
)
from generation.parameters import TopKParameters
from generation.prompting import check_enough
from generation.wakeups import wake_worker_for

CHUNK_SIZE = 16
DRAWN_SEED_LIMIT = 2**31
SEED_LIMIT = 2**63

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Cell:
    """So many statements of one group and label."""

    group: TargetGroup
    label: Label
    count: int


@transaction.atomic
def start_run(
    *,
    cells: Sequence[Cell],
    language_model: str,
    method: str = Method.TOPK,
    parameters: TopKParameters | None = None,
    seed: int | None = None,
    created_by=None,
    wake: bool = True,
) -> GenerationRun:
    """Store a run and its chunks, and wake a worker for it.

    Chunks are the cells cut into parts of ``CHUNK_SIZE``, taken in turn from each cell, so
    that a cancelled run has some of everything. Raises ``ValueError`` for a count below 1 or a
    seed out of range and ``NotEnoughDemonstrations`` for a set that is too small.
    """
    if not cells:
        raise ValueError("Choose at least one group.")
    for cell in cells:
        check_cell(cell)
    if seed is not None and not 0 <= seed < SEED_LIMIT:
        raise ValueError(f"The seed must be from 0 to {SEED_LIMIT - 1}, not {seed}.")
    run = GenerationRun.objects.create(
        method=method,
        parameters=asdict(parameters or TopKParameters()),
        language_model=language_model,
        seed=secrets.randbelow(DRAWN_SEED_LIMIT) if seed is None else seed,
        created_by=created_by,
    )
    GenerationChunk.objects.bulk_create(
        GenerationChunk(run=run, index=index, group=cell.group, label=cell.label, size=size)
        for index, (cell, size) in enumerate(_parts(cells))
    )
    log.info("run_started", run=run.pk, statements=sum(cell.count for cell in cells), method=method)
    if wake:
        wake_worker_for(run.pk)
    return run


def check_cell(cell: Cell) -> None:
    """Raise ``ValueError`` or ``NotEnoughDemonstrations`` if a run could not fill the cell."""
    if cell.count < 1:
        raise ValueError(f"The number of statements must be at least 1, not {cell.count}.")
    usable = Demonstration.objects.usable(cell.group, cell.label).values_list("text", flat=True)
    check_enough(usable, of=f"the {cell.label} set of {cell.group}")


def cancel_run(*, run: GenerationRun) -> bool:
    """Cancel an open run; what is stored stays. Return whether it was still open."""
    return _end(run.pk, RunState.CANCELLED)


def fail_run(*, run_id: int, reason: str) -> bool:
    """Mark an open run as failed with the reason its page shows."""
    return _end(run_id, RunState.FAILED, failure=reason)


def finish_run_if_complete(*, run_id: int) -> bool:
    """Mark an open run as finished if none of its chunks is left."""
    if GenerationChunk.objects.unfinished().filter(run=run_id).exists():
        return False
    return _end(run_id, RunState.FINISHED)


def _end(run_id: int, state: RunState, *, failure: str = "") -> bool:
    changed = GenerationRun.objects.filter(pk=run_id, state__in=OPEN_STATES).update(
        state=state, failure=failure, ended_at=timezone.now()
    )
    if changed:
        log.info("run_ended", run=run_id, state=state.value, failure=failure)
    return bool(changed)


def _parts(cells: Sequence[Cell]) -> list[tuple[Cell, int]]:
    """The cells' parts of at most ``CHUNK_SIZE``: first parts of all cells, then second parts …"""
    parts = [(start, number, cell) for number, cell in enumerate(cells) for start in range(0, cell.count, CHUNK_SIZE)]
    return [(cell, min(CHUNK_SIZE, cell.count - start)) for start, _, cell in sorted(parts, key=lambda part: part[:2])]
