"""The floor: the least that a Django page which stores something does, in the same server and settings."""

import random

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from benchmarks.web.models import Fact, Visit
from benchmarks.web.texts import FACTS


@csrf_exempt
@require_POST
def floor(request: HttpRequest) -> HttpResponse:
    """One indexed read and one insert."""
    fact = Fact.objects.get(number=random.randrange(FACTS))
    Visit.objects.create(fact_number=fact.number)
    return HttpResponse(fact.text, content_type="text/plain")
