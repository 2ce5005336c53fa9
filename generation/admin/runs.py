"""The workspace's pages of runs: start one, watch it, steer it, have it again."""

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils.html import format_html_join
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from generation import repeating, runs
from generation.admin.lists import WorkspaceAdmin
from generation.admin.outlook import outlook
from generation.admin.run_pages import at_work, may_read, may_steer, may_take_sets, settled, written_last
from generation.auditing import note
from generation.forms import DIRECTIONS, RunForm, settings_of
from generation.models import GenerationRun, RunMethod

SOUGHT = format_html_join(
    "",
    '<p class="with-{}">From {} prompts it seeks <strong>{}</strong>.</p>',
    ((way.prompt_label, way.prompt_label, words) for way, words in DIRECTIONS.items()),
)


@admin.register(GenerationRun)
class GenerationRunAdmin(WorkspaceAdmin):
    list_display = ["__str__", "state", "method", "language_model", "written", "created_by", "created_at"]
    list_filter = ["state", "method"]
    list_select_related = ["created_by"]
    add_form_template = "admin/generation/generationrun/start.html"
    change_form_outer_before_template = "admin/generation/generationrun/progress.html"
    add_fieldsets = [
        ("What to write", {"classes": ["what"], "fields": ["all_groups", "groups", ("labels", "count")]}),
        ("How to write it", {"fields": ["method", ("temperature", "max_new_tokens"), "seed"]}),
        ("Top-k", {"classes": ["of-topk"], "fields": ["k"]}),
        (
            "ALICE",
            {
                "classes": ["of-alice"],
                "description": SOUGHT,
                "fields": [
                    "classifier", ("lm_weight", "classifier_weight"), ("beam", "vocabulary"),
                    ("selection", "no_repeat_ngram_size"), ("group_words_allowed", "n_best"),
                ],
            },
        ),
        ("With which model", {"fields": [("language_model", "precision")]}),
    ]  # fmt: skip
    change_fieldsets = [(None, {"fields": [("created_by", "created_at")]})]

    def get_queryset(self, request):
        return super().get_queryset(request).with_counts()

    @admin.display(description="statements")
    def written(self, run) -> str:
        return f"{run.stored or 0:,} of {(run.places or 0) * len(run.methods):,}"

    def has_change_permission(self, request, obj=None) -> bool:
        return obj is None and super().has_change_permission(request)

    def has_delete_permission(self, request, obj=None) -> bool:
        return False

    def get_form(self, request, obj=None, **kwargs):
        if obj is not None:
            return super().get_form(request, obj, **kwargs)
        return type("RunForm", (RunForm,), {"created_by": request.user})

    def get_fieldsets(self, request, obj=None):
        return self.add_fieldsets if obj is None else self.change_fieldsets

    def get_changeform_initial_data(self, request) -> dict:
        """Of an earlier run, where the address names one, and with ALICE against the classifier that it names."""
        number = request.GET.get("from", "")
        run = GenerationRun.objects.filter(pk=number).first() if number.isdecimal() and len(number) < 19 else None
        initial = settings_of(run) if run else {}
        if classifier := request.GET.get("classifier"):
            searched = initial.get("method") == RunMethod.PAIRED or request.GET.get("method") == RunMethod.PAIRED
            initial |= {"classifier": classifier, "method": RunMethod.PAIRED if searched else RunMethod.ALICE}
        return initial

    def save_model(self, request, obj, form, change) -> None:
        """The form has started the run."""

    def response_add(self, request, obj, post_url_continue=None):
        """Straight to the run's page, where its progress is."""
        return redirect(address_of(obj))

    def get_urls(self):
        def own(name, view):
            return path(f"<int:run_id>/{name}/", self.admin_site.admin_view(view), name=f"generation_run_{name}")

        acts = [own(name, require_POST(getattr(self, name))) for name in ("pause", "resume", "cancel", "repeat")]
        return [
            path("outlook/", self.admin_site.admin_view(self.outlook), name="generation_run_outlook"),
            own("progress", self.progress),
            own("samples", self.samples),
            own("recipe", self.recipe),
            *acts,
            *super().get_urls(),
        ]

    def outlook(self, request: HttpRequest) -> HttpResponse:
        """What the form would start, as it is filled in now."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return render(
            request, "admin/generation/generationrun/_outlook.html", {"outlook": outlook(RunForm(request.GET))}
        )

    def progress(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """The part of the page that renews itself while the run works."""
        run = self._run_to_see(request, run_id)
        if not run.is_open:
            # The rest of the page, what it ran on for one, is settled now: load it all once more.
            return HttpResponseClientRefresh()
        return render(request, "admin/generation/generationrun/_renewed.html", at_work(request, run))

    def samples(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """A few of the statements written last; they are renewed less often, since somebody may be reading."""
        run = self._run_to_see(request, run_id)
        if not may_read(request):
            raise PermissionDenied
        return render(request, "admin/generation/generationrun/_samples.html", written_last(run))

    def recipe(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """All that is needed to repeat the run, as a file."""
        run = self._run_to_see(request, run_id)
        if not may_take_sets(request):
            raise PermissionDenied
        try:
            recipe = repeating.recipe(run)
        except repeating.NotRepeatable as error:
            messages.error(request, str(error))
            return redirect(address_of(run))
        note("recipe exported", by=request.user, subject=str(run))
        return JsonResponse(
            recipe,
            json_dumps_params={"indent": 2, "ensure_ascii": False},
            headers={"Content-Disposition": f'attachment; filename="run-{run.pk}.json"'},
        )

    def repeat(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """Start the same run once more."""
        run = self._run_to_see(request, run_id)
        if not self.has_add_permission(request):
            raise PermissionDenied
        try:
            repetition = repeating.repeat_run(run=run, created_by=request.user)
        except ValueError as error:
            messages.error(request, str(error))
            return redirect(address_of(run))
        messages.success(request, f"This run repeats {run}: the same seed, settings and sets of demonstrations.")
        return redirect(address_of(repetition))

    def pause(self, request: HttpRequest, run_id: int) -> HttpResponse:
        run = self._run_to_steer(request, run_id)
        return self._back(
            request,
            run,
            runs.pause_run(run_id=run.pk, by=request.user),
            "The run is paused. Resume it when you like; statements under way are then written anew.",
        )

    def resume(self, request: HttpRequest, run_id: int) -> HttpResponse:
        run = self._run_to_steer(request, run_id)
        resumed = runs.resume_run(run=run, by=request.user)
        return self._back(request, run, resumed, "The run goes on as soon as a worker is free.")

    def cancel(self, request: HttpRequest, run_id: int) -> HttpResponse:
        run = self._run_to_steer(request, run_id)
        cancelled = runs.cancel_run(run=run, by=request.user)
        return self._back(request, run, cancelled, "The run was cancelled. The statements written so far are kept.")

    def render_change_form(self, request, context, *args, **kwargs):
        """With what the form would start, as it is shown."""
        form = context["adminform"].form
        if isinstance(form, RunForm):
            context["outlook"] = outlook(form if form.is_bound else RunForm(as_sent(form)))
        return super().render_change_form(request, context, *args, **kwargs)

    def changeform_view(self, request, object_id=None, form_url="", extra_context=None):
        run = self.get_object(request, unquote(object_id)) if object_id else None
        own = {**at_work(request, run), **settled(request, run)} if run else {}
        return super().changeform_view(request, object_id, form_url, {**(extra_context or {}), **own})

    def _run_to_see(self, request: HttpRequest, run_id: int) -> GenerationRun:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return get_object_or_404(GenerationRun, pk=run_id)

    def _run_to_steer(self, request: HttpRequest, run_id: int) -> GenerationRun:
        if not may_steer(request):
            raise PermissionDenied
        return get_object_or_404(GenerationRun, pk=run_id)

    def _back(self, request: HttpRequest, run: GenerationRun, has_changed: bool, words: str) -> HttpResponse:
        """To the run's page, which says what was done, or that it was too late for that."""
        if has_changed:
            messages.success(request, words)
        else:
            run.refresh_from_db()
            messages.info(request, f"Nothing was changed: the run is {run.get_state_display()}.")
        return redirect(address_of(run))


def address_of(run: GenerationRun) -> str:
    return reverse("admin:generation_generationrun_change", args=[run.pk])


def as_sent(form: RunForm) -> dict:
    """What a form that nobody has touched would send."""
    return {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
