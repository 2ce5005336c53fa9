"""What annotators send about themselves: preferences, a withdrawal, the survey."""

from django import forms

from annotator.models import Survey
from annotator.models.surveys import DESCRIBE, PREFER_NOT
from annotator.surveying import SURVEY_QUESTIONS, SurveyQuestion
from generation.models import TargetGroup

KEEP, DELETE = "keep", "delete"

NO_SUCH_GROUP = "Choose from the groups that are listed."
SAY_WHAT_BECOMES_OF_THE_ANSWERS = "Choose what is to happen to your past answers."
NOT_CONFIRMED = "Tick the box to confirm."
NO_SUCH_ANSWER = "Choose from the answers that are listed."
NOT_SAID_YET_SAID = "Choose “Prefer not to say” or other answers, not both."
DESCRIBED_BESIDES = "Choose “I describe myself” for your own words to be kept, or clear them."
TOO_LONG = "Say it in at most %(limit_value)d characters."


class PreferencesForm(forms.Form):
    """How statements are shown, and the groups that somebody does not want to read about."""

    covers_statements = forms.BooleanField(required=False)
    uses_shortcuts = forms.BooleanField(required=False)
    avoided_groups = forms.MultipleChoiceField(required=False, error_messages={"invalid_choice": NO_SUCH_GROUP})

    def __init__(self, *args, groups: list[TargetGroup], **kwargs):
        super().__init__(*args, **kwargs)
        self.groups = groups
        self.fields["avoided_groups"].choices = [(group.slug, group.words) for group in groups]

    def rows(self) -> list[dict]:
        """The groups, with whether each is ticked."""
        ticked = self["avoided_groups"].value() or []
        return [{"group": group, "ticked": group.slug in ticked} for group in self.groups]

    def clean_avoided_groups(self) -> list[TargetGroup]:
        return [group for group in self.groups if group.slug in self.cleaned_data["avoided_groups"]]


class WithdrawalForm(forms.Form):
    """What becomes of past answers, and that it is meant."""

    answers = forms.ChoiceField(
        choices=[(KEEP, "Keep my past answers"), (DELETE, "Delete my past answers")],
        error_messages={
            "required": SAY_WHAT_BECOMES_OF_THE_ANSWERS,
            "invalid_choice": SAY_WHAT_BECOMES_OF_THE_ANSWERS,
        },
    )
    sure = forms.BooleanField(error_messages={"required": NOT_CONFIRMED})


class SurveyForm(forms.Form):
    """The questions about a person, none of which has to be answered."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for question in SURVEY_QUESTIONS:
            self.fields[question.key] = _answer_field(question)
            self.fields[question.described] = forms.CharField(
                required=False,
                max_length=Survey._meta.get_field(question.described).max_length,
                error_messages={"max_length": TOO_LONG},
            )

    def clean(self) -> dict:
        answers = super().clean()
        for question in SURVEY_QUESTIONS:
            if question.key not in self.errors and question.described not in self.errors:
                self._settle(question, answers)
        return answers

    def _settle(self, question: SurveyQuestion, answers: dict) -> None:
        """Own words without another answer are an answer; refuse what contradicts itself."""
        chosen = [answers[question.key]] if not question.many else answers[question.key]
        if PREFER_NOT[0] in chosen and len(chosen) > 1:
            self.add_error(question.key, NOT_SAID_YET_SAID)
        elif answers[question.described] and DESCRIBE[0] not in chosen:
            if any(chosen):
                self.add_error(question.described, DESCRIBED_BESIDES)
            else:
                answers[question.key] = [DESCRIBE[0]] if question.many else DESCRIBE[0]

    def rows(self) -> list[dict]:
        """The questions with what the page shows beside each."""
        return [self._row(question) for question in SURVEY_QUESTIONS]

    def faulty_rows(self) -> list[dict]:
        return [row for row in self.rows() if row["errors"]]

    def _row(self, question: SurveyQuestion) -> dict:
        chosen = self[question.key].value() or []
        described = self[question.described]
        return {
            "question": question,
            "chosen": chosen if question.many else [chosen],
            "described": described.value() or "",
            "limit": described.field.max_length,
            "errors": [*self[question.key].errors, *described.errors],
        }


def _answer_field(question: SurveyQuestion) -> forms.ChoiceField:
    messages = {"invalid_choice": NO_SUCH_ANSWER, "invalid_list": NO_SUCH_ANSWER}
    kind = forms.MultipleChoiceField if question.many else forms.ChoiceField
    return kind(choices=question.answers, required=False, error_messages=messages)
