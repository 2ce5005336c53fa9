"""The ledger and the payouts in the workspace: rows are added, and never changed."""

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST, require_safe

from annotator import paying, payout_files
from annotator.models import Payment, PaymentKind, Payout
from generation.admin import ReadOnlyAdmin, WorkspaceAdmin


class BonusForm(forms.ModelForm):
    """A bonus, refused if it is the same as one of a moment ago: a second click is no second bonus."""

    added_by = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.instance.kind = PaymentKind.BONUS
        self.instance.created_by = self.added_by
        self.fields["amount"].label = "Amount (USD)"
        self.fields["reason"].required = True
        self.fields["reason"].help_text = "The worker reads it."

    def clean(self) -> dict:
        cleaned = super().clean()
        bonus = {name: cleaned.get(name) for name in ("worker", "amount", "reason")}
        if None not in bonus.values():
            paying.check_bonus(**bonus, by=self.added_by)
        return cleaned


class InPayout(admin.SimpleListFilter):
    """Unpaid, in a payout, or in the payout whose number the address names."""

    title = "payout"
    parameter_name = "paid"

    def lookups(self, request, model_admin):
        return [("no", "unpaid"), ("yes", "in a payout")]

    def queryset(self, request, queryset):
        value = self.value() or ""
        if value.isdecimal():
            return queryset.filter(paid_out__payout=value)
        if value == "no":
            return queryset.unpaid()
        return queryset.exclude(paid_out=None) if value == "yes" else queryset


@admin.register(Payment)
class PaymentAdmin(WorkspaceAdmin):
    list_display = ["created_at", "worker", "kind", "amount", "study", "reason", "payout"]
    list_filter = ["kind", InPayout, "created_at"]
    list_select_related = ["worker", "assignment__hit__hit_type", "paid_out"]
    search_fields = ["worker__pseudonym", "worker__pay_reference"]
    search_help_text = "A worker's pseudonym or pay reference"
    autocomplete_fields = ["worker"]
    list_before_template = "admin/annotator/payment/totals.html"
    change_form_outer_before_template = "admin/annotator/payment/about.html"
    add_fields = ["worker", "amount", "reason"]
    fields = ["worker", "kind", "amount", "study", "assignment", "reason", "payout", "created_at", "created_by"]
    readonly_fields = ["study", "payout"]

    @admin.display(description="study")
    def study(self, payment) -> str:
        return payment.assignment.hit.hit_type.title if payment.assignment else "–"

    @admin.display(description="payout")
    def payout(self, payment) -> str:
        paid_out = getattr(payment, "paid_out", None)
        return f"payout {paid_out.payout_id}" if paid_out else "unpaid"

    def get_fields(self, request, obj=None):
        return self.fields if obj else self.add_fields

    def get_form(self, request, obj=None, **kwargs):
        if obj is None:
            kwargs["form"] = type("BonusForm", (BonusForm,), {"added_by": request.user})
        return super().get_form(request, obj, **kwargs)

    def has_change_permission(self, request, obj=None) -> bool:
        return False

    def has_delete_permission(self, request, obj=None) -> bool:
        return False

    def add_view(self, request, form_url="", extra_context=None):
        return super().add_view(request, form_url, {**(extra_context or {}), "title": "Add a bonus"})

    def save_model(self, request, obj, form, change) -> None:
        obj.pk = paying.pay_bonus(worker=obj.worker, amount=obj.amount, reason=obj.reason, by=request.user).pk

    def message_user(self, request, message, level=messages.INFO, *args, **kwargs) -> None:
        """Nothing: Django's own words are about rows in general."""

    def log_addition(self, request, obj, message):
        messages.success(request, f"A bonus of ${obj.amount} to {obj.worker} is in the ledger.")
        return super().log_addition(request, obj, message)

    def changelist_view(self, request, extra_context=None):
        response = super().changelist_view(request, extra_context)
        if isinstance(response, TemplateResponse):
            shown = response.context_data["cl"].queryset.order_by()
            response.context_data |= {"total": shown.total(), "unpaid": shown.unpaid().total()}
        return response


@admin.register(Payout)
class PayoutAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "created_at", "created_by", "people", "rows", "total", "file"]
    list_select_related = ["created_by"]
    fields = ["created_at", "created_by", "people", "rows", "total", "file", "ledger"]
    readonly_fields = ["people", "rows", "total", "file", "ledger"]
    list_before_template = "admin/annotator/payout/unpaid.html"

    def get_queryset(self, request):
        return (
            super()
            .get_queryset(request)
            .annotate(
                people=Count("payments__worker", distinct=True),
                rows=Count("payments"),
                total=Sum("payments__amount", default=0),
            )
        )

    @admin.display
    def people(self, payout) -> int:
        return payout.people

    @admin.display(description="rows of the ledger")
    def rows(self, payout) -> int:
        return payout.rows

    @admin.display(description="total (USD)")
    def total(self, payout) -> str:
        return f"{payout.total:,.2f}"

    @admin.display
    def file(self, payout) -> str:
        address = reverse("admin:annotator_pay_file", args=[payout.pk])
        return format_html('<a href="{}" class="text-link">{}</a>', address, file_name(payout))

    @admin.display(description="its rows")
    def ledger(self, payout) -> str:
        address = reverse("admin:annotator_payment_changelist")
        return format_html('<a href="{}?paid={}" class="text-link">in the ledger</a>', address, payout.pk)

    def get_urls(self):
        def own(route, view, name):
            return path(route, self.admin_site.admin_view(view), name=name)

        return [
            own("make/", require_POST(self.make), "annotator_make_payout"),
            own("<int:payout_id>/file/", require_safe(self.fetch), "annotator_pay_file"),
            *super().get_urls(),
        ]

    def changelist_view(self, request, extra_context=None):
        unpaid = Payment.objects.unpaid().aggregate(
            rows=Count("pk"), people=Count("worker", distinct=True), total=Sum("amount", default=0)
        )
        may_make = request.user.has_perm("annotator.add_payout")
        return super().changelist_view(request, {**(extra_context or {}), "unpaid": unpaid, "may_make": may_make})

    def make(self, request: HttpRequest) -> HttpResponse:
        """Put all that is unpaid into a payout."""
        if not request.user.has_perm("annotator.add_payout"):
            raise PermissionDenied
        try:
            payout = paying.make_payout(by=request.user)
        except paying.NothingToPay as refused:
            messages.info(request, str(refused))
        else:
            self.log_addition(request, payout, "Made of everything unpaid.")
            messages.success(
                request, f"This is payout {payout.pk}. Fetch {file_name(payout)} and hand it to whoever pays."
            )
            return redirect(reverse("admin:annotator_payout_change", args=[payout.pk]))
        return redirect(reverse("admin:annotator_payout_changelist"))

    def fetch(self, request: HttpRequest, payout_id: int) -> StreamingHttpResponse:
        """Stream the payout's CSV."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        payout = get_object_or_404(Payout, pk=payout_id)
        return StreamingHttpResponse(
            payout_files.csv_lines(payout),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{file_name(payout)}"'},
        )


def file_name(payout: Payout) -> str:
    return f"payout-{payout.pk}.csv"
