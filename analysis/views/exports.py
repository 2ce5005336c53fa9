"""The workspace's page of exports."""

from http import HTTPStatus

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from analysis.exports import EXPORTS
from analysis.exports.filtering import ExportForm, WrongFilter
from analysis.exports.writing import FORMATS, headers_of, stream


def export(request: HttpRequest, wrong: WrongFilter | None = None) -> HttpResponse:
    """What there is to export, which rows of it, and in which formats; ``wrong`` is what was asked for in vain."""
    exports = [export for export in EXPORTS.values() if export.is_for(request.user)]
    if not exports:
        raise PermissionDenied
    form = ExportForm(request.GET if wrong else None)
    for name, sentences in (wrong.on_page if wrong else {}).items():
        if not form.errors.get(name):
            form.add_error(name, sentences)
    context = {
        **admin.site.each_context(request),
        "title": "Export",
        "form": form,
        "exports": exports,
        "formats": FORMATS,
    }
    return render(request, "admin/export.html", context, status=HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK)


def download(request: HttpRequest, name: str, file_format: str) -> HttpResponse:
    """An export as a file; the page once more, with a sentence, if a filter cannot be."""
    if name not in EXPORTS or file_format not in FORMATS:
        raise Http404
    if not EXPORTS[name].is_for(request.user):
        raise PermissionDenied
    safe = request.GET.get("excel_safe") == "on" and file_format == "csv"
    try:
        made = stream(name, file_format, request.GET, excel_safe=safe, by=request.user)
    except WrongFilter as wrong:
        return export(request, wrong)
    return StreamingHttpResponse(made, headers=headers_of(made, name, file_format))
