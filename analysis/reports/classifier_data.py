"""What the report on classifiers rests on: finished evaluations with their scores, and who was trained on what."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from django.db.models import Count, Q

from analysis import evaluated, metrics
from analysis.evaluated import Results
from analysis.models import (
    Evaluation,
    EvaluationSet,
    HumanvalSet,
    TrainedClassifier,
    TrainingPart,
    TrainingStatement,
)
from analysis.seen import careful, key_of, line_of_evaluation, seen_by
from generation.models import Precision

MOST_CLASSIFIERS, MOST_SETS = 8, 5
"""So many are looked at, those evaluated last: each takes a bootstrap on each test set, and a place in tables."""
RESAMPLES, LEAST_RESAMPLES, RESAMPLED = 1_000, 200, 10_000_000
"""Of a bootstrap: how many; how many at least, on sets so large that otherwise more texts than these were drawn."""
LONGEST_NAME = 32
AS_SCORED = ", as far as it is scored,"
HUMANVAL = "humanval"
CALLED = {
    "sbf": ("sbf", "socialbias", "social-bias"),
    "ihc": ("ihc", "implicit"),
    "dynahate": ("dyna",),
}
"""The paper's test sets by words in the names of imported ones."""


@dataclass(frozen=True)
class TestSet:
    """A HUMANVAL set or an imported one; ``paper`` is the test set of the paper that it is, "" for another one."""

    __test__ = False  # pytest would take it for tests

    row: HumanvalSet | EvaluationSet

    @property
    def is_humanval(self) -> bool:
        return isinstance(self.row, HumanvalSet)

    @property
    def name(self) -> str:
        return str(self.row)

    @property
    def key(self) -> str:
        return f"humanval-{self.row.version}" if self.is_humanval else f"set-{self.row.name}"

    @property
    def paper(self) -> str:
        if self.is_humanval:
            return HUMANVAL
        return next((name for name, words in CALLED.items() if any(word in self.row.name for word in words)), "")


