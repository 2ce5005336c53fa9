"""Starting a run, pausing, resuming and cancelling it, and its end."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import TextChoices
from django.utils import timezone

from generation.models import (
    OPEN_STATES,
    UNENDED_STATES,
    Demonstration,
    GenerationChunk,
    GenerationRun,
    Label,
    Method,
    Precision,
    RunMethod,
    RunState,
    TargetGroup,
)
from generation.parameters import AliceParameters, Direction, TopKParameters, check_count
from generation.prompting import check_enough
from generation.wakeups import wake_worker_for

DRAWN_SEED_LIMIT = 2**31
LONGEST_NAME = GenerationRun._meta.get_field("language_model").max_length
SEED_LIMIT = 2**63

Choices = TypeVar("Choices", bound=TextChoices)

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
    method: str = RunMethod.TOPK,
    topk: TopKParameters | None = None,
    alice: AliceParameters | None = None,
    classifier: str = "",
    precision: str = Precision.FLOAT32,
    seed: int | None = None,
    created_by=None,
    wake: bool = True,
) -> GenerationRun:
    """Store a run and its chunks, and wake a worker for it.

    ``topk`` and ``alice`` are the parameters of the methods that ``method`` names, by default
    the paper's. Chunks are the cells cut into parts of ``settings.CHUNK_SIZE``, taken in turn from each
    cell, so that a cancelled run has some of everything. Raises ``ValueError`` for what cannot be done and
    ``NotEnoughDemonstrations`` for a set that is too small.
    """
    if not cells:
        raise ValueError("Choose at least one group.")
    for cell in cells:
        check_cell(cell)
    if seed is not None and not 0 <= seed < SEED_LIMIT:
        raise ValueError(f"The seed must be from 0 to {SEED_LIMIT - 1}, not {seed}.")
    check_count("HUMANVAL_CHUNK_SIZE", settings.CHUNK_SIZE)
    parameters = chosen_parameters(method, labels={cell.label for cell in cells}, topk=topk, alice=alice)
    check_models(method, language_model=language_model, classifier=classifier, precision=precision)
    run = GenerationRun.objects.create(
        method=method,
        parameters={name: asdict(values) for name, values in parameters.items()},
        language_model=language_model,
        classifier=classifier,
        precision=precision,
        seed=secrets.randbelow(DRAWN_SEED_LIMIT) if seed is None else seed,
        created_by=created_by,
    )
    GenerationChunk.objects.bulk_create(
        GenerationChunk(run=run, index=index, group=cell.group, label=cell.label, size=size)
        for index, (cell, size) in enumerate(_parts(cells))
    )
    statements = sum(cell.count for cell in cells) * len(run.methods)
    log.info("run_started", run=run.pk, statements=statements, method=run.method)
    if wake:
        wake_worker_for(run.pk)
    return run


def chosen_parameters(
    method: str,
    *,
    labels: Collection[str],
    topk: TopKParameters | None = None,
    alice: AliceParameters | None = None,
) -> dict[str, TopKParameters | AliceParameters]:
    """The parameters of each of a run's methods: those given, or the paper's.

    Raises ``ValueError`` if some are given for a method that the run does not use, or if ALICE's
    direction is not that of the prompts' ``labels``.
    """
    given = {Method.TOPK: topk, Method.ALICE: alice}
    used = _known(RunMethod, method, what="method").methods
    for unused in given.keys() - set(used):
        if given[unused] is not None:
            raise ValueError(f"This run does not use {unused.label}: leave its parameters out.")
    if Method.ALICE in used:
        given[Method.ALICE] = alice or AliceParameters(direction=_direction(labels))
        for label in labels:
            given[Method.ALICE].check_label(label)
    return {name.value: given[name] or TopKParameters() for name in used}


def check_models(method: str, *, language_model: str, classifier: str, precision: str) -> None:
    """Raise ``ValueError`` unless the run has the models that its method needs, and no other."""
    _known(Precision, precision, what="precision")
    if not language_model.strip():
        raise ValueError("Name the language model.")
    for what, name in (("language model", language_model), ("classifier", classifier)):
        if len(name) > LONGEST_NAME:
            raise ValueError(
                f"The name of the {what} has {len(name)} characters. At most {LONGEST_NAME} can be stored."
            )
    address = urlsplit(language_model) if "://" in language_model else None
    if address and (address.username or address.password or address.query):
        raise ValueError(
            "A completions server's address is stored with the run and shown: leave user name, password and query "
            "out of it, and set HUMANVAL_COMPLETIONS_KEY to the key."
        )
    if Method.ALICE not in _known(RunMethod, method, what="method").methods:
        if classifier:
            raise ValueError(f"Top-k uses no classifier: leave {classifier!r} out.")
    elif not classifier.strip():
        raise ValueError("ALICE needs a classifier: name one.")


def check_cell(cell: Cell) -> None:
    """Raise ``ValueError`` or ``NotEnoughDemonstrations`` if a run could not fill the cell."""
    if cell.count < 1:
        raise ValueError(f"The number of statements must be at least 1, not {cell.count}.")
    usable = Demonstration.objects.usable(cell.group, cell.label).values_list("text", flat=True)
    check_enough(usable, of=f"the {cell.label} set of {cell.group}")


def pause_run(*, run_id: int, reason: str = "") -> bool:
    """Let nobody work on an open run until it is resumed; its page shows the reason. Return whether it was open."""
    paused = GenerationRun.objects.open().filter(pk=run_id).update(state=RunState.PAUSED, failure=reason)
    if paused:
        log.info("run_paused", run=run_id, reason=reason)
    return bool(paused)


@transaction.atomic
def resume_run(*, run: GenerationRun) -> bool:
    """Put a paused run back into the queue and wake a worker for it. Return whether it was paused.

    What stopped its workers has been mended, so that chunks count as never taken up.
    """
    # Chunks before the run: everybody locks them in this order.
    GenerationChunk.objects.unfinished().filter(run=run.pk, run__state=RunState.PAUSED).update(leases=0)
    resumed = GenerationRun.objects.filter(pk=run.pk, state=RunState.PAUSED).update(state=RunState.QUEUED, failure="")
    if resumed:
        log.info("run_resumed", run=run.pk)
        wake_worker_for(run.pk)
    return bool(resumed)


def cancel_run(*, run: GenerationRun) -> bool:
    """Cancel an open or paused run; what is stored stays. Return whether it had not ended yet."""
    return _end(run.pk, RunState.CANCELLED, among=UNENDED_STATES)


def fail_run(*, run_id: int, reason: str) -> bool:
    """Mark an open run as failed with the reason its page shows."""
    return _end(run_id, RunState.FAILED, failure=reason)


def finish_run_if_complete(*, run_id: int) -> bool:
    """Mark an open run as finished if none of its chunks is left."""
    if GenerationChunk.objects.unfinished().filter(run=run_id).exists():
        return False
    return _end(run_id, RunState.FINISHED)


def _end(run_id: int, state: RunState, *, failure: str = "", among: Collection[str] = OPEN_STATES) -> bool:
    changed = GenerationRun.objects.filter(pk=run_id, state__in=among).update(
        state=state, failure=failure, ended_at=timezone.now()
    )
    if changed:
        log.info("run_ended", run=run_id, state=state.value, failure=failure)
    return bool(changed)


def _direction(labels: Collection[str]) -> Direction:
    """The only direction of prompts with these labels."""
    if len(labels) > 1:
        raise ValueError("ALICE works in one direction: start a run for benign prompts and one for toxic ones.")
    [label] = labels
    return Direction.for_label(label)


def _known(choices: type[Choices], value: str, *, what: str) -> Choices:
    if value not in choices.values:
        raise ValueError(f"There is no {what} {value!r}. Choose one of: {', '.join(choices.values)}.")
    return choices(value)


def _parts(cells: Sequence[Cell]) -> list[tuple[Cell, int]]:
    """The cells' parts of at most a chunk's size: first parts of all cells, then second parts …"""
    most = settings.CHUNK_SIZE
    parts = [(start, number, cell) for number, cell in enumerate(cells) for start in range(0, cell.count, most)]
    return [(cell, min(most, cell.count - start)) for start, _, cell in sorted(parts, key=lambda part: part[:2])]
