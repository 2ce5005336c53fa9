"""How long a run will take, from what earlier ones took."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import OuterRef, Subquery, Sum

from generation.models import GenerationCell, GenerationRun

RUNS_LOOKED_AT = 50
SLOWING = ("beam", "vocabulary", "max_new_tokens")


@dataclass(frozen=True)
class Estimate:
    """``seconds`` for one worker, as measured on ``statements`` of ``run``; its ``other_parameters`` make it rough."""

    seconds: float
    run: GenerationRun
    statements: int
    other_parameters: Mapping[str, int]

    @property
    def device(self) -> str:
        return self.run.environment.get("device", "")


def estimate(
    *,
    statements: int,
    method: str,
    language_model: str,
    classifier: str,
    precision: str,
    parameters: Mapping[str, Mapping],
) -> Estimate | None:
    """What the newest run with the same method, models and precision says; ``None`` if nothing was measured.

    One with the same beam, candidates and length goes before newer ones with others.
    """
    seconds = GenerationCell.objects.filter(run=OuterRef("pk")).order_by().values("run")
    measured = (
        GenerationRun.objects.filter(
            method=method, language_model=language_model, classifier=classifier, precision=precision
        )
        .with_counts()
        .annotate(seconds=Subquery(seconds.annotate(total=Sum("decoding_seconds")).values("total")))
        .filter(stored__gt=0, seconds__gt=0)
        .order_by("-pk")[:RUNS_LOOKED_AT]
    )
    found = [
        Estimate(
            seconds=statements * run.seconds / run.stored,
            run=run,
            statements=run.stored,
            other_parameters=_others(run.parameters, parameters),
        )
        for run in measured
    ]
    return min(found, key=lambda estimate: len(estimate.other_parameters) > 0, default=None)


def _others(theirs: Mapping[str, Mapping], wanted: Mapping[str, Mapping]) -> dict[str, int]:
    """What decides the speed and is otherwise in ``theirs``, with their values."""
    return {
        name: values[name]
        for method, values in theirs.items()
        for name in SLOWING
        if name in values and values[name] != wanted.get(method, {}).get(name)
    }
