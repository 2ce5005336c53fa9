"""What a worker does with an order to train a classifier: choose its statements, train, and put its files in place.

Whatever interrupts it, somebody goes on from the checkpoint and comes to the same result.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from django.db import OperationalError
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone

from analysis.classifiers import data, folders, orders
from analysis.classifiers.choosing import NothingToTrainOn
from analysis.classifiers.describing import card_of, environment_on
from analysis.classifiers.overlaps import refuse_test_statements
from analysis.models import LossPoint, TrainedClassifier, TrainingKind
from analysis.training import saving
from analysis.training.examples import Examples
from analysis.training.outcomes import OnPoint, Paused, Point, Trained, TrainingFailed, nothing
from analysis.training.parameters import of_kind
from generation import leases
from generation.keeping import Keeper
from generation.model_files import fingerprint, folder_of_word
from generation.working import reasons_to_fail, reasons_to_pause

if TYPE_CHECKING:
    import torch

SECONDS_BETWEEN_LOOKS = 1.0
STINT = 60.0
"""So many seconds are trained at least before others go first."""
KEPT = (
    "What it had learned by its last checkpoint is kept. Once that is mended, it goes on from there: on the training's "
    "page, or with manage.py train_classifier --resume {name}"
)

log = structlog.get_logger(__name__)


def work_on_training(
    *,
    classifier_id: int,
    is_stopping: Callable[[], bool] = lambda: False,
    others_wait: Callable[[], bool] = lambda: False,
    on_point: OnPoint = nothing,
) -> None:
    """Train a classifier, unless that is done or others are at it. Safe to run twice and at once.

    Once ``is_stopping``, or after a stint ``others_wait``, says so, a checkpoint is written and the order given back,
    for whoever takes it up next. ``on_point`` is called with each point of the curve, when it is stored. Whatever goes
    wrong ends the order with the reason; ``orders.resume_training`` goes on from the checkpoint.
    """
    if is_stopping():
        return
    token = leases.take_up(TrainedClassifier.objects.waiting(), pk=classifier_id)
    mine = TrainedClassifier.objects.filter(pk=classifier_id, lease_token=token) if token else ()
    for classifier in mine:
        try:
            _carry_out(classifier, Turn(classifier, is_stopping, others_wait, on_point))
        finally:
            clear_up(classifier.name)


def clear_up(*names: str) -> None:
    """Throw away what trainings that ended no longer need; what is unended keeps everything.

    One that failed keeps its checkpoint, to go on from once that is mended; one that a person stopped does not.
    """
    for classifier in TrainedClassifier.objects.filter(name__in=names, finished_at__isnull=False):
        if classifier.failure:
            folders.throw_away_files(classifier.name, order=classifier.pk)
        if classifier.failure in ("", orders.STOPPED):
            folders.throw_away_checkpoint(classifier.name)


def throw_away_what_is_left() -> None:
    """The same for everything on this machine: of those that were stopped while no worker was at them."""
    clear_up(*folders.names_of_folders())


def _carry_out(classifier: TrainedClassifier, turn: "Turn") -> None:
    if leases.is_worn_out(classifier):
        _fail(classifier, leases.STOPPED_EACH_TIME, is_mended=True)
        return
    try:
        with Keeper(partial(leases.begin, classifier), lost=leases.FinishedElsewhere, of=classifier):
            turn.work()
    except Paused:
        leases.give_back(classifier)
    except leases.FinishedElsewhere as lost:
        log.info("lease_lost", row=str(classifier), reason=str(lost))
    except (NothingToTrainOn, TrainingFailed, *reasons_to_fail()) as error:
        _fail(classifier, str(error))
    except reasons_to_pause() as error:
        _fail(classifier, str(error), is_mended=True)
    except OperationalError:
        raise  # the database is away: it goes on from the checkpoint when it is back
    except OSError as error:
        _fail(classifier, f"A file could not be read or written: {error.strerror or error}.", is_mended=True)
    except Exception as error:
        # Whatever it was, the page has to say so; the queue would only log it.
        _fail(classifier, f"The worker stopped with an error: {type(error).__name__}: {error}.", is_mended=True)
        raise


def _fail(classifier: TrainedClassifier, reason: str, *, is_mended: bool = False) -> None:
    """End it; if that may be mended, say how it goes on then. It is not tried again and again meanwhile."""
    if is_mended:
        reason = f"{reason} {KEPT.format(name=classifier.name)}"
    if leases.finish(classifier, failure=reason):
        log.warning("failed", row=str(classifier), reason=reason)


class Turn:
    """A worker's turn at a training, which may be the first of several."""

    def __init__(
        self,
        classifier: TrainedClassifier,
        is_stopping: Callable[[], bool],
        others_wait: Callable[[], bool],
        on_point: OnPoint,
    ) -> None:
        self.classifier = classifier
        self.is_stopping, self.others_wait, self.on_point = is_stopping, others_wait, on_point
        self.others_came = False
        self.furthest, self.step, self.steps = classifier.step, classifier.step, classifier.steps
        self.began = math.inf
        self.looked_at = time.monotonic()

    def work(self) -> None:
        """Raises ``Paused``, ``FinishedElsewhere``, and why it came to nothing."""
        from generation.devices import choose, describe  # torch: never in the web process

        device = choose(settings.DEVICE)
        self._store(started_at=self.classifier.started_at or timezone.now(), device=describe(device))
        _refuse_folder_of_others(self.classifier)
        data.choose(self.classifier)
        refuse_test_statements(self.classifier)
        examples = data.examples_of(self.classifier)
        train = self._train_head if self.classifier.kind == TrainingKind.HEAD else self._fine_tune
        try:
            trained, base_revision = train(device, examples)
        except Paused:
            self._tell()
            raise
        self._finish(trained, base_revision, environment_on(describe(device)))

    def _train_head(self, device: "torch.device", examples: Examples) -> tuple[Trained, str]:
        from analysis.training.heads import train_head
        from generation.classifiers import load_encoder

        encoder = load_encoder(device=device)
        return train_head(examples, encoder=encoder, **self._options()), encoder.revision

    def _fine_tune(self, device: "torch.device", examples: Examples) -> tuple[Trained, str]:
        from analysis.training.bases import load_base
        from analysis.training.loop import fine_tune

        seed, precision = self.classifier.seed, self.classifier.precision
        name = _where_it_is(self.classifier.base)
        base = load_base(name, device=device, seed=seed, allow_downloads=settings.ALLOW_DOWNLOADS)
        options = self._options()
        return fine_tune(base, examples, seed=seed, precision=precision, device=device, **options), base.revision

    def _options(self) -> dict:
        """What either kind takes; models are loaded by now."""
        self.began = time.monotonic()
        classifier = self.classifier
        return {
            "parameters": of_kind(classifier.kind, classifier.parameters),
            "checkpoint": folders.checkpoint_of(classifier.name),
            "on_point": self._on_point,
            "on_step": self._on_step,
            "should_pause": lambda: self.is_stopping() or self.others_came,
        }

    def _on_point(self, point: Point) -> None:
        LossPoint.objects.update_or_create(
            classifier=self.classifier,
            step=point.step,
            defaults={name: getattr(point, name) for name in ("loss", "validation_loss", "validation_auc")},
        )
        self.on_point(point)

    def _on_step(self, step: int, steps: int) -> None:
        self.step, self.steps = step, steps
        if time.monotonic() - self.looked_at >= SECONDS_BETWEEN_LOOKS:
            self.looked_at = time.monotonic()
            self._tell()
            self.others_came = time.monotonic() - self.began >= STINT and self.others_wait()

    def _tell(self) -> None:
        """Store how far it is; who comes further than anybody before does not wear the order out."""
        further = {"leases": 1} if self.step > self.furthest else {}
        self._store(step=Greatest(F("step"), self.step), steps=self.steps, seconds=self._seconds(), **further)

    def _store(self, **values) -> None:
        classifier = self.classifier
        mine = TrainedClassifier.objects.unended().filter(pk=classifier.pk, lease_token=classifier.lease_token)
        if not mine.update(**values):
            raise leases.FinishedElsewhere(f"{classifier} was stopped, or taken up by somebody else.")

    def _seconds(self) -> float:
        return self.classifier.seconds + max(time.monotonic() - self.began, 0)

    def _finish(self, trained: Trained, base_revision: str, environment: dict) -> None:
        """Put the files in place, then end the order; who is killed in between does both again."""
        classifier, folder = self.classifier, folders.folder_of(self.classifier.name)
        refuse_test_statements(classifier)
        notes = [*classifier.notes, *trained.notes]
        card = card_of(classifier, trained, base_revision=base_revision, environment=environment, notes=notes)
        self._tell()
        _refuse_folder_of_others(classifier)
        setattr(trained.model.config, folders.ORDER, classifier.pk)
        saving.save(trained, folder, card=card)
        is_ours = leases.finish(
            classifier,
            revision=f"files {fingerprint(folder)}",
            scores={"before": asdict(trained.before), "after": asdict(trained.after), "best_step": trained.best_step},
            environment=environment | {"base_revision": base_revision},
            notes=notes,
            step=trained.steps,
            steps=max(trained.steps, self.steps),
            seconds=self._seconds(),
        )
        if not is_ours:
            raise leases.FinishedElsewhere(f"{classifier} was stopped, or taken up by somebody else.")
        log.info("trained", classifier=classifier.name, steps=trained.steps, auc=trained.after.auc)


def _refuse_folder_of_others(classifier: TrainedClassifier) -> None:
    folder = folders.folder_of(classifier.name)
    if folder.exists() and not folders.is_of(folder, classifier.pk):
        raise TrainingFailed(
            f"There is a folder {folder} that this training has not written. Move it away, and try the training again."
        )


def _where_it_is(base: str) -> str:
    """The folder of a classifier that was trained here, with its label if one is named; else the name as it is."""
    folder = folder_of_word(folders.all_of_them(), base)
    _, hash_sign, label = base.partition("#")
    return f"{folder}{hash_sign}{label}" if folder is not None and folder.is_dir() else base
