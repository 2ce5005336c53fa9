"""Assignments, and the queue in which submitted ones are reviewed."""

from collections.abc import Callable
from dataclasses import dataclass

from django import forms
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from unfold.admin import StackedInline
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from annotator import flags, reviewing
from annotator.admin.telling import tell
from annotator.evidence import RECENT, Evidence, evidence_on, tallies
from annotator.models import Annotation, Assignment, AssignmentStatus, HITType, Worker
from annotator.questions import QUESTIONS
from annotator.reviewing import Done
from generation.admin import COUNTED_UP_TO, BoundedPaginator, ReadOnlyAdmin, blurred, count_up_to

A_PAGE = 20
LOOKED_THROUGH = 1000
"""In so much work flagged pieces are looked for: flags are worked out, not stored."""
LONGEST_REASON = 1000
DIGITS_OF_AN_ID = 18
NOTHING_CHOSEN = "Choose the work first: tick the boxes beside it, or “Select all on this page”."
UNKNOWN_WORKER = "There is no worker with this pseudonym."

STATES = {
    "to_review": ("To review", AssignmentStatus.SUBMITTED),
    "approved": ("Approved", AssignmentStatus.APPROVED),
    "rejected": ("Rejected", AssignmentStatus.REJECTED),
}


@dataclass(frozen=True)
class Act:
    """A button of the review page: what it says, what is said when it is done, and what it does."""

    label: str
    done: str
    do: Callable[..., Done]


ACTS = {
    "reject": Act("Reject", "Rejected", lambda ids, by, reason: reviewing.reject(ids=ids, by=by, reason=reason)),
    "approve": Act("Approve", "Approved", lambda ids, by, reason: reviewing.approve(ids=ids, by=by)),
    "approve_after_all": Act(
        "Approve after all",
        "Approved after all",
        lambda ids, by, reason: reviewing.approve_after_all(ids=ids, by=by),
    ),
    "reopen": Act("Reopen the place", "Places reopened", lambda ids, by, reason: reviewing.reopen(ids=ids)),
}
# Return in the field for the reason presses the first button: rejecting comes first, which needs the reason.
ACTS_IN_STATE = {
    "to_review": ["reject", "approve", "reopen"],
    "approved": ["reopen"],
    "rejected": ["approve_after_all"],
}


class QueueForm(forms.Form):
    """Which work is looked at: the filters in the address."""

    state = forms.ChoiceField(
        choices=[(state, label) for state, (label, _) in STATES.items()], required=False, widget=forms.HiddenInput
    )
    study = forms.ModelChoiceField(
        HITType.objects.filter(imported=False),
        required=False,
        empty_label="All studies",
        widget=UnfoldAdminSelectWidget,
    )
    worker = forms.CharField(
        required=False, max_length=20, widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "pseudonym"})
    )
    flagged = forms.BooleanField(required=False, label="Flagged only")

    def clean_worker(self) -> Worker | None:
        name = self.cleaned_data["worker"]
        worker = Worker.objects.filter(pseudonym__iexact=name).first() if name else None
        if name and worker is None:
            raise forms.ValidationError(UNKNOWN_WORKER)
        return worker

    @property
    def chosen_state(self) -> str:
        return (self.is_valid() and self.cleaned_data["state"]) or "to_review"

    def queue(self) -> QuerySet[Assignment]:
        """The work that is asked for: what waits in the order it came, what is decided with the newest first."""
        if not self.is_valid():
            return Assignment.objects.none()
        # Imported work was decided on where it was done.
        queue = Assignment.objects.filter(status=STATES[self.chosen_state][1], hit__hit_type__imported=False)
        if study := self.cleaned_data["study"]:
            queue = queue.filter(hit__hit_type=study)
        if worker := self.cleaned_data["worker"]:
            queue = queue.filter(worker=worker)
        return queue.order_by("submitted_at", "pk") if self.chosen_state == "to_review" else queue.order_by("-pk")


class ActForm(forms.Form):
    """What is to be done with the chosen work."""

    act = forms.ChoiceField(choices=[(name, act.label) for name, act in ACTS.items()])
    reason = forms.CharField(
        required=False,
        max_length=LONGEST_REASON,
        widget=UnfoldAdminTextInputWidget(attrs={"placeholder": "The worker reads it."}),
        label="Reason for rejecting",
    )

    def __init__(self, data, *, chosen: list[int]) -> None:
        super().__init__(data)
        self.chosen = chosen

    def add_error(self, field: str | None, error) -> None:
        """Besides, the page opens at the field for the reason if something is wrong with it."""
        super().add_error(field, error)
        if field == "reason":
            self.fields["reason"].widget.attrs["autofocus"] = True

    def clean(self) -> dict:
        if not self.chosen:
            self.add_error(None, NOTHING_CHOSEN)
        return self.cleaned_data

    def act_on_them(self, request: HttpRequest) -> bool:
        """Do what is asked for and say what was done; or return False, with the errors in the form."""
        if not self.is_valid():
            return False
        act, reason = ACTS[self.cleaned_data["act"]], self.cleaned_data["reason"]
        try:
            done = act.do(self.chosen, request.user, reason)
        except reviewing.ReasonMissing as missing:
            self.add_error("reason", str(missing))
            return False
        tell(request, act.done, done)
        note_in_history(request, done, f"{act.done}: {reason}" if act.label == "Reject" else f"{act.done}.")
        return True


