"""What a worker does with a run: lease a chunk, draw its statements, store them, until none is left."""

import platform
import time
from collections.abc import Callable, Collection
from functools import partial

import structlog
from django.conf import settings
from django.db import IntegrityError, OperationalError

from generation.chunks import LeaseLost, give_back_chunk, keep_lease, lease_next_chunk, store_chunk
from generation.drawing import Draw, DrawingFailed, derived_seed, draw_statements, duplicate_key
from generation.models import TEXT_DIGEST, Demonstration, GenerationChunk, GenerationRun, digest
from generation.parameters import TopKParameters
from generation.prompting import NotEnoughDemonstrations, check_enough
from generation.runs import fail_run

STORE_TRIES = 3

log = structlog.get_logger(__name__)


class WorkerStopping(Exception):
    """This worker was asked to stop; what it has begun is left to others."""


def work_on_run(*, run_id: int, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Work on an open run until no chunk is free, it ends or it fails. Safe to run twice and at once.

    ``is_stopping`` is asked at every step of the decoding; once it says so, the chunk is given
    back for others to take up at once.
    """
    from generation.language_models import LanguageModelUnavailable, TextTooLong  # torch: never in the web process

    try:
        while chunk := lease_next_chunk(run_id=run_id):
            try:
                work_on_chunk(chunk=chunk, is_stopping=is_stopping)
            except LeaseLost as lost:  # others have that chunk, or the run ended: then there is no next one
                log.info("lease_lost", run=run_id, reason=str(lost))
            except WorkerStopping:
                give_back_chunk(chunk=chunk)
                return
    except (LanguageModelUnavailable, TextTooLong, DrawingFailed, NotEnoughDemonstrations) as error:
        fail_run(run_id=run_id, reason=str(error))
    except OperationalError:
        raise  # the database is away: the run goes on when it is back
    except Exception as error:
        # Whatever it was, the run's page has to say so; the queue would only log it.
        fail_run(run_id=run_id, reason=f"The worker stopped with an error: {type(error).__name__}: {error}")
        raise


def work_on_chunk(*, chunk: GenerationChunk, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Draw a chunk's statements and store them; draw again if another worker stored one of them first."""
    model = load_language_model(chunk.run.language_model)
    _record_environment(chunk.run, model)
    started = time.monotonic()
    for attempt in range(STORE_TRIES):
        draw = draw_chunk(chunk=chunk, model=model, is_stopping=is_stopping)
        try:
            store_chunk(chunk=chunk, draw=draw, decoding_seconds=time.monotonic() - started)
        except IntegrityError:
            if attempt + 1 == STORE_TRIES:
                raise
        else:
            log.info("chunk_stored", run=chunk.run_id, chunk=chunk.index, statements=chunk.size)
            return


def draw_chunk(*, chunk: GenerationChunk, model, is_stopping: Callable[[], bool] = lambda: False) -> Draw:
    """Draw the statements of a chunk.

    The run's seed and the chunk's index decide them, but for those that the run has already:
    they are drawn again.
    """
    from generation.decoding import topk

    demonstrations = list(Demonstration.objects.usable(chunk.group, chunk.label).values_list("text", flat=True))
    check_enough(demonstrations, of=f"the {chunk.label} set of {chunk.group}")  # some may be retired by now

    def on_step() -> None:
        if is_stopping():
            raise WorkerStopping
        keep_lease(chunk=chunk)

    decode = partial(
        topk.decode,
        model,
        parameters=TopKParameters(**chunk.run.parameters),
        on_step=on_step,
    )
    return draw_statements(
        chunk.size,
        demonstrations=demonstrations,
        seed=derived_seed(chunk.run.seed, chunk.index),
        decode=lambda prompts, seeds: decode(prompts, seeds=seeds),
        taken=partial(_keys_stored, chunk.run),
    )


def load_language_model(name: str):
    """The language model of that name, loaded once a process."""
    from generation import language_models

    return language_models.load(name, cache_folder=settings.VAR / "models", allow_downloads=settings.ALLOW_DOWNLOADS)


def _keys_stored(run: GenerationRun, keys: Collection[str]) -> set[str]:
    """Which of some keys the run has stored already, by the digest its constraint indexes."""
    stored = run.generations.annotate(digest=TEXT_DIGEST).filter(digest__in=map(digest, keys))
    return {duplicate_key(text) for text in stored.values_list("text", flat=True)}


def _record_environment(run: GenerationRun, model) -> None:
    """Note on the run what it was worked on with, once."""
    import torch
    import transformers

    environment = {
        "language_model_revision": model.revision,
        "device": str(model.device),
        "dtype": str(model.model.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    if run.environment != environment:
        GenerationRun.objects.filter(pk=run.pk).update(environment=environment)
        run.environment = environment
