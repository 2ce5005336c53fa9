"""A study's progress in the workspace, and what is done with the study as a whole: stopped, resumed, extended."""

from collections.abc import Callable
from datetime import timedelta

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from annotator import publishing, stopping, wages, watching
from annotator.admin.choosing import filters_in_words
from annotator.admin.hits import ExtendForm
from annotator.admin.telling import tell
from annotator.models import HITType

WIDTH, HEIGHT = 480, 120
TABLE_EVERY = 4
REFUSALS = (publishing.StudyClosed, stopping.NothingToStop, wages.PayTooLow)


def seen(request: HttpRequest, study: HITType) -> dict:
    """What the part of a study's page shows that tells how far it is."""
    watch = watching.watch(study)
    filled = watch.course[-1].filled if watch.course else 0
    return {
        "study": study,
        "watch": watch,
        "state": state_of(study, watch.places),
        "is_going": not watch.is_over,
        "line": _line(watch.course, filled),
        "area": f"0,{HEIGHT} {_line(watch.course, filled)} {WIDTH},{HEIGHT}",
        "filled": filled,
        "course_table": watch.course[TABLE_EVERY::TABLE_EVERY],
        "states": [(status.label, number) for status, number in watch.places.states.items() if number],
        "draws": [(draw, filters_in_words(draw.filters)) for draw in watching.newest_draws(study)],
        "may_steer": _may_steer(request) and not study.imported,
    }


def watch(request: HttpRequest, hit_type_id: int) -> HttpResponse:
    """The part of the page that renews itself while people work."""
    if not request.user.has_perm("annotator.view_hittype"):
        raise PermissionDenied
    study = get_object_or_404(HITType, pk=hit_type_id)
    return render(request, "admin/annotator/hittype/_watch.html", seen(request, study))


def stop(request: HttpRequest, hit_type_id: int) -> HttpResponse:
    """Asks first; POST stops the study."""
    study = _study_to_steer(request, hit_type_id)
    if request.method == "POST":
        said = "The study is stopped. Work under way may be finished, and is paid."
        return _back(request, study, lambda: stopping.stop(hit_type=study, by=request.user), said)
    if refusal := _why_not(study):
        messages.info(request, refusal)
        return _to(study)
    context = {
        **admin.site.each_context(request),
        "title": "Stop the study",
        "study": study,
        "watch": watching.watch(study),
    }
    return render(request, "admin/annotator/hittype/stop.html", context)


def go_on(request: HttpRequest, hit_type_id: int) -> HttpResponse:
    study = _study_to_steer(request, hit_type_id)
    said = "The study goes on: its HITs can be accepted again."
    return _back(request, study, lambda: stopping.go_on(hit_type=study, by=request.user), said)


def extend(request: HttpRequest, hit_type_id: int) -> HttpResponse:
    """Asks by how much; POST extends all HITs of the study."""
    study = _study_to_steer(request, hit_type_id)
    if refusal := _why_not(study):
        messages.info(request, refusal)
        return _to(study)
    form = ExtendForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        by = {"places": form.cleaned_data["places"], "lifetime": timedelta(days=form.cleaned_data["days"])}
        try:
            done = stopping.extend(hit_type=study, by=request.user, **by)
        except REFUSALS as refused:
            messages.error(request, str(refused))
        else:
            tell(request, "HITs extended", done)
            _note(request, study, f"Extended by {by['places']} places and {form.cleaned_data['days']} days.")
        return _to(study)
    context = {
        **admin.site.each_context(request),
        "title": "Extend the study",
        "study": study,
        "form": form,
        "places": watching.watch(study).places,
        "wage": wages.of_study(study),
    }
    return render(request, "admin/annotator/hittype/extend.html", context, status=422 if form.is_bound else 200)


def state_of(study: HITType, places: watching.Places) -> str:
    """What the study is at, in a word or two."""
    if study.imported:
        return "imported"
    if study.stopped_at:
        return "stopped"
    if study.is_test:
        return "test"
    if not places.hits:
        return "nothing published yet"
    if places.open:
        return "running"
    return "complete" if places.filled == places.wanted else "over"


def _line(course: list[watching.Point], most: int) -> str:
    """The course as the points of an SVG line."""
    if not course:
        return ""
    length = (course[-1].at - course[0].at).total_seconds()
    return " ".join(
        f"{WIDTH * (point.at - course[0].at).total_seconds() / length:.1f},"
        f"{HEIGHT - HEIGHT * point.filled / max(most, 1):.1f}"
        for point in course
    )


def _may_steer(request: HttpRequest) -> bool:
    return request.user.has_perm("annotator.change_hittype")


def _study_to_steer(request: HttpRequest, hit_type_id: int) -> HITType:
    if not _may_steer(request):
        raise PermissionDenied
    return get_object_or_404(HITType, pk=hit_type_id)


def _why_not(study: HITType) -> str:
    """Why the study can be neither stopped nor extended."""
    try:
        publishing.refuse_closed(study)
    except publishing.StudyClosed as refused:
        return str(refused)
    return ""


def _back(request: HttpRequest, study: HITType, act: Callable[[], int], said: str) -> HttpResponse:
    """Act, and back to the study's page, which says what was done or why it was not."""
    try:
        hits = act()
    except stopping.NothingToStop as nothing:
        messages.info(request, str(nothing))
    except REFUSALS as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, f"{said} HITs: {hits:,}.")
        _note(request, study, said)
    return _to(study)


def _note(request: HttpRequest, study: HITType, words: str) -> None:
    """Write it into the study's own history, too."""
    admin.site.get_model_admin(HITType).log_change(request, study, words)


def _to(study: HITType) -> HttpResponse:
    return redirect(reverse("admin:annotator_hittype_change", args=[study.pk]))
