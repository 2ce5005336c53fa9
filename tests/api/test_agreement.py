"""Agreement through the API: the report that is kept, and the queue asked for one that is not."""

import krippendorff
import numpy as np
import pytest

from analysis.models import StoredReport
from analysis.reports import storing
from tests.analysis.judging import judge, people
from tests.factories import make_hit_type

pytestmark = pytest.mark.django_db

HARM = [[1, 2, 1], [1, 5, 4], [5, 5, 5], [3, 3, 1], [2, 1, None]]


@pytest.fixture
def study():
    return make_hit_type()


@pytest.fixture
def client(researcher):
    return researcher


def ask(client, study):
    response = client.get(f"/api/agreement/{study.pk}/")
    assert response.status_code == 200, response.content
    return response.json()


def work():
    for stored in StoredReport.objects.waiting():
        storing.work_out(stored=stored.pk)


def figure(told, name):
    return next(figure for figure in told["figures"] if figure["name"] == name)


def test_what_was_never_asked_for_is_asked_for_and_told_from_then_on(client, study):
    judge(HARM * 3, study=study)
    judge([[5, 1, 5]])  # in another study
    assert ask(client, study) == {
        "study": study.pk,
        "submitted": 42,
        "annotations": 0,
        "made_at": None,
        "is_outdated": False,
        "failure": "",
        "figures": [],
    }
    work()
    told = ask(client, study)
    assert (told["annotations"], told["submitted"], told["is_outdated"]) == (42, 42, False)
    assert told["made_at"] is not None
    matrix = np.sign(np.array(HARM * 3, dtype=float) - 3) + 1
    alpha = figure(told, "Krippendorff's alpha (ordinal)")
    assert alpha["value"] == pytest.approx(krippendorff.alpha(matrix.T, level_of_measurement="ordinal"))
    assert alpha["interval"]["low"] <= alpha["value"] <= alpha["interval"]["high"]
    kappa = figure(told, "Fleiss' kappa")
    numbers = ("n_statements", "n_raters", "n_ratings", "left_out", "reason")
    assert [kappa[name] for name in numbers] == [12, 3, 36, 3, None]


def test_a_figure_that_is_undefined_has_its_reason(client, study):
    judge([[5, 5]] * 2, study=study)
    ask(client, study)
    work()
    kappa = figure(ask(client, study), "Fleiss' kappa")
    assert (kappa["value"], kappa["interval"]) == (None, None)
    assert "All ratings that enter are the same" in kappa["reason"]


def test_a_figure_of_few_statements_has_a_value_without_an_interval(client, study):
    judge([[5, 5], [1, 1]], study=study)
    ask(client, study)
    work()
    told = ask(client, study)
    kappa, full = figure(told, "Fleiss' kappa"), figure(told, "Full agreement")
    assert (kappa["value"], kappa["interval"], kappa["reason"]) == (1.0, None, None)
    assert full["interval"] == {"low": pytest.approx(0.3424, abs=1e-4), "high": 1.0}


def test_a_study_without_annotations_has_every_figure_with_the_reason(client, study):
    ask(client, study)
    work()
    told = ask(client, study)
    assert len(told["figures"]) == 9
    assert {one["reason"] for one in told["figures"]} == {
        "There are no annotations here. Publish a study, or choose other filters."
    }


def test_newer_answers_are_told_of(client, study):
    workers = people(3)
    judge(HARM, study=study, workers=workers)
    ask(client, study)
    work()
    judge([[1, 1, 5]], study=study, workers=workers)
    told = ask(client, study)
    assert (told["is_outdated"], told["annotations"], told["submitted"]) == (True, 14, 17)


def test_figures_can_be_worked_out_anew_at_once(client, study):
    workers = people(3)
    judge(HARM, study=study, workers=workers)
    ask(client, study)
    work()
    judge([[1, 1, 5]], study=study, workers=workers)
    assert client.post(f"/api/agreement/{study.pk}/work-out/").status_code == 202
    work()
    told = ask(client, study)
    assert (told["is_outdated"], told["annotations"]) == (False, 17)


def test_that_it_failed_is_told(client, study):
    ask(client, study)
    StoredReport.objects.update(finished_at="2026-03-02T12:00Z", failure="It could not be worked out.")
    assert ask(client, study)["failure"] == "It could not be worked out."


def test_there_is_no_agreement_of_a_study_that_is_not_there(client):
    assert client.get("/api/agreement/7777/").status_code == 404
    assert client.post("/api/agreement/7777/work-out/").status_code == 404
    assert not StoredReport.objects.exists()
