"""The workspace's pages of statements, and of the searches that found them."""

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.postgres.search import SearchQuery
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from generation import replays
from generation.admin.texts import ReadOnlyAdmin, blurred, percent, rounded
from generation.forms import DIRECTIONS
from generation.models import TEXT_WORDS, FinishReason, Generation, Method, Replay
from generation.parameters import Direction
from generation.search_steps import Search

DIGITS_OF_A_STEP = 6
MANY = 10_000


@admin.register(Generation)
class GenerationAdmin(ReadOnlyAdmin):
    list_display = ["blurred_text", "group", "label", "method", "toxic", "run"]
    list_filter = ["label", "method", "group"]
    list_select_related = ["group", "run"]
    sortable_by = []  # by any of these columns all statements would have to be read
    search_fields = ["text"]  # shows the field to search in; how it is searched stands below
    search_help_text = "Whole words, such as: choir lake, “sign language”, choir or lake, choir -lake"
    how_it_searches = "Only whole words are found: “lake” does not find “lakes”."
    fields = [
        "blurred_text", "blurred_prompt", ("group", "label"), ("method", "run"), ("mean_vote", "toxic"),
        ("tokens", "log_probability"), ("finish_reason", "seed"), "created_at",
    ]  # fmt: skip
    readonly_fields = ["blurred_text", "blurred_prompt", "mean_vote", "toxic", "log_probability"]
    change_form_outer_before_template = "admin/generation/generation/around.html"
    change_form_outer_after_template = "admin/generation/generation/hypotheses.html"

    def get_search_results(self, request, queryset, search_term):
        """Those with all the words, found by their index; quotes, ``or`` and ``-`` as on the web."""
        if not search_term.strip():
            return queryset, False
        words = SearchQuery(search_term, config="simple", search_type="websearch")
        found = queryset.alias(words=TEXT_WORDS).filter(words=words)
        ids = list(found.order_by().values_list("pk", flat=True)[:MANY])
        # Of many, a walk through all statements, the newest first, soon meets a page full. PostgreSQL would look for
        # few in the same way, and read them all.
        return (found if len(ids) == MANY else queryset.filter(pk__in=ids)), False

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
        "sought_class": Direction.for_label(replay.generation.label).sought_class,
        "number": number,
        "rows": rows,
        "before": before,
        "lines": search.lines(number),
        "height": max(len(rows), len(before), 1),
        "previous": number - 1 if number > 1 else None,
        "next": number + 1 if number < len(search) else None,
    }
