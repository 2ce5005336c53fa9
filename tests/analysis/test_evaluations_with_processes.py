"""A real process that is killed in the middle of an evaluation: the next one completes it."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from analysis.classifiers import scoring
from analysis.models import Evaluation, EvaluationScore
from tests.factories import make_evaluation_set
from tests.generation.test_working_with_processes import database_url

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = 400
SECONDS = 120
COMMAND = """
import django
django.setup()
from analysis.classifiers import scoring
from django.core.management import call_command
scoring.TEXTS_A_PART = 8
call_command("evaluate", "minilm-toxigen", "--on", "hatecheck")
"""


def test_a_process_killed_in_the_middle_of_an_evaluation_loses_and_doubles_nothing():
    test_set = make_evaluation_set(*[(number % 2 == 0, "women") for number in range(TEXTS)], name="hatecheck")
    surroundings = os.environ | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": database_url(connection.settings_dict),
        "OMP_NUM_THREADS": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND], cwd=settings.BASE_DIR, env=surroundings, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    deadline = time.monotonic() + SECONDS
    while not EvaluationScore.objects.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    said, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL, said

    evaluation = Evaluation.objects.get()
    assert evaluation.state == "running"
    assert 0 < evaluation.scored == EvaluationScore.objects.count() < TEXTS
    Evaluation.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    scoring.work_on_evaluation(evaluation_id=evaluation.pk)
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.scored, evaluation.failure) == ("finished", TEXTS, "")
    scored = EvaluationScore.objects.filter(reader=evaluation.reader, text__evaluation_set=test_set)
    assert scored.count() == EvaluationScore.objects.count() == TEXTS
