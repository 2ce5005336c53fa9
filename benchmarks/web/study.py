"""What has to be done inside Django, each in a process of its own: ``python -m benchmarks.web.study WHAT``.

``prepare`` makes the database and a study and prints the annotators' invite links, ``analyze`` lets PostgreSQL
look at what it holds, as it does by itself within a minute, and ``check`` prints what is stored. ``profile`` takes
annotators through some cycles in this process and prints where the time went.
"""

import argparse
import json
from datetime import timedelta
from decimal import Decimal
from itertools import cycle, product
from urllib.parse import urlsplit

import django
from django.core.management import call_command

django.setup()

from django.db import connection  # noqa: E402 - models can be imported once Django is set up
from django.db.models import Count, TextField  # noqa: E402
from django.urls import reverse  # noqa: E402
from django.utils import timezone  # noqa: E402

from annotator import consenting, inviting, publishing  # noqa: E402
from annotator.models import Annotation, ConsentForm, HITType  # noqa: E402
from benchmarks.web.annotators import Annotator  # noqa: E402
from benchmarks.web.browser import Browser  # noqa: E402
from benchmarks.web.models import Fact  # noqa: E402
from benchmarks.web.profiling import InProcess, profile, repeat  # noqa: E402
from benchmarks.web.texts import FACTS, statements  # noqa: E402
from generation.models import Generation, Label, Method, TargetGroup  # noqa: E402

PLACES = 3
ROUNDS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["prepare", "analyze", "check", "profile"])
    parser.add_argument("--annotators", type=int, default=1)
    parser.add_argument("--statements", type=int, default=1)
    parser.add_argument("--cycles", type=int, default=1)
    options = parser.parse_args()
    if options.what == "prepare":
        print(json.dumps(prepare(annotators=options.annotators, count=options.statements)))
    elif options.what == "analyze":
        analyze()
    elif options.what == "check":
        print(json.dumps(stored()))
    else:
        profile_cycles(annotators=options.annotators, count=options.statements, cycles=options.cycles)


def prepare(*, annotators: int, count: int) -> dict:
    """Make everything that the load needs; return the paths of the annotators' invite links and of accepting."""
    call_command("migrate", run_syncdb=True, verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    Fact.objects.bulk_create(Fact(number=number, text=f"fact {number} of {FACTS}") for number in range(FACTS))
    parts = (field.name for field in ConsentForm._meta.fields if isinstance(field, TextField))
    form = ConsentForm.objects.create(
        version=1, title="Before you begin", published_at=timezone.now(), **dict.fromkeys(parts, "You judge texts.")
    )
    hit_type = publish(count)
    invitations = [inviting.invite() for _ in range(annotators)]
    for invitation in invitations:
        consenting.give_consent(worker=invitation.worker, form=form)
    analyze()
    return {
        "invite": [urlsplit(inviting.link(invitation)).path for invitation in invitations],
        "accept": reverse("annotator:accept", args=[hit_type.pk]),
    }


def publish(count: int) -> HITType:
    """Publish a study of so many statements that stops nobody."""
    hit_type = HITType.objects.create(
        title="Is this statement harmful?",
        description="Read a text and answer nine questions.",
        max_assignments=PLACES,
        daily_cap=1_000_000,
        break_after=timedelta(days=100),
        wage_floor=Decimal(0),
    )
    kinds = cycle(product(TargetGroup.objects.all(), Label))
    generations = Generation.objects.bulk_create(
        Generation(text=text, group=group, label=label, method=Method.TOPK)
        for text, (group, label) in zip(statements(count), kinds, strict=False)
    )
    publishing.publish(hit_type=hit_type, generations=generations)
    return hit_type


def analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def stored() -> dict[str, int]:
    """How many annotations there are, and how many HITs have more counted ones than places."""
    counted = Annotation.objects.counted().order_by().values("assignment__hit").annotate(labels=Count("pk"))
    return {"annotations": Annotation.objects.count(), "overfull": counted.filter(labels__gt=PLACES).count()}


def profile_cycles(*, annotators: int, count: int, cycles: int) -> None:
    """Print where the time goes once the annotators have been at work for some rounds."""
    paths = prepare(annotators=annotators, count=count)
    site, texts = InProcess(), frozenset(statements(count))
    at_work = [
        Annotator(Browser(site.exchange), invite_path=path, accept_path=paths["accept"], statements=texts, seed=seed)
        for seed, path in enumerate(paths["invite"])
    ]
    for annotator in at_work:
        repeat(annotator.cycle, ROUNDS)
    analyze()
    profile(site, at_work, cycles=cycles)


if __name__ == "__main__":
    main()
