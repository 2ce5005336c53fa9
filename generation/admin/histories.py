"""Who added, edited, retired and brought back which demonstrations, and when: of one, and of a set."""

from django.contrib import admin
from django.db.models import F, QuerySet, Window
from django.db.models.functions import Lag
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path

from generation.admin.sets import check_may, is_number, page_of, set_of, texts_shown
from generation.models import Demonstration, Label, Origin

A_PAGE = 50


def urls() -> list:
    """The addresses below those of demonstrations."""
    view = admin.site.admin_view(set_history)
    return [path("sets/<slug:slug>/<str:label>/history/", view, name="generation_set_history")]


def set_history(request: HttpRequest, slug: str, label: str) -> HttpResponse:
    """What happened to a set, the newest first."""
    group, label = set_of(request, slug, label)
    records = Demonstration.history.filter(group=group, label=label)
    title = f"History of the {label} set of {group}"
    return _shown(request, records, title=title, group=group, label=label, is_of_set=True)


def demonstration_history(request: HttpRequest, object_id: str) -> HttpResponse:
    """What happened to a demonstration, the newest first."""
    check_may(request, "view_demonstration")
    if not is_number(object_id):
        raise Http404("There is no such demonstration.")
    demonstration = get_object_or_404(Demonstration.objects.select_related("group"), pk=object_id)
    records = Demonstration.history.filter(id=demonstration.pk)
    title = f"History of demonstration {demonstration.pk}"
    return _shown(request, records, title=title, group=demonstration.group, label=demonstration.label)


def _shown(request: HttpRequest, records: QuerySet, *, label: str, **shown) -> HttpResponse:
    page = page_of(request, "page", with_before(records), A_PAGE)
    context = {
        **admin.site.each_context(request),
        **shown,
        "label": label,
        "page": page,
        "rows": [{"record": record, "act": act_in_words(record)} for record in page],
        "is_toxic": label == Label.TOXIC,
        "texts_shown": texts_shown(request) or label != Label.TOXIC,
    }
    return render(request, "admin/generation/set/history.html", context)


def with_before(records: QuerySet) -> QuerySet:
    """Records of the history, the newest first, each with what the one before it said."""

    def before(field: str) -> Window:
        return Window(Lag(field), partition_by=F("id"), order_by="history_id")

    return (
        records.select_related("history_user")
        .annotate(text_before=before("text"), retired_before=before("retired_at"))
        .order_by("-history_id")
    )


def act_in_words(record) -> str:
    """What a record says was done."""
    if record.history_type == "+":
        return {
            Origin.WRITTEN: "added",
            Origin.IMPORTED: "imported",
            Origin.PROMOTED: "promoted from a response",
        }[Origin(record.origin)]
    if record.history_type == "-":
        return "deleted"
    if record.retired_at and not record.retired_before:
        return "retired"
    if record.retired_before and not record.retired_at:
        return "brought back"
    return "edited" if record.text != record.text_before else "stored again"
