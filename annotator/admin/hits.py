"""HITs in the workspace: their states, and moving them between these."""

from datetime import timedelta

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from annotator import moving
from annotator.admin.telling import tell
from annotator.models import HIT, UNLIMITED, HITStatus
from generation.admin import ReadOnlyAdmin, blurred

MOST_PLACES, MOST_DAYS = 100, 3650


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request, model_admin) -> list[tuple[str, str]]:
        return HITStatus.choices

    def queryset(self, request, queryset):
        return queryset.in_state(HITStatus(self.value())) if self.value() in HITStatus.values else queryset


class ExtendForm(forms.Form):
    """By how much HITs are extended."""

    places = forms.IntegerField(
        min_value=0,
        max_value=MOST_PLACES,
        initial=0,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="More annotators for each HIT.",
    )
    days = forms.IntegerField(
        min_value=0,
        max_value=MOST_DAYS,
        initial=0,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Added to the lifetime; a HIT that has expired lives for so many days from now.",
    )

    def clean(self) -> dict:
        if self.is_valid() and not (self.cleaned_data["places"] or self.cleaned_data["days"]):
            self.add_error(None, "Say by how many places or days the HITs are extended: at least one of either.")
        return self.cleaned_data


@admin.register(HIT)
class HITAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "statement", "hit_type", "state", "held", "expires_at"]
    list_filter = [StateFilter, "hit_type", "generation__group", "is_check"]
    list_select_related = ["generation", "hit_type"]
    fields = [
        "statement", "hit_type", "state", "held", "is_check", "created_at", "expires_at", "reviewing_at", "disposed_at",
    ]  # fmt: skip
    readonly_fields = ["statement", "state", "held"]
    actions = ["set_reviewing", "set_reviewable", "dispose", "expire_now", "extend"]

    def get_fields(self, request, obj=None):
        """What known answers mean is said of the HITs that have them."""
        return [field for field in self.fields if field != "is_check" or (obj and obj.is_check)]

    @admin.display
    def statement(self, hit):
        return blurred(hit.generation.text)

    @admin.display
    def state(self, hit) -> str:
        return hit.status.label

    @admin.display(description="places held", ordering="held_places")
    def held(self, hit) -> str:
        places = "any number" if hit.max_assignments == UNLIMITED else f"{hit.max_assignments:,}"
        return f"{hit.held_places:,} of {places}"

    def has_steer_permission(self, request: HttpRequest) -> bool:
        """Who may move HITs between their states, which are not edited by hand."""
        return request.user.has_perm("annotator.change_hit")

    @admin.action(description="Set reviewing: you are looking at their answers", permissions=["steer"])
    def set_reviewing(self, request: HttpRequest, queryset: QuerySet[HIT]) -> None:
        tell(request, "HITs under review now", moving.set_reviewing(ids=ids_of(queryset)))

    @admin.action(description="Set back to reviewable", permissions=["steer"])
    def set_reviewable(self, request: HttpRequest, queryset: QuerySet[HIT]) -> None:
        tell(request, "HITs set back to reviewable", moving.set_reviewable(ids=ids_of(queryset)))

    @admin.action(description="Dispose: all is decided, close them for good", permissions=["steer"])
    def dispose(self, request: HttpRequest, queryset: QuerySet[HIT]) -> None:
        tell(request, "HITs disposed of", moving.dispose(ids=ids_of(queryset)))

    @admin.action(description="Expire now: nobody can accept them any more", permissions=["steer"])
    def expire_now(self, request: HttpRequest, queryset: QuerySet[HIT]) -> None:
        tell(request, "HITs expired", moving.expire_now(ids=ids_of(queryset)))

    @admin.action(description="Extend by places or days …", permissions=["steer"])
    def extend(self, request: HttpRequest, queryset: QuerySet[HIT]) -> HttpResponse | None:
        """Asks by how much first."""
        form = ExtendForm(request.POST if "extend" in request.POST else None)
        if form.is_valid():
            lifetime = timedelta(days=form.cleaned_data["days"])
            done = moving.extend(ids=ids_of(queryset), places=form.cleaned_data["places"], lifetime=lifetime)
            tell(request, "HITs extended", done)
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": "Extend HITs",
            "form": form,
            "number": queryset.count(),
            "selected": request.POST.getlist("_selected_action"),
            "select_across": request.POST.get("select_across", "0"),
        }
        return render(request, "admin/annotator/hit/extend.html", context, status=422 if form.is_bound else 200)


def ids_of(hits: QuerySet[HIT]) -> list[int]:
    return list(hits.order_by().values_list("pk", flat=True))
