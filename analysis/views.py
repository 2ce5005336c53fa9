"""The workspace's Analyse and Data pages."""

from django.contrib import admin
from django.contrib.auth.decorators import permission_required
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone

from analysis.agreement import Figure, UndefinedAgreement, agreement_table
from analysis.bootstrap import Interval, bootstrap_interval
from analysis.exports import EXPORTS
from analysis.ratings import toxicity_classes
from annotator.models import Annotation, HITType

READ_ANNOTATIONS = "annotator.view_annotation"


@permission_required(READ_ANNOTATIONS, raise_exception=True)
def agreement(request: HttpRequest) -> HttpResponse:
    """How far the annotators of each study agree on the toxicity class."""
    submitted = Q(hits__assignments__submitted_at__isnull=False)
    studies = HITType.objects.annotate(submitted=Count("hits__assignments", filter=submitted)).order_by("-pk")
    context = {
        **admin.site.each_context(request),
        "title": "Agreement",
        "studies": [{"study": study, "rows": agreement_rows(toxicity_classes(study))} for study in studies],
    }
    return render(request, "admin/agreement.html", context)


def agreement_rows(ratings) -> list[dict]:
    """Each figure of agreement on ``ratings`` (statements, raters) with its interval, if it has one."""
    return [{"figure": figure, "interval": _interval(ratings, figure)} for figure in agreement_table(ratings)]


def _interval(ratings, figure: Figure) -> Interval | None:
    if figure.value is None:
        return None
    try:
        return bootstrap_interval(ratings, figure.name)
    except UndefinedAgreement:
        return None


@permission_required(READ_ANNOTATIONS, raise_exception=True)
def export(request: HttpRequest) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "title": "Export",
        "annotations": Annotation.objects.count(),
    }
    return render(request, "admin/export.html", context)


@permission_required(READ_ANNOTATIONS, raise_exception=True)
def download(request: HttpRequest, name: str) -> StreamingHttpResponse:
    """Stream an export as a CSV file."""
    if name not in EXPORTS:
        raise Http404
    return StreamingHttpResponse(
        EXPORTS[name](),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}-{timezone.now():%Y-%m-%d}.csv"'},
    )
