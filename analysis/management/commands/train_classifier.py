"""``manage.py train_classifier``: train a classifier here and now, or go on with one that was interrupted."""

import signal
import threading
import time
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import fields

from django.core.management.base import BaseCommand, CommandError

from analysis.classifiers import orders, working
from analysis.classifiers.folders import folder_of
from analysis.models import LabelSource, TrainedClassifier, TrainingKind, TrainingMethods
from analysis.training.outcomes import Point
from analysis.training.parameters import FineTuningParameters, HeadParameters
from generation.readings import ENCODER

WRONG_ARGUMENT = 2
SECONDS_BETWEEN_LOOKS = 1
PARAMETERS = {field.name: field.default for kind in (HeadParameters, FineTuningParameters) for field in fields(kind)}
OF_ORDER = ("name", "kind", "base", "labels", "methods", "size", "seed", "precision")


class Command(BaseCommand):
    help = (
        "Train a classifier on what was generated, and judged by people. Works without the queue. Its files are then "
        "in the folder of its name, and it can be named wherever a classifier is. HUMANVAL sets, and what is too "
        "similar to them, are left out."
    )

    def add_arguments(self, parser) -> None:
        parser.add_argument("name", nargs="?", help="lower-case letters, digits and hyphens")
        parser.add_argument("--kind", help=f"{_words(TrainingKind)} (default: head)")
        parser.add_argument("--base", help=f"the model to begin with: folder or id (default: {ENCODER})")
        parser.add_argument("--labels", help=f"{_words(LabelSource)} (default: prompt)")
        parser.add_argument("--methods", help=f"{_words(TrainingMethods)} (default: both)")
        parser.add_argument("--size", type=int, help="so many statements; all of them otherwise")
        parser.add_argument("--seed", type=int, help="decides what is random (default: 0)")
        parser.add_argument("--precision", help="float32 or bfloat16 (default: float32)")
        parser.add_argument("--queue", action="store_true", help="leave it to a worker of the queue")
        parser.add_argument("--resume", metavar="NAME", help="go on with a training that has not ended, or failed")
        own = parser.add_argument_group("parameters of the training")
        for name, default in PARAMETERS.items():
            own.add_argument(
                f"--{name.replace('_', '-')}", type=_value_like(default), help=f"(default: {_told(default)})"
            )

    def handle(self, **options) -> None:
        classifier = self.unended(options) if options["resume"] else self.ordered(options)
        if options["queue"]:
            self.stdout.write(f"{classifier} is left to a worker of the queue.")
            return
        with _Interruption() as interruption:
            self.work(classifier, interruption.was_asked_for)
        scores = classifier.scores
        for reason, number in classifier.data["left_out"].items():
            self.stderr.write(f"Left out: {number:,} {reason}")
        self.stdout.write(
            f"{classifier} was trained on {classifier.data['train']:,} statements in {classifier.seconds:,.1f} "
            f"seconds. On {classifier.data['validation']:,} others its AUC was {scores['before']['auc']:.3f} before "
            f"and is {scores['after']['auc']:.3f} now. Its files are in {folder_of(classifier.name)}"
        )

    def ordered(self, options: dict) -> TrainedClassifier:
        if not options["name"]:
            raise CommandError("Name the classifier.", returncode=WRONG_ARGUMENT)
        given = {name: options[name] for name in OF_ORDER if options[name] is not None}
        try:
            classifier = orders.start_training(
                **given,
                parameters={name: options[name] for name in PARAMETERS if options[name] is not None},
                wake=options["queue"],
            )
        except orders.NothingToTrainOn as nothing:
            raise CommandError(str(nothing)) from nothing
        except ValueError as error:
            raise CommandError(str(error), returncode=WRONG_ARGUMENT) from error
        for sentence in classifier.notes:
            self.stderr.write(sentence)
        return classifier

    def unended(self, options: dict) -> TrainedClassifier:
        name, wake = options["resume"], options["queue"]
        if given := [other for other in (*OF_ORDER, *PARAMETERS) if options[other] is not None]:
            raise CommandError(
                f"--resume goes on with what was ordered and takes no {', '.join(given)}. Leave that out, or train "
                "another classifier.",
                returncode=WRONG_ARGUMENT,
            )
        classifier = TrainedClassifier.objects.filter(name=name).first()
        if classifier is None:
            raise CommandError(f"There is no classifier {name!r}.", returncode=WRONG_ARGUMENT)
        if orders.resume_training(classifier=classifier, wake=wake):
            classifier.refresh_from_db()
        if not classifier.is_open:
            raise CommandError(f"The training of {name} has ended.", returncode=WRONG_ARGUMENT)
        return classifier

    def work(self, classifier: TrainedClassifier, is_stopping) -> None:
        """Work on a training until it ends; if it fails or is interrupted, say so and end with status 1."""
        while classifier.is_open:
            working.work_on_training(classifier_id=classifier.pk, is_stopping=is_stopping, on_point=self.tell)
            classifier.refresh_from_db()
            if is_stopping() and classifier.is_open:
                raise CommandError(
                    f"It was interrupted at step {classifier.step:,}; what it did is kept. A worker of the queue "
                    f"goes on with it, or: manage.py train_classifier --resume {classifier}"
                )
            # A worker of the queue may have it, or have died with it.
            if classifier.is_open and not TrainedClassifier.objects.waiting().filter(pk=classifier.pk).exists():
                time.sleep(SECONDS_BETWEEN_LOOKS)
        if classifier.failure:
            raise CommandError(f"{classifier} was not trained. {classifier.failure}")

    def tell(self, point: Point) -> None:
        loss = "" if point.loss is None else f"loss {point.loss:.4f}, "
        self.stderr.write(
            f"step {point.step:,}: {loss}on validation statements {point.validation_loss:.4f}, "
            f"AUC {point.validation_auc:.4f}"
        )


class _Interruption:
    """Ctrl-C lets the training come to a checkpoint; a second one ends it at once."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def __enter__(self) -> "_Interruption":
        self._before = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *_exception) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def was_asked_for(self) -> bool:
        return self._asked.is_set()

    def _ask(self, *_: object) -> None:
        self._asked.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _words(choices) -> str:
    return ", ".join(choices.values)


def _value_like(default) -> Callable[[str], object]:
    """What reads an option as the type of its default."""
    if isinstance(default, bool):
        return _yes_or_no
    return type(default)


def _told(default) -> str:
    return {True: "yes", False: "no"}[default] if isinstance(default, bool) else str(default)


def _yes_or_no(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ArgumentTypeError(f"{text!r} is neither yes nor no")
    return text == "yes"
