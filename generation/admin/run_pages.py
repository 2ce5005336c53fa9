"""What a run's page shows of it: how far each cell is, how fast it goes, samples, and all it takes to repeat it."""

from django.http import HttpRequest

from generation.admin.texts import blurred, duration
from generation.forms import in_words
from generation.models import Generation, GenerationRun
from generation.near_duplicates import DEFINITION
from generation.repeating import differences

SAMPLES = 6


def at_work(request: HttpRequest, run: GenerationRun) -> dict:
    """The part that renews itself."""
    progress = run.progress()
    return {
        "original": run,
        "progress": progress,
        "time_left": None if progress["seconds_left"] is None else duration(progress["seconds_left"]),
        "took": duration((run.ended_at - run.started_at).total_seconds()) if run.ended_at and run.started_at else None,
        "may_steer": may_steer(request),
        "cells": table_of(run),
    }


def settled(request: HttpRequest, run: GenerationRun) -> dict:
    """What does not change while the run works: how it writes, and how to have it again."""
    cells = list(run.cells.only("label", "demonstrations", "run"))
    labels = sorted({cell.label for cell in cells})
    return {
        "methods": run.methods,
        "near_duplicates_are": DEFINITION,
        "may_read": may_read(request),
        **(written_last(run) if may_read(request) else {}),
        "ran_on": [(name.replace("_", " "), value) for name, value in run.environment.items()],
        "parameters": [
            (method.label, in_words(run.parameters.get(method, {}), labels=labels)) for method in run.methods
        ],
        "differences": [(name.replace("_", " "), then, now) for name, then, now in differences(run)],
        "is_repeatable": all(cell.is_frozen for cell in cells),
        "may_start": request.user.has_perm("generation.add_generationrun"),
        "may_take_sets": may_take_sets(request),
    }


def table_of(run: GenerationRun) -> list[dict]:
    """A row a cell: of each method how far it is, how fast, and what was thrown away or is there nearly twice."""
    methods = len(run.methods)
    cells = run.cells.select_related("group").defer("demonstrations")
    return [
        {
            "group": cell.group,
            "label": cell.get_label_display(),
            "places": cell.places,
            "stored": [cell.stored // methods for _ in run.methods],
            "statements_a_second": cell.stored / cell.decoding_seconds if cell.decoding_seconds else None,
            "empty": cell.empty,
            "duplicate": cell.duplicate,
            "copy": cell.copy,
            "near_duplicate": cell.near_duplicate,
        }
        for cell in cells.order_by("group__position", "group__slug", "label")
    ]


def written_last(run: GenerationRun) -> dict:
    """A few statements, unreadable until somebody asks for them."""
    return {
        "original": run,
        "samples": [
            (
                f"{generation.group}, {generation.get_label_display()}, {generation.get_method_display()}",
                blurred(generation.text),
            )
            for generation in samples_of(run)
        ],
    }


def samples_of(run: GenerationRun) -> list[Generation]:
    """One statement of each of the chunks stored last."""
    chunks = [chunk.pk for chunk in run.last_finished_chunks()[:SAMPLES]]
    first = Generation.objects.filter(chunk__in=chunks, position=0).select_related("group")
    return sorted(first, key=lambda generation: (chunks.index(generation.chunk_id), generation.pk))[:SAMPLES]


def may_steer(request: HttpRequest) -> bool:
    return request.user.has_perm("generation.change_generationrun")


def may_read(request: HttpRequest) -> bool:
    return request.user.has_perm("generation.view_generation")


def may_take_sets(request: HttpRequest) -> bool:
    """Whoever takes a run away takes the demonstrations of its sets along."""
    return request.user.has_perm("generation.view_demonstration")
