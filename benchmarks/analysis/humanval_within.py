"""What has to be done inside Django, each in a process of its own: ``python -m benchmarks.analysis.humanval_within``.

Each prints a JSON object; ``memory_mb`` is what the process held at most while it drew the set.
"""

import argparse
import io
import json
import os
import resource
import time

import django
import numpy as np
from django.core.management import call_command

django.setup()

from django.db import connection, transaction  # noqa: E402 - models can be imported once Django is set up

from analysis.humanval import drawing, sets  # noqa: E402
from analysis.humanval.pool import corpus  # noqa: E402
from benchmarks.io import filling  # noqa: E402
from generation.models import ReaderKind, TextReader  # noqa: E402
from generation.read_values import vectors  # noqa: E402
from generation.readings import ENCODER  # noqa: E402

DIMENSIONS, CENTRES = 384, 60_000
AT_ONCE = 5000
HEIGHT = 8192


def fill(options) -> dict:
    """Statements by both methods in all groups, and their vectors."""
    call_command("migrate", verbosity=0)
    reader = TextReader.objects.create(kind=ReaderKind.ENCODER, name=ENCODER, revision="made up")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("SELECT array_agg(id ORDER BY id) FROM generation_targetgroup")
        [groups] = cursor.fetchone()
        group = f"(ARRAY{groups})[1 + i % {len(groups)}]"
        label = f"(ARRAY['benign', 'toxic'])[1 + i / {len(groups)} % 2]"
        size = filling.Size(statements=options.statements, hits=0, prompts=1)
        cursor.execute(filling.prompts(size, group=group, label=label))
        cursor.execute(filling.statements(size, group=group, label=label))
        cursor.execute("UPDATE generation_generation SET method = 'alice' WHERE id % 20 = 0")
        cursor.execute("SELECT id FROM generation_generation ORDER BY id")
        ids = [pk for (pk,) in cursor.fetchall()]
        random = np.random.default_rng(0)
        centres = random.standard_normal((CENTRES, DIMENSIONS), dtype=np.float32)
        for start in range(0, len(ids), AT_ONCE):
            copy_vectors(cursor, reader, ids[start : start + AT_ONCE], random, centres)
        cursor.execute("SET LOCAL session_replication_role = origin")
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return {"statements": len(ids)}


def copy_vectors(cursor, reader, ids, random, centres) -> None:
    made = centres[random.integers(len(centres), size=len(ids))]
    made = made + random.standard_normal(made.shape, dtype=np.float32) * np.float32(0.6)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    lines = (
        f"{pk}\t{reader.pk}\t\\\\x{row.astype('<f4').tobytes().hex()}\n" for pk, row in zip(ids, made, strict=True)
    )
    copy = "COPY generation_embedding (generation_id, reader_id, vector) FROM STDIN"
    cursor.copy_expert(copy, io.StringIO("".join(lines)))


def draw(options) -> dict:
    """Draw and store a set, then the bare products of the same matrices."""
    wanted = sets.ask_for_set(seed=7, wake=False)
    drawing.fix_statements(wanted)
    started = time.perf_counter()
    drawn = drawing.draw(wanted)
    stored_from = time.perf_counter()
    drawing.store(wanted, drawn)
    ended = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    laps, report = dict(drawn.report["seconds"]), drawn.report
    every = vectors(drawn.reader, corpus(wanted.compared_up_to))
    bare = sum(bare_products(every, number) for number in (report["candidates"], report["chosen"]))
    compared = [laps[name] for name in laps if name.startswith("comparing")]
    return {
        "seconds": round(ended - started, 2),
        "reading_seconds": laps["reading the embeddings"],
        "drawing_seconds": laps["drawing the candidates"],
        "storing_seconds": round(ended - stored_from, 2),
        "compared_seconds": round(sum(compared), 2),
        "bare_seconds": round(bare, 2),
        "memory_mb": round(memory),
        "vectors_mb": round(every.nbytes / 2**20),
        "threads": int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)),
        **{name: report[name] for name in ("candidates", "chosen", "removed")},
    }


def bare_products(every: np.ndarray, number: int) -> float:
    """Seconds for the products of so many vectors with all, as fast as numpy makes them."""
    chosen = np.ascontiguousarray(every[:: len(every) // number][:number].T)
    room = np.empty((HEIGHT, chosen.shape[1]), np.float32)
    started = time.perf_counter()
    for start in range(0, len(every), HEIGHT):
        block = every[start : start + HEIGHT]
        np.matmul(block, chosen, out=room[: len(block)])
    return time.perf_counter() - started


ACTS = {"fill": fill, "draw": draw}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=ACTS)
    parser.add_argument("--statements", type=int, default=filling.FULL.statements)
    given = parser.parse_args()
    print(json.dumps(ACTS[given.what](given)))
