"""What a worker did and earned."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from annotator import own_work as own
from annotator import wages
from annotator.durations import in_words
from annotator.models import Assignment, AssignmentStatus
from annotator.reads import earnings
from annotator.views.access import for_worker

ROWS_A_PAGE = 25


@for_worker
@require_safe
def own_work(request: HttpRequest) -> HttpResponse:
    """Approved, pending and rejected work with reasons, earnings and time."""
    page = Paginator(own.assignments_of(request.worker), ROWS_A_PAGE).get_page(request.GET.get("page"))
    bonuses = own.bonuses_of(request.worker)
    context = {
        "earnings": earnings(request.worker),
        "tally": own.tally(request.worker),
        "wage": wages.of_worker(request.worker),
        "enough_to_tell": wages.ENOUGH_TO_TELL,
        "page": page,
        "rows": [_row(assignment) for assignment in page],
        "bonuses": bonuses[: own.NEWEST_BONUSES],
        "older_bonuses": max(0, bonuses.count() - own.NEWEST_BONUSES),
    }
    return render(request, "annotator/own_work.html", context)


def _row(assignment: Assignment) -> dict:
    return {
        "assignment": assignment,
        "is_open": assignment.status == AssignmentStatus.ACCEPTED and assignment.deadline > timezone.now(),
        "states": own.state_in_words(assignment),
        "time_taken": in_words(assignment.time_taken) if assignment.time_taken else "",
    }
