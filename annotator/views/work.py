"""At work: previewing a study, accepting, answering, returning, stopping."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from annotator import assigning, drafting, submitting, wages
from annotator.durations import in_words, left_in_words
from annotator.forms import read_answers
from annotator.models import Assignment, AssignmentStatus, HITType, Worker
from annotator.questions import NOT_UNDERSTOOD, QUESTIONS
from annotator.reads import earnings, offers_for, task_of
from annotator.rendering import faulty, questions_to_html
from annotator.views.access import NOT_YOURS, by_button, for_worker, problem, with_consent

SUBMITTED_ALREADY = "You have submitted that statement already; your answers are kept."
RETURNED_ALREADY = "You gave this statement back: it can go to somebody else. Take the next one."
ANSWERS_DELETED = "You withdrew and had your answers deleted, so nothing is stored for that statement any more."
NOTHING_TO_SAVE_FOR = "This statement was submitted or returned meanwhile, so nothing more is saved for it."
RETURNED = "You returned the statement. That costs you nothing."
RETURNED_OF_TEST = "You returned the statement. In this test it counts as not answered as expected."
STOPPED = "A statement was open. It was returned, without penalty."
STOPPED_IN_TEST = "A statement was open. It was returned, and in this test it counts as not answered as expected."
KEPT_THOUGH_BLOCKED = "The answers that you just sent are kept and paid."
OUTCOME_MESSAGES = {
    submitting.Outcome.NOT_UNDERSTOOD: "Noted: you did not understand that text. It is paid like any other.",
    submitting.Outcome.LATE: "Your answers came after the deadline. They are kept, counted and paid.",
    submitting.Outcome.LATE_UNCOUNTED: (
        "Your answers came after the deadline and somebody else had taken the place. "
        "They are kept and paid, but do not count as a label."
    ),
    submitting.Outcome.ANSWERS_DELETED: ANSWERS_DELETED,
}


@for_worker
@require_safe
def preview(request: HttpRequest, hit_type_id: int) -> HttpResponse:
    """What a study is, with its questions and without any statement."""
    offer = next((offer for offer in offers_for(request.worker) if offer.hit_type.pk == hit_type_id), None)
    if offer is None:
        return problem(request, NOT_YOURS, status=404)
    study = offer.hit_type
    context = {
        "offer": offer,
        "study": study,
        "qualifications": study.qualifications.order_by("name"),
        "questions": QUESTIONS,
        "wage": wages.of_study(study),
        "expected_time": in_words(study.expected_time),
        "assignment_duration": in_words(study.assignment_duration),
        "auto_approval_delay": in_words(study.auto_approval_delay),
        "break_after": in_words(study.break_after),
    }
    return render(request, "annotator/preview.html", context)


@by_button
@for_worker
@with_consent
def accept(request: HttpRequest, hit_type_id: int) -> HttpResponse:
    """Hand out the study's next HIT."""
    return _next_task(request, hit_type_id, rested=request.POST.get("rested") == "1")


@for_worker
@with_consent
@require_safe
def take_break(request: HttpRequest, hit_type_id: int) -> HttpResponse:
    """The reminder that a break is due, between two statements."""
    study = HITType.objects.filter(pk=hit_type_id, imported=False).first()
    if study is None:
        return problem(request, NOT_YOURS, status=404)
    context = {"study": study, "worked": _worked_without_a_break(request.worker)}
    return render(request, "annotator/break.html", context)


@for_worker
@with_consent
@require_http_methods(["GET", "POST"])
def task(request: HttpRequest, key) -> HttpResponse:
    """A statement with its nine questions; POST submits the answers and hands out the next."""
    if request.method == "POST":
        return _submit(request, key)
    assignment = task_of(request.worker, key)
    if assignment is None:
        return problem(request, NOT_YOURS, status=404)
    if assignment.is_submitted:
        messages.info(request, SUBMITTED_ALREADY)
        return redirect("annotator:home")
    if assignment.status == AssignmentStatus.RETURNED:
        return problem(request, RETURNED_ALREADY, status=410)
    if assignment.answers_deleted_at:
        return problem(request, ANSWERS_DELETED, status=410)
    return _task_page(request, assignment, assignment.draft or {})


@by_button
@for_worker
@with_consent
def save_draft(request: HttpRequest, key) -> HttpResponse:
    """Keep what was typed so far; only a script reads the answer."""
    assignment = request.worker.assignments.filter(key=key).first()
    if assignment is None:
        return HttpResponse(NOT_YOURS, status=404, content_type="text/plain")
    if not drafting.save_draft(assignment=assignment, typed=request.POST):
        return HttpResponse(NOTHING_TO_SAVE_FOR, status=410, content_type="text/plain")
    return HttpResponse(status=204)


