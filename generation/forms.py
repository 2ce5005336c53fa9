"""The form that starts a run."""

from dataclasses import fields

from django import forms
from django.conf import settings
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from generation import runs
from generation.models import GenerationRun, Label, Method, Precision, RunMethod, TargetGroup
from generation.parameters import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    AliceParameters,
    Direction,
    Selection,
    TopKParameters,
)
from generation.prompting import NotEnoughDemonstrations

SELECTIONS = {Selection.TOPK: "take the best", Selection.SAMPLE: "draw them by their scores"}
PRECISIONS = {Precision.FLOAT32: "float32", Precision.BFLOAT16: "bfloat16: faster, other statements"}
DIRECTIONS = {
    Direction.FALSE_POSITIVES: "what the classifier wrongly takes for toxic (false positives)",
    Direction.FALSE_NEGATIVES: "what the classifier wrongly takes for benign (false negatives)",
}


def whole_number(**options) -> forms.IntegerField:
    return forms.IntegerField(widget=UnfoldAdminIntegerFieldWidget, **options)


def number(**options) -> forms.FloatField:
    return forms.FloatField(widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "any"}), **options)


def choice(choices, **options) -> forms.ChoiceField:
    return forms.ChoiceField(choices=choices, widget=UnfoldAdminSelectWidget, **options)


def in_words(parameters: dict) -> list[tuple[str, str]]:
    """The decoding parameters of a method as (what the form calls them, value)."""
    rows = [("Sought", DIRECTIONS[parameters["direction"]])] if "direction" in parameters else []
    for name, field in RunForm.base_fields.items():
        if name in parameters:
            rows.append((field.label or name.capitalize(), _value_in_words(name, parameters[name])))
    return rows


