"""What a dataset's card says of how it came about: measured, not claimed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from django.db.models import Count, Exists, Max, Min, OuterRef, Q
from django.utils import timezone

from analysis.agreement import statistics_for
from analysis.bootstrap import Row, figures_with_intervals
from analysis.exports.filtering import IS_COUNTED, in_studies, of_annotations, of_statements
from analysis.exports.propagated import Propagated, propagated
from analysis.labels import TOXICITY_CLASSES
from analysis.models import HumanvalSet
from analysis.ratings import toxicity_classes
from annotator import surveying, wages
from annotator.models import Annotation, HITType
from annotator.questions import Level
from generation.models import Generation, Method


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
    rates: list[Row]


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
    test_set: HumanvalSet | None = None
    """The frozen set whose statements, and what is too similar to them, are not in the tables for training."""
    not_compared: int = 0
    """How many statements are not in these tables since they were stored after the last comparison with it."""
    written: int = 0
    """How many statements with labels are not in these tables since people wrote them: nothing compares them."""
    propagated: Propagated | None = None
    """Whose probabilities the table of statements gives, where a classifier was chosen."""

    @property
    def description(self) -> str:
        return (
            f"{self.title}: statements about groups of people, written by language models, and what people made of "
            "them. Many statements are offensive. They were collected to build and to test detectors of hate speech."
        )

    @property
    def left_out(self) -> list[str]:
        """What is not in the tables for training besides the test set and what is too similar to it, as sentences."""
        said = []
        if self.test_set and self.not_compared:
            were, them = ("statement was", "it") if self.not_compared == 1 else ("statements were", "them")
            said.append(
                f"{self.not_compared:,} {were} stored after the last comparison with {self.test_set} and left out of "
                f"the tables for training. Compare {them}, and export again: manage.py build_humanval "
                f"--update-removed {self.test_set.version}"
            )
        if self.test_set and self.written:
            were = "statement that a person wrote was" if self.written == 1 else "statements that people wrote were"
            said.append(
                f"{self.written:,} {were} left out of annotated: only what models wrote is compared with "
                f"{self.test_set}."
            )
        return said


def facts_about(filters: Mapping, *, title: str, license: str, test_set: HumanvalSet | None = None) -> Facts:
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
        test_set=test_set,
        propagated=propagated(filters),
        **(_left_out(filters, test_set) if test_set else {}),
    )


def _left_out(filters: Mapping, test_set: HumanvalSet) -> dict[str, int]:
    """How many statements the tables for training lack since nothing is known of how similar they are to the set."""
    filters = {name: value for name, value in filters.items() if name not in ("humanval", "counted")}
    asked = Generation.objects.filter(of_statements(filters), in_studies(filters))
    judged = Annotation.objects.counted().filter(of_annotations(filters), assignment__hit__generation=OuterRef("pk"))
    has_label = Q(Exists(judged))
    if not filters.keys() & {"study", "submitted_from", "submitted_to"}:
        has_label |= Q(human_label__isnull=False)
    return {
        "not_compared": asked.exclude(method=Method.WRITTEN).filter(pk__gt=test_set.compared_up_to).count(),
        "written": asked.filter(has_label, method=Method.WRITTEN).count(),
    }


def _study(study: HITType, measured: Mapping) -> StudyFacts:
    return StudyFacts(
        title=study.title,
        imported=study.imported,
        places=(measured["fewest"], measured["most"]),
        wage=wages.as_of_now(study),
        rates=figures_with_intervals(
            toxicity_classes(study), statistics_for(Level.ORDINAL), names=dict(enumerate(TOXICITY_CLASSES))
        ),
        **{name: measured[name] for name in ("statements", "annotations", "counted", "annotators", "first", "last")},
    )
