"""The page of a trial: a drawn prompt, its fresh responses, and what a researcher makes of each."""

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from generation import judging, sets, trials
from generation.admin.sets import check_may, texts_shown
from generation.demonstrating import LONGEST_TEXT, AlreadyInSet, MayNotFillToxicSet, NotADemonstration, may_fill
from generation.judging import LONGEST_NOTE, JudgedAlready, ReasonUnknown
from generation.models import BadBecause, Demonstration, Label, Response, Trial
from generation.prompting import NotEnoughDemonstrations, prompt_lines
from generation.trials import PromptOutOfDate


class NothingChosen(ValueError):
    """The request does not say what is to be done."""


def urls() -> list:
    """The addresses below those of demonstrations."""
    view = admin.site.admin_view
    return [
        path("trials/<int:trial_id>/", view(trial_page), name="generation_trial"),
        path("responses/<int:response_id>/", view(require_POST(judge)), name="generation_response"),
    ]


def address_of(trial: Trial, request: HttpRequest, anchor: str = "") -> str:
    """A trial's page, with the texts shown if they are now."""
    query = "?texts=shown" if texts_shown(request) else ""
    return reverse("admin:generation_trial", args=[trial.pk]) + query + anchor


def trial_page(request: HttpRequest, trial_id: int) -> HttpResponse:
    """A trial; POST asks for more: of the same prompt, of another one, or anew after a failure."""
    check_may(request, "view_demonstration")
    trial = get_object_or_404(Trial.objects.select_related("group", "prompt", "requested_by"), pk=trial_id)
    if request.method != "POST":
        return _shown(request, trial)
    check_may(request, "add_trial")
    try:
        return redirect(address_of(_asked(request, trial), request))
    except (PromptOutOfDate, NotEnoughDemonstrations, NothingChosen) as fault:
        return _shown(request, trial, fault=str(fault))


def _asked(request: HttpRequest, trial: Trial) -> Trial:
    act, user = request.POST.get("act"), request.user
    if act == "same":
        return trials.ask_again(trial=trial, by=user)
    if act == "another":
        return trials.ask_another(trial=trial, by=user)
    if act == "retry":
        trials.ask_for_it_again(trial=trial, by=user)
        return trial
    raise NothingChosen("Choose what is to be done.")


def judge(request: HttpRequest, response_id: int) -> HttpResponse:
    """Promote a response, mark it bad, or undo that; htmx gets the response's card, others the trial's page."""
    check_may(request, "view_demonstration", "change_response")
    response = get_object_or_404(Response.objects.select_related("trial__group"), pk=response_id)
    wrong = {}
    try:
        _judge(request, response)
    except MayNotFillToxicSet as refused:
        raise PermissionDenied(str(refused)) from refused
    except (NotADemonstration, AlreadyInSet, ReasonUnknown, JudgedAlready, NothingChosen) as fault:
        wrong = {"fault": str(fault), "fault_at": response.pk, "typed": request.POST}
    if not request.htmx:
        if wrong:
            return _shown(request, response.trial, **wrong)
        return redirect(address_of(response.trial, request, anchor=f"#r{response.pk}"))
    context = {**_of_trial(request, response.trial), **wrong, "is_answer": True}
    context["card"] = next(card for card in context["cards"] if card["response"].pk == response.pk)
    return render(request, "admin/generation/set/_answer.html", context, status=422 if wrong else 200)


def _judge(request: HttpRequest, response: Response) -> None:
    act, user = request.POST.get("act"), request.user
    if act == "promote":
        check_may(request, "add_demonstration")
        judging.promote(response_id=response.pk, by=user, text=request.POST.get("text"))
    elif act == "bad":
        judging.mark_bad(
            response_id=response.pk,
            because=request.POST.get("because", ""),
            remark=request.POST.get("note", ""),
            by=user,
        )
    elif act == "undo":
        if response.demonstration_id:
            check_may(request, "change_demonstration")
        judging.undo(response_id=response.pk, by=user)
    else:
        raise NothingChosen("Choose what is to be done with the response.")


def _shown(request: HttpRequest, trial: Trial, **wrong) -> HttpResponse:
    context = {**admin.site.each_context(request), **_of_trial(request, trial), **wrong}
    return render(request, "admin/generation/set/trial.html", context, status=422 if wrong else 200)


def _of_trial(request: HttpRequest, trial: Trial) -> dict:
    """What the page shows, in as many queries for one response as for fifty."""
    user = request.user
    responses = list(trial.responses.select_related("demonstration", "judged_by"))
    members = list(Demonstration.objects.filter(group=trial.group_id, label=trial.label).order_by("retired_at", "text"))
    # A promotion that was undone is as none: its response would only be near to itself.
    nears = [member for member in members if member.is_in_use or member.retired_reason != judging.UNDONE]
    cards = [
        {
            "response": response,
            "near": sets.near_to(response.text, (member for member in nears if member.pk != response.demonstration_id)),
        }
        for response in responses
    ]
    return {
        "title": f"Responses to a prompt of {trial.group}, {trial.label}",
        "trial": trial,
        "group": trial.group,
        "label": trial.label,
        "is_toxic": trial.label == Label.TOXIC,
        "prompt_lines": prompt_lines(trial.prompt.text),
        "cards": cards,
        "naming": sum(response.mentions_group for response in responses),
        "promoted": sum(response.verdict == "promoted" for response in responses),
        "set": sets.SetSummary(
            group=trial.group, label=trial.label, in_use=sum(member.is_in_use for member in members)
        ),
        "missing": trial.count - len(responses),
        "texts_shown": texts_shown(request),
        "may_ask": user.has_perm("generation.add_trial"),
        "may_judge": user.has_perm("generation.change_response"),
        "may_promote": user.has_perm("generation.add_demonstration") and may_fill(label=trial.label, by=user),
        "reasons": BadBecause.choices,
        "longest_text": LONGEST_TEXT,
        "longest_note": LONGEST_NOTE,
    }
