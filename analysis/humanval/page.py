"""What the page of a HUMANVAL set shows: a constant number of queries, whatever the set and its study hold."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import timedelta

from analysis.exports.filtering import OF_STATEMENTS, FilterForm
from analysis.humanval import comparing, freezing
from analysis.humanval.pool import METHODS, Share
from analysis.humanval.wording import PARTS, bin_in_words, group_names, notes
from analysis.models import HumanvalProof, HumanvalSet, HumanvalState
from annotator import watching
from annotator.models import HITType
from generation.models import Label, Method, Reading

PROBLEMS_SHOWN = 20
COLUMNS = [f"{label.label}, {method.label}" for label in Label for method in METHODS]
YES_NO = {True: "yes", False: "no"}


def about(humanval_set: HumanvalSet) -> dict:
    """The context of the page's template."""
    proof = humanval_set.proofs.first()
    context = {
        "set": humanval_set,
        "filters": filters_in_words(humanval_set),
        "is_wanted": humanval_set.state == HumanvalState.WANTED,
        "is_drawn": humanval_set.is_drawn,
        "progress": progress_in_words(humanval_set),
        "proof": proof,
        "is_proving": is_unfinished(proof),
        "problems": (proof.found or {}).get("problems", [])[:PROBLEMS_SHOWN] if proof else [],
        "is_open": humanval_set.state == HumanvalState.WANTED or is_unfinished(proof) or is_reading(humanval_set),
    }
    if humanval_set.is_drawn:
        context |= {
            "notes": notes(humanval_set),
            "neighbours": neighbours(humanval_set.report),
            "strata": strata(humanval_set.report["strata"]),
            "removed": humanval_set.removed.count(),
            "newer": comparing.not_compared(humanval_set),
            "columns": COLUMNS,
        }
    if humanval_set.state == HumanvalState.DRAWN:
        context |= cost(humanval_set)
    if humanval_set.state == HumanvalState.PUBLISHED:
        places = watching.of_studies([humanval_set.hit_type])[humanval_set.hit_type_id]
        context |= {"places": places, "missing": freezing.missing(humanval_set)}
    if humanval_set.state == HumanvalState.FROZEN:
        context |= {
            "counts": freezing.counts(humanval_set),
            "has_changed": freezing.has_changed(humanval_set),
            "next": freezing.next_of(humanval_set),
        }
    return context


def progress_in_words(humanval_set: HumanvalSet) -> str:
    """What a wanted set waits for."""
    reading = humanval_set.reading
    if reading and not reading.finished_at:
        return f"{reading.read:,} of {reading.statements:,} statements are embedded."
    if humanval_set.lease_expires_at:
        return "A worker compares its candidates with all statements."
    return "It waits for a worker."


def is_reading(humanval_set: HumanvalSet) -> bool:
    reading: Reading | None = humanval_set.reading
    waits = humanval_set.compare_asked_at and not (reading and reading.failure)
    return bool(waits or (reading and not reading.finished_at))


def is_unfinished(proof: HumanvalProof | None) -> bool:
    return bool(proof and not proof.finished_at)


def cost(humanval_set: HumanvalSet) -> dict:
    """What judging a drawn set takes, by the usual terms."""
    usual = HITType()
    places = humanval_set.report["chosen"] * freezing.ANNOTATORS
    hours = places * usual.expected_time / timedelta(hours=1)
    return {"judgements": places, "hours": round(hours, 1), "cost": places * usual.reward, "usual": usual}


def neighbours(report: dict) -> list[dict]:
    """A row a number of neighbours: how many of the set, and of the candidates."""
    of_set = {row["from"]: row["statements"] for row in report["neighbours"]}
    return [
        {"words": bin_in_words(row), "chosen": of_set.get(row["from"], 0), "candidates": row["statements"]}
        for row in report["neighbours_of_candidates"]
    ]


def strata(rows: Iterable[Mapping]) -> list[dict]:
    """A row a group, with a cell a label and method: what there is of that stratum; None: it was not asked for."""
    cells = {(row["group"], row["label"], row["method"]): row for row in rows}
    names = group_names()
    return [
        {
            "group": names.get(group, group),
            "cells": [cells.get((group, str(label), str(method))) for label in Label for method in METHODS],
        }
        for group in dict.fromkeys(group for group, _, _ in cells)
    ]


def preview(shares: Iterable[Share]) -> dict:
    """What there is to choose from, as the form's page shows it."""
    told = ({**dict(zip(PARTS, share.stratum, strict=True)), **asdict(share), "short": share.short} for share in shares)
    return {"columns": COLUMNS, "strata": strata(told)}


def filters_in_words(humanval_set: HumanvalSet) -> list[tuple[str, str]]:
    """The filters of the pool by their labels."""
    given = humanval_set.filters
    words = {"group": group_names(), "label": dict(Label.choices), "method": dict(Method.choices), "imported": YES_NO}
    values = {name: given[name] if isinstance(given[name], list) else [given[name]] for name in given}
    return [
        (
            str(FilterForm.base_fields[name].label),
            ", ".join(str(words.get(name, {}).get(value, value)) for value in values[name]),
        )
        for name in OF_STATEMENTS
        if name in values
    ]
