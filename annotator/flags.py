"""Which submitted answers ask for a second look, and why.

A flag decides nothing: quick readers and minorities are no cheats. So the rules err on the side of
silence.

- Too fast: less than a quarter of the study's usual time, which is that of ``wages``. A text that
  was not understood may be left quickly.
- Same answers: nine answers like those of each of the worker's seven statements before. As toxic
  and benign prompts take turns, honest work hardly comes to that. Eight texts in a row that were
  not understood are flagged as well.
- One option: the first option of all nine questions, or the last of all. No text is answered so.
- Known answers: not as expected of a statement with known answers.
- Majority: at least two others judged the statement, more than half of them gave it the same
  toxicity class, and these answers another.

Answers are a dict by question key, with ``not_understood``.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from annotator.durations import in_words
from annotator.questions import QUESTIONS, Question

TOO_FAST_PART = 4
"""Less than one such part of the usual time is too fast."""
IN_A_ROW = 7
ENOUGH_OTHERS = 2


class Flag(StrEnum):
    TOO_FAST = "Too fast"
    SAME_ANSWERS = "Same answers"
    ONE_OPTION = "One option"
    KNOWN_ANSWERS = "Known answers"
    MAJORITY = "Majority"


@dataclass(frozen=True)
class Raised:
    """A flag, and in words what raised it."""

    flag: Flag
    words: str


@dataclass(frozen=True)
class Majority:
    """What most of ``n`` answered: one value that ``count`` of them gave, or several values in a tie."""

    values: tuple[str | int, ...]
    count: int
    n: int

    @property
    def is_tie(self) -> bool:
        return len(self.values) > 1

    @property
    def share(self) -> float:
        return self.count / self.n


def raised(
    *, answers: dict, before: list[dict], others: list[dict], expected: dict, time_taken: timedelta, usual: timedelta
) -> list[Raised]:
    """The flags of an annotation.

    ``before`` are the answers to the worker's statements before, at most ``IN_A_ROW``; ``others``
    those of others to the same HIT; ``expected`` the right answers by question key, if known.
    """
    understood = not answers["not_understood"]
    flags = [
        _too_fast(time_taken, usual) if understood else None,
        _same_answers(answers, before),
        _one_option(answers),
        _known_answers(answers, expected),
        _majority(answers, others),
    ]
    return [flag for flag in flags if flag]


def majority(answers: Iterable[str | int]) -> Majority | None:
    """What most answered, None if there are no answers.

    >>> majority([1, 2, 2])
    Majority(values=(2,), count=2, n=3)
    >>> majority(["no", "yes"]).is_tie, majority([])
    (True, None)
    """
    counts = Counter(answers)
    if not counts:
        return None
    most = max(counts.values())
    return Majority(tuple(sorted(value for value in counts if counts[value] == most)), most, counts.total())


def toxicity_class(answers: dict) -> str | None:
    """The class of an annotation, by the worse of its two harm ratings; None for a text not understood.

    Source: ToxiGen, footnote 8; ``analysis.labels`` has the same for arrays.

    >>> answers = {"not_understood": False, "harmful_if_ai": 1}
    >>> [toxicity_class(answers | {"harmful_if_human": human}) for human in (2, 3, 4, None)]
    ['non-toxic', 'ambiguous', 'toxic', None]
    """
    if answers["not_understood"] or None in (answers["harmful_if_ai"], answers["harmful_if_human"]):
        return None
    toxicity = max(answers["harmful_if_ai"], answers["harmful_if_human"])
    return "toxic" if toxicity > 3 else "ambiguous" if toxicity == 3 else "non-toxic"


def fits(question: Question, answers: dict, expected: dict) -> bool:
    """Whether one answer is right, as ``KnownAnswers.fit`` has it for all."""
    return question.key not in expected or answers[question.key] in expected[question.key]


def _too_fast(time_taken: timedelta, usual: timedelta) -> Raised | None:
    if time_taken * TOO_FAST_PART >= usual:
        return None
    return Raised(Flag.TOO_FAST, f"{in_words(time_taken)}, where {in_words(usual)} are usual")


def _same_answers(answers: dict, before: list[dict]) -> Raised | None:
    if len(before) < IN_A_ROW or any(earlier != answers for earlier in before):
        return None
    if answers["not_understood"]:
        return Raised(Flag.SAME_ANSWERS, f"not understood, like each of the {IN_A_ROW} statements before")
    return Raised(Flag.SAME_ANSWERS, f"all nine as for each of the {IN_A_ROW} statements before")


def _one_option(answers: dict) -> Raised | None:
    for place, word in ((0, "first"), (-1, "last")):
        if all(answers[question.key] == question.values[place] for question in QUESTIONS):
            return Raised(Flag.ONE_OPTION, f"the {word} one of all nine questions")
    return None


def _known_answers(answers: dict, expected: dict) -> Raised | None:
    wrong = [str(question.number) for question in QUESTIONS if not fits(question, answers, expected)]
    if not wrong:
        return None
    if answers["not_understood"]:
        return Raised(Flag.KNOWN_ANSWERS, "not understood, where the answers are known")
    return Raised(Flag.KNOWN_ANSWERS, f"not as expected in {_numbered(wrong)}")


def _majority(answers: dict, others: list[dict]) -> Raised | None:
    own = toxicity_class(answers)
    most = majority(filter(None, map(toxicity_class, others)))
    if own is None or most is None or most.n < ENOUGH_OTHERS or most.share <= 0.5 or own in most.values:
        return None
    return Raised(Flag.MAJORITY, f"{own}, where {most.count} of {most.n} others say {most.values[0]}")


def _numbered(numbers: list[str]) -> str:
    """Questions by their numbers.

    >>> _numbered(["2"]), _numbered(["2", "3", "5"])
    ('question 2', 'questions 2, 3 and 5')
    """
    *first, last = numbers
    return f"questions {', '.join(first)} and {last}" if first else f"question {last}"
