"""The forms on the pages of sets and trials."""

from django import forms
from django.conf import settings
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from generation.demonstrating import NotADemonstration, tidy
from generation.parameters import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, TopKParameters
from generation.trials import COUNT, MOST_AT_ONCE

MOST_LINES = 200


class DrawForm(forms.Form):
    """How responses are written; what is left out of the request is as in the paper."""

    count = forms.IntegerField(
        label="Responses",
        min_value=1,
        max_value=MOST_AT_ONCE,
        initial=COUNT,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
    )
    temperature = forms.FloatField(
        min_value=LOWEST_TEMPERATURE,
        max_value=HIGHEST_TEMPERATURE,
        initial=TopKParameters.temperature,
        required=False,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "any"}),
    )
    k = forms.IntegerField(
        label="k",
        min_value=1,
        initial=TopKParameters.k,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
    )
    max_new_tokens = forms.IntegerField(
        label="Tokens at most",
        min_value=1,
        max_value=1000,
        initial=TopKParameters.max_new_tokens,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
    )
    language_model = forms.CharField(
        max_length=300,
        initial=lambda: settings.LANGUAGE_MODEL,
        required=False,
        widget=UnfoldAdminTextInputWidget,
    )

    @property
    def order(self) -> dict:
        """What ``trials.ask`` takes."""
        defaults = {name: self.get_initial_for_field(field, name) for name, field in self.fields.items()}
        chosen = {name: self.cleaned_data[name] or default for name, default in defaults.items()}
        count, language_model = chosen.pop("count"), chosen.pop("language_model")
        return {"count": count, "language_model": language_model, "parameters": TopKParameters(**chosen)}


class AddForm(forms.Form):
    """New sentences, one a line."""

    texts = forms.CharField(
        label="New demonstrations, one a line",
        strip=False,  # empty lines count where a line is named by its number
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4}),
        error_messages={"required": "Write at least one sentence."},
    )

    def clean_texts(self) -> list[str]:
        written = enumerate(self.cleaned_data["texts"].splitlines(), start=1)
        lines = {number: line for number, line in written if line.strip()}
        if not lines:
            raise forms.ValidationError(self.fields["texts"].error_messages["required"])
        if len(lines) > MOST_LINES:
            raise forms.ValidationError(
                f"These are {len(lines)} lines. Add at most {MOST_LINES} at a time, or import them as a file."
            )
        for number, line in lines.items():
            try:
                tidy(line)
            except NotADemonstration as fault:
                raise forms.ValidationError(f"Line {number}: {fault}") from fault
        return [*lines.values()]
