"""What a classifier learned, or the models that it came from, of statements that are for testing by now."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from django.db.models import Q

from analysis.classifiers import folders
from analysis.classifiers.choosing import NothingToTrainOn
from analysis.classifiers.pool import IntArray, close_to
from analysis.humanval.sets import THRESHOLD
from analysis.models import HumanvalSet, TrainedClassifier, TrainingPart
from generation.read_values import NotRead


def bases_of(base: str, *, before: int | None = None) -> Iterator[TrainedClassifier]:
    """The classifiers trained here that a model came from, the last one first; itself, if it is one.

    Only orders older than ``before`` count: a model of another place may have the name of what is made from it.
    """
    path = Path(base.partition("#")[0])
    is_here = len(path.parts) == 1 or path.parent == folders.all_of_them()
    found = TrainedClassifier.objects.filter(name=path.name) if is_here else TrainedClassifier.objects.none()
    for classifier in found if before is None else found.filter(pk__lt=before):
        yield classifier
        yield from bases_of(classifier.base, before=classifier.pk)


def learned_by_bases(classifier: TrainedClassifier) -> IntArray:
    """The ids of the statements that the models it came from were trained on."""
    parts = [
        np.fromiter(
            base.statements.filter(part=TrainingPart.TRAIN).order_by().values_list("generation", flat=True), np.int64
        )
        for base in bases_of(classifier.base, before=classifier.pk)
    ]
    return np.unique(np.concatenate([*parts, np.zeros(0, np.int64)]))


def for_testing(classifier: TrainedClassifier) -> list[str]:
    """Of each HUMANVAL set how many of a classifier's own statements it has by now, in words.

    Raises ``NothingToTrainOn`` where that cannot be told.
    """
    sets = HumanvalSet.objects.drawn().order_by("version")
    try:
        numbers = {each: _of_set(classifier, each) for each in sets}
    except NotRead as error:
        said = "Whether it was trained on statements of a HUMANVAL set cannot be told"
        raise NothingToTrainOn(f"{said}: {error}") from error
    return [
        f"{number:,} statements that are of {humanval_set}, too similar to it, or not compared with it yet"
        for humanval_set, number in numbers.items()
        if number
    ]


def refuse_base(base: str, *, before: int | None = None) -> None:
    """Raise ``NothingToTrainOn`` for a model that learned, or came from one that learned, what is for testing."""
    for classifier in bases_of(base, before=before):
        if found := for_testing(classifier):
            raise NothingToTrainOn(
                f"The base {classifier} was trained on {', and on '.join(found)}: a score on that set would be too "
                "good. Begin with another model, or train the base anew under another name."
            )


def refuse_test_statements(classifier: TrainedClassifier) -> None:
    """The same for what is being trained: for its own statements, and those of the models that it came from."""
    refuse_base(classifier.base, before=classifier.pk)
    if found := for_testing(classifier):
        raise NothingToTrainOn(
            f"It is trained on {', and on '.join(found)}: a score on that set would be too good. The set was drawn, or "
            "compared, after the statements were chosen. Order the training anew under another name."
        )


def _of_set(classifier: TrainedClassifier, humanval_set: HumanvalSet) -> int:
    stored = (
        Q(generation__humanval__humanval_set=humanval_set)
        | Q(generation__removed_for__humanval_set=humanval_set)
        | Q(generation__gt=humanval_set.compared_up_to)
    )
    number = classifier.statements.filter(stored).values("generation").distinct().count()
    if number or humanval_set.threshold <= THRESHOLD:
        return number
    ids = np.fromiter(classifier.statements.order_by().values_list("generation", flat=True), np.int64)
    return len(close_to(humanval_set, ids))
