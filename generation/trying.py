"""What a worker does with a trial: continue its prompt so many times at once, and store the responses."""

import contextlib
from collections.abc import Callable

import structlog
from django.db import OperationalError

from generation import working
from generation.drawing import Output, derived_seed, duplicate_key
from generation.models import Method, Trial
from generation.parameters import TopKParameters
from generation.trials import TrialLost, fail_trial, give_back_trial, keep_trial, lease_trial, store_trial
from generation.working import WorkerStopping, environment_of, reasons_to_fail, reasons_to_pause

ROUNDS = 4
NOTHING_WRITTEN = (
    "The language model wrote nothing {rounds} times: each output was empty. Raise the temperature, or draw another "
    "prompt."
)

log = structlog.get_logger(__name__)


def work_on_trial(*, trial_id: int, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Write the responses of a trial, unless that is done or others are at it. Safe to run twice and at once.

    ``is_stopping`` is asked at every step; once it says so, the trial is given back for others.
    """
    _load_model_of(Trial.objects.waiting().filter(pk=trial_id).first())
    trial = lease_trial(trial_id=trial_id)
    if trial is None:
        return
    try:
        write_responses(trial=trial, is_stopping=is_stopping)
    except WorkerStopping:
        give_back_trial(trial=trial)
    except TrialLost as lost:
        log.info("trial_lost", trial=trial_id, reason=str(lost))
    except (*reasons_to_pause(), *reasons_to_fail()) as error:
        fail_trial(trial=trial, reason=str(error))
    except OperationalError:
        raise  # the database is away: the trial is taken up again when it is back
    except Exception as error:
        # Whatever it was, the trial's page has to say so; the queue would only log it.
        fail_trial(trial=trial, reason=f"The worker stopped with an error: {type(error).__name__}: {error}")
        raise


def work_on_waiting_trials(*, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Work on what people wait for: a worker that is busy with a run does so after each chunk."""
    for trial_id in Trial.objects.waiting().order_by("pk").values_list("pk", flat=True):
        work_on_trial(trial_id=trial_id, is_stopping=is_stopping)


def write_responses(*, trial: Trial, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Continue the prompt, all responses in one batch; those empty or the same as another are drawn again.

    After ``ROUNDS`` there may be fewer than were asked for: somebody waits.
    """
    from generation.decoders import Decoder  # torch: never in the web process

    def on_step() -> None:
        if is_stopping():
            raise WorkerStopping
        keep_trial(trial=trial)

    decoder = Decoder(
        model=working.load_language_model(trial.language_model),
        classifier=None,
        parameters={Method.TOPK: TopKParameters(**trial.parameters)},
        on_step=on_step,
    )
    kept: dict[int, Output] = {}
    for attempt in range(ROUNDS):
        missing = [position for position in range(trial.count) if position not in kept]
        seeds = [derived_seed(trial.seed, position, attempt) for position in missing]
        decoded = decoder([trial.prompt.text] * len(missing), seeds) if missing else []
        for position, outputs in zip(missing, decoded, strict=True):
            keys = {"", *(duplicate_key(output.text) for output in kept.values())}
            if duplicate_key(outputs[Method.TOPK].text) not in keys:
                kept[position] = outputs[Method.TOPK]
    if not kept:
        fail_trial(trial=trial, reason=NOTHING_WRITTEN.format(rounds=ROUNDS))
        return
    store_trial(trial=trial, outputs=[kept[position] for position in sorted(kept)], environment=environment_of(decoder))


def _load_model_of(trial: Trial | None) -> None:
    """Load the model before the trial is leased, so that no lease lapses meanwhile.

    What goes wrong here does so again with the lease in hand, and is dealt with there.
    """
    if trial is not None:
        with contextlib.suppress(*reasons_to_pause(), *reasons_to_fail()):
            working.load_language_model(trial.language_model)
