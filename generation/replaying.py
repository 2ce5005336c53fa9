"""What a worker does with a replay: search once more with the run's models, and store every step."""

from collections.abc import Callable

import structlog
from django.db import OperationalError

from generation.models import Method, Replay
from generation.replays import ReplayLost, fail_replay, give_back_replay, keep_replay, lease_replay, store_replay
from generation.search_steps import packed
from generation.working import (
    WorkerStopping,
    cell_of,
    decoder_for,
    environment_of,
    load_models_of,
    reasons_to_fail,
    reasons_to_pause,
)

log = structlog.get_logger(__name__)


def work_on_replay(*, replay_id: int, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Replay a search, unless that is done or others are at it. Safe to run twice and at once.

    ``is_stopping`` is asked at every step; once it says so, the replay is given back for others.
    """
    waiting = Replay.objects.filter(pk=replay_id, finished_at=None).select_related("generation__run").first()
    load_models_of(waiting and waiting.generation.run)
    replay = lease_replay(replay_id=replay_id)
    if replay is None:
        return
    try:
        search_again(replay=replay, is_stopping=is_stopping)
    except WorkerStopping:
        give_back_replay(replay=replay)
    except ReplayLost as lost:
        log.info("replay_lost", replay=replay_id, reason=str(lost))
    except (*reasons_to_pause(), *reasons_to_fail()) as error:
        fail_replay(replay=replay, reason=str(error))
    except OperationalError:
        raise  # the database is away: the replay is taken up again when it is back
    except Exception as error:
        # Whatever it was, the replay's page has to say so; the queue would only log it.
        fail_replay(replay=replay, reason=f"The worker stopped with an error: {type(error).__name__}: {error}")
        raise


def search_again(*, replay: Replay, is_stopping: Callable[[], bool] = lambda: False) -> None:
    """Search from the statement's prompt with its seed and the run's parameters, and store what is seen."""
    from generation.decoding import alice  # torch: never in the web process

    def on_step() -> None:
        if is_stopping():
            raise WorkerStopping
        keep_replay(replay=replay)

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
