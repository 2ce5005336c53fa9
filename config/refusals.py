"""What the workspace answers where there is nothing, or nothing for this log-in: in its own look, with the way back."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import defaults

from annotator import views as pages

NOTHING_HERE = "There is nothing at this address. It may have been deleted, or the link is incomplete."
NOT_FOR_YOU = "You are logged in, but may not do this. Ask an admin for the permission, or log in as somebody else."


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not in_workspace(request):
        return pages.not_found(request, exception)
    return _refuse(request, "Nothing here", NOTHING_HERE, status=404)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not in_workspace(request):
        return defaults.permission_denied(request, exception)
    return _refuse(request, "Not for this log-in", str(exception) or NOT_FOR_YOU, status=403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    if not in_workspace(request):
        return pages.csrf_failure(request, reason)
    return _refuse(request, "Open for too long", pages.NO_CSRF_COOKIE, status=403)


def in_workspace(request: HttpRequest) -> bool:
    """Whether somebody who works here asked for one of the workspace's pages."""
    user = getattr(request, "user", None)
    return request.path_info.startswith("/admin/") and user is not None and user.is_active and user.is_staff


def _refuse(request: HttpRequest, title: str, sentence: str, *, status: int) -> HttpResponse:
    context = {**admin.site.each_context(request), "title": title, "sentence": sentence}
    return render(request, "admin/refusal.html", context, status=status)
