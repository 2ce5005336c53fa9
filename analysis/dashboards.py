"""What the overview shows at a glance: exact while it is little, from PostgreSQL's estimates where it is much."""

from django.db import connection, models
from django.http import HttpRequest

from annotator.models import HIT, Annotation, Assignment, Worker
from generation.admin import COUNTED_UP_TO, count_up_to, up_to_the_bound
from generation.models import Generation, GenerationRun


def overview(request: HttpRequest, context: dict) -> dict:
    """The figures of the overview page, in the order of the flow."""
    statements, hits, annotations, workers = about(Generation, HIT, Annotation, Worker)
    context["tiles"] = [
        ("Runs at work", up_to_the_bound(GenerationRun.objects.open())),
        ("Statements", statements),
        ("HITs", hits),
        ("HITs with a free place", up_to_the_bound(HIT.objects.assignable().to_judge())),
        ("People at work now", up_to_the_bound(Assignment.objects.accepted())),
        ("Annotations", annotations),
        ("Workers", workers),
    ]
    return context


def about(*tables: type[models.Model]) -> list[str]:
    """How many rows each table has: counted up to the bound, and beyond as PostgreSQL last estimated it."""
    names = [model._meta.db_table for model in tables]
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, reltuples::bigint FROM pg_class WHERE oid = ANY(%s::regclass[])", [names])
        estimates = dict(cursor.fetchall())
    return [_about(model, estimates[name]) for model, name in zip(tables, names, strict=True)]


def _about(model: type[models.Model], estimate: int) -> str:
    number = count_up_to(COUNTED_UP_TO + 1, model._base_manager.all())
    if number <= COUNTED_UP_TO:
        return f"{number:,}"
    # A table is estimated a minute or so after it has grown.
    return f"about {estimate:,}" if estimate > COUNTED_UP_TO else f"more than {COUNTED_UP_TO:,}"
