"""The form that has statements read."""

from django import forms
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from generation import readings
from generation.forms import PRECISIONS, choice, whole_number
from generation.models import GenerationRun, Label, Method, Precision, ReaderKind, Reading, TargetGroup
from generation.trained import ClassifierInput

MOST_RUNS = 2**63 - 1
ALL_WHERE_NONE = "None chosen means all."


def some(choices, **options) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        choices=choices, required=False, widget=UnfoldAdminCheckboxSelectMultipleWidget, **options
    )


class ReadingForm(forms.Form):
    """Which statements a model reads. Those that it has read before are left out by ``readings.start_reading``."""

    kind = choice(ReaderKind.choices, label="What the model makes of a statement")
    model = forms.CharField(
        required=False,
        max_length=readings.LONGEST_NAME,
        widget=ClassifierInput,
        help_text="Of a classifier that was trained here its name; or a folder or model id. Left empty, it is the one "
        "of the settings; of encoders there is only that.",
    )
    precision = choice(
        [(value.value, words.partition(":")[0]) for value, words in PRECISIONS.items()],
        initial=Precision.FLOAT32,
        help_text="bfloat16 is faster on a GPU. What comes of it is kept apart, and depends a little on the batch.",
    )
    groups = forms.ModelMultipleChoiceField(
        TargetGroup.objects.all(),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=ALL_WHERE_NONE,
    )
    labels = some(Label.choices, label="Prompt labels", help_text=ALL_WHERE_NONE)
    methods = some(Method.choices, label="Methods", help_text=ALL_WHERE_NONE)
    run = whole_number(
        required=False,
        min_value=1,
        max_value=MOST_RUNS,
        label="Of run",
        help_text="The number of a run; left empty, statements of any origin.",
    )

    def clean_run(self) -> GenerationRun | None:
        number = self.cleaned_data["run"]
        run = GenerationRun.objects.filter(pk=number).first() if number else None
        if number and run is None:
            raise forms.ValidationError(f"There is no run {number}.")
        return run

    def start(self, *, by) -> Reading:
        """Start what a valid form asks for. Raises ``ValueError`` as ``readings.start_reading`` does."""
        asked = self.cleaned_data
        statements, about = readings.chosen_statements(
            **{name: asked[name] for name in ("groups", "labels", "methods", "run")}
        )
        return readings.start_reading(
            kind=asked["kind"],
            model=asked["model"].strip() or readings.default_model(asked["kind"]),
            precision=asked["precision"],
            generation_ids=statements,
            about=about,
            by=by,
        )
