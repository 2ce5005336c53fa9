"""Workers: what they did, what they are qualified for, the links they come in by, and whether they are blocked."""

from django import forms
from django.contrib import admin, messages
from django.db.models import Count, DecimalField, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone
from unfold.forms import ActionForm
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldBooleanSwitchWidget

from annotator import qualifying
from annotator.admin.links import InvitationInline
from annotator.admin.qualifications import GrantsByHand, GrantToWorkerInline, TestResultInline
from annotator.models import Assignment, Payment, Qualification, Worker
from generation.admin import WorkspaceAdmin

(NO_REASON,) = (
    constraint.violation_error_message
    for constraint in Worker._meta.constraints
    if constraint.name == "worker_blocked_with_a_reason"
)


class WorkerActionForm(ActionForm):
    """What to do with the chosen workers, and which qualification it is about."""

    qualification = forms.ModelChoiceField(
        Qualification.objects.order_by("name"),
        label="",
        required=False,
        empty_label="which qualification?",
        widget=UnfoldAdminSelectWidget({"aria-label": "Which qualification to grant or take away"}),
    )


class WorkerForm(forms.ModelForm):
    blocked = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Gets no more statements. What they have sent, and what they send of an open one, is kept and paid.",
    )

    class Meta:
        widgets = {"blocked_reason": UnfoldAdminTextareaWidget({"rows": 3})}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.initial["blocked"] = self.instance.blocked_at is not None

    def clean(self) -> dict:
        cleaned = super().clean()
        if cleaned["blocked"] and not cleaned.get("blocked_reason", "").strip():
            self.add_error("blocked_reason", NO_REASON)
        reference = cleaned.get("pay_reference")
        namesakes = Worker.objects.filter(panel=self.instance.panel_id, pay_reference=reference)
        if reference and self.instance.panel_id and namesakes.exclude(pk=self.instance.pk).exists():
            self.add_error("pay_reference", "Another worker of the same panel has this pay reference.")
        since = self.instance.blocked_at or timezone.now()
        self.instance.blocked_at = since if cleaned["blocked"] else None
        return cleaned


class BlockedFilter(admin.SimpleListFilter):
    title = "blocked"
    parameter_name = "blocked"

    def lookups(self, request, model_admin) -> list[tuple[str, str]]:
        return [("yes", "Yes"), ("no", "No")]

    def queryset(self, request, queryset):
        return queryset.filter(blocked_at__isnull=self.value() == "no") if self.value() else queryset


@admin.register(Worker)
class WorkerAdmin(GrantsByHand, WorkspaceAdmin):
    form = WorkerForm
    list_display = ["pseudonym", "panel", "pay_reference", "qualified_for", "submitted", "earned", "blocked_at"]
    list_filter = [BlockedFilter, "panel", "qualifications", "created_at"]
    list_select_related = ["panel"]
    search_fields = ["pseudonym", "pay_reference"]
    search_help_text = "By pseudonym or pay reference"
    fieldsets = [
        (None, {"fields": [("pseudonym", "created_at"), ("panel", "pay_reference")]}),
        ("Work", {"fields": [("submitted", "waiting", "rejected"), "earned"]}),
        ("Block", {"fields": ["blocked", "blocked_reason", "blocked_at"]}),
    ]
    readonly_fields = [
        "pseudonym", "created_at", "panel", "submitted", "waiting", "rejected", "earned", "blocked_at"
    ]  # fmt: skip
    inlines = [GrantToWorkerInline, TestResultInline, InvitationInline]
    action_form = WorkerActionForm
    actions = ["grant", "take_away", "unblock"]

    def get_queryset(self, request):
        return super().get_queryset(request).annotate(**totals_of_workers()).prefetch_related("qualifications")

    @admin.display(description="qualified for")
    def qualified_for(self, worker) -> str:
        return ", ".join(sorted(str(qualification) for qualification in worker.qualifications.all())) or "–"

    @admin.display(ordering="submitted")
    def submitted(self, worker) -> int:
        return worker.submitted

    @admin.display(description="waiting for review")
    def waiting(self, worker) -> int:
        return worker.assignments.filter(status="submitted").count()

    @admin.display
    def rejected(self, worker) -> int:
        return worker.assignments.filter(status="rejected").count()

    @admin.display(ordering="earned", description="owed or paid")
    def earned(self, worker) -> str:
        return f"${worker.earned:.2f}"

    def has_grant_permission(self, request) -> bool:
        return request.user.has_perm("annotator.add_grant")

    def has_take_away_permission(self, request) -> bool:
        return request.user.has_perm("annotator.delete_grant")

    @admin.action(description="Grant the qualification chosen beside", permissions=["grant"])
    def grant(self, request, queryset) -> None:
        if qualification := self._chosen_qualification(request):
            granted = qualifying.grant(qualification=qualification, workers=queryset, by=request.user)
            messages.success(request, f"“{qualification}” granted to workers who did not have it: {granted}.")

    @admin.action(description="Take the qualification chosen beside away", permissions=["take_away"])
    def take_away(self, request, queryset) -> None:
        if qualification := self._chosen_qualification(request):
            taken = qualifying.take_away(qualification=qualification, workers=queryset, by=request.user)
            messages.success(request, f"“{qualification}” taken away from workers who had it: {taken}.")

    @admin.action(description="Unblock", permissions=["change"])
    def unblock(self, request, queryset) -> None:
        unblocked = queryset.filter(blocked_at__isnull=False).update(blocked_at=None)
        messages.success(request, f"Workers unblocked: {unblocked}.")

    def _chosen_qualification(self, request) -> Qualification | None:
        chosen = Qualification.objects.filter(pk=request.POST["qualification"] or None).first()
        if chosen is None:
            messages.warning(request, "Nothing was changed: choose the qualification beside the action, too.")
        return chosen

    def has_add_permission(self, request) -> bool:
        """Workers are made with their invitation: one without a link could not come in."""
        return False

    def has_delete_permission(self, request, obj=None) -> bool:
        return False


def totals_of_workers() -> dict:
    """What a worker did and earned, each counted by itself: joined together they would multiply."""
    own = Assignment.objects.filter(worker=OuterRef("pk"), submitted_at__isnull=False).order_by().values("worker")
    ledger = Payment.objects.filter(worker=OuterRef("pk")).order_by().values("worker")
    return {
        "submitted": Coalesce(Subquery(own.annotate(number=Count("pk")).values("number")), 0),
        "earned": Coalesce(
            Subquery(ledger.annotate(total=Sum("amount")).values("total")), 0, output_field=DecimalField()
        ),
    }
