"""What has to be done inside Django, each in a process of its own: ``python -m benchmarks.classifiers.scoring_within``.

Each prints a JSON object.
"""

import argparse
import json
import os
import signal
import time

import django
import psutil
from django.core.management import call_command

django.setup()

from django.db import connection, transaction  # noqa: E402 - models can be imported once Django is set up

from benchmarks.io import filling  # noqa: E402
from generation.classifiers import EMBEDDED_CLASSIFIER  # noqa: E402
from generation.models import Generation, ReaderKind, Reading, ToxicityScore  # noqa: E402
from generation.reading import work_on_readings  # noqa: E402
from generation.readings import start_reading  # noqa: E402

WAIT_SECONDS = 0.5


def fill(options) -> dict:
    """Statements, and the order to score them."""
    call_command("migrate", verbosity=0)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("SELECT min(id) FROM generation_targetgroup")
        [group] = cursor.fetchone()
        size = filling.Size(statements=options.statements, hits=0, prompts=1)
        cursor.execute(filling.prompts(size, group=str(group), label="'benign'"))
        cursor.execute(filling.statements(size, group=str(group), label="'benign'"))
        cursor.execute("SET LOCAL session_replication_role = origin")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    reading = start_reading(
        kind=ReaderKind.CLASSIFIER, model=EMBEDDED_CLASSIFIER, generation_ids=Generation.objects.all(), wake=False
    )
    return {"statements": reading.statements}


def score(options) -> dict:
    """Work on the reading until it ends, or half of it is stored and the next chunk begun."""
    reading = Reading.objects.get()
    before = reading.read
    process = psutil.Process()
    memory: list[tuple[int, float]] = []
    started = time.monotonic()

    def stored() -> int:
        return Reading.objects.values_list("read", flat=True).get()

    def look() -> None:
        memory.append((stored() - before, process.memory_info().rss / 2**20))

    def die_half_way() -> bool:
        if options.die_half_way and stored() >= reading.statements / 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    while not Reading.objects.get().finished_at:
        work_on_readings(first=reading.pk, is_stopping=die_half_way, between_chunks=look)
        time.sleep(WAIT_SECONDS)  # for the lease of the killed worker to lapse
    seconds = Reading.objects.get().seconds - reading.seconds
    look()
    part = memory[-1][0]
    a_tenth = next(megabytes for read, megabytes in memory if read >= part / 10)
    return {
        "before": before,
        "scores": ToxicityScore.objects.count(),
        "finished": not Reading.objects.get().failure,
        "memory_at_a_tenth_mb": round(a_tenth),
        "memory_at_end_mb": round(memory[-1][1]),
        "statements_a_second": part / seconds,
        "seconds": round(time.monotonic() - started, 1),
        "threads": int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)),
    }


ACTS = {"fill": fill, "score": score}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=ACTS)
    parser.add_argument("--statements", type=int, default=filling.FULL.statements)
    parser.add_argument("--die-half-way", action="store_true")
    given = parser.parse_args()
    print(json.dumps(ACTS[given.what](given)))
