"""What a dataset's card says of how it came about: measured, not claimed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from django.db.models import Count, Max, Min
from django.utils import timezone

from analysis import figures
from analysis.exports.filtering import IS_COUNTED, of_annotations
from analysis.ratings import toxicity_classes
from annotator import surveying, wages
from annotator.models import Annotation, HITType


@dataclass(frozen=True)
class StudyFacts:
    """How a study went."""

    title: str
    imported: bool
    statements: int
    annotations: int
    counted: int
    annotators: int
    places: tuple[int, int]
    """The fewest and the most places that a statement had."""
    first: datetime
    last: datetime
    wage: wages.Wage
    rates: list[figures.Row]


@dataclass(frozen=True)
class Facts:
    """What is told of the dataset as a whole."""

    title: str
    license: str
    made_on: date
    studies: list[StudyFacts]
    """Those whose annotations are in one of the tables, counted or not."""
    annotators: int
    survey: surveying.Report

    @property
    def description(self) -> str:
        return (
            f"{self.title}: statements about groups of people, written by language models, and what people made of "
            "them. Many statements are offensive. They were collected to build and to test detectors of hate speech."
        )


def facts_about(filters: Mapping, *, title: str, license: str) -> Facts:
    """The facts about the annotations behind the tables that the filters leave, and about the studies they are from."""
    # A table of labels has those that count, even where single annotations are only asked for if they do not.
    behind_labels = {name: value for name, value in filters.items() if name != "counted" or value}
    annotations = Annotation.objects.filter(of_annotations(behind_labels))
    study, worker = "assignment__hit__hit_type", "assignment__worker"
    measured = (
        annotations.order_by()
        .values(study)
        .annotate(
            statements=Count("assignment__hit", distinct=True),
            annotations=Count("pk"),
            counted=Count("pk", filter=IS_COUNTED),
            annotators=Count(worker, distinct=True),
            fewest=Min("assignment__hit__max_assignments"),
            most=Max("assignment__hit__max_assignments"),
            first=Min("assignment__submitted_at"),
            last=Max("assignment__submitted_at"),
        )
    )
    studies = HITType.objects.in_bulk([row[study] for row in measured])
    return Facts(
        title=title,
        license=license,
        made_on=timezone.now().date(),
        studies=[_study(studies[row[study]], row) for row in sorted(measured, key=lambda row: row[study])],
        annotators=annotations.aggregate(number=Count(worker, distinct=True))["number"],
        survey=surveying.report(),
    )


def _study(study: HITType, measured: Mapping) -> StudyFacts:
    return StudyFacts(
        title=study.title,
        imported=study.imported,
        places=(measured["fewest"], measured["most"]),
        wage=wages.as_of_now(study),
        rates=figures.of_ratings(toxicity_classes(study)),
        **{name: measured[name] for name in ("statements", "annotations", "counted", "annotators", "first", "last")},
    )
