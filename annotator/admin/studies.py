"""Studies in the workspace, and what they pay an hour."""

from datetime import timedelta
from decimal import Decimal, InvalidOperation

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from annotator import paying, publishing, wages
from annotator.models import HIT, SUBMITTED_STATUSES, Assignment, HITType, KnownAnswers

ON_WHICH_PUBLISHING_RESTS = {"reward", "wage_floor", "expected_time", "run", "known_answers"}
ON_WHICH_KNOWN_ANSWERS_REST = ON_WHICH_PUBLISHING_RESTS | {"lifetime", "grants"}
REACHED, BELOW = "reached", "below"
WHERE_TO_MAKE_THEM = {
    "qualifications": (
        'There are no qualifications yet, so everybody may work. <a href="{}" class="text-link">Make one</a> '
        "to leave the study to those who have it.",
        "admin:annotator_qualification_changelist",
    ),
    "known_answers": (
        'There are no statements with known answers yet. <a href="{}" class="text-link">Make some</a> '
        "for attention checks and tests.",
        "admin:annotator_knownanswers_changelist",
    ),
}
"""What is said instead of check boxes as long as there is nothing to tick, and where it leads."""
NOT_NUMBERS = "What you confirmed cannot be read. Open the study's page again and press its button."


class KnownAnswersField(forms.ModelMultipleChoiceField):
    """Known answers by the number and the note of their statement; its text may hurt."""

    def label_from_instance(self, known: KnownAnswers) -> str:
        return f"statement {known.generation_id}" + (f": {known.note}" if known.note else "")


