"""The form of a study: what cannot be is refused, and so is what would publish below the wage floor."""

from datetime import timedelta

from django import forms
from django.urls import reverse
from django.utils.html import format_html
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from annotator import wages
from annotator.models import HITType, KnownAnswers

ON_WHICH_PUBLISHING_RESTS = {"reward", "wage_floor", "expected_time", "run", "known_answers"}
ON_WHICH_KNOWN_ANSWERS_REST = ON_WHICH_PUBLISHING_RESTS | {"lifetime", "grants"}
WHERE_TO_MAKE_THEM = {
    "qualifications": (
        'There are no qualifications yet, so everybody may work. <a href="{}" class="text-link">Make one</a> '
        "to leave the study to those who have it.",
        "admin:annotator_qualification_changelist",
    ),
    "known_answers": (
        'There are no statements with known answers yet. <a href="{}" class="text-link">Make some</a> '
        "for attention checks and tests.",
        "admin:annotator_knownanswers_changelist",
    ),
}
"""What is said instead of check boxes as long as there is nothing to tick, and where it leads."""


class KnownAnswersField(forms.ModelMultipleChoiceField):
    """Known answers by the number and the note of their statement; its text may hurt."""

    def label_from_instance(self, known: KnownAnswers) -> str:
        return f"statement {known.generation_id}" + (f": {known.note}" if known.note else "")


class StudyForm(forms.ModelForm):
    """A study; one that pays too little is saved only if nothing of it would be published."""

    known_answers = KnownAnswersField(
        queryset=KnownAnswers.objects.order_by("-pk"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=HITType._meta.get_field("known_answers").help_text,
    )

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for name, (said, page) in WHERE_TO_MAKE_THEM.items():
            if name in self.fields and not self.fields[name].queryset.exists():
                self.fields[name].help_text = format_html(said, reverse(page))

    def clean(self) -> dict:
        cleaned = super().clean()
        wage = self._wage(cleaned)
        publishes = cleaned.get("run") or cleaned.get("known_answers") or self._is_on_offer()
        if wage and publishes and not wage.enough and ON_WHICH_PUBLISHING_RESTS & set(self.changed_data):
            self.add_error("reward", wages.too_low(wage))
        return cleaned

    def _is_on_offer(self) -> bool:
        return bool(self.instance.pk) and self.instance.hits.assignable().exists()

    def _wage(self, cleaned: dict) -> wages.Wage | None:
        """What the study would pay; None while that cannot be told."""
        pay = {name: cleaned.get(name) for name in ("reward", "wage_floor", "expected_time")}
        if None in pay.values() or pay["expected_time"] <= timedelta(0):
            return None
        return wages.as_of_now(HITType(pk=self.instance.pk, **pay))
