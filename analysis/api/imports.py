"""Imports: uploading files, how far they are read, and what was wrong with their rows."""

from django.http import StreamingHttpResponse
from django_filters import filters
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from analysis import uploads
from analysis.forms import ImportForm
from analysis.imports.faults import csv_lines
from analysis.imports.work import REFUSE, SKIP
from analysis.models import DataImport, ImportFormat, ImportState
from generation.api.fields import Choice, Object, Rows, Text, Truth, Username
from generation.api.frame import AnyForm, Conflict, Filters, Reads, refusals
from generation.models import Label, Method


class ImportSerializer(Rows):
    options = Object(read_only=True, help_text="As given.")
    stored = Object(read_only=True, help_text="How many rows of each kind were made: statements, prompts, …")
    notes = serializers.ListField(child=Text(), read_only=True)
    created_by = Username()

    class Meta:
        model = DataImport
        fields = [
            "id", "format", "file_name", "options", "state", "failure", "bytes_total", "bytes_read", "rows", "new",
            "known", "bad", "stored", "notes", "created_by", "created_at", "started_at", "ended_at",
        ]  # fmt: skip
        read_only_fields = fields


class UploadSerializer(serializers.Serializer):
    """A file and what to do with it."""

    format = Choice(choices=ImportFormat.choices)
    files = serializers.ListField(
        child=serializers.FileField(), help_text="CSV, JSON lines or Parquet; of demonstrations several text files."
    )
    on_fault = Choice(choices=[(REFUSE, "store nothing"), (SKIP, "leave bad rows out")], default=REFUSE)
    make_groups = Truth(default=False, help_text="Whether groups that are not known yet are made.")
    study = Text(max_length=200, required=False, help_text="Of annotations: the title of the study that they go into.")
    group = Text(max_length=50, required=False, help_text="The slug, for rows that say none.")
    label = Choice(choices=Label.choices, required=False, help_text="For rows that say none.")
    method = Choice(choices=Method.choices, required=False, help_text="For rows that say none.")
    encoding = Text(max_length=30, required=False, help_text="Where it is neither UTF-8 nor marked.")


class ImportFilters(Filters):
    state = filters.MultipleChoiceFilter(choices=ImportState)
    format = filters.ChoiceFilter(choices=ImportFormat)

    class Meta:
        model = DataImport
        fields: list[str] = []


class ImportViewSet(Reads):
    """Files that are, or were, read into the database; all of one is stored or nothing is."""

    queryset = DataImport.objects.select_related("created_by")
    serializer_class = ImportSerializer
    filterset_class = ImportFilters
    parser_classes = [MultiPartParser]
    needs = {"faults": ["analysis.view_dataimport"], "stop": ["analysis.add_dataimport"]}

    @extend_schema(request={"multipart/form-data": UploadSerializer}, responses={202: ImportSerializer})
    def create(self, request) -> Response:
        """Upload a file to be imported; it is done as soon as `ended_at` says so."""
        _refuse_unknown_fields(request)
        form = ImportForm({"on_fault": REFUSE} | request.POST.dict(), request.FILES)
        if not form.is_valid():
            raise ValidationError(form.errors)
        with refusals(invalid=(uploads.NotUploaded,)):
            record = uploads.ask_for_import(
                files=form.cleaned_data["files"],
                format=form.cleaned_data["format"],
                options=form.options(),
                by=request.user,
            )
        record.refresh_from_db()
        return Response(self.get_serializer(record).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses=ImportSerializer)
    @action(detail=True, methods=["post"])
    def stop(self, request, pk=None) -> Response:
        """Stop an import that has not ended; nothing of it is stored."""
        record = self.get_object()
        if not uploads.stop_import(record=record, by=request.user):
            raise Conflict(f"Import {record.pk} had ended before.")
        record.refresh_from_db()
        return Response(self.get_serializer(record).data)

    @extend_schema(responses={(200, "text/csv"): OpenApiTypes.STR}, filters=False)
    @action(detail=True, methods=["get"], content_negotiation_class=AnyForm, pagination_class=None)
    def faults(self, request, pk=None) -> StreamingHttpResponse:
        """What is wrong with which line and column, as a CSV file. **It quotes the rows.**"""
        record = self.get_object()
        return StreamingHttpResponse(
            csv_lines(record.faults.order_by("pk").iterator(chunk_size=2000), file=record.file_name),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="import-{record.pk}-faults.csv"'},
        )


def _refuse_unknown_fields(request) -> None:
    """A misspelt option would be an option not given."""
    known = ImportForm.base_fields
    unknown = (request.POST.keys() | request.FILES.keys()) - known.keys() - {"csrfmiddlewaretoken"}
    if unknown:
        sentence = f"There is no such field. Choose from: {', '.join(known)}."
        raise ValidationError({name: [sentence] for name in sorted(unknown)})
