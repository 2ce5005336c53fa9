"""Choosing the statements of a training, once, and reading them again whenever it goes on."""

import hashlib
import io
from collections.abc import Iterable
from itertools import islice

import numpy as np
import structlog
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet

from analysis import splits
from analysis.classifiers import folders
from analysis.classifiers.choosing import Choice, NothingToTrainOn, choice_of
from analysis.classifiers.overlaps import for_testing, learned_by_bases
from analysis.classifiers.pool import BoolArray, IntArray
from analysis.models import HumanvalSet, TrainedClassifier, TrainingPart, TrainingStatement
from analysis.training.examples import Examples, check
from generation.leases import FinishedElsewhere
from generation.models import Generation

TRIES = 3
FEW = 2.5
IDS_AT_ONCE = 20_000
ROWS_AT_ONCE = 50_000

log = structlog.get_logger(__name__)


def choose(classifier: TrainedClassifier) -> None:
    """Store which statements an order is trained on, unless that is done; ``data`` tells what was left out.

    What was chosen before is chosen again if nothing was learned of it yet and some of it is for testing by now. If a
    HUMANVAL set is drawn meanwhile, or a statement deleted, the database refuses them and they are chosen again.
    Raises ``NothingToTrainOn``, and ``FinishedElsewhere`` if somebody else has the order by now.
    """
    tries = iter(range(TRIES - 1))
    if classifier.data_digest and not classifier.step and for_testing(classifier):
        _forget(classifier)
    while not classifier.data_digest:
        choice = choice_of(
            labels=classifier.labels, methods=classifier.methods, size=classifier.size, seed=classifier.seed
        )
        if choice.problem:
            raise NothingToTrainOn(choice.problem)
        is_validation = _validation(classifier, choice)
        try:
            _store(classifier, choice, is_validation)
        except IntegrityError as refused:
            log.warning("chosen_again", classifier=classifier.name, reason=str(refused))
            if next(tries, None) is None:
                raise


def examples_of(classifier: TrainedClassifier) -> Examples:
    """What was chosen, in the order of the statements' ids. Raises ``NothingToTrainOn`` if some of it is gone."""
    rows = classifier.statements.order_by("generation").values_list(
        "generation", "generation__text", "is_toxic", "part"
    )
    ids, texts, toxic, validation = [], [], [], []
    for pk, text, is_toxic, part in rows.iterator(chunk_size=ROWS_AT_ONCE):
        ids.append(pk)
        texts.append(text)
        toxic.append(is_toxic)
        validation.append(part == TrainingPart.VALIDATION)
    examples = Examples(texts, np.array(toxic, dtype=bool), np.array(validation, dtype=bool))
    if _digest(np.array(ids, dtype=np.int64), examples.toxic, examples.validation) != classifier.data_digest:
        raise NothingToTrainOn("Statements that it is trained on were deleted meanwhile. Train another one.")
    return examples


def _validation(classifier: TrainedClassifier, choice: Choice) -> BoolArray:
    """(N,) which statements decide when to stop: none is nearly the same as one that is, or its base was, trained on.

    There are at least a few of either class, also where the share that was asked for would be fewer.
    """
    texts = _texts(choice.ids)
    fewest = min(choice.counts["toxic"], choice.counts["benign"])
    share = max(classifier.parameters["validation_share"], FEW / fewest)
    components = splits.by_text(texts)
    learned = np.isin(choice.ids, learned_by_bases(classifier))
    unseen = ~np.isin(components, components[learned])
    try:
        is_validation = _unseen_for_validation(components, choice.toxic, unseen, share=share, seed=classifier.seed)
        check(Examples(texts, choice.toxic, is_validation))
        return is_validation
    except ValueError as error:
        why = f" {classifier.base} was trained on {learned.sum():,} of them." if learned.any() else ""
        raise NothingToTrainOn(f"{error}{why}") from error


def _unseen_for_validation(
    components: IntArray, toxic: BoolArray, unseen: BoolArray, *, share: float, seed: int
) -> BoolArray:
    """(N,) the ``share`` of all from those that the base has not seen; all of these, if they are no more."""
    is_validation = unseen.copy()
    share_of_unseen = share * len(toxic) / max(unseen.sum(), 1)
    if unseen.all() or share_of_unseen < 1:
        is_validation[unseen] = splits.validation(components[unseen], toxic[unseen], share=share_of_unseen, seed=seed)
    return is_validation


def _texts(ids: IntArray) -> list[str]:
    rest, texts = iter(ids.tolist()), {}
    while part := list(islice(rest, IDS_AT_ONCE)):
        texts.update(Generation.objects.filter(pk__in=part).values_list("pk", "text"))
    return [texts.get(pk, "") for pk in ids.tolist()]


@transaction.atomic
def _store(classifier: TrainedClassifier, choice: Choice, is_validation: BoolArray) -> None:
    ours = _ours(classifier)
    _have_no_set_drawn_meanwhile()
    parts = np.where(is_validation, str(TrainingPart.VALIDATION), str(TrainingPart.TRAIN))
    rows = zip(choice.ids.tolist(), choice.toxic.tolist(), parts.tolist(), strict=True)
    _copy((classifier.pk, *row) for row in rows)
    classifier.data = choice.as_data() | {
        "train": int((~is_validation).sum()),
        "validation": int(is_validation.sum()),
    }
    classifier.data_digest = _digest(choice.ids, choice.toxic, is_validation)
    classifier.notes = choice.notes
    ours.update(data=classifier.data, data_digest=classifier.data_digest, notes=classifier.notes)


@transaction.atomic
def _forget(classifier: TrainedClassifier) -> None:
    """As if nothing had been chosen yet."""
    ours = _ours(classifier)
    folders.throw_away_checkpoint(classifier.name)
    classifier.statements.all().delete()
    classifier.curve.all().delete()
    classifier.data, classifier.data_digest = {}, ""
    ours.update(data=classifier.data, data_digest=classifier.data_digest)
    log.info("to_be_chosen_again", classifier=classifier.name)


def _ours(classifier: TrainedClassifier) -> QuerySet[TrainedClassifier]:
    """The order's row, locked. Raises ``FinishedElsewhere``."""
    ours = TrainedClassifier.objects.unended().filter(pk=classifier.pk, lease_token=classifier.lease_token)
    if not ours.select_for_update().exists():
        raise FinishedElsewhere(f"{classifier} was taken up or finished by somebody else.")
    return ours


def _have_no_set_drawn_meanwhile() -> None:
    """Until the transaction ends, no set is drawn or compared: the database refuses what it sees to be for testing."""
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {HumanvalSet._meta.db_table} IN SHARE MODE")


def _copy(rows: Iterable[tuple]) -> None:
    """Store rows of training statements, a quarter of a million in seconds."""
    columns = [field.column for field in TrainingStatement._meta.concrete_fields if not field.primary_key]
    text = io.StringIO("".join("\t".join(map(str, row)) + "\n" for row in rows))
    with connection.cursor() as cursor, connection.wrap_database_errors:
        cursor.copy_expert(f"COPY {TrainingStatement._meta.db_table} ({', '.join(columns)}) FROM STDIN", text)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a statement that was deleted meanwhile is told of here


def _digest(ids: IntArray, toxic: BoolArray, is_validation: BoolArray) -> str:
    """SHA-256 of ids, labels and parts."""
    rows = zip(ids.tolist(), toxic.tolist(), is_validation.tolist(), strict=True)
    return hashlib.sha256("".join(f"{pk} {label:d} {part:d}\n" for pk, label, part in rows).encode()).hexdigest()
