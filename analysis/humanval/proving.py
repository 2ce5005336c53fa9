"""Proving a HUMANVAL set again, from the texts and not from what was stored of them.

All statements are embedded anew, and compared exactly. What is found wrong is told as sentences with the statements'
numbers; nothing is mended.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Protocol

import numpy as np
from django.db import IntegrityError, transaction

from analysis.humanval.choosing import (
    IntArray,
    has_direction,
)
from analysis.humanval.comparing import refuse_undrawn
from analysis.humanval.errands import carry_out
from analysis.humanval.freezing import WrongState
from analysis.humanval.pool import machine_generated
from analysis.humanval.problems import (
    Problem,
    close_to_set,
    nearer_than_allowed,
    needlessly_removed,
    notes_on,
    wrong_exports,
    wrong_nearest,
    wrong_neighbours,
    wrong_rows,
    wrong_statements,
)
from analysis.models import HumanvalProof, HumanvalSet
from generation import leases
from generation.models import TextReader
from generation.wakeups import ask_for_model

PROVE = "analysis.prove_humanval"
"""The task of the queue that proves a set; it loads the encoder."""


class Embedder(Protocol):
    """What embeds the texts anew: the module ``generation.embedding_anew``."""

    def encoder(self) -> TextReader: ...

    def embed(self, texts: Iterable[str]) -> Iterator[np.ndarray]:
        """Parts of (n, E) float32, in the order of the texts."""


@dataclass(frozen=True)
class Proof:
    """What was found of a set."""

    version: int
    state: str
    threshold: float
    statements: int
    training: int
    removed: int
    not_compared: int
    without_direction: int
    closest: float | None
    """The largest cosine of a training statement with one of the set; None if it is far below the threshold."""
    encoder: str
    """The one that embedded the texts anew."""
    checksum: str
    seconds: float
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.problems

    @property
    def sentence(self) -> str:
        if self.problems:
            number = len(self.problems)
            return (
                f"HUMANVAL {self.version} does not hold: {number:,} {'things are' if number > 1 else 'thing is'} wrong."
            )
        closest = f"the closest has {self.closest:.4f}" if self.closest is not None else "none comes near it"
        return (
            f"HUMANVAL {self.version} holds: of {self.training:,} statements for training none has a cosine above "
            f"{self.threshold:g} with any of its {self.statements:,} statements; {closest}."
        )

    def as_json(self) -> dict:
        return {"holds": self.holds, "sentence": self.sentence, **asdict(self)}


def prove(
    humanval_set: HumanvalSet,
    *,
    embedder: Embedder | None = None,
    on_step: Callable[[int, int], None] = lambda done, total: None,
) -> Proof:
    """Embed all machine-generated statements anew and check all that is promised of a set.

    ``on_step`` is called with how many are embedded, of how many, and between blocks of the comparison. Raises
    ``WrongState`` for a set that is not drawn, and what loading the encoder raises.
    """
    started = time.perf_counter()
    refuse_undrawn(humanval_set)
    embedder = embedder or import_module("generation.embedding_anew")  # by name: it loads torch
    encoder = embedder.encoder()
    ids, embeddings = _embedded(embedder, on_step)
    own, removed = _ids_of(humanval_set.statements), _ids_of(humanval_set.removed)
    is_own, is_training = np.isin(ids, own), ~np.isin(ids, np.concatenate([own, removed]))
    training = ids[is_training]

    def on_block() -> None:
        on_step(len(ids), len(ids))

    test = ids[is_own]
    too_close, near = close_to_set(embeddings[is_training], embeddings[is_own], humanval_set.threshold, on_block)
    pairs = zip(
        training[too_close.rows].tolist(), test[too_close.nearest].tolist(), too_close.cosine.tolist(), strict=True
    )
    problems = [
        *(nearer_than_allowed(humanval_set, *pair) for pair in pairs),
        *wrong_statements(humanval_set, own, removed, test),
        *wrong_nearest(humanval_set),
        *wrong_exports(humanval_set, own, removed, training),
        *wrong_rows(humanval_set),
    ]
    without = int((~has_direction(embeddings)).sum()) if len(ids) else 0
    return Proof(
        version=humanval_set.version,
        state=humanval_set.get_state_display(),
        threshold=humanval_set.threshold,
        statements=len(own),
        training=len(training),
        removed=len(removed),
        not_compared=int((ids > humanval_set.compared_up_to).sum()),
        without_direction=without,
        closest=float(near.cosine.max()) if len(near.rows) else None,
        encoder=str(encoder),
        checksum=humanval_set.checksum,
        seconds=round(time.perf_counter() - started, 1),
        problems=problems,
        notes=[
            *notes_on(humanval_set, without, encoder),
            *needlessly_removed(humanval_set, ids, embeddings),
            *wrong_neighbours(humanval_set, ids, embeddings, on_block),
        ],
    )


# --- On the queue ------------------------------------------------------------------------------


@transaction.atomic
def ask_for_proof(*, humanval_set: HumanvalSet, by=None) -> HumanvalProof:
    """Have a worker prove a set, unless one is at it. Raises ``WrongState``."""
    refuse_undrawn(humanval_set)
    try:
        with transaction.atomic():
            proof = HumanvalProof.objects.create(humanval_set=humanval_set, asked_by=by)
    except IntegrityError:
        return humanval_set.proofs.get(finished_at=None)
    ask_for_model(PROVE, humanval_proof=proof.pk)
    return proof


def work_on_proof(*, proof_id: int, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Prove a set, unless that is done or others are at it. Safe to run twice and at once."""
    token = leases.take_up(HumanvalProof.objects.waiting(), pk=proof_id)
    mine = HumanvalProof.objects.filter(pk=proof_id, lease_token=token) if token else HumanvalProof.objects.none()
    for proof in mine.select_related("humanval_set__reader"):

        def work(on_step: Callable[..., None], proof: HumanvalProof = proof) -> None:
            leases.finish(proof, found=prove(proof.humanval_set, on_step=on_step).as_json())

        carry_out(proof, work, refusals=(WrongState,), is_stopping=is_stopping)


# --- The texts -----------------------------------------------------------------------------------


def _embedded(embedder: Embedder, on_step: Callable[[int, int], None]) -> tuple[IntArray, np.ndarray]:
    """The ids of all machine-generated statements, ascending, and their embeddings (N, E), from the texts."""
    statements = machine_generated().order_by("pk")
    ids = np.fromiter(statements.values_list("pk", flat=True).iterator(chunk_size=50_000), dtype=np.int64)
    newest = int(ids[-1]) if len(ids) else 0
    texts = statements.filter(pk__lte=newest).values_list("pk", "text").iterator(chunk_size=5000)
    found, done = np.zeros((0, 0), np.float32), 0
    read: list[int] = []

    def each_text() -> Iterator[str]:
        for pk, text in texts:
            read.append(pk)
            yield text

    for part in embedder.embed(each_text()):
        if not done:
            found = np.empty((len(ids), part.shape[1]), np.float32)
        if done + len(part) > len(ids):
            break
        found[done : done + len(part)] = part
        done += len(part)
        on_step(done, len(ids))
    if read != ids.tolist():
        raise WrongState("Statements were stored or deleted during the check. Run it again.")
    return ids, found


def _ids_of(rows) -> IntArray:
    return np.fromiter(rows.order_by("generation").values_list("generation", flat=True), dtype=np.int64)
