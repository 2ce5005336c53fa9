"""Asking for fresh responses to a prompt drawn from a set, taking the trial up, and storing what was written."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from generation import leases
from generation.auditing import note
from generation.demonstrating import lock_set, set_name
from generation.drawing import Output
from generation.models import Demonstration, Prompt, Response, TargetGroup, Trial
from generation.naming import names_group
from generation.parameters import TopKParameters
from generation.prompting import build_prompt, check_enough, draw_demonstrations, prompt_lines
from generation.runs import check_models
from generation.wakeups import wake_worker_for_trial

COUNT = 8
MOST_AT_ONCE = 50
DRAWN_SEED_LIMIT = 2**31
DOUBLE_CLICK = timedelta(seconds=2)

log = structlog.get_logger(__name__)


class PromptOutOfDate(ValueError):
    """A demonstration of the prompt was edited or retired since."""


@transaction.atomic
def ask(
    *,
    group: TargetGroup,
    label: str,
    by,
    count: int = COUNT,
    parameters: TopKParameters | None = None,
    language_model: str = "",
    seed: int | None = None,
) -> Trial:
    """Draw a prompt from a set and have ``count`` responses to it written by top-k.

    The seed decides the prompt and the responses; left out, one is drawn. Raises ``NotEnoughDemonstrations``
    and ``ValueError`` for what cannot be done.
    """
    seed = _seed() if seed is None else seed
    by_text = {demonstration.text: demonstration for demonstration in Demonstration.objects.usable(group, label)}
    check_enough(list(by_text), of=set_name(group, label))
    drawn = draw_demonstrations(list(by_text), seed=seed)
    prompt, _ = Prompt.objects.get_or_create(group=group, label=label, text=build_prompt(drawn))
    return _ask(
        prompt,
        [by_text[text] for text in drawn],
        by=by,
        count=count,
        parameters=asdict(parameters or TopKParameters()),
        language_model=language_model or settings.LANGUAGE_MODEL,
        seed=seed,
    )


@transaction.atomic
def ask_once(*, group: TargetGroup, label: str, by, **how) -> Trial:
    """Like ``ask``; the second click of a double click gets the trial of the first."""
    lock_set(group)  # whoever clicks twice waits here for the first trial
    just_now = timezone.now() - DOUBLE_CLICK
    asked = Trial.objects.filter(group=group, label=label, requested_by=by, requested_at__gt=just_now, finished_at=None)
    return asked.order_by("-pk").first() or ask(group=group, label=label, by=by, **how)


@transaction.atomic
def ask_again(*, trial: Trial, by, seed: int | None = None) -> Trial:
    """Have as many other responses to the prompt of a trial written. Raises ``PromptOutOfDate``."""
    members = list(trial.demonstrations.filter(retired_at=None))
    if sorted(member.text for member in members) != sorted(prompt_lines(trial.prompt.text)):
        raise PromptOutOfDate(
            "A demonstration in this prompt was edited or retired since. Draw another prompt from the set."
        )
    return _ask(
        trial.prompt,
        members,
        by=by,
        count=trial.count,
        parameters=trial.parameters,
        language_model=trial.language_model,
        seed=_seed() if seed is None else seed,
    )


def ask_another(*, trial: Trial, by) -> Trial:
    """Draw another prompt from the set of a trial and have as many responses written in the same way.

    Raises ``NotEnoughDemonstrations``.
    """
    return ask(
        group=trial.group,
        label=trial.label,
        by=by,
        count=trial.count,
        parameters=TopKParameters(**trial.parameters),
        language_model=trial.language_model,
    )


def _ask(prompt: Prompt, members: Iterable[Demonstration], *, by, count: int, **how) -> Trial:
    if not 1 <= count <= MOST_AT_ONCE:
        raise ValueError(f"Ask for 1 to {MOST_AT_ONCE} responses at a time, not for {count}.")
    check_models("topk", language_model=how["language_model"], classifier="", precision="float32")
    trial = Trial.objects.create(
        group=prompt.group, label=prompt.label, prompt=prompt, requested_by=by, count=count, **how
    )
    trial.demonstrations.set(members)
    subject = f"{trial} of {set_name(trial.group, trial.label)}"
    note("responses asked for", by=by, subject=subject, count=count, language_model=trial.language_model)
    log.info("responses_asked_for", trial=trial.pk, count=count)
    wake_worker_for_trial(trial.pk)
    return trial


@transaction.atomic
def ask_for_it_again(*, trial: Trial, by) -> bool:
    """Have a trial that failed tried anew. Return whether it had failed."""
    failed = Trial.objects.filter(pk=trial.pk).exclude(failure="")
    changed = failed.update(finished_at=None, failure="", leases=0, requested_at=timezone.now())
    if changed:
        subject = f"{trial} of {set_name(trial.group, trial.label)}"
        note("responses asked for", by=by, subject=subject, count=trial.count, language_model=trial.language_model)
        wake_worker_for_trial(trial.pk)
    return bool(changed)


def lease_trial(*, trial_id: int) -> Trial | None:
    """Take up a trial, or return ``None`` if it is finished, gone, in other hands or worn out, which fails it."""
    if not leases.take_up(Trial.objects.waiting(), pk=trial_id):
        return None
    trial = Trial.objects.select_related("prompt", "group").get(pk=trial_id)
    if leases.is_worn_out(trial):
        leases.finish(trial, failure=leases.STOPPED_EACH_TIME)
        return None
    return trial


@transaction.atomic
def store_trial(*, trial: Trial, outputs: Sequence[Output], environment: dict) -> bool:
    """Store the responses of a trial, all at once. Return whether it was unfinished; if not, nothing is stored."""
    if not leases.finish(trial, environment=environment):
        return False
    words = trial.group.all_naming_words
    Response.objects.bulk_create(
        Response(
            trial=trial,
            position=position,
            text=output.text,
            tokens=output.tokens,
            log_prob=output.log_prob,
            finish_reason=output.finish_reason,
            mentions_group=names_group(output.text, words),
        )
        for position, output in enumerate(outputs)
    )
    log.info("trial_stored", trial=trial.pk, responses=len(outputs))
    return True


def _seed() -> int:
    return secrets.randbelow(DRAWN_SEED_LIMIT)
