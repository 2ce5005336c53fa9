"""The form that starts a run."""

from django import forms
from django.conf import settings
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from generation import runs
from generation.models import GenerationRun, Label, Method, TargetGroup
from generation.parameters import TopKParameters
from generation.prompting import NotEnoughDemonstrations


class RunForm(forms.ModelForm):
    """An order for statements: the same number for each chosen group."""

    groups = forms.ModelMultipleChoiceField(
        TargetGroup.objects.all(),
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        error_messages={"required": "Choose at least one group."},
    )
    label = forms.ChoiceField(
        choices=Label.choices,
        widget=UnfoldAdminSelectWidget,
        initial=Label.BENIGN,
        label="Prompt label",
        help_text="Which demonstrations prompts are drawn from.",
    )
    count = forms.IntegerField(
        min_value=1, max_value=10_000, initial=16, widget=UnfoldAdminIntegerFieldWidget, label="Statements a group"
    )
    method = forms.ChoiceField(choices=Method.choices, widget=UnfoldAdminSelectWidget)
    k = forms.IntegerField(
        min_value=1,
        initial=TopKParameters.k,
        widget=UnfoldAdminIntegerFieldWidget,
        label="k",
        help_text="How many tokens there are to choose from at each step.",
    )
    temperature = forms.FloatField(
        initial=TopKParameters.temperature,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "any"}),
        help_text="Below 1 the model is more careful, above 1 more daring.",
    )
    max_new_tokens = forms.IntegerField(
        min_value=1, max_value=1000, initial=TopKParameters.max_new_tokens, widget=UnfoldAdminIntegerFieldWidget
    )
    seed = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2**63 - 1,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Repeats a run exactly. Left empty, one is drawn and noted.",
    )
    language_model = forms.CharField(
        initial=lambda: settings.LANGUAGE_MODEL, max_length=300, widget=UnfoldAdminTextInputWidget
    )

    class Meta:
        model = GenerationRun
        fields = ["method", "language_model", "seed"]

    field_order = ["groups", "label", "count", "method", "k", "temperature", "max_new_tokens", "seed", "language_model"]

    def clean(self) -> dict:
        cleaned = super().clean()
        if self.errors:
            return cleaned
        try:
            self.parameters = TopKParameters(**{name: cleaned[name] for name in ("k", "temperature", "max_new_tokens")})
            for group in cleaned["groups"]:
                runs.check_cell(runs.Cell(group, cleaned["label"], cleaned["count"]))
        except (NotEnoughDemonstrations, ValueError) as error:
            raise forms.ValidationError(str(error)) from error
        return cleaned

    def save(self, commit: bool = True) -> GenerationRun:
        """Start the run at once: it and its chunks are one act."""
        chosen = self.cleaned_data
        return runs.start_run(
            cells=[runs.Cell(group, chosen["label"], chosen["count"]) for group in chosen["groups"]],
            language_model=chosen["language_model"],
            method=chosen["method"],
            parameters=self.parameters,
            seed=chosen["seed"],
            created_by=self.created_by,
        )

    def save_m2m(self) -> None:
        """Nothing is left to store."""
