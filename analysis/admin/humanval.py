"""The workspace's pages of HUMANVAL sets: ask for one, watch it being drawn, publish, freeze and prove it."""

from collections.abc import Callable

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from analysis.exports.filtering import OF_STATEMENTS, WrongFilter
from analysis.humanval import comparing, freezing, proving, sets
from analysis.humanval.files import FILES
from analysis.humanval.forms import PublishForm, SetForm
from analysis.humanval.page import about, preview
from analysis.models import HumanvalSet, HumanvalState, RemovedFromTraining
from annotator import publishing
from generation.admin.lists import WorkspaceAdmin
from generation.auditing import note

MAY_CHANGE = ("analysis.change_humanvalset",)
MAY_PUBLISH = (*MAY_CHANGE, "annotator.add_hittype", "annotator.change_hittype")
MAY_READ = ("analysis.view_humanvalset", "generation.view_generation")
MAY_READ_LABELS = (*MAY_READ, "annotator.view_annotation")


@admin.register(HumanvalSet)
class HumanvalSetAdmin(WorkspaceAdmin):
    list_display = ["__str__", "state", "size", "threshold", "removed_for_it", "study", "created_by", "frozen_at"]
    list_filter = ["state"]
    list_select_related = ["created_by", "hit_type"]

    @admin.display(description="removed from training")
    def removed_for_it(self, humanval_set: HumanvalSet) -> str:
        return f"{humanval_set.removed_now:,}" if humanval_set.report else "–"

    @admin.display(description="study")
    def study(self, humanval_set: HumanvalSet) -> str:
        return humanval_set.hit_type.title if humanval_set.hit_type else "–"

    def get_queryset(self, request):
        its_own = RemovedFromTraining.objects.filter(humanval_set=OuterRef("pk")).order_by()
        counted = its_own.values("humanval_set").annotate(number=Count("pk")).values("number")
        return super().get_queryset(request).annotate(removed_now=Coalesce(Subquery(counted), 0))

    def has_change_permission(self, request, obj=None) -> bool:
        """Nothing is edited; what is done to a set is done by the acts below."""
        return False

    def has_delete_permission(self, request, obj=None) -> bool:
        return False

    def get_urls(self):
        def own(name: str, view: Callable, ending: str = "/"):
            address = f"<int:set_id>/{name.replace('_', '-')}{ending}"
            return path(address, self.admin_site.admin_view(view), name=f"analysis_humanval_{name}")

        return [
            own("progress", require_safe(self.progress)),
            own("give_up", require_POST(self.give_up)),
            own("publish", require_POST(self.publish)),
            own("freeze", require_POST(self.freeze)),
            own("new_version", require_POST(self.new_version)),
            own("compare", require_POST(self.compare)),
            own("prove", require_POST(self.prove)),
            own("report", require_safe(self.report), ".json"),
            own("statements", require_safe(self.statements), ".csv"),
            own("removed", require_safe(self.removed), ".csv"),
            *super().get_urls(),
        ]

    # --- Asking for one

    def add_view(self, request: HttpRequest, form_url="", extra_context=None) -> HttpResponse:
        """GET asks, and previews what the address asks for; POST has the set drawn."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        given = request.POST if request.method == "POST" else request.GET
        if request.method != "POST" and (address := without_empty_filters(request.GET)) != request.GET:
            return redirect(f"{request.path}?{address.urlencode()}")
        form = SetForm(given if "size" in given or request.method == "POST" else None)
        shares = form.shares() if form.is_bound else None
        if request.method == "POST" and shares is not None:
            try:
                wanted = sets.ask_for_set(filters=form.given_filters(), by=request.user, **form.asked())
            except (sets.CannotDraw, WrongFilter) as refused:  # deleted since the form was checked
                form.add_error(None, str(refused))
            else:
                return redirect("admin:analysis_humanvalset_change", wanted.pk)
        shown = preview(shares) if shares else None
        context = {**self._context(request), "title": "Draw a HUMANVAL set", "form": form, "preview": shown}
        status = 422 if form.is_bound and form.errors else 200
        return render(request, "admin/analysis/humanvalset/add.html", context, status=status)

    # --- One set

    def change_view(self, request: HttpRequest, object_id, form_url="", extra_context=None) -> HttpResponse:
        """How far the set is, and what can be done next."""
        if request.method == "POST":
            raise PermissionDenied  # nothing about a set is edited
        return self._page(request, self._visible(request, object_id))

    def progress(self, request: HttpRequest, set_id: int) -> HttpResponse:
        """The part of the page that changes while it is drawn or proved."""
        context = self._about(request, self._visible(request, set_id))
        return render(request, "admin/analysis/humanvalset/_set.html", context)

    def give_up(self, request: HttpRequest, set_id: int) -> HttpResponse:
        humanval_set = self._to_change(request, set_id)
        if sets.give_up(humanval_set=humanval_set, by=request.user):
            messages.success(request, f"{humanval_set} is not drawn any more.")
        else:
            messages.info(request, f"{humanval_set} had been drawn before.")
        return self._back(humanval_set)

    def publish(self, request: HttpRequest, set_id: int) -> HttpResponse:
        humanval_set = self._to_change(request, set_id, MAY_PUBLISH)
        form = PublishForm(request.POST)
        if not form.is_valid():
            return self._page(request, humanval_set, publish_form=form, status=422)
        try:
            made = freezing.publish(humanval_set=humanval_set, by=request.user, **form.terms())
        except ValidationError as refused:
            form.add_error(None, refused.messages)
        except (freezing.WrongState, publishing.StudyClosed) as refused:
            messages.error(request, str(refused))
            return self._back(humanval_set)
        else:
            messages.success(request, f"{made:,} HITs are published in the study “{humanval_set.hit_type}”.")
            return self._back(humanval_set)
        humanval_set.refresh_from_db()
        return self._page(request, humanval_set, publish_form=form, status=422)

    def freeze(self, request: HttpRequest, set_id: int) -> HttpResponse:
        humanval_set = self._to_change(request, set_id)
        return self._freeze(request, humanval_set, freezing.freeze)

    def new_version(self, request: HttpRequest, set_id: int) -> HttpResponse:
        humanval_set = self._to_change(request, set_id)
        return self._freeze(request, humanval_set, freezing.new_version)

    def _freeze(self, request: HttpRequest, humanval_set: HumanvalSet, act: Callable) -> HttpResponse:
        try:
            frozen = act(humanval_set=humanval_set, by=request.user)
        except freezing.WrongState as refused:
            messages.error(request, str(refused))
            return self._back(humanval_set)
        messages.success(request, f"{frozen} is frozen, with its labels and a checksum.")
        return self._back(frozen)

    def compare(self, request: HttpRequest, set_id: int) -> HttpResponse:
        humanval_set = self._to_change(request, set_id)
        try:
            reading = comparing.ask_to_compare(humanval_set=humanval_set, by=request.user)
        except freezing.WrongState as refused:
            messages.error(request, str(refused))
        else:
            first = f" Their embeddings come first: {reading}, {reading.statements:,} statements." if reading else ""
            messages.info(request, f"The newer statements are compared with the set.{first}")
        return self._back(humanval_set)

    def prove(self, request: HttpRequest, set_id: int) -> HttpResponse:
        humanval_set = self._to_change(request, set_id)
        try:
            proving.ask_for_proof(humanval_set=humanval_set, by=request.user)
        except freezing.WrongState as refused:
            messages.error(request, str(refused))
        return self._back(humanval_set)

    # --- Files

    def report(self, request: HttpRequest, set_id: int) -> JsonResponse:
        """What the drawing found, what was asked for, and the agreement."""
        humanval_set = self._visible(request, set_id)
        told = ("version", "size", "threshold", "candidates", "seed", "filters", "checksum", "report", "agreement")
        found = {name: getattr(humanval_set, name) for name in told}
        headers = {"Content-Disposition": f'attachment; filename="humanval-{humanval_set.version}.json"'}
        return JsonResponse(found, json_dumps_params={"indent": 2, "ensure_ascii": False}, headers=headers)

    def statements(self, request: HttpRequest, set_id: int) -> StreamingHttpResponse:
        return self._file(request, set_id, "statements")

    def removed(self, request: HttpRequest, set_id: int) -> StreamingHttpResponse:
        return self._file(request, set_id, "removed")

    def _file(self, request: HttpRequest, set_id: int, what: str) -> StreamingHttpResponse:
        humanval_set = self._visible(request, set_id)
        if not request.user.has_perms(for_set(humanval_set) if what == "statements" else MAY_READ):
            raise PermissionDenied
        name = f"humanval-{humanval_set.version}-{what}.csv"
        note(f"humanval {what} exported", by=request.user, subject=str(humanval_set))
        return StreamingHttpResponse(
            FILES[what](humanval_set),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    # --- What they share

    def _visible(self, request: HttpRequest, set_id) -> HumanvalSet:
        if not self.has_view_permission(request):
            raise PermissionDenied
        sets = HumanvalSet.objects.select_related("created_by", "hit_type", "reader", "reading", "based_on")
        return get_object_or_404(sets, pk=set_id if str(set_id).isdecimal() else 0)

    def _to_change(self, request: HttpRequest, set_id: int, permissions=MAY_CHANGE) -> HumanvalSet:
        humanval_set = self._visible(request, set_id)
        if not request.user.has_perms(permissions):
            raise PermissionDenied
        return humanval_set

    def _page(self, request: HttpRequest, humanval_set: HumanvalSet, *, publish_form=None, status=200) -> HttpResponse:
        context = {
            **self._context(request),
            "title": str(humanval_set),
            **self._about(request, humanval_set, publish_form),
        }
        return render(request, "admin/analysis/humanvalset/set.html", context, status=status)

    def _about(self, request: HttpRequest, humanval_set: HumanvalSet, publish_form: PublishForm | None = None) -> dict:
        user = request.user
        return {
            **about(humanval_set),
            "publish_form": publish_form or PublishForm(),
            "may_change": user.has_perms(MAY_CHANGE),
            "may_publish": user.has_perms(MAY_PUBLISH),
            "may_read": user.has_perms(MAY_READ),
            "may_read_set": user.has_perms(for_set(humanval_set)),
            "may_read_labels": user.has_perms(MAY_READ_LABELS),
        }

    def _context(self, request: HttpRequest) -> dict:
        return {**self.admin_site.each_context(request), "opts": self.opts}

    def _back(self, humanval_set: HumanvalSet) -> HttpResponse:
        return redirect(reverse("admin:analysis_humanvalset_change", args=[humanval_set.pk]))


def for_set(humanval_set: HumanvalSet) -> tuple[str, ...]:
    """What it takes to read the set: frozen, it has labels."""
    return MAY_READ_LABELS if humanval_set.state == HumanvalState.FROZEN else MAY_READ


def without_empty_filters(asked: QueryDict) -> QueryDict:
    """An address of the form without the filters that were left empty."""
    kept = asked.copy()
    for name in OF_STATEMENTS:
        if name in asked and not any(asked.getlist(name)):
            del kept[name]
    return kept