class AnnotationInline(StackedInline):
    """What was submitted, below its assignment."""

    model = Annotation
    can_delete = False
    extra = 0
    fields = [
        "not_understood",
        *(question.key for question in QUESTIONS),
        "blurred_groups",
        "blurred_framing",
        "created_at",
    ]
    readonly_fields = fields

    @admin.display(description="other groups")
    def blurred_groups(self, annotation):
        return blurred(annotation.other_groups) if annotation.other_groups else "–"

    @admin.display(description="other framing")
    def blurred_framing(self, annotation):
        return blurred(annotation.other_framing) if annotation.other_framing else "–"

    def has_add_permission(self, request, obj=None) -> bool:
        return False


@admin.register(Assignment)
class AssignmentAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "study", "status", "holds_place", "accepted_at", "submitted_at", "decided_at"]
    list_filter = ["status", "hit__hit_type"]
    list_select_related = ["worker", "hit__hit_type"]
    search_fields = ["worker__pseudonym"]
    fields = [
        "statement", ("worker", "hit"), ("status", "holds_place"), ("accepted_at", "deadline"),
        ("submitted_at", "given_back_at"), ("decided_at", "decided_by"), "rejection_reason", "reward",
        "answers_deleted_at",
    ]  # fmt: skip
    readonly_fields = ["statement"]
    inlines = [AnnotationInline]

    @admin.display(ordering="hit__hit_type")
    def study(self, assignment) -> str:
        return assignment.hit.hit_type.title

    @admin.display
    def statement(self, assignment):
        return blurred(assignment.hit.generation.text)

    def get_urls(self):
        return [path("review/", self.admin_site.admin_view(self.review), name="annotator_review"), *super().get_urls()]

    def review(self, request: HttpRequest) -> HttpResponse:
        """The queue of submitted work; POST decides on what is ticked and comes back to the same address."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        may_decide = request.user.has_perm("annotator.change_assignment")
        act_form = None
        if request.method == "POST":
            if not may_decide:
                raise PermissionDenied
            act_form = ActForm(request.POST, chosen=chosen_ids(request))
            if act_form.act_on_them(request):
                return redirect(_address_with_nothing_selected(request))
        context = {
            **self.admin_site.each_context(request),
            "title": "Review",
            "may_decide": may_decide,
            **_queue_shown(QueueForm(request.GET), request.GET.get("page")),
            "act_form": act_form or ActForm(None, chosen=[]),
            "all_chosen": act_form is None and request.GET.get("select") == "all",
            "rules": {"in_a_row": flags.IN_A_ROW, "part": flags.TOO_FAST_PART, "others": flags.ENOUGH_OTHERS},
            "questions": QUESTIONS,
        }
        return render(request, "admin/annotator/assignment/review.html", context, status=422 if act_form else 200)


def waiting(request: HttpRequest) -> str:
    """How much there is to review, for the sidebar."""
    number = count_up_to(COUNTED_UP_TO + 1, Assignment.objects.to_review())
    return f"{number:,}" if number <= COUNTED_UP_TO else f"{COUNTED_UP_TO:,}+"


def _address_with_nothing_selected(request: HttpRequest) -> str:
    query = request.GET.copy()
    query.pop("select", None)
    return f"{request.path}?{query.urlencode()}"


def _queue_shown(form: QueueForm, number: str | None) -> dict:
    queue = form.queue().values_list("pk", flat=True)
    flagged_only = form.is_valid() and form.cleaned_data["flagged"]
    page, shown = _flagged_page(queue, number) if flagged_only else _page(queue, number)
    state = form.chosen_state
    return {
        "queue_form": form,
        "state": state,
        "states": [(name, label) for name, (label, _) in STATES.items()],
        "acts": [(name, ACTS[name].label) for name in ACTS_IN_STATE[state]],
        "page": page,
        "evidence": shown,
        "looked_through": LOOKED_THROUGH if flagged_only and queue[LOOKED_THROUGH:].exists() else None,
        "tallies": tallies({evidence.assignment.worker_id for evidence in shown}),
        "recent": RECENT,
    }


def _page(queue: QuerySet, number: str | None) -> tuple[Page, list[Evidence]]:
    page = BoundedPaginator(queue, A_PAGE).get_page(number)
    return page, evidence_on(page)


def _flagged_page(queue: QuerySet, number: str | None) -> tuple[Page, list[Evidence]]:
    flagged = [evidence for evidence in evidence_on(queue[:LOOKED_THROUGH]) if evidence.flags]
    page = Paginator(flagged, A_PAGE).get_page(number)
    return page, list(page)


def chosen_ids(request: HttpRequest) -> list[int]:
    """The ids that were ticked; what is none, as only somebody who forges the form sends, is passed over."""
    return [int(pk) for pk in request.POST.getlist("ids") if pk.isdecimal() and len(pk) <= DIGITS_OF_AN_ID]


def note_in_history(request: HttpRequest, done: Done, words: str) -> None:
    """Write down in each assignment's history who did what."""
    changed = Assignment.objects.filter(pk__in=done.changed).select_related("worker", "hit")
    LogEntry.objects.log_actions(request.user.pk, changed, CHANGE, words)
