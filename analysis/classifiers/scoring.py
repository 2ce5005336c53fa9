"""What a worker does with an evaluation: have the classifier score the texts that it has not scored, part by part."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import structlog
from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Coalesce
from django.utils import timezone

from analysis.classifiers.evaluations import texts_of
from analysis.humanval.errands import carry_out
from analysis.models import Evaluation, EvaluationScore, EvaluationText
from generation import leases, working
from generation.devices import describe
from generation.keeping import Keeper
from generation.models import Generation, ReaderKind, TextReader, ToxicityScore
from generation.reading import known_reader
from generation.reading_chunks import ROWS_AT_ONCE, store_values
from generation.reading_texts import Portion, load_model, read_all
from generation.readings import ReadingFailed
from generation.stopping import WorkerStopping

TEXTS_A_PART = 1024
STINT = 60
"""Seconds that a worker stays with an evaluation while others wait."""
NAMED = 10

Values = dict[int, dict | None]

log = structlog.get_logger(__name__)


class NotScored(RuntimeError):
    """Of some texts the classifier makes no number; the message says of which."""


def work_on_evaluation(
    *,
    evaluation_id: int,
    is_stopping: Callable[[], bool] = lambda: False,
    others_wait: Callable[[], bool] = lambda: False,
    on_part: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Score what is left of a test set, unless that is done or others are at it. Safe to run twice and at once.

    Each part is stored once and for all, so that a killed worker loses one at most. Once ``others_wait``, the
    evaluation is left to be taken up again after a stint. ``on_part`` is called with how many texts are scored, of how
    many. Whatever goes wrong ends the evaluation with the reason.
    """
    token = leases.take_up(Evaluation.objects.waiting(), pk=evaluation_id)
    mine = Evaluation.objects.filter(pk=evaluation_id, lease_token=token) if token else Evaluation.objects.none()
    for evaluation in mine.select_related("humanval_set", "evaluation_set"):

        def work(on_step: Callable[..., None], evaluation: Evaluation = evaluation) -> None:
            _score(evaluation, on_step, others_wait, on_part)

        carry_out(evaluation, work, refusals=_reasons_to_fail(), is_stopping=is_stopping)


def _score(
    evaluation: Evaluation,
    on_step: Callable[..., None],
    others_wait: Callable[[], bool],
    on_part: Callable[[int, int], None],
) -> None:
    on_step()
    reader = known_reader(ReaderKind.CLASSIFIER, evaluation.model, precision=evaluation.precision)
    model = load_model(ReaderKind.CLASSIFIER, evaluation.model, precision=evaluation.precision)
    leases.begin(evaluation)
    _begin(evaluation, reader, device=describe(model.device))
    on_part(evaluation.scored, evaluation.texts)
    portion, stint_ends, without = Portion(), time.monotonic() + STINT, []
    with Keeper(partial(leases.begin, evaluation), lost=leases.FinishedElsewhere, of=evaluation):
        for texts in _parts_left(evaluation, reader):
            started = time.monotonic()
            values = read_all(texts, model=model, on_step=on_step, portion=portion)
            without += sorted(pk for pk, value in values.items() if value is None)
            if not _store(evaluation, reader, values, seconds=time.monotonic() - started):
                raise leases.FinishedElsewhere(f"{evaluation} was stopped, or taken up by somebody else.")
            on_part(evaluation.scored, evaluation.texts)
            if without and not evaluation.scored:
                break  # the weights are broken: the other texts would be no better
            if time.monotonic() > stint_ends and others_wait():
                raise WorkerStopping
    if without:
        raise NotScored(_no_number(evaluation, without))
    leases.finish(evaluation, reader=reader, scored=F("texts"))
    log.info("test_set_scored", evaluation=evaluation.pk, reader=str(reader))


def _begin(evaluation: Evaluation, reader: TextReader, *, device: str) -> None:
    """Note which reader it is, and how many texts it has scored before: in an earlier evaluation, or for a reading."""
    evaluation.reader, evaluation.device = reader, device
    evaluation.texts = texts_of(evaluation.test_set).count()
    evaluation.scored = evaluation.texts - _unscored(evaluation, reader).count()
    _mine(evaluation).update(
        reader=reader,
        device=device,
        texts=evaluation.texts,
        scored=evaluation.scored,
        started_at=Coalesce("started_at", timezone.now()),
    )


def _parts_left(evaluation: Evaluation, reader: TextReader) -> Iterator[list[tuple[int, str]]]:
    """The ids and texts that the reader has not scored, in ascending order, a part at a time."""
    last = 0
    while part := list(
        _unscored(evaluation, reader).filter(pk__gt=last).order_by("pk").values_list("pk", "text")[:TEXTS_A_PART]
    ):
        yield part
        last = part[-1][0]


def _unscored(evaluation: Evaluation, reader: TextReader):
    """The statements or texts of the test set that the reader has not scored."""
    if evaluation.humanval_set_id:
        labelled = texts_of(evaluation.humanval_set).values("generation")
        scores = ToxicityScore.objects.filter(reader=reader, generation=OuterRef("pk"))
        return Generation.objects.filter(~Exists(scores), pk__in=labelled)
    scores = EvaluationScore.objects.filter(reader=reader, text=OuterRef("pk"))
    return EvaluationText.objects.filter(~Exists(scores), evaluation_set=evaluation.evaluation_set_id)


@transaction.atomic
def _store(evaluation: Evaluation, reader: TextReader, values: Values, *, seconds: float) -> bool:
    """Store what the reader made of a part; what is stored already stays. Return whether the evaluation is still ours.

    A worker that got so far has not died of what it is at: earlier leases are forgotten.
    """
    if evaluation.humanval_set_id:
        store_values(reader=reader, values=values)
    else:
        EvaluationScore.objects.bulk_create(
            (
                EvaluationScore(reader=reader, text_id=pk, **value)
                for pk, value in sorted(values.items())
                if value is not None
            ),
            ignore_conflicts=True,
            batch_size=ROWS_AT_ONCE,
        )
    evaluation.scored += sum(value is not None for value in values.values())
    ours = _mine(evaluation).update(scored=evaluation.scored, seconds=F("seconds") + seconds, leases=1)
    return bool(ours)


def _mine(evaluation: Evaluation):
    return Evaluation.objects.unended().filter(pk=evaluation.pk, lease_token=evaluation.lease_token)


def _no_number(evaluation: Evaluation, ids: list[int]) -> str:
    """Why these texts have no score."""
    if evaluation.humanval_set_id:
        named, what = ids[:NAMED], "statements"
    else:
        rows = EvaluationText.objects.filter(pk__in=ids[:NAMED]).order_by("index")
        named, what = list(rows.values_list("index", flat=True)), "rows"
    some = ", ".join(map(str, named)) + (", …" if len(ids) > NAMED else "")
    return (
        f"{evaluation.model} makes no number of {len(ids):,} text{'' if len(ids) == 1 else 's'} of "
        f"{evaluation.test_set} ({what} {some}): its weights are broken, or too small a precision overflows. Choose "
        "another model, or float32."
    )


def _reasons_to_fail() -> tuple[type[Exception], ...]:
    """What is told on the evaluation's page in the error's own words."""
    return (*working.reasons_to_pause(), *working.reasons_to_fail(), ReadingFailed, NotScored)
