"""All that is needed to repeat a run, and repeating it: the same statements from the same seed, models and sets."""

from collections.abc import Mapping, Sequence

from generation import runs
from generation.cells import Cell
from generation.models import GenerationCell, GenerationRun, Label, Method, RunMethod, TargetGroup
from generation.parameters import AliceParameters, TopKParameters, check_count

FORMAT = "humanval run 1"


class NotRepeatable(ValueError):
    """What the run drew its prompts from is not known, or the file is no recipe."""


def recipe(run: GenerationRun) -> dict:
    """The run as JSON: what decides its statements, and what it was worked on with. Raises ``NotRepeatable``."""
    return {
        "format": FORMAT,
        "run": run.pk,
        "method": run.method,
        "parameters": run.parameters,
        "language_model": run.language_model,
        "classifier": run.classifier,
        "precision": run.precision,
        "seed": run.seed,
        "chunk_size": chunk_size(run),
        "environment": run.environment,
        "cells": [
            {
                "group": cell.group.slug,
                "label": cell.label,
                "places": cell.places,
                "demonstrations": cell.demonstrations,
                "naming_words": cell.naming_words,
            }
            for cell in _frozen_cells(run)
        ],
    }


def repeat_run(*, run: GenerationRun, created_by=None, wake: bool = True) -> GenerationRun:
    """Start a run with the seed, parameters, models, sets and chunks of another one. Raises ``NotRepeatable``."""
    return repeat_recipe(recipe(run), created_by=created_by, repeats=run, wake=wake)


def repeat_recipe(
    recipe: Mapping, *, created_by=None, repeats: GenerationRun | None = None, wake: bool = True
) -> GenerationRun:
    """Start the run that a recipe describes, maybe one of another Humanval's.

    Raises ``NotRepeatable`` for what is no recipe, and ``ValueError`` for one that cannot be done here.
    """
    if not isinstance(recipe, Mapping) or recipe.get("format") != FORMAT:
        raise NotRepeatable(f"This describes no run: its “format” must be {FORMAT!r}. Download it from a run's page.")
    groups = {group.slug: group for group in TargetGroup.objects.all()}
    try:
        if missing := sorted({cell["group"] for cell in recipe["cells"]} - groups.keys()):
            raise NotRepeatable(f"There is no group {', '.join(map(repr, missing))} here. Add it first, by this slug.")
        order = {name: recipe[name] for name in ("method", "language_model", "classifier", "precision")}
        order |= {"seed": _whole(recipe, "seed"), "chunk_size": _whole(recipe, "chunk_size")}
        order |= _parameters(recipe["parameters"], RunMethod(order["method"]).methods)
        cells = [
            Cell(
                groups[cell["group"]],
                Label(cell["label"]),
                _whole(cell, "places"),
                demonstrations=tuple(cell["demonstrations"]),
                naming_words=cell["naming_words"],
            )
            for cell in recipe["cells"]
        ]
    except KeyError as missing:
        raise NotRepeatable(f"The description of the run is not whole: it lacks {missing}.") from missing
    except (AttributeError, TypeError) as error:
        raise NotRepeatable(f"The description of the run is not as it was downloaded: {error}.") from error
    return runs.start_run(cells=cells, repeats=repeats, created_by=created_by, wake=wake, **order)


def differences(run: GenerationRun) -> list[tuple[str, str, str]]:
    """What a repetition was worked on with otherwise than the run it repeats: name, then, now."""
    if run.repeats is None or not run.environment:
        return []
    then, now = run.repeats.environment, run.environment
    return [
        (name, str(then.get(name, "–")), str(now.get(name, "–")))
        for name in dict.fromkeys([*then, *now])
        if then.get(name) != now.get(name)
    ]


def chunk_size(run: GenerationRun) -> int:
    """Into how large parts its cells were cut, which decides the statements' seeds."""
    return max(run.chunks.filter(index__lt=run.cells.count()).values_list("size", flat=True))


def _frozen_cells(run: GenerationRun) -> list[GenerationCell]:
    """The run's cells in the order of their first chunks, which decides the statements' seeds, too."""
    cells = {(cell.group_id, cell.label): cell for cell in run.cells.select_related("group")}
    if not all(cell.is_frozen for cell in cells.values()):
        raise NotRepeatable(
            f"What {run} drew its prompts from was not kept yet when it ended, so that it cannot be repeated exactly. "
            "Start a new run with its settings."
        )
    first_chunks = run.chunks.filter(index__lt=len(cells)).order_by("index")
    return [cells[key] for key in first_chunks.values_list("group_id", "label")]


def _whole(values: Mapping, name: str) -> int:
    check_count(name, values[name], least=0)
    return values[name]


def _parameters(
    parameters: Mapping[str, Mapping], methods: Sequence[Method]
) -> dict[str, TopKParameters | AliceParameters]:
    kinds = {Method.TOPK: TopKParameters, Method.ALICE: AliceParameters}
    return {
        method.value: kinds[method](
            **{name: value for name, value in parameters[method].items() if name != "direction"}
        )
        for method in methods
    }
