"""What a run is to write of each group and label, and the sets of demonstrations that this takes."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from generation.models import Demonstration, Label, TargetGroup
from generation.prompting import NotEnoughDemonstrations, check_enough

MOST_STATEMENTS = 1_000_000
"""Of a group and label in one run; the paper has 10,000."""


@dataclass(frozen=True)
class Cell:
    """So many statements of one group and label.

    Prompts are drawn from the set as it is when the run starts, unless a run is repeated with what it had.
    """

    group: TargetGroup
    label: Label
    count: int
    demonstrations: Sequence[str] | None = None
    naming_words: str | None = None

    @property
    def key(self) -> tuple[int, str]:
        return self.group.pk, str(self.label)


def frozen_cells(cells: Sequence[Cell]) -> list[Cell]:
    """The cells with the demonstrations and naming words that they have now, where none are given.

    Raises ``ValueError`` for cells that make no run, and ``NotEnoughDemonstrations`` with a sentence a set.
    """
    if not cells:
        raise ValueError("Choose at least one group.")
    seen: set[tuple[int, str]] = set()
    for cell in cells:
        if cell.count < 1:
            raise ValueError(f"The number of statements must be at least 1, not {cell.count}.")
        if cell.count > MOST_STATEMENTS:
            raise ValueError(
                f"The number of statements of a group and label must be at most {MOST_STATEMENTS}, not {cell.count}. "
                "Start several runs."
            )
        if cell.key in seen:
            raise ValueError(f"The {cell.label} set of {cell.group} is chosen twice. Choose it once.")
        seen.add(cell.key)
    sets = usable_texts({cell.group for cell in cells})
    frozen = [
        replace(
            cell,
            demonstrations=sets[cell.key] if cell.demonstrations is None else cell.demonstrations,
            naming_words=cell.group.naming_words if cell.naming_words is None else cell.naming_words,
        )
        for cell in cells
    ]
    if too_small := [reason for cell in frozen if (reason := why_too_small(cell, cell.demonstrations))]:
        raise NotEnoughDemonstrations(" ".join(too_small))
    return frozen


def usable_texts(groups: Collection[TargetGroup]) -> dict[tuple[int, str], list[str]]:
    """The texts that prompts may be drawn from, by group and label; in one query, ordered as ``usable`` does."""
    sets: dict[tuple[int, str], list[str]] = defaultdict(list)
    usable = Demonstration.objects.filter(group__in=groups, retired_at=None).order_by("text")
    for group_id, label, text in usable.values_list("group_id", "label", "text"):
        sets[group_id, label].append(text)
    return sets


def why_too_small(cell: Cell, demonstrations: Sequence[str]) -> str:
    """What to do about a set from which no prompt can be drawn; empty for one that is large enough."""
    try:
        check_enough(demonstrations, of=f"the {cell.label} set of {cell.group}")
    except NotEnoughDemonstrations as reason:
        return str(reason)
    return ""
