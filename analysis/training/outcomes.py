"""What training tells while it goes on and what comes of it. Without torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Point:
    """A point of the loss curve; step 0 is the model before training.

    ``loss`` is the mean over the training texts since the point before, and missing at step 0.
    """

    step: int
    loss: float | None
    validation_loss: float
    validation_auc: float


@dataclass(frozen=True)
class Scores:
    """On the validation texts: the mean cross-entropy, weighted as in training, and the AUC."""

    loss: float
    auc: float


@dataclass(frozen=True)
class Trained:
    """A trained transformers classifier with the labels benign (0) and toxic (1), and how it got there.

    ``steps`` were taken and the weights are those of ``best_step``; ``notes`` are sentences about what was unusual.
    """

    model: Any
    tokenizer: Any
    before: Scores
    after: Scores
    steps: int
    best_step: int
    notes: tuple[str, ...] = ()
    curve: tuple[Point, ...] = ()


class Paused(Exception):
    """Training was asked to let others work; all it did is in the checkpoint, from which the same call goes on."""


class TrainingFailed(RuntimeError):
    """Training cannot go on; the message says why and what to do."""


class Diverged(TrainingFailed):
    """The loss is no number any more."""


class OtherTraining(TrainingFailed):
    """The checkpoint is of another model, other data, parameters or another seed."""


def nothing(*_: object) -> None:
    """For whoever does not ask to be told."""


def never() -> bool:
    """For whoever lets nobody else work."""
    return False


OnPoint = Callable[[Point], None]
"""Called with each point of the curve; after a resumption some may come again, with the same numbers."""

OnStep = Callable[[int, int], None]
"""Called after each step with its number, from 1, and how many there are at most."""

ShouldPause = Callable[[], bool]
"""Asked after each step; if it says yes, a checkpoint is written and ``Paused`` raised."""
