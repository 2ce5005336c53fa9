"""What is done to a set of demonstrations: sentences are added, edited, retired and brought back, never deleted.

Each change is in the history with who made it. ``by`` is that user; ``None`` is the command line, which is the
operator's and may do everything.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import structlog
from django.db import transaction
from django.utils import timezone
from simple_history.utils import bulk_create_with_history, bulk_update_with_history

from generation.auditing import note
from generation.models import Demonstration, Label, Origin, TargetGroup
from generation.prompting import BULLET

FILL_TOXIC_SET = "generation.fill_toxic_set"
LONGEST_TEXT = Demonstration._meta.get_field("text").max_length
LONGEST_REASON = Demonstration._meta.get_field("retired_reason").max_length
AT_ONCE = 500

log = structlog.get_logger(__name__)


class MayNotFillToxicSet(PermissionError):
    """Toxic sets are filled by those with a permission of their own."""


class NotADemonstration(ValueError):
    """The text cannot stand in a prompt as one of its lines."""


class AlreadyInSet(ValueError):
    """The set has this sentence."""


class ReasonMissing(ValueError):
    """A demonstration is retired for a reason, which whoever looks later can read."""


@dataclass
class Added:
    """What became of sentences: those that are new in the set, and the texts that it had already."""

    new: list[Demonstration] = field(default_factory=list)
    known: list[str] = field(default_factory=list)


def set_name(group: TargetGroup, label: str) -> str:
    """How a set is called in sentences."""
    return f"the {label} set of {group}"


def may_fill(*, label: str, by) -> bool:
    """Whether somebody may put sentences into sets with this label."""
    return label != Label.TOXIC or by is None or by.has_perm(FILL_TOXIC_SET)


def check_may_fill(*, label: str, by) -> None:
    """Raise ``MayNotFillToxicSet`` unless somebody may put sentences into sets with this label."""
    if not may_fill(label=label, by=by):
        raise MayNotFillToxicSet(
            f"{by.get_username()} may not add to toxic sets of demonstrations, nor edit what is in them. "
            "An admin gives the permission: by the group “toxic sets”, on the user's page."
        )


def tidy(text: str) -> str:
    """A sentence as a prompt shows it, without blanks around it and without a hyphen of a pasted list.

    Raises ``NotADemonstration``.

    >>> tidy(" - my aunt sails ")
    'my aunt sails'
    """
    text = text.strip().removeprefix(BULLET).strip()
    if not text:
        raise NotADemonstration("Write a sentence: a demonstration cannot be empty.")
    if len(lines := text.splitlines()) > 1:
        raise NotADemonstration(f"A demonstration is one line, and this text has {len(lines)}. Join or part them.")
    if len(text) > LONGEST_TEXT:
        raise NotADemonstration(f"A demonstration has at most {LONGEST_TEXT} characters, not {len(text)}. Shorten it.")
    if "\0" in text:
        raise NotADemonstration("The text has a null character, which cannot be stored. Take it out.")
    return text


@transaction.atomic
def add(*, group: TargetGroup, label: str, texts: Iterable[str], by, origin: str = Origin.WRITTEN) -> Added:
    """Put sentences into a set; one that it has already, in use or retired, is left as it is.

    Raises ``MayNotFillToxicSet`` and ``NotADemonstration``; then none is added.
    """
    check_may_fill(label=label, by=by)
    tidied = list(dict.fromkeys(map(tidy, texts)))
    lock_set(group)
    there = set(group.demonstrations.filter(label=label, text__in=tidied).values_list("text", flat=True))
    new = [
        Demonstration(group=group, label=label, text=text, origin=origin, created_by=by)
        for text in tidied
        if text not in there
    ]
    for demonstration in new:
        demonstration._history_user = by
    added = Added(known=[text for text in tidied if text in there])
    if new:
        added.new = bulk_create_with_history(new, Demonstration, batch_size=AT_ONCE)
        act = "demonstration promoted" if origin == Origin.PROMOTED else "demonstration added"
        _note(act, added.new, group=group, label=label, by=by, origin=str(origin))
    return added


@transaction.atomic
def edit(*, demonstration_id: int, text: str, by) -> Demonstration:
    """Change the text of a demonstration; the history keeps the old one, and so do the prompts drawn from it.

    Raises ``MayNotFillToxicSet``, ``NotADemonstration`` and ``AlreadyInSet``.
    """
    demonstration = Demonstration.objects.select_related("group").get(pk=demonstration_id)
    check_may_fill(label=demonstration.label, by=by)
    text = tidy(text)
    lock_set(demonstration.group)
    [demonstration] = _locked([demonstration_id])
    if text == demonstration.text:
        return demonstration
    group, label = demonstration.group, demonstration.label
    if group.demonstrations.filter(label=label, text=text).exists():
        raise AlreadyInSet(f"Nothing was changed: this sentence is in {set_name(group, label)} already.")
    demonstration.text = text
    _store([demonstration], ["text"], by=by)
    _note("demonstration edited", [demonstration], group=group, label=label, by=by)
    return demonstration


@transaction.atomic
def retire(*, ids: Sequence[int], reason: str, by) -> list[Demonstration]:
    """Draw no more prompts from demonstrations, and note why. Return those that were in use until now.

    Everybody who may change sets may do so, toxic ones too. Raises ``ReasonMissing``.
    """
    reason = reason.strip()
    if not reason:
        raise ReasonMissing("Say why it is retired, for whoever looks later.")
    if len(reason) > LONGEST_REASON:
        raise ReasonMissing(f"The reason has {len(reason)} characters. At most {LONGEST_REASON} can be stored.")
    changed = [demonstration for demonstration in _locked(ids) if demonstration.is_in_use]
    for demonstration in changed:
        demonstration.retired_at, demonstration.retired_reason = timezone.now(), reason
    _store(changed, ["retired_at", "retired_reason"], by=by)
    _note_by_set("demonstration retired", changed, by=by, reason=reason)
    return changed


@transaction.atomic
def bring_back(*, ids: Sequence[int], by) -> list[Demonstration]:
    """Draw prompts from retired demonstrations again. Return those that were retired until now.

    Raises ``MayNotFillToxicSet`` if one of them is toxic; then none is brought back.
    """
    changed = [demonstration for demonstration in _locked(ids) if not demonstration.is_in_use]
    for demonstration in changed:
        check_may_fill(label=demonstration.label, by=by)
        demonstration.retired_at, demonstration.retired_reason = None, ""
    _store(changed, ["retired_at", "retired_reason"], by=by)
    _note_by_set("demonstration brought back", changed, by=by)
    return changed


def lock_set(group: TargetGroup) -> None:
    """Until the transaction ends nobody else adds to the group's sets; statements about it are stored meanwhile."""
    TargetGroup.objects.select_for_update(no_key=True).get(pk=group.pk)


def _locked(ids: Sequence[int]) -> list[Demonstration]:
    rows = Demonstration.objects.filter(pk__in=ids).order_by("pk").select_related("group")
    return list(rows.select_for_update(of=("self",)))


def _store(changed: list[Demonstration], fields: list[str], *, by) -> None:
    for demonstration in changed:
        demonstration._history_user = by
    if changed:
        bulk_update_with_history(changed, Demonstration, fields, batch_size=AT_ONCE)


def _note_by_set(act: str, changed: list[Demonstration], *, by, **details) -> None:
    sets: dict[tuple, list[Demonstration]] = {}
    for demonstration in changed:
        sets.setdefault((demonstration.group, demonstration.label), []).append(demonstration)
    for (group, label), members in sets.items():
        _note(act, members, group=group, label=label, by=by, **details)


def _note(act: str, members: list[Demonstration], *, group: TargetGroup, label: str, by, **details) -> None:
    ids = [demonstration.pk for demonstration in members]
    note(act, by=by, subject=set_name(group, label), demonstrations=ids, **details)
    log.info(act.replace(" ", "_"), group=group.slug, label=str(label), demonstrations=len(ids))
