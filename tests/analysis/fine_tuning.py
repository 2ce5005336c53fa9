"""Fine-tuning a small model on sentences about the weather."""

import torch

from analysis.training.bases import load_base
from analysis.training.loop import fine_tune
from analysis.training.parameters import FineTuningParameters
from tests.analysis import weather

CPU = torch.device("cpu")
PARAMETERS = FineTuningParameters(epochs=3, batch_size=16, learning_rate=0.01, evaluations_an_epoch=2, longest=24)


class Killed(BaseException):
    """Nothing catches it, as nothing catches a SIGKILL."""


def train_from(base, checkpoint, *, examples=None, parameters=PARAMETERS, seed=5, change=None, **how):
    loaded = load_base(base, device=CPU, seed=seed)
    if change:
        change(loaded.model)
    where = {"checkpoint": checkpoint, "device": CPU}
    return fine_tune(loaded, examples or weather.examples(), parameters, seed=seed, **where, **how)


def assert_same(first, second):
    assert (first.before, first.after, first.curve) == (second.before, second.after, second.curve)
    assert (first.steps, first.best_step) == (second.steps, second.best_step)
    mine, others = first.model.state_dict(), second.model.state_dict()
    assert mine.keys() == others.keys()
    for name in mine:
        assert torch.equal(mine[name], others[name]), name
