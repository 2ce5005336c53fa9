"""Reading texts with a model, whatever its kind: as many at once as time and memory allow."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from generation import working
from generation.models import Precision, ReaderKind

TEXTS_AT_ONCE = 2
MOST_TEXTS_AT_ONCE = 1024
SECONDS_AT_ONCE = 2
"""More texts are read at once while that takes no longer: between them a stop is heard."""
TOO_SMALL = (
    "The device has too little memory for even one statement at a time. Use a smaller model, bfloat16, or a device "
    "with more memory that nobody else uses."
)


@dataclass
class Portion:
    """How much is read at once, as far as was found out: kept from one ``read_all`` to the next.

    A forward's tokens are halved each time that they were too many for the memory.
    """

    texts: int = TEXTS_AT_ONCE
    tokens_a_forward: float = math.inf


def load_model(kind: str, name: str, *, precision: str = Precision.FLOAT32) -> Any:
    """The model of that kind and name on this worker's device, loaded once a process.

    Raises what ``working.load_language_model`` and ``load_classifier`` raise.
    """
    import torch

    from generation import classifiers
    from generation.devices import choose
    from generation.engines.perplexity import Predictor

    if kind == ReaderKind.LANGUAGE_MODEL:
        return Predictor(working.load_language_model(name, precision=precision))
    if kind == ReaderKind.CLASSIFIER:
        return working.load_classifier(name, precision=precision)
    return classifiers.load_encoder(device=choose(settings.DEVICE), dtype=getattr(torch, precision))


def read_all(
    statements: Sequence[tuple[int, str]], *, model: Any, on_step: Callable[[], None], portion: Portion
) -> dict[int, dict | None]:
    """What a model makes of statements, given as (id, text): the fields of a row of its values, by id.

    ``None`` is no number: the weights are broken, or the precision overflows. ``on_step`` is called between the texts
    that are read at once. Raises ``OutOfMemory``.
    """
    from generation.devices import give_memory_back

    reads = getattr(model, "encoder", model)
    before = reads.tokens_a_forward
    try:
        return _read_all(statements, model, reads, on_step, portion)
    finally:
        reads.tokens_a_forward = before  # the model stays loaded, and the memory may be there again
        give_memory_back()


def _read_all(
    statements: Sequence[tuple[int, str]], model: Any, reads: Any, on_step: Callable[[], None], portion: Portion
) -> dict[int, dict | None]:
    from generation.devices import OutOfMemory, give_memory_back

    left = sorted(statements, key=lambda statement: len(statement[1]))  # texts as long share a forward
    values: dict[int, dict | None] = {}
    while left:
        on_step()
        reads.tokens_a_forward = int(min(reads.tokens_a_forward, portion.tokens_a_forward))
        part = left[: portion.texts]
        started = time.monotonic()
        try:
            found = _values(model, part)
        except (MemoryError, RuntimeError) as error:
            if not _is_short_of_memory(error):
                raise
            found = None
        if found is None:  # here, where the error no longer holds on to the tensors of the attempt
            if reads.tokens_a_forward <= 1:
                raise OutOfMemory(TOO_SMALL)
            portion.tokens_a_forward = reads.tokens_a_forward // 2
            give_memory_back()
            _empty_cache()
            continue
        values |= found
        left = left[len(part) :]
        took = time.monotonic() - started
        if took < SECONDS_AT_ONCE / 2 and len(part) == portion.texts:
            portion.texts = min(2 * portion.texts, MOST_TEXTS_AT_ONCE)
        elif took > SECONDS_AT_ONCE:
            portion.texts = max(1, len(part) // 2)
    return values


def _values(model: Any, statements: Sequence[tuple[int, str]]) -> dict[int, dict | None]:
    """The fields of a row of values a statement, by its id; ``None`` where there is no number."""
    texts = [text for _, text in statements]
    rows: list[dict | None]
    if hasattr(model, "embed"):
        vectors = model.embed(texts).numpy().astype("<f4")  # (N, E)
        rows = [{"vector": vector.tobytes()} if math.isfinite(vector.sum()) else None for vector in vectors]
    elif hasattr(model, "log_probs"):
        toxic = model.log_probs(texts)[:, 1].exp().clamp(max=1).tolist()
        rows = [{"toxic_prob": probability} if math.isfinite(probability) else None for probability in toxic]
    else:
        rows = [_perplexity(surprise) for surprise in model.read(texts)]
    return {pk: row for (pk, _), row in zip(statements, rows, strict=True)}


def _perplexity(surprise: Any) -> dict | None:
    if not surprise.tokens:
        return {"value": None, "tokens": 0}
    try:
        value = math.exp(surprise.total / surprise.tokens)
    except OverflowError:
        return None
    return {"value": value, "tokens": surprise.tokens} if math.isfinite(value) else None


def _is_short_of_memory(error: Exception) -> bool:
    from torch import OutOfMemoryError

    return isinstance(error, MemoryError | OutOfMemoryError) or "can't allocate memory" in str(error)


def _empty_cache() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()
