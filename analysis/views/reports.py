"""The dashboards: a page shows its reports from what is kept, and says when that was made and what is newer."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from http import HTTPStatus
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from analysis.exports.filtering import WrongFilter
from analysis.models import StoredReport
from analysis.reports import storing, writing
from analysis.reports.catalogue import PAGES, REPORTS, ReportKind
from analysis.reports.filters import ReportForm, foreign, in_address, values_of
from analysis.reports.frame import Report, Section, unpack
from analysis.reports.showing import ShownTable, shown

READ_STUDIES = "annotator.view_hittype"
ROWS_SHOWN = 20
"""So many rows of a table are on the page; its file has them all."""
SOURCES = {
    "annotations": ("annotation that counts", "annotations that count"),
    "labels": ("imported label", "imported labels"),
    "statements": ("statement", "statements"),
    "groups": ("group", "groups"),
    "scores": ("classifier's score", "classifiers' scores"),
    "perplexities": ("perplexity", "perplexities"),
    "studies": ("study", "studies"),
    "payments": ("payment", "payments"),
    "payouts": ("row of a payout", "rows of payouts"),
    "hits": ("HIT", "HITs"),
    "evaluations": ("evaluation", "evaluations"),
    "trained": ("trained classifier", "trained classifiers"),
}
FILES = {"json": "application/json", "md": "text/markdown; charset=utf-8"}


@dataclass(frozen=True)
class SectionOnPage:
    section: Section
    table: ShownTable | None
    numbers: str
    anchor: str

    @property
    def chart_id(self) -> str:
        return f"{self.anchor}-chart"


@dataclass(frozen=True)
class ReportOnPage:
    """A report with what is kept of it for the filters of the page."""

    kind: ReportKind
    stored: StoredReport
    query: str
    sections: list[SectionOnPage]
    not_filtered_by: str
    """Filters that are set and that this report does not have."""
    rests_on: str

    @property
    def is_waiting(self) -> bool:
        return self.stored.finished_at is None

    @property
    def all_missing(self) -> str:
        """Why none of several sections has anything to show, if it is the same for all: then it is said once."""
        reasons = {part.section.missing for part in self.sections}
        return reasons.pop() if len(self.sections) > 1 and len(reasons) == 1 else ""

    @property
    def made(self) -> str:
        return self.stored.made_at.isoformat() if self.stored.made_at else ""


def _refusing(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A view that answers filters that cannot be with 400 and the sentences."""

    @wraps(view)
    def refusing(*args, **kwargs) -> HttpResponse:
        try:
            return view(*args, **kwargs)
        except WrongFilter as wrong:
            return _sentence(str(wrong), HTTPStatus.BAD_REQUEST)

    return refusing


@require_safe
def report_page(request: HttpRequest, page: str) -> HttpResponse:
    """All reports of a page that one may see; with what is wrong instead, if a filter cannot be."""
    kinds = _kinds(request, page)
    form = _form(request, kinds, request.GET)
    is_wrong = not form.is_valid()
    newest = {} if is_wrong else storing.newest_of({source for kind in kinds for source in kind.rests_on})
    context = {
        **admin.site.each_context(request),
        "title": PAGES[page],
        "page": page,
        "form": form,
        "is_wrong": is_wrong,
        "chips": [] if is_wrong else [*_chips(form, request.GET, reverse("report", args=[page]))],
        "reports": [] if is_wrong else [_on_page(kind, request.GET, newest) for kind in kinds],
    }
    status = HTTPStatus.BAD_REQUEST if is_wrong else HTTPStatus.OK
    return render(request, "admin/reports/page.html", context, status=status)


@require_safe
@_refusing
def report_part(request: HttpRequest, page: str, report: str) -> HttpResponse:
    """One report of a page, for a page that waits for it; 204 while there is nothing new since ``made``."""
    kind = _kind(request, page, report)
    asked = request.GET.copy()
    made = asked.pop("made", [""])[0]
    if not request.htmx:
        return redirect(_with_query(reverse("report", args=[page]), asked))
    _check(request, page, asked)
    found = _on_page(kind, asked)
    if found.is_waiting and found.made == made:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    return render(request, "admin/reports/_report.html", {"report": found, "page": page})


@require_POST
def work_out_report(request: HttpRequest, page: str, report: str) -> HttpResponse:
    """Have a report worked out anew, whatever it rests on."""
    try:
        stored = _stored(request, page, report)
    except WrongFilter as wrong:
        messages.error(request, str(wrong))
        return redirect("report", page)
    storing.ask(stored)
    return redirect(_with_query(reverse("report", args=[page]), request.GET) + f"#{report}")


@require_safe
@_refusing
def report_file(request: HttpRequest, page: str, report: str, ending: str) -> HttpResponse:
    """A report as it is kept, as JSON or Markdown."""
    if ending not in FILES:
        raise Http404
    stored = _stored(request, page, report)
    if stored.payload is None:
        return redirect(_with_query(reverse("report", args=[page]), request.GET))
    told = {"filters": stored.filters, "made_at": stored.made_at}
    if ending == "json":
        text = writing.as_json(stored.payload, **told)
    else:
        text = writing.as_markdown(unpack(stored.payload), **told)
    return _file(text, f"{report}.{ending}", FILES[ending])


