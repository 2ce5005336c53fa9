"""Which of the statements that there are a training has: as many as were asked for, of both methods equally many."""

from dataclasses import dataclass

import numpy as np

from analysis.classifiers.pool import NOT_COMPARED, BoolArray, IntArray, Pool, pool_of
from analysis.models import HumanvalSet, LabelSource, TrainingMethods

LEAST_OF_A_CLASS = 10
NO_HUMANVAL = (
    "No HUMANVAL set is drawn, so nothing is set apart to test on. Draw one before the training: one that is drawn "
    "later may have statements that were trained on."
)


class NothingToTrainOn(ValueError):
    """There are no such statements, too few, or of one class only."""


@dataclass(frozen=True)
class Choice:
    """The N statements that a training has, in the order of their ids, and how many were left out by the reason."""

    ids: IntArray
    toxic: BoolArray
    alice: BoolArray
    left_out: dict[str, int]
    humanval: list[int]
    """The versions of the HUMANVAL sets that were left out, with what is too similar to them."""
    problem: str
    """Why nothing can be trained on these; empty: it can."""
    notes: list[str]

    @property
    def counts(self) -> dict[str, int]:
        return {
            "statements": len(self.ids),
            "toxic": int(self.toxic.sum()),
            "benign": int((~self.toxic).sum()),
            "alice": int(self.alice.sum()),
            "topk": int((~self.alice).sum()),
        }

    def as_data(self) -> dict:
        return {**self.counts, "left_out": self.left_out, "humanval": self.humanval}


def choice_of(*, labels: str, methods: str, size: int | None, seed: int) -> Choice:
    """The statements of a training with these settings, of those that are stored now.

    The same statements, settings and seed give the same choice. Any two with the same ``size`` have equally many,
    whatever their methods (paper, table 4).
    """
    humanval = list(HumanvalSet.objects.drawn().order_by("version").values_list("version", flat=True))
    pool = pool_of(labels=labels, methods=methods)
    problem = (
        pool.problem
        or _why_none(pool, labels=labels, methods=methods)
        or _sample(pool, methods=methods, size=size, seed=seed)
        or _why_no_classes(pool.toxic[pool.left])
    )
    return Choice(
        ids=pool.ids[pool.left],
        toxic=pool.toxic[pool.left],
        alice=pool.alice[pool.left],
        left_out=pool.left_out,
        humanval=humanval,
        problem=problem,
        notes=_notes(pool, humanval),
    )


def _why_none(pool: Pool, *, labels: str, methods: str) -> str:
    if not len(pool.ids):
        whose = {TrainingMethods.ALICE: " by ALICE", TrainingMethods.TOPK: " by top-k"}.get(methods, "")
        return f"No statement was generated{whose}. Have a model write some, or import some, or choose other methods."
    if not pool.left.any():
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in pool.left_out.items())
        is_human = labels == LabelSource.HUMAN
        advice = "Have people judge some, or choose prompt labels." if is_human else "Have a model write more."
        return f"Of {len(pool.ids):,} statements none is left to train on: {reasons}. {advice}"
    if methods == TrainingMethods.BOTH and len(np.unique(pool.alice[pool.left])) < 2:
        there, missing = ("ALICE", "top-k") if pool.alice[pool.left].any() else ("top-k", "ALICE")
        return f"None of the statements that are left is by {missing}. Choose {there} only."
    return ""


def _sample(pool: Pool, *, methods: str, size: int | None, seed: int) -> str:
    """Leave out at random what is too much; why the ``size`` cannot be had, or nothing."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(pool.left))
    is_alice = pool.alice[order]
    parts = [order[is_alice], order[~is_alice]] if methods == TrainingMethods.BOTH else [order]
    if size is not None and size % len(parts):
        return f"{size:,} statements cannot be half ALICE's and half top-k's. Choose an even size."
    there = min(map(len, parts))
    _keep(pool, [part[:there] for part in parts], "more than of the other method")
    if size is None:
        return ""
    if size > there * len(parts):
        return f"There are {there * len(parts):,} such statements, not {size:,}. Choose at most so many, or no size."
    _keep(pool, [part[: size // len(parts)] for part in parts], "more than the size")
    return ""


def _keep(pool: Pool, parts: list[IntArray], reason: str) -> None:
    is_kept = np.zeros(len(pool.ids), dtype=bool)
    is_kept[np.concatenate(parts)] = True
    pool.leave_out(~is_kept, reason)


def _why_no_classes(toxic: BoolArray) -> str:
    numbers = {"toxic": int(toxic.sum()), "benign": int((~toxic).sum())}
    fewer, more = sorted(numbers, key=lambda name: numbers[name])
    if numbers[fewer] >= LEAST_OF_A_CLASS:
        return ""
    if not numbers[fewer]:
        said = f"All {numbers[more]:,} statements are {more}: nothing tells them apart from {fewer} ones."
    else:
        said = f"Only {numbers[fewer]} of {len(toxic):,} statements {'is' if numbers[fewer] == 1 else 'are'} {fewer}."
    return f"{said} At least {LEAST_OF_A_CLASS} of each class are needed: choose other labels, methods or size."


def _notes(pool: Pool, humanval: list[int]) -> list[str]:
    notes = [] if humanval else [NO_HUMANVAL]
    if number := pool.left_out.get(NOT_COMPARED):
        notes.append(
            f"{number:,} statement{' was' if number == 1 else 's were'} not compared with a HUMANVAL set yet and "
            "left out. Compare them on the set's page to train on them, too."
        )
    return notes
