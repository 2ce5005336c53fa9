"""Which texts of a test set a classifier was trained on: what must be said with its figures."""

from collections.abc import Iterable, Mapping

from analysis.evaluated import Results
from analysis.models import Evaluation, EvaluationText, TrainedClassifier, TrainingStatement
from analysis.texts import text_key
from generation.trained import EMBEDDED

ROWS_AT_ONCE = 50_000
ON_EMBEDDED = (
    f"{EMBEDDED}, which comes with Humanval, has learnt from the 8,960 statements of annotated.csv of the paper's "
    "release. What it, or what was trained from it, scores on these says nothing of new texts."
)

Key = tuple[int | None, int | None]
"""A HUMANVAL set, or a set from a file."""


def key_of(evaluation: Evaluation) -> Key:
    return evaluation.humanval_set_id, evaluation.evaluation_set_id


def line_of(model: str, by_name: Mapping[str, TrainedClassifier], *, revision: str = "") -> list[TrainedClassifier]:
    """The trained classifier of this name, the one it was trained from, and so on; ``name#label`` is one by its name.

    What is named otherwise, as by a path, is known by its ``revision``.
    """
    by_revision = {one.revision: one for one in by_name.values()}
    line: list[TrainedClassifier] = []
    while (trained := by_name.get(model.partition("#")[0]) or by_revision.get(revision)) and trained not in line:
        line.append(trained)
        model, revision = trained.base, trained.environment.get("base_revision", "")
    return line


def line_of_evaluation(evaluation: Evaluation, by_name: Mapping[str, TrainedClassifier]) -> list[TrainedClassifier]:
    return line_of(evaluation.model, by_name, revision=evaluation.reader.revision if evaluation.reader else "")


def seen_by(line: list[TrainedClassifier], sets: Iterable[Key]) -> dict[Key, tuple[int, int]]:
    """By test set how many of its texts the classifiers of a line were trained on, and how many too similar ones."""
    sets = set(sets)
    learnt = TrainingStatement.objects.filter(classifier__in=line)
    seen: dict[Key, tuple[int, int]] = {}
    for pk in [own for own, _ in sets if own]:
        known = learnt.filter(generation__humanval__humanval_set=pk).values("generation").distinct().count()
        similar = learnt.filter(generation__removed_for__humanval_set=pk).values("generation").distinct().count()
        seen[pk, None] = known, similar
    if imported := [own for _, own in sets if own]:
        keys: dict[int, set[bytes]] = {pk: set() for pk in imported}
        rows = EvaluationText.objects.filter(evaluation_set__in=imported).order_by()
        for pk, text in rows.values_list("evaluation_set", "text").iterator(chunk_size=ROWS_AT_ONCE):
            keys[pk].add(text_key(text))
        texts = learnt.order_by().values_list("generation__text", flat=True).iterator(chunk_size=ROWS_AT_ONCE)
        known_keys = set(map(text_key, texts))
        seen |= {(None, pk): (len(own & known_keys), 0) for pk, own in keys.items()}
    return seen


def careful(who: str, seen: int, total: int, test_set: str) -> str:
    """What must be said before any figure of a classifier that was tested on what it was trained on."""
    return (
        f"Careful: {who} was trained on {seen:,} of the {total:,} texts of {test_set}. What it scores there says "
        "nothing of new texts."
    )


def warnings_on(evaluation: Evaluation, results: Results) -> list[str]:
    """The sentences that must be said with the figures of one evaluation, if any."""
    line = line_of_evaluation(evaluation, {one.name: one for one in TrainedClassifier.objects.finished()})
    seen, _ = seen_by(line, [key_of(evaluation)])[key_of(evaluation)] if line else (0, 0)
    said = [careful(evaluation.model, seen, results.total, str(evaluation.test_set))] if seen else []
    is_embedded = EMBEDDED in {evaluation.model, *(one.base for one in line)}
    return [*said, ON_EMBEDDED] if is_embedded and evaluation.humanval_set_id else said
