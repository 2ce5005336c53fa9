"""The statements that a HUMANVAL set is drawn from and compared with, by stratum: group × prompt label × method."""

import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, product

import numpy as np
from django.db import connection
from django.db.models import Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, Value
from django.db.models.functions import MD5, Concat

from analysis.exports.filtering import OF_STATEMENTS, filters_from, in_studies, of_statements
from analysis.humanval.choosing import IntArray, equal_shares
from annotator.models import HIT, KnownAnswers
from generation.models import Generation, Label, Method, Precision, ReaderKind, Reading, TargetGroup, TextReader
from generation.read_values import IDS_AT_ONCE, current_reader, unread
from generation.readings import ENCODER, NothingToRead, start_reading

METHODS = (Method.TOPK, Method.ALICE)
"""What people wrote is no training statement, and has known answers."""
PATIENCE, A_MOMENT = 2.0, 0.05
"""Seconds that the newest statement is waited for while others store some, and between two looks."""

Stratum = tuple[str, str, str]
"""A group's slug, a prompt label and a method."""


class StatementsBeingStored(Exception):
    """It cannot be told which statements there are, since an import or a run is storing some."""


@dataclass(frozen=True)
class Share:
    """How many texts of a stratum there are to choose from, how many it should have, and how many it gets."""

    stratum: Stratum
    available: int
    wanted: int
    places: int

    @property
    def short(self) -> int:
        """By how many it has fewer than an equal share."""
        return max(0, self.wanted - self.places)


def machine_generated(up_to: int | None = None) -> QuerySet[Generation]:
    """All that a language model wrote, up to an id: what is not of the test set is for training."""
    statements = Generation.objects.filter(method__in=METHODS)
    return statements if up_to is None else statements.filter(pk__lte=up_to)


def known_to_annotators(statements: QuerySet[Generation], *, at: datetime | None = None) -> QuerySet[Generation]:
    """Those of some statements that have known answers, or that annotators were tested with, now or since before."""
    own = {"generation": OuterRef("pk")} | ({"created_at__lte": at} if at else {})
    known = KnownAnswers.objects.filter(**own)
    tests = HIT.objects.filter(Q(is_check=True) | Q(hit_type__grants__isnull=False), **own)
    return statements.filter(Exists(known) | Exists(tests))


def pool(filters: Mapping, up_to: int | None = None) -> QuerySet[Generation]:
    """The statements that a set can have: those the filters leave, and nobody knows the answers of.

    Of a text that several statements have, the one that was stored first.
    """
    asked = machine_generated(up_to).filter(of_statements(filters), in_studies(filters))
    left = asked.exclude(pk__in=known_to_annotators(Generation.objects.all()).values("pk"))
    firsts = left.order_by().values(digest=MD5("text")).annotate(first=Min("pk")).values("first")
    return Generation.objects.filter(pk__in=firsts)


def pool_filters(given: Mapping) -> dict:
    """The filters of a set as ``of_statements`` takes them. Raises ``filtering.WrongFilter``."""
    return filters_from(given, takes=OF_STATEMENTS, export="humanval set")


def count_pool(filters: Mapping) -> dict[Stratum, int]:
    """How many statements of each stratum a set can have; strata without any are left out."""
    counted = pool(filters).order_by().values("group__slug", "label", "method").annotate(number=Count("pk"))
    return {(row["group__slug"], row["label"], row["method"]): row["number"] for row in counted}


def shares(filters: Mapping, available: Mapping[Stratum, int], *, size: int, seed: int) -> list[Share]:
    """Every stratum that was asked for with its places: equally many, as far as there are statements.

    A group without a single statement is no stratum unless the filters name it. If there are fewer statements than
    places, all are taken.
    """
    strata = _strata(filters, available)
    numbers = [available.get(stratum, 0) for stratum in strata]
    order = sorted(range(len(strata)), key=lambda place: _at_random(seed, *strata[place]))
    places = equal_shares(numbers, min(size, sum(numbers)), order)
    wanted = equal_shares([size] * len(strata), size, order) if strata else []
    return [Share(*row) for row in zip(strata, numbers, wanted, places, strict=True)]


