"""A study's figures of agreement: of many answers worked out on the queue and kept, of few within the request."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime

from django.db.models import Count, Max
from django.utils import timezone

from analysis.agreement import Figure, Statistic, UndefinedAgreement, agreement_table
from analysis.bootstrap import Interval, bootstrap_interval
from analysis.labels import TOXICITY_CLASSES
from analysis.models import StudyAgreement
from analysis.ratings import toxicity_classes
from annotator.models import Annotation, Assignment, HITType
from generation.wakeups import ask_for

IN_A_REQUEST = 1000
"""The figures of so many annotations in all are worked out while somebody waits for the page."""
LOOKED_AT = 500
"""Among so many of the newest annotations those are looked for that a study's figures do not rest on yet."""


@dataclass(frozen=True)
class Row:
    """A figure with its interval, if it has one."""

    figure: Figure
    interval: Interval | None


@dataclass(frozen=True)
class StudyFigures:
    """What the page shows of a study; without ``rows`` nothing was worked out yet."""

    study: HITType
    rows: list[Row] = field(default_factory=list)
    submitted: int = 0
    annotations: int = 0
    made_at: datetime | None = None
    is_outdated: bool = False


def of_ratings(ratings) -> list[Row]:
    """Each figure of agreement on the toxicity classes ``ratings`` (statements, raters)."""
    figures = agreement_table(ratings, names=dict(enumerate(TOXICITY_CLASSES)))
    return [Row(figure, _interval(ratings, figure)) for figure in figures]


def _interval(ratings, figure: Figure) -> Interval | None:
    if figure.value is None:
        return None
    try:
        return bootstrap_interval(ratings, figure.name)
    except UndefinedAgreement:
        return None


# --- For the page ---------------------------------------------------------------------------


def of_studies(studies: Iterable[HITType]) -> Iterator[StudyFigures]:
    """The figures of each study: what is kept if nothing is newer, else worked out if it is little, else what is kept.

    ``studies`` are read with their ``agreement``.
    """
    newest = _newest_counted()
    left = IN_A_REQUEST
    for study in studies:
        kept: StudyAgreement | None = getattr(study, "agreement", None)
        if kept and newest.get(study.pk, 0) <= kept.newest:
            yield _unpacked(study, kept, is_outdated=False)
            continue
        number = Annotation.objects.counted().filter(assignment__hit__hit_type=study).order_by()[: left + 1].count()
        if number <= left:
            left -= number
            yield _worked_out(study)
        else:
            yield _unpacked(study, kept, is_outdated=True) if kept else StudyFigures(study)


def _newest_counted() -> dict[int, int]:
    """The newest counted annotation of each study that has one among the newest of all."""
    rows = Annotation.objects.counted().order_by("-pk").values_list("assignment__hit__hit_type", "pk")[:LOOKED_AT]
    return dict(reversed(rows))  # the newest last, which stays


def _worked_out(study: HITType) -> StudyFigures:
    ratings = toxicity_classes(study)
    return StudyFigures(
        study=study,
        rows=of_ratings(ratings),
        submitted=_submitted(study),
        annotations=int((ratings == ratings).sum()),  # a gap is not equal to itself
        made_at=timezone.now(),
    )


def _submitted(study: HITType) -> int:
    return Assignment.objects.filter(hit__hit_type=study, submitted_at__isnull=False).order_by().count()


# --- On the queue -----------------------------------------------------------------------------


def ask_to_work_out(study: HITType) -> None:
    """Have the figures of a study worked out on the queue."""
    ask_for("analysis.work_out_agreement", hit_type_id=study.pk)


def work_out(*, hit_type_id: int) -> None:
    """Work the figures of a study out and keep them; one that is gone meanwhile is passed over."""
    study = HITType.objects.filter(pk=hit_type_id).first()
    if study is None:
        return
    counted = Annotation.objects.counted().filter(assignment__hit__hit_type=study).order_by()
    newest = counted.aggregate(newest=Max("pk", default=0))["newest"]  # before the rest: what comes now is newer
    figures = _worked_out(study)
    StudyAgreement.objects.update_or_create(
        hit_type=study,
        defaults={
            "annotations": figures.annotations,
            "newest": newest,
            "figures": pack(figures.rows, submitted=figures.submitted),
            "made_at": figures.made_at,
        },
    )


def refresh() -> None:
    """Work out anew what rests on other annotations than there are now."""
    now = (
        Annotation.objects.counted()
        .order_by()
        .values_list("assignment__hit__hit_type")
        .annotate(number=Count("pk"), newest=Max("pk"))
    )
    there = {study: (number, newest) for study, number, newest in now}
    kept = {row.hit_type_id: (row.annotations, row.newest) for row in StudyAgreement.objects.defer("figures")}
    for study in sorted(there.keys() | kept.keys()):
        if there.get(study, (0, 0)) != kept.get(study):
            work_out(hit_type_id=study)


# --- Kept as JSON -------------------------------------------------------------------------------


def pack(rows: list[Row], *, submitted: int) -> dict:
    """What ``StudyAgreement.figures`` holds."""
    packed = [{"figure": asdict(row.figure), "interval": row.interval and asdict(row.interval)} for row in rows]
    return {"submitted": submitted, "rows": packed}


def unpack(packed: dict) -> list[Row]:
    """The rows that were packed."""
    return [
        Row(
            Figure(**row["figure"] | {"name": Statistic(row["figure"]["name"])}),
            Interval(**row["interval"]) if row["interval"] else None,
        )
        for row in packed["rows"]
    ]


def _unpacked(study: HITType, kept: StudyAgreement, *, is_outdated: bool) -> StudyFigures:
    return StudyFigures(
        study=study,
        rows=unpack(kept.figures),
        submitted=kept.figures["submitted"],
        annotations=kept.annotations,
        made_at=kept.made_at,
        is_outdated=is_outdated,
    )
