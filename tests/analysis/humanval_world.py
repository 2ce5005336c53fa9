"""Statements with embeddings of a test's own making, sets drawn from them, and what people answered."""

from datetime import timedelta

import numpy as np
from django.utils import timezone

from analysis.humanval import drawing, freezing, sets
from analysis.models import HumanvalSet
from annotator.models import Annotation
from generation.models import Embedding, Generation, ReaderKind, TextReader
from generation.readings import ENCODER
from tests.analysis.judging import NOON, give, people
from tests.factories import consenting_worker, make_generation, make_group

TERMS = {"title": "Test set", "max_assignments": 2}


def toy_reader() -> TextReader:
    return TextReader.objects.get_or_create(kind=ReaderKind.ENCODER, name=ENCODER, revision="toy", precision="float32")[
        0
    ]


def bfloat16_reader() -> TextReader:
    """The same encoder in another precision, which was used last."""
    return TextReader.objects.create(
        kind=ReaderKind.ENCODER, name=ENCODER, revision="toy", precision="bfloat16",
        used_at=timezone.now() + timedelta(days=1),
    )  # fmt: skip


def embed(generation: Generation, vector) -> Generation:
    vector = np.asarray(vector, dtype="<f4").tobytes()
    Embedding.objects.create(reader=toy_reader(), generation=generation, vector=vector)
    return generation


def statement(vector, text: str | None = None, **fields) -> Generation:
    """A statement whose embedding is ``vector``."""
    return embed(make_generation(text, **fields), vector)


def apart(number: int, dimensions: int = 64, **fields) -> list[Generation]:
    """Statements none of which is similar to another one."""
    return [statement(np.eye(dimensions)[place], **fields) for place in range(number)]


def scattered(each: int, *, slugs=("women", "asian"), seed: int = 0, dimensions: int = 6) -> None:
    """So many statements of each stratum, with random directions: some are similar to others."""
    random = np.random.default_rng(seed)
    for slug in slugs:
        for label in ("benign", "toxic"):
            for method in ("topk", "alice"):
                for number in range(each):
                    text = f"{slug} {label} {method} statement {number}"
                    vector = random.standard_normal(dimensions)
                    statement(vector, text, group=make_group(slug), label=label, method=method)


def draw(**options) -> HumanvalSet:
    """A set that was drawn, of what is embedded already."""
    wanted = sets.ask_for_set(**{"seed": 1, "wake": False} | options)
    drawing.work_on_set(set_id=wanted.pk)
    wanted.refresh_from_db()
    assert wanted.state == "drawn", wanted.failure
    return wanted


def ids_of(humanval_set: HumanvalSet) -> list[int]:
    return list(humanval_set.statements.order_by("generation").values_list("generation", flat=True))


def removed_for(humanval_set: HumanvalSet) -> dict[int, int]:
    """What was removed, with the nearest of the set."""
    return dict(humanval_set.removed.values_list("generation", "nearest"))


def published(number: int = 3, **options) -> HumanvalSet:
    """A set of statements that is with annotators, two each."""
    apart(number)
    humanval_set = draw(size=number, **options)
    freezing.publish(humanval_set=humanval_set, **TERMS)
    return humanval_set


def judge(humanval_set: HumanvalSet, *rows, status: str = "approved", workers=None) -> list[Annotation]:
    """The answers to the set's statements in their order, a row each, as ``judging.judge`` takes them."""
    workers = workers or people(max(map(len, rows)))
    decided = {"decided_at": NOON + timedelta(hours=1)} if status == "approved" else {}
    hits = humanval_set.hit_type.hits.filter(generation__in=ids_of(humanval_set)).order_by("generation")
    return [
        give(hit, worker, answer, status=status, **decided)
        for hit, row in zip(hits, rows, strict=True)
        for worker, answer in zip(workers, row, strict=False)
        if answer is not None
    ]


def frozen(*rows, **options) -> HumanvalSet:
    """A frozen set, by default of three statements."""
    rows = rows or ((1, 1), (5, 4), (3, 3))
    humanval_set = published(len(rows), **options)
    judge(humanval_set, *rows)
    return freezing.freeze(humanval_set=humanval_set)


def approved(hit, answer, worker=None) -> Annotation:
    """An answer of somebody to a HIT, which was approved."""
    decided = {"status": "approved", "decided_at": NOON + timedelta(hours=1)}
    return give(hit, worker or consenting_worker(), answer, **decided)
