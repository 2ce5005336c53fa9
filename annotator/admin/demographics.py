"""What may be told of the people who annotated."""

from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from annotator import surveying


@permission_required("annotator.view_worker", raise_exception=True)
def demographics(request: HttpRequest) -> HttpResponse:
    """The demographic survey in numbers, none of which is about fewer than five people."""
    context = {
        **admin.site.each_context(request),
        "title": "Demographics",
        "report": surveying.report(),
        "least": surveying.LEAST,
    }
    return render(request, "admin/demographics.html", context)
