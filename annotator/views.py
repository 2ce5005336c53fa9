"""The annotators' pages. Each parses, calls one act or one read, and answers."""

from functools import wraps

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotator import assigning, consenting, inviting, submitting
from annotator.forms import AnnotationForm, ConsentGivenForm
from annotator.models import Assignment, AssignmentStatus, ConsentForm, HITType, Invitation
from annotator.questions import QUESTIONS
from annotator.reads import earnings, studies_for
from annotator.rendering import markdown_to_html

SESSION_KEY = "invitation"

NO_LOG_IN = (
    "You are not logged in, or your log-in has ended. Open your invite link again; what you had begun is waiting there."
)
NO_CONSENT = "Statements are shown only after you have agreed to the consent form that is in force now."
NOT_YOURS = "There is no such page for you. If you followed a link, it may belong to somebody else or be incomplete."
NO_CSRF_COOKIE = "This page was open for too long, or cookies are switched off. Allow cookies here, then send it again."
UNREADABLE = "What you sent is too large or damaged. Go back, shorten long answers and send it again."
KEPT_THOUGH_BLOCKED = "The answers that you just sent are kept and paid."
OUTCOME_MESSAGES = {
    submitting.Outcome.NOT_UNDERSTOOD: "Noted: you did not understand that text. It is paid like any other.",
    submitting.Outcome.LATE: "Your answers came after the deadline. They are kept, counted and paid.",
    submitting.Outcome.LATE_UNCOUNTED: (
        "Your answers came after the deadline and somebody else had taken the place. "
        "They are kept and paid, but do not count as a label."
    ),
}


def for_worker(view):
    """Let in whoever came by a valid invitation, as ``request.worker``; keep what others typed."""

    @wraps(view)
    @never_cache
    def wrapped(request: HttpRequest, *args, **kwargs) -> HttpResponse:
        invitation = (
            Invitation.objects.filter(pk=request.session.get(SESSION_KEY), revoked_at=None)
            .select_related("worker")
            .first()
        )
        if invitation is None:
            return problem(request, NO_LOG_IN, status=403, send_again=True)
        request.worker = invitation.worker
        return view(request, *args, **kwargs)

    return wrapped


