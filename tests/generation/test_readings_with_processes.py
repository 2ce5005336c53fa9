"""A real worker that is killed in the middle of a reading: the next one completes it."""

import signal

import pytest

from generation import readings
from generation.models import Embedding, ReaderKind, Reading
from tests.factories import make_generation, make_reading
from tests.generation.test_working_with_processes import Surroundings, ended_with_the_test

pytestmark = pytest.mark.django_db(transaction=True)

STATEMENTS = 400


class Readers(Surroundings):
    def wake(self, reading) -> None:
        self.queue.send_task("generation.read_statements", [reading.pk], queue="generation", expires=10)


def test_a_worker_killed_in_the_middle_of_a_reading_and_started_again_completes_it_with_nothing_lost_or_doubled(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(readings, "STATEMENTS_A_CHUNK", dict.fromkeys(ReaderKind, 4))
    texts = [f"number {number} is about the weather of a harbor " * 8 for number in range(STATEMENTS)]
    started = make_reading(generation_ids=[make_generation(text).pk for text in texts])
    with ended_with_the_test(Readers(tmp_path / "state")) as surroundings:
        worker = surroundings.start_worker()
        held = started.chunks.exclude(lease_token=None)
        surroundings.wait_until(lambda: Embedding.objects.exists() and held.exists(), run=started)
        surroundings.kill(worker)
        assert worker.returncode == -signal.SIGKILL
        started.refresh_from_db()
        assert started.state == "running"
        assert 0 < started.read == Embedding.objects.count() < STATEMENTS

        surroundings.start_worker()
        surroundings.wait_until(lambda: not Reading.objects.unended().exists(), run=started)
    started.refresh_from_db()
    assert (started.read, started.failure) == (STATEMENTS, "")
    assert Embedding.objects.count() == STATEMENTS
    assert not held.exists()
