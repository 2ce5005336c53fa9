"""What annotators rate, at its level of measurement: the toxicity class and each of the nine questions."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from analysis.agreement import Ratings, Statistic, statistics_for
from analysis.exports.filtering import of_statements
from analysis.judged import TIME, left_out
from analysis.judged import first_answers as first_answers
from analysis.labels import TOXICITY_CLASSES
from analysis.models import HumanLabel
from annotator.questions import QUESTIONS, Level, Question


@dataclass(frozen=True)
class Rated:
    """A column of ``judged.annotations``; ``codes`` has its values, from least to most where they have an order."""

    key: str
    label: str
    level: Level
    codes: Mapping[str | int, float]
    has_distances: bool
    """Whether its codes are counted numbers, so that their differences mean something."""

    @property
    def names(self) -> dict[float, str]:
        """What reasons call the codes."""
        return {code: str(value) for value, code in self.codes.items()}

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """Every statistic that fits the level."""
        fitting = statistics_for(self.level)
        return tuple(one for one in fitting if self.has_distances or one is not Statistic.ALPHA_INTERVAL)

    @property
    def main_statistics(self) -> tuple[Statistic, ...]:
        """One statistic of each kind, for many slices beside each other."""
        return (Statistic.FLEISS_KAPPA, self.alpha, self.gwet, Statistic.FULL_AGREEMENT, Statistic.MAJORITY_AGREEMENT)

    @property
    def alpha(self) -> Statistic:
        return Statistic.ALPHA_ORDINAL if self.level is Level.ORDINAL else Statistic.ALPHA_NOMINAL

    @property
    def gwet(self) -> Statistic:
        return Statistic.GWET_AC2 if self.level is Level.ORDINAL else Statistic.GWET_AC1


def _of(question: Question) -> Rated:
    codes = {value: float(value) if question.is_scale else float(place) for place, value in enumerate(question.order)}
    return Rated(question.key, question.paper_name, question.level, codes, has_distances=question.is_scale)


TOXICITY_CLASS = Rated(
    key="toxicity_class",
    label="Toxicity class",
    level=Level.ORDINAL,
    codes={name: float(code) for code, name in enumerate(TOXICITY_CLASSES)},
    has_distances=True,
)
EVERYTHING_RATED = {TOXICITY_CLASS.key: TOXICITY_CLASS} | {question.key: _of(question) for question in QUESTIONS}


def ratings_of(judged: pd.DataFrame, rated: Rated) -> Ratings:
    """The ratings in ``judged``, a table as ``judged.annotations`` gives it, one a row."""
    values = judged[rated.key] if rated is TOXICITY_CLASS else judged[rated.key].map(rated.codes)
    return Ratings.from_long(
        judged["statement"].to_numpy(),
        judged["worker"].to_numpy(),
        values.to_numpy(dtype=float),
        categories=sorted(rated.codes.values()),
    )


def on_repeated(repeated: int) -> list[str]:
    """What is said of answers that ``first_answers`` left out."""
    if not repeated:
        return []
    answers = "annotation is" if repeated == 1 else "annotations are"
    return [f"{repeated:,} {answers} left out: the annotator had judged the same statement before, in another study."]


def on_left_out(filters: Mapping) -> list[str]:
    """What is said of annotations that the filters leave and that do not count."""
    reasons = left_out(filters)
    if not reasons:
        return []
    number = sum(reasons.values())
    return [f"{number:,} {'annotation does' if number == 1 else 'annotations do'} not count: {_told(reasons)}."]


def why_nothing(filters: Mapping) -> str:
    """Why the filters leave no counted annotation, and what to do."""
    if reasons := left_out(filters):
        number = sum(reasons.values())
        return f"No annotation here counts, of {number:,}: {_told(reasons)}. Have more statements judged."
    labels = 0 if filters.keys() & set(TIME) else HumanLabel.objects.filter(of_statements(filters, "generation__"))
    if labels and (number := labels.count()):
        hold = "1 imported label holds" if number == 1 else f"{number:,} imported labels hold"
        return (
            f"There are no single annotations here: {hold} only what annotators said together, not who said what. "
            "Publish a study, or import single annotations."
        )
    remedy = "choose other filters" if filters else "import judgements"
    return f"There are no annotations here. Publish a study, or {remedy}."


def _told(reasons: Mapping[str, int]) -> str:
    return "; ".join(f"{number:,} {reason}" for reason, number in reasons.items())
