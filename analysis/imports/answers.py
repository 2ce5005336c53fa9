"""The nine answers as files write them: as columns of true and false, or by Humanval's own words."""

from collections.abc import Mapping

from analysis.imports import cells
from analysis.imports.faults import BadCell
from analysis.released import FREE_TEXTS, NOT_UNDERSTOOD, ONE_HOT, SELECTS
from annotator.questions import QUESTIONS

KEYS = tuple(question.key for question in QUESTIONS)
FREE = tuple(question.free_text.key for question in QUESTIONS if question.free_text)
SCALES = tuple(question.key for question in QUESTIONS if question.is_scale)
LONGEST_FREE_TEXT = 10_000

RELEASED_COLUMNS = (
    *(f"{stem}.{number}" for stem, values in ONE_HOT.values() for number in range(1, len(values) + 1)),
    *(column for column, _ in SELECTS.values()),
)
OPTIONAL_RELEASED_COLUMNS = (*FREE_TEXTS.values(), NOT_UNDERSTOOD)
OWN_COLUMNS = (*KEYS, *FREE)

Answers = dict[str, str | int | None]


def read_released(row: Mapping[str, str]) -> tuple[bool, Answers]:
    """Whether the text was not understood, and the answers, of a row in the released columns.

    A row without any answer is one that was not understood, since the release has no column for it.
    """
    not_understood = cells.flag(NOT_UNDERSTOOD, row.get(NOT_UNDERSTOOD, ""))
    ticked = {key: _ticked(key, row) for key in ONE_HOT}
    chosen = {key: row[column].strip() for key, (column, _) in SELECTS.items()}
    answered = [key for key, ticks in ticked.items() if ticks] + [key for key, value in chosen.items() if _says(value)]
    answers: Answers = dict.fromkeys(KEYS)
    if answered:
        for key, ticks in ticked.items():
            answers[key] = _the_one(key, ticks, may_be_none=not_understood)
        for key, (column, words) in SELECTS.items():
            if _says(chosen[key]) or not not_understood:
                answers[key] = cells.word(column, chosen[key] if _says(chosen[key]) else "", words)
    for key, column in FREE_TEXTS.items():
        answers[key] = cells.short(column, row.get(column, ""), LONGEST_FREE_TEXT)
    return not_understood or not answered, answers


def _says(value: str) -> bool:
    return value.lower() not in cells.EMPTY


def _ticked(key: str, row: Mapping[str, str]) -> list[int]:
    stem, values = ONE_HOT[key]
    return [
        place
        for place in range(len(values))
        if cells.flag(f"{stem}.{place + 1}", row[f"{stem}.{place + 1}"])
    ]  # fmt: skip


def _the_one(key: str, ticks: list[int], *, may_be_none: bool) -> str | int | None:
    stem, values = ONE_HOT[key]
    if len(ticks) == 1:
        return values[ticks[0]]
    if not ticks and may_be_none:
        return None
    columns = f"{stem}.1 to {stem}.{len(values)}"
    said = "none is true" if not ticks else f"{len(ticks)} are true"
    raise BadCell(columns, "", f"{key} has one answer: exactly one of {columns} is true, but {said}.")


def read_own(row: Mapping[str, str]) -> tuple[bool, Answers]:
    """The same of a row in Humanval's own export."""
    not_understood = cells.flag("not_understood", row["not_understood"])
    answers: Answers = {}
    for question in QUESTIONS:
        key, value = question.key, row[question.key].strip()
        if question.is_scale:
            answers[key] = cells.scale(key, value)
        else:
            answers[key] = (
                cells.word(key, value, {str(known): str(known) for known in question.values}) if value else None
            )
        if answers[key] is None and not not_understood:
            raise BadCell(
                key, value, "The answer is missing. Only where the text was not understood may there be none."
            )
        if question.free_text:
            free = question.free_text.key
            answers[free] = cells.short(free, row[free], LONGEST_FREE_TEXT)
    return not_understood, answers
