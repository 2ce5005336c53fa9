"""Leasing a chunk, keeping the lease, and storing the chunk's statements exactly once."""

import uuid
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import MD5, Coalesce, Greatest
from django.utils import timezone

from generation.drawing import Draw
from generation.models import (
    OPEN_STATES,
    Generation,
    GenerationCell,
    GenerationChunk,
    GenerationRun,
    Prompt,
    RunState,
    digest,
)
from generation.runs import fail_run, finish_run_if_complete

MAX_LEASES = 5

log = structlog.get_logger(__name__)


class LeaseLost(RuntimeError):
    """The chunk is no longer ours: the run ended, or the lease lapsed and somebody took it up."""


@transaction.atomic
def lease_next_chunk(*, run_id: int) -> GenerationChunk | None:
    """Take up the first free chunk of an open run, or return ``None`` if there is none.

    A chunk that was taken up ``MAX_LEASES`` times without being stored fails the run: it
    would stop every worker in turn.
    """
    chunk = (
        GenerationChunk.objects.free()
        .filter(run=run_id, run__state__in=OPEN_STATES)
        .select_related("run", "group")
        .select_for_update(skip_locked=True, of=("self",))
        .order_by("index")
        .first()
    )
    if chunk is None:
        return None
    if chunk.leases >= MAX_LEASES:
        fail_run(
            run_id=run_id,
            reason=f"Chunk {chunk.index} was taken up {chunk.leases} times and its worker stopped each time. "
            "See the workers' logs; a machine short of memory does this.",
        )
        return None
    if chunk.leases:
        log.warning("lapsed_chunk_taken_up_again", run=run_id, chunk=chunk.index, leases=chunk.leases)
    chunk.lease_token = uuid.uuid4()
    chunk.lease_expires_at = _lease_end()
    chunk.leases += 1
    chunk.save(update_fields=["lease_token", "lease_expires_at", "leases"])
    GenerationRun.objects.filter(pk=run_id, state=RunState.QUEUED).update(
        state=RunState.RUNNING, started_at=Coalesce("started_at", timezone.now())
    )
    return chunk


def keep_lease(*, chunk: GenerationChunk) -> None:
    """Put off the end of a lease once half of it has gone; raise ``LeaseLost`` if it is ours no more."""
    if chunk.lease_expires_at - timezone.now() > _lease_length() / 2:
        return
    end = _lease_end()
    ours = GenerationChunk.objects.unfinished().filter(
        pk=chunk.pk, lease_token=chunk.lease_token, run__state__in=OPEN_STATES
    )
    if not ours.update(lease_expires_at=end):
        raise LeaseLost(f"{chunk} is not ours any more.")
    chunk.lease_expires_at = end


def give_back_chunk(*, chunk: GenerationChunk) -> None:
    """Let others take a chunk up at once; a worker that stops in good order does not count against it.

    Nothing changes if somebody else has it by now.
    """
    ours = GenerationChunk.objects.unfinished().filter(pk=chunk.pk, lease_token=chunk.lease_token)
    ours.update(lease_token=None, lease_expires_at=None, leases=Greatest(F("leases") - 1, 0))


@transaction.atomic
def store_chunk(*, chunk: GenerationChunk, draw: Draw, decoding_seconds: float, classifier_runs: int = 0) -> None:
    """Store a chunk's statements, count them in its cell, give the lease back and finish a complete run, all at once.

    Raises ``LeaseLost`` if somebody else has the chunk by now or the run ended, and
    ``IntegrityError`` if another worker stored one of the texts meanwhile; nothing is
    stored then.
    """
    ours = GenerationChunk.objects.unfinished().filter(pk=chunk.pk, lease_token=chunk.lease_token)
    run = GenerationRun.objects.open().filter(pk=chunk.run_id)
    # The lock on the run keeps it from being cancelled meanwhile, and of two workers that store
    # the last two chunks it lets the second see that both are stored. Everybody locks the chunk
    # first, then the run, and the cell last, so that no two wait for each other.
    if not ours.select_for_update().exists() or not run.select_for_update(no_key=True).exists():
        raise LeaseLost(f"{chunk} is not ours any more.")
    prompts = _stored_prompts(chunk, {statement.prompt for statement in draw.statements})
    Generation.objects.bulk_create(
        Generation(
            run_id=chunk.run_id,
            chunk=chunk,
            position=statement.position,
            prompt_id=prompts[statement.prompt],
            group_id=chunk.group_id,
            label=chunk.label,
            method=statement.method,
            text=statement.text,
            seed=statement.seed,
            tokens=statement.tokens,
            log_prob=statement.log_prob,
            score=statement.score,
            toxic_prob=statement.toxic_prob,
            hypotheses=statement.hypotheses,
            finish_reason=statement.finish_reason,
        )
        for statement in draw.statements
    )
    ours.update(
        lease_token=None,
        lease_expires_at=None,
        finished_at=timezone.now(),
        decoding_seconds=decoding_seconds,
        empty=draw.empty,
        duplicate=draw.duplicate,
        copy=draw.copy,
        classifier_runs=classifier_runs,
    )
    GenerationCell.objects.filter(run=chunk.run_id, group=chunk.group_id, label=chunk.label).update(
        stored=F("stored") + len(draw.statements),
        decoding_seconds=F("decoding_seconds") + decoding_seconds,
        empty=F("empty") + draw.empty,
        duplicate=F("duplicate") + draw.duplicate,
        copy=F("copy") + draw.copy,
        classifier_runs=F("classifier_runs") + classifier_runs,
    )
    finish_run_if_complete(run_id=chunk.run_id)


def _stored_prompts(chunk: GenerationChunk, texts: set[str]) -> dict[str, int]:
    """The ids of prompts by text, those not stored yet being stored."""
    cell = {"group_id": chunk.group_id, "label": chunk.label}
    Prompt.objects.bulk_create((Prompt(text=text, **cell) for text in sorted(texts)), ignore_conflicts=True)
    stored = Prompt.objects.annotate(digest=MD5("text")).filter(digest__in=map(digest, texts), **cell)  # by its index
    return dict(stored.values_list("text", "pk"))


def _lease_length() -> timedelta:
    return timedelta(seconds=settings.LEASE_SECONDS)


def _lease_end():
    return timezone.now() + _lease_length()
