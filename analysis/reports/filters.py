"""What a report is made over: its filters, from an address or a command to rows of the database and back."""

import hashlib
import json
from collections.abc import Mapping

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget

from analysis.exports.filtering import FilterForm, WrongFilter, given, in_words, is_empty
from analysis.reports.catalogue import OF_LABELS, ReportKind
from annotator.questions import QUESTIONS

BY_NAME = {question.key: question for question in QUESTIONS}
YES, NO = "yes", "no"
FILTERS = (*OF_LABELS, "question")
"""All that reports take."""


class ReportForm(FilterForm):
    """The filters of exports that these reports take, and the question of an agreement."""

    question = forms.ChoiceField(
        choices=[("", "The toxicity class"), *((key, key.replace("_", " ")) for key in BY_NAME)],
        required=False,
        label="Agreement on",
        widget=UnfoldAdminSelectWidget,
        error_messages={
            "invalid_choice": f"There is no question “%(value)s”. Choose one of: {', '.join(BY_NAME)}; "
            "or none, for the toxicity class."
        },
    )

    def __init__(self, data: Mapping | None = None, *, takes: tuple[str, ...], with_titles: bool = False) -> None:
        """``with_titles``: studies are named by their titles, not by their numbers alone."""
        super().__init__(None if data is None else given(data), label_suffix="")
        self.fields = {name: field for name, field in self.fields.items() if name in takes}
        if "study" in self.fields and not with_titles:
            self.fields["study"].label_from_instance = lambda study: f"Study {study.pk}"

    def clean(self) -> dict:
        filled = super().clean()
        for name, field in self.fields.items():
            values = self.data.getlist(name)
            if len(values) > 1 and not getattr(field.widget, "allow_multiple_selected", False):
                self.add_error(name, f"This filter takes one value; it was given {len(values)}.")
        return filled


def filters_from(data: Mapping, kind: ReportKind) -> dict:
    """The filters that ``data``, a query string's or as ``in_address`` gives them, sets for a report of this kind.

    Raises ``WrongFilter`` for a value that cannot be and for a filter that the report does not take.
    """
    if names := foreign(data, kind.takes):
        sentence = "The report {} has no filter “{}”. It takes: {}."
        raise WrongFilter({name: [sentence.format(kind.name, name, ", ".join(kind.takes))] for name in names})
    form = ReportForm(data, takes=kind.takes)
    if not form.is_valid():
        raise WrongFilter({name: list(sentences) for name, sentences in form.errors.items()})
    return {name: value for name, value in form.cleaned_data.items() if not is_empty(value)}


def values_of(data: Mapping) -> dict[str, list[str]]:
    """What is not left empty, by name."""
    return {name: values for name, values in given(data).lists() if values}


def foreign(data: Mapping, takes: tuple[str, ...]) -> list[str]:
    """The names that are set and that are no filters among ``takes``."""
    return [name for name in values_of(data) if name not in takes]


def in_address(filters: Mapping) -> dict[str, str | list[str]]:
    """The same filters always in the same words: those of the address, lists in their order and without repetition."""
    told = {name: _told(value) for name, value in in_words(filters).items()}
    return dict(sorted(told.items()))


def _told(value: object) -> str | list[str]:
    if isinstance(value, list):
        return sorted({str(one) for one in value})
    if isinstance(value, bool):
        return YES if value else NO
    return str(value)


def digest(address: Mapping) -> str:
    """32 letters for filters as ``in_address`` gives them."""
    written = json.dumps(address, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2s(written.encode(), digest_size=16).hexdigest()
