"""What a worker does with a run: lease a chunk, draw its statements, store them, until none is left."""

import contextlib
import platform
import time
import tomllib
from collections.abc import Callable, Collection
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.db import IntegrityError, OperationalError

from generation.cells import usable_texts
from generation.chunks import LeaseLost, give_back_chunk, keep_lease, lease_next_chunk, store_chunk
from generation.drawing import Draw, DrawingFailed, derived_seed, draw_statements, duplicate_key
from generation.models import (
    TEXT_DIGEST,
    GenerationCell,
    GenerationChunk,
    GenerationRun,
    Method,
    Precision,
    digest,
)
from generation.parameters import AliceParameters, TopKParameters
from generation.prompting import NotEnoughDemonstrations, check_enough
from generation.runs import fail_run, pause_run
from generation.stopping import WorkerStopping

if TYPE_CHECKING:
    from generation.decoders import Decoder
    from generation.devices import Batches

STORE_TRIES = 3

log = structlog.get_logger(__name__)


def work_on_run(
    *,
    run_id: int,
    is_stopping: Callable[[], bool] = lambda: False,
    between_chunks: Callable[[], None] = lambda: None,
) -> None:
    """Work on an open run until no chunk is free or it is paused or ends. Safe to run twice and at once.

    ``is_stopping`` is asked at every step of the decoding; once it says so, the chunk is given
    back for others to take up at once. ``between_chunks`` is called while no chunk is held, for what
    people wait for. What an operator can mend pauses the run; what needs another
    run fails it.
    """
    from generation.devices import Batches  # torch: never in the web process

    batches = Batches()
    while chunk := _next_chunk(run_id, between_chunks):
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


def _next_chunk(run_id: int, between_chunks: Callable[[], None]) -> GenerationChunk | None:
    """Do what people wait for, then lease a chunk, with the run's models loaded so that its lease does not lapse."""
    try:
        between_chunks()
    except Exception:
        log.exception("error_between_chunks", run=run_id)  # not the run's; if the database is away, it is below, too
    run = GenerationRun.objects.waiting().filter(pk=run_id).first()
    if run is None:
        return None
    # What goes wrong here does so again with the chunk in hand, and is dealt with there.
    with contextlib.suppress(Exception):
        load_models_of(run)
    return lease_next_chunk(run_id=run_id)


def load_models_of(run: GenerationRun) -> None:
    """Load a run's models, unless they were the last that this process loaded."""
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

    cell = cell_of(run=chunk.run, group_id=chunk.group_id, label=chunk.label)
    decoder = decoder_for(cell=cell, on_step=on_step, batches=batches)
    record_environment(chunk.run, decoder)
    started = time.monotonic()
    for attempt in range(STORE_TRIES):
        draw = draw_chunk(chunk=chunk, cell=cell, decoder=decoder)
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


def cell_of(*, run: GenerationRun, group_id: int, label: str) -> GenerationCell:
    """What the run froze for a group and label when it was started."""
    cell = run.cells.select_related("group").get(group=group_id, label=label)
    cell.run = run  # so that what is noted on the one is known to the other
    return cell


def draw_chunk(*, chunk: GenerationChunk, cell: GenerationCell, decoder: "Decoder") -> Draw:
    """Draw the statements of a chunk from the demonstrations of its cell.

    The run's seed and the chunk's index decide them, but for those that the run has already:
    they are drawn again.
    """
    demonstrations = demonstrations_of(cell)
    check_enough(demonstrations, of=f"the {cell.label} set of {cell.group}")
    return draw_statements(
        chunk.size,
        demonstrations=demonstrations,
        seed=derived_seed(chunk.run.seed, chunk.index),
        decode=decoder,
        taken=partial(_keys_stored, chunk.run),
    )


def demonstrations_of(cell: GenerationCell) -> list[str]:
    """What a cell kept at its start; of a run begun before cells kept anything, its set as it is now."""
    return cell.demonstrations if cell.is_frozen else usable_texts([cell.group])[cell.group_id, cell.label]


def decoder_for(
    *, cell: GenerationCell, on_step: Callable[[], None] = lambda: None, batches: "Batches | None" = None
) -> "Decoder":
    """What decodes prompts of a cell as its run says; models are loaded once a process.

    Raises ``reasons_to_pause`` and ``reasons_to_fail``.
    """
    from generation.decoders import Decoder
    from generation.devices import Batches

    run = cell.run
    naming_words = cell.naming_words if cell.is_frozen else cell.group.naming_words
    return Decoder(
        model=load_language_model(run.language_model, precision=run.precision),
        classifier=load_classifier(run.classifier, precision=run.precision) if run.classifier else None,
        parameters={
            method: parameters_of(method, values, label=cell.label) for method, values in run.parameters.items()
        },
        group_words=naming_words.split(),
        on_step=on_step,
        batches=batches or Batches(),
    )


def parameters_of(method: str, values: dict, *, label: str) -> TopKParameters | AliceParameters:
    """A method's stored parameters for prompts with a label, which decides ALICE's direction."""
    if method == Method.ALICE:
        return AliceParameters(**values).for_label(label)
    return TopKParameters(**values)


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
    """The classifier of that name on this worker's device, loaded once a process; it may have been trained here."""
    import torch

    from generation import classifiers
    from generation.devices import choose

    return classifiers.load_named(
        name,
        trained_here=settings.VAR / "classifiers",
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
        "humanval": humanval_version(),
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


@cache
def humanval_version() -> str:
    """The version of this code, as ``pyproject.toml`` says."""
    return tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["project"]["version"]


def _name(dtype) -> str:
    return str(dtype).removeprefix("torch.")
