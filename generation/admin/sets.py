"""The pages on which sets of demonstrations are grown by hand (paper, 3.1.2): the overview, and a set."""

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse

from generation import demonstrating, sets, trials
from generation.admin.set_forms import AddForm, DrawForm
from generation.demonstrating import (
    LONGEST_REASON,
    LONGEST_TEXT,
    AlreadyInSet,
    MayNotFillToxicSet,
    NotADemonstration,
    ReasonMissing,
    may_fill,
)
from generation.models import Demonstration, Label, TargetGroup, Trial
from generation.prompting import NotEnoughDemonstrations
from generation.runs import check_models

A_PAGE = 100
TRIALS_A_PAGE = 10
SORTS = {
    "text": ("Demonstration", F("text").asc()),
    "added": ("Added", F("created_at").asc()),
    "tried": ("Trials", F("tried").asc()),
    "promoted": ("Promoted", F("promoted_share").asc(nulls_last=True)),
    "naming": ("Name the group", F("naming_share").asc(nulls_last=True)),
}
REFUSALS = (NotADemonstration, AlreadyInSet, ReasonMissing, NotEnoughDemonstrations)


def urls() -> list:
    """The addresses below those of demonstrations."""
    view = admin.site.admin_view
    return [
        path("sets/", view(overview), name="generation_sets"),
        path("sets/<slug:slug>/<str:label>/", view(set_page), name="generation_set"),
    ]


def address_of(group: TargetGroup, label: str) -> str:
    return reverse("admin:generation_set", args=[group.slug, label])


def set_of(request: HttpRequest, slug: str, label: str) -> tuple[TargetGroup, str]:
    """The set that an address names, for those who may see it."""
    check_may(request, "view_demonstration")
    if label not in Label.values:
        raise Http404(f"There are no {label} sets.")
    return get_object_or_404(TargetGroup, slug=slug), label


def check_may(request: HttpRequest, *permissions: str) -> None:
    if not request.user.has_perms([f"generation.{permission}" for permission in permissions]):
        raise PermissionDenied


def is_number(pk: str) -> bool:
    """Whether a row can have it as its number."""
    return pk.isdecimal() and len(pk) <= 18


def texts_shown(request: HttpRequest) -> bool:
    return request.GET.get("texts") == "shown"


def page_of(request: HttpRequest, name: str, rows: QuerySet, size: int) -> Page:
    """The page of a list that ``name`` in the address says, which knows the queries of its neighbours."""
    page = Paginator(rows, size).get_page(request.GET.get(name))
    for neighbour, number in (("previous_query", page.number - 1), ("next_query", page.number + 1)):
        query = request.GET.copy()
        query[name] = number
        setattr(page, neighbour, query.urlencode())
    return page


def overview(request: HttpRequest) -> HttpResponse:
    """All sets, a row a group and a column a label."""
    check_may(request, "view_demonstration")
    context = {
        **admin.site.each_context(request),
        "title": "Demonstrations",
        "rows": sets.summaries(TargetGroup.objects.all()),
        "labels": Label.labels,
    }
    return render(request, "admin/generation/set/overview.html", context)


def set_page(request: HttpRequest, slug: str, label: str) -> HttpResponse:
    """A set; POST draws a prompt, or changes the set, and says what is wrong on the same page."""
    group, label = set_of(request, slug, label)
    if request.method != "POST":
        return _shown(request, group, label)
    act = ACTS.get(request.POST.get("act", ""))
    if act is None:
        return _shown(request, group, label, fault="Choose what is to be done.")
    try:
        return act(request, group, label)
    except MayNotFillToxicSet as refused:
        raise PermissionDenied(str(refused)) from refused
    except REFUSALS as fault:
        at = request.POST.get("demonstration", "")
        return _shown(request, group, label, fault=str(fault), fault_at=at, typed=request.POST)


def _draw(request: HttpRequest, group: TargetGroup, label: str) -> HttpResponse:
    check_may(request, "add_trial")
    form = DrawForm(request.POST)
    if not form.is_valid():
        return _shown(request, group, label, draw_form=form)
    try:
        check_models("topk", language_model=form.order["language_model"], classifier="", precision="float32")
    except ValueError as fault:
        form.add_error("language_model", str(fault))
        return _shown(request, group, label, draw_form=form)
    trial = trials.ask_once(group=group, label=label, by=request.user, **form.order)
    return redirect("admin:generation_trial", trial.pk)


