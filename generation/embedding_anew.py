"""Embedding texts whatever is stored of them: for checks that must not rest on what was stored.

It is imported by name where it is needed, since it loads torch.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from generation.models import Precision, ReaderKind, TextReader
from generation.reading import load_model
from generation.readings import ENCODER

TEXTS_AT_ONCE = 1024
PRECISION = Precision.FLOAT32


def encoder() -> TextReader:
    """The embedded sentence encoder on this machine, which ``embed`` embeds by; it is not stored."""
    model = load_model(ReaderKind.ENCODER, ENCODER, precision=PRECISION)
    return TextReader(kind=ReaderKind.ENCODER, name=model.name, revision=model.revision, precision=PRECISION)


def embed(texts: Iterable[str]) -> Iterator[np.ndarray]:
    """(n, E) float32, parts of at most 1,024 texts in their order, each row of length 1."""
    model, rest = load_model(ReaderKind.ENCODER, ENCODER, precision=PRECISION), iter(texts)
    while part := list(islice(rest, TEXTS_AT_ONCE)):
        yield model.embed(part).numpy()
