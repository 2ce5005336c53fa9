"""The form by which a training is ordered."""

from collections.abc import Callable
from dataclasses import fields

from django import forms
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldBooleanSwitchWidget

from analysis.classifiers import orders
from analysis.classifiers.fields import KNOWN_IDS, LONGEST_MODEL, NAME, SHORT_PRECISIONS, BaseInput
from analysis.models import LabelSource, TrainingKind, TrainingMethods
from analysis.training.parameters import FineTuningParameters, HeadParameters, of_kind
from generation.forms import choice, whole_number
from generation.models import Precision
from generation.readings import ENCODER

OF_KIND = {
    kind: [field.name for field in fields(parameters)]
    for kind, parameters in ((TrainingKind.HEAD, HeadParameters), (TrainingKind.FULL, FineTuningParameters))
}


def number(**options) -> forms.FloatField:
    return forms.FloatField(
        required=False, widget=UnfoldAdminDecimalFieldWidget(attrs={"step": "any"}), min_value=0, **options
    )


def count(**options) -> forms.IntegerField:
    return whole_number(required=False, **{"min_value": 1} | options)


class TrainingForm(forms.Form):
    """What is trained, on what, and how. What is filled in for the kind that is not chosen is ignored."""

    name = forms.RegexField(**NAME, help_text="By this name it is chosen everywhere: lower-case letters, digits, -.")
    kind = choice(
        TrainingKind.choices,
        label="What is trained",
        help_text="A head takes seconds on a CPU; full fine-tuning takes minutes to hours, and learns more.",
    )
    base = forms.CharField(
        label="Model to begin with",
        initial=ENCODER,
        max_length=LONGEST_MODEL,
        widget=BaseInput,
        help_text="The embedded encoder, a classifier trained here, a folder, or a model id such as "
        f"{next(iter(KNOWN_IDS))}. A head stands on the embedded encoder.",
    )
    labels = choice(
        LabelSource.choices,
        label="What says that a statement is toxic",
        help_text="The label of its prompt, as in the paper, or the judgement of people, which fewer statements have.",
    )
    methods = choice(
        TrainingMethods.choices,
        initial=TrainingMethods.BOTH,
        label="Statements written by",
        help_text="As in the paper’s table 4.",
    )
    size = count(
        min_value=2,
        max_value=orders.MOST_SIZE,
        label="Statements at most",
        help_text="Left empty, all that there are; of ALICE and top-k equally many. Compare trainings of one size.",
    )
    seed = forms.IntegerField(
        initial=0,
        min_value=0,
        max_value=orders.MOST_SEED,
        widget=whole_number().widget,
        help_text="The same one gives the same classifier again.",
    )
    precision = choice(
        SHORT_PRECISIONS,
        initial=Precision.FLOAT32,
        help_text="bfloat16 is faster on a GPU that has it.",
    )
    validation_share = number(
        max_value=0.5,
        initial=HeadParameters.validation_share,
        label="Share for validation",
        help_text="Nothing is learned from these statements: they tell when to stop.",
    )
    balanced = forms.BooleanField(
        required=False,
        initial=HeadParameters.balanced,
        widget=UnfoldBooleanSwitchWidget,
        label="Weigh classes",
        help_text="The rarer class counts as much as the other.",
    )
    l2 = number(
        initial=HeadParameters.l2, label="L2 penalty", help_text="The higher, the smaller the weights of the head."
    )
    class_weights = forms.BooleanField(
        required=False,
        initial=FineTuningParameters.class_weights,
        widget=UnfoldBooleanSwitchWidget,
        label="Weigh classes",
        help_text="The rarer class counts as much as the other.",
    )
    epochs = count(initial=FineTuningParameters.epochs, help_text="Passes over the statements, at most.")
    batch_size = count(
        initial=FineTuningParameters.batch_size,
        label="Statements a batch",
        help_text="Halved by itself where the memory does not suffice.",
    )
    learning_rate = number(initial=FineTuningParameters.learning_rate)
    weight_decay = number(initial=FineTuningParameters.weight_decay)
    warmup = number(
        initial=FineTuningParameters.warmup, label="Warm-up", help_text="The share of steps in which the rate rises."
    )
    patience = count(
        initial=FineTuningParameters.patience,
        help_text="It stops after so many looks at the validation statements without a better one.",
    )
    evaluations_an_epoch = count(
        initial=FineTuningParameters.evaluations_an_epoch,
        label="Looks an epoch",
        help_text="How often it is tested on the validation statements: the points of the curve.",
    )
    longest = count(
        initial=FineTuningParameters.longest, label="Tokens at most", help_text="Of a statement; the rest is cut off."
    )

    of_order = ["name", "kind", "base", "labels", "methods", "size", "seed", "precision"]

    @property
    def main(self) -> list:
        return [self[name] for name in self.of_order]

    @property
    def advanced(self) -> list[tuple[str, list]]:
        """The fields of both kinds, of the head, and of full fine-tuning."""
        head, full = OF_KIND[TrainingKind.HEAD], OF_KIND[TrainingKind.FULL]
        both = [name for name in head if name in full]
        parts = {
            "": both,
            "of-head": [name for name in head if name not in both],
            "of-full": [name for name in full if name not in both],
        }
        return [(part, [self[name] for name in names]) for part, names in parts.items()]

    @property
    def is_advanced_wrong(self) -> bool:
        return any(field.errors for _, part in self.advanced for field in part)

    def clean(self) -> dict:
        cleaned = super().clean()
        kind = cleaned.get("kind")
        if not kind:
            return cleaned
        for name in {name for names in OF_KIND.values() for name in names} - set(OF_KIND[kind]):
            self.errors.pop(name, None)
            cleaned.pop(name, None)
        if not self.errors:
            self._check("name", lambda: orders.check_name(cleaned["name"]))
            self._check("base", lambda: orders.check_base(kind, cleaned["base"]))
            self._check("", lambda: of_kind(kind, self.parameters()))
        return cleaned

    def _check(self, name: str, check: Callable[[], object]) -> None:
        try:
            check()
        except ValueError as wrong:
            if name:
                self.add_error(name, str(wrong))
            else:
                self.refuse(str(wrong))

    def refuse(self, reason: str) -> None:
        """Say why it cannot be, beside the field whose parameter the reason begins with."""
        name, _, rest = reason.partition(" ")
        if name in self.fields:
            self.add_error(name, f"{self[name].label} {rest}")
        else:
            self.add_error(None, reason)

    def parameters(self) -> dict:
        """Those of the kind that were given."""
        given = {name: self.cleaned_data[name] for name in OF_KIND[self.cleaned_data["kind"]]}
        return {name: value for name, value in given.items() if value is not None}

    def order(self) -> dict:
        """What ``orders.start_training`` takes."""
        return {name: self.cleaned_data[name] for name in self.of_order} | {"parameters": self.parameters()}
