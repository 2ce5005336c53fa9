"""Fields that the forms of classifiers share: a name, and a model with suggestions."""

from collections.abc import Iterable

from django.conf import settings
from unfold.widgets import UnfoldAdminTextInputWidget

from analysis.classifiers.evaluations import known_classifiers
from analysis.models import TrainedClassifier
from generation.forms import PRECISIONS
from generation.readings import ENCODER

KNOWN_IDS = {
    "GroNLP/hateBERT": "HateBERT",
    "Xuhui/ToxDect-roberta-large": "ToxDectRoBERTa",
    "tomh/toxigen_hatebert": "HateBERT of the paper",
    "tomh/toxigen_roberta": "ToxDectRoBERTa of the paper",
}
"""Models of the paper; whoever chooses one lets a worker fetch it, or has it."""
LONGEST_MODEL = TrainedClassifier._meta.get_field("base").max_length
NAME = {
    "regex": "^[a-z0-9][a-z0-9-]*$",
    "max_length": TrainedClassifier._meta.get_field("name").max_length,
    "widget": UnfoldAdminTextInputWidget,
    "error_messages": {
        "invalid": "A name has lower-case letters, digits and hyphens, and begins with a letter or a digit."
    },
}
SHORT_PRECISIONS = [(value.value, words.partition(":")[0]) for value, words in PRECISIONS.items()]
SUGGESTED = 50


class ModelInput(UnfoldAdminTextInputWidget):
    """A text with suggestions, which the template puts below it; any other text can be given as well."""

    def get_context(self, name, value, attrs) -> dict:
        return super().get_context(name, value, {**attrs, "list": f"{attrs['id']}_known"})

    @staticmethod
    def suggest() -> Iterable[tuple[str, str]]:
        """The value of each with what it is."""
        return ()


class BaseInput(ModelInput):
    @staticmethod
    def suggest() -> Iterable[tuple[str, str]]:
        yield ENCODER, "the embedded encoder, which the embedded classifier stands on"
        for name in TrainedClassifier.objects.finished().values_list("name", flat=True)[:SUGGESTED]:
            yield name, "trained here"
        yield from KNOWN_IDS.items()


class ClassifierInput(ModelInput):
    @staticmethod
    def suggest() -> Iterable[tuple[str, str]]:
        for name in known_classifiers():
            yield name, "the one of the settings" if name == settings.CLASSIFIER else "trained or used here"
        yield from KNOWN_IDS.items()
