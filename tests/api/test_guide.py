"""The guide's page about the API: every command on it is run as it stands there."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from analysis import uploads
from analysis.classifiers import scoring
from analysis.humanval import drawing, proving
from analysis.models import DataImport, Evaluation, HumanvalProof, HumanvalSet, StoredReport
from analysis.reports import storing
from annotator.models import HIT
from generation import trying, working
from generation.models import Demonstration, GenerationRun, Reading, Trial
from generation.reading import work_on_reading
from tests.api.world import token_of
from tests.generation import toys

pytestmark = pytest.mark.django_db(transaction=True)

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text()
COMMANDS = "\n".join(["set -eo pipefail", *re.findall(r"```bash\n(.*?)```", GUIDE, flags=re.DOTALL)])


def work():
    """What the workers do meanwhile."""
    for trial in Trial.objects.waiting():
        trying.work_on_trial(trial_id=trial.pk)
    for run in GenerationRun.objects.open():
        working.work_on_run(run_id=run.pk)
    for waiting in DataImport.objects.waiting():
        uploads.work_on_import(import_id=waiting.pk)
    for report in StoredReport.objects.waiting():
        storing.work_out(stored=report.pk)
    for wanted in HumanvalSet.objects.waiting():
        drawing.work_on_set(set_id=wanted.pk)
    for asked in Reading.objects.waiting():
        work_on_reading(reading_id=asked.pk)
    for proof in HumanvalProof.objects.waiting():
        proving.work_on_proof(proof_id=proof.pk)
    for evaluation in Evaluation.objects.waiting():
        scoring.work_on_evaluation(evaluation_id=evaluation.pk)


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="needs bash and curl")
def test_every_command_of_the_guide_works(live_server, tmp_path, monkeypatch):
    toy = toys.chatterbox()
    monkeypatch.setattr(working, "load_language_model", lambda name, **_: toy)
    surroundings = os.environ | {"HUMANVAL": live_server.url, "TOKEN": token_of("admin")}
    shell = subprocess.Popen(
        ["bash", "-c", COMMANDS.replace("sleep 1", "sleep 0.1")],
        cwd=tmp_path, env=surroundings, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while True:
        work()
        if time.monotonic() > deadline:
            shell.kill()
        try:
            said, _ = shell.communicate(timeout=0.1)
            break
        except subprocess.TimeoutExpired:
            continue
    assert shell.returncode == 0, said
    assert HIT.objects.count() == 4 + 2
    assert HumanvalSet.objects.get().proofs.get().found
    assert StoredReport.objects.filter(name="dataset", payload__isnull=False).exists()
    assert Evaluation.objects.finished().get().scored == 3
    assert Demonstration.objects.filter(group__slug="sailors").count() == 9
    assert {file.name for file in tmp_path.glob("*.csv")} == {
        "annotated.csv",
        "annotations.csv",
        "wide.csv",
        "tides.csv",
    }
