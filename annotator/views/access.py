"""Who gets in, and what others are told: in a sentence that says what to do, with all that they typed."""

from functools import wraps

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache

from annotator import drafting
from annotator.models import Consent, Worker
from annotator.prepared import INVITATION, Prepared, instance
from annotator.questions import QUESTIONS, TYPED_FIELDS

SESSION_KEY = "invitation"

NO_LOG_IN = (
    "You are not logged in, or your log-in has ended. Open your invite link again; what you had begun is waiting there."
)
NO_CONSENT = "Statements are shown only after you have agreed to the consent form that is in force now."
TYPED_IS_KEPT = "What you typed is kept with the statement."
NOT_YOURS = "There is no such page for you. If you followed a link, it may belong to somebody else or be incomplete."
NO_CSRF_COOKIE = "This page was open for too long, or cookies are switched off. Allow cookies here, then send it again."
UNREADABLE = "What you sent is too large or damaged. Go back, shorten long answers and send it again."
BY_BUTTON_ONLY = "This address is no page: it does what a button asks for. Go to the start page and use the button."
LABELS = {question.key: {str(option.value): option.label for option in question.options} for question in QUESTIONS} | {
    "not_understood": {"on": "Yes"}
}
"""What the page says for the values that its fields send."""


def worker_of(request: HttpRequest) -> Worker | None:
    """Who came by a valid invitation; ``consented`` says whether they agree to the form in force. One query."""
    invitation = request.session.get(SESSION_KEY)
    found = invitation and IDENTITY.first(invitation=invitation)
    if not found:
        return None
    worker = instance(Worker, found)
    worker.consented = found["consented"]
    return worker


def _make_identity() -> QuerySet[Worker]:
    return Worker.objects.filter(invitations=INVITATION, invitations__revoked_at=None).values(
        *(field.attname for field in Worker._meta.concrete_fields),
        consented=Exists(Consent.objects.in_force().filter(worker=OuterRef("pk"))),
    )


IDENTITY = Prepared(_make_identity)


def for_worker(view):
    """Let in whoever came by a valid invitation, as ``request.worker``; keep what others typed."""

    @wraps(view)
    @never_cache
    def wrapped(request: HttpRequest, *args, **kwargs) -> HttpResponse:
        request.worker = worker_of(request)
        if request.worker is None:
            return problem(request, NO_LOG_IN, status=403, send_again=True)
        return view(request, *args, **kwargs)

    return wrapped


def with_consent(view):
    """Let in workers who agreed to the consent form in force; others are sent to it first."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args, **kwargs) -> HttpResponse:
        if request.worker.consented:
            return view(request, *args, **kwargs)
        if request.method == "POST":
            sentence = f"{NO_CONSENT} {TYPED_IS_KEPT}" if _keep_as_draft(request) else NO_CONSENT
            return problem(request, sentence, status=403, send_again=True, link=("Consent form", "annotator:consent"))
        return redirect("annotator:consent")

    return wrapped


def by_button(view):
    """Let posts in; who comes by a link is told that there is no page."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args, **kwargs) -> HttpResponse:
        if request.method == "POST":
            return view(request, *args, **kwargs)
        response = problem(request, BY_BUTTON_ONLY, status=HttpResponseNotAllowed.status_code)
        response["Allow"] = "POST"
        return response

    return wrapped


def problem(request, sentence, *, status, send_again=False, typed=False, link=None) -> HttpResponse:
    """A refusal: a sentence that says what to do, and whatever had been typed, so that nothing is lost."""
    kept = _typed_answers(request) if (send_again or typed) and request.method == "POST" else []
    context = {"sentence": sentence, "kept": kept, "send_again": send_again, "link": link}
    return render(request, "annotator/problem.html", context, status=status)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return problem(request, NO_CSRF_COOKIE, status=403, send_again=True)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    # Nothing that was posted is read: it may be what cannot be read.
    return problem(request, UNREADABLE, status=400)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return problem(request, NOT_YOURS, status=404)


def _keep_as_draft(request: HttpRequest) -> bool:
    """Keep what was typed for a statement by somebody who agrees to an earlier form; return whether that was done."""
    key, worker = request.resolver_match.kwargs.get("key"), request.worker
    if key is None or not _typed_answers(request) or not worker.consents.filter(withdrawn_at=None).exists():
        return False
    assignment = worker.assignments.filter(key=key).first()
    return assignment is not None and drafting.save_draft(assignment=assignment, typed=request.POST)


def _typed_answers(request: HttpRequest) -> list[dict]:
    """What was posted, by question, for showing it again and sending it once more."""
    return [
        {"name": name, "label": label, "value": value, "shown": LABELS.get(name, {}).get(value, value)}
        for name, label in TYPED_FIELDS.items()
        if (value := request.POST.get(name))
    ]
