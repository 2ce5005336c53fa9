"""A whole study through the API alone, by the script that anybody can run: see whole_study.py."""

import csv
import json

import pyarrow.parquet
import pytest

from analysis.models import StoredReport
from analysis.reports import storing
from annotator.models import Payment
from generation import trying, working
from generation.models import AuditEntry, GenerationRun, Trial
from tests.api.whole_study import Api, whole_study
from tests.api.world import token_of
from tests.generation import toys

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def wait(monkeypatch):
    """What the workers do while the script waits, with a toy of a language model."""
    toy = toys.chatterbox()
    monkeypatch.setattr(working, "load_language_model", lambda name, **_: toy)

    def work():
        for trial in Trial.objects.waiting():
            trying.work_on_trial(trial_id=trial.pk)
        for run in GenerationRun.objects.open():
            working.work_on_run(run_id=run.pk)
        for report in StoredReport.objects.waiting():
            storing.work_out(stored=report.pk)

    return work


def test_a_whole_study_is_done_through_the_api_alone(live_server, wait, tmp_path):
    done = whole_study(
        Api(live_server.url, token_of("admin")), tmp_path, slug="gardeners", wait=wait, say=lambda _: None
    )
    assert (done["run"]["progress"]["stored"], done["hits"], done["answered"], done["approved"]) == (6, 4, 12, 12)
    assert done["watch"]["places"]["percent"] == 100
    assert done["watch"]["pay"]["approved"] == "3.00"
    assert Payment.objects.total() == 3
    agreement = {figure["name"]: figure for figure in done["agreement"]["figures"]}
    assert agreement["Full agreement"]["value"] == 1.0
    rows = list(csv.DictReader((tmp_path / "annotations.csv").read_text().splitlines()))
    assert len(rows) == 12
    assert {row["target_group"] for row in rows} == {"gardeners"}
    assert len({row["hashed_worker_id"] for row in rows}) == 3
    assert len([json.loads(line) for line in (tmp_path / "annotations.jsonl").read_text().splitlines()]) == 12
    assert pyarrow.parquet.read_table(tmp_path / "annotations.parquet").num_rows == 12
    noted = set(AuditEntry.objects.values_list("act", flat=True))
    assert {
        "demonstration added", "responses asked for", "demonstration promoted", "run started", "statements published",
        "annotations exported",
    } <= noted  # fmt: skip
