"""A logistic head on sentence embeddings: fitted, measured, and kept as a few kB of JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

MOST_STEPS = 500
GRADIENT_TOLERANCE = 1e-7
CHANGE_TOLERANCE = 1e-12
DIGITS = 6


@dataclass(frozen=True)
class Head:
    """Weights (E,) float32 and a bias: the logit of toxic is their inner product with an embedding, plus the bias."""

    weights: Tensor
    bias: float

    def logits(self, embeddings: Tensor) -> Tensor:
        """(N,) logits of the class toxic for (N, E) embeddings; equal rows give equal bits, unlike a matrix product."""
        return (embeddings * self.weights.to(embeddings)).sum(-1) + self.bias


def fit(embeddings: Tensor, labels: Tensor, *, l2: float, balanced: bool = False) -> Head:
    """The head that minimises the mean cross-entropy of (N,) bool ``labels`` plus l2/2 times the squared weights.

    The bias is not penalised. ``balanced`` gives both classes the same say, however many texts each has.
    The same input gives the same head: Newton-like steps (L-BFGS) from zero, in 64-bit numbers.
    """
    inputs, targets = embeddings.double(), labels.double()
    weights = torch.zeros(inputs.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros((), dtype=torch.float64, requires_grad=True)
    shares = _class_weights(labels) if balanced else None
    optimiser = torch.optim.LBFGS(
        [weights, bias],
        max_iter=MOST_STEPS,
        tolerance_grad=GRADIENT_TOLERANCE,
        tolerance_change=CHANGE_TOLERANCE,
        line_search_fn="strong_wolfe",
    )

    def loss() -> float:
        optimiser.zero_grad()
        value = binary_cross_entropy_with_logits(inputs @ weights + bias, targets, weight=shares)
        value = value + l2 / 2 * weights.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return float(value.detach())

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return Head(weights.detach().float(), float(bias.detach()))


def auc(scores: Tensor, labels: Tensor) -> float:
    """The chance that a toxic text has a higher score than a benign one; equal scores count half.

    >>> auc(torch.tensor([0.1, 0.4, 0.4, 0.9]), torch.tensor([False, False, True, True]))
    0.875
    """
    _check_both_classes(labels)
    positives = int(labels.sum())
    negatives = len(labels) - positives
    rank_sum = float(_mean_ranks(scores)[labels.bool()].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def cross_validated_auc(
    embeddings: Tensor, labels: Tensor, *, l2: float, folds: int = 5, seed: int = 0, balanced: bool = False
) -> list[float]:
    """The AUC on each of some folds of a head fitted on the others.

    Each fold has its share of both classes; ``seed`` decides which texts it has.
    """
    fold_of = stratified_folds(labels, folds=folds, seed=seed)
    aucs = []
    for fold in range(folds):
        held_out = fold_of == fold
        head = fit(embeddings[~held_out], labels[~held_out], l2=l2, balanced=balanced)
        aucs.append(auc(head.logits(embeddings[held_out]), labels[held_out]))
    return aucs


def stratified_folds(labels: Tensor, *, folds: int, seed: int) -> Tensor:
    """(N,) the fold of each text: the members of a class are shuffled, then dealt out in turn."""
    if folds < 2:
        raise ValueError(f"folds must be a whole number of at least 2, not {folds}.")
    generator = torch.Generator().manual_seed(seed)
    fold_of = torch.empty(len(labels), dtype=torch.long)
    for toxic in (False, True):
        members = (labels.bool() == toxic).nonzero()[:, 0]
        if len(members) < folds:
            raise ValueError(
                f"{folds} folds need at least {folds} texts of each class; "
                f"{len(members)} of {len(labels)} are {'toxic' if toxic else 'benign'}."
            )
        shuffled = members[torch.randperm(len(members), generator=generator)]
        fold_of[shuffled] = torch.arange(len(members)) % folds
    return fold_of


def dumps(head: Head, about: Mapping[str, object]) -> str:
    """The head as JSON, after what there is to know about it."""
    numbers = {"bias": _rounded(head.bias), "weights": [_rounded(weight) for weight in head.weights.tolist()]}
    lines = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in {**about, **numbers}.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def loads(text: str) -> Head:
    """The head in what ``dumps`` wrote."""
    data = json.loads(text)
    return Head(torch.tensor(data["weights"], dtype=torch.float32), float(data["bias"]))


def _class_weights(labels: Tensor) -> Tensor:
    """(N,) weights whose sum is N/2 over either class."""
    _check_both_classes(labels)
    share = labels.double().mean()
    return torch.where(labels.bool(), 0.5 / share, 0.5 / (1 - share))


def _mean_ranks(scores: Tensor) -> Tensor:
    """(N,) ranks from 1, the lowest score first; equal scores have the mean of their ranks."""
    _, inverse, counts = torch.unique(scores, return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    ranks: Tensor = (last - (counts - 1) / 2)[inverse]
    return ranks


def _check_both_classes(labels: Tensor) -> None:
    if len(set(labels.tolist())) != 2:
        raise ValueError("The texts are all of one class; a toxic and a benign one are needed.")


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
