"""What classifiers made of test sets, from stored scores: figures are worked out of it when they are shown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import compress

import numpy as np
from django.db.models import FilteredRelation, Q, Value

from analysis.models import Evaluation, EvaluationText, HumanvalStatement

TOXIC, BENIGN, AMBIGUOUS = "toxic", "non-toxic", "ambiguous"
NO_WORD = Value("")


@dataclass(frozen=True, eq=False)
class Results:
    """The ``N`` texts of a test set that are labelled toxic or benign and scored, in the order of the set.

    ``groups`` are slugs on HUMANVAL and the file's words elsewhere, ``functionalities`` those of the file, and
    ``methods`` those of the statements; "" where there is none. Left out of all these and counted are: ``ambiguous``
    statements of HUMANVAL, which people find neither; ``unlabelled`` ones, which nobody understood; and texts that are
    ``unscored``, as after somebody removed scores.
    """

    texts: np.ndarray  # (N,) int: ids of statements, or of texts
    probs: np.ndarray  # (N,) float
    toxic: np.ndarray  # (N,) bool
    groups: Sequence[str]
    functionalities: Sequence[str]
    methods: Sequence[str]
    ambiguous: int = 0
    unlabelled: int = 0
    unscored: int = 0

    @property
    def total(self) -> int:
        """How many texts the set has."""
        return len(self.probs) + self.ambiguous + self.unlabelled + self.unscored

    def only(self, chosen: np.ndarray) -> "Results":
        """Those of the texts, ``(N,)`` of bool; nothing else counts to them."""
        arrays = (self.texts[chosen], self.probs[chosen], self.toxic[chosen])
        return Results(*arrays, *([*compress(words, chosen)] for words in self._words))

    @property
    def _words(self) -> tuple[Sequence[str], ...]:
        return self.groups, self.functionalities, self.methods


def evaluations() -> list[Evaluation]:
    """The newest finished evaluation of each model in each precision on each test set, the newest first."""
    same = ("model", "precision", "humanval_set_id", "evaluation_set_id")
    newest = Evaluation.objects.finished().order_by(*same, "-finished_at", "-pk").distinct(*same)
    found = newest.select_related("humanval_set", "evaluation_set", "reader")
    return sorted(found, key=lambda one: (one.finished_at, one.pk), reverse=True)


def results_of(evaluation: Evaluation) -> Results | None:
    """What an evaluation found, in one query; None before it has come to something."""
    if evaluation.state != "finished":
        return None
    return _of_humanval(evaluation) if evaluation.humanval_set_id else _of_texts(evaluation)


def of_same_texts(found: Sequence[Results]) -> list[Results]:
    """What several classifiers made of those texts of a test set that all of them have scored."""
    shared = reduce(np.intersect1d, (one.texts for one in found))
    return [one if len(one.texts) == len(shared) else one.only(np.isin(one.texts, shared)) for one in found]


def _of_humanval(evaluation: Evaluation) -> Results:
    rows = (
        HumanvalStatement.objects.filter(humanval_set=evaluation.humanval_set_id)
        .annotate(score=_score_of(evaluation, "generation__toxicity_scores"))
        .order_by("generation")
        .values_list(
            "generation", "score__toxic_prob", "toxicity_class", "generation__group__slug", NO_WORD,
            "generation__method",
        )
    )  # fmt: skip
    labels = [row[2] for row in rows]
    labelled = ((pk, prob, label == TOXIC, *words) for pk, prob, label, *words in rows if label in (TOXIC, BENIGN))
    return _results(labelled, ambiguous=labels.count(AMBIGUOUS), unlabelled=labels.count(""))


def _of_texts(evaluation: Evaluation) -> Results:
    rows = (
        EvaluationText.objects.filter(evaluation_set=evaluation.evaluation_set_id)
        .annotate(score=_score_of(evaluation, "scores"))
        .order_by("index")
        .values_list("pk", "score__toxic_prob", "is_toxic", "group", "functionality", NO_WORD)
    )
    return _results(rows)


def _score_of(evaluation: Evaluation, scores: str) -> FilteredRelation:
    return FilteredRelation(scores, condition=Q(**{f"{scores}__reader": evaluation.reader_id}))


def _results(rows: Iterable[tuple], **left_out: int) -> Results:
    rows = list(rows)
    scored = [row for row in rows if row[1] is not None]
    texts, probs, toxic, *words = map(list, zip(*scored, strict=True)) if scored else ([] for _ in range(6))
    arrays = np.array(texts, dtype=int), np.array(probs, dtype=float), np.array(toxic, dtype=bool)
    return Results(*arrays, *words, **left_out, unscored=len(rows) - len(scored))
