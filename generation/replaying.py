"""What a worker does with a replay: search once more with the run's models, and store every step."""

from collections.abc import Callable

from generation.errands import carry_out
from generation.models import Method, Replay
from generation.replays import lease_replay, store_replay
from generation.search_steps import packed
from generation.working import cell_of, decoder_for, environment_of, load_models_of


def work_on_replay(*, replay_id: int, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Replay a search, unless that is done or others are at it. Safe to run twice and at once.

    ``is_stopping`` is asked at every step; once it says so, the replay is given back for others.
    """
    replay = lease_replay(replay_id=replay_id)
    carry_out(
        replay,
        lambda on_step: search_again(replay=replay, on_step=on_step),
        load=lambda: load_models_of(replay.generation.run),
        is_stopping=is_stopping,
    )


def search_again(*, replay: Replay, on_step: Callable[[], None] = lambda: None) -> None:
    """Search from the statement's prompt with its seed and the run's parameters, and store what is seen."""
    from generation.decoding import alice  # torch: never in the web process

    generation = replay.generation
    decoder = decoder_for(cell=cell_of(run=generation.run, group_id=generation.group_id, label=generation.label))
    steps: list[list] = []
    decoding = alice.decode(
        decoder.model,
        decoder.classifier,
        [generation.prompt.text],
        seeds=[generation.seed],
        parameters=decoder.parameters[Method.ALICE],
        group_words=decoder.group_words,
        on_step=on_step,
        watch=lambda _, step: steps.append(packed(step.votes)),
    )
    store_replay(replay=replay, text=decoding.found[0][0].text, steps=steps, environment=environment_of(decoder))