class StudyForm(forms.ModelForm):
    """A study; one that pays too little is saved only if nothing of it would be published."""

    known_answers = KnownAnswersField(
        queryset=KnownAnswers.objects.order_by("-pk"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=HITType._meta.get_field("known_answers").help_text,
    )

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name, (said, page) in WHERE_TO_MAKE_THEM.items():
            if name in self.fields and not self.fields[name].queryset.exists():
                self.fields[name].help_text = format_html(said, reverse(page))

    def clean(self) -> dict:
        cleaned = super().clean()
        wage = self._wage(cleaned)
        publishes = cleaned.get("run") or cleaned.get("known_answers") or self._is_on_offer()
        if wage and publishes and not wage.enough and ON_WHICH_PUBLISHING_RESTS & set(self.changed_data):
            self.add_error("reward", wages.too_low(wage))
        return cleaned

    def _is_on_offer(self) -> bool:
        return bool(self.instance.pk) and self.instance.hits.assignable().exists()

    def _wage(self, cleaned: dict) -> wages.Wage | None:
        """What the study would pay; None while that cannot be told."""
        pay = {name: cleaned.get(name) for name in ("reward", "wage_floor", "expected_time")}
        if None in pay.values() or pay["expected_time"] <= timedelta(0):
            return None
        return wages.as_of_now(HITType(pk=self.instance.pk, **pay))


@admin.register(HITType)
class HITTypeAdmin(ModelAdmin):
    form = StudyForm
    list_display = ["title", "reward", "hourly_rate", "floor", "hits_made", "submitted", "run"]
    list_select_related = ["run"]
    search_fields = ["title"]
    change_form_outer_before_template = "admin/annotator/hittype/pay.html"
    fieldsets = [
        ("What people read", {"fields": ["title", "description", "keywords"]}),
        ("Pay", {"fields": ["reward", "wage_floor", "expected_time"]}),
        ("Times", {"fields": ["assignment_duration", "auto_approval_delay", "lifetime"]}),
        ("Care", {"fields": ["daily_cap", "break_after"]}),
        ("Who may work", {"fields": ["qualifications"]}),
        ("Known answers and tests", {"fields": ["known_answers", "check_every", "grants", "pass_mark"]}),
        ("Statements", {"fields": ["run", "max_assignments"]}),
    ]

    def get_queryset(self, request):
        hits = HIT.objects.filter(hit_type=OuterRef("pk")).order_by().values("hit_type")
        work = Assignment.objects.filter(hit__hit_type=OuterRef("pk"), status__in=SUBMITTED_STATUSES)
        work = work.order_by().values("hit__hit_type")
        return (
            super()
            .get_queryset(request)
            .annotate(
                hits_made=Coalesce(Subquery(hits.annotate(number=Count("pk")).values("number")), 0),
                submitted=Coalesce(Subquery(work.annotate(number=Count("pk")).values("number")), 0),
            )
        )

    def formfield_for_manytomany(self, db_field, request, **kwargs):
        """Check boxes, which need no JavaScript."""
        return super().formfield_for_manytomany(
            db_field, request, **kwargs | {"widget": UnfoldAdminCheckboxSelectMultipleWidget}
        )

    def get_changelist_instance(self, request):
        """The list, its studies with their wages: all measured in one query."""
        changes = super().get_changelist_instance(request)
        measured = wages.of_studies(changes.result_list)
        for hit_type in changes.result_list:
            hit_type.wage = measured[hit_type.pk]
        return changes

    @admin.display(description="an hour (USD)")
    def hourly_rate(self, hit_type) -> str:
        wage = hit_type.wage
        return f"{wage.rate} (n = {wage.n:,})" if wage.measured else f"{wage.rate}, as expected"

    @display(description="wage floor", label={REACHED: "success", BELOW: "danger"})
    def floor(self, hit_type) -> str:
        return REACHED if hit_type.wage.enough else BELOW

    @admin.display(description="HITs")
    def hits_made(self, hit_type) -> int:
        return hit_type.hits_made

    @admin.display(description="submitted")
    def submitted(self, hit_type) -> int:
        return hit_type.submitted

    def save_related(self, request, form, formsets, change) -> None:
        """Publish what the study offers, now that its known answers are saved, too."""
        super().save_related(request, form, formsets, change)
        hit_type = form.instance
        try:
            if ON_WHICH_KNOWN_ANSWERS_REST & set(form.changed_data):
                publishing.publish_known_answers(hit_type=hit_type)
            if hit_type.run_id:
                publishing.publish_run(hit_type=hit_type)
            elif wages.is_below_floor(hit_type):
                messages.warning(request, f"Nothing can be published yet. {wages.too_low(wages.as_of_now(hit_type))}")
        except wages.PayTooLow as refused:
            messages.warning(request, f"New statements are held back. {refused}")

    def get_urls(self):
        act = self.admin_site.admin_view(require_POST(self.top_up))
        return [path("<int:hit_type_id>/top-up/", act, name="annotator_top_up"), *super().get_urls()]

    def changeform_view(self, request, object_id=None, form_url="", extra_context=None):
        hit_type = self.get_object(request, unquote(object_id)) if object_id else None
        extra_context = {**(extra_context or {}), **(self._pay_of(request, hit_type) if hit_type else {})}
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _pay_of(self, request: HttpRequest, hit_type: HITType) -> dict:
        return {
            "study": hit_type,
            "wage": wages.as_of_now(hit_type),
            "top_up": paying.what_a_top_up_takes(hit_type),
            "publishes": hit_type.run_id is not None or hit_type.known_answers.exists(),
            "may_top_up": self._may_top_up(request),
        }

    def _may_top_up(self, request: HttpRequest) -> bool:
        return request.user.has_perms(["annotator.change_hittype", "annotator.add_payment"])

    def top_up(self, request: HttpRequest, hit_type_id: int) -> HttpResponse:
        """Raise the reward to the wage floor and pay the difference for past work, as it was confirmed."""
        if not self._may_top_up(request):
            raise PermissionDenied
        hit_type = get_object_or_404(HITType, pk=hit_type_id)
        try:
            agreed = Decimal(request.POST.get("agreed", ""))
            done = paying.top_up(hit_type=hit_type, by=request.user, agreed=agreed)
        except InvalidOperation:
            messages.error(request, NOT_NUMBERS)
        except paying.CannotTopUp as refused:
            messages.error(request, str(refused))
        else:
            self._say_what_was_done(request, hit_type, done)
        return redirect(reverse("admin:annotator_hittype_change", args=[hit_type.pk]))

    def _say_what_was_done(self, request: HttpRequest, hit_type: HITType, done: paying.TopUp) -> None:
        if not done.is_needed:
            messages.info(request, "Nothing was changed: the study needs no top-up.")
            return
        reward = (
            f"The reward is ${done.reward} from now on" if done.raises_reward else f"The reward stays ${done.reward}"
        )
        bonuses = "1 bonus" if done.bonuses == 1 else f"{done.bonuses:,} bonuses"
        said = f"{reward}; {bonuses}, ${done.total:,.2f} in all, went to the ledger for work done before."
        self.log_change(request, hit_type, said)
        messages.success(request, said)
