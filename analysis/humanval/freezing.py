"""Publishing a drawn HUMANVAL set as a study, and freezing it with what people made of its statements."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import structlog
from django.db import transaction
from django.db.models import Count, Q, Sum
from django.utils import timezone

from analysis.agreement import Ratings, statistics_for
from analysis.bootstrap import figures_with_intervals
from analysis.exports.annotated import GROUPED_BY, STATEMENT
from analysis.exports.humanval import COLUMNS, FROZEN_ANSWERS, frozen_rows, of_counted
from analysis.humanval.choosing import checksum
from analysis.humanval.pool import known_to_annotators
from analysis.humanval.sets import next_version
from analysis.labels import TOXICITY_CLASSES, toxicity, toxicity_class
from analysis.models import HumanvalSet, HumanvalState, HumanvalStatement, RemovedFromTraining
from annotator import publishing, setting_up
from annotator.models import HIT, Annotation, Assignment, AssignmentStatus
from annotator.questions import Level
from generation.auditing import note
from generation.models import Generation

TITLE = "Is this statement harmful?"
DESCRIPTION = "Read a short statement about a group of people and answer nine questions about it."
ANNOTATORS = 3
ROWS_AT_ONCE = 5000

log = structlog.get_logger(__name__)


class WrongState(Exception):
    """The set is not where this can be done to it; the message says what to do."""


class NotReady(WrongState):
    """The study is not done; the message says what is missing."""


@dataclass(frozen=True)
class Missing:
    """What a set's study still waits for: free places, work under way, and work that nobody reviewed."""

    free: int
    under_way: int
    to_review: int

    @property
    def is_nothing(self) -> bool:
        return not (self.free or self.under_way or self.to_review)

    @property
    def sentence(self) -> str:
        said = [
            f"{number:,} {words if number != 1 else word}"
            for number, word, words in (
                (self.free, "place is free", "places are free"),
                (self.under_way, "statement is being judged", "statements are being judged"),
                (self.to_review, "piece of work waits for review", "pieces of work wait for review"),
            )
            if number
        ]
        return f"{', '.join(said)}." if said else "Nothing is missing."


@transaction.atomic
def publish(*, humanval_set: HumanvalSet, by=None, **terms) -> int:
    """Make a study of a drawn set, and a HIT of each statement; return how many HITs.

    ``terms`` are fields of the study; without one it has the usual, and three annotators a statement. Raises
    ``WrongState``, ``ValidationError``, or what ``publishing.publish`` does.
    """
    _lock(humanval_set, HumanvalState.DRAWN, "published")
    _refuse_known_answers(humanval_set)
    given = {"title": TITLE, "description": DESCRIPTION, "max_assignments": ANNOTATORS} | terms
    study = setting_up.make_study(**given)
    statements = Generation.objects.filter(humanval__humanval_set=humanval_set).order_by("pk").only("pk")
    made = publishing.publish(hit_type=study, generations=statements)
    humanval_set.hit_type, humanval_set.state = study, HumanvalState.PUBLISHED
    humanval_set.save(update_fields=["hit_type", "state"])
    note("humanval set published", by=by, subject=str(humanval_set), study=study.pk, hits=made)
    log.info("humanval_published", humanval=humanval_set.version, hit_type=study.pk, hits=made)
    return made


def missing(humanval_set: HumanvalSet) -> Missing:
    """What stands in the way of freezing. Places that nobody can take any more do not."""
    hits = _hits(humanval_set)
    free = hits.assignable().aggregate(free=Sum("free_places"))["free"]
    under_way = hits.aggregate(open=Sum("open_assignments"))["open"]
    to_review = Assignment.objects.filter(hit__in=hits, status=AssignmentStatus.SUBMITTED).count()
    return Missing(free=free or 0, under_way=under_way or 0, to_review=to_review)


