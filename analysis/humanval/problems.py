"""What can be wrong with a HUMANVAL set, each as a sentence, and what else is worth knowing of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from analysis.exports.annotated import ANNOTATED
from analysis.exports.humanval import frozen_rows
from analysis.exports.train import TRAIN
from analysis.humanval.choosing import (
    MARGIN,
    IntArray,
    Similar,
    checksum,
    cosines,
    count_similar,
    rounding_of,
    similar_to,
)
from analysis.humanval.drawing import closest_allowed
from analysis.humanval.pool import count_by_stratum, known_to_annotators
from analysis.models import HumanvalSet, HumanvalState
from generation.models import Generation, TextReader

CLOSE = 0.1
"""The closest training statement is looked for so far below the threshold."""


@dataclass(frozen=True)
class Problem:
    """What is wrong, as a sentence; of a statement too close to the set, with which one and how close."""

    sentence: str
    statement: int | None = None
    nearest: int | None = None
    cosine: float | None = None


def close_to_set(
    training: np.ndarray, test: np.ndarray, threshold: float, on_block: Callable[[], None]
) -> tuple[Similar, Similar]:
    """The rows for training above the threshold, and those that come near it."""
    near = similar_to(training, test, above=max(threshold - CLOSE, 0), on_block=on_block)
    # The nearest is exact up to the rounding of the products: those that it leaves in doubt are looked at once more.
    maybe = near.rows[near.cosine > threshold - 2 * rounding_of(test.shape[1])]
    found = similar_to(training[maybe], test, above=threshold)
    return Similar(maybe[found.rows], found.nearest, found.cosine), near


def nearer_than_allowed(humanval_set: HumanvalSet, statement: int, nearest: int, cosine: float) -> Problem:
    command = f"manage.py build_humanval --update-removed {humanval_set.version}"
    if statement > humanval_set.compared_up_to:
        remedy = f"It was stored after the last comparison: {command} removes it from training."
    else:
        remedy = f"Compare again: {command}. If it stays, its stored embedding is not that of its text."
    return Problem(
        f"Statement {statement} is for training and has a cosine of {cosine:.4f} with statement {nearest} of the set, "
        f"above {humanval_set.threshold:g}. {remedy}",
        statement,
        nearest,
        cosine,
    )


def wrong_statements(humanval_set: HumanvalSet, own: IntArray, removed: IntArray, test: IntArray) -> Iterator[Problem]:
    """Whether it has the statements it says, of the strata it says, none of which it removes."""
    for pk in np.setdiff1d(own, test).tolist():
        method = Generation.objects.filter(pk=pk).values_list("method", flat=True).first()
        yield Problem(f"Statement {pk} of the set is no machine-generated one: its method is {method}.", pk)
    for pk in np.intersect1d(own, removed).tolist():
        yield Problem(f"Statement {pk} is of the set and removed for it at once.", pk)
    told = known_to_annotators(Generation.objects.filter(pk__in=own.tolist()), at=humanval_set.frozen_at)
    for pk in told.order_by("pk").values_list("pk", flat=True):
        yield Problem(f"Statement {pk} of the set has known answers: annotators may have been told them.", pk)
    if len(own) != humanval_set.report.get("chosen"):
        yield Problem(f"The set has {len(own):,} statements; drawn were {humanval_set.report.get('chosen')}.")
    there = count_by_stratum(own.tolist())
    for row in humanval_set.report.get("strata", []):
        stratum = row["group"], row["label"], row["method"]
        if there[stratum] != row["found"]:
            yield Problem(f"Of {', '.join(stratum)} the set has {there[stratum]}; drawn were {row['found']}.")


def wrong_exports(humanval_set: HumanvalSet, own: IntArray, removed: IntArray, training: IntArray) -> Iterator[Problem]:
    """Whether the files for training hold what they should, and nothing else."""
    compared = training[training <= humanval_set.compared_up_to]
    [rows] = TRAIN.rows({"humanval": humanval_set})
    exported = np.fromiter(rows.queryset.order_by("pk").values_list("pk", flat=True), dtype=np.int64)
    if len(wrong := np.setxor1d(exported, compared)):
        yield Problem(f"The export train, without the set, differs in {len(wrong):,} statements: {_some(wrong)}.")
    for rows in ANNOTATED.rows({"humanval": humanval_set}):
        places = rows.queryset.order_by().values_list(rows.place, flat=True)
        judged = np.unique(np.fromiter(places, dtype=np.int64))
        if len(wrong := np.intersect1d(judged, np.concatenate([own, removed]))):
            yield Problem(f"The export annotated, without the set, has {len(wrong):,} of them: {_some(wrong)}.")


def wrong_rows(humanval_set: HumanvalSet) -> Iterator[Problem]:
    """Whether a frozen set still has the rows that its checksum is of."""
    if humanval_set.state != HumanvalState.FROZEN:
        return
    found = checksum(frozen_rows(humanval_set))
    if found != humanval_set.checksum:
        yield Problem(f"The rows of the set have the checksum {found}; frozen was {humanval_set.checksum}.")


def wrong_nearest(humanval_set: HumanvalSet) -> Iterator[Problem]:
    """Whether what was removed is too similar to the set, and not to something else."""
    own = humanval_set.statements.values("generation")
    wrong = humanval_set.removed.exclude(nearest__in=own).order_by("generation")
    for pk, nearest, cosine in wrong.values_list("generation", "nearest", "cosine"):
        sentence = f"Statement {pk} was removed as too similar to statement {nearest}, which is not of the set."
        yield Problem(sentence, pk, nearest, cosine)


def needlessly_removed(humanval_set: HumanvalSet, ids: IntArray, embeddings: np.ndarray) -> Iterator[str]:
    """What was removed and is not as close to its nearest as that takes, here or, by the margin, elsewhere."""
    pairs = np.array(list(humanval_set.removed.values_list("generation", "nearest")), dtype=np.int64).reshape(-1, 2)
    pairs = pairs[np.isin(pairs, ids).all(axis=1)]
    rows, nearest = np.searchsorted(ids, pairs).T
    far = cosines(embeddings, embeddings, rows, nearest) <= closest_allowed(humanval_set.threshold) - MARGIN
    if far.any():
        yield (
            f"{far.sum():,} statements were removed from training although their cosine with the nearest of the set is "
            f"below {humanval_set.threshold:g}: {_some(np.sort(pairs[far, 0]))}. Training lacks them without need."
        )


def wrong_neighbours(
    humanval_set: HumanvalSet, ids: IntArray, embeddings: np.ndarray, on_block: Callable[[], None]
) -> Iterator[str]:
    """Whether the numbers of neighbours are those of the statements that there were, up to the margin."""
    rows = humanval_set.statements.order_by("generation").values_list("generation", "neighbours")
    told = np.array(list(rows), dtype=np.int64).reshape(-1, 2)
    told = told[np.isin(told[:, 0], ids)]
    there = ids <= humanval_set.report["up_to"]
    compared = embeddings[there] if not there.all() else embeddings
    own = np.searchsorted(ids, told[:, 0])
    fewest, most = (
        count_similar(compared, own, above=above, on_block=on_block)
        for above in (min(humanval_set.threshold + MARGIN, 1), max(humanval_set.threshold - MARGIN, MARGIN))
    )
    wrong = (told[:, 1] < fewest) | (told[:, 1] > most)
    if wrong.any():
        yield (
            f"The number of neighbours of {wrong.sum():,} statements of the set is not what is found now: "
            f"{_some(told[wrong, 0])}. If statements were deleted since, that is why."
        )


def notes_on(humanval_set: HumanvalSet, without_direction: int, encoder: TextReader) -> list[str]:
    notes = []
    if humanval_set.state != HumanvalState.FROZEN:
        notes.append("The set is not frozen: there are no labels and no checksum to check yet.")
    drawn_by = humanval_set.reader
    if any(getattr(encoder, name) != getattr(drawn_by, name) for name in ("name", "revision", "precision")):
        notes.append(
            f"The texts were embedded by {encoder}, and the set was drawn by {drawn_by}: its cosines are others. To "
            "check those, install what the set was drawn by."
        )
    if without_direction:
        notes.append(
            f"{without_direction:,} statements have an embedding of zeros: they have no cosine and were not compared."
        )
    if humanval_set.frozen_at:
        own = Generation.objects.filter(humanval__humanval_set=humanval_set)
        before = known_to_annotators(own, at=humanval_set.frozen_at)
        if later := known_to_annotators(own).exclude(pk__in=before.values("pk")).count():
            notes.append(
                f"Since it was frozen, {later:,} of its statements have known answers: its labels were given before."
            )
    return notes


def _some(ids: IntArray) -> str:
    return ", ".join(map(str, ids[:10].tolist())) + (" …" if len(ids) > 10 else "")
