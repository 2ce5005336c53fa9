"""What pages are made of: Markdown that cannot carry a script, the nine questions."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

import markdown
import nh3
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from annotator.forms import MAX_FREE_TEXT
from annotator.questions import QUESTIONS, Option, Question


def markdown_to_html(text: str, *extensions: str) -> SafeString:
    """Return the HTML of a Markdown text, reduced to harmless tags and links."""
    return mark_safe(nh3.clean(markdown.markdown(text, extensions=["sane_lists", *extensions])))  # noqa: S308 - cleaned by nh3


def questions_to_html(
    typed: Mapping[str, str], errors: Mapping[str, list[str]] | None = None, *, shortcuts: bool
) -> SafeString:
    """The nine questions with what was typed and what is wrong, by field; with keys to answer by if wanted."""
    if not typed and not errors:
        return _blank_questions(shortcuts=shortcuts)
    return _questions(typed, errors or {}, shortcuts=shortcuts)


def faulty(errors: Mapping[str, list[str]]) -> list[Question]:
    """The questions that something is missing from or wrong with."""
    return [
        question
        for question in QUESTIONS
        if question.key in errors or (question.free_text and question.free_text.key in errors)
    ]


def shortcut(question: Question, option: Option) -> str:
    """The key that chooses an option: its number on a scale or a long list, else its first letter."""
    if question.is_scale or question.is_long:
        return str(question.options.index(option) + 1)
    return option.label[0].lower()


@lru_cache
def _blank_questions(*, shortcuts: bool) -> SafeString:
    """Nearly every page has them like this, and to render them takes longer than all the rest."""
    return _questions({}, {}, shortcuts=shortcuts)


def _questions(typed: Mapping[str, str], errors: Mapping[str, list[str]], *, shortcuts: bool) -> SafeString:
    context = {"rows": _rows(typed, errors), "shortcuts": shortcuts}
    return render_to_string("annotator/_questions.html", context)


def _rows(typed: Mapping[str, str], errors: Mapping[str, list[str]]) -> Iterator[dict]:
    """What the page shows of each question: its options, what was typed and what is wrong."""
    for question in QUESTIONS:
        free_text = question.free_text
        chosen = typed.get(question.key)
        yield {
            "question": question,
            "options": [
                {
                    "value": option.value,
                    "label": option.label,
                    "key": shortcut(question, option),
                    "is_chosen": str(option.value) == chosen,
                    "asks_for_text": bool(free_text and option.value == free_text.required_by),
                }
                for option in question.options
            ],
            "errors": errors.get(question.key),
            "free_text": typed.get(free_text.key) or "" if free_text else "",
            "free_text_limit": MAX_FREE_TEXT,
            "free_text_errors": errors.get(free_text.key) if free_text else None,
        }
