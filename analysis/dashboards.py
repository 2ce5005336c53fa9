"""What the workspace's pages show at a glance."""

from django.db.models import Sum
from django.http import HttpRequest

from annotator.models import HIT, Assignment, Worker
from generation.models import Generation, GenerationRun


def overview(request: HttpRequest, context: dict) -> dict:
    """The counts of the overview page, in the order of the flow."""
    free_places = HIT.objects.assignable().to_judge().aggregate(free=Sum("free_places", default=0))["free"]
    context["tiles"] = [
        ("Runs at work", GenerationRun.objects.open().count()),
        ("Statements", Generation.objects.count()),
        ("HITs", HIT.objects.count()),
        ("Places free", free_places),
        ("People at work now", Assignment.objects.accepted().count()),
        ("Annotations submitted", Assignment.objects.submitted().count()),
        ("Workers", Worker.objects.count()),
    ]
    return context
