"""What each step of fine-tuning learns, and how: rates, gradients, chance."""

import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from analysis.training import batches
from analysis.training.bases import load_base
from analysis.training.forwards import Forwards
from analysis.training.loop import fine_tune
from analysis.training.parameters import FineTuningParameters
from tests.analysis import weather
from tests.analysis.fine_tuning import CPU


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return weather.save_bert(tmp_path_factory.mktemp("base"), body_only=True)


def watched(monkeypatch, folder, where, *, seed=5, **options):
    """What each step learned: the loss, how many texts, the seed of what was dropped out, the rate and the gradient."""
    steps, points = [], []
    learn = Forwards.learn

    def watch(self, rows, toxic, *, seed):
        loss = learn(self, rows, toxic, seed=seed)
        steps.append({"rows": rows, "loss": loss, "seed": seed})
        return loss

    def look(optimizer, args, how):
        size = torch.cat([part.grad.flatten() for group in optimizer.param_groups for part in group["params"]]).norm()
        steps[-1] |= {"gradient": float(size), "rate": optimizer.param_groups[0]["lr"]}

    parameters = FineTuningParameters(epochs=2, learning_rate=0.01, evaluations_an_epoch=1, longest=24, **options)
    hook = register_optimizer_step_pre_hook(look)
    try:
        with monkeypatch.context() as watching:
            watching.setattr(Forwards, "learn", watch)
            base = load_base(folder, device=CPU, seed=5)
            base.model.classifier.weight.data *= 100
            how = {"checkpoint": where, "device": CPU, "on_point": points.append}
            fine_tune(base, weather.examples(), parameters, seed=seed, **how)
    finally:
        hook.remove()
    return steps, points


def test_each_step_has_its_rate_its_clipped_gradient_and_its_own_chance(monkeypatch, folder, tmp_path):
    steps, points = watched(monkeypatch, folder, tmp_path / "first", batch_size=25, warmup=0.25)
    assert [sorted(len(step["rows"]) for step in part) for part in (steps[:4], steps[4:])] == [[21, 25, 25, 25]] * 2
    rates = [0.005, 0.01, 0.01, 0.01 * 5 / 6, 0.01 * 4 / 6, 0.005, 0.01 * 2 / 6, 0.01 / 6]
    assert [step["rate"] for step in steps] == pytest.approx(rates)
    assert max(step["gradient"] for step in steps) == pytest.approx(1, abs=1e-3)
    assert len({step["seed"] for step in steps}) == len(steps)
    for point, part in zip(points[1:], (steps[:4], steps[4:]), strict=True):
        texts = [len(step["rows"]) for step in part]
        assert point.loss == pytest.approx(np.average([step["loss"] for step in part], weights=texts), rel=1e-9)
    others, _ = watched(monkeypatch, folder, tmp_path / "second", seed=6, batch_size=25, warmup=0.25)
    assert [step["rows"] for step in others] != [step["rows"] for step in steps]
    assert {step["seed"] for step in others}.isdisjoint(step["seed"] for step in steps)
    again, _ = watched(monkeypatch, folder, tmp_path / "third", batch_size=25, warmup=0.25)
    assert again == steps


def test_what_is_dropped_out_follows_from_the_seed_alone(folder):
    base = load_base(folder, device=CPU, seed=5)
    rows = batches.tokenise(base.tokenizer, weather.examples(8).texts, longest=24)
    forwards = Forwards(
        base.model, pad=0, device=CPU, precision="float32", class_weights=(1.0, 1.0), at_once=8
    )  # fmt: skip
    toxic = torch.tensor(weather.examples(8).toxic)
    first, other, again = (forwards.learn(rows, toxic, seed=seed) for seed in (1, 2, 1))
    assert first == again != other
