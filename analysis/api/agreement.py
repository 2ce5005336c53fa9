"""How far the annotators of a study agree."""

from collections.abc import Iterator

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.response import Response

from analysis.agreement import Statistic, statistics_for
from analysis.models import StoredReport
from analysis.reports import storing
from analysis.reports.frame import Estimate, Section, unpack
from annotator.models import Assignment, HITType
from generation.api.fields import Choice, Number, Text, Truth, Whole
from generation.api.frame import View


class IntervalSerializer(serializers.Serializer):
    """Of 95 %: of the shares Wilson's, of the others by a bootstrap over statements; null of fewer than ten."""

    low = Number()
    high = Number()


class FigureSerializer(serializers.Serializer):
    """A figure with its n, and with the reason where it is undefined."""

    name = Choice(choices=[statistic.value for statistic in Statistic])
    value = Number(allow_null=True)
    reason = Text(allow_null=True, help_text="Why it is undefined.")
    n_statements = Whole()
    n_raters = Whole()
    n_ratings = Whole()
    left_out = Whole(help_text="Statements that are left out.")
    interval = IntervalSerializer(allow_null=True)


class AgreementSerializer(serializers.Serializer):
    """On the toxicity class: non-toxic, ambiguous, toxic."""

    study = Whole(source="study.pk")
    submitted = Whole(help_text="Assignments that were submitted by now.")
    annotations = Whole(help_text="Counted annotations that the figures rest on.")
    made_at = serializers.DateTimeField(allow_null=True, help_text="When they were worked out; null: not yet.")
    is_outdated = Truth(help_text="Whether there are annotations that they do not rest on.")
    failure = Text(help_text="Why they could not be worked out the last time; empty: they could.")
    figures = FigureSerializer(many=True)


class AgreementViewSet(View):
    """Agreement by study: the number in the address is the study's."""

    queryset = HITType.objects.all()
    serializer_class = AgreementSerializer
    needs = {"retrieve": ["annotator.view_annotation"], "work_out": ["annotator.view_annotation"]}
    filter_backends = []

    def retrieve(self, request, pk=None) -> Response:
        """The figures that are kept; the queue is asked for what is missing or outdated. Ask again in a moment."""
        study = self.get_object()
        return Response(self.get_serializer(_told(study, _kept(study))).data)

    @extend_schema(request=None, responses={202: None})
    @action(detail=True, methods=["post"], url_path="work-out")
    def work_out(self, request, pk=None) -> Response:
        """Have the figures worked out anew, on the queue."""
        storing.ask(_kept(self.get_object()))
        return Response(status=status.HTTP_202_ACCEPTED)


def _kept(study: HITType) -> StoredReport:
    return storing.look_at("agreement", {"study": [str(study.pk)]})


def _told(study: HITType, stored: StoredReport) -> dict:
    told = {
        "study": study,
        "submitted": Assignment.objects.filter(hit__hit_type=study, submitted_at__isnull=False).order_by().count(),
        "annotations": 0,
        "made_at": stored.made_at,
        "is_outdated": stored.is_outdated,
        "failure": stored.failure,
        "figures": [],
    }
    if stored.payload is None:
        return told
    section = next(section for section in unpack(stored.payload).sections if section.key == "figures")
    return told | {"annotations": section.n["annotations"], "figures": list(_figures(section))}


def _figures(section: Section) -> Iterator[dict]:
    """The rows of the report's table; without one, each figure with the reason why there are none."""
    if section.table is None:
        nothing = {"value": None, "reason": section.missing, "interval": None}
        numbers = dict.fromkeys(("n_statements", "n_raters", "n_ratings", "left_out"), 0)
        yield from ({"name": name.value, **nothing, **numbers} for name in statistics_for("ordinal"))
        return
    for row in section.table.rows:
        value = row["value"]
        is_defined = isinstance(value, Estimate)
        yield {
            "name": row["figure"],
            "value": value.value if is_defined else None,
            "reason": None if is_defined else value.reason,
            "interval": {"low": value.low, "high": value.high} if is_defined and value.low is not None else None,
            "n_statements": row["statements"],
            "n_raters": row["annotators"],
            "n_ratings": row["ratings"],
            "left_out": row["left_out"],
        }
