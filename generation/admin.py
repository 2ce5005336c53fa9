"""The workspace's Generate pages."""

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh
from unfold.admin import ModelAdmin

from generation import runs
from generation.forms import RunForm
from generation.models import Demonstration, Generation, GenerationRun, Label, TargetGroup

BLURRED = '<span class="blurred" tabindex="0" title="Point at it or press Tab to read it">{}</span>'


def blurred(text: str) -> str:
    """A text that stays unreadable until the reader asks for it."""
    return format_html(BLURRED, text)


class ReadOnlyAdmin(ModelAdmin):
    """A list and a page of rows that nobody edits by hand."""

    def has_add_permission(self, request) -> bool:
        return False

    def has_change_permission(self, request, obj=None) -> bool:
        return False

    def has_delete_permission(self, request, obj=None) -> bool:
        return False


@admin.register(TargetGroup)
class TargetGroupAdmin(ModelAdmin):
    list_display = ["name", "slug", "words"]


@admin.register(Demonstration)
class DemonstrationAdmin(ModelAdmin):
    list_display = ["blurred_text", "group", "label", "in_use"]
    list_filter = ["label", "group"]
    search_fields = ["text"]
    list_select_related = ["group"]
    actions = ["retire"]

    @admin.display(description="text")
    def blurred_text(self, demonstration):
        return blurred(demonstration.text) if demonstration.label == Label.TOXIC else demonstration.text

    @admin.display(boolean=True, description="in use")
    def in_use(self, demonstration) -> bool:
        return demonstration.retired_at is None

    @admin.action(description="Retire: draw no more prompts from them", permissions=["change"])
    def retire(self, request, queryset) -> None:
        retired = queryset.filter(retired_at=None).update(retired_at=timezone.now())
        messages.success(request, f"Demonstrations retired: {retired}.")


@admin.register(GenerationRun)
class GenerationRunAdmin(ModelAdmin):
    list_display = ["__str__", "state", "method", "language_model", "stored", "created_by", "created_at"]
    list_filter = ["state", "method"]
    list_select_related = ["created_by"]
    add_form_template = "admin/generation/generationrun/start.html"
    change_form_outer_before_template = "admin/generation/generationrun/progress.html"

    def get_queryset(self, request):
        return super().get_queryset(request).annotate(stored=Count("generations"))

    @admin.display(description="statements")
    def stored(self, run) -> int:
        return run.stored

    def has_change_permission(self, request, obj=None) -> bool:
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request, obj=None) -> bool:
        return False

    def get_form(self, request, obj=None, **kwargs):
        if obj is not None:
            return super().get_form(request, obj, **kwargs)
        return type("RunForm", (RunForm,), {"created_by": request.user})

    def get_fields(self, request, obj=None):
        if obj is None:
            return RunForm.field_order
        return ["language_model", "method", "parameters", "seed", "environment", "created_by", "created_at"]

    def save_model(self, request, obj, form, change) -> None:
        """The form has started the run."""

    def response_add(self, request, obj, post_url_continue=None):
        """Straight to the run's page, where its progress is."""
        return redirect(reverse("admin:generation_generationrun_change", args=[obj.pk]))

    def get_urls(self):
        own = [
            path("<int:run_id>/progress/", self.admin_site.admin_view(self.progress), name="generation_run_progress"),
            path(
                "<int:run_id>/cancel/",
                self.admin_site.admin_view(require_POST(self.cancel)),
                name="generation_run_cancel",
            ),
        ]
        return own + super().get_urls()

    def progress(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """The part of the page that renews itself while the run works."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        run = get_object_or_404(GenerationRun, pk=run_id)
        if not run.is_open:
            # The rest of the page, what it ran on for one, is settled now: load it all once more.
            return HttpResponseClientRefresh()
        context = {"original": run, "may_cancel": self._may_cancel(request)}
        return render(request, "admin/generation/generationrun/_progress.html", context)

    def cancel(self, request: HttpRequest, run_id: int) -> HttpResponse:
        if not self._may_cancel(request):
            raise PermissionDenied
        run = get_object_or_404(GenerationRun, pk=run_id)
        if runs.cancel_run(run=run):
            messages.success(request, "The run was cancelled. The statements written so far are kept.")
        else:
            messages.info(request, f"The run had ended already: it is {run.get_state_display()}.")
        return redirect(reverse("admin:generation_generationrun_change", args=[run_id]))

    def changeform_view(self, request, object_id=None, form_url="", extra_context=None):
        extra_context = {**(extra_context or {}), "may_cancel": self._may_cancel(request)}
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _may_cancel(self, request) -> bool:
        return request.user.has_perm("generation.change_generationrun")


@admin.register(Generation)
class GenerationAdmin(ReadOnlyAdmin):
    list_display = ["blurred_text", "group", "label", "method", "run"]
    list_filter = ["label", "method", "group"]
    list_select_related = ["group", "run"]
    search_fields = ["text"]
    fields = [
        "blurred_text", "blurred_prompt", "group", "label", "method", "run", "seed", "tokens", "log_prob",
        "finish_reason", "created_at",
    ]  # fmt: skip
    readonly_fields = ["blurred_text", "blurred_prompt"]

    @admin.display(description="statement")
    def blurred_text(self, generation):
        return blurred(generation.text)

    @admin.display(description="prompt")
    def blurred_prompt(self, generation):
        return blurred(generation.prompt.text) if generation.prompt else "–"
