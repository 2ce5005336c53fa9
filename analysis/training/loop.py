"""Training all of a transformers classifier, so that it can be killed at any time and ends as if it had not been.

A loop of our own, and not the Trainer of transformers: this one lets other work onto the machine between two steps,
takes up a killed training at the very bit, tells each step to whoever asks, and needs nothing but torch. For that,
nothing random has a state: what a step drops out and how an epoch is shuffled follow from the seed and the step's or
epoch's number, so the checkpoint of a step is its number, the weights and the optimizer. The same bits come out on the
same machine and torch; a GPU adds in no fixed order, and there the last digits may differ.
"""

import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from analysis.training import batches, checkpoints
from analysis.training.bases import Base
from analysis.training.examples import Examples, check
from analysis.training.forwards import NO_NUMBER, NO_NUMBER_AT_ALL, Forwards, memory_in_words
from analysis.training.outcomes import (
    Diverged,
    OnPoint,
    OnStep,
    Paused,
    Point,
    Scores,
    ShouldPause,
    Trained,
    TrainingFailed,
    never,
    nothing,
)
from analysis.training.parameters import FineTuningParameters

LONGEST_GRADIENT = 1.0
SECONDS_BETWEEN_CHECKPOINTS = 120.0


def fine_tune(
    base: Base,
    examples: Examples,
    parameters: FineTuningParameters,
    *,
    seed: int,
    checkpoint: Path,
    device: torch.device,
    precision: str = "float32",
    on_point: OnPoint = nothing,
    on_step: OnStep = nothing,
    should_pause: ShouldPause = never,
) -> Trained:
    """Return ``base`` trained on ``examples``, with the weights that had the best AUC on the validation texts.

    Goes on from what is in the folder ``checkpoint``, and then tells all points of the curve again. Of equal AUCs the
    one with the smaller loss counts as better; the model before training takes part. A training that diverges after it
    made something better ends there. Raises ``ValueError`` for examples of one class, ``Paused``, ``OtherTraining``,
    ``TrainingFailed`` and ``OutOfMemory``.
    """
    check(examples)
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        training = _Training(base, examples, parameters, seed=seed, device=device, precision=precision)
        return training.run(checkpoint, on_point, on_step, should_pause)


@dataclass
class _Progress:
    """All of the state but for the weights."""

    step: int = 0
    best_step: int = 0
    stale: int = 0  # evaluations since the best one
    loss: float = 0.0  # over the texts since the last point
    texts: int = 0
    at_once: int = 0
    read_at_once: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def scores(self, step: int) -> Scores:
        point = next(point for point in self.curve if point["step"] == step)
        return Scores(loss=point["validation_loss"], auc=point["validation_auc"])


