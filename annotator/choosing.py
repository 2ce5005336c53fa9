"""Choosing the statements of a study: a random draw of so many from each cell (group × label × method).

A statement gets its place in its cell's random order, ``Generation.shuffle``, when it is stored. A draw starts at a
point of that order which its seed decides, and walks on, past what the filters leave out and from the end to the
beginning, until it has what was wanted. So it reads about as many rows as it takes, along an index, and not the table.

Why that is a uniform random sample of the cell: the places are independent random numbers that know nothing of the
texts, and the seed knows nothing of the places. So every order of the cell's statements is equally likely, that of
those that pass the filters too, and the ones that stand in a row behind a point chosen beforehand can be any of them
with equal chances.

What two seeds share: both walk along the one order. As many statements are in both draws, on average, as in two
independent ones, but they are neighbours: two draws overlap in a stretch or not at all. So what two draws of
a cell show does not vary independently; a replication that needs that imports the statements again, which
shuffles them anew. The same seed draws the same statements as long as none is stored, and none is taken by the filters.
"""

import hashlib
import random
import secrets
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from annotator import publishing
from annotator.models import HIT, HITType, KnownAnswers, StatementDraw
from generation.auditing import note
from generation.models import Generation, GenerationCell, GenerationRun, Label, Method, TargetGroup

MOST_A_CELL = 10_000
MOST_IN_ALL = 50_000
"""More HITs are not made in one go: they are made while the browser waits."""
SEED_LIMIT = 2**31
METHODS = (Method.TOPK, Method.ALICE)
"""What people wrote has known answers, and tests annotators."""
IMPORTED_LABELS = Generation._meta.get_field("human_label").related_model
"""Human labels that were imported: by their relation, since they are of the app that reads annotations."""


class CannotPublishDraw(Exception):
    """Nothing of the draw was published; the message says why and what to do."""


class DrawChanged(CannotPublishDraw):
    """The statements there are have changed, so that the seed draws others than were looked at."""


class PublishedBefore(CannotPublishDraw):
    """The same draw was published in this study: the second click of a double one."""


