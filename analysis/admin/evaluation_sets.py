"""The workspace's pages of test sets from files: upload one, look at it, test classifiers on it."""

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_safe

from analysis.classifiers.evaluation_sets import WrongFile, import_test_set
from analysis.classifiers.forms import EvaluateForm, TestSetForm, key_of
from analysis.classifiers.page import evaluations_of, texts_of
from analysis.imports.faults import Fault
from analysis.models import EvaluationSet
from generation.admin.lists import WorkspaceAdmin

FAULTS_SHOWN = 20


@admin.register(EvaluationSet)
class EvaluationSetAdmin(WorkspaceAdmin):
    list_display = ["name", "texts", "toxic", "file_name", "evaluated", "created_by", "created_at"]
    list_select_related = ["created_by"]
    search_fields = ["name", "file_name"]
    search_help_text = "A part of the name, or of the file’s"
    sortable_by = ["name", "created_at"]
    list_before_template = "admin/analysis/evaluationset/list_note.html"

    def get_queryset(self, request):
        ended = Count("evaluations", filter=Q(evaluations__finished_at__isnull=False, evaluations__failure=""))
        return super().get_queryset(request).annotate(evaluated_now=ended)

    @admin.display(description="texts")
    def texts(self, test_set: EvaluationSet) -> str:
        return f"{test_set.texts_count:,}"

    @admin.display(description="toxic")
    def toxic(self, test_set: EvaluationSet) -> str:
        return f"{test_set.toxic_count:,}"

    @admin.display(description="evaluations")
    def evaluated(self, test_set: EvaluationSet) -> str:
        return f"{test_set.evaluated_now:,}"

    def has_change_permission(self, request, obj=None) -> bool:
        return False

    def has_delete_permission(self, request, obj=None) -> bool:
        return False

    def get_urls(self):
        evaluations = self.admin_site.admin_view(require_safe(self.evaluations))
        return [
            path("<int:test_set_id>/evaluations/", evaluations, name="analysis_test_set_evaluations"),
            *super().get_urls(),
        ]

    def add_view(self, request: HttpRequest, form_url="", extra_context=None) -> HttpResponse:
        """The upload: the whole file is taken, or nothing."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TestSetForm(request.POST, request.FILES) if request.method == "POST" else TestSetForm()
        faults: list[Fault] = []
        if form.is_valid():
            try:
                made = import_test_set(form.cleaned_data["file"], **form.asked(), by=request.user)
            except WrongFile as refused:
                form.add_error(None, str(refused))
                faults = list(refused.faults)[:FAULTS_SHOWN]
            else:
                if getattr(made, "was_there", False):
                    messages.info(request, "Nothing was stored: this file was there already, read in the same way.")
                return redirect("admin:analysis_evaluationset_change", made.pk)
        context = {**self._context(request), "title": "Upload a test set", "form": form, "faults": faults}
        status = 422 if form.is_bound else 200
        return render(request, "admin/analysis/evaluationset/upload.html", context, status=status)

    def change_view(self, request: HttpRequest, object_id, form_url="", extra_context=None) -> HttpResponse:
        """What is in it, and how classifiers do on it."""
        if request.method == "POST":
            raise PermissionDenied  # nothing about a test set is changed
        test_set = self._visible(request, object_id)
        may_evaluate = request.user.has_perm("analysis.add_evaluation")
        context = {
            **self._context(request),
            "title": f"Test set {test_set}",
            "set": test_set,
            **texts_of(test_set, request.GET),
            **self._evaluations(request, test_set),
            "evaluate_form": EvaluateForm(initial={"test_sets": [key_of(test_set)]}) if may_evaluate else None,
            "may_add": self.has_add_permission(request),
        }
        return render(request, "admin/analysis/evaluationset/set.html", context)

    def evaluations(self, request: HttpRequest, test_set_id: int) -> HttpResponse:
        """The part of the page that changes while there are unended evaluations."""
        test_set = self._visible(request, test_set_id)
        return render(request, "admin/analysis/evaluation/_evaluations.html", self._evaluations(request, test_set))

    def _evaluations(self, request: HttpRequest, test_set: EvaluationSet) -> dict:
        if not request.user.has_perm("analysis.view_evaluation"):
            return {}
        return evaluations_of(test_set.evaluations.all()) | {
            "renewed_at": reverse("admin:analysis_test_set_evaluations", args=[test_set.pk])
        }

    def _visible(self, request: HttpRequest, test_set_id) -> EvaluationSet:
        if not self.has_view_permission(request):
            raise PermissionDenied
        is_number = str(test_set_id).isdecimal() and len(str(test_set_id)) < 19
        found = EvaluationSet.objects.select_related("created_by")
        return get_object_or_404(found, pk=test_set_id if is_number else 0)

    def _context(self, request: HttpRequest) -> dict:
        return {**self.admin_site.each_context(request), "opts": self.opts}
