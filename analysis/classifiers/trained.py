"""Classifiers that were trained here, by the names under which a worker is to load them."""

from analysis.models import TrainedClassifier

LABELS = ("benign", "toxic")
"""Of every one, by their numbers."""


def why_not_usable(name: str) -> str:
    """Why no worker can load the trained classifier of a name, perhaps with a label; empty for any other model."""
    word, _, label = name.partition("#")
    trained = TrainedClassifier.objects.filter(name=word).first()
    if trained is None:
        return ""
    if trained.state != "finished":
        return "its training came to nothing" if trained.failure else "its training has not ended"
    if label and label.casefold() not in (*LABELS, *map(str, range(len(LABELS)))):
        return f"it has no label {label!r}, only {' and '.join(LABELS)}"
    return ""