def pool_at_random(filters: Mapping, *, seed: int, up_to: int) -> dict[Stratum, IntArray]:
    """The ids of what a set can have of each stratum in a random order: the same one of the same texts anywhere."""
    at_random = MD5(Concat(Value(f"{seed} "), F("text")))
    rows = pool(filters, up_to).order_by(at_random).values_list("pk", "group__slug", "label", "method")
    found: dict[Stratum, list[int]] = defaultdict(list)
    for pk, group, label, method in rows.iterator(chunk_size=50_000):
        found[group, label, method].append(pk)
    return {stratum: np.array(ids, dtype=np.int64) for stratum, ids in found.items()}


def corpus(up_to: int) -> IntArray:
    """(N,) the ids of all machine-generated statements up to one, ascending."""
    ids = machine_generated(up_to).order_by("pk").values_list("pk", flat=True)
    return np.fromiter(ids.iterator(chunk_size=50_000), dtype=np.int64)


def newest_statement() -> int:
    """The id up to which every statement is stored that ever will be; 0 if there is none.

    Ids are given out before statements are stored, so that one with a smaller id may come later: from a transaction
    that was writing statements already. All that were are waited for, and none waits for this. Raises
    ``StatementsBeingStored`` for one that takes long.
    """
    newest = Generation.objects.aggregate(newest=Max("pk"))["newest"] or 0
    writing, deadline = _writing(), time.monotonic() + PATIENCE
    while writing:
        if time.monotonic() > deadline:
            raise StatementsBeingStored(
                "An import or a run is storing statements at this moment. Wait until it is done and try again."
            )
        time.sleep(A_MOMENT)
        writing &= _writing()
    return newest


def _writing() -> set[str]:
    """The transactions of others that have written statements, or are about to."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND relation = %s::regclass "
            "AND granted AND mode = 'RowExclusiveLock' AND pid IS DISTINCT FROM pg_backend_pid() "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            [Generation._meta.db_table],
        )
        return {transaction for (transaction,) in cursor.fetchall()}


def humanval_reader() -> TextReader | None:
    """The reader whose embeddings are compared: the encoder in float32, for which alone the margin is enough."""
    return current_reader(ReaderKind.ENCODER, ENCODER, precision=Precision.FLOAT32)


def start_embedding(statements: QuerySet[Generation], *, about: str, by=None) -> Reading | None:
    """Have those of some statements embedded that are not; ``None`` if all are."""
    if not unread(statements, humanval_reader()).exists():
        return None
    try:
        return start_reading(kind=ReaderKind.ENCODER, model=ENCODER, generation_ids=statements, about=about, by=by)
    except NothingToRead:
        return None  # others had them read meanwhile


def _strata(filters: Mapping, available: Mapping[Stratum, int]) -> list[Stratum]:
    groups = filters.get("group")
    slugs = {group.slug for group in groups} if groups is not None else {group for group, _, _ in available}
    in_order = TargetGroup.objects.filter(slug__in=slugs).values_list("slug", flat=True)
    labels = [str(label) for label in Label if label in filters.get("label", Label.values)]
    methods = [str(method) for method in METHODS if method in filters.get("method", Method.values)]
    return list(product(in_order, labels, methods))


def _at_random(seed: int, *words: str) -> str:
    return hashlib.sha256(" ".join([str(seed), *words]).encode()).hexdigest()


def count_by_stratum(ids: Iterable[int]) -> Counter[Stratum]:
    """How many of some statements each stratum has."""
    counts: Counter[Stratum] = Counter()
    rest = iter(ids)
    while part := list(islice(rest, IDS_AT_ONCE)):
        counted = Generation.objects.filter(pk__in=part).order_by().values("group__slug", "label", "method")
        for row in counted.annotate(number=Count("pk")):
            counts[row["group__slug"], row["label"], row["method"]] += row["number"]
    return counts
