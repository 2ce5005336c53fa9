"""Starting a run, pausing, resuming and cancelling it, and its end."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TypeVar
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import TextChoices
from django.utils import timezone

from generation.auditing import note
from generation.cells import Cell, frozen_cells
from generation.models import (
    OPEN_STATES,
    UNENDED_STATES,
    GenerationCell,
    GenerationChunk,
    GenerationRun,
    Method,
    Precision,
    RunMethod,
    RunState,
)
from generation.parameters import AliceParameters, TopKParameters, check_count
from generation.wakeups import ask_to_count, wake_worker_for

DRAWN_SEED_LIMIT = 2**31
LARGEST_CHUNK = 2**15 - 1
LONGEST_NAME = GenerationRun._meta.get_field("language_model").max_length
ROWS_AT_ONCE = 5000
SEED_LIMIT = 2**63

Choices = TypeVar("Choices", bound=TextChoices)

log = structlog.get_logger(__name__)


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
    chunk_size: int | None = None,
    repeats: GenerationRun | None = None,
    created_by=None,
    wake: bool = True,
) -> GenerationRun:
    """Store a run with its cells and chunks, and wake a worker for it.

    ``topk`` and ``alice`` are the parameters of the methods that ``method`` names, by default
    the paper's. Each cell keeps the demonstrations and naming words of this moment. Chunks are the cells cut
    into parts of ``chunk_size``, by default ``settings.CHUNK_SIZE``, taken in turn from each
    cell, so that a cancelled run has some of everything. Raises ``ValueError`` for what cannot be done and
    ``NotEnoughDemonstrations`` for sets that are too small.
    """
    frozen = frozen_cells(cells)
    if seed is not None and not 0 <= seed < SEED_LIMIT:
        raise ValueError(f"The seed must be from 0 to {SEED_LIMIT - 1}, not {seed}.")
    size = checked_chunk_size(chunk_size)
    parameters = chosen_parameters(method, labels={cell.label for cell in cells}, topk=topk, alice=alice)
    check_models(method, language_model=language_model, classifier=classifier, precision=precision)
    run = GenerationRun.objects.create(
        method=method,
        parameters={name: _stored(values) for name, values in parameters.items()},
        language_model=language_model,
        classifier=classifier,
        precision=precision,
        seed=secrets.randbelow(DRAWN_SEED_LIMIT) if seed is None else seed,
        repeats=repeats,
        created_by=created_by,
    )
    GenerationCell.objects.bulk_create(
        GenerationCell(
            run=run,
            group=cell.group,
            label=cell.label,
            places=cell.count,
            demonstrations=list(cell.demonstrations),
            naming_words=cell.naming_words,
        )
        for cell in frozen
    )
    GenerationChunk.objects.bulk_create(
        (
            GenerationChunk(run=run, index=index, group=cell.group, label=cell.label, size=part)
            for index, (cell, part) in enumerate(_parts(cells, size))
        ),
        batch_size=ROWS_AT_ONCE,
    )
    statements = sum(cell.count for cell in cells) * len(run.methods)
    note(
        "run started",
        by=created_by,
        subject=str(run),
        statements=statements,
        method=str(run.method),
        sets=[f"{cell.label} {cell.group.slug}" for cell in cells],
        repeats=repeats and repeats.pk,
    )
    log.info("run_started", run=run.pk, statements=statements, method=run.method)
    if wake:
        wake_worker_for(run.pk)
    return run


def checked_chunk_size(given: int | None = None) -> int:
    """How many statements a worker takes up at a time: so many, or as the settings say. Raises ``ValueError``."""
    size = settings.CHUNK_SIZE if given is None else given
    check_count("HUMANVAL_CHUNK_SIZE" if given is None else "chunk_size", size, most=LARGEST_CHUNK)
    return size


def chosen_parameters(
    method: str,
    *,
    labels: Collection[str],
    topk: TopKParameters | None = None,
    alice: AliceParameters | None = None,
) -> dict[str, TopKParameters | AliceParameters]:
    """The parameters of each of a run's methods: those given, or the paper's.

    Each label plays in its own direction. Raises ``ValueError`` if some are given for a method that the
    run does not use, or if a direction given for ALICE is not that of all ``labels``.
    """
    given = {Method.TOPK: topk, Method.ALICE: alice}
    used = _known(RunMethod, method, what="method").methods
    for unused in given.keys() - set(used):
        if given[unused] is not None:
            raise ValueError(f"This run does not use {unused.label}: leave its parameters out.")
    if Method.ALICE in used:
        given[Method.ALICE] = alice or AliceParameters()
        for label in sorted(labels):
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


@transaction.atomic
def pause_run(*, run_id: int, reason: str = "", by=None) -> bool:
    """Let nobody work on an open run until it is resumed; its page shows the reason. Return whether it was open."""
    paused = GenerationRun.objects.open().filter(pk=run_id).update(state=RunState.PAUSED, failure=reason)
    if paused:
        note("run paused", by=by, subject=f"run {run_id}", reason=reason)
        log.info("run_paused", run=run_id, reason=reason)
    return bool(paused)


@transaction.atomic
def resume_run(*, run: GenerationRun, by=None) -> bool:
    """Put a paused run back into the queue and wake a worker for it. Return whether it was paused.

    What stopped its workers has been mended, so that chunks count as never taken up.
    """
    # Chunks before the run: everybody locks them in this order.
    GenerationChunk.objects.unfinished().filter(run=run.pk, run__state=RunState.PAUSED).update(leases=0)
    resumed = GenerationRun.objects.filter(pk=run.pk, state=RunState.PAUSED).update(state=RunState.QUEUED, failure="")
    if resumed:
        note("run resumed", by=by, subject=str(run))
        log.info("run_resumed", run=run.pk)
        wake_worker_for(run.pk)
    return bool(resumed)


@transaction.atomic
def cancel_run(*, run: GenerationRun, by=None) -> bool:
    """Cancel an open or paused run; what is stored stays. Return whether it had not ended yet."""
    cancelled = _end(run.pk, RunState.CANCELLED, among=UNENDED_STATES)
    if cancelled:
        note("run cancelled", by=by, subject=str(run))
    return cancelled


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
        ask_to_count(run_id)
    return bool(changed)


def _stored(parameters: TopKParameters | AliceParameters) -> dict:
    """The parameters as JSON; ALICE's direction is left out, since it follows from each cell's label."""
    return {name: value for name, value in asdict(parameters).items() if name != "direction"}


def _known(choices: type[Choices], value: str, *, what: str) -> Choices:
    if value not in choices.values:
        raise ValueError(f"There is no {what} {value!r}. Choose one of: {', '.join(choices.values)}.")
    return choices(value)


def _parts(cells: Sequence[Cell], most: int) -> list[tuple[Cell, int]]:
    """The cells' parts of at most ``most`` statements: first parts of all cells, then second parts …"""
    parts = [(start, number, cell) for number, cell in enumerate(cells) for start in range(0, cell.count, most)]
    return [(cell, min(most, cell.count - start)) for start, _, cell in sorted(parts, key=lambda part: part[:2])]
