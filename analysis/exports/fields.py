"""The fields of the filters: what each takes, and what it says of a value that cannot be."""

from django import forms
from django.db.models import QuerySet
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from analysis.models import HumanvalSet
from generation.models import ReaderKind, TargetGroup
from generation.read_values import readers


class SlugsField(forms.ModelMultipleChoiceField):
    def __init__(self) -> None:
        super().__init__(
            TargetGroup.objects.all(),
            to_field_name="slug",
            required=False,
            label="Groups",
            widget=UnfoldAdminSelectMultipleWidget,
            error_messages={"invalid_choice": "There is no group “%(value)s”. Give the slug of one that there is."},
        )


class ReaderField(forms.ModelChoiceField):
    """A classifier in a revision and precision, by its number or, the one used last, by its name."""

    def __init__(self) -> None:
        super().__init__(
            readers(ReaderKind.CLASSIFIER),
            required=False,
            label="Classifier",
            help_text="Whose probabilities train gives, and the two scores are about: its number, or its name for the "
            "revision that was used last. Left empty: the score that was stored with each statement.",
            empty_label="",
            widget=UnfoldAdminSelectWidget,
            error_messages={
                "invalid_choice": "No classifier “%(value)s” has scored statements. Have it read them first: "
                "manage.py read_statements classifier --model NAME, or Generate, Readings."
            },
        )

    def to_python(self, value):
        if value in self.empty_values or str(value).isdecimal():
            return super().to_python(value)
        named = self.queryset.filter(name=value).first()
        return super().to_python(named.pk if named else value)


def words(label: str, choices: list, *, what: str) -> forms.MultipleChoiceField:
    names = ", ".join(value for value, _ in choices)
    return forms.MultipleChoiceField(
        choices=choices,
        required=False,
        label=label,
        widget=UnfoldAdminSelectMultipleWidget,
        error_messages={"invalid_choice": f"There is no {what} “%(value)s”. Choose one of: {names}."},
    )


def day(label: str, help_text: str) -> forms.DateField:
    return forms.DateField(
        required=False,
        label=label,
        help_text=help_text,
        widget=UnfoldAdminTextInputWidget(attrs={"type": "date"}),
        error_messages={"invalid": "Give a day as YYYY-MM-DD."},
    )


def score(label: str) -> forms.FloatField:
    return forms.FloatField(
        required=False,
        label=label,
        min_value=0,
        max_value=1,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "any"}),
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"), "A classifier's score is a number from 0 to 1."
        ),
    )


def version(sets: QuerySet[HumanvalSet], label: str, help_text: str, *, what: str) -> forms.ModelChoiceField:
    return forms.ModelChoiceField(
        sets,
        to_field_name="version",
        required=False,
        label=label,
        help_text=help_text,
        empty_label="",
        widget=UnfoldAdminSelectWidget,
        error_messages={
            "invalid_choice": f"There is no {what} with the version “%(value)s”. Give the version of one that there is."
        },
    )
