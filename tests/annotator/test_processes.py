"""Many at once, with everything dying around them: real processes and connections, killed in the middle of work."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress

import pytest
from django.conf import settings
from django.db import connection

from annotator.models import HIT, Annotation, Assignment
from tests.factories import consenting_worker, make_hit, make_hit_type

SECONDS = 120
PROGRAM = "import django; django.setup(); from tests.annotator import processes; processes.main({database!r})"


def complete_the_study(folder) -> list[dict]:
    """Let ``processes`` complete the study in the database; return what it told, line by line."""
    told, errors = folder / "told.jsonl", folder / "errors.txt"
    program = [sys.executable, "-c", PROGRAM.format(database=connection.settings_dict["NAME"])]
    connection.close()  # everybody's is cut
    with told.open("wb") as stdout, errors.open("wb") as stderr:
        running = subprocess.Popen(program, cwd=settings.BASE_DIR, stdout=stdout, stderr=stderr, start_new_session=True)
    try:
        running.wait(SECONDS)
    except subprocess.TimeoutExpired:
        pytest.fail(f"After {SECONDS} seconds the study was not complete. {state()}\n{errors.read_text()}")
    finally:
        with suppress(ProcessLookupError):  # when none of the group is left
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        end_other_connections()
    assert running.returncode == 0, f"{state()}\n{errors.read_text()}"
    return [json.loads(line) for line in told.read_text().splitlines()]


def state() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT wait_event, query FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        waiting = cursor.fetchall()
    hits = Counter(HIT.objects.values_list("held_places", "open_assignments"))
    return f"HITs by places held and assignments open: {dict(hits)}; waiting for locks: {waiting}"


def end_other_connections() -> None:
    """Wait until nobody is left who could write."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )


@pytest.mark.django_db(transaction=True)
def test_sixty_workers_give_a_hundred_hits_three_labels_each_while_their_processes_and_connections_die(tmp_path):
    hit_type = make_hit_type(max_assignments=3)
    hits = [make_hit(hit_type=hit_type) for _ in range(100)]
    for _ in range(60):
        consenting_worker()

    told = complete_the_study(tmp_path)

    happened = Counter(line["event"] for line in told)
    assert min(happened["cut"], happened["killed"]) > 10, "hardly anything went wrong, so this was no test"

    labels = Counter(Annotation.objects.counted().values_list("assignment__hit", flat=True))
    assert dict(labels) == {hit.pk: 3 for hit in hits}
    assert set(HIT.objects.values_list("held_places", "open_assignments", "free_places")) == {(3, 0, 0)}
    given = Counter(Assignment.objects.values_list("worker", "hit"))
    assert set(given.values()) == {1}, "a worker was given a HIT twice"

    stored = list(Annotation.objects.values_list("assignment", "other_groups"))
    assert len(stored) == len(dict(stored)), "an assignment was stored twice"
    attempted = {(line["assignment"], line["by"]) for line in told if line["event"] == "attempted"}
    assert set(stored) <= attempted, "something was stored that nobody submitted"

    acknowledged = [line for line in told if line["event"] == "acknowledged"]
    assert {line["assignment"] for line in acknowledged} <= dict(stored).keys(), "an acknowledged submit was lost"
    firsts = [line for line in acknowledged if line["outcome"] != "stored_before"]
    assert len(firsts) == len({line["assignment"] for line in firsts}), "two submits were told that they were the first"
    assert {(line["assignment"], line["by"]) for line in firsts} <= set(stored), "not the first submit was stored"
    counted = set(Annotation.objects.counted().values_list("assignment", flat=True))
    for line in firsts:
        assert (line["assignment"] in counted) == (line["outcome"] in ("counted", "late")), line

    returned = Assignment.objects.filter(pk__in=[line["assignment"] for line in told if line["event"] == "returned"])
    assert not returned.exclude(status__in=["returned", "submitted"]).exists(), "a return was lost"
