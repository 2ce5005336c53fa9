"""What reports rest on, and how it is told that there is something else than when one was made."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db.models import Count, Max, Model, QuerySet, Sum

from analysis.models import Evaluation, HumanLabel, TrainedClassifier
from annotator.models import HIT, Annotation, Assignment, HITStatus, HITType, PaidOut, Payment, is_in_state
from generation.models import Generation, Perplexity, TargetGroup, ToxicityScore

#: Of each source how many rows count (``count``), what stands for which they are (``ids``), and ``newest``, which is
#: quick to find and differs once there are others, whether they count or not.
State = dict[str, dict[str, int | str]]


@dataclass(frozen=True)
class Source:
    """``newest`` is asked for at every look, ``counted`` once a minute: how many rows count, and which."""

    newest: Callable[[], int | str]
    counted: Callable[[], tuple[int, int | str]]


def _rows(rows: Callable[[], QuerySet]) -> Source:
    """Rows that come and go, and are known by the sum of their ids; ``newest`` is of all, also those left out."""

    def newest() -> int:
        return rows().model._base_manager.aggregate(newest=Max("pk"))["newest"] or 0

    def counted() -> tuple[int, int]:
        found = rows().order_by().aggregate(count=Count("pk"), ids=Sum("pk"))
        return found["count"], int(found["ids"] or 0)

    return Source(newest, counted)


def _finished(model: type[Evaluation] | type[TrainedClassifier]) -> Source:
    """Orders that came to something; the newest is the one that ended last, also if it was made before others."""

    def newest() -> str:
        ended = model.objects.finished().aggregate(newest=Max("finished_at"))["newest"]
        return ended.isoformat() if ended else ""

    return Source(newest, _rows(model.objects.finished).counted)


def _table(model: type[Model]) -> Source:
    """A small table whose rows are edited: whatever changes in it."""

    def counted() -> tuple[int, str]:
        rows = list(model._base_manager.order_by("pk").values_list())
        return len(rows), _digest(rows)

    return Source(lambda: counted()[1], counted)


def _studies() -> Source:
    """The studies, and how far work on their HITs is, which time alone changes, too."""
    studies = _table(HITType)

    def counted() -> tuple[int, str]:
        number, digest = studies.counted()
        work = Assignment.objects.order_by("status").values_list("status").annotate(Count("pk"), Sum("pk"))
        places = HIT.objects.aggregate(
            **{f"{state}_{what.name}": what("pk", filter=is_in_state(state)) for state in HITStatus for what in SUMS}
        )
        return number, _digest((digest, list(work), sorted(places.items())))

    return Source(studies.newest, counted)


def _digest(what: object) -> str:
    return hashlib.blake2s(repr(what).encode(), digest_size=16).hexdigest()


SUMS = (Count, Sum)

SOURCES: dict[str, Source] = {
    "annotations": _rows(lambda: Annotation.objects.counted()),
    "labels": _rows(HumanLabel.objects.all),
    "statements": _rows(Generation.objects.all),
    "groups": _table(TargetGroup),
    "scores": _rows(ToxicityScore.objects.all),
    "perplexities": _rows(Perplexity.objects.all),
    "studies": _studies(),
    "payments": _rows(Payment.objects.all),
    "payouts": _rows(PaidOut.objects.all),
    "hits": _rows(HIT.objects.all),
    "evaluations": _finished(Evaluation),
    "trained": _finished(TrainedClassifier),
}


def newest_of(sources: Iterable[str]) -> dict[str, int | str]:
    """The newest of each source; 0 if it has no rows."""
    return {source: SOURCES[source].newest() for source in sources}


def state_of(sources: Iterable[str]) -> State:
    """What there is of each source now."""
    state: State = {}
    for source in sources:
        newest = SOURCES[source].newest()  # before the rest: what comes now is newer
        count, ids = SOURCES[source].counted()
        state[source] = {"count": count, "ids": ids, "newest": newest}
    return state


def counted(state: State) -> dict[str, tuple[int | str, int | str]]:
    """Which rows count in a state."""
    return {source: (of["count"], of["ids"]) for source, of in state.items()}
