"""How far the annotators of a study agree."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.response import Response

from analysis import figures
from analysis.agreement import Statistic
from annotator.models import HITType
from generation.api.fields import Choice, Number, Text, Truth, Whole
from generation.api.frame import View


class IntervalSerializer(serializers.Serializer):
    """Of 95 %, by a bootstrap over statements."""

    low = Number()
    high = Number()


class FigureSerializer(serializers.Serializer):
    """A figure with its n, and with the reason where it is undefined."""

    name = Choice(choices=[statistic.value for statistic in Statistic], source="figure.name")
    value = Number(source="figure.value", allow_null=True)
    reason = Text(source="figure.reason", allow_null=True, help_text="Why it is undefined.")
    n_statements = Whole(source="figure.n_statements")
    n_ratings = Whole(source="figure.n_ratings")
    left_out = Whole(source="figure.left_out", help_text="Statements that are left out.")
    interval = IntervalSerializer(allow_null=True)


class AgreementSerializer(serializers.Serializer):
    """On the toxicity class: non-toxic, ambiguous, toxic."""

    study = Whole(source="study.pk")
    submitted = Whole(help_text="Assignments that were submitted.")
    annotations = Whole(help_text="Counted annotations that the figures rest on.")
    made_at = serializers.DateTimeField(allow_null=True, help_text="When they were worked out; null: not yet.")
    is_outdated = Truth(help_text="Whether there are annotations that they do not rest on.")
    figures = FigureSerializer(many=True, source="rows")


class AgreementViewSet(View):
    """Agreement by study: the number in the address is the study's."""

    queryset = HITType.objects.select_related("agreement")
    serializer_class = AgreementSerializer
    needs = {"retrieve": ["annotator.view_annotation"], "work_out": ["annotator.view_annotation"]}
    filter_backends = []

    def retrieve(self, request, pk=None) -> Response:
        """The figures that are kept; those of a small study are worked out at once."""
        [found] = figures.of_studies([self.get_object()])
        return Response(self.get_serializer(found).data)

    @extend_schema(request=None, responses={202: None})
    @action(detail=True, methods=["post"], url_path="work-out")
    def work_out(self, request, pk=None) -> Response:
        """Have the figures worked out anew, on the queue."""
        figures.ask_to_work_out(self.get_object())
        return Response(status=status.HTTP_202_ACCEPTED)
