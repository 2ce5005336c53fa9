"""The workspace's Generate pages."""

import math

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh
from unfold.admin import ModelAdmin

from generation import replays, runs
from generation.forms import DIRECTIONS, RunForm, in_words
from generation.models import Demonstration, FinishReason, Generation, GenerationRun, Label, Method, Replay, TargetGroup
from generation.parameters import Direction
from generation.search_steps import Search

SOUGHT = format_html_join(
    "",
    '<p class="with-{}">From {} prompts it seeks <strong>{}</strong>.</p>',
    ((way.prompt_label, way.prompt_label, words) for way, words in DIRECTIONS.items()),
)
DIGITS_OF_A_STEP = 6
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
    list_display = ["name", "slug", "words", "naming_words"]


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
    add_fieldsets = [
        ("What to write", {"fields": ["groups", ("label", "count")]}),
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

    def get_fieldsets(self, request, obj=None):
        return self.add_fieldsets if obj is None else self.change_fieldsets

    def save_model(self, request, obj, form, change) -> None:
        """The form has started the run."""

    def response_add(self, request, obj, post_url_continue=None):
        """Straight to the run's page, where its progress is."""
        return redirect(reverse("admin:generation_generationrun_change", args=[obj.pk]))

    def get_urls(self):
        def own(name, view):
            return path(f"<int:run_id>/{name}/", self.admin_site.admin_view(view), name=f"generation_run_{name}")

        acts = [own(name, require_POST(getattr(self, name))) for name in ("pause", "resume", "cancel")]
        return [own("progress", self.progress), *acts, *super().get_urls()]

    def progress(self, request: HttpRequest, run_id: int) -> HttpResponse:
        """The part of the page that renews itself while the run works."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        run = get_object_or_404(GenerationRun, pk=run_id)
        if not run.is_open:
            # The rest of the page, what it ran on for one, is settled now: load it all once more.
            return HttpResponseClientRefresh()
        return render(request, "admin/generation/generationrun/_progress.html", self._progress_of(request, run))

    def pause(self, request: HttpRequest, run_id: int) -> HttpResponse:
        run = self._run_to_steer(request, run_id)
        return self._back(
            request,
            run,
            runs.pause_run(run_id=run.pk),
            "The run is paused. Resume it when you like; statements under way are then written anew.",
        )

    def resume(self, request: HttpRequest, run_id: int) -> HttpResponse:
        run = self._run_to_steer(request, run_id)
        return self._back(request, run, runs.resume_run(run=run), "The run goes on as soon as a worker is free.")

    def cancel(self, request: HttpRequest, run_id: int) -> HttpResponse:
        run = self._run_to_steer(request, run_id)
        return self._back(
            request, run, runs.cancel_run(run=run), "The run was cancelled. The statements written so far are kept."
        )

    def changeform_view(self, request, object_id=None, form_url="", extra_context=None):
        run = self.get_object(request, unquote(object_id)) if object_id else None
        extra_context = {**(extra_context or {}), **(self._progress_of(request, run) if run else {})}
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _progress_of(self, request: HttpRequest, run: GenerationRun) -> dict:
        progress = run.progress()
        return {
            "original": run,
            "progress": progress,
            "time_left": None if progress["seconds_left"] is None else duration(progress["seconds_left"]),
            "may_steer": self._may_steer(request),
            "ran_on": [(name.replace("_", " "), value) for name, value in run.environment.items()],
            "parameters": [(method.label, in_words(run.parameters.get(method, {}))) for method in run.methods],
        }

    def _may_steer(self, request: HttpRequest) -> bool:
        return request.user.has_perm("generation.change_generationrun")

    def _run_to_steer(self, request: HttpRequest, run_id: int) -> GenerationRun:
        if not self._may_steer(request):
            raise PermissionDenied
        return get_object_or_404(GenerationRun, pk=run_id)

    def _back(self, request: HttpRequest, run: GenerationRun, has_changed: bool, words: str) -> HttpResponse:
        """To the run's page, which says what was done, or that it was too late for that."""
        if has_changed:
            messages.success(request, words)
        else:
            run.refresh_from_db()
            messages.info(request, f"Nothing was changed: the run is {run.get_state_display()}.")
        return redirect(reverse("admin:generation_generationrun_change", args=[run.pk]))


@admin.register(Generation)
class GenerationAdmin(ReadOnlyAdmin):
    list_display = ["blurred_text", "group", "label", "method", "toxic", "run"]
    list_filter = ["label", "method", "group"]
    list_select_related = ["group", "run"]
    search_fields = ["text"]
    fields = [
        "blurred_text", "blurred_prompt", ("group", "label"), ("method", "run"), ("mean_vote", "toxic"),
        ("tokens", "log_probability"), ("finish_reason", "seed"), "created_at",
    ]  # fmt: skip
    readonly_fields = ["blurred_text", "blurred_prompt", "mean_vote", "toxic", "log_probability"]
    change_form_outer_before_template = "admin/generation/generation/around.html"
    change_form_outer_after_template = "admin/generation/generation/hypotheses.html"

    @admin.display(description="statement")
    def blurred_text(self, generation):
        return blurred(generation.text)

    @admin.display(description="prompt")
    def blurred_prompt(self, generation):
        return blurred(generation.prompt.text) if generation.prompt else "–"

    @admin.display(description="score", ordering="score")
    def mean_vote(self, generation):
        return rounded(generation.score)

    @admin.display(description="toxic to the classifier", ordering="toxic_prob")
    def toxic(self, generation):
        return percent(generation.toxic_prob)

    @admin.display(description="log-probability")
    def log_probability(self, generation):
        return rounded(generation.log_prob)

    def get_urls(self):
        replay = path("<int:generation_id>/replay/", self.admin_site.admin_view(self.replay), name="generation_replay")
        return [replay, *super().get_urls()]

    def changeform_view(self, request, object_id=None, form_url="", extra_context=None):
        generation = self.get_object(request, unquote(object_id)) if object_id else None
        extra_context = {**(extra_context or {}), **(self._around(request, generation) if generation else {})}
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _around(self, request: HttpRequest, generation: Generation) -> dict:
        """What stands before and after the fields: the pair, the way to the replay and the n best."""
        at_its_place = Generation.objects.filter(chunk=generation.chunk_id, position=generation.position)
        return {
            "partner": at_its_place.exclude(pk=generation.pk).first() if generation.chunk_id else None,
            "can_be_replayed": replays.is_replayable(generation),
            "replay": getattr(generation, "replay", None),
            "may_replay": request.user.has_perm("generation.add_replay"),
            "may_see_replay": request.user.has_perm("generation.view_replay"),
            "hypotheses": [
                hypothesis
                | {
                    "ended": FinishReason(hypothesis["finish_reason"]).label,
                    "percent_toxic": percent(hypothesis["toxic_prob"]),
                }
                for hypothesis in generation.hypotheses
            ],
        }

    def replay(self, request: HttpRequest, generation_id: int) -> HttpResponse:
        """The search for a statement step by step: POST asks for it, GET shows it or says where it is."""
        may_replay = request.user.has_perm("generation.add_replay")
        if not (may_replay if request.method == "POST" else request.user.has_perm("generation.view_replay")):
            raise PermissionDenied
        generation = get_object_or_404(
            Generation.objects.select_related("run", "prompt", "group", "replay"), pk=generation_id
        )
        if not replays.is_replayable(generation):
            raise Http404("Only a statement that ALICE wrote in a run can be replayed.")
        if request.method == "POST":
            replays.request_replay(generation=generation, requested_by=request.user)
            return redirect(request.path)
        replay = getattr(generation, "replay", None)
        context = {
            **self.admin_site.each_context(request),
            "title": f"The search for statement {generation.pk}",
            "generation": generation,
            "replay": replay,
            "may_replay": may_replay,
            "texts_shown": request.GET.get("texts") == "shown",
            "percent_toxic": percent(generation.toxic_prob),
            "sought": DIRECTIONS[Direction.for_label(generation.label)],
        }
        if replay and replay.steps:
            context |= drawn_step(replay, request.GET.get("step", ""))
        return render(request, "admin/generation/generation/replay.html", context)


def drawn_step(replay: Replay, asked_for: str) -> dict:
    """What the replay's page draws: the search and one step of it, by default the first."""
    parameters = replay.generation.run.parameters[Method.ALICE]
    search = Search(replay.steps, beam=parameters["beam"], text=replay.text)
    number = min(max(int(asked_for[:DIGITS_OF_A_STEP]), 1), len(search)) if asked_for.isdecimal() else 1
    rows, before = search.rows(number), search.before(number)
    return {
        "search": search,
        "lm_weight": parameters["lm_weight"],
        "classifier_weight": parameters["classifier_weight"],
        "sought_class": Direction(parameters["direction"]).sought_class,
        "number": number,
        "rows": rows,
        "before": before,
        "lines": search.lines(number),
        "height": max(len(rows), len(before), 1),
        "previous": number - 1 if number > 1 else None,
        "next": number + 1 if number < len(search) else None,
    }


def rounded(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def percent(probability: float | None) -> str:
    return "–" if probability is None else f"{100 * probability:.1f} %"


def duration(seconds: float) -> str:
    """A length of time for people.

    >>> duration(1), duration(100), duration(7000), duration(400_000)
    ('1 second', '100 seconds', '117 minutes', '111 hours')
    """
    for most, length, word in ((120, 1, "second"), (7200, 60, "minute"), (math.inf, 3600, "hour")):
        count = round(seconds / length)
        if seconds <= most:
            return f"{count} {word}" if count == 1 else f"{count} {word}s"
    raise ValueError(f"{seconds!r} is no length of time.")
