"""What workers are qualified for: granted by researchers, or earned in a test."""

from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Count
from django.urls import reverse
from django.utils.html import format_html_join
from unfold.admin import ModelAdmin, TabularInline

from annotator.admin.inlines import ReadOnlyInline
from annotator.models import Grant, Qualification, TestResult
from generation.admin import ReadOnlyAdmin


class GrantsByHand:
    """For the page of whatever grants belong to: who adds one is written down."""

    def save_formset(self, request, form, formset, change) -> None:
        if formset.model is Grant:
            for row in formset.forms:
                if row.instance._state.adding:
                    row.instance.granted_by = request.user
        super().save_formset(request, form, formset, change)


class GrantInline(TabularInline):
    """Grants are given and taken away, not edited."""

    model = Grant
    extra = 0
    hide_title = True
    readonly_fields = ["granted_at", "by"]
    ordering = ["-pk"]

    @admin.display
    def by(self, grant) -> str:
        return str(grant.granted_by or "earned in a test") if grant.pk else "you"

    def has_change_permission(self, request, obj=None) -> bool:
        return False


class GrantToWorkerInline(GrantInline):
    verbose_name, verbose_name_plural = "qualification", "qualifications"
    fields = ["qualification", "granted_at", "by"]
    autocomplete_fields = ["qualification"]


class GrantOfQualificationInline(GrantInline):
    verbose_name, verbose_name_plural = "worker", "workers who have it"
    fields = ["worker", "granted_at", "by"]
    autocomplete_fields = ["worker"]
    per_page = 50


class TestResultInline(ReadOnlyInline):
    model = TestResult
    fields = ["test", "right", "total", "passed", "taken_at"]
    readonly_fields = ["taken_at"]


@admin.register(Qualification)
class QualificationAdmin(GrantsByHand, ModelAdmin):
    list_display = ["name", "description", "holders", "earned_in"]
    search_fields = ["name"]
    fields = ["name", "description"]
    inlines = [GrantOfQualificationInline]

    def get_queryset(self, request):
        return super().get_queryset(request).annotate(holders=Count("grants")).prefetch_related("tests")

    @admin.display(description="workers", ordering="holders")
    def holders(self, qualification) -> int:
        return qualification.holders

    @admin.display(description="earned in")
    def earned_in(self, qualification) -> str:
        """The tests, each leading to its results."""
        results = reverse("admin:annotator_testresult_changelist")
        links = [(results, urlencode({"test__id__exact": test.pk}), test) for test in qualification.tests.all()]
        return format_html_join(", ", '<a class="underline" href="{}?{}">{}</a>', links) or "–"


@admin.register(TestResult)
class TestResultAdmin(ReadOnlyAdmin):
    list_display = ["worker", "test", "score", "passed", "taken_at"]
    list_filter = ["test", "passed"]
    list_select_related = ["worker", "test"]
    search_fields = ["worker__pseudonym", "worker__pay_reference"]
    fields = [("worker", "test"), ("score", "passed"), "taken_at"]
    readonly_fields = ["score", "taken_at"]

    @admin.display(description="answered as expected")
    def score(self, result) -> str:
        return f"{result.right} of {result.total}"
