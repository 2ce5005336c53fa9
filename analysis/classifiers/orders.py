"""Ordering a training and stopping it; what cannot come to anything is refused before hours are spent."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import structlog
from django.db import IntegrityError, transaction

from analysis.classifiers.choosing import Choice, NothingToTrainOn, choice_of
from analysis.classifiers.folders import folder_of
from analysis.models import LabelSource, TrainedClassifier, TrainingKind, TrainingMethods
from analysis.models.classifiers import NAME
from analysis.training import parameters as training_parameters
from generation import leases
from generation.auditing import note
from generation.models import Precision
from generation.readings import ENCODER
from generation.wakeups import ask_for_model

TRAIN = "analysis.train_classifier"
"""The task of the queue that trains a classifier."""
EMBEDDED = ("minilm-toxigen", ENCODER)
"""What comes with the install is called so."""
MOST_SEED = 2**63 - 1
MOST_SIZE = 2**31 - 1
LONGEST_NAME = TrainedClassifier._meta.get_field("name").max_length
LONGEST_BASE = TrainedClassifier._meta.get_field("base").max_length
LEAST_SIZE = 2
STOPPED = "It was stopped before its end. Train another one under another name."

__all__ = ["EMBEDDED", "TRAIN", "NothingToTrainOn", "preview", "start_training", "stop_training"]

log = structlog.get_logger(__name__)


def preview(
    *,
    labels: str = LabelSource.PROMPT,
    methods: str = TrainingMethods.BOTH,
    size: int | None = None,
    seed: int = 0,
) -> Choice:
    """Which statements a training ordered now would have, with the ``problem`` for which it would be refused.

    Raises ``ValueError`` for settings that there are not.
    """
    _check_known("source of labels", labels, LabelSource.values)
    _check_known("choice of methods", methods, TrainingMethods.values)
    _check_whole("size", size, least=LEAST_SIZE, most=MOST_SIZE)
    _check_whole("seed", seed, least=0, most=MOST_SEED)
    return choice_of(labels=labels, methods=methods, size=size, seed=seed)


@transaction.atomic
def start_training(
    *,
    name: str,
    kind: str = TrainingKind.HEAD,
    base: str = ENCODER,
    labels: str = LabelSource.PROMPT,
    methods: str = TrainingMethods.BOTH,
    size: int | None = None,
    seed: int = 0,
    precision: str = Precision.FLOAT32,
    parameters: Mapping | None = None,
    by=None,
    wake: bool = True,
) -> TrainedClassifier:
    """Store the order to train a classifier, and wake a worker for it.

    Its statements are chosen when the training begins, see ``data.py``; that there are enough is known before. Raises
    ``NothingToTrainOn``, and ``ValueError`` for whatever else cannot be done.
    """
    _check_known("kind of training", kind, TrainingKind.values)
    _check_known("precision", precision, Precision.values)
    check_name(name)
    check_base(kind, base)
    if kind == TrainingKind.HEAD and precision != Precision.FLOAT32:
        raise ValueError("A head is trained in float32, which takes seconds. Choose that precision, or kind full.")
    resolved = training_parameters.as_data(training_parameters.of_kind(kind, parameters or {}))
    choice = preview(labels=labels, methods=methods, size=size, seed=seed)
    if choice.problem:
        raise NothingToTrainOn(choice.problem)
    settings = {"kind": kind, "base": base, "labels": labels, "methods": methods, "size": size, "seed": seed}
    try:
        with transaction.atomic():
            classifier = TrainedClassifier.objects.create(
                name=name,
                precision=precision,
                parameters=resolved,
                notes=choice.notes,
                created_by=by if getattr(by, "pk", None) else None,
                **settings,
            )
    except IntegrityError as taken:
        raise ValueError(_taken(name)) from taken
    note("training started", by=by, subject=name, precision=precision, parameters=resolved, **settings)
    log.info("training_started", classifier=classifier.pk, name=name, kind=kind, base=base)
    if wake:
        ask_for_model(TRAIN, classifier=classifier.pk)
    return classifier


@transaction.atomic
def stop_training(*, classifier: TrainedClassifier, by=None) -> bool:
    """End a training that comes to nothing then. Return whether it had not ended yet."""
    stopped = leases.call_off(classifier, failure=STOPPED)
    if stopped:
        note("training stopped", by=by, subject=str(classifier))
    return stopped


def check_name(name: str) -> None:
    """Raise ``ValueError`` unless a new classifier can be called so."""
    if not re.fullmatch(NAME, name) or len(name) > LONGEST_NAME:
        raise ValueError(
            f"{name!r} is no name for a classifier. Use lower-case letters, digits and hyphens, at most {LONGEST_NAME}."
        )
    if name in EMBEDDED:
        raise ValueError(f"{name} is a model that comes with the install. Choose another name.")
    if TrainedClassifier.objects.filter(name=name).exists():
        raise ValueError(_taken(name))
    if folder_of(name).exists():
        raise ValueError(f"There is a folder {folder_of(name)} already. Choose another name, or move it away.")


def check_base(kind: str, base: str) -> None:
    """Raise ``ValueError`` unless a worker can try to begin with this model."""
    if kind == TrainingKind.HEAD:
        if base != ENCODER:
            raise ValueError(f"A head is trained on the embeddings of {ENCODER}, not of {base!r}. Choose kind full.")
        return
    if not base.strip():
        raise ValueError(f"Name the model to begin with: {ENCODER}, a folder, or a model id.")
    if len(base) > LONGEST_BASE:
        raise ValueError(f"The model's name has {len(base)} characters. At most {LONGEST_BASE} can be stored.")
    if "://" in base:
        raise ValueError(f"{base} is an address; a server's model cannot be trained. Name a folder or a model id.")
    if base == EMBEDDED[0]:
        raise ValueError(f"{base} is a head on the embeddings of {ENCODER}. Begin with that one.")
    if TrainedClassifier.objects.unended().filter(name=base.partition("#")[0]).exists():
        raise ValueError(f"{base} is not trained yet. Wait for its end, or begin with another model.")
    folder = Path(base.partition("#")[0]).expanduser()
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ValueError(f"{folder} is no model in the transformers format: it has no config.json.")
    if folder.is_absolute() and not folder.is_dir():
        raise ValueError(f"There is no folder {folder}.")


def _check_known(what: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"There is no {what} {value!r}. Choose one of: {', '.join(choices)}.")


def _check_whole(what: str, value: int | None, *, least: int, most: int) -> None:
    if value is None and what == "size":
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"The {what} is a whole number from {least} to {most:,}, not {value!r}.")


def _taken(name: str) -> str:
    return f"There is a classifier {name} already. Choose another name."
