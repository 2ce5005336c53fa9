"""What a worker does with a run: lease a chunk, draw its statements, store them, until none is left."""

import contextlib
import platform
import time
from collections.abc import Callable, Collection
from functools import lru_cache, partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import IntegrityError, OperationalError

from generation.chunks import LeaseLost, give_back_chunk, keep_lease, lease_next_chunk, store_chunk
from generation.drawing import Draw, DrawingFailed, derived_seed, draw_statements, duplicate_key
from generation.models import (
    TEXT_DIGEST,
    Demonstration,
    GenerationChunk,
    GenerationRun,
    Method,
    Precision,
    TargetGroup,
    digest,
)
from generation.parameters import AliceParameters, TopKParameters
from generation.prompting import NotEnoughDemonstrations, check_enough
from generation.runs import fail_run, pause_run

if TYPE_CHECKING:
    from generation.decoders import Decoder
    from generation.devices import Batches

PARAMETERS = {Method.TOPK.value: TopKParameters, Method.ALICE.value: AliceParameters}
STORE_TRIES = 3

log = structlog.get_logger(__name__)


class WorkerStopping(Exception):
    """This worker was asked to stop; what it has begun is left to others."""


def work_on_run(*, run_id: int, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Work on an open run until no chunk is free or it is paused or ends. Safe to run twice and at once.

    ``is_stopping`` is asked at every step of the decoding; once it says so, the chunk is given
    back for others to take up at once. What an operator can mend pauses the run; what needs another
    run fails it.
    """
    from generation.devices import Batches  # torch: never in the web process

    batches = Batches()
    load_models_of(GenerationRun.objects.waiting().filter(pk=run_id).first())
    while chunk := lease_next_chunk(run_id=run_id):
        try:
            work_on_chunk(chunk=chunk, is_stopping=is_stopping, batches=batches)
            continue
        except LeaseLost as lost:  # others have that chunk, or the run is not open: then there is no next one
            log.info("lease_lost", run=run_id, reason=str(lost))
            give_back_chunk(chunk=chunk)
            continue
        except WorkerStopping:
            pass
        except reasons_to_fail() as error:
            fail_run(run_id=run_id, reason=str(error))
        except reasons_to_pause() as error:
            _connect.cache_clear()  # once mended, the server may have another model
            pause_run(run_id=run_id, reason=str(error))
        except OperationalError:
            raise  # the database is away: the run goes on when it is back
        except Exception as error:
            # Whatever it was, the run's page has to say so; the queue would only log it.
            fail_run(run_id=run_id, reason=f"The worker stopped with an error: {type(error).__name__}: {error}")
            raise
        give_back_chunk(chunk=chunk)
        return


def load_models_of(run: GenerationRun | None) -> None:
    """Load a run's models before anything is leased, so that no lease lapses meanwhile.

    What goes wrong here does so again with the lease in hand, and is dealt with there.
    """
    if run is None:
        return
    with contextlib.suppress(*reasons_to_pause(), *reasons_to_fail()):
        load_language_model(run.language_model, precision=run.precision)
        if run.classifier:
            load_classifier(run.classifier, precision=run.precision)


def reasons_to_pause() -> tuple[type[Exception], ...]:
    """What an operator can mend, unless it is a reason to fail; the run then goes on where it was."""
    from torch import OutOfMemoryError

    from generation.classifiers import ClassifierUnavailable
    from generation.devices import DeviceUnavailable, OutOfMemory
    from generation.engines.completions import ServerAnswerInvalid, ServerUnavailable
    from generation.language_models import LanguageModelUnavailable

    return (
        LanguageModelUnavailable, ClassifierUnavailable, DeviceUnavailable, ServerUnavailable, ServerAnswerInvalid,
        OutOfMemory, OutOfMemoryError,
    )  # fmt: skip


def reasons_to_fail() -> tuple[type[Exception], ...]:
    """What goes wrong however often it is tried, so that another run is needed."""
    from generation.classifiers import NoToxicLabel
    from generation.decoding.protocols import NotANumber
    from generation.engines.completions import PromptTooLong
    from generation.engines.transformers_model import TextTooLong

    return (NoToxicLabel, NotANumber, TextTooLong, PromptTooLong, DrawingFailed, NotEnoughDemonstrations)


def work_on_chunk(
    *, chunk: GenerationChunk, is_stopping: Callable[[], bool] = lambda: False, batches: "Batches | None" = None
) -> None:
    """Draw a chunk's statements and store them; draw again if another worker stored one of them first."""

    from generation.devices import give_memory_back

    def on_step() -> None:
        if is_stopping():
            raise WorkerStopping
        keep_lease(chunk=chunk)

    decoder = decoder_for(run=chunk.run, group=chunk.group, on_step=on_step, batches=batches)
    record_environment(chunk.run, decoder)
    started = time.monotonic()
    for attempt in range(STORE_TRIES):
        draw = draw_chunk(chunk=chunk, decoder=decoder)
        try:
            store_chunk(
                chunk=chunk,
                draw=draw,
                decoding_seconds=time.monotonic() - started,
                classifier_runs=decoder.classifier_runs,
            )
        except IntegrityError:
            if attempt + 1 == STORE_TRIES:
                raise
        else:
            log.info("chunk_stored", run=chunk.run_id, chunk=chunk.index, statements=len(draw.statements))
            give_memory_back()
            return


def draw_chunk(*, chunk: GenerationChunk, decoder: "Decoder") -> Draw:
    """Draw the statements of a chunk.

    The run's seed and the chunk's index decide them, but for those that the run has already:
    they are drawn again.
    """
    demonstrations = list(Demonstration.objects.usable(chunk.group, chunk.label).values_list("text", flat=True))
    check_enough(demonstrations, of=f"the {chunk.label} set of {chunk.group}")  # some may be retired by now
    return draw_statements(
        chunk.size,
        demonstrations=demonstrations,
        seed=derived_seed(chunk.run.seed, chunk.index),
        decode=decoder,
        taken=partial(_keys_stored, chunk.run),
    )


def decoder_for(
    *,
    run: GenerationRun,
    group: TargetGroup,
    on_step: Callable[[], None] = lambda: None,
    batches: "Batches | None" = None,
) -> "Decoder":
    """What decodes prompts of a group as the run says; models are loaded once a process.

    Raises ``reasons_to_pause`` and ``reasons_to_fail``.
    """
    from generation.decoders import Decoder
    from generation.devices import Batches

    return Decoder(
        model=load_language_model(run.language_model, precision=run.precision),
        classifier=load_classifier(run.classifier, precision=run.precision) if run.classifier else None,
        parameters={method: PARAMETERS[method](**values) for method, values in run.parameters.items()},
        group_words=group.naming_words.split(),
        on_step=on_step,
        batches=batches or Batches(),
    )


def load_language_model(name: str, *, precision: str = Precision.FLOAT32):
    """The language model of that name, loaded once a process: a server's, or one on this worker's device."""
    from generation import language_models
    from generation.devices import choose
    from generation.engines.completions import is_server

    if is_server(name):
        return _connect(name)
    return language_models.load(
        name,
        cache_folder=settings.VAR / "models",
        device=choose(settings.DEVICE),
        precision=precision,
        allow_downloads=settings.ALLOW_DOWNLOADS,
    )


def load_classifier(name: str, *, precision: str = Precision.FLOAT32):
    """The classifier of that name on this worker's device, loaded once a process."""
    import torch

    from generation import classifiers
    from generation.devices import choose

    return classifiers.load(
        name,
        device=choose(settings.DEVICE),
        dtype=getattr(torch, precision),
        allow_downloads=settings.ALLOW_DOWNLOADS,
    )


@lru_cache(maxsize=1)
def _connect(name: str):
    from generation.engines.completions import connect
    from generation.language_models import LanguageModelUnavailable

    own = urlsplit(name)[:2] == urlsplit(settings.LANGUAGE_MODEL)[:2]
    try:
        # The key belongs to the server of the settings; a run may name any other.
        return connect(name, api_key=settings.COMPLETIONS_KEY if own else "")
    except ValueError as error:  # no address
        raise LanguageModelUnavailable(str(error)) from error


def _keys_stored(run: GenerationRun, keys: Collection[str]) -> set[str]:
    """Which of some keys the run has stored already, by the digest its constraint indexes."""
    stored = run.generations.annotate(digest=TEXT_DIGEST).filter(digest__in=map(digest, keys))
    return {duplicate_key(text) for text in stored.values_list("text", flat=True)}


def record_environment(run: GenerationRun, decoder: "Decoder") -> None:
    """Note on the run what it is worked on with, once."""
    environment = environment_of(decoder)
    if run.environment != environment:
        GenerationRun.objects.filter(pk=run.pk).update(environment=environment)
        run.environment = environment


def environment_of(decoder: "Decoder") -> dict[str, str | int]:
    """What else than seed and parameters decides the statements: models, device, precision and versions."""
    import torch
    import transformers

    from generation.devices import describe

    model, classifier = decoder.model, decoder.classifier
    environment = {
        "language_model_revision": model.revision,
        "device": describe(model.device),
        "dtype": _name(model.dtype),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    if hasattr(model, "prompt_tokens"):  # a server's
        environment |= {"prompt_tokens": model.prompt_tokens}
    if classifier is not None:
        environment |= {
            "classifier": classifier.name,
            "classifier_revision": classifier.revision,
            "classifier_device": describe(classifier.device),
            "classifier_dtype": _name(classifier.dtype),
        }
    return environment


def _name(dtype) -> str:
    return str(dtype).removeprefix("torch.")