@dataclass(frozen=True)
class Scored:
    """What a classifier made of a test set; ``trained`` is how it was trained, if that was here.

    ``seen`` and ``similar`` say how many texts of the set it, or what it was trained from, was trained on, and on how
    many statements that are too similar to some; None: it was not trained here. ``part`` names the part of the set that
    it is about, if it is about one.
    """

    model: str
    precision: str
    test_set: TestSet
    results: Results
    trained: TrainedClassifier | None = None
    seen: int | None = None
    similar: int | None = None
    part: str = ""

    @property
    def texts(self) -> str:
        """What reasons call the texts."""
        return self.part or (f"{self.test_set.name}{AS_SCORED}" if self.results.unscored else self.test_set.name)

    @property
    def classifier(self) -> str:
        """What tables call it."""
        return self.model if self.precision == Precision.FLOAT32 else f"{self.model} ({self.precision})"

    @property
    def n(self) -> int:
        return len(self.results.probs)

    @cached_property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        groups = self.results.groups if any(self.results.groups) else None
        resamples = max(LEAST_RESAMPLES, min(RESAMPLES, RESAMPLED // max(1, self.n)))
        return metrics.intervals(self.results.probs, self.results.toxic, groups=groups, resamples=resamples)

    @cached_property
    def auc(self) -> float:
        return metrics.auc(self.results.probs, self.results.toxic)

    @property
    def one_class(self) -> str:
        """Why there is no AUC: the texts are of one class; "" if they are not."""
        toxic = int(np.sum(self.results.toxic))
        if 0 < toxic < self.n:
            return ""
        if not self.n:
            return f"No text of {self.texts} is labelled toxic or benign."
        return f"All labelled texts of {self.texts} are {'toxic' if toxic else 'benign'}: AUC needs both."

    def only(self, chosen: np.ndarray, part: str) -> "Scored":
        """What it made of some of the texts, ``(N,)`` of bool, and what they are called."""
        part = f"{part}{AS_SCORED}" if self.results.unscored else part
        return replace(self, results=self.results.only(chosen), part=part)


@dataclass(frozen=True)
class Evaluated:
    """The evaluations that are shown; ``notes`` say what was left out and must be said."""

    scored: tuple[Scored, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def test_sets(self) -> list[TestSet]:
        """HUMANVAL first, the newest version before others, then imported ones by name."""
        found = {scored.test_set.key: scored.test_set for scored in self.scored}
        return sorted(
            found.values(), key=lambda one: (not one.is_humanval, -one.row.version if one.is_humanval else one.name)
        )

    @cached_property
    def trained(self) -> list[TrainedClassifier]:
        """Those trained here, in the order of their training."""
        found = {scored.trained.pk: scored.trained for scored in self.scored if scored.trained}
        return [found[pk] for pk in sorted(found)]

    @cached_property
    def short(self) -> dict[str, str]:
        """What people read in place of the names of classifiers: the end of a path, the ends of what is long."""
        names = {scored.classifier: shortened(scored.classifier) for scored in self.scored}
        names |= {trained.base: shortened(trained.base) for trained in self.trained}
        told = [*names.values()]
        return {name: name if told.count(short) > 1 else short for name, short in names.items()}

    def on(self, test_set: TestSet) -> list[Scored]:
        """What was made of a test set, the classifiers in the order in which they are named everywhere."""
        return [scored for scored in self.scored if scored.test_set == test_set]

    def of(self, model: str, test_set: TestSet) -> Scored | None:
        """What the model made of a test set, as it was evaluated last."""
        return next((scored for scored in self.on(test_set) if scored.model == model), None)

    def warnings(self) -> list[str]:
        """What must be said before any figure: who was tested on what it was trained on."""
        return [
            careful(scored.classifier, scored.seen, scored.results.total, scored.test_set.name)
            for scored in self.scored
            if scored.seen
        ]


def of_same_texts(scored: Sequence[Scored], who: str) -> list[Scored]:
    """What classifiers made of those texts of a test set that all of them, which ``who`` says, have scored."""
    results = [one.results for one in scored]
    shared = evaluated.of_same_texts(results)
    if shared == results:
        return list(scored)
    part = f"{scored[0].test_set.name}, as far as {who} scored it,"
    return [replace(one, results=its, part=part) for one, its in zip(scored, shared, strict=True)]


def read() -> Evaluated:
    """The newest finished evaluation of each classifier on each test set, within bounds."""
    newest = evaluated.evaluations()
    by_name = {one.name: one for one in TrainedClassifier.objects.finished()}
    models = _chosen_models(newest, by_name)
    sets = [*dict.fromkeys(key_of(one) for one in newest)]
    kept = [one for one in newest if (one.model, one.precision) in models and key_of(one) in sets[:MOST_SETS]]
    order = {model: place for place, model in enumerate(models)}
    kept.sort(key=lambda one: order[one.model, one.precision])
    lines = {(one.model, one.reader_id): line_of_evaluation(one, by_name) for one in kept}
    tested = {key_of(one) for one in kept}
    seen = {reader: seen_by(line, tested) for reader, line in lines.items() if line}
    scored = (_scored(one, by_name.get(one.model), seen.get((one.model, one.reader_id))) for one in kept)
    left_out = len({(one.model, one.precision) for one in newest}) - len(models)
    notes = [
        f"The {what} evaluated last are shown: {most}. {more:,} {'is' if more == 1 else 'are'} left out."
        for what, most, more in (
            ("classifiers", MOST_CLASSIFIERS, left_out),
            ("test sets", MOST_SETS, len(sets) - MOST_SETS),
        )
        if more > 0
    ]
    return Evaluated(tuple(one for one in scored if one), tuple(notes))


def shortened(name: str) -> str:
    """A name that fits a column.

    >>> shortened("/srv/models/garden-model#toxic"), shortened("a-classifier-that-has-a-very-long-name-of-its-own")
    ('garden-model#toxic', 'a-classifier-that-ha…-of-its-own')
    """
    name = name.rstrip("/").rsplit("/", 1)[-1] if name.startswith(("/", ".", "~")) else name
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 12]}…{name[-11:]}"


def _chosen_models(newest: Sequence[Evaluation], by_name: Mapping[str, TrainedClassifier]) -> list[tuple[str, str]]:
    """Which classifiers are shown, each in a precision: those evaluated last, each with the one it was trained from.

    In the order of tables: those that were not trained here, then the others as they were trained.
    """
    chosen: dict[tuple[str, str], None] = {}
    for one in newest:
        base = by_name[one.model].base if one.model in by_name else None
        bases = [(other.model, other.precision) for other in newest if other.model == base]
        for model in [(one.model, one.precision), *bases]:
            if len(chosen) < MOST_CLASSIFIERS:
                chosen.setdefault(model)
    return sorted(chosen, key=lambda model: (by_name[model[0]].pk if model[0] in by_name else 0, model))


def _scored(
    evaluation: Evaluation, trained: TrainedClassifier | None, seen: Mapping[tuple, tuple[int, int]] | None
) -> Scored | None:
    results = evaluated.results_of(evaluation)
    if results is None:
        return None
    known = (None, None) if seen is None else seen.get(key_of(evaluation), (0, 0))
    return Scored(evaluation.model, evaluation.precision, TestSet(evaluation.test_set), results, trained, *known)


def trained_on(classifiers: Iterable[TrainedClassifier]) -> dict[int, dict[str, int]]:
    """By classifier how many statements it learnt from, how many of them toxic, and how many decided when to stop."""
    of_part = {part: Q(part=part) for part in TrainingPart}
    counts = (
        TrainingStatement.objects.filter(classifier__in=list(classifiers))
        .order_by()
        .values("classifier")
        .annotate(
            n=Count("pk", filter=of_part[TrainingPart.TRAIN]),
            toxic=Count("pk", filter=of_part[TrainingPart.TRAIN] & Q(is_toxic=True)),
            validation=Count("pk", filter=of_part[TrainingPart.VALIDATION]),
        )
    )
    return {row.pop("classifier"): row for row in counts}
