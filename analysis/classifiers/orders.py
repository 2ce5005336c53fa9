"""Ordering a training and stopping it; what cannot come to anything is refused before hours are spent."""

import os
import re
from collections.abc import Mapping, Sequence

import structlog
from django.conf import settings as project
from django.db import IntegrityError, transaction
from django.db.models import Q
from psycopg2.errors import UniqueViolation

from analysis.classifiers.choosing import Choice, NothingToTrainOn, choice_of
from analysis.classifiers.folders import folder_of
from analysis.classifiers.overlaps import refuse_base
from analysis.classifiers.trained import why_not_usable
from analysis.models import LabelSource, TrainedClassifier, TrainingKind, TrainingMethods
from analysis.models.classifiers import NAME
from analysis.training import parameters as training_parameters
from generation import leases
from generation.auditing import note
from generation.model_files import is_folder
from generation.models import GenerationRun, Precision, TextReader
from generation.readings import ENCODER
from generation.wakeups import ask_for_model

TRAIN = "analysis.train_classifier"
"""The task of the queue that trains a classifier."""
EMBEDDED = ("minilm-toxigen", ENCODER)
"""What comes with the install is called so."""
MOST_SEED = 2**63 - 1
MOST_SIZE = MOST_STEPS = 2**31 - 1
LONGEST_NAME = TrainedClassifier._meta.get_field("name").max_length
LONGEST_BASE = TrainedClassifier._meta.get_field("base").max_length
LEAST_SIZE = 2
STOPPED = (
    "It was stopped before its end, and nothing of it is kept. Try it again from the start, or train another one under "
    "another name."
)

__all__ = ["EMBEDDED", "TRAIN", "NothingToTrainOn", "preview", "resume_training", "start_training", "stop_training"]

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
    refuse_base(base)
    choice = preview(labels=labels, methods=methods, size=size, seed=seed)
    if choice.problem:
        raise NothingToTrainOn(choice.problem)
    _check_steps(resolved, statements=len(choice.ids))
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
        if not isinstance(taken.__cause__, UniqueViolation):
            raise
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


@transaction.atomic
def resume_training(*, classifier: TrainedClassifier, by=None, wake: bool = True) -> bool:
    """Have a training that failed go on from its last checkpoint. Return whether it had failed.

    One that a person stopped has none, and begins anew.
    """
    failed = TrainedClassifier.objects.select_for_update().filter(pk=classifier.pk, finished_at__isnull=False)
    found = failed.exclude(failure="").first()
    if found is None:
        return False
    anew = {"step": 0} if found.failure == STOPPED else {}
    if anew:
        found.curve.all().delete()
    failed.update(finished_at=None, failure="", leases=0, **anew)
    note("training resumed", by=by, subject=found.name, failure=found.failure)
    if wake:
        ask_for_model(TRAIN, classifier=found.pk)
    return True


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
    if _is_of_another_model(name):
        raise ValueError(f"{name} is what another model is called in the settings, or was called here. Choose another.")


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
    source = base.partition("#")[0]
    if TrainedClassifier.objects.unended().filter(name=source).exists():
        raise ValueError(f"{base} is not trained yet. Wait for its end, or begin with another model.")
    if why := why_not_usable(base):
        raise ValueError(f"{base} is no model to begin with: {why}. Begin with another one.")
    if source.startswith("~"):
        raise ValueError(f"{base} is no model. Write the folder's whole path, which begins with / and not with ~.")
    if is_folder(source) and not os.path.isfile(os.path.join(source, "config.json")):
        raise ValueError(f"{source} is no model in the transformers format: it has no config.json.")
    if source.startswith("/") and not is_folder(source):
        raise ValueError(f"There is no folder {source}.")


def _is_of_another_model(name: str) -> bool:
    """Whether what was made by another model, or will be, bears this name."""
    if name in (project.CLASSIFIER.partition("#")[0], project.LANGUAGE_MODEL):
        return True
    of_run, of_reader = (
        Q(**{field: name}) | Q(**{f"{field}__startswith": f"{name}#"}) for field in ("classifier", "name")
    )
    return GenerationRun.objects.filter(of_run).exists() or TextReader.objects.filter(of_reader).exists()


def _check_known(what: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"There is no {what} {value!r}. Choose one of: {', '.join(choices)}.")


def _check_whole(what: str, value: int | None, *, least: int, most: int) -> None:
    if value is None and what == "size":
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"The {what} is a whole number from {least} to {most:,}, not {value!r}.")


def _check_steps(parameters: Mapping, *, statements: int) -> None:
    steps = parameters.get("epochs", 0) * statements // parameters.get("batch_size", 1)
    if steps > MOST_STEPS:
        raise ValueError(f"That would be {steps:,} steps. Choose fewer epochs, or larger batches.")


def _taken(name: str) -> str:
    if TrainedClassifier.objects.filter(name=name, finished_at__isnull=False).exclude(failure="").exists():
        return (
            f"There is a classifier {name} already, whose training came to nothing. Choose another name, or go on with "
            f"that one: on its page, or with manage.py train_classifier --resume {name}"
        )
    return f"There is a classifier {name} already. Choose another name."
