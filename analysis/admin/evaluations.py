"""The workspace's pages of evaluations: have a classifier score test sets, and watch it."""

from collections.abc import Callable

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from analysis.classifiers.evaluations import start_evaluation, stop_evaluation
from analysis.classifiers.forms import EvaluateForm
from analysis.classifiers.page import of_evaluation, worth_of
from analysis.models import Evaluation, HumanvalSet, TrainedClassifier
from generation.admin.lists import WorkspaceAdmin


@admin.register(Evaluation)
class EvaluationAdmin(WorkspaceAdmin):
    list_display = ["__str__", "precision", "state_word", "done", "failure", "created_by", "created_at"]
    list_select_related = ["created_by", "humanval_set", "evaluation_set"]
    list_filter = ["evaluation_set", "humanval_set"]
    search_fields = ["model"]
    search_help_text = "A part of the classifier’s name"
    sortable_by = ["created_at"]

    @admin.display(description="state")
    def state_word(self, evaluation: Evaluation) -> str:
        return evaluation.state

    @admin.display(description="texts scored")
    def done(self, evaluation: Evaluation) -> str:
        return f"{evaluation.scored:,} of {evaluation.texts:,}"

    def has_change_permission(self, request, obj=None) -> bool:
        return False

    def has_delete_permission(self, request, obj=None) -> bool:
        return False

    def get_urls(self):
        def own(name: str, view: Callable):
            address = f"<int:evaluation_id>/{name}/"
            return path(address, self.admin_site.admin_view(view), name=f"analysis_evaluating_{name}")

        return [
            own("progress", require_safe(self.progress)),
            own("stop", require_POST(self.stop)),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, form_url="", extra_context=None) -> HttpResponse:
        """Which classifier, on which test sets: all of them are taken, or none."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = EvaluateForm(request.POST) if request.method == "POST" else EvaluateForm(initial=asked_for(request))
        if form.is_valid():
            try:
                started = start(form, by=request.user)
            except ValueError as refused:
                form.add_error(None, str(refused))
            else:
                return self._to(request, started)
        context = {**self._context(request), "title": "Evaluate a classifier", "form": form}
        return render(request, "admin/analysis/evaluation/add.html", context, status=422 if form.is_bound else 200)

    def change_view(self, request: HttpRequest, object_id, form_url="", extra_context=None) -> HttpResponse:
        """How far an evaluation is, or its figures."""
        if request.method == "POST":
            raise PermissionDenied  # nothing about an evaluation is changed
        evaluation = self._visible(request, object_id)
        context = {
            **self._context(request),
            "title": f"Evaluation of {evaluation}",
            **of_evaluation(evaluation),
            **worth_of(evaluation),
            "trained": TrainedClassifier.objects.filter(name=evaluation.model).first(),
            "may_add": self.has_add_permission(request),
            "may_stop": evaluation.is_open and self.has_add_permission(request),
        }
        return render(request, "admin/analysis/evaluation/evaluation.html", context)

    def progress(self, request: HttpRequest, evaluation_id: int) -> HttpResponse:
        """The part of the page that changes; at the end the whole page does."""
        evaluation = self._visible(request, evaluation_id)
        if not evaluation.is_open and request.htmx:
            return HttpResponseClientRefresh()
        return render(request, "admin/analysis/evaluation/_progress.html", of_evaluation(evaluation))

    def stop(self, request: HttpRequest, evaluation_id: int) -> HttpResponse:
        evaluation = self._visible(request, evaluation_id)
        if not self.has_add_permission(request):
            raise PermissionDenied
        if stop_evaluation(evaluation=evaluation, by=request.user):
            messages.success(request, "The evaluation is stopped. What was scored is kept.")
        else:
            messages.info(request, "Nothing was changed: the evaluation had ended before.")
        return redirect("admin:analysis_evaluation_change", evaluation.pk)

    def _visible(self, request: HttpRequest, evaluation_id) -> Evaluation:
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = Evaluation.objects.select_related("created_by", "humanval_set", "evaluation_set", "reader")
        is_number = str(evaluation_id).isdecimal() and len(str(evaluation_id)) < 19
        return get_object_or_404(found, pk=evaluation_id if is_number else 0)

    def _context(self, request: HttpRequest) -> dict:
        return {**self.admin_site.each_context(request), "opts": self.opts}

    def _to(self, request: HttpRequest, started: list[Evaluation]) -> HttpResponse:
        """To where all that was started is shown."""
        if len(started) == 1:
            return redirect("admin:analysis_evaluation_change", started[0].pk)
        sets = ", ".join(str(evaluation.test_set) for evaluation in started)
        messages.success(request, f"{started[0].model} is evaluated on {sets}.")
        trained = TrainedClassifier.objects.filter(name=started[0].model).first()
        if trained:
            return redirect("admin:analysis_trainedclassifier_change", trained.pk)
        return redirect("admin:analysis_evaluation_changelist")


def asked_for(request: HttpRequest) -> dict:
    """What the address wants to be filled in."""
    asked = request.GET
    return {name: asked[name] for name in ("model", "precision") if name in asked} | {
        "test_sets": asked.getlist("test_sets")
    }


@transaction.atomic
def start(form: EvaluateForm, *, by) -> list[Evaluation]:
    """Start what a valid form asks for. Raises ``ValueError`` as ``start_evaluation`` does: then nothing is started."""
    started = []
    for test_set in form.chosen():
        key = "humanval_set" if isinstance(test_set, HumanvalSet) else "evaluation_set"
        model, precision = form.cleaned_data["model"].strip(), form.cleaned_data["precision"]
        started.append(start_evaluation(model=model, precision=precision, by=by, **{key: test_set}))
    return started
