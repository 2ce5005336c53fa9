"""The annotation form, built from the nine questions, and the consent form."""

from django import forms

from annotator.models import ConsentForm
from annotator.questions import NOT_UNDERSTOOD, QUESTIONS, Question

MAX_FREE_TEXT = 2000

NOT_AGREED = "Tick the box to agree, or choose “I do not want to take part”."
CONSENT_FORM_CHANGED = "The form has changed since you opened it. Please read it again before you agree."

MISSING_CHOICE = "Choose one of the answers."
MISSING_SCALE = "Choose a number from 1 to 5."
MISSING_FREE_TEXT = {
    "other_groups": "List the other groups, separated by commas.",
    "other_framing": "Explain “Other” in a single sentence.",
}


class AnnotationForm(forms.Form):
    """Nine answers, or the box that says that the text was not understood."""

    not_understood = forms.BooleanField(label=NOT_UNDERSTOOD, required=False)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for question in QUESTIONS:
            self.fields[question.key] = _answer_field(question)
            if question.free_text:
                self.fields[question.free_text.key] = forms.CharField(
                    label=question.free_text.label, required=False, max_length=MAX_FREE_TEXT
                )

    def clean(self) -> dict:
        answers = super().clean()
        understood = not answers.get("not_understood")
        for question in QUESTIONS:
            answer = answers.get(question.key)
            if answer in ("", None):
                answers[question.key] = None
                if understood and question.key not in self.errors:
                    self.add_error(question.key, MISSING_SCALE if question.is_scale else MISSING_CHOICE)
            free_text = question.free_text
            if free_text and understood and answer == free_text.required_by and answers.get(free_text.key) == "":
                self.add_error(free_text.key, MISSING_FREE_TEXT[free_text.key])
        return answers

    def rows(self):
        """The questions with what the page shows beside each: what is chosen, and what is wrong."""
        for question in QUESTIONS:
            free_text = question.free_text
            yield {
                "question": question,
                "chosen": str(self[question.key].value() or ""),
                "errors": self.errors.get(question.key, []),
                "free_text": self[free_text.key].value() or "" if free_text else "",
                "free_text_limit": MAX_FREE_TEXT,
                "free_text_errors": self.errors.get(free_text.key, []) if free_text else [],
            }

    def faulty_rows(self):
        return [row for row in self.rows() if row["errors"] or row["free_text_errors"]]


class ConsentGivenForm(forms.Form):
    """The box that a person ticks to agree to the version of the consent form that they read."""

    agree = forms.BooleanField(error_messages={"required": NOT_AGREED})

    def __init__(self, *args, in_force: ConsentForm, **kwargs):
        super().__init__(*args, **kwargs)
        self.in_force = in_force

    def clean(self) -> dict:
        agreed = super().clean()
        if agreed.get("agree") and self.data.get("version") != str(self.in_force.version):
            self.add_error("agree", CONSENT_FORM_CHANGED)
        return agreed


def _answer_field(question: Question) -> forms.TypedChoiceField:
    message = MISSING_SCALE if question.is_scale else MISSING_CHOICE
    return forms.TypedChoiceField(
        choices=[(option.value, option.label) for option in question.options],
        coerce=int if question.is_scale else str,
        empty_value=None,
        required=False,  # not with a text that was not understood: see clean()
        error_messages={"invalid_choice": message},
    )
