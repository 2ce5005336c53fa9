"""Consent and care: what one agrees to and withdraws, preferences, help, the survey and the debrief."""

from django.contrib import messages
from django.forms.models import model_to_dict
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from annotator import consenting, informing, own_work, preferring, surveying
from annotator.care_forms import DELETE, PreferencesForm, SurveyForm, WithdrawalForm
from annotator.forms import ConsentGivenForm
from annotator.models import Annotation, ConsentForm, Survey
from annotator.reads import earnings
from annotator.views.access import for_worker, problem, with_consent, worker_of
from generation.models import TargetGroup

NO_FORM = "There is no consent form yet, so no work can be offered. Please come back later."
SAVED = "Saved."
RETURNED_AS_UNWANTED = "The statement that was open is about a group you do not want to read about, so it was returned."
SURVEY_SAVED = "Thank you. Your answers are saved; you can change or delete them here."
SURVEY_DELETED = "What you had said about yourself is deleted."


@for_worker
@require_http_methods(["GET", "POST"])
def consent(request: HttpRequest) -> HttpResponse:
    """The warning and the form in force; POST agrees to it."""
    form = ConsentForm.objects.current()
    if form is None:
        return problem(request, NO_FORM, status=503)
    posted = request.method == "POST"
    given = ConsentGivenForm(
        request.POST if posted else None,
        in_force=form,
        initial={"covers_statements": request.worker.covers_statements},
    )
    if posted and given.is_valid():
        consenting.give_consent(
            worker=request.worker, form=form, covers_statements=given.cleaned_data["covers_statements"]
        )
        return redirect("annotator:home")
    context = {**informing.consent_texts(form), "form": given, "last": consenting.last_consent(request.worker)}
    return render(request, "annotator/consent.html", context, status=422 if posted else 200)


@require_safe
@never_cache
def declined(request: HttpRequest) -> HttpResponse:
    request.worker = worker_of(request)
    return render(request, "annotator/declined.html")


@for_worker
@require_http_methods(["GET", "POST"])
def withdraw(request: HttpRequest) -> HttpResponse:
    """What withdrawing does; POST does it and says what was done."""
    posted = request.method == "POST"
    form = WithdrawalForm(request.POST if posted else None)
    if posted and form.is_valid():
        done = consenting.withdraw(worker=request.worker, delete_answers=form.cleaned_data["answers"] == DELETE)
        messages.info(request, _what_was_done(done, asked_to_delete=form.cleaned_data["answers"] == DELETE))
        return redirect("annotator:withdraw")
    context = {
        "form": form,
        "last": consenting.last_consent(request.worker),
        "agrees": request.worker.consents.filter(withdrawn_at=None).exists(),
        "answered": Annotation.objects.filter(assignment__worker=request.worker).count(),
        "begun": request.worker.assignments.filter(draft__isnull=False).exists(),
        "surveyed": Survey.objects.filter(worker=request.worker).exists(),
    }
    return render(request, "annotator/withdraw.html", context, status=422 if posted else 200)


def _what_was_done(done: consenting.Withdrawal, *, asked_to_delete: bool) -> str:
    sentences = ["You have withdrawn your consent."] if done.consents else []
    if done.returned:
        sentences.append("The statement that was open was returned.")
    if asked_to_delete:
        statements = f"{done.deleted} statement" if done.deleted == 1 else f"{done.deleted} statements"
        sentences.append(
            f"Your answers to {statements} are deleted, and with them what you had begun "
            "and what you had said about yourself."
        )
    else:
        sentences.append("Your past answers are kept.")
    return " ".join([*sentences, "What you have earned stays yours."])


@for_worker
@require_http_methods(["GET", "POST"])
def preferences(request: HttpRequest) -> HttpResponse:
    """Covered statements, shortcuts, groups one does not want to read about."""
    worker, posted = request.worker, request.method == "POST"
    initial = {
        "covers_statements": worker.covers_statements,
        "uses_shortcuts": worker.uses_shortcuts,
        "avoided_groups": [] if posted else list(worker.avoided_groups.values_list("slug", flat=True)),
    }
    groups = list(TargetGroup.objects.all())
    form = PreferencesForm(request.POST if posted else None, groups=groups, initial=initial)
    if posted and form.is_valid():
        returned = preferring.set_preferences(worker=worker, **form.cleaned_data)
        messages.info(request, f"{SAVED} {RETURNED_AS_UNWANTED}" if returned else SAVED)
        return redirect("annotator:preferences")
    return render(request, "annotator/preferences.html", {"form": form}, status=422 if posted else 200)


@for_worker
@with_consent
@require_http_methods(["GET", "POST"])
def survey(request: HttpRequest) -> HttpResponse:
    """The optional demographic survey: POST stores or, with ``delete``, deletes the answers."""
    worker, posted = request.worker, request.method == "POST"
    if posted and "delete" in request.POST:
        if surveying.delete_survey(worker=worker):
            messages.info(request, SURVEY_DELETED)
        return redirect("annotator:survey")
    stored = Survey.objects.filter(worker=worker).first()
    form = SurveyForm(request.POST if posted else None, initial=model_to_dict(stored) if stored else None)
    if posted and form.is_valid():
        surveying.store_survey(worker=worker, answers=form.cleaned_data)
        messages.info(request, SURVEY_SAVED)
        return redirect("annotator:survey")
    context = {"form": form, "stored": stored}
    return render(request, "annotator/survey.html", context, status=422 if posted else 200)


@for_worker
@require_safe
def debrief(request: HttpRequest) -> HttpResponse:
    """The end of a stretch of work: what it was for, what it earned."""
    last = consenting.last_consent(request.worker)
    own = earnings(request.worker)
    context = {
        "text": informing.debrief(last.form if last else None, has_judged=own.submitted > 0),
        "earnings": own,
        "time_worked": own_work.tally(request.worker).time_in_words,
        "surveyed": Survey.objects.filter(worker=request.worker).exists(),
    }
    return render(request, "annotator/debrief.html", context)


@require_safe
@never_cache
def help_lines(request: HttpRequest) -> HttpResponse:
    """All help lines, for everybody."""
    request.worker = worker_of(request)
    return render(request, "annotator/help.html")