@dataclass(frozen=True)
class Filters:
    """Which statements a draw chooses from; what is empty or None leaves nothing out.

    ``groups`` are slugs, ``run`` is the id of a run, ``toxic_from`` and ``toxic_to`` bound the classifier's
    probability that the text is toxic, both included. ``is_new`` leaves out what any study has, not only this one, and
    what came with human labels from elsewhere.
    """

    groups: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    run: int | None = None
    imported: bool = False
    toxic_from: float | None = None
    toxic_to: float | None = None
    is_new: bool = True

    def as_json(self) -> dict:
        """What is stored with a draw: the filters that leave something out, each list in one order."""
        facts = {name: sorted(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        # Not by what equals False: a score from 0 on leaves out the statements without a score.
        return {name: value for name, value in facts.items() if not (value is None or value is False or value == [])}


@dataclass(frozen=True)
class Cell:
    """What was drawn of one group, label and method."""

    group: TargetGroup
    label: Label
    method: Method
    wanted: int
    ids: list[int]

    @property
    def found(self) -> int:
        return len(self.ids)

    @property
    def is_short(self) -> bool:
        """Whether it has fewer than were wanted, and gives all of them."""
        return self.found < self.wanted


@dataclass(frozen=True)
class Draw:
    """Statements that were drawn and are not published yet."""

    filters: Filters
    a_cell: int
    seed: int
    cells: list[Cell]

    @cached_property
    def ids(self) -> list[int]:
        """The statements' ids, in order."""
        return sorted(pk for cell in self.cells for pk in cell.ids)

    @property
    def short(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.is_short]

    @property
    def fingerprint(self) -> str:
        """Equal for the same statements: what was looked at is what is published."""
        return hashlib.sha256(",".join(map(str, self.ids)).encode()).hexdigest()[:16]

    def sample(self, size: int) -> list[Generation]:
        """Some of the statements with their groups: the first of each cell, then the second, and so on."""
        in_turn = (cell.ids[place] for place in range(self.a_cell) for cell in self.cells if place < cell.found)
        ids = [pk for _, pk in zip(range(size), in_turn, strict=False)]
        found = Generation.objects.select_related("group").in_bulk(ids)
        return [found[pk] for pk in ids if pk in found]


def new_seed() -> int:
    """A seed for somebody who names none."""
    return secrets.randbelow(SEED_LIMIT)


def draw(*, hit_type: HITType, filters: Filters, a_cell: int, seed: int) -> Draw:
    """Draw ``a_cell`` statements of each cell for a study; a cell with fewer gives all it has.

    What the study has already, its known answers and what its run writes are never drawn. At most two short queries
    a cell.
    """
    statements = _to_choose_from(hit_type, filters)
    cells = [
        Cell(group, label, method, a_cell, _walk(statements, group, label, method, a_cell, seed))
        for group, label, method in _cells(filters)
    ]
    return Draw(filters, a_cell, seed, cells)


@transaction.atomic
def publish_draw(
    *, hit_type: HITType, filters: Filters, a_cell: int, seed: int, by: User | None, agreed: str | None = None
) -> StatementDraw:
    """Draw statements and make HITs of them; return what is kept of it: filters, seed, how many.

    ``agreed`` is the fingerprint of the draw that was looked at: others are not published. With the study locked,
    the second of two clicks finds the draw of the first. Raises a ``CannotPublishDraw``, or what
    ``publishing.publish`` does.
    """
    publishing.lock_open_study(hit_type)
    _refuse_what_is_published(hit_type, filters, a_cell, seed)
    drawn = draw(hit_type=hit_type, filters=filters, a_cell=a_cell, seed=seed)
    _refuse_what_was_not_agreed(drawn, agreed)
    made = publishing.publish(
        hit_type=hit_type, generations=Generation.objects.filter(pk__in=drawn.ids).order_by("pk").only("pk")
    )
    kept = StatementDraw.objects.create(
        hit_type=hit_type,
        filters=filters.as_json(),
        a_cell=a_cell,
        seed=seed,
        found=len(drawn.ids),
        made=made,
        made_by=by,
    )
    note(
        "statements published",
        by=by,
        subject=f"study {hit_type.pk}",
        draw=kept.pk,
        filters=kept.filters,
        a_cell=a_cell,
        seed=seed,
        found=kept.found,
        hits=made,
    )
    return kept


def _to_choose_from(hit_type: HITType, filters: Filters) -> QuerySet[Generation]:
    """The statements that pass the filters, of all cells; not those of a run that comes into the study by itself."""
    hits = HIT.objects.filter(generation=OuterRef("pk"))
    if not filters.is_new:
        hits = hits.filter(hit_type=hit_type)
    known = KnownAnswers.objects.filter(generation=OuterRef("pk"))
    statements = Generation.objects.filter(~Exists(hits), ~Exists(known))
    if filters.is_new:
        statements = statements.filter(~Exists(IMPORTED_LABELS.objects.filter(generation=OuterRef("pk"))))
    if hit_type.run_id is not None:
        statements = statements.exclude(run=hit_type.run_id)  # a chunk of it is published whole, or would be left out
    if filters.run is not None or filters.imported:
        statements = statements.filter(run=filters.run)
    if filters.toxic_from is not None:
        statements = statements.filter(toxic_prob__gte=filters.toxic_from)
    if filters.toxic_to is not None:
        statements = statements.filter(toxic_prob__lte=filters.toxic_to)
    return statements


def _cells(filters: Filters) -> Iterator[tuple[TargetGroup, Label, Method]]:
    """The cells that the filters name, in the order of tables; of a run, those that it writes."""
    groups = TargetGroup.objects.all()
    if filters.groups:
        groups = groups.filter(slug__in=filters.groups)
    written = _cells_of_run(filters.run) if filters.run is not None else None
    for group, label, method in product(groups, Label, METHODS):
        is_chosen = _is_among(label, filters.labels) and _is_among(method, filters.methods)
        if is_chosen and (written is None or (group.pk, label, method) in written):
            yield group, label, method


def _cells_of_run(run_id: int) -> set[tuple[int, str, str]]:
    run = GenerationRun.objects.filter(pk=run_id).first()
    pairs = GenerationCell.objects.filter(run=run_id).values_list("group", "label")
    return {(group, label, method) for group, label in pairs for method in run.methods} if run else set()


def _is_among(value: str, chosen: Collection[str]) -> bool:
    return not chosen or value in chosen


def _walk(
    statements: QuerySet[Generation], group: TargetGroup, label: str, method: str, wanted: int, seed: int
) -> list[int]:
    """The ids of the cell's statements behind the seed's point of its random order, which goes on at the beginning."""
    # By words and not by ids, so that a seed means the same point in every database.
    start = random.Random(f"{seed} {group.slug} {label} {method}").random()
    # By the place alone, which the index has: with a second key the database would sort the rest of the cell first.
    order = statements.filter(group=group, label=label, method=method).order_by("shuffle")
    ids = list(order.filter(shuffle__gte=start).values_list("pk", flat=True)[:wanted])
    if len(ids) < wanted:
        ids += order.filter(shuffle__lt=start).values_list("pk", flat=True)[: wanted - len(ids)]
    return ids


def _refuse_what_is_published(hit_type: HITType, filters: Filters, a_cell: int, seed: int) -> None:
    same = StatementDraw.objects.filter(hit_type=hit_type, filters=filters.as_json(), a_cell=a_cell, seed=seed).first()
    if same:
        raise PublishedBefore(
            f"These statements were published already: {same.made:,} HITs, with the seed {seed}. Nothing was made "
            "twice. For more statements draw with another seed."
        )


def _refuse_what_was_not_agreed(drawn: Draw, agreed: str | None) -> None:
    if agreed is not None and agreed != drawn.fingerprint:
        raise DrawChanged(
            "Nothing was published: statements were stored or published since you looked, so that the seed "
            f"{drawn.seed} now draws others. Look at the new preview and publish that."
        )
    if not drawn.ids:
        raise CannotPublishDraw("Nothing was published: no statement passes these filters. Choose wider ones.")
    if len(drawn.ids) > MOST_IN_ALL:
        raise CannotPublishDraw(
            f"Nothing was published: these are {len(drawn.ids):,} statements, and at most {MOST_IN_ALL:,} become HITs "
            "in one go. Draw fewer of each cell, or fewer groups at a time."
        )
