"""What a worker does with a trial: continue its prompt so many times at once, and store the responses."""

from collections.abc import Callable

from generation import working
from generation.drawing import Output, derived_seed, duplicate_key
from generation.errands import carry_out, fail
from generation.models import Method, Trial
from generation.parameters import TopKParameters
from generation.trials import lease_trial, store_trial
from generation.working import environment_of

ROUNDS = 4
NOTHING_WRITTEN = (
    "The language model wrote nothing {rounds} times: each output was empty. Raise the temperature, or draw another "
    "prompt."
)


def work_on_trial(*, trial_id: int, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Write the responses of a trial, unless that is done or others are at it. Safe to run twice and at once.

    ``is_stopping`` is asked at every step; once it says so, the trial is given back for others.
    """
    trial = lease_trial(trial_id=trial_id)
    carry_out(
        trial,
        lambda on_step: write_responses(trial=trial, on_step=on_step),
        load=lambda: working.load_language_model(trial.language_model),
        is_stopping=is_stopping,
    )


def work_on_waiting_trials(*, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Work on what people wait for: a worker that is busy with a run does so after each chunk."""
    for trial_id in Trial.objects.waiting().order_by("pk").values_list("pk", flat=True):
        work_on_trial(trial_id=trial_id, is_stopping=is_stopping)


def write_responses(*, trial: Trial, on_step: Callable[[], None] = lambda: None) -> None:
    """Continue the prompt, all responses in one batch; those empty or the same as another are drawn again.

    After ``ROUNDS`` there may be fewer than were asked for: somebody waits.
    """
    from generation.decoders import Decoder  # torch: never in the web process

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
        fail(trial, NOTHING_WRITTEN.format(rounds=ROUNDS))
        return
    store_trial(trial=trial, outputs=[kept[position] for position in sorted(kept)], environment=environment_of(decoder))