def _value_in_words(name: str, value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return SELECTIONS[value] if name == "selection" else str(value)


class RunForm(forms.ModelForm):
    """An order for statements: the same number for each chosen group.

    What is filled in for a method that is not chosen is ignored.
    """

    groups = forms.ModelMultipleChoiceField(
        TargetGroup.objects.all(),
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        error_messages={"required": "Choose at least one group."},
    )
    label = choice(
        Label.choices,
        initial=Label.BENIGN,
        label="Prompt label",
        help_text="Which demonstrations prompts are drawn from. For ALICE it decides the direction too.",
    )
    count = whole_number(
        min_value=1,
        max_value=10_000,
        initial=16,
        label="Statements a group",
        help_text="With both methods so many of each, in pairs from the same prompts.",
    )
    method = choice(
        RunMethod.choices,
        initial=RunMethod.TOPK,
        help_text="Top-k continues the prompt as the language model would; ALICE searches for what fools a classifier.",
    )
    temperature = number(
        min_value=LOWEST_TEMPERATURE,
        max_value=HIGHEST_TEMPERATURE,
        initial=TopKParameters.temperature,
        help_text="Below 1 the language model keeps to its favourites, above 1 it is more daring.",
    )
    max_new_tokens = whole_number(
        min_value=1,
        max_value=1000,
        initial=TopKParameters.max_new_tokens,
        label="Tokens at most",
        help_text="A statement ends at a line break, or when it has so many tokens.",
    )
    seed = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2**63 - 1,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Repeats a run exactly. Left empty, one is drawn and noted.",
    )
    k = whole_number(
        min_value=1,
        initial=TopKParameters.k,
        label="k",
        help_text="How many tokens there are to draw from at each step.",
    )
    classifier = forms.CharField(
        initial=lambda: settings.CLASSIFIER,
        max_length=300,
        widget=UnfoldAdminTextInputWidget,
        help_text="Whom ALICE plays against: the embedded one, or a folder or id of a toxicity classifier.",
    )
    lm_weight = number(
        min_value=0,
        initial=AliceParameters.lm_weight,
        label="λ_L, weight of the language model",
        help_text="The paper's is 0.5.",
    )
    classifier_weight = number(
        min_value=0,
        initial=AliceParameters.classifier_weight,
        label="λ_C, weight of the classifier",
        help_text="The paper's is 0.5. With 0 it is a plain beam search.",
    )
    beam = whole_number(
        min_value=1,
        max_value=100,
        initial=AliceParameters.beam,
        label="Beam",
        help_text="How many hypotheses are kept at each step.",
    )
    vocabulary = whole_number(
        min_value=1,
        max_value=10_000,
        initial=AliceParameters.vocabulary,
        label="Candidates a hypothesis",
        help_text="The language model's best tokens that can continue it.",
    )
    selection = choice(
        [(value.value, words) for value, words in SELECTIONS.items()],
        initial=AliceParameters.selection.value,
        label="How the next beam is chosen",
        help_text="Drawing makes statements more varied; the seed decides them.",
    )
    no_repeat_ngram_size = whole_number(
        min_value=0,
        max_value=100,
        initial=AliceParameters.no_repeat_ngram_size,
        label="No repetition of so many tokens",
        help_text="0 allows every repetition, as in the paper. Small models write in circles: 3 stops that.",
    )
    group_words_allowed = forms.BooleanField(
        required=False,
        initial=AliceParameters.group_words_allowed,
        widget=UnfoldBooleanSwitchWidget,
        label="The group may be named",
        help_text="Other words of the prompt are never repeated, to prevent copies.",
    )
    n_best = whole_number(
        min_value=1,
        max_value=100,
        initial=AliceParameters.n_best,
        label="Hypotheses stored",
        help_text="The best of the last beam, with both models' votes. The first is the statement.",
    )
    language_model = forms.CharField(
        initial=lambda: settings.LANGUAGE_MODEL,
        max_length=300,
        widget=UnfoldAdminTextInputWidget,
        help_text="The embedded one, a folder or id of a causal model, or a completions server's address.",
    )
    precision = choice(
        [(value.value, words) for value, words in PRECISIONS.items()],
        initial=Precision.FLOAT32,
        help_text="bfloat16 is faster on hardware that has it, and changes about half of the statements.",
    )

    class Meta:
        model = GenerationRun
        fields = ["method", "language_model", "classifier", "precision", "seed"]

    of_a_method = {
        Method.TOPK: ["k"],
        Method.ALICE: [
            "classifier", "lm_weight", "classifier_weight", "beam", "vocabulary", "selection", "no_repeat_ngram_size",
            "group_words_allowed", "n_best",
        ],
    }  # fmt: skip

    def clean(self) -> dict:
        cleaned = super().clean()
        if "method" not in cleaned:
            return cleaned
        self.methods = RunMethod(cleaned["method"]).methods
        for name in (
            name for method, names in self.of_a_method.items() if method not in self.methods for name in names
        ):
            self.errors.pop(name, None)
            cleaned.pop(name, None)
        if not self.errors:
            self._check_together(cleaned)
        return cleaned

    def _check_together(self, cleaned: dict) -> None:
        """What can be wrong though each value by itself is right."""
        if Method.ALICE in self.methods and not cleaned["lm_weight"] and not cleaned["classifier_weight"]:
            self.add_error(
                "classifier_weight", "One of the two weights must be above 0, or nothing ranks the hypotheses."
            )
            return
        try:
            runs.check_models(
                cleaned["method"],
                language_model=cleaned["language_model"],
                classifier=cleaned["classifier"] if Method.ALICE in self.methods else "",
                precision=cleaned["precision"],
            )
        except ValueError as error:
            self.add_error("language_model", str(error))
        for group in cleaned["groups"]:
            try:
                runs.check_cell(runs.Cell(group, cleaned["label"], cleaned["count"]))
            except NotEnoughDemonstrations as error:
                self.add_error("groups", str(error))

    def _post_clean(self) -> None:
        """The form makes no row by itself: ``runs.start_run`` does."""

    def save(self, commit: bool = True) -> GenerationRun:
        """Start the run at once: it and its chunks are one act."""
        chosen = self.cleaned_data
        searches = Method.ALICE in self.methods
        return runs.start_run(
            cells=[runs.Cell(group, chosen["label"], chosen["count"]) for group in chosen["groups"]],
            method=chosen["method"],
            topk=self._parameters(TopKParameters) if Method.TOPK in self.methods else None,
            alice=self._parameters(AliceParameters, direction=Direction.for_label(chosen["label"]))
            if searches
            else None,
            language_model=chosen["language_model"],
            classifier=chosen["classifier"] if searches else "",
            precision=chosen["precision"],
            seed=chosen["seed"],
            created_by=self.created_by,
        )

    def _parameters(self, kind: type, **given):
        """The decoding parameters of that kind, each from the field of its name."""
        return kind(**{field.name: self.cleaned_data.get(field.name) for field in fields(kind)} | given)

    def save_m2m(self) -> None:
        """Nothing is left to store."""
