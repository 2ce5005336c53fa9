"""The workspace's pages of trained classifiers: order a training, watch it, stop it, and put what came of it to use."""

from collections.abc import Callable

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRefresh

from analysis.classifiers import orders
from analysis.classifiers.forms import EvaluateForm
from analysis.classifiers.page import evaluations_of, of_training, preview_of, what_came_of
from analysis.classifiers.training_form import TrainingForm
from analysis.models import Evaluation, TrainedClassifier
from generation import readings
from generation.admin.lists import WorkspaceAdmin
from generation.models import ReaderKind

OF_NO_USE = {
    "queued": "its training has not begun",
    "running": "its training goes on",
    "failed": "its training came to nothing",
}


@admin.register(TrainedClassifier)
class TrainedClassifierAdmin(WorkspaceAdmin):
    list_display = ["name", "short_kind", "base", "trained_on", "statements", "state_word", "auc", "created_at"]
    list_filter = ["kind", "labels", "methods"]
    search_fields = ["name", "base"]
    search_help_text = "A part of the name, or of the model it began with"
    sortable_by = ["name", "created_at"]

    @admin.display(description="kind")
    def short_kind(self, classifier: TrainedClassifier) -> str:
        return classifier.kind

    @admin.display(description="trained on")
    def trained_on(self, classifier: TrainedClassifier) -> str:
        return f"{classifier.get_methods_display()}, {classifier.labels} labels"

    @admin.display(description="statements")
    def statements(self, classifier: TrainedClassifier) -> str:
        number = classifier.data.get("statements")
        return "–" if number is None else f"{number:,}"

    @admin.display(description="state")
    def state_word(self, classifier: TrainedClassifier) -> str:
        return classifier.state

    @admin.display(description="AUC before → after")
    def auc(self, classifier: TrainedClassifier) -> str:
        scores = [classifier.scores.get(when, {}).get("auc") for when in ("before", "after")]
        return "–" if None in scores else " → ".join(f"{score:.3f}" for score in scores)

    def has_change_permission(self, request, obj=None) -> bool:
        """Nothing is edited; what is done to a classifier is done by the acts below."""
        return False

    def has_delete_permission(self, request, obj=None) -> bool:
        return False

    def get_urls(self):
        def own(name: str, view: Callable):
            address = f"<int:classifier_id>/{name}/"
            return path(address, self.admin_site.admin_view(view), name=f"analysis_training_{name}")

        preview = self.admin_site.admin_view(require_safe(self.preview))
        return [
            path("preview/", preview, name="analysis_training_preview"),
            own("progress", require_safe(self.progress)),
            own("evaluations", require_safe(self.evaluations)),
            own("stop", require_POST(self.stop)),
            own("resume", require_POST(self.resume)),
            own("score", require_POST(self.score)),
            *super().get_urls(),
        ]

    # --- Ordering a training

    def add_view(self, request: HttpRequest, form_url="", extra_context=None) -> HttpResponse:
        """GET asks, and previews what the address asks for; POST orders the training."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TrainingForm(request.POST) if request.method == "POST" else TrainingForm(initial=request.GET.dict())
        if form.is_valid():
            try:
                ordered = orders.start_training(**form.order(), by=request.user)
            except ValueError as refused:
                form.refuse(str(refused))
            else:
                return redirect("admin:analysis_trainedclassifier_change", ordered.pk)
        context = {**self._context(request), "title": "Train a classifier", "form": form}
        if "preview" in request.GET:
            context |= preview_of(given=request.GET)
        status = 422 if form.is_bound else 200
        return render(request, "admin/analysis/trainedclassifier/add.html", context, status=status)

    def preview(self, request: HttpRequest) -> HttpResponse:
        """The statements that the form would train on, as it is filled in now."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return render(request, "admin/analysis/trainedclassifier/_preview.html", preview_of(given=request.GET))

    # --- One classifier

    def change_view(self, request: HttpRequest, object_id, form_url="", extra_context=None) -> HttpResponse:
        """How far its training is, or what came of it."""
        if request.method == "POST":
            raise PermissionDenied  # nothing about a classifier is edited
        classifier = self._visible(request, object_id)
        return render(request, "admin/analysis/trainedclassifier/classifier.html", self._about(request, classifier))

    def progress(self, request: HttpRequest, classifier_id: int) -> HttpResponse:
        """The part of the page that changes while it is trained; at the end the whole page does."""
        classifier = self._visible(request, classifier_id)
        if not classifier.is_open and request.htmx:
            return HttpResponseClientRefresh()
        return render(request, "admin/analysis/trainedclassifier/_training.html", of_training(classifier))

    def evaluations(self, request: HttpRequest, classifier_id: int) -> HttpResponse:
        """Its evaluations: the part that changes while there are unended ones."""
        classifier = self._visible(request, classifier_id)
        return render(request, "admin/analysis/evaluation/_evaluations.html", self._evaluations(request, classifier))

    def stop(self, request: HttpRequest, classifier_id: int) -> HttpResponse:
        classifier = self._visible(request, classifier_id)
        if not request.user.has_perm("analysis.change_trainedclassifier"):
            raise PermissionDenied
        if orders.stop_training(classifier=classifier, by=request.user):
            messages.success(request, f"The training of {classifier} is stopped. Nothing of it is kept.")
        else:
            messages.info(request, f"Nothing was changed: the training of {classifier} had ended before.")
        return redirect("admin:analysis_trainedclassifier_change", classifier.pk)

    def resume(self, request: HttpRequest, classifier_id: int) -> HttpResponse:
        """Have one that failed go on from its last checkpoint."""
        classifier = self._visible(request, classifier_id)
        if not request.user.has_perm("analysis.change_trainedclassifier"):
            raise PermissionDenied
        if orders.resume_training(classifier=classifier, by=request.user):
            messages.success(request, f"The training of {classifier} waits for a worker, who goes on with it.")
        else:
            messages.info(request, f"Nothing was changed: the training of {classifier} has not failed.")
        return redirect("admin:analysis_trainedclassifier_change", classifier.pk)

    def score(self, request: HttpRequest, classifier_id: int) -> HttpResponse:
        """Have it score every statement that it has not scored yet."""
        classifier = self._visible(request, classifier_id)
        if not request.user.has_perm("generation.add_reading"):
            raise PermissionDenied
        back = redirect("admin:analysis_trainedclassifier_change", classifier.pk)
        if classifier.state != "finished":
            messages.error(request, f"{classifier} cannot score anything: {OF_NO_USE[classifier.state]}.")
            return back
        statements, about = readings.chosen_statements()
        try:
            reading = readings.start_reading(
                kind=ReaderKind.CLASSIFIER,
                model=classifier.name,
                generation_ids=statements,
                about=about,
                by=request.user,
            )
        except ValueError as refused:
            messages.info(request, str(refused))
            return back
        return redirect("admin:generation_reading_change", reading.pk)

    # --- What they share

    def _visible(self, request: HttpRequest, classifier_id) -> TrainedClassifier:
        if not self.has_view_permission(request):
            raise PermissionDenied
        is_number = str(classifier_id).isdecimal() and len(str(classifier_id)) < 19
        found = TrainedClassifier.objects.select_related("created_by")
        return get_object_or_404(found, pk=classifier_id if is_number else 0)

    def _context(self, request: HttpRequest) -> dict:
        return {**self.admin_site.each_context(request), "opts": self.opts}

    def _about(self, request: HttpRequest, classifier: TrainedClassifier) -> dict:
        user = request.user
        is_finished = classifier.state == "finished"
        may_evaluate = is_finished and user.has_perm("analysis.add_evaluation")
        return {
            **self._context(request),
            "title": f"Training of {classifier}",
            **of_training(classifier),
            **what_came_of(classifier),
            **(self._evaluations(request, classifier) if is_finished else {}),
            "evaluate_form": EvaluateForm(initial={"model": classifier.name}) if may_evaluate else None,
            "may_stop": classifier.is_open and user.has_perm("analysis.change_trainedclassifier"),
            "may_resume": classifier.state == "failed" and user.has_perm("analysis.change_trainedclassifier"),
            "was_stopped": classifier.failure == orders.STOPPED,
            "may_read": is_finished and user.has_perm("generation.add_reading"),
            "may_run": is_finished and user.has_perm("generation.add_generationrun"),
            "may_add": self.has_add_permission(request),
        }

    def _evaluations(self, request: HttpRequest, classifier: TrainedClassifier) -> dict:
        if not request.user.has_perm("analysis.view_evaluation"):
            return {}
        return evaluations_of(Evaluation.objects.filter(model=classifier.name)) | {
            "renewed_at": reverse("admin:analysis_training_evaluations", args=[classifier.pk])
        }
