"""Coming in: by an invite link, by the link of a panel; the study home."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from annotator import inviting
from annotator.join_form import JoinForm
from annotator.models import Invitation, Panel
from annotator.reads import earnings, offers_for
from annotator.views.access import SESSION_KEY, by_button, for_worker, problem, with_consent, worker_of

REFUSAL_STATUS = {inviting.InvitationUnknown: 404, inviting.InvitationRevoked: 410, inviting.PanelFull: 403}


@require_safe
@never_cache
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    try:
        accepted = inviting.redeem(token=token)
    except inviting.InvitationRefused as refused:
        return _refusal(request, refused)
    _let_in(request, accepted)
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
    context = {"offers": offers_for(request.worker), "earnings": earnings(request.worker)}
    return render(request, "annotator/home.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """The link of a panel: GET says what it is and makes nothing, POST makes a worker and lets them in."""
    try:
        panel = inviting.panel_of(token=token)
        own = Invitation.objects.filter(pk=request.session.get(SESSION_KEY), worker__panel=panel).first()
        if own is None:
            return _join(request, panel)
    except inviting.InvitationRefused as refused:
        return _refusal(request, refused)
    if request.method == "POST":
        return _joined(request)
    request.worker = worker_of(request)
    if request.worker and "joined" in request.GET:
        return render(request, "annotator/joined.html", {"link": inviting.link(own)})
    return redirect("annotator:home")


@by_button
def leave(request: HttpRequest) -> HttpResponse:
    """Log this browser out."""
    request.session.flush()
    return redirect("annotator:home")


def _join(request: HttpRequest, panel: Panel) -> HttpResponse:
    """For who has not joined in this browser: the page with the button, or what pressing it does."""
    if request.method != "POST":
        inviting.refuse_closed(panel)
        pay_reference = request.GET.get("participant") or request.GET.get("PROLIFIC_PID")
        return _join_page(request, JoinForm(panel=panel, initial={"pay_reference": pay_reference}))
    form = JoinForm(request.POST, panel=panel)
    if not form.is_valid():
        return _join_page(request, form)
    try:
        invitation = inviting.join(
            panel=panel, pay_reference=form.cleaned_data["pay_reference"], key=form.cleaned_data["ticket"]
        )
    except inviting.JoinedBefore as refused:
        form.add_error("pay_reference", str(refused))
        return _join_page(request, form)
    _let_in(request, invitation)
    return _joined(request)


def _joined(request: HttpRequest) -> HttpResponse:
    """To the page that shows the personal link; without the question mark the panel's link leads home."""
    return redirect(f"{request.path}?joined=yes")


def _join_page(request: HttpRequest, form: JoinForm) -> HttpResponse:
    return render(request, "annotator/join.html", {"form": form}, status=422 if form.is_bound else 200)


def _let_in(request: HttpRequest, invitation: Invitation) -> None:
    """Log the browser in, with a new session key: nobody who planted one comes in as well."""
    request.session.cycle_key()
    request.session[SESSION_KEY] = invitation.pk


def _refusal(request: HttpRequest, refused: inviting.InvitationRefused) -> HttpResponse:
    return problem(request, str(refused), status=REFUSAL_STATUS[type(refused)])
