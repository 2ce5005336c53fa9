"""Studies in the workspace, and what they pay an hour."""

from decimal import Decimal, InvalidOperation

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.forms import model_to_dict
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from annotator import paying, publishing, wages, watching
from annotator.admin import choosing
from annotator.admin import watching as progress
from annotator.admin.study_form import ON_WHICH_KNOWN_ANSWERS_REST, StudyForm
from annotator.models import HITType
from generation.admin import WorkspaceAdmin

REACHED, BELOW = "reached", "below"
NOTHING = "–"
DIGITS_OF_AN_ID = 18
NOT_NUMBERS = "What you confirmed cannot be read. Open the study's page again and press its button."


@admin.register(HITType)
class HITTypeAdmin(WorkspaceAdmin):
    form = StudyForm
    list_display = ["title", "state", "hits_made", "filled", "pays", "hourly_rate", "floor", "run"]
    list_select_related = ["run"]
    search_fields = ["title"]
    change_form_outer_before_template = "admin/annotator/hittype/study.html"
    fieldsets = [
        ("What people read", {"fields": ["title", "description", "keywords"]}),
        ("Pay", {"fields": ["reward", "wage_floor", "expected_time"]}),
        ("Times", {"fields": ["assignment_duration", "auto_approval_delay", "lifetime"]}),
        ("Care", {"fields": ["daily_cap", "break_after"]}),
        ("Who may work", {"fields": ["qualifications"]}),
        ("Known answers and tests", {"fields": ["known_answers", "check_every", "grants", "pass_mark"]}),
        ("Statements", {"fields": ["run", "max_assignments"]}),
    ]

    def formfield_for_manytomany(self, db_field, request, **kwargs):
        """Check boxes, which need no JavaScript."""
        return super().formfield_for_manytomany(
            db_field, request, **kwargs | {"widget": UnfoldAdminCheckboxSelectMultipleWidget}
        )

    def get_changelist_instance(self, request):
        """The list, its studies with their wages and their places: two queries for all of them."""
        changes = super().get_changelist_instance(request)
        studies = list(changes.result_list)
        measured = wages.of_studies(study for study in studies if not study.imported)
        places = watching.of_studies(studies)
        for hit_type in changes.result_list:
            hit_type.wage, hit_type.places = measured.get(hit_type.pk), places[hit_type.pk]
        return changes

    @display(
        description="state",
        label={"running": "success", "stopped": "warning", "imported": "info", "complete": "primary"},
    )
    def state(self, hit_type) -> str:
        return progress.state_of(hit_type, hit_type.places)

    @admin.display(description="HITs")
    def hits_made(self, hit_type) -> str:
        return f"{hit_type.places.hits + hit_type.places.checks:,}"

    @admin.display(description="places filled")
    def filled(self, hit_type) -> str:
        places = hit_type.places
        return f"{places.filled:,} of {places.wanted:,}" if places.wanted else NOTHING

    @admin.display(description="reward a HIT (USD)", ordering="reward")
    def pays(self, hit_type) -> str:
        return NOTHING if hit_type.imported else f"{hit_type.reward}"

    @admin.display(description="an hour (USD)")
    def hourly_rate(self, hit_type) -> str:
        wage = hit_type.wage
        if wage is None:
            return NOTHING
        return f"{wage.rate} (n = {wage.n:,})" if wage.measured else f"{wage.rate}, as expected"

    @display(description="wage floor", label={REACHED: "success", BELOW: "danger"})
    def floor(self, hit_type) -> str:
        if hit_type.wage is None:
            return NOTHING
        return REACHED if hit_type.wage.enough else BELOW

    def has_change_permission(self, request, obj=None) -> bool:
        """Nobody edits the terms of work that was done elsewhere."""
        return super().has_change_permission(request, obj) and not (obj and obj.imported)

    def get_fieldsets(self, request, obj=None):
        if obj and obj.imported:
            return [("Imported work", {"fields": ["title", "description", "max_assignments"]})]
        return super().get_fieldsets(request, obj)

    def get_changeform_initial_data(self, request) -> dict:
        """The terms of another study, for a new one like it: all but its run."""
        like = HITType.objects.filter(pk=like_of(request), imported=False).first()
        if like is None:
            return super().get_changeform_initial_data(request)
        names = [name for _, section in self.fieldsets for name in section["fields"] if name != "run"]
        return model_to_dict(like, names)

    def save_model(self, request, obj, form, change) -> None:
        """Of a study that is changed only what was changed, since it may be stopped or extended meanwhile."""
        if not change:
            return super().save_model(request, obj, form, change)
        columns = {field.name for field in obj._meta.concrete_fields}
        obj.save(update_fields=[name for name in form.changed_data if name in columns])

    def save_related(self, request, form, formsets, change) -> None:
        """Publish what the study offers, now that its known answers are saved, too."""
        super().save_related(request, form, formsets, change)
        hit_type = form.instance
        try:
            if ON_WHICH_KNOWN_ANSWERS_REST & set(form.changed_data):
                publishing.publish_known_answers(hit_type=hit_type, by=request.user)
            if hit_type.run_id:
                publishing.publish_run(hit_type=hit_type, by=request.user if "run" in form.changed_data else None)
            elif wages.is_below_floor(hit_type):
                messages.warning(request, f"Nothing can be published yet. {wages.too_low(wages.as_of_now(hit_type))}")
        except (wages.PayTooLow, publishing.StudyClosed) as refused:
            messages.warning(request, f"New statements are held back. {refused}")

    def get_urls(self):
        def own(name, view):
            address = f"<int:hit_type_id>/{name.replace('_', '-')}/"
            return path(address, self.admin_site.admin_view(view), name=f"annotator_{name}")

        return [
            own("top_up", require_POST(self.top_up)),
            own("choose", require_http_methods(["GET", "POST"])(choosing.choose)),
            own("watch", require_safe(progress.watch)),
            own("stop", require_http_methods(["GET", "POST"])(progress.stop)),
            own("go_on", require_POST(progress.go_on)),
            own("extend", require_http_methods(["GET", "POST"])(progress.extend)),
            *super().get_urls(),
        ]

    def changeform_view(self, request, object_id=None, form_url="", extra_context=None):
        hit_type = self.get_object(request, unquote(object_id)) if object_id else None
        extra_context = {**(extra_context or {}), **(self._around(request, hit_type) if hit_type else {})}
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _around(self, request: HttpRequest, hit_type: HITType) -> dict:
        """What stands before the form: how far the study is, and what it pays."""
        around = progress.seen(request, hit_type)
        return around if hit_type.imported else {**around, **self._pay_of(request, hit_type)}

    def _pay_of(self, request: HttpRequest, hit_type: HITType) -> dict:
        return {
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


def like_of(request: HttpRequest) -> int | None:
    """The id of the study that a new one is to be like."""
    like = request.GET.get("like", "")
    return int(like) if like.isdecimal() and len(like) <= DIGITS_OF_AN_ID else None
