"""The optional demographic survey: its questions, storing it, and what is reported of it.

The questions are the paper's (appendix B.1). What a researcher sees is made so that no number,
and nothing that follows from the numbers together, is about one to four people:

- A category is counted from five people on. How many left a question out is never said.
- Nor may the people outside of the counted categories be one to four: as long as they are, the
  smallest of these categories is not counted either. Otherwise “28 of 30” would tell of two.
- Categories that are not counted are named together, without a number of their own or in all.
- How many answered the survey is said from five people on.
- What people wrote about themselves is not shown at all.

So whatever is shown, each category that is not counted may as well have been chosen by nobody.
The rule is about one report: two of them, before and after somebody answered, can be compared.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from annotator.models import GIVEN_ELSEWHERE, Survey, Worker
from annotator.models.surveys import (
    AGE_BAND,
    DESCRIBE,
    GENDER,
    LGBTQ,
    POLITICAL_LEANING,
    PREFER_NOT,
    RACE_ETHNICITY,
)

LEAST = 5
"""The smallest group of people that a number may be about."""


@dataclass(frozen=True)
class SurveyQuestion:
    """A question with its answers; ``many`` of them may be true of one person."""

    key: str
    wording: str
    answers: tuple[tuple[str, str], ...]
    many: bool = False

    @property
    def described(self) -> str:
        """The name of the field for people's own words."""
        return f"{self.key}_described"


SURVEY_QUESTIONS = (
    SurveyQuestion("race_ethnicity", "What is your race or ethnicity?", tuple(RACE_ETHNICITY), many=True),
    SurveyQuestion("gender", "What is your gender?", tuple(GENDER)),
    SurveyQuestion("age_band", "How old are you?", tuple(AGE_BAND)),
    SurveyQuestion("political_leaning", "Where do you stand politically?", tuple(POLITICAL_LEANING)),
    SurveyQuestion("lgbtq", "Do you identify as LGBTQ+?", tuple(LGBTQ)),
)


@dataclass(frozen=True)
class CategoryCount:
    """A category that enough people chose."""

    label: str
    count: int


@dataclass(frozen=True)
class QuestionReport:
    """What may be told of the answers to a question."""

    question: SurveyQuestion
    counted: list[CategoryCount]
    not_counted: list[str]


@dataclass(frozen=True)
class Report:
    """What may be told of all surveys; ``answered`` is None as long as that is fewer than five people."""

    workers: int
    """How many agreed to take part here; not those whose work was imported."""
    answered: int | None
    questions: list[QuestionReport]


@transaction.atomic
def store_survey(*, worker: Worker, answers: Mapping) -> Survey:
    """Store what a worker says about themselves, in place of what they said before."""
    # Locked, so that a withdrawal at this moment deletes it as well.
    Worker.objects.select_for_update(no_key=True).get(pk=worker.pk)
    survey, _ = Survey.objects.update_or_create(worker=worker, defaults={**answers, "answered_at": timezone.now()})
    return survey


def delete_survey(*, worker: Worker) -> bool:
    """Delete what a worker said about themselves; return whether there was something."""
    deleted, _ = Survey.objects.filter(worker=worker).delete()
    return deleted > 0


def report() -> Report:
    """The counts of the answers to each question, by the rule at the top of this module."""
    surveys = list(Survey.objects.values(*(question.key for question in SURVEY_QUESTIONS)))
    return Report(
        workers=Worker.objects.filter(consents__form__version__gt=GIVEN_ELSEWHERE).distinct().count(),
        answered=len(surveys) if len(surveys) >= LEAST else None,
        questions=[
            report_question(question, [survey[question.key] for survey in surveys]) for question in SURVEY_QUESTIONS
        ],
    )


def report_question(question: SurveyQuestion, given: Iterable[str | list[str]]) -> QuestionReport:
    """What may be told of a question to which each survey gave an answer, several or none."""
    given = list(given)
    counts = Counter(value for answer in given for value in ([answer] if isinstance(answer, str) else set(answer)))
    shown = reportable(
        {value: counts[value] for value, _ in question.answers}, people=len(given), overlapping=question.many
    )
    labels = dict(question.answers) | {DESCRIBE[0]: "Described themselves"}
    return QuestionReport(
        question=question,
        counted=[CategoryCount(labels[value], shown[value]) for value in labels if value in shown],
        not_counted=[label for value, label in labels.items() if value not in shown],
    )


def reportable(counts: Mapping[str, int], *, people: int, overlapping: bool) -> dict[str, int]:
    """The counts that may be shown.

    ``people`` is how many surveys there are; ``overlapping`` says that a person may be in several
    categories, but for the one of those who prefer not to say.

    >>> reportable({"yes": 6, "no": 20, "prefer_not": 4}, people=32, overlapping=False)
    {'yes': 6, 'no': 20}
    >>> reportable({"yes": 2, "no": 28, "prefer_not": 0}, people=30, overlapping=False)
    {}
    """
    shown = {value: count for value, count in counts.items() if count >= LEAST}
    while revealing := next(_disjoint_with_few_outside(shown, people, overlapping), None):
        del shown[min(revealing, key=shown.__getitem__)]
    return shown


def _disjoint_with_few_outside(shown: dict[str, int], people: int, overlapping: bool) -> Iterator[set[str]]:
    """Categories of which nobody is in two, so that their sum tells how many people are in none: one to four."""
    if overlapping:
        excluding = shown.keys() & {PREFER_NOT[0]}
        sets = [{value} | rest for value in shown for rest in (set(), excluding)]
    else:
        sets = [set(shown)]
    for disjoint in sets:
        if 0 < people - sum(shown[value] for value in disjoint) < LEAST:
            yield disjoint
