"""Asking for a HUMANVAL set to be drawn, and giving up on it."""

from collections.abc import Mapping

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Max

from analysis.exports.filtering import in_words
from analysis.humanval.pool import Share, count_pool, pool_filters, shares
from analysis.models import HumanvalSet, HumanvalState
from generation import leases
from generation.auditing import note
from generation.wakeups import ask_for

DRAW = "analysis.draw_humanval"
"""The task of the queue that draws a set."""
SIZE, THRESHOLD, CANDIDATES = 792, 0.7, 4
"""As in the paper, section 4.2; the candidates are ours."""
MOST_SIZE, MOST_CANDIDATES = 50_000, 100
MOST_COMPARED = 100_000
"""So many candidates in all: each is compared with every statement."""
SEED_LIMIT = 2**31

log = structlog.get_logger(__name__)


class CannotDraw(ValueError):
    """No such set can be drawn; ``field`` is what is wrong, and the message says what to do."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def check(*, filters: Mapping, size: int, threshold: float, candidates: int, seed: int) -> list[Share]:
    """The places of each stratum of a set as it was asked for; ``filters`` are as ``pool_filters`` returns them.

    Raises ``CannotDraw``.
    """
    if not 1 <= size <= MOST_SIZE:
        raise CannotDraw("size", f"A set has 1 to {MOST_SIZE:,} statements, not {size:,}.")
    if not 0 < threshold <= 1:
        raise CannotDraw("threshold", f"The threshold is a cosine above 0 and up to 1, not {threshold:g}.")
    if not 1 <= candidates <= MOST_CANDIDATES:
        raise CannotDraw("candidates", f"Draw 1 to {MOST_CANDIDATES} candidates for each place, not {candidates:,}.")
    if size * candidates > MOST_COMPARED:
        raise CannotDraw(
            "candidates",
            f"{size:,} places with {candidates} candidates each are {size * candidates:,} statements to compare with "
            f"all others; at most {MOST_COMPARED:,} are. Draw fewer candidates.",
        )
    if not 0 <= seed < SEED_LIMIT:
        raise CannotDraw("seed", f"The seed is a whole number from 0 to {SEED_LIMIT - 1:,}.")
    available = count_pool(filters)
    refuse_too_few(sum(available.values()), size)
    return shares(filters, available, size=size, seed=seed)


def refuse_too_few(there: int, size: int) -> None:
    """Raise ``CannotDraw`` for a set that is larger than its pool."""
    if not there:
        raise CannotDraw(
            "filters",
            "There is no statement to choose from. Have a model write some or import some, or choose wider filters. "
            "What people wrote, and what has known answers, is not taken.",
        )
    if size > there:
        only = "is only 1 statement" if there == 1 else f"are only {there:,} statements"
        raise CannotDraw("size", f"There {only} to choose from. Give a size of at most {there:,}, or wider filters.")


def ask_for_set(
    *,
    filters: Mapping | None = None,
    size: int = SIZE,
    threshold: float = THRESHOLD,
    candidates: int = CANDIDATES,
    seed: int,
    by=None,
    wake: bool = True,
) -> HumanvalSet:
    """Store that a set is wanted, the next version, and have a worker draw it.

    ``filters`` are as a form or a query string has them. Raises ``CannotDraw`` and ``filtering.WrongFilter``.
    """
    chosen = pool_filters(filters or {})
    check(filters=chosen, size=size, threshold=threshold, candidates=candidates, seed=seed)
    fields = {"size": size, "threshold": threshold, "candidates": candidates, "seed": seed}
    with transaction.atomic():
        wanted = next_version(filters=in_words(chosen), created_by=by, **fields)
        note("humanval set asked for", by=by, subject=str(wanted), filters=wanted.filters, **fields)
        if wake:
            ask_for(DRAW, humanval_set=wanted.pk)
    log.info("humanval_asked_for", humanval=wanted.version)
    return wanted


def next_version(**fields) -> HumanvalSet:
    """Store a set with the next number, also while others do."""
    while True:
        newest = HumanvalSet.objects.aggregate(newest=Max("version"))["newest"] or 0
        try:
            with transaction.atomic():
                return HumanvalSet.objects.create(version=newest + 1, **fields)
        except IntegrityError as error:
            if "analysis_humanvalset_version" not in str(error):
                raise


@transaction.atomic
def give_up(*, humanval_set: HumanvalSet, by=None) -> bool:
    """Have a set drawn no longer. Return whether it was being drawn."""
    who = f" by {by}" if by else ""
    stopped = leases.call_off(humanval_set, state=HumanvalState.FAILED, failure=f"Its drawing was stopped{who}.")
    if stopped:
        note("humanval set given up", by=by, subject=str(humanval_set))
    return stopped