def _add(request: HttpRequest, group: TargetGroup, label: str) -> HttpResponse:
    check_may(request, "add_demonstration")
    demonstrating.check_may_fill(label=label, by=request.user)
    form = AddForm(request.POST)
    if not form.is_valid():
        return _shown(request, group, label, add_form=form)
    added = demonstrating.add(group=group, label=label, texts=form.cleaned_data["texts"], by=request.user)
    if added.new:
        messages.success(request, f"Demonstrations added: {len(added.new)}.")
    if added.known:
        messages.info(request, f"In the set already, in use or retired, and left as they are: {len(added.known)}.")
    return _back(request)


def _edit(request: HttpRequest, group: TargetGroup, label: str) -> HttpResponse:
    member = _member(request, group, label)
    demonstrating.edit(demonstration_id=member.pk, text=request.POST.get("text", ""), by=request.user)
    messages.success(request, "The demonstration was edited. Prompts drawn before keep its old text.")
    return _back(request, member)


def _retire(request: HttpRequest, group: TargetGroup, label: str) -> HttpResponse:
    member = _member(request, group, label)
    if demonstrating.retire(ids=[member.pk], reason=request.POST.get("reason", ""), by=request.user):
        messages.success(request, "The demonstration was retired: no more prompts are drawn from it.")
    return _back(request, member)


def _bring_back(request: HttpRequest, group: TargetGroup, label: str) -> HttpResponse:
    member = _member(request, group, label)
    if demonstrating.bring_back(ids=[member.pk], by=request.user):
        messages.success(request, "The demonstration is in use again.")
    return _back(request, member)


ACTS = {"draw": _draw, "add": _add, "edit": _edit, "retire": _retire, "bring_back": _bring_back}


def _member(request: HttpRequest, group: TargetGroup, label: str) -> Demonstration:
    check_may(request, "change_demonstration")
    pk = request.POST.get("demonstration", "")
    if not is_number(pk):
        raise Http404("There is no such demonstration.")
    return get_object_or_404(Demonstration, pk=pk, group=group, label=label)


def _back(request: HttpRequest, member: Demonstration | None = None) -> HttpResponse:
    return redirect(request.get_full_path() + (f"#d{member.pk}" if member else ""))


def _shown(request: HttpRequest, group: TargetGroup, label: str, **wrong) -> HttpResponse:
    """The page, with what is wrong if something is."""
    user = request.user
    sort = request.GET.get("sort", "text")
    members = Demonstration.objects.filter(group=group, label=label).with_yield()
    of_set = Trial.objects.filter(group=group, label=label).order_by("-pk").with_counts().select_related("requested_by")
    context = {
        **admin.site.each_context(request),
        "title": f"{group}: {label} set",
        "group": group,
        "label": label,
        "other_label": next(other for other in Label.values if other != label),
        "set": sets.summary(group, label),
        "page": page_of(request, "page", _sorted(members.filter(retired_at=None), sort), A_PAGE),
        "columns": _columns(request, sort),
        "retired": page_of(
            request, "retired", members.exclude(retired_at=None).with_who().order_by("-retired_at", "pk"), A_PAGE
        ),
        "trials": page_of(request, "trials", of_set, TRIALS_A_PAGE),
        "is_toxic": label == Label.TOXIC,
        "texts_shown": texts_shown(request) or label != Label.TOXIC,
        "may_fill": user.has_perm("generation.add_demonstration") and may_fill(label=label, by=user),
        "may_edit": user.has_perm("generation.change_demonstration") and may_fill(label=label, by=user),
        "may_retire": user.has_perm("generation.change_demonstration"),
        "may_draw": user.has_perm("generation.add_trial"),
        "draw_form": DrawForm(),
        "add_form": AddForm(),
        "longest_text": LONGEST_TEXT,
        "longest_reason": LONGEST_REASON,
        **wrong,
    }
    return render(request, "admin/generation/set/set.html", context, status=422 if wrong else 200)


def _sorted(members, sort: str):
    """In the order that the address asks for; a minus before its name turns it round."""
    name = sort.removeprefix("-")
    expression = SORTS.get(name, SORTS["text"])[1].copy()
    if sort.startswith("-"):
        expression.reverse_ordering()
        if name in ("promoted", "naming"):
            expression.nulls_last, expression.nulls_first = True, None
    return members.with_who().order_by(expression, "text")


def _columns(request: HttpRequest, sort: str) -> list[dict]:
    """The headings by which the table can be sorted: figures begin with the highest."""
    name, is_descending = sort.removeprefix("-"), sort.startswith("-")
    columns = []
    for key, (heading, _) in SORTS.items():
        is_current = key == name
        turned = f"-{key}" if (is_current and not is_descending) or (not is_current and key != "text") else key
        query = request.GET.copy()
        query["sort"] = turned
        query.pop("page", None)
        columns.append(
            {
                "key": key,
                "heading": heading,
                "query": query.urlencode(),
                "order": ("descending" if is_descending else "ascending") if is_current else "",
            }
        )
    return columns
