"""The statements that there are to train a classifier on, with labels; what is for testing is never among them."""

import numpy as np
from django.db.models import Avg, Exists, Min, OuterRef

from analysis.exports.filtering import first_answers
from analysis.humanval.choosing import similar_to
from analysis.humanval.drawing import closest_allowed
from analysis.humanval.pool import METHODS, humanval_reader
from analysis.humanval.sets import THRESHOLD
from analysis.labels import TOXICITY_CLASSES, toxicity, toxicity_class
from analysis.models import (
    HumanLabel,
    HumanvalSet,
    HumanvalStatement,
    LabelSource,
    RemovedFromTraining,
    TrainingMethods,
)
from analysis.texts import text_key
from annotator.models import Annotation
from generation.models import Generation, Label, Method
from generation.read_values import NotRead, vectors

ROWS_AT_ONCE = 50_000
NOT_COMPARED = "not compared with a HUMANVAL set yet"
NOBODY = -1.0
"""Stands for the class of a statement that nobody judged."""
BENIGN, AMBIGUOUS, TOXIC = range(len(TOXICITY_CLASSES))
WRITTEN_BY = {
    TrainingMethods.ALICE: (Method.ALICE,),
    TrainingMethods.TOPK: (Method.TOPK,),
    TrainingMethods.BOTH: METHODS,
}

IntArray = np.ndarray[tuple[int], np.dtype[np.int64]]
BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]


def pool_of(*, labels: str, methods: str) -> "Pool":
    """What can be trained on now, whatever the size; ``left`` tells which of its rows those are."""
    pool = Pool(methods)
    _leave_out_tests(pool)
    if labels == LabelSource.HUMAN:
        _take_human_labels(pool)
    _leave_out_copies(pool)
    return pool


class Pool:
    """N machine-generated statements by methods, in the order of their ids, and which of them are ``left``."""

    def __init__(self, methods: str) -> None:
        rows = Generation.objects.filter(method__in=WRITTEN_BY[TrainingMethods(methods)]).order_by("pk")
        ids, toxic, alice, keys = [], [], [], []
        values = rows.values_list("pk", "label", "method", "text")
        for pk, label, method, text in values.iterator(chunk_size=ROWS_AT_ONCE):
            ids.append(pk)
            toxic.append(label == Label.TOXIC)
            alice.append(method == Method.ALICE)
            keys.append(text_key(text))
        self.ids = np.array(ids, dtype=np.int64)
        self.toxic = np.array(toxic, dtype=bool)
        self.alice = np.array(alice, dtype=bool)
        self.keys = np.array(keys, dtype="S32")
        self.left = np.ones(len(ids), dtype=bool)
        self.left_out: dict[str, int] = {}
        self.problem = ""

    def leave_out(self, which: BoolArray, reason: str) -> None:
        if number := int((which & self.left).sum()):
            self.left_out[reason] = self.left_out.get(reason, 0) + number
        self.left &= ~which


def _leave_out_tests(pool: Pool) -> None:
    """HUMANVAL, everything that is too similar to it, and what nobody has compared with it yet; of every set."""
    sets = HumanvalSet.objects.drawn()
    own = HumanvalStatement.objects.filter(humanval_set__in=sets)
    removed = RemovedFromTraining.objects.filter(humanval_set__in=sets)
    pool.leave_out(np.isin(pool.ids, _ids(own)), "of a HUMANVAL set")
    pool.leave_out(np.isin(pool.ids, _ids(removed)), "too similar to a HUMANVAL set")
    compared = sets.aggregate(least=Min("compared_up_to"))["least"]
    if compared is not None:
        pool.leave_out(pool.ids > compared, NOT_COMPARED)
    texts = own.values_list("generation__text", flat=True)
    keys = np.array([text_key(text) for text in texts], dtype="S32")
    pool.leave_out(np.isin(pool.keys, keys), "the text of a HUMANVAL statement")
    try:
        close = [close_to(each, pool.ids[pool.left]) for each in sets.order_by("version")]
        pool.leave_out(np.isin(pool.ids, np.concatenate([*close, pool.ids[:0]])), "too similar to a HUMANVAL set")
    except NotRead as unread:
        pool.problem = (
            f"A HUMANVAL set was drawn with a threshold above {THRESHOLD}, and what has a cosine above {THRESHOLD} "
            f"with its statements cannot be told: {unread} Compare the set on its page; that has them embedded."
        )


def close_to(humanval_set: HumanvalSet, ids: IntArray) -> IntArray:
    """Which of some statements are too similar to a set that was drawn with a larger threshold than the paper's.

    Of the others it is stored. Raises ``NotRead`` where embeddings are missing.
    """
    if humanval_set.threshold <= THRESHOLD or not len(ids):
        return ids[:0]
    reader = humanval_reader()
    if reader is None:
        raise NotRead("No statement is embedded yet.")
    own = _ids(humanval_set.statements)
    found = similar_to(vectors(reader, ids), vectors(reader, own), above=closest_allowed(THRESHOLD))
    return np.asarray(ids[found.rows])


def _ids(rows) -> IntArray:
    return np.fromiter(rows.order_by().values_list("generation", flat=True), dtype=np.int64)


def _take_human_labels(pool: Pool) -> None:
    """What people made of each statement in place of its prompt label, as ``judged.statements`` has it."""
    classes = human_classes()
    codes = np.array([classes.get(pk, NOBODY) for pk in pool.ids.tolist()], dtype=float)
    pool.leave_out(codes == NOBODY, "judged by nobody")
    pool.leave_out(np.isnan(codes), "without both harm ratings")
    pool.leave_out(codes == AMBIGUOUS, "ambiguous")
    pool.toxic = codes == TOXIC


def human_classes() -> dict[int, float]:
    """The code of ``labels.TOXICITY_CLASSES`` by statement, NaN where a rating is missing.

    Of the counted annotations, each annotator's first of a statement; of those that nobody judged here, the imported
    label.
    """
    statement = "assignment__hit__generation"
    means = first_answers({}).order_by().values_list(statement)
    here = means.annotate(Avg("harmful_if_ai"), Avg("harmful_if_human"))
    judged = Annotation.objects.counted().filter(assignment__hit__generation=OuterRef("generation"))
    imported = HumanLabel.objects.filter(~Exists(judged)).values_list("generation", "toxicity_ai", "toxicity_human")
    rows = np.array([*here, *imported], dtype=float).reshape(-1, 3)
    codes = toxicity_class(toxicity(rows[:, 1], rows[:, 2]))
    return dict(zip(rows[:, 0].astype(np.int64).tolist(), codes.tolist(), strict=True))


def _leave_out_copies(pool: Pool) -> None:
    """Of a text that several statements have, the first with the label of most is kept; none if it is a tie."""
    places = np.flatnonzero(pool.left)
    _, number = np.unique(pool.keys[places], return_inverse=True)
    more_toxic = np.bincount(number, weights=np.where(pool.toxic[places], 1, -1))[number]
    tied, outvoted, copies = np.zeros((3, len(pool.ids)), dtype=bool)
    tied[places] = more_toxic == 0
    pool.leave_out(tied, "a text with both labels equally often")
    outvoted[places] = pool.toxic[places] != (more_toxic > 0)
    pool.leave_out(outvoted, "a text that is there more often with the other label")
    places = np.flatnonzero(pool.left)
    copies[places] = True
    copies[places[np.unique(pool.keys[places], return_index=True)[1]]] = False
    pool.leave_out(copies, "a text that is there already")
