"""The API's view of runs: all that is needed to repeat one, and a single one's progress."""

import pytest
from django.contrib.auth import get_user_model

from generation.runs import pause_run
from tests.factories import make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client):
    client.force_login(get_user_model().objects.create(username="ada", is_staff=True, is_superuser=True))


@pytest.mark.usefixtures("admin")
def test_a_run_is_shown_with_its_models_parameters_and_reason(client):
    run = make_run(method="paired", precision="bfloat16")
    pause_run(run_id=run.pk, reason="The server does not answer.")
    [shown] = client.get("/api/runs/").json()["results"]
    expected = {
        "state": "paused",
        "method": "paired",
        "language_model": "toy",
        "classifier": "toy classifier",
        "precision": "bfloat16",
        "parameters": run.parameters,
        "failure": "The server does not answer.",
    }
    assert {name: shown[name] for name in expected} == expected


@pytest.mark.usefixtures("admin")
def test_a_single_run_has_its_progress(client):
    run = make_run(count=20, method="paired")
    shown = client.get(f"/api/runs/{run.pk}/").json()
    assert shown["progress"] == run.progress()
    assert shown["progress"]["wanted"] == 40
