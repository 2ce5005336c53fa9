"""What a researcher makes of a response: promoted into the set, marked bad, or undone (paper, 3.1.2)."""

from django.db import transaction
from django.utils import timezone

from generation import demonstrating
from generation.demonstrating import AlreadyInSet, check_may_fill, lock_set, set_name, tidy
from generation.models import BadBecause, Demonstration, Origin, Response, Verdict

LONGEST_NOTE = Response._meta.get_field("note").max_length
UNDONE = "Its promotion was undone."


class ReasonUnknown(ValueError):
    """A response is bad for one of the reasons that are counted."""


class JudgedAlready(ValueError):
    """The response has a verdict, which is undone before it gets another one."""


@transaction.atomic
def promote(*, response_id: int, by, text: str | None = None) -> Demonstration:
    """Put a response into the set that its prompt was drawn from, as it is or as ``text``; once, however often asked.

    A sentence that was retired before is brought back. Raises ``MayNotFillToxicSet``, ``NotADemonstration``,
    ``AlreadyInSet`` and ``JudgedAlready``.
    """
    response = _locked(response_id)
    trial = response.trial
    check_may_fill(label=trial.label, by=by)
    if response.verdict == Verdict.PROMOTED and response.demonstration:
        return response.demonstration
    _check_undecided(response)
    text = tidy(response.text if text is None else text)
    lock_set(trial.group)
    there = trial.group.demonstrations.filter(label=trial.label, text=text).first()
    if there and (there.is_in_use or Response.objects.filter(demonstration=there).exists()):
        state = "" if there.is_in_use else ", retired: bring it back on the set's page"
        raise AlreadyInSet(f"This sentence is in {set_name(trial.group, trial.label)} already{state}.")
    if there:
        [demonstration] = demonstrating.bring_back(ids=[there.pk], by=by)
    else:
        added = demonstrating.add(group=trial.group, label=trial.label, texts=[text], by=by, origin=Origin.PROMOTED)
        [demonstration] = added.new
    _judge(response, Verdict.PROMOTED, by=by, demonstration=demonstration)
    return demonstration


@transaction.atomic
def mark_bad(*, response_id: int, because: str, by, remark: str = "") -> Response:
    """Note that a response is no good example and why. Raises ``ReasonUnknown`` and ``JudgedAlready``."""
    if because not in BadBecause.values:
        raise ReasonUnknown(f"Choose why it is bad: {', '.join(BadBecause.labels)}.")
    if len(remark) > LONGEST_NOTE:
        raise ReasonUnknown(f"The note has {len(remark)} characters. At most {LONGEST_NOTE} can be stored.")
    response = _locked(response_id)
    if response.verdict != Verdict.BAD:  # one that is bad may be bad for another reason
        _check_undecided(response)
    return _judge(response, Verdict.BAD, by=by, bad_because=because, note=remark.strip())


@transaction.atomic
def undo(*, response_id: int, by) -> Response:
    """Take a verdict back. What had been promoted is retired, since prompts may have been drawn from it."""
    response = _locked(response_id)
    if response.verdict == Verdict.UNDECIDED:
        return response
    if response.demonstration:
        demonstrating.retire(ids=[response.demonstration_id], reason=UNDONE, by=by)
    return _judge(response, Verdict.UNDECIDED, by=None)


def _locked(response_id: int) -> Response:
    """The response, in nobody else's hands until the transaction ends."""
    Response.objects.select_for_update().get(pk=response_id)
    return Response.objects.select_related("trial__group", "demonstration").get(pk=response_id)


def _check_undecided(response: Response) -> None:
    if response.verdict != Verdict.UNDECIDED:
        raise JudgedAlready(f"This response is {response.get_verdict_display()} already. Undo that first.")


def _judge(response: Response, verdict: Verdict, *, by, demonstration=None, bad_because="", note="") -> Response:
    response.verdict, response.demonstration = verdict, demonstration
    response.bad_because, response.note = bad_because, note
    response.judged_by = by
    response.judged_at = None if verdict == Verdict.UNDECIDED else timezone.now()
    response.save(update_fields=["verdict", "demonstration", "bad_because", "note", "judged_by", "judged_at"])
    return response
