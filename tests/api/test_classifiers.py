"""Classifiers, test sets and evaluations through the API."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from analysis.classifiers import scoring
from analysis.models import Evaluation, EvaluationSet, EvaluationText, LossPoint, TrainedClassifier
from generation import working
from tests.analysis.humanval_world import frozen
from tests.factories import make_evaluation, make_evaluation_set, make_generation, make_trained_classifier
from tests.generation.toys import ToyClassifier

pytestmark = pytest.mark.django_db

FILE = b"text,class,split,target\nthe lake is cold,hate,test,a\nrain fell,nothate,test,b\nsnow fell,nothate,train,b\n"
TABLE = {"text": "text", "label": "class"}


@pytest.fixture(autouse=True)
def _uploads_go_elsewhere(settings, tmp_path):
    settings.VAR = tmp_path


def upload(client, content=FILE, **fields):
    return client.post("/api/test-sets/", {"file": SimpleUploadedFile("DynaHate.csv", content), **TABLE, **fields})


def order(client, address, **fields):
    return client.post(f"/api/{address}/", fields, content_type="application/json")


# --- Test sets


def test_a_file_becomes_a_test_set_once(researcher):
    fields = {"positive": ["hate"], "where": ["split=test"], "group": "target"}
    made = upload(researcher, **fields)
    told = made.json()
    assert (made.status_code, told["name"], told["created_by"]) == (201, "dynahate", "the researcher")
    assert (told["texts_count"], told["toxic_count"]) == (2, 1)
    assert told["left_out"] == {"not chosen by the conditions": 1}
    assert told["columns"]["where"] == {"split": ["test"]}
    assert list(EvaluationText.objects.values_list("text", "group")) == [("the lake is cold", "a"), ("rain fell", "b")]
    again = upload(researcher, **fields)
    assert (again.status_code, again.json()["id"]) == (200, told["id"])
    assert researcher.get(f"/api/test-sets/{told['id']}/").json()["sha256"] == EvaluationSet.objects.get().sha256


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "Say which labels mean toxic"),
        ({"positive": "HATE!"}, "The labels there are: hate, nothate"),
        ({"positive": "hate", "label": "klass"}, "lacks the column klass. It has: text, class, split, target"),
        ({"above": "much"}, "A valid number is required"),
        ({"positive": "hate", "where": "split"}, "Write COLUMN=VALUE"),
        ({"positive": "hate", "name": "humanval"}, "Give another name"),
        ({"positive": "hate", "on-fault": "skip"}, "There is no such field. Choose from: file, text, label"),
        ({"above": "0.5"}, "Nothing was stored: 3 of 3 rows are bad"),
    ],
)
def test_what_cannot_be_a_test_set_is_refused_with_the_reason(researcher, fields, sentence):
    refused = upload(researcher, **fields)
    assert refused.status_code == 400
    assert sentence in refused.content.decode()
    assert not EvaluationSet.objects.exists()


# --- Evaluations


def test_an_evaluation_is_ordered_once_worked_on_and_shown_with_its_figures(researcher, monkeypatch):
    classifier = ToyClassifier()
    classifier.tokens_a_forward = 16384
    monkeypatch.setattr(working, "load_classifier", lambda name, **_: classifier)
    test_set = make_evaluation_set()
    made = order(researcher, "evaluations", model="minilm-toxigen", test_set=test_set.pk)
    told = made.json()
    assert (made.status_code, told["state"], told["texts"], told["figures"]) == (202, "queued", 4, None)
    assert (told["test_set"], told["humanval"], told["revision"]) == (test_set.pk, None, None)
    again = order(researcher, "evaluations", model="minilm-toxigen", test_set=test_set.pk)
    assert (again.status_code, again.json()["id"]) == (200, told["id"])
    scoring.work_on_evaluation(evaluation_id=told["id"])
    told = researcher.get(f"/api/evaluations/{told['id']}/").json()
    assert (told["state"], told["scored"], told["revision"]) == ("finished", 4, "toy 2")
    assert told["figures"]["auc"] == 0.5
    assert (told["figures"]["texts"], told["figures"]["toxic"]) == (4, 2)


def test_figures_that_the_texts_leave_undefined_are_null(researcher):
    evaluation = make_evaluation(make_evaluation_set((True,), (True,)), probs=[0.1, 0.9])
    figures = researcher.get(f"/api/evaluations/{evaluation.pk}/").json()["figures"]
    assert (figures["auc"], figures["false_positive_rate"], figures["spread"]) == (None, None, None)
    assert figures["accuracy"] == 0.5


def test_an_evaluation_on_a_frozen_set_is_filtered_by_it(researcher):
    humanval_set = frozen()
    other = make_evaluation()
    made = order(researcher, "evaluations", model="minilm-toxigen", humanval=humanval_set.pk).json()
    listed = researcher.get(f"/api/evaluations/?humanval={humanval_set.pk}").json()["results"]
    assert [row["id"] for row in listed] == [made["id"]]
    listed = researcher.get(f"/api/evaluations/?model=toy+classifier&test_set={other.evaluation_set_id}").json()
    assert [row["id"] for row in listed["results"]] == [other.pk]


def test_what_cannot_be_evaluated_is_refused_with_the_reason(researcher):
    test_set = make_evaluation_set().pk
    for fields, sentence in (
        ({"model": "no-such-one", "test_set": test_set}, "There is no classifier 'no-such-one'"),
        ({"model": "minilm-toxigen"}, "An evaluation is on one test set"),
        ({"model": "minilm-toxigen", "test_set": 10**9}, "does not exist"),
        ({"model": "http://localhost/v1", "test_set": test_set}, "the address of a server"),
    ):
        refused = order(researcher, "evaluations", **fields)
        assert refused.status_code == 400
        assert sentence in refused.content.decode()
    assert not Evaluation.objects.exists()


def test_an_evaluation_is_stopped_once(researcher):
    evaluation = make_evaluation()
    assert researcher.post(f"/api/evaluations/{evaluation.pk}/stop/").json()["state"] == "failed"
    assert researcher.post(f"/api/evaluations/{evaluation.pk}/stop/").status_code == 409


# --- Classifiers


def test_a_training_is_ordered_and_stopped(researcher):
    for number in range(40):
        make_generation(f"text {number} is about lake {number}", label=("benign", "toxic")[number % 2])
    made = order(researcher, "classifiers", name="round-one", methods="topk", seed=3, parameters={"l2": 0.01})
    told = made.json()
    assert (made.status_code, told.get("state"), told.get("curve")) == (202, "queued", []), told
    assert (told["kind"], told["labels"], told["methods"], told["parameters"]["l2"]) == ("head", "prompt", "topk", 0.01)
    assert told["created_by"] == "the researcher"
    assert TrainedClassifier.objects.get().name == "round-one"
    stopped = researcher.post(f"/api/classifiers/{told['id']}/stop/").json()
    assert stopped["state"] == "failed"
    assert researcher.post(f"/api/classifiers/{told['id']}/stop/").status_code == 409
    assert researcher.post(f"/api/classifiers/{told['id']}/resume/").json()["state"] == "queued"
    assert researcher.post(f"/api/classifiers/{told['id']}/resume/").status_code == 409


def test_a_classifier_is_shown_with_its_curve(researcher):
    classifier = make_trained_classifier("round-one")
    LossPoint.objects.create(classifier=classifier, step=10, loss=0.4, validation_loss=0.5, validation_auc=0.8)
    LossPoint.objects.create(classifier=classifier, step=0, validation_loss=0.7, validation_auc=0.5)
    told = researcher.get(f"/api/classifiers/{classifier.pk}/").json()
    assert [(point["step"], point["loss"], point["validation_auc"]) for point in told["curve"]] == [
        (0, None, 0.5),
        (10, 0.4, 0.8),
    ]
    assert "curve" not in researcher.get("/api/classifiers/").json()["results"][0]


def test_what_cannot_be_trained_is_refused_with_the_reason(researcher):
    assert order(researcher, "classifiers", name="round-one").status_code == 409  # there is no statement
    for fields in (
        {"name": "Two words"},
        {"name": "a", "kind": "tail"},
        {"name": "a", "parameters": [1]},
        {"name": "a", "parameters": {"no_such": 1}},
        {"name": "a", "size": 1},
    ):
        assert order(researcher, "classifiers", **fields).status_code == 400, fields
    assert not TrainedClassifier.objects.exists()
