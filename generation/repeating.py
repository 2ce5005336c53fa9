"""All that is needed to repeat a run, and repeating it: the same statements from the same seed, models and sets."""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import fields

from django.db.models import TextChoices

from generation import runs
from generation.cells import MOST_STATEMENTS, Cell
from generation.demonstrating import NotADemonstration, set_name, tidy
from generation.models import GenerationCell, GenerationRun, Label, Method, Precision, RunMethod, TargetGroup
from generation.parameters import AliceParameters, TopKParameters, check_count

FORMAT = "humanval run 1"
LONGEST_NAMING_WORDS = GenerationCell._meta.get_field("naming_words").max_length
LARGEST_NUMBER = 2**31 - 1


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
        if missing := sorted({_text(cell, "group") for cell in recipe["cells"]} - groups.keys()):
            raise NotRepeatable(f"There is no group {', '.join(map(repr, missing))} here. Add it first, by this slug.")
        method = RunMethod(_one_of(RunMethod, recipe, "method"))
        order = {
            "method": method,
            "precision": _one_of(Precision, recipe, "precision"),
            "language_model": _text(recipe, "language_model", most=runs.LONGEST_NAME),
            "classifier": _text(recipe, "classifier", most=runs.LONGEST_NAME),
            "seed": _whole(recipe, "seed", most=runs.SEED_LIMIT - 1),
            "chunk_size": _whole(recipe, "chunk_size", least=1, most=runs.LARGEST_CHUNK),
            **_parameters(recipe["parameters"], method.methods),
        }
        cells = [_cell(cell, groups[cell["group"]]) for cell in recipe["cells"]]
        if repeats is None:
            _check_demonstrations(cells)
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
            f"What {run} drew its prompts from was not kept when it was started, so that it cannot be repeated "
            "exactly. Start a new run with its settings."
        )
    first_chunks = run.chunks.filter(index__lt=len(cells)).order_by("index")
    return [cells[key] for key in first_chunks.values_list("group_id", "label")]


def _cell(stated: Mapping, group: TargetGroup) -> Cell:
    label = Label(_one_of(Label, stated, "label"))
    texts = stated["demonstrations"]
    if not isinstance(texts, list | tuple):
        raise NotRepeatable(f"The demonstrations of {set_name(group, label)} must be a list of texts.")
    return Cell(
        group,
        label,
        _whole(stated, "places", least=1, most=MOST_STATEMENTS),
        demonstrations=tuple(texts),
        naming_words=_text(stated, "naming_words", most=LONGEST_NAMING_WORDS),
    )


def _check_demonstrations(cells: Sequence[Cell]) -> None:
    """Raise ``NotRepeatable`` unless the texts of a file could stand in sets here."""
    for cell in cells:
        of = set_name(cell.group, cell.label)
        for number, text in enumerate(cell.demonstrations, start=1):
            if fault := _why_no_demonstration(text):
                raise NotRepeatable(f"Demonstration {number} of {of}: {fault}")  # not the text: it may be toxic
        if len(set(cell.demonstrations)) < len(cell.demonstrations):
            raise NotRepeatable(f"A demonstration of {of} is there twice. Take one of them out.")


def _why_no_demonstration(text: object) -> str:
    if not isinstance(text, str) or not _can_be_stored(text):
        return "It must be a text that can be stored."
    try:
        return "" if tidy(text) == text else "It has blanks or a hyphen around it. Take them away."
    except NotADemonstration as fault:
        return str(fault)


def _text(values: Mapping, name: str, *, most: int | None = None) -> str:
    value = values[name]
    if not isinstance(value, str) or not _can_be_stored(value):
        raise NotRepeatable(f"{name} must be a text that can be stored, not {reprlib.repr(value)}.")
    if most is not None and len(value) > most:
        raise NotRepeatable(f"{name} has {len(value)} characters. At most {most} can be stored.")
    return value


def _can_be_stored(text: str) -> bool:
    """JSON can say halves of characters, and the null character, which databases cannot."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _whole(values: Mapping, name: str, *, least: int = 0, most: int) -> int:
    check_count(name, values[name], least=least, most=most)
    return values[name]


def _one_of(choices: type[TextChoices], values: Mapping, name: str) -> str:
    if values[name] not in choices.values:
        raise NotRepeatable(f"{name} must be one of {', '.join(choices.values)}, not {reprlib.repr(values[name])}.")
    return values[name]


def _parameters(
    parameters: Mapping[str, Mapping], methods: Sequence[Method]
) -> dict[str, TopKParameters | AliceParameters]:
    kinds = {Method.TOPK: TopKParameters, Method.ALICE: AliceParameters}
    stated = {
        method: {name: value for name, value in parameters[method].items() if name != "direction"} for method in methods
    }
    for method, values in stated.items():
        defaults = {field.name: field.default for field in fields(kinds[method])}
        if unknown := sorted(values.keys() - defaults.keys()):
            raise NotRepeatable(f"{method.label} has no parameter {reprlib.repr(unknown[0])}.")
        for name, value in values.items():
            _check_kind(name, value, like=defaults[name])
    return {method.value: kinds[method](**values) for method, values in stated.items()}


def _check_kind(name: str, value: object, *, like: object) -> None:
    """Raise ``NotRepeatable`` unless a value is of the kind of the default; its bounds are checked elsewhere."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER
    if isinstance(like, bool):
        if not isinstance(value, bool):
            raise NotRepeatable(f"{name} must be true or false, not {reprlib.repr(value)}.")
    elif isinstance(like, int | float) and not is_number:
        raise NotRepeatable(f"{name} must be a number of at most {LARGEST_NUMBER}, not {reprlib.repr(value)}.")