class _Training:
    def __init__(
        self,
        base: Base,
        examples: Examples,
        parameters: FineTuningParameters,
        *,
        seed: int,
        device: torch.device,
        precision: str,
    ) -> None:
        self.base, self.parameters, self.seed = base, parameters, seed
        self.model = base.model.to(device)
        rows = batches.tokenise(base.tokenizer, examples.texts, longest=parameters.longest)
        train, held_out = (np.flatnonzero(part).tolist() for part in (~examples.validation, examples.validation))
        self.rows, self.held_out = [rows[place] for place in train], [rows[place] for place in held_out]
        self.toxic, self.held_out_toxic = (torch.tensor(examples.toxic[places]) for places in (train, held_out))
        self.forwards = Forwards(
            self.model,
            pad=base.tokenizer.pad_token_id,
            device=device,
            precision=precision,
            class_weights=class_weights(self.toxic) if parameters.class_weights else (1.0, 1.0),
            at_once=parameters.batch_size,
        )
        self.optimizer = torch.optim.AdamW(
            _parts(self.model, parameters.weight_decay), lr=parameters.learning_rate, fused=True
        )
        self.steps_an_epoch = math.ceil(len(self.rows) / parameters.batch_size)
        self.steps = parameters.epochs * self.steps_an_epoch
        self.progress = _Progress(at_once=parameters.batch_size, read_at_once=parameters.batch_size)
        self.best: dict[str, Tensor] = {}
        self.of = {
            "model": f"{base.name}, {base.revision}, {_shape_of(self.model)}",
            "data": examples.digest(),
            "parameters": repr(sorted(asdict(parameters).items())),
            "seed": str(seed),
            "precision": precision,
        }

    def run(self, folder: Path, on_point: OnPoint, on_step: OnStep, should_pause: ShouldPause) -> Trained:
        self._resume(folder)
        for point in self.progress.curve:
            on_point(Point(**point))
        if not self.progress.curve:
            on_point(self._first_point())
        try:
            self._learn(folder, on_point, on_step, should_pause)
        except Diverged as diverged:
            if not self.progress.best_step:
                raise
            return self._finished(f"{diverged} The weights are those of step {self.progress.best_step}, the best.")
        return self._finished()

    def _learn(self, folder: Path, on_point: OnPoint, on_step: OnStep, should_pause: ShouldPause) -> None:
        kept_at = time.monotonic()
        while self._goes_on():
            self._step()
            if evaluated := self._is_evaluated(self.progress.step):
                on_point(self._evaluate())
            on_step(self.progress.step, self.steps)
            pause = should_pause()
            if not self._goes_on():
                return
            if evaluated or pause or time.monotonic() - kept_at > SECONDS_BETWEEN_CHECKPOINTS:
                self._keep(folder)
                kept_at = time.monotonic()
            if pause:
                raise Paused

    def _goes_on(self) -> bool:
        return self.progress.step < self.steps and self.progress.stale < self.parameters.patience

    def _first_point(self) -> Point:
        try:
            return self._evaluate()
        except Diverged as error:
            precision = self.of["precision"]
            raise TrainingFailed(NO_NUMBER_AT_ALL.format(name=self.base.name, precision=precision)) from error

    def _step(self) -> None:
        step = self.progress.step
        epoch, place = divmod(step, self.steps_an_epoch)
        batch = self._batches(epoch)[place]
        for group in self.optimizer.param_groups:
            group["lr"] = self.parameters.learning_rate * share_of_rate(step, self.steps, self.parameters.warmup)
        loss = self.forwards.learn(
            [self.rows[place] for place in batch], self.toxic[batch], seed=batches.seed_of(self.seed, "step", step)
        )
        size = torch.nn.utils.clip_grad_norm_(self.model.parameters(), LONGEST_GRADIENT)
        if not (math.isfinite(loss) and math.isfinite(float(size))):
            raise Diverged(NO_NUMBER.format(where=f"at step {step + 1}"))
        with memory_in_words():  # its state is as large as the model twice, however few texts are taken
            self.optimizer.step()
        self.progress.step += 1
        self.progress.loss += loss * len(batch)
        self.progress.texts += len(batch)

    def _batches(self, epoch: int) -> list[list[int]]:
        if getattr(self, "_epoch", None) != epoch:
            self._epoch = epoch
            self._order = batches.of_epoch(
                [len(row) for row in self.rows],
                size=self.parameters.batch_size,
                seed=batches.seed_of(self.seed, "epoch", epoch),
            )
        return self._order

    def _is_evaluated(self, step: int) -> bool:
        wanted = min(self.parameters.evaluations_an_epoch, self.steps_an_epoch)
        place = (step - 1) % self.steps_an_epoch + 1
        return place * wanted // self.steps_an_epoch > (place - 1) * wanted // self.steps_an_epoch

    def _evaluate(self) -> Point:
        progress = self.progress
        scores = self.forwards.score(self.held_out, self.held_out_toxic)
        loss = progress.loss / progress.texts if progress.texts else None
        point = Point(progress.step, loss, validation_loss=scores.loss, validation_auc=scores.auc)
        progress.loss, progress.texts = 0.0, 0
        best = progress.scores(progress.best_step) if progress.curve else None
        progress.curve.append(asdict(point))
        if best is None or (scores.auc, -scores.loss) > (best.auc, -best.loss):
            progress.best_step, progress.stale = progress.step, 0
            self.best = {name: tensor.detach().cpu().clone() for name, tensor in self.model.state_dict().items()}
        else:
            progress.stale += 1
        return point

    def _keep(self, folder: Path) -> None:
        progress, forwards = self.progress, self.forwards
        progress.at_once, progress.read_at_once = forwards.at_once, forwards.read_at_once
        progress.notes = list(forwards.notes)
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "best": {} if progress.best_step == progress.step else self.best,  # else it would be there twice
            "progress": asdict(progress),
        }
        forwards.notes += [note for note in checkpoints.write(folder, state, of=self.of) if note not in forwards.notes]

    def _resume(self, folder: Path) -> None:
        state, notes = checkpoints.read(folder, of=self.of)
        if state is not None:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.best = state["best"] or state["model"]
            self.progress = _Progress(**state["progress"])
            self.forwards.at_once, self.forwards.read_at_once = self.progress.at_once, self.progress.read_at_once
        self.forwards.notes = [*self.progress.notes, *notes]

    def _finished(self, why_early: str = "") -> Trained:
        progress = self.progress
        self.model.load_state_dict(self.best)
        notes = [*self.base.notes, *self.forwards.notes]
        if why_early:
            notes.append(why_early)
        elif not progress.best_step:
            notes.append("Training made nothing better on the validation texts: the weights are those before it.")
        elif progress.step < self.steps:
            notes.append(
                f"Training ended at step {progress.step} of {self.steps}, after {progress.stale} evaluations without a "
                "better AUC."
            )
        return Trained(
            model=self.model.eval(),
            tokenizer=self.base.tokenizer,
            before=progress.scores(0),
            after=progress.scores(progress.best_step),
            steps=progress.step,
            best_step=progress.best_step,
            notes=tuple(notes),
            curve=tuple(Point(**point) for point in progress.curve),
        )


def share_of_rate(step: int, steps: int, warmup: float) -> float:
    """Which share of the highest learning rate the step after ``step`` steps has: up in a line, then down to 0.

    >>> [share_of_rate(step, 10, 0.2) for step in (0, 1, 2, 9)]
    [0.5, 1.0, 1.0, 0.125]
    """
    rising = round(warmup * steps)
    if step < rising:
        return (step + 1) / rising
    return (steps - step) / (steps - rising)


def class_weights(toxic: Tensor) -> tuple[float, float]:
    """The weights of benign and toxic with which both classes have the same say, and texts 1 on average."""
    share = float(toxic.double().mean())
    return 0.5 / (1 - share), 0.5 / share


def _parts(model: Any, weight_decay: float) -> list[dict[str, Any]]:
    """What is trained; biases and norms, which are vectors, do not decay."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [parameter for parameter in trained if parameter.dim() > 1], "weight_decay": weight_decay},
        {"params": [parameter for parameter in trained if parameter.dim() <= 1], "weight_decay": 0.0},
    ]


def _shape_of(model: Any) -> str:
    """Its architecture: the class, and how many numbers it has."""
    return f"{type(model).__name__} of {sum(parameter.numel() for parameter in model.parameters()):,} parameters"
