"""The workspace's pages of readings: have statements read by a model, watch it, stop it."""

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from generation import readings
from generation.admin.lists import WorkspaceAdmin
from generation.admin.reading_form import ReadingForm
from generation.admin.texts import duration
from generation.models import Reading


@admin.register(Reading)
class ReadingAdmin(WorkspaceAdmin):
    list_display = ["__str__", "kind", "model", "which", "state_word", "done", "created_by", "created_at"]
    list_filter = ["kind"]
    list_select_related = ["created_by"]

    @admin.display(description="which statements")
    def which(self, reading: Reading) -> str:
        return reading.about

    @admin.display(description="state")
    def state_word(self, reading: Reading) -> str:
        return reading.state

    @admin.display(description="statements read")
    def done(self, reading: Reading) -> str:
        return f"{reading.read:,} of {reading.statements:,}"

    def has_change_permission(self, request, obj=None) -> bool:
        return False

    def has_delete_permission(self, request, obj=None) -> bool:
        return False

    def get_urls(self):
        def own(name, view):
            return path(f"<int:reading_id>/{name}/", self.admin_site.admin_view(view), name=f"generation_read_{name}")

        return [
            own("progress", require_safe(self.progress)),
            own("stop", require_POST(self.stop)),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, form_url="", extra_context=None) -> HttpResponse:
        """Which statements, by which model."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = ReadingForm(request.POST or None)
        if form.is_valid():
            try:
                started = form.start(by=request.user)
                if started.was_under_way:
                    messages.info(request, "Nothing new was started: this reading has these statements before it.")
                return redirect("admin:generation_reading_change", started.pk)
            except ValueError as refused:
                form.add_error(None, str(refused))
        context = {
            **self._context(request),
            "title": "Have statements read",
            "form": form,
            "paces": [(pace, duration(pace.seconds_for(readings.PACE_FOR))) for pace in readings.paces()],
            "pace_for": readings.PACE_FOR,
        }
        status = 422 if form.is_bound else 200
        return render(request, "admin/generation/reading/start.html", context, status=status)

    def change_view(self, request: HttpRequest, object_id, form_url="", extra_context=None) -> HttpResponse:
        """How far a reading is, or what came of it."""
        if request.method == "POST":
            raise PermissionDenied  # nothing about a reading is changed
        reading = self._visible(request, object_id)
        context = {**self._context(request), "title": f"Reading {reading.pk}", **self._about(request, reading)}
        return render(request, "admin/generation/reading/reading.html", context)

    def progress(self, request: HttpRequest, reading_id: int) -> HttpResponse:
        """The part of the page that changes."""
        reading = self._visible(request, reading_id)
        return render(request, "admin/generation/reading/_progress.html", self._about(request, reading))

    def stop(self, request: HttpRequest, reading_id: int) -> HttpResponse:
        reading = self._visible(request, reading_id)
        if not self.has_add_permission(request):
            raise PermissionDenied
        if readings.stop_reading(reading=reading, by=request.user):
            messages.success(request, "The reading is stopped. What was read is kept.")
        else:
            messages.info(request, "Nothing was changed: the reading had ended before.")
        return redirect("admin:generation_reading_change", reading.pk)

    def _visible(self, request: HttpRequest, reading_id) -> Reading:
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = Reading.objects.select_related("created_by", "reader")
        is_number = str(reading_id).isdecimal() and len(str(reading_id)) < 19
        return get_object_or_404(found, pk=reading_id if is_number else 0)

    def _context(self, request: HttpRequest) -> dict:
        return {**self.admin_site.each_context(request), "opts": self.opts}

    def _about(self, request: HttpRequest, reading: Reading) -> dict:
        progress = reading.progress()
        left, ended = progress["seconds_left"], reading.finished_at and reading.started_at
        return {
            "reading": reading,
            "progress": progress,
            "time_left": None if left is None else duration(left),
            "took": duration((reading.finished_at - reading.started_at).total_seconds()) if ended else None,
            "may_stop": reading.is_open and self.has_add_permission(request),
            "may_add": self.has_add_permission(request),
        }
