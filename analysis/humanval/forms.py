"""The forms by which a HUMANVAL set is asked for and published."""

import copy
from datetime import timedelta
from decimal import Decimal

from django import forms
from django.utils.datastructures import MultiValueDict
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminIntegerFieldWidget, UnfoldAdminTextInputWidget

from analysis.exports.filtering import OF_STATEMENTS, FilterForm, WrongFilter
from analysis.humanval import freezing, sets
from analysis.humanval.pool import METHODS, Share, pool_filters
from annotator import choosing, wages
from annotator.models import HITType


class SetForm(forms.Form):
    """How large a set is wanted, how it is drawn, and which statements there are to choose from."""

    size = forms.IntegerField(
        label="Statements",
        initial=sets.SIZE,
        help_text="The paper's set has 792.",
        widget=UnfoldAdminIntegerFieldWidget,
    )
    threshold = forms.FloatField(
        label="Threshold",
        initial=sets.THRESHOLD,
        help_text="A cosine. No training statement will have a higher one with any statement of the set.",
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "any"}),
    )
    candidates = forms.IntegerField(
        label="Candidates a place",
        initial=sets.CANDIDATES,
        help_text="So many are drawn at random for each place, and the most isolated of them are taken: with 1 the set "
        "is a plain random sample, and more has to leave training.",
        widget=UnfoldAdminIntegerFieldWidget,
    )
    seed = forms.IntegerField(
        label="Seed",
        initial=choosing.new_seed,
        help_text="The same one draws the same statements again.",
        widget=UnfoldAdminIntegerFieldWidget,
    )

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        for name in OF_STATEMENTS:
            self.fields[name] = copy.deepcopy(FilterForm.base_fields[name])
        self.fields["method"].choices = [(str(method), method.label) for method in METHODS]
        self.fields["method"].error_messages["invalid_choice"] = (
            f"There is no method “%(value)s” to choose from. Choose one of: {', '.join(METHODS)}."
        )

    @property
    def of_drawing(self) -> list:
        return [self[name] for name in self.base_fields]

    @property
    def of_statements(self) -> list:
        return [self[name] for name in OF_STATEMENTS]

    def given_filters(self) -> MultiValueDict:
        """The filters as they were given."""
        return MultiValueDict({name: self.data.getlist(name) for name in OF_STATEMENTS if name in self.data})

    def asked(self) -> dict:
        """The rest of what ``sets.ask_for_set`` takes."""
        return {name: self.cleaned_data[name] for name in self.base_fields}

    def shares(self) -> list[Share] | None:
        """What there is of each stratum; None, with the fault told in the form, if no such set can be drawn."""
        if not self.is_valid():
            return None
        try:
            return sets.check(filters=pool_filters(self.given_filters()), **self.asked())
        except sets.CannotDraw as refused:
            self.add_error(refused.field if refused.field in self.fields else None, str(refused))
        except WrongFilter as wrong:
            for name, sentences in wrong.on_page.items():
                self.add_error(name, sentences)
        return None


class PublishForm(forms.Form):
    """The terms of the study that judges a set; whatever else there is can be set on the study's page."""

    title = forms.CharField(
        max_length=HITType._meta.get_field("title").max_length,
        initial=freezing.TITLE,
        widget=UnfoldAdminTextInputWidget,
    )
    reward = forms.DecimalField(
        label="Reward a statement (USD)",
        min_value=Decimal(0),
        max_digits=6,
        decimal_places=2,
        initial=HITType._meta.get_field("reward").default,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "0.01"}),
    )
    expected_seconds = forms.IntegerField(
        label="Seconds that a statement takes",
        min_value=1,
        max_value=24 * 3600,
        initial=int(HITType._meta.get_field("expected_time").default.total_seconds()),
        help_text="By your own trial. Nothing is published that pays less than the wage floor of "
        f"${HITType._meta.get_field('wage_floor').default} an hour.",
        widget=UnfoldAdminIntegerFieldWidget,
    )

    def clean(self) -> dict:
        chosen = super().clean()
        if not self.errors:
            try:
                wages.refuse_below_floor(HITType(**self.terms()))
            except wages.PayTooLow as refused:
                self.add_error("reward", str(refused))
        return chosen

    def terms(self) -> dict:
        """What ``freezing.publish`` takes."""
        chosen = self.cleaned_data
        expected = timedelta(seconds=chosen["expected_seconds"])
        return {"title": chosen["title"], "reward": chosen["reward"], "expected_time": expected}
