"""Training a logistic head on the frozen embeddings of the embedded encoder: seconds on a CPU."""

import time
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from analysis.training import checkpoints
from analysis.training.examples import Examples, check
from analysis.training.loop import SECONDS_BETWEEN_CHECKPOINTS, class_weights
from analysis.training.outcomes import OnPoint, OnStep, Paused, Point, Scores, ShouldPause, Trained, never, nothing
from analysis.training.parameters import HeadParameters
from analysis.training.pooling import centred, tokenizer_of, with_head
from generation import heads
from generation.engines.text_readers import Encoder
from generation.heads import Head

TEXTS_A_STEP = 512


def train_head(
    examples: Examples,
    parameters: HeadParameters,
    *,
    encoder: Encoder,
    checkpoint: Path | None = None,
    on_point: OnPoint = nothing,
    on_step: OnStep = nothing,
    should_pause: ShouldPause = never,
) -> Trained:
    """Return a classifier that is ``encoder`` with a head fitted on ``examples``; nothing about it is random.

    Each step but the last embeds some texts, and the last one fits the head, so the curve has two points. Embeddings
    made so far are kept in the folder ``checkpoint``, where one is given. Raises ``ValueError`` for examples of one
    class, ``Paused`` and ``OtherTraining``.
    """
    check(examples)
    embeddings = _embed(examples, encoder, checkpoint, on_step, should_pause)
    toxic, held_out = torch.tensor(examples.toxic), torch.tensor(examples.validation)
    weights = class_weights(toxic[~held_out]) if parameters.balanced else (1.0, 1.0)
    head = heads.fit(embeddings[~held_out], toxic[~held_out], l2=parameters.l2, balanced=parameters.balanced)

    def scores(fitted: Head, part: Tensor) -> Scores:
        return _scores(fitted.logits(embeddings[part]), toxic[part], weights)

    steps = _steps(examples)
    before, after = scores(Head(torch.zeros_like(head.weights), 0.0), held_out), scores(head, held_out)
    curve = (
        Point(0, None, validation_loss=before.loss, validation_auc=before.auc),
        Point(steps, scores(head, ~held_out).loss, validation_loss=after.loss, validation_auc=after.auc),
    )
    for point in curve:
        on_point(point)
    on_step(steps, steps)
    return Trained(
        model=with_head(encoder.model, head),
        tokenizer=tokenizer_of(encoder),
        before=before,
        after=after,
        steps=steps,
        best_step=steps,
        notes=("The mean over tokens is a layer of its own in the saved model, so that transformers alone read it.",),
        curve=curve,
    )


def _embed(
    examples: Examples, encoder: Encoder, checkpoint: Path | None, on_step: OnStep, should_pause: ShouldPause
) -> Tensor:
    """(N, E) centred embeddings of all texts."""
    of = {"model": f"{encoder.name}, {encoder.revision}, {encoder.dtype}", "data": examples.digest()}
    state = checkpoints.read(checkpoint, of=of)[0] if checkpoint else None
    done: list[Tensor] = [state["embeddings"]] if state else []
    count, kept_at = sum(map(len, done)), time.monotonic()
    while count < len(examples.texts):
        part = examples.texts[count : count + TEXTS_A_STEP]
        done.append(centred(encoder.embed(part)))
        count += len(part)
        on_step(-(-count // TEXTS_A_STEP), _steps(examples))
        pause = should_pause()
        if checkpoint and (pause or time.monotonic() - kept_at > SECONDS_BETWEEN_CHECKPOINTS):
            done = [torch.cat(done)]
            checkpoints.write(checkpoint, {"embeddings": done[0]}, of=of)
            kept_at = time.monotonic()
        if pause and count < len(examples.texts):
            raise Paused
    return torch.cat(done)


def _steps(examples: Examples) -> int:
    return -(-len(examples.texts) // TEXTS_A_STEP) + 1


def _scores(logits: Tensor, toxic: Tensor, weights: tuple[float, float]) -> Scores:
    logits = logits.double()
    of_each = torch.tensor(weights, dtype=torch.float64)[toxic.long()]
    loss = binary_cross_entropy_with_logits(logits, toxic.double(), weight=of_each)
    return Scores(loss=float(loss), auc=heads.auc(logits, toxic))