def with_consent(view):
    """Let in workers who agreed to the consent form in force; others are sent to it first."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args, **kwargs) -> HttpResponse:
        if consenting.has_consented(request.worker):
            return view(request, *args, **kwargs)
        if request.method == "POST":
            return problem(request, NO_CONSENT, status=403, send_again=True, link=("Consent form", "annotator:consent"))
        return redirect("annotator:consent")

    return wrapped


@require_safe
@never_cache
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    try:
        accepted = inviting.redeem(token=token)
    except inviting.InvitationUnknown as refused:
        return problem(request, str(refused), status=404)
    except inviting.InvitationRevoked as refused:
        return problem(request, str(refused), status=410)
    request.session.cycle_key()
    request.session[SESSION_KEY] = accepted.pk
    return redirect("annotator:home")


@require_safe
@never_cache
def home(request: HttpRequest) -> HttpResponse:
    """The study home of a worker; for others, what this place is."""
    if SESSION_KEY not in request.session:
        return render(request, "annotator/welcome.html")
    return worker_home(request)


@for_worker
@with_consent
def worker_home(request: HttpRequest) -> HttpResponse:
    context = {"studies": studies_for(request.worker), "earnings": earnings(request.worker)}
    return render(request, "annotator/home.html", context)


@for_worker
@require_http_methods(["GET", "POST"])
def consent(request: HttpRequest) -> HttpResponse:
    form = ConsentForm.objects.current()
    if form is None:
        return problem(
            request, "There is no consent form yet, so no work can be offered. Please come back later.", status=503
        )
    given = ConsentGivenForm(request.POST if request.method == "POST" else None, in_force=form)
    if request.method == "POST" and given.is_valid():
        consenting.give_consent(worker=request.worker, form=form)
        return redirect("annotator:home")
    context = {
        "consent_form": form,
        "warning": markdown_to_html(form.warning),
        "body": markdown_to_html(form.body),
        "form": given,
        "consented": consenting.has_consented(request.worker),
    }
    return render(request, "annotator/consent.html", context, status=422 if request.method == "POST" else 200)


@require_safe
def declined(request: HttpRequest) -> HttpResponse:
    return render(request, "annotator/declined.html")


@require_POST
@for_worker
@with_consent
def accept(request: HttpRequest, hit_type_id: int | None = None) -> HttpResponse:
    """Hand out the next HIT, of one study or of any."""
    if hit_type_id is None:
        return _next_task(request, None)
    hit_type = HITType.objects.filter(pk=hit_type_id).first()
    if hit_type is None:
        return problem(request, NOT_YOURS, status=404)
    return _next_task(request, hit_type)


@for_worker
@with_consent
@require_http_methods(["GET", "POST"])
def task(request: HttpRequest, key) -> HttpResponse:
    """A statement with its nine questions; POST submits the answers and hands out the next."""
    assignment = (
        Assignment.objects.filter(key=key, worker=request.worker)
        .select_related("hit__hit_type", "hit__generation__group")
        .first()
    )
    if assignment is None:
        return problem(request, NOT_YOURS, status=404, typed=True)
    if request.method == "POST":
        return _submit(request, assignment)
    if assignment.is_submitted:
        messages.info(request, "You have submitted that statement already; your answers are kept.")
        return redirect("annotator:home")
    if assignment.status != AssignmentStatus.ACCEPTED:
        return problem(
            request,
            "You gave this statement back, or its time was over: it can go to somebody else. Take the next one.",
            status=410,
        )
    return _task_page(request, assignment, AnnotationForm())


@require_POST
@for_worker
def return_task(request: HttpRequest, key) -> HttpResponse:
    assignment = Assignment.objects.filter(key=key, worker=request.worker).first()
    if assignment is None:
        return problem(request, NOT_YOURS, status=404)
    if assigning.return_assignment(assignment=assignment):
        messages.info(request, "You returned the statement. That costs you nothing.")
    return redirect("annotator:home")


@require_POST
@for_worker
def stop(request: HttpRequest) -> HttpResponse:
    """End the session: an open statement is returned, and what was submitted stays paid."""
    for assignment in Assignment.objects.accepted().filter(worker=request.worker):
        assigning.return_assignment(assignment=assignment)
    context = {"earnings": earnings(request.worker)}
    request.session.flush()
    return render(request, "annotator/stopped.html", context)


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


def _submit(request: HttpRequest, assignment: Assignment) -> HttpResponse:
    form = AnnotationForm(request.POST)
    if not assignment.is_submitted:
        if not form.is_valid():
            return _task_page(request, assignment, form, status=422)
        outcome = submitting.submit(assignment=assignment, answers=form.cleaned_data)
        if sentence := OUTCOME_MESSAGES.get(outcome) or (request.worker.blocked_at and KEPT_THOUGH_BLOCKED):
            messages.info(request, sentence)
    return _next_task(request, assignment.hit.hit_type)


def _next_task(request: HttpRequest, hit_type: HITType | None) -> HttpResponse:
    try:
        assignment = assigning.accept_next(worker=request.worker, hit_type=hit_type)
    except assigning.WorkerBlocked as refused:
        return problem(request, str(refused), status=403)
    except assigning.CannotAccept:
        return redirect("annotator:home")  # which says what there is to do, or asks for consent
    return redirect("annotator:task", assignment.key)


def _task_page(request, assignment, form, *, status=200) -> HttpResponse:
    context = {
        "assignment": assignment,
        "statement": assignment.hit.generation,
        "hit_type": assignment.hit.hit_type,
        "minutes_left": max(0, round((assignment.deadline - timezone.now()).total_seconds() / 60)),
        "form": form,
        "earnings": earnings(request.worker),
        "action": reverse("annotator:task", args=[assignment.key]),
    }
    return render(request, "annotator/task.html", context, status=status)


def _typed_answers(request: HttpRequest) -> list[dict]:
    """What was posted, by question, for showing it again and sending it once more."""
    fields = {"not_understood": AnnotationForm.base_fields["not_understood"].label}
    for question in QUESTIONS:
        fields[question.key] = question.wording
        if question.free_text:
            fields[question.free_text.key] = question.free_text.label
    return [
        {"name": name, "label": label, "value": request.POST[name]}
        for name, label in fields.items()
        if request.POST.get(name)
    ]
