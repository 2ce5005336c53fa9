"""The form by which files are uploaded to be imported."""

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget, UnfoldBooleanWidget

from analysis.imports.encodings import encoding_of_name
from analysis.imports.faults import Refused
from analysis.imports.groups import slug_of
from analysis.imports.wording import CHOICES, LABELS
from analysis.imports.work import Options
from analysis.models import ImportFormat
from generation.models import Label, Method

AS_THE_FILE_SAYS = ("", "as the file says")


class FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One file or several."""

    widget = FilesInput

    def clean(self, data, initial=None) -> list:
        files = data if isinstance(data, list | tuple) else [data]
        return [super(FilesField, self).clean(file, initial) for file in files or [None]]


class ImportForm(forms.Form):
    """What is uploaded, and what to do with it."""

    format = forms.ChoiceField(
        label="What the file holds",
        choices=[("", "choose …"), *ImportFormat.choices],
        widget=UnfoldAdminSelectWidget,
        help_text="Demonstrations and prompts also as text files, one a line: several at once, named as published "
        "(hate_GROUP.txt, neutral_GROUP.txt).",
    )
    files = FilesField(label="File", help_text="CSV, JSON lines or Parquet; UTF-8, or UTF-16 with its mark.")
    on_fault = forms.ChoiceField(
        label=LABELS["on_fault"],
        choices=[*CHOICES["on_fault"].items()],
        widget=UnfoldAdminSelectWidget,
    )
    make_groups = forms.BooleanField(label=LABELS["make_groups"], required=False, widget=UnfoldBooleanWidget)
    study = forms.CharField(
        label=LABELS["study"],
        required=False,
        max_length=200,
        widget=UnfoldAdminTextInputWidget,
        help_text="Of annotations: the title of the study that they go into.",
    )
    group = forms.CharField(
        label=LABELS["group"],
        required=False,
        max_length=50,
        widget=UnfoldAdminTextInputWidget,
        help_text="The slug, for rows that say none, or for a whole text file.",
    )
    label = forms.ChoiceField(
        label=LABELS["label"],
        required=False,
        choices=[AS_THE_FILE_SAYS, *Label.choices],
        widget=UnfoldAdminSelectWidget,
    )
    method = forms.ChoiceField(
        label=LABELS["method"],
        required=False,
        choices=[AS_THE_FILE_SAYS, *Method.choices],
        widget=UnfoldAdminSelectWidget,
    )
    encoding = forms.CharField(
        label=LABELS["encoding"],
        required=False,
        max_length=30,
        widget=UnfoldAdminTextInputWidget,
        help_text="Where it is neither UTF-8 nor marked: cp1252 for files of old spreadsheets.",
    )

    def clean_encoding(self) -> str:
        name = self.cleaned_data["encoding"].strip()
        try:
            return name and encoding_of_name(name)
        except Refused as refused:
            raise forms.ValidationError(str(refused)) from refused

    def clean_group(self) -> str:
        return slug_of(self.cleaned_data["group"])

    def options(self) -> Options:
        return Options(**{name: self.cleaned_data[name] for name in Options.__dataclass_fields__})
