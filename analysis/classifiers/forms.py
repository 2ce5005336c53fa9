"""The forms by which a test set is uploaded, and classifiers are tested on test sets."""

from django import forms
from django.conf import settings
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminTextInputWidget

from analysis.classifiers.fields import LONGEST_MODEL, NAME, SHORT_PRECISIONS, ClassifierInput
from analysis.imports.encodings import encoding_of_name
from analysis.imports.faults import Refused
from analysis.imports.wording import CHOICES, LABELS
from analysis.models import EvaluationSet, HumanvalSet, HumanvalState
from generation.forms import choice
from generation.models import Precision


class EvaluateForm(forms.Form):
    """A classifier, and the test sets that it scores."""

    model = forms.CharField(
        label="Classifier",
        max_length=LONGEST_MODEL,
        initial=lambda: settings.CLASSIFIER,
        widget=ClassifierInput,
        help_text="The embedded one, one trained here, a folder, or a model id; with #LABEL where its toxic label is "
        "not to be known by its name.",
    )
    precision = choice(SHORT_PRECISIONS, initial=Precision.FLOAT32)
    test_sets = forms.MultipleChoiceField(
        label="Test sets",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one test set."},
    )

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.sets = test_sets()
        self.fields["test_sets"].choices = [(key, name_of(one)) for key, one in self.sets.items()]

    def chosen(self) -> list[HumanvalSet | EvaluationSet]:
        return [self.sets[key] for key in self.cleaned_data["test_sets"]]


def test_sets() -> dict[str, HumanvalSet | EvaluationSet]:
    """All that a classifier can be tested on, by a key for forms: frozen HUMANVAL sets, and those from files."""
    frozen = HumanvalSet.objects.filter(state=HumanvalState.FROZEN).order_by("-version")
    return {key_of(one): one for one in (*frozen, *EvaluationSet.objects.order_by("name"))}


def key_of(test_set: HumanvalSet | EvaluationSet) -> str:
    return f"{test_set._meta.model_name}-{test_set.pk}"


def name_of(test_set: HumanvalSet | EvaluationSet) -> str:
    texts = test_set.texts_count if isinstance(test_set, EvaluationSet) else test_set.report.get("chosen", 0)
    return f"{test_set} ({texts:,} texts)"


class TestSetForm(forms.Form):
    """A file of texts with labels, and which of its columns are what."""

    file = forms.FileField(help_text="CSV, JSON lines or Parquet; UTF-8, or UTF-16 with its mark.")
    name = forms.RegexField(**NAME, help_text="Lower-case letters, digits, -. Such as: hatecheck.")
    text = forms.CharField(
        label="Column of the texts", initial="text", max_length=200, widget=UnfoldAdminTextInputWidget
    )
    label = forms.CharField(
        label="Column of the labels", initial="label", max_length=200, widget=UnfoldAdminTextInputWidget
    )
    positive = forms.CharField(
        label="Labels that say “toxic”",
        required=False,
        initial="1",
        max_length=1000,
        widget=UnfoldAdminTextInputWidget,
        help_text="With commas between: hateful, offensive. All other labels are benign.",
    )
    above = forms.FloatField(
        label="Or: toxic above",
        required=False,
        widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "any"}),
        help_text="Where labels are numbers: 0.5, or 3. Then leave the field of labels empty.",
    )
    group = forms.CharField(
        label="Column of the groups",
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget,
        help_text="Whom a text is about, if the file says so: for the rate of false positives a group.",
    )
    functionality = forms.CharField(
        label="Column of the functionalities",
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget,
        help_text="What a text tests, if the file says so, as HateCheck’s does.",
    )
    where = forms.CharField(
        label="Only rows where",
        required=False,
        max_length=1000,
        widget=UnfoldAdminTextInputWidget,
        help_text="COLUMN=VALUE, with commas between. Such as: split=test",
    )
    on_fault = choice(CHOICES["on_fault"].items(), label=LABELS["on_fault"])
    encoding = forms.CharField(
        label=LABELS["encoding"],
        required=False,
        max_length=30,
        widget=UnfoldAdminTextInputWidget,
        help_text="Where it is neither UTF-8 nor marked: cp1252 for files of old spreadsheets.",
    )

    def clean_positive(self) -> list[str]:
        return split(self.cleaned_data["positive"])

    def clean_encoding(self) -> str:
        name = self.cleaned_data["encoding"].strip()
        try:
            return name and encoding_of_name(name)
        except Refused as refused:
            raise forms.ValidationError(str(refused)) from refused

    def clean_where(self) -> dict[str, list[str]]:
        wanted: dict[str, list[str]] = {}
        for part in split(self.cleaned_data["where"]):
            column, sign, value = (word.strip() for word in part.partition("="))
            if not (sign and column):
                raise forms.ValidationError(f"“{part}” is no condition. Write COLUMN=VALUE, such as split=test.")
            wanted.setdefault(column, []).append(value)
        return wanted

    def clean(self) -> dict:
        cleaned = super().clean()
        if not self.errors and bool(cleaned["positive"]) == (cleaned["above"] is not None):
            self.add_error("positive", "Say which labels mean toxic, or above which number they do: one of the two.")
        return cleaned

    def asked(self) -> dict:
        """What ``evaluation_sets.import_test_set`` takes beside the file."""
        return {name: self.cleaned_data[name] for name in self.fields if name != "file"}


def split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