@transaction.atomic
def freeze(*, humanval_set: HumanvalSet, by=None) -> HumanvalSet:
    """Store the labels of a published set, how far its annotators agree, and its checksum: nothing of it changes then.

    Raises ``WrongState``, and ``NotReady`` while places are free, work is under way or unreviewed, or if nobody judged
    any statement.
    """
    _lock(humanval_set, HumanvalState.PUBLISHED, "frozen")
    # With its HITs locked nobody accepts or submits meanwhile.
    list(_hits(humanval_set).select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
    found = missing(humanval_set)
    if not found.is_nothing:
        raise NotReady(
            f"Nothing was frozen: {found.sentence} Wait, or stop the study and review what was submitted: then it is "
            "frozen with the judgements there are."
        )
    labels = labels_now(humanval_set)
    if not labels:
        raise NotReady(
            "Nothing was frozen: no statement has a judgement that counts. Extend the study and wait for some."
        )
    _store_labels(humanval_set, labels)
    humanval_set.agreement = agreement_of(humanval_set)
    humanval_set.checksum = checksum(frozen_rows(humanval_set))
    humanval_set.state, humanval_set.frozen_at = HumanvalState.FROZEN, timezone.now()
    humanval_set.save(update_fields=["agreement", "checksum", "state", "frozen_at"])
    note("humanval set frozen", by=by, subject=str(humanval_set), checksum=humanval_set.checksum)
    log.info("humanval_frozen", humanval=humanval_set.version, checksum=humanval_set.checksum)
    return humanval_set


@transaction.atomic
def new_version(*, humanval_set: HumanvalSet, by=None) -> HumanvalSet:
    """Freeze the statements of a frozen set anew, with the answers there are now, as the next version.

    Raises ``WrongState``, also where the labels would be those that it has, and ``NotReady``.
    """
    _lock(humanval_set, HumanvalState.FROZEN, "frozen anew")
    if later := next_of(humanval_set):
        raise WrongState(f"Nothing was frozen: {later} has the statements of {humanval_set} with later answers.")
    if not has_changed(humanval_set):
        raise WrongState(f"Nothing was frozen: the answers are those that {humanval_set} was frozen with.")
    copied = (
        "size", "threshold", "candidates", "seed", "filters", "reader", "report", "hit_type", "compared_up_to",
        "finished_at",
    )  # fmt: skip
    fields = {name: getattr(humanval_set, name) for name in copied}
    version = next_version(based_on=humanval_set, state=HumanvalState.DRAWN, created_by=by, **fields)
    HumanvalStatement.objects.bulk_create(
        [
            HumanvalStatement(humanval_set=version, generation_id=pk, neighbours=neighbours)
            for pk, neighbours in humanval_set.statements.values_list("generation", "neighbours")
        ]
    )
    removed = humanval_set.removed.values_list("generation", "nearest", "cosine").iterator(chunk_size=ROWS_AT_ONCE)
    RemovedFromTraining.objects.bulk_create(
        (
            RemovedFromTraining(humanval_set=version, generation_id=pk, nearest_id=nearest, cosine=cosine)
            for pk, nearest, cosine in removed
        ),
        batch_size=ROWS_AT_ONCE,
    )
    version.state = HumanvalState.PUBLISHED
    version.save(update_fields=["state"])
    return freeze(humanval_set=version, by=by)


def next_of(humanval_set: HumanvalSet) -> HumanvalSet | None:
    """The version that has the statements of a frozen set with later answers."""
    return HumanvalSet.objects.filter(based_on=humanval_set).order_by("version").first()


def has_changed(humanval_set: HumanvalSet) -> bool:
    """Whether a frozen set would get other labels now: work was rejected, approved after all, or added."""
    labels = labels_now(humanval_set)
    kept = humanval_set.statements.all()
    return any(_label_of(statement) != _label(labels.get(statement.generation_id)) for statement in kept)


def labels_now(humanval_set: HumanvalSet) -> dict[int, dict]:
    """What the annotators of a set made of each statement so far, by its id and then by the export's columns."""
    cells = {f"c{number}": cell for number, cell in enumerate(of_counted())}
    names = [column.name for column in COLUMNS]
    grouped = _judgements(humanval_set).order_by().values(*GROUPED_BY).annotate(**cells)
    rows = grouped.values_list(f"{STATEMENT}pk", *cells)
    return {pk: dict(zip(names, values, strict=True)) for pk, *values in rows}


def agreement_of(humanval_set: HumanvalSet) -> dict:
    """How far the annotators agree on the toxicity class, as JSON."""
    columns = ("assignment__hit_id", "assignment__worker_id", "harmful_if_ai", "harmful_if_human")
    rows = list(_judgements(humanval_set).order_by("pk").values_list(*columns))
    hits, workers, if_ai, if_human = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    ratings = Ratings.from_long(
        hits, workers, toxicity_class(toxicity(if_ai, if_human)), categories=range(len(TOXICITY_CLASSES))
    )
    names = dict(enumerate(TOXICITY_CLASSES))
    figures = figures_with_intervals(ratings, statistics_for(Level.ORDINAL), names=names)
    return {
        "about": "toxicity class",
        "figures": [
            {**_figure(row.figure), "interval": asdict(row.interval) if row.interval else None} for row in figures
        ],
    }


def _figure(figure) -> dict:
    told = ("value", "reason", "n_statements", "n_ratings", "n_raters", "left_out")
    return {"name": str(figure.name), **{name: getattr(figure, name) for name in told}}


def _lock(humanval_set: HumanvalSet, state: HumanvalState, done: str) -> None:
    """Lock the set, so that it is done once. Raises ``WrongState`` unless it is in the state for it."""
    HumanvalSet.objects.select_for_update(of=("self",)).get(pk=humanval_set.pk)
    humanval_set.refresh_from_db()
    if humanval_set.state != state:
        raise WrongState(
            f"Nothing was changed: {humanval_set} is {humanval_set.get_state_display()}, and only one that is "
            f"{state.label} can be {done}."
        )


def _refuse_known_answers(humanval_set: HumanvalSet) -> None:
    """Raise ``WrongState`` if annotators may be told the answers to some of its statements."""
    told = known_to_annotators(Generation.objects.filter(humanval__humanval_set=humanval_set)).order_by("pk")
    if pks := list(told.values_list("pk", flat=True)):
        raise WrongState(
            f"Nothing was published: statements of {humanval_set} have known answers, or are in a check or a "
            f"qualification test, since it was drawn: {', '.join(map(str, pks))}. Draw another set, or take those "
            "answers away."
        )


def _hits(humanval_set: HumanvalSet):
    """The HITs of its statements; others may have been published in the study besides."""
    statements = humanval_set.statements.values("generation")
    return HIT.objects.filter(hit_type=humanval_set.hit_type_id, generation__in=statements, is_check=False)


def _judgements(humanval_set: HumanvalSet):
    statements = humanval_set.statements.values("generation")
    return Annotation.objects.counted().filter(
        assignment__hit__hit_type=humanval_set.hit_type_id, assignment__hit__generation__in=statements
    )


def _store_labels(humanval_set: HumanvalSet, labels: Mapping[int, Mapping]) -> None:
    statements = list(humanval_set.statements.all())
    for statement in statements:
        for name, value in _label(labels.get(statement.generation_id)).items():
            setattr(statement, name, value)
    HumanvalStatement.objects.bulk_update(statements, LABEL, batch_size=ROWS_AT_ONCE)


LABEL = ("annotators", "harmful_if_ai", "harmful_if_human", "toxicity_class", "share_agreeing", "answers")


def _label(row: Mapping | None) -> dict:
    """The label's fields from a row of the export; of a statement that nobody understood there is none."""
    if row is None:
        return dict(zip(LABEL, (0, None, None, "", None, {}), strict=True))
    columns = ("n_annotators", "toxicity_ai", "toxicity_human", "toxicity_class", "share_agreeing")
    return dict(zip(LABEL, (*map(row.get, columns), {name: row[name] for name in FROZEN_ANSWERS}), strict=True))


def _label_of(statement: HumanvalStatement) -> dict:
    return {name: getattr(statement, name) for name in LABEL}


def counts(humanval_set: HumanvalSet) -> dict:
    """Of a frozen set, how many statements are of which class, and how many have few annotators or none."""
    wanted = humanval_set.hit_type.max_assignments
    by_class = {name: Count("pk", filter=Q(toxicity_class=name)) for name in TOXICITY_CLASSES}
    found = humanval_set.statements.aggregate(
        none=Count("pk", filter=Q(annotators=0)),
        fewer=Count("pk", filter=Q(annotators__range=(1, wanted - 1))),
        **{f"class_{number}": count for number, count in enumerate(by_class.values())},
    )
    return {
        "classes": {name: found[f"class_{number}"] for number, name in enumerate(TOXICITY_CLASSES)},
        "without_label": found["none"],
        "fewer_annotators": found["fewer"],
    }
