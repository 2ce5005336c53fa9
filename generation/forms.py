"""The form that starts a run."""

from collections.abc import Iterable
from dataclasses import fields

from django import forms
from django.conf import settings
from django.db.models import Count, Q
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from generation import runs
from generation.cells import Cell, usable_texts, why_too_small
from generation.models import GenerationRun, Label, Method, Precision, RunMethod, TargetGroup
from generation.parameters import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    AliceParameters,
    Direction,
    Selection,
    TopKParameters,
)
from generation.trained import ClassifierInput

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


def in_words(parameters: dict, *, labels: Iterable[str] = ()) -> list[tuple[str, str]]:
    """The decoding parameters of a method as (what the form calls them, value); of a search what each label seeks."""
    rows = [
        (f"Sought from {label} prompts", DIRECTIONS[Direction.for_label(label)])
        for label in labels
        if "beam" in parameters
    ]
    for name, field in RunForm.base_fields.items():
        if name in parameters:
            rows.append((field.label or name.capitalize(), _value_in_words(name, parameters[name])))
    return rows


def settings_of(run: GenerationRun) -> dict:
    """What the form has to be filled with for another run like this one; its seed is left to be drawn."""
    cells = list(run.cells.all())
    parameters = {name: value for values in run.parameters.values() for name, value in values.items()}
    return parameters | {
        "groups": sorted({cell.group_id for cell in cells}),
        "labels": sorted({cell.label for cell in cells}),
        "count": max((cell.places for cell in cells), default=RunForm.base_fields["count"].initial),
        "method": run.method,
        "language_model": run.language_model,
        "precision": run.precision,
        **({"classifier": run.classifier} if run.classifier else {}),
    }


class GroupsField(forms.ModelMultipleChoiceField):
    """Groups, each with how many demonstrations its sets have."""

    def label_from_instance(self, group: TargetGroup) -> str:
        return f"{group} ({group.benign} benign, {group.toxic} toxic)"


def groups_with_set_sizes():
    in_use = Q(demonstrations__retired_at=None)
    return TargetGroup.objects.annotate(
        **{label: Count("demonstrations", filter=in_use & Q(demonstrations__label=label)) for label in Label.values}
    )


def _value_in_words(name: str, value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return SELECTIONS[value] if name == "selection" else str(value)


class RunForm(forms.ModelForm):
    """An order for statements: the same number for each chosen group and label.

    What is filled in for a method that is not chosen is ignored.
    """

    groups = GroupsField(
        groups_with_set_sizes(),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="In brackets how many demonstrations there are to draw prompts from; five is the least.",
    )
    all_groups = forms.BooleanField(required=False, widget=UnfoldBooleanSwitchWidget, label="All groups")
    labels = forms.MultipleChoiceField(
        choices=Label.choices,
        initial=Label.values,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        label="Prompt labels",
        error_messages={"required": "Choose benign, toxic or both."},
        help_text="Which demonstrations prompts are drawn from: with both, as many toxic as benign ones a group.",
    )
    count = whole_number(
        min_value=1,
        max_value=10_000,
        initial=16,
        label="Statements a set",
        help_text="Of each group and label. With both methods so many of each, in pairs from the same prompts.",
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
        max_value=100_000,
        initial=TopKParameters.k,
        label="k",
        help_text="How many tokens there are to draw from at each step.",
    )
    classifier = forms.CharField(
        initial=lambda: settings.CLASSIFIER,
        max_length=300,
        widget=ClassifierInput,
        help_text="Whom ALICE plays against: the embedded one, one trained here by its name, or a folder or id.",
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
        self._choose_cells(cleaned)
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
        for reason in self.too_small.values():
            self.add_error("groups", reason)
        return cleaned

    def _choose_cells(self, cleaned: dict) -> None:
        """The sets that are chosen, and why no prompt can be drawn from some of them."""
        groups = list(TargetGroup.objects.all() if cleaned.get("all_groups") else cleaned.get("groups") or ())
        if not groups and "groups" in cleaned:
            self.add_error("groups", "Choose at least one group.")
        count = cleaned.get("count") or 1
        self.cells = [Cell(group, Label(label), count) for group in groups for label in cleaned.get("labels") or ()]
        sets = usable_texts(groups)
        reasons = ((cell, why_too_small(cell, sets[cell.key])) for cell in self.cells)
        self.too_small = {cell: f"{reason} Or leave this set out." for cell, reason in reasons if reason}

    def _check_together(self, cleaned: dict) -> None:
        """What can be wrong though each value by itself is right."""
        if Method.ALICE in self.methods and not cleaned["lm_weight"] and not cleaned["classifier_weight"]:
            self.add_error(
                "classifier_weight", "One of the two weights must be above 0, or nothing ranks the hypotheses."
            )
            return
        try:
            runs.check_models(cleaned["method"], **self._models(cleaned))
        except ValueError as error:
            self.add_error("language_model", str(error))
        try:
            runs.checked_chunk_size()
        except ValueError as error:
            self.add_error(None, str(error))

    def _models(self, cleaned: dict) -> dict[str, str]:
        return {
            "language_model": cleaned["language_model"],
            "classifier": cleaned["classifier"] if Method.ALICE in self.methods else "",
            "precision": cleaned["precision"],
        }

    def _post_clean(self) -> None:
        """The form makes no row by itself: ``runs.start_run`` does."""

    def order(self) -> dict:
        """What ``runs.start_run`` is given, but for the cells and the seed; of values that are right."""
        kinds = {Method.TOPK: TopKParameters, Method.ALICE: AliceParameters}
        return {
            "method": self.cleaned_data["method"],
            **{method.value: self._parameters(kinds[method]) for method in self.methods},
            **self._models(self.cleaned_data),
        }

    def save(self, commit: bool = True) -> GenerationRun:
        """Start the run at once: it, its cells and its chunks are one act."""
        return runs.start_run(
            cells=self.cells, seed=self.cleaned_data["seed"], created_by=self.created_by, **self.order()
        )

    def _parameters(self, kind: type) -> TopKParameters | AliceParameters:
        """The decoding parameters of that kind, each from the field of its name."""
        names = {field.name for field in fields(kind)} & self.base_fields.keys()
        return kind(**{name: self.cleaned_data[name] for name in names})

    def save_m2m(self) -> None:
        """Nothing is left to store."""