@require_safe
@_refusing
def report_table(request: HttpRequest, page: str, report: str, section: str) -> HttpResponse:
    """One table of a report as it is kept, as CSV; 404 if it has no such table, or none yet."""
    stored = _stored(request, page, report)
    if stored.payload is None:
        why = stored.failure or "It is being worked out. Ask again in a moment."
        return _sentence(f"The report {report} has no tables yet. {why}", HTTPStatus.NOT_FOUND)
    try:
        text = writing.as_csv(unpack(stored.payload), section)
    except writing.UnknownSection as unknown:
        return _sentence(str(unknown), HTTPStatus.NOT_FOUND)
    return _file(text, f"{report}-{section}.csv", "text/csv; charset=utf-8")


# --- What the views share -------------------------------------------------------------------------


def may_see(user, kind: ReportKind) -> bool:
    return user.has_perms(kind.permissions)


def _kinds(request: HttpRequest, page: str) -> list[ReportKind]:
    if page not in PAGES:
        raise Http404
    kinds = [kind for kind in REPORTS.values() if kind.page == page and may_see(request.user, kind)]
    if not kinds:
        raise PermissionDenied
    return kinds


def _kind(request: HttpRequest, page: str, name: str) -> ReportKind:
    kind = REPORTS.get(name)
    if kind is None or kind.page != page:
        raise Http404
    if not may_see(request.user, kind):
        raise PermissionDenied
    return kind


def _form(request: HttpRequest, kinds: Iterable[ReportKind], asked: Mapping) -> ReportForm:
    """The filters of a page, which are those of all its reports, as an address sets them; wrong if it sets others."""
    takes = tuple(dict.fromkeys(name for kind in kinds for name in kind.takes))
    form = ReportForm(asked, takes=takes, with_titles=request.user.has_perm(READ_STUDIES))
    for name in foreign(asked, takes):
        form.add_error(None, f"This page has no filter “{name}”. It has: {', '.join(takes)}.")
    return form


def _check(request: HttpRequest, page: str, asked: Mapping) -> None:
    """Raise ``WrongFilter`` for what the page would refuse."""
    form = _form(request, _kinds(request, page), asked)
    if not form.is_valid():
        raise WrongFilter({name: list(sentences) for name, sentences in form.errors.items()})


def _stored(request: HttpRequest, page: str, name: str) -> StoredReport:
    """What is kept of a report for the filters of the address; raises ``WrongFilter``."""
    kind = _kind(request, page, name)
    _check(request, page, request.GET)
    return storing.look_at(name, _taken(kind, request.GET))


def _taken(kind: ReportKind, asked: Mapping) -> dict[str, list[str]]:
    """Those of the filters that the report has; a page has those of all its reports."""
    return {name: values for name, values in values_of(asked).items() if name in kind.takes}


def _on_page(kind: ReportKind, asked: Mapping, newest: Mapping[str, int] | None = None) -> ReportOnPage:
    stored = storing.look_at(kind.name, _taken(kind, asked), newest=newest)
    labels = {name: field.label for name, field in ReportForm.base_fields.items()}
    return ReportOnPage(
        kind=kind,
        stored=stored,
        query=urlencode(values_of(asked), doseq=True),
        sections=[] if stored.payload is None else [*_sections(unpack(stored.payload))],
        not_filtered_by=", ".join(labels[name] for name in values_of(asked) if name not in kind.takes),
        rests_on=_in_words(stored.rests_on),
    )


def _sections(report: Report) -> Iterator[SectionOnPage]:
    for section in report.sections:
        table = shown(section.table, most=ROWS_SHOWN) if section.table else None
        yield SectionOnPage(section, table, writing.numbers(section), f"{report.name}-{section.key}")


def _in_words(state: storing.State) -> str:
    return ", ".join(f"{of['count']:,} {SOURCES[name][of['count'] != 1]}" for name, of in state.items() if of["count"])


def _chips(form: ReportForm, asked: Mapping, address: str) -> Iterator[tuple[str, str, str]]:
    """Each filter that is set: its label, its values, and the address without it."""
    given = values_of(asked)
    for name in in_address({name: value for name, value in form.cleaned_data.items() if name in given}):
        without = {other: values for other, values in given.items() if other != name}
        choices = {str(value): label for value, label in getattr(form.fields[name], "choices", ())}
        words = [str(choices.get(value, value)) for value in given[name]]
        yield str(form.fields[name].label), ", ".join(words), _with_query(address, without)


def _with_query(address: str, asked: Mapping) -> str:
    query = urlencode(values_of(asked), doseq=True)
    return f"{address}?{query}" if query else address


def _sentence(words: str, status: HTTPStatus) -> HttpResponse:
    return HttpResponse(words, status=status, content_type="text/plain; charset=utf-8")


def _file(text: str, name: str, content_type: str) -> HttpResponse:
    return HttpResponse(
        text, content_type=content_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
