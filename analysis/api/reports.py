"""Reports: the tables and figures of the dashboards, as they are kept."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.response import Response

from analysis.api.exports import TYPES, WITH_WORDS
from analysis.exports.filtering import WrongFilter
from analysis.models import StoredReport
from analysis.reports import storing
from analysis.reports.catalogue import REPORTS, ReportKind
from analysis.reports.filters import FILTERS, ReportForm
from generation.api.fields import Number, Text, Truth
from generation.api.frame import View

NOT_ALLOWED = "Your role does not allow this report. Ask an admin for it."
NAME = OpenApiParameter("name", location=OpenApiParameter.PATH, description="As the list of reports has it.")


class ReportKindSerializer(serializers.Serializer):
    """A report that there is."""

    name = Text()
    title = Text()
    about = Text()
    filters = serializers.ListField(child=Text(), source="takes")


class StoredReportSerializer(serializers.Serializer):
    """A report over what its filters leave, as it was last worked out."""

    name = Text()
    filters = serializers.DictField(help_text="As they were understood.")
    made_at = serializers.DateTimeField(allow_null=True, help_text="When it was worked out; null: not yet.")
    seconds = Number(allow_null=True, help_text="How long that took.")
    is_outdated = Truth(help_text="Whether there may be newer answers than it rests on; it is then worked out anew.")
    is_waiting = serializers.SerializerMethodField(help_text="Whether it is being worked out.")
    failure = Text(help_text="Why the last attempt came to nothing; “report” is then what was found before.")
    report = serializers.DictField(
        source="payload",
        allow_null=True,
        help_text="“title” and “sections”: each with its sentence (“says”), “n”, “table” (columns, and rows by their "
        "keys), “chart” for Plotly and “notes”. A cell is a text, a number, a “value” with its 95 % interval from "
        "“low” to “high”, or the “reason” why there is none.",
    )

    def get_is_waiting(self, stored: StoredReport) -> bool:
        return stored.finished_at is None


def _parameters() -> list[OpenApiParameter]:
    """The filters, as the form has them; not every report takes each."""
    fields = ReportForm.base_fields
    return [
        OpenApiParameter(
            name,
            type=TYPES.get(type(fields[name]), OpenApiTypes.STR),
            many="Multiple" in type(fields[name]).__name__ or name == "group",
            enum=[value for value, _ in fields[name].choices if value] if type(fields[name]) in WITH_WORDS else None,
            description=str(fields[name].help_text or fields[name].label),
        )
        for name in FILTERS
    ]


class ReportViewSet(View):
    """The reports of the dashboards. **Examples are sent as they were written and may hurt.**"""

    # Each report names the permissions that it takes; they are asked for below.
    needs = {"list": [], "retrieve": [], "work_out": []}
    lookup_field = "name"
    lookup_value_regex = r"[a-z-]+"
    pagination_class = None
    filter_backends = []
    serializer_class = StoredReportSerializer

    @extend_schema(responses=ReportKindSerializer(many=True))
    def list(self, request) -> Response:
        """The reports that your role may see, and the filters that each takes."""
        kinds = [kind for kind in REPORTS.values() if request.user.has_perms(kind.permissions)]
        return Response(ReportKindSerializer(kinds, many=True).data)

    @extend_schema(
        parameters=[NAME, *_parameters()],
        responses={200: StoredReportSerializer, 202: StoredReportSerializer},
    )
    def retrieve(self, request, name: str) -> Response:
        """A report as it is kept; 202 without one while it is worked out for the first time: ask again then."""
        stored = self._look_at(name)
        waits = stored.payload is None and stored.finished_at is None
        return Response(self.get_serializer(stored).data, status=202 if waits else 200)

    @extend_schema(
        parameters=[NAME, *_parameters()],
        request=None,
        responses={202: None},
    )
    @action(detail=True, methods=["post"], url_path="work-out")
    def work_out(self, request, name: str) -> Response:
        """Have a report worked out anew, whatever it rests on."""
        storing.ask(self._look_at(name))
        return Response(status=status.HTTP_202_ACCEPTED)

    def _look_at(self, name: str) -> StoredReport:
        kind: ReportKind | None = REPORTS.get(name)
        if kind is None:
            raise NotFound(f"There is no report {name}. Look at /api/reports/ for those there are.")
        if not self.request.user.has_perms(kind.permissions):
            self.permission_denied(self.request, message=NOT_ALLOWED)
        asked = self.request.query_params
        if empty := [name for name in asked if "" in asked.getlist(name)]:
            raise ValidationError({name: ["Give the filter a value, or leave it out."] for name in empty})
        try:
            return storing.look_at(name, asked)
        except WrongFilter as wrong:
            raise ValidationError(wrong.faults) from wrong
