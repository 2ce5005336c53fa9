"""The workspace's page of imports: upload a file, watch it being read, see what came of it."""

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from analysis import uploads
from analysis.forms import ImportForm
from analysis.imports.faults import csv_lines
from analysis.imports.wording import in_words
from analysis.models import UNENDED_IMPORTS, DataImport, ImportState
from generation.admin.lists import WorkspaceAdmin

FAULTS_SHOWN = 100


@admin.register(DataImport)
class DataImportAdmin(WorkspaceAdmin):
    list_display = [
        "__str__",
        "format",
        "file_name",
        "state_word",
        "rows",
        "new",
        "known",
        "bad",
        "created_by",
        "created_at",
    ]
    list_filter = ["format", "state"]
    list_select_related = ["created_by"]

    @admin.display(description="state", ordering="state")
    def state_word(self, record: DataImport) -> str:
        """One word; that nothing was stored is said by the figures beside it and on the import's page."""
        return record.state

    def has_change_permission(self, request, obj=None) -> bool:
        return False

    def has_delete_permission(self, request, obj=None) -> bool:
        return False

    def get_urls(self):
        def own(route, view, name):
            return path(route, self.admin_site.admin_view(view), name=name)

        return [
            own("<int:import_id>/progress/", require_safe(self.progress), "analysis_import_progress"),
            own("<int:import_id>/stop/", require_POST(self.stop), "analysis_import_stop"),
            own("<int:import_id>/faults.csv", require_safe(self.faults), "analysis_import_faults"),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, form_url="", extra_context=None) -> HttpResponse:
        """The upload."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = ImportForm(request.POST, request.FILES) if request.method == "POST" else ImportForm()
        if form.is_valid():
            try:
                record = uploads.ask_for_import(
                    files=form.cleaned_data["files"],
                    format=form.cleaned_data["format"],
                    options=form.options(),
                    by=request.user,
                )
            except uploads.NotUploaded as refused:
                form.add_error("files", str(refused))
            else:
                return redirect("admin:analysis_dataimport_change", record.pk)
        context = {**self._context(request), "title": "Import a file", "form": form}
        status = 422 if form.is_bound else 200
        return render(request, "admin/analysis/dataimport/upload.html", context, status=status)

    def change_view(self, request: HttpRequest, object_id, form_url="", extra_context=None) -> HttpResponse:
        """How far the import is, or what came of it."""
        if request.method == "POST":
            raise PermissionDenied  # nothing about an import is changed
        record = self._visible(request, object_id)
        context = {**self._context(request), "title": f"Import {record.pk}", **self._about(request, record)}
        return render(request, "admin/analysis/dataimport/import.html", context)

    def progress(self, request: HttpRequest, import_id: int) -> HttpResponse:
        """The part of the page that changes."""
        record = self._visible(request, import_id)
        return render(request, "admin/analysis/dataimport/_import.html", self._about(request, record))

    def stop(self, request: HttpRequest, import_id: int) -> HttpResponse:
        record = self._visible(request, import_id)
        if not self.has_add_permission(request):
            raise PermissionDenied
        if uploads.stop_import(record=record, by=request.user):
            messages.success(request, f"{str(record).capitalize()} is stopped. Nothing of it was stored.")
        else:
            messages.info(request, f"{str(record).capitalize()} had ended before.")
        return redirect("admin:analysis_dataimport_change", record.pk)

    def faults(self, request: HttpRequest, import_id: int) -> StreamingHttpResponse:
        """All faults as a CSV file."""
        record = self._visible(request, import_id)
        return StreamingHttpResponse(
            csv_lines(record.faults.order_by("pk").iterator(chunk_size=2000), file=record.file_name),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="import-{record.pk}-faults.csv"'},
        )

    def _visible(self, request: HttpRequest, import_id) -> DataImport:
        if not self.has_view_permission(request):
            raise PermissionDenied
        records = DataImport.objects.select_related("created_by")
        return get_object_or_404(records, pk=import_id if str(import_id).isdecimal() else 0)

    def _context(self, request: HttpRequest) -> dict:
        return {**self.admin_site.each_context(request), "opts": self.opts}

    def _about(self, request: HttpRequest, record: DataImport) -> dict:
        is_open = record.state in UNENDED_IMPORTS
        return {
            "import": record,
            "options": in_words(record.options),
            "is_open": is_open,
            "percent": 100 * record.bytes_read // record.bytes_total if record.bytes_total else 0,
            "is_storing": record.state == ImportState.RUNNING and record.bytes_read >= record.bytes_total,
            "may_stop": is_open and self.has_add_permission(request),
            "faults": list(record.faults.order_by("pk")[:FAULTS_SHOWN]),
            "back": reverse("admin:analysis_dataimport_changelist"),
        }
