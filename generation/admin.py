"""The workspace's Generate pages."""

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin

from generation import runs
from generation.models import Demonstration, Generation, GenerationRun, Label, Method, TargetGroup
from generation.parameters import TopKParameters
from generation.prompting import NotEnoughDemonstrations

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
        messages.success(request, f"{retired} demonstrations were retired.")


class RunForm(forms.ModelForm):
    """An order for statements: the same number for each chosen group."""

    groups = forms.ModelMultipleChoiceField(
        TargetGroup.objects.all(),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one group."},
    )
    label = forms.ChoiceField(
        choices=Label.choices, initial=Label.BENIGN, help_text="Which set prompts are drawn from."
    )
    count = forms.IntegerField(min_value=1, max_value=10_000, initial=16, label="Statements a group")
    method = forms.ChoiceField(choices=Method.choices)
    k = forms.IntegerField(min_value=1, initial=TopKParameters.k, help_text="The tokens to choose from at each step.")
    temperature = forms.FloatField(initial=TopKParameters.temperature)
    max_new_tokens = forms.IntegerField(min_value=1, max_value=1000, initial=TopKParameters.max_new_tokens)
    seed = forms.IntegerField(required=False, min_value=0, help_text="Left empty, one is drawn and noted.")
    language_model = forms.CharField(initial=lambda: settings.LANGUAGE_MODEL)

    class Meta:
        model = GenerationRun
        fields = ["language_model", "method", "seed"]

    def clean(self) -> dict:
        cleaned = super().clean()
        if self.errors:
            return cleaned
        try:
            self.parameters = TopKParameters(**{name: cleaned[name] for name in ("k", "temperature", "max_new_tokens")})
            for group in cleaned["groups"]:
                runs.check_cell(runs.Cell(group, cleaned["label"], cleaned["count"]))
        except (NotEnoughDemonstrations, ValueError) as error:
            raise forms.ValidationError(str(error)) from error
        return cleaned

    def save(self, commit: bool = True) -> GenerationRun:
        """Start the run at once: it and its chunks are one act."""
        chosen = self.cleaned_data
        return runs.start_run(
            cells=[runs.Cell(group, chosen["label"], chosen["count"]) for group in chosen["groups"]],
            language_model=chosen["language_model"],
            method=chosen["method"],
            parameters=self.parameters,
            seed=chosen["seed"],
            created_by=self.created_by,
        )

    def save_m2m(self) -> None:
        """Nothing is left to store."""


@admin.register(GenerationRun)
class GenerationRunAdmin(ModelAdmin):
    list_display = ["__str__", "state", "method", "language_model", "stored", "created_by", "created_at"]
    list_filter = ["state", "method"]
    list_select_related = ["created_by"]
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
            return list(RunForm.base_fields)
        return ["language_model", "method", "parameters", "seed", "environment", "created_by", "created_at"]

    def save_model(self, request, obj, form, change) -> None:
        """The form has started the run."""

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
        context = {"original": get_object_or_404(GenerationRun, pk=run_id), "may_cancel": self._may_cancel(request)}
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
