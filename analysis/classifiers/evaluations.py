"""Having a classifier score a test set: ordering it, and stopping it."""

import os
import re

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from analysis.classifiers.folders import folder_of
from analysis.classifiers.trained import why_not_usable
from analysis.models import Evaluation, EvaluationSet, HumanvalSet, HumanvalState, TrainedClassifier
from generation import leases
from generation.auditing import note
from generation.model_files import is_folder
from generation.models import Precision, ReaderKind
from generation.read_values import readers
from generation.readings import check_model
from generation.wakeups import ask_for_model

EVALUATE = "analysis.evaluate"
"""The task of the queue that scores a test set."""
STOPPED = "It was stopped before all texts were scored. What was scored is kept; evaluate once more for the rest."
MOST_NAMED = 10
HUMANVAL = "humanval"
VERSION = re.compile(r"humanval-(\d{1,9})")

log = structlog.get_logger(__name__)


class NothingToEvaluate(ValueError):
    """The test set has no text with a label."""


@transaction.atomic
def start_evaluation(
    *,
    model: str,
    humanval_set: HumanvalSet | None = None,
    evaluation_set: EvaluationSet | None = None,
    precision: str = Precision.FLOAT32,
    by=None,
    wake: bool = True,
) -> Evaluation:
    """Store the order to have a classifier score one test set, and wake a worker for it.

    If the same is ordered already and has not ended, that is the one: it ``was_under_way``. What the classifier as it
    is now has scored already is not scored again. Raises ``NothingToEvaluate``, and ``ValueError`` for what cannot be
    done.
    """
    model = model.strip()
    check_classifier(model, precision=precision)
    texts = _texts_to_score(humanval_set, evaluation_set)
    wanted = {
        "model": model, "precision": precision, "humanval_set": humanval_set, "evaluation_set": evaluation_set,
    }  # fmt: skip
    evaluation = _under_way_or_new(wanted, texts=texts, created_by=by)
    if not evaluation.was_under_way:
        note("evaluation started", by=by, subject=str(evaluation), precision=precision, texts=texts)
        log.info("evaluation_started", evaluation=evaluation.pk, model=model, texts=texts)
    if wake:
        ask_for_model(EVALUATE, evaluation=evaluation.pk)
    return evaluation


@transaction.atomic
def stop_evaluation(*, evaluation: Evaluation, by=None) -> bool:
    """End an evaluation; what was scored is kept. Return whether it had not ended yet."""
    stopped = leases.call_off(evaluation, failure=STOPPED)
    if stopped:
        note("evaluation stopped", by=by, subject=str(evaluation))
    return stopped


def check_classifier(model: str, *, precision: str = Precision.FLOAT32) -> None:
    """Raise ``ValueError`` unless a worker can try to score texts with this model."""
    if "://" in model:
        raise ValueError(
            f"{model} is the address of a server, which cannot classify texts here. Choose a classifier that the "
            f"workers load themselves: {named_classifiers()}, a folder, or a model id."
        )
    check_model(ReaderKind.CLASSIFIER, model, precision=precision)
    if why := why_not_usable(model):
        raise ValueError(f"The classifier {model} cannot be used: {why}. Choose another one: {named_classifiers()}.")
    if not _may_be_there(model):
        raise ValueError(
            f"There is no classifier {model!r}. Choose one of {named_classifiers()}, a folder, or a model id."
        )


def known_classifiers() -> list[str]:
    """The names of classifiers that can be chosen: the one of the settings, those trained here, those used before."""
    trained = TrainedClassifier.objects.finished().values_list("name", flat=True)
    used = readers(ReaderKind.CLASSIFIER).values_list("name", flat=True)
    return list(dict.fromkeys([settings.CLASSIFIER, *trained, *used]))


def named_classifiers() -> str:
    """The first of them, for a sentence."""
    known = known_classifiers()
    return ", ".join(known[:MOST_NAMED]) + (", …" if len(known) > MOST_NAMED else "")


def test_set_named(name: str) -> HumanvalSet | EvaluationSet:
    """The test set that a command calls so: one from a file, ``humanval``, the newest frozen one, or ``humanval-2``.

    Raises ``ValueError`` with those there are.
    """
    if found := EvaluationSet.objects.filter(name=name).first():
        return found
    frozen = HumanvalSet.objects.frozen()
    if name == HUMANVAL and frozen.exists():
        return frozen[0]
    if (is_version := VERSION.fullmatch(name)) and (found := HumanvalSet.objects.filter(version=is_version[1]).first()):
        return found
    there = [f"humanval-{version}" for version in frozen.values_list("version", flat=True)[:MOST_NAMED]]
    there += EvaluationSet.objects.values_list("name", flat=True)[:MOST_NAMED]
    raise ValueError(
        f"There is no test set {name!r}. There are: {', '.join(there) or 'none'}. Import one with manage.py "
        "import_evaluation, or freeze a HUMANVAL set."
    )


def texts_of(test_set: HumanvalSet | EvaluationSet) -> QuerySet:
    """The rows of a test set that have a label."""
    if isinstance(test_set, HumanvalSet):
        return test_set.statements.exclude(toxicity_class="")
    return test_set.texts.all()


def _may_be_there(model: str) -> bool:
    """A folder or an id may be known to the workers' machines only; a plain name is known here or nowhere."""
    source = model.partition("#")[0]
    if "/" in source or os.path.exists(source) or settings.ALLOW_DOWNLOADS:
        return True
    return source in known_classifiers() or is_folder(folder_of(source))


def _texts_to_score(humanval_set: HumanvalSet | None, evaluation_set: EvaluationSet | None) -> int:
    if (humanval_set is None) == (evaluation_set is None):
        raise ValueError("An evaluation is on one test set: a HUMANVAL set, or one from a file.")
    if humanval_set is not None and humanval_set.state != HumanvalState.FROZEN:
        raise ValueError(
            f"{humanval_set} is {humanval_set.get_state_display()}: only a frozen set has labels. Freeze it first."
        )
    texts = texts_of(humanval_set or evaluation_set).count()
    if not texts:
        raise NothingToEvaluate(f"{humanval_set or evaluation_set} has no text with a label.")
    return texts


def _under_way_or_new(wanted: dict, **fields) -> Evaluation:
    while True:
        try:
            with transaction.atomic():
                return Evaluation.objects.create(**wanted, **fields)
        except IntegrityError as error:
            if "evaluation_one_at_a_time" not in str(error):
                raise
        # It may have ended since: then there is room for a new one.
        for under_way in Evaluation.objects.unended().filter(**wanted):
            under_way.was_under_way = True
            return under_way