@by_button
@for_worker
def return_task(request: HttpRequest, key) -> HttpResponse:
    assignment = request.worker.assignments.filter(key=key).select_related("hit__hit_type").first()
    if assignment is None:
        return problem(request, NOT_YOURS, status=404)
    if assigning.return_assignment(assignment=assignment):
        messages.info(request, RETURNED_OF_TEST if assignment.hit.hit_type.is_test else RETURNED)
    return redirect("annotator:home")


@by_button
@for_worker
def stop(request: HttpRequest) -> HttpResponse:
    """End the work, with or without consent: an open statement is returned, and what was submitted stays paid."""
    for assignment in request.worker.assignments.accepted().select_related("hit__hit_type"):
        if assigning.return_assignment(assignment=assignment):
            messages.info(request, STOPPED_IN_TEST if assignment.hit.hit_type.is_test else STOPPED)
    return redirect("annotator:debrief")


def _submit(request: HttpRequest, key) -> HttpResponse:
    """Store the answers once and go on. A submit that comes again is led to the same page."""
    answers, errors = read_answers(request.POST)
    if errors:
        return _show_again(request, key, errors)
    submitted = submitting.submit_own(worker=request.worker, key=key, answers=answers)
    if submitted is None:
        return problem(request, NOT_YOURS, status=404, typed=True)
    if sentence := _told_of(submitted.outcome, is_blocked=request.worker.blocked_at is not None):
        messages.info(request, sentence)
    return _next_task(request, submitted.hit_type_id)


def _told_of(outcome: submitting.Outcome, *, is_blocked: bool) -> str:
    """What is said of a submit; nothing if it was stored as usual or had been before."""
    if is_blocked and outcome == submitting.Outcome.COUNTED:
        return KEPT_THOUGH_BLOCKED
    return OUTCOME_MESSAGES.get(outcome, "")


def _show_again(request: HttpRequest, key, errors: dict) -> HttpResponse:
    """The page with what was typed and what is wrong; what was typed is kept as a draft."""
    assignment = task_of(request.worker, key)
    if assignment is None:
        return problem(request, NOT_YOURS, status=404, typed=True)
    if assignment.is_submitted:
        return _next_task(request, assignment.hit.hit_type_id)
    drafting.save_draft(assignment=assignment, typed=request.POST)
    return _task_page(request, assignment, request.POST, errors)


def _next_task(request: HttpRequest, hit_type_id: int, *, rested: bool = False) -> HttpResponse:
    try:
        assignment = assigning.accept_next(worker=request.worker, hit_type_id=hit_type_id, rested=rested)
    except HITType.DoesNotExist:
        return problem(request, NOT_YOURS, status=404)
    except assigning.WorkerBlocked as refused:
        return problem(request, str(refused), status=403)
    except assigning.BreakDue:
        return redirect("annotator:break", hit_type_id)
    except assigning.NotQualified as refused:
        messages.info(request, str(refused))
        return redirect("annotator:home")
    except (assigning.ConsentMissing, assigning.DailyCapReached, assigning.NoHITLeft):
        return redirect("annotator:home")  # which says what there is to do, or asks for consent
    return redirect("annotator:task", assignment.key)


def _task_page(request: HttpRequest, assignment: Assignment, typed, errors=None) -> HttpResponse:
    worker, hit = request.worker, assignment.hit
    left = assignment.deadline - timezone.now()
    tally = earnings(worker)
    context = {
        "assignment": assignment,
        "statement": hit.generation,
        "hit_type": hit.hit_type,
        "worker": worker,
        "is_over": assignment.status == AssignmentStatus.EXPIRED or left.total_seconds() <= 0,
        "seconds_left": round(left.total_seconds()),
        "time_left": left_in_words(left),
        "trouble": NOT_UNDERSTOOD,
        "not_understood": typed.get("not_understood"),
        "questions": questions_to_html(typed, errors, shortcuts=worker.uses_shortcuts),
        "faulty": faulty(errors or {}),
        "earnings": tally,
        "number_today": max(tally.today, 1),
    }
    return render(request, "annotator/task.html", context, status=422 if errors else 200)


def _worked_without_a_break(worker: Worker) -> str:
    """For how long, in words; nothing if the worker did nothing for so long that they had a break."""
    now = timezone.now()
    last = worker.assignments.order_by("-accepted_at").annotate(active_at=assigning.ACTIVE_AT).first()
    if last is None or last.active_at < now - assigning.BREAK:
        return ""
    return left_in_words(now - last.working_since)
