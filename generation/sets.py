"""Sets of demonstrations as wholes: how large, how good, when last changed; and what is too near to one."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Q

from generation.drawing import duplicate_key, is_copy
from generation.models import Demonstration, Label, Response, TargetGroup, Verdict
from generation.prompting import DEMONSTRATIONS_A_PROMPT, build_prompt

TARGET = range(20, 51)
"""The paper collects 20 to 50 demonstrations a set (3.1.2)."""


@dataclass(kw_only=True)
class SetSummary:
    """A set in figures; a share is of ``responses``, and ``None`` if there are none."""

    group: TargetGroup
    label: str
    in_use: int = 0
    retired: int = 0
    trials: int = 0
    responses: int = 0
    promoted: int = 0
    naming: int = 0
    changed_at: datetime | None = None

    @property
    def promoted_share(self) -> float | None:
        return self.promoted / self.responses if self.responses else None

    @property
    def naming_share(self) -> float | None:
        return self.naming / self.responses if self.responses else None

    @property
    def size_in_words(self) -> str:
        return size_in_words(self.in_use)

    @property
    def state(self) -> str:
        """Where its size stands to the target: ``unusable``, ``small``, ``right`` or ``large``."""
        if self.in_use < DEMONSTRATIONS_A_PROMPT:
            return "unusable"
        if self.in_use < TARGET[0]:
            return "small"
        return "right" if self.in_use in TARGET else "large"


def size_in_words(size: int) -> str:
    """What the size of a set means.

    >>> size_in_words(19)
    '1 more and it has the 20 to 50 of the paper.'
    """
    least, most = TARGET[0], TARGET[-1]
    if size < DEMONSTRATIONS_A_PROMPT:
        return (
            f"No prompt can be drawn yet: that takes {DEMONSTRATIONS_A_PROMPT}. Add {DEMONSTRATIONS_A_PROMPT - size}."
        )
    if size < least:
        return f"{least - size} more and it has the {least} to {most} of the paper."
    if size <= most:
        return f"Within the {least} to {most} of the paper."
    return f"{size - most} more than the {least} to {most} of the paper: retire those of the lowest yield."


def summaries(groups: Collection[TargetGroup]) -> list[tuple[SetSummary, ...]]:
    """Of each group its sets, a set a label, in three queries."""
    found = {(group.pk, label): SetSummary(group=group, label=label) for group in groups for label in Label.values}
    by_set = ("group", "label")
    of_groups = {"group__in": groups}
    _fill(
        found,
        Demonstration.objects.filter(**of_groups)
        .order_by()
        .values(*by_set)
        .annotate(in_use=Count("pk", filter=Q(retired_at=None)), retired=Count("pk", filter=~Q(retired_at=None))),
    )
    _fill(
        found,
        Response.objects.filter(trial__group__in=groups)
        .order_by()
        .values("trial__group", "trial__label")
        .annotate(
            trials=Count("trial", distinct=True),
            responses=Count("pk"),
            promoted=Count("pk", filter=Q(verdict=Verdict.PROMOTED)),
            naming=Count("pk", filter=Q(mentions_group=True)),
        ),
    )
    history = Demonstration.history.filter(**of_groups).order_by().values(*by_set)
    _fill(found, history.annotate(changed_at=Max("history_date")))
    return [tuple(found[group.pk, label] for label in Label.values) for group in groups]


def summary(group: TargetGroup, label: str) -> SetSummary:
    """One set in figures."""
    [of_group] = summaries([group])
    return next(of_label for of_label in of_group if of_label.label == label)


def near_to(text: str, members: Iterable[Demonstration]) -> Demonstration | None:
    """The first demonstration that a text repeats: as a copy, as a part of it, or with it as a part."""
    key = duplicate_key(text)
    for member in members:
        if key == duplicate_key(member.text) or is_copy(text, build_prompt([member.text])):
            return member
    return None


def _fill(found: dict[tuple, SetSummary], rows: Iterable[dict]) -> None:
    for row in rows:
        group, label, *_ = row.values()
        for name, value in row.items():
            if name not in ("group", "label", "trial__group", "trial__label"):
                setattr(found[group, label], name, value)
