"""What annotators send: the answers to the nine questions, and the consent form."""

from collections.abc import Mapping

from django import forms
from django.core.exceptions import ValidationError

from annotator.models import ConsentForm
from annotator.questions import QUESTIONS, Question

MAX_FREE_TEXT = 2000

NOT_AGREED = "Tick the box to agree, or choose “I do not want to take part”."
CONSENT_FORM_CHANGED = "The form has changed since you opened it. Please read it again before you agree."

MISSING_CHOICE = "Choose one of the answers."
MISSING_SCALE = "Choose a number from 1 to 5."
MISSING_FREE_TEXT = {
    "other_groups": "List the other groups, separated by commas.",
    "other_framing": "Explain “Other” in a single sentence.",
}

VALUES = {question.key: {str(value): value for value in question.values} for question in QUESTIONS}
FREE_TEXT = forms.CharField(required=False, max_length=MAX_FREE_TEXT)
TICK_BOX = forms.BooleanField(required=False)


def read_answers(typed: Mapping[str, str]) -> tuple[dict, dict[str, list[str]]]:
    """What a form sends, as the fields of an ``Annotation``, and by field what is missing or wrong.

    A text that was not understood needs no answers. These are functions over fields made once,
    since a form would copy its eleven fields for every submit.
    """
    answers = {"not_understood": _is_ticked(typed, "not_understood")}
    errors = {}
    for question in QUESTIONS:
        _read_answer(question, typed, answers, errors)
        if question.free_text:
            _read_free_text(question, typed, answers, errors)
    return answers, errors


class ConsentGivenForm(forms.Form):
    """The box that a person ticks to agree to the version of the consent form that they read."""

    agree = forms.BooleanField(error_messages={"required": NOT_AGREED})
    covers_statements = forms.BooleanField(required=False)

    def __init__(self, *args, in_force: ConsentForm, **kwargs):
        super().__init__(*args, **kwargs)
        self.in_force = in_force

    def clean(self) -> dict:
        agreed = super().clean()
        if agreed.get("agree") and self.data.get("version") != str(self.in_force.version):
            self.add_error("agree", CONSENT_FORM_CHANGED)
        return agreed


def _is_ticked(typed: Mapping[str, str], field: str) -> bool:
    return TICK_BOX.clean(TICK_BOX.widget.value_from_datadict(typed, {}, field))


def _read_answer(question: Question, typed: Mapping[str, str], answers: dict, errors: dict) -> None:
    chosen = typed.get(question.key)
    answer = answers[question.key] = VALUES[question.key].get(chosen)
    if answer is None and (chosen or not answers["not_understood"]):
        errors[question.key] = [MISSING_SCALE if question.is_scale else MISSING_CHOICE]


def _read_free_text(question: Question, typed: Mapping[str, str], answers: dict, errors: dict) -> None:
    field = question.free_text
    is_demanded = answers[question.key] == field.required_by and not answers["not_understood"]
    try:
        answers[field.key] = FREE_TEXT.clean(typed.get(field.key))
    except ValidationError as refused:
        errors[field.key] = refused.messages
    else:
        if is_demanded and not answers[field.key]:
            errors[field.key] = [MISSING_FREE_TEXT[field.key]]
