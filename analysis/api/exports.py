"""Exports: the labelled set in the formats of the field."""

from django import forms
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.response import Response

from analysis.exports import EXPORTS
from analysis.exports.columns import Export
from analysis.exports.filtering import ExportForm, WrongFilter
from analysis.exports.writing import CONTENT_TYPES, FORMATS, Download, headers_of, stream
from generation.api.fields import Choice, Text
from generation.api.frame import AnyForm, View

NOT_ALLOWED = "Your role does not allow this export. Ask an admin for it."
NAMES = list(EXPORTS)
OPTIONS = {"excel_safe"}
FILES = {(200, content_type): OpenApiTypes.BINARY for content_type in CONTENT_TYPES.values()}


class ExportSerializer(serializers.Serializer):
    """A kind of file."""

    name = Text()
    about = Text()
    a_row = Text(help_text="What a row is.")
    formats = serializers.ListField(child=Choice(choices=FORMATS), default=FORMATS)
    filters = serializers.ListField(child=Text(), source="takes")


def _parameters() -> list[OpenApiParameter]:
    """The filters, as the form has them."""
    fields = ExportForm.base_fields
    return [
        OpenApiParameter(
            name,
            type=TYPES.get(type(field), OpenApiTypes.STR),
            many=isinstance(field, forms.ModelMultipleChoiceField | forms.MultipleChoiceField),
            enum=[value for value, _ in field.choices if value] if type(field) in WITH_WORDS else None,
            description=str(field.help_text or field.label),
        )
        for name, field in fields.items()
    ]


TYPES = {
    forms.ModelChoiceField: OpenApiTypes.INT,
    forms.ModelMultipleChoiceField: OpenApiTypes.INT,
    forms.FloatField: OpenApiTypes.FLOAT,
    forms.DateField: OpenApiTypes.DATE,
    forms.BooleanField: OpenApiTypes.BOOL,
}
WITH_WORDS = (forms.MultipleChoiceField, forms.TypedChoiceField)


class ExportViewSet(View):
    """What there is to export, and the files. **Their texts may hurt.** Workers appear as salted hashes."""

    # Each export names the permissions that its file takes; they are asked for below.
    needs = {"list": [], "download": []}
    lookup_field = "name"
    lookup_value_regex = r"[a-z]+"
    pagination_class = None
    filter_backends = []
    serializer_class = ExportSerializer

    @extend_schema(responses=ExportSerializer(many=True))
    def list(self, request) -> Response:
        """The exports that your role may make, and the filters that each takes."""
        exports = [export for export in EXPORTS.values() if export.is_for(request.user)]
        return Response(ExportSerializer(exports, many=True).data)

    @extend_schema(
        parameters=[
            OpenApiParameter("name", enum=NAMES, location=OpenApiParameter.PATH),
            OpenApiParameter("file_format", enum=FORMATS, location=OpenApiParameter.PATH),
            *_parameters(),
        ],
        responses=FILES,
    )
    @action(
        detail=True,
        methods=["get"],
        url_path=r"(?P<file_format>[a-z]+)",
        url_name="file",
        content_negotiation_class=AnyForm,
    )
    def download(self, request, name: str, file_format: str) -> StreamingHttpResponse:
        """A file. What is exported is noted in the audit trail."""
        export = EXPORTS.get(name)
        if export is None or file_format not in FORMATS:
            raise NotFound(f"There is no export {name}/{file_format}. Look at /api/exports/ for those there are.")
        if not export.is_for(request.user):
            self.permission_denied(request, message=NOT_ALLOWED)
        made = self._stream(export, file_format)
        return StreamingHttpResponse(made, headers=headers_of(made, name, file_format))

    def _stream(self, export: Export, file_format: str) -> Download:
        asked = self.request.query_params
        known = {*export.takes, *OPTIONS}
        faults = {name: ["Give the filter a value, or leave it out."] for name in asked if "" in asked.getlist(name)}
        faults |= {name: [f"The export {export.name} has no filter “{name}”."] for name in asked if name not in known}
        if not set(asked.getlist("excel_safe")) <= {"true", "false"}:
            faults["excel_safe"] = ["Give “true” or “false”."]
        if faults:
            raise ValidationError(faults)
        form = ExportForm(asked)
        try:
            return stream(
                export.name,
                file_format,
                asked,
                excel_safe=form.is_valid() and form.cleaned_data["excel_safe"],
                by=self.request.user,
            )
        except WrongFilter as wrong:
            raise ValidationError(wrong.faults) from wrong
