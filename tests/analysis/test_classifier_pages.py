"""The pages of trained classifiers, test sets and evaluations: what they order, refuse and show, and to whom."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from analysis.classifiers import orders
from analysis.classifiers.folders import folder_of
from analysis.models import Evaluation, EvaluationScore, EvaluationSet, EvaluationText, LossPoint, TrainedClassifier
from config.roles import RESEARCHER
from generation.models import AuditEntry, Reading
from tests.analysis.humanval_world import frozen
from tests.factories import make_evaluation, make_evaluation_set, make_generation, make_trained_classifier

pytestmark = pytest.mark.django_db

TRAIN = "/admin/analysis/trainedclassifier/add/"
PREVIEW = "/admin/analysis/trainedclassifier/preview/"
UPLOAD = "/admin/analysis/evaluationset/add/"
EVALUATE = "/admin/analysis/evaluation/add/"
ORDER = {
    "name": "first-head", "kind": "head", "base": "all-minilm-l6-v2", "labels": "prompt", "methods": "both",
    "size": "", "seed": "0", "precision": "float32", "validation_share": "0.2", "balanced": "on", "l2": "",
}  # fmt: skip
ASKED = {"labels": "prompt", "methods": "both", "size": "", "seed": "0"}
FILE = {"name": "weather", "text": "text", "label": "label", "positive": "1", "on_fault": "refuse"}


@pytest.fixture
def researcher(client):
    user = User.objects.create(username="ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client.force_login(user)
    return client


@pytest.fixture
def onlooker(client):
    """Somebody who may look at everything here, and do nothing."""
    user = User.objects.create(username="otto", is_staff=True)
    codenames = [f"view_{name}" for name in ("trainedclassifier", "evaluationset", "evaluation")]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    return client


def statements(each=20):
    """So many of each class and method."""
    for label in ("toxic", "benign"):
        for method in ("alice", "topk"):
            for number in range(each):
                make_generation(f"{label} {method} number {number} is about lakes", label=label, method=method)


def text_of(response):
    return " ".join(response.content.decode().split())


def page_of(row):
    return reverse(f"admin:analysis_{row._meta.model_name}_change", args=[row.pk])


def shown(client, row, query=""):
    response = client.get(page_of(row) + query)
    assert response.status_code == 200
    return text_of(response)


def test_the_form_orders_a_training_and_leads_to_its_page(researcher):
    statements()
    assert researcher.get(TRAIN).status_code == 200
    response = researcher.post(TRAIN, ORDER)
    ordered = TrainedClassifier.objects.get()
    assert (response.status_code, response["Location"]) == (302, page_of(ordered))
    assert (ordered.name, ordered.kind, ordered.created_by.username) == ("first-head", "head", "ada")
    assert ordered.parameters == {"l2": 1e-4, "balanced": True, "validation_share": 0.2}
    text = shown(researcher, ordered)
    assert "<strong>Queued</strong>: It waits for a worker." in text
    assert "every 2s" in text
    assert "Stop it for good" in text


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"name": "First Head"}, "A name has lower-case letters, digits and hyphens"),
        ({"name": "minilm-toxigen"}, "minilm-toxigen is a model that comes with the install. Choose another name."),
        ({"base": "GroNLP/hateBERT"}, "A head is trained on the embeddings of all-minilm-l6-v2"),
        ({"kind": "full", "base": "/nowhere/at/all"}, "There is no folder /nowhere/at/all."),
        ({"kind": "full", "base": "https://example.org"}, "a server&#x27;s model cannot be trained"),
        ({"precision": "bfloat16"}, "A head is trained in float32"),
        ({"size": "1"}, "Ensure this value is greater than or equal to 2."),
        ({"size": "7"}, "Choose an even"),
        ({"size": "400"}, "There are 80"),
        ({"labels": "human"}, "judged"),
        ({"validation_share": "0.9"}, "Ensure this value is less than or equal to 0.5."),
        ({"kind": "full", "learning_rate": "2"}, "Learning rate must be above 0, at most 1, not 2.0."),
        ({"kind": "full", "longest": "4"}, "Tokens at most must be"),
        ({"seed": "-1"}, "Ensure this value is greater than or equal to 0."),
    ],
)
def test_what_cannot_be_trained_is_said_in_a_sentence_and_nothing_is_ordered(researcher, changed, sentence):
    statements()
    response = researcher.post(TRAIN, ORDER | changed)
    assert response.status_code == 422
    assert sentence in text_of(response)
    assert not TrainedClassifier.objects.exists()


def test_what_is_filled_in_for_the_other_kind_is_ignored(researcher):
    statements()
    assert researcher.post(TRAIN, ORDER | {"epochs": "-3", "learning_rate": "much"}).status_code == 302


def test_a_name_is_given_once(researcher):
    statements()
    make_trained_classifier("first-head")
    assert "There is a classifier first-head already." in text_of(researcher.post(TRAIN, ORDER))


def test_the_form_previews_classes_and_methods_and_what_is_left_out(researcher):
    statements(each=12)
    for number in range(3):
        make_generation(f"one more of top-k, number {number}", label="toxic", method="topk")
    text = text_of(researcher.get(PREVIEW, ASKED))
    assert "48 statements" in text
    assert "<li>3 more than of the other method</li>" in text
    assert "No HUMANVAL set is drawn" in text
    alone = text_of(researcher.get(PREVIEW, ASKED | {"methods": "alice"}))
    assert '<th scope="row">Toxic</th><td class="number">12</td><td class="number">0</td>' in alone
    assert "as soon as the fields above are right" in text_of(researcher.get(PREVIEW, ASKED | {"size": "some"}))
    assert "as soon as the fields above are right" in text_of(researcher.get(PREVIEW))


def test_a_preview_says_what_humanval_keeps_away(researcher):
    frozen()
    text = text_of(researcher.get(PREVIEW, ASKED | {"methods": "topk"}))
    assert "<li>3 of a HUMANVAL set</li>" in text
    without_scripts = text_of(researcher.get(TRAIN, ASKED | {"methods": "topk", "preview": ""}))
    assert "<li>3 of a HUMANVAL set</li>" in without_scripts


def test_without_a_single_statement_the_preview_says_so(researcher):
    assert "0 statements" in text_of(researcher.get(PREVIEW, ASKED))
    assert '<p class="wrong">' in text_of(researcher.get(PREVIEW, ASKED))


# --- A classifier


def running(**fields):
    now = timezone.now()
    lease = {"started_at": now - timedelta(minutes=2), "lease_expires_at": now + timedelta(minutes=1)}
    classifier = make_trained_classifier(finished=False, **lease | {"step": 30, "steps": 120} | fields)
    for step, loss, auc in ((0, None, 0.5), (10, 0.6931, 0.71), (20, 0.5, 0.8)):
        LossPoint.objects.create(classifier=classifier, step=step, loss=loss, validation_loss=0.7, validation_auc=auc)
    return classifier


def trained(**fields):
    scores = {"before": {"loss": 0.71, "auc": 0.512}, "after": {"loss": 0.41, "auc": 0.843}}
    data = {"statements": 1200, "toxic": 640, "benign": 560, "left_out": {"of a HUMANVAL set": 792}}
    return make_trained_classifier(**{"scores": scores, "data": data, "notes": ["Batches were halved."]} | fields)


def test_a_running_training_shows_steps_time_left_and_its_curve(researcher):
    text = shown(researcher, running())
    assert "<strong>Running</strong>: It is being trained." in text
    assert "30 of 120 at most" in text
    assert "at most about 6 minutes" in text
    assert '<progress max="100" value="25"' in text
    assert 'data-chart="loss-chart"' in text
    assert '<td class="number">0.6931</td><td class="number">0.7000</td><td class="number">0.710</td>' in text
    assert "No worker is at it" not in text


def test_a_training_whose_worker_died_says_that_another_one_goes_on(researcher):
    assert "No worker is at it at the moment" in shown(researcher, running(lease_expires_at=None))


def test_the_part_that_renews_itself_has_the_whole_page_loaded_at_the_end(researcher):
    classifier = running()
    address = reverse("admin:analysis_training_progress", args=[classifier.pk])
    part = researcher.get(address, headers={"HX-Request": "true"})
    assert "every 2s" in text_of(part)
    assert "HX-Refresh" not in part
    TrainedClassifier.objects.update(finished_at=timezone.now(), lease_expires_at=None, failure="It was stopped.")
    assert researcher.get(address, headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    assert "It was stopped." in text_of(researcher.get(address))


def test_a_finished_one_shows_scores_data_notes_and_what_it_can_be_used_for(researcher):
    text = shown(researcher, trained(name="second"))
    assert 'Before training</th><td class="number">0.512</td>' in text
    assert 'After training</th><td class="number">0.843</td>' in text
    assert "<li>792 of a HUMANVAL set</li>" in text
    assert "Batches were halved." in text
    assert "<code>classifiers/second</code>" in text
    assert "?classifier=second&amp;method=alice" in text
    assert "every 2s" not in text
    assert str(folder_of("second")) not in text


def test_the_model_card_is_shown_without_anything_that_runs(researcher, settings, tmp_path):
    settings.VAR = tmp_path
    classifier = trained(name="third")
    folder_of("third").mkdir(parents=True)
    card = "---\nlicense: mit\n---\n# third\n\n| | AUC |\n|---|---|\n| after | 0.84 |\n\n<script>alert(1)</script>\n"
    (folder_of("third") / "README.md").write_text(card)
    text = shown(researcher, classifier)
    assert "<h3>third</h3>" in text
    assert "<td>0.84</td>" in text
    assert "license: mit" not in text
    assert "alert(1)" not in text
    (folder_of("third") / "README.md").unlink()
    assert "Model card" not in shown(researcher, classifier)


def test_a_training_is_stopped_once(researcher):
    classifier = running()
    stop = reverse("admin:analysis_training_stop", args=[classifier.pk])
    assert "is stopped" in text_of(researcher.post(stop, follow=True))
    classifier.refresh_from_db()
    assert classifier.state == "failed"
    assert AuditEntry.objects.filter(act="training stopped", by__username="ada").exists()
    assert "had ended before" in text_of(researcher.post(stop, follow=True))


def test_one_that_failed_goes_on_from_its_page(researcher):
    classifier = running(finished_at=timezone.now(), lease_expires_at=None, failure="No space left.")
    assert "Go on from the last checkpoint" in shown(researcher, classifier)
    resume = reverse("admin:analysis_training_resume", args=[classifier.pk])
    assert "waits for a worker" in text_of(researcher.post(resume, follow=True))
    classifier.refresh_from_db()
    assert classifier.state == "running"
    assert AuditEntry.objects.filter(act="training resumed", by__username="ada").exists()
    assert "has not failed" in text_of(researcher.post(resume, follow=True))
    orders.stop_training(classifier=classifier)
    assert "Try again" in shown(researcher, classifier)


def test_a_trained_one_scores_what_it_has_not_scored_yet(researcher):
    statements(each=2)
    score = reverse("admin:analysis_training_score", args=[trained(name="fourth").pk])
    response = researcher.post(score)
    reading = Reading.objects.get()
    assert response["Location"] == reverse("admin:generation_reading_change", args=[reading.pk])
    assert (reading.kind, reading.model, reading.statements) == ("classifier", "fourth", 8)
    assert (reading.about, reading.created_by.username) == ("all statements", "ada")


def test_what_is_not_trained_or_has_nothing_to_score_starts_no_reading(researcher):
    for classifier, sentence in ((running(), "its training goes on"), (trained(), "There are no such statements.")):
        score = reverse("admin:analysis_training_score", args=[classifier.pk])
        assert sentence in text_of(researcher.post(score, follow=True))
    assert not Reading.objects.exists()


def test_another_one_like_it_is_ordered_from_a_form_filled_in(researcher):
    classifier = trained(kind="full", seed=7, size=100, parameters={"epochs": 5, "class_weights": False})
    text = shown(researcher, classifier)
    [address] = re.findall(r'href="(/admin/analysis/trainedclassifier/add/[^"]*)">Train another', text)
    form = researcher.get(unescape(address)).context["form"]
    assert [form[name].value() for name in ("kind", "seed", "size", "epochs")] == ["full", "7", "100", "5"]
    assert not form["class_weights"].value()
    assert not form["name"].value()


# --- Evaluations


def test_a_trained_classifier_is_evaluated_on_several_sets_at_once(researcher):
    classifier, humanval_set, from_file = trained(name="fifth"), frozen(), make_evaluation_set()
    text = shown(researcher, classifier)
    assert 'type="hidden" name="model" value="fifth"' in text
    keys = [f"humanvalset-{humanval_set.pk}", f"evaluationset-{from_file.pk}"]
    assert all(key in text for key in keys)
    response = researcher.post(EVALUATE, {"model": "fifth", "precision": "float32", "test_sets": keys})
    assert response["Location"] == page_of(classifier)
    assert {evaluation.test_set for evaluation in Evaluation.objects.all()} == {humanval_set, from_file}
    assert "0 of 4" in shown(researcher, classifier)
    address = reverse("admin:analysis_training_evaluations", args=[classifier.pk])
    assert address in shown(researcher, classifier)
    Evaluation.objects.update(finished_at=timezone.now(), failure="It does not fit.")
    part = text_of(researcher.get(address))
    assert "failed" in part
    assert "every 2s" not in part


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"model": ""}, "This field is required."),
        ({"model": "no-such-classifier"}, "There is no classifier"),
        ({"model": "http://localhost:8080"}, "is the address of a server"),
        ({"model": "unfinished"}, "its training has not ended"),
        ({"test_sets": []}, "Choose at least one test set."),
        ({"test_sets": ["evaluationset-0"]}, "Select a valid choice."),
        ({"precision": "float8"}, "Select a valid choice."),
    ],
)
def test_what_cannot_be_evaluated_is_said_and_nothing_is_started(researcher, changed, sentence):
    make_trained_classifier("unfinished", finished=False)
    key = f"evaluationset-{make_evaluation_set().pk}"
    response = researcher.post(EVALUATE, {"model": "unread", "precision": "float32", "test_sets": [key]} | changed)
    assert response.status_code == 422
    assert sentence in text_of(response)
    assert not Evaluation.objects.exists()


def test_an_evaluation_shows_its_state_and_then_its_figures(researcher):
    test_set = make_evaluation_set((True, "a", "plain"), (False, "a", "plain"), (True, "b", "negated"), (False, "b"))
    waiting = make_evaluation(test_set)
    assert "<strong>Queued</strong>: It waits for a worker." in shown(researcher, waiting)
    text = shown(researcher, make_evaluation(test_set, [0.9, 0.2, 0.4, 0.1]))
    assert "<dt>AUC</dt><dd>1.000</dd>" in text
    assert "<dt>Accuracy</dt><dd>75.0 %</dd>" in text
    assert 'negated</th><td class="number">0.0 %</td><td class="number">1</td>' in text
    ended = make_evaluation(failure="It does not fit.", finished_at=timezone.now())
    assert "It does not fit." in shown(researcher, ended)


def test_an_evaluation_says_how_many_texts_have_no_score(researcher):
    evaluation = make_evaluation(probs=[0.9, 0.2, 0.4, 0.1])
    assert "no score" not in shown(researcher, evaluation)
    EvaluationScore.objects.filter(toxic_prob=0.2).delete()
    assert "Of 3 texts, 2 of them toxic; 1 that has no score is left out." in shown(researcher, evaluation)


def test_an_evaluation_is_stopped_once(researcher):
    stop = reverse("admin:analysis_evaluating_stop", args=[make_evaluation().pk])
    assert "is stopped" in text_of(researcher.post(stop, follow=True))
    assert "had ended before" in text_of(researcher.post(stop, follow=True))


# --- Test sets


def upload(client, content=b"text,label\nthe lake is calm,0\nthe lake is vile,1\n", **changed):
    return client.post(UPLOAD, FILE | {"file": SimpleUploadedFile("weather.csv", content)} | changed)


def test_a_file_becomes_a_test_set_and_its_texts_are_blurred(researcher):
    response = upload(researcher)
    test_set = EvaluationSet.objects.get()
    assert response["Location"] == page_of(test_set)
    assert (test_set.name, test_set.texts_count, test_set.toxic_count) == ("weather", 2, 1)
    text = shown(researcher, test_set)
    assert re.search(r'<span class="blurred" tabindex="0" title="[^"]+">the lake is vile</span>', text)
    assert text.count("the lake is vile") == 1
    assert "Every row of the file is in it." in text
    assert "There is no evaluation yet." in text


def test_rows_are_chosen_and_labels_bounded(researcher):
    content = b"words,score,split\nthe lake is calm,0.2,test\nthe lake is vile,0.9,test\nthe sea is vile,0.9,train\n"
    upload(researcher, content, text="words", label="score", positive="", above="0.5", where="split=test")
    test_set = EvaluationSet.objects.get()
    assert (test_set.texts_count, test_set.toxic_count) == (2, 1)
    assert "<li>1 not chosen by the conditions</li>" in shown(researcher, test_set)
    assert "split: test" in shown(researcher, test_set)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"text": "sentence"}, "weather.csv lacks the column sentence. It has: text, label."),
        ({"positive": "hateful"}, "hateful"),
        ({"positive": ""}, "Say which labels mean toxic"),
        ({"above": "0.5"}, "one of the two"),
        ({"where": "test"}, "“test” is no condition. Write COLUMN=VALUE, such as split=test."),
        ({"where": "split=test"}, "lacks the column split"),
        ({"name": "My set"}, "A name has lower-case letters, digits and hyphens"),
        ({"name": "humanval-1"}, "Give another name."),
        ({"encoding": "klingon"}, "klingon"),
        ({"file": ""}, "This field is required."),
    ],
)
def test_a_wrong_file_is_told_of_in_a_sentence_and_nothing_is_stored(researcher, changed, sentence):
    response = upload(researcher, **changed)
    assert response.status_code == 422
    assert sentence in text_of(response)
    assert not EvaluationSet.objects.exists()
    assert not EvaluationText.objects.exists()


def test_what_is_no_table_and_what_has_faults_stores_nothing(researcher):
    assert upload(researcher, b"\x00\xff\xfe nothing of a table").status_code == 422
    faulty = b"text,label\nthe lake is calm,low\nthe lake is vile,0.9\n"
    response = upload(researcher, faulty, positive="", above="0.5")
    assert response.status_code == 422
    assert "What is wrong with rows" in text_of(response)
    assert not EvaluationSet.objects.exists()


def test_the_same_file_a_second_time_leads_to_the_set_that_is_there(researcher):
    upload(researcher)
    there = EvaluationSet.objects.get()
    assert "this file was there already" in text_of(researcher.get(upload(researcher)["Location"]))
    assert EvaluationSet.objects.get() == there


def test_texts_are_turned_over_by_their_rows(researcher):
    test_set = make_evaluation_set(*[(number % 2 == 0, "") for number in range(60)])
    text = shown(researcher, test_set)
    assert "text 25 of the file" in text
    assert "text 26 of the file" not in text
    assert "?from=26#texts-heading" in text
    assert "text 60 of the file" in shown(researcher, test_set, "?from=51")
    assert "There is no further text." in shown(researcher, test_set, "?from=99999999999999999999")
    assert "text 1 of the file" in shown(researcher, test_set, "?from=moon")


# --- Who may, and how much it costs


def test_who_may_only_look_orders_uploads_and_stops_nothing(onlooker):
    classifier, test_set, evaluation = running(), make_evaluation_set(), make_evaluation()
    finished = trained(name="sixth")
    assert "Stop" not in shown(onlooker, classifier)
    for words in ("Score the whole dataset", "adversary", "Evaluate on these", "Train another"):
        assert words not in shown(onlooker, finished)
    assert "Evaluate on this set" not in shown(onlooker, test_set)
    assert "Stop" not in shown(onlooker, evaluation)
    failed = running(finished_at=timezone.now(), lease_expires_at=None, failure="No space left.")
    assert "Go on" not in shown(onlooker, failed)
    acts = (
        ("training_stop", classifier), ("training_resume", failed), ("training_score", finished),
        ("evaluating_stop", evaluation),
    )  # fmt: skip
    for name, row in acts:
        assert onlooker.post(reverse(f"admin:analysis_{name}", args=[row.pk])).status_code == 403
    for address in (TRAIN, UPLOAD, EVALUATE, PREVIEW):
        assert onlooker.get(address).status_code == 403
    assert onlooker.post(UPLOAD, FILE).status_code == 403
    assert onlooker.post(page_of(classifier)).status_code == 403


def test_who_may_see_nothing_gets_nothing(client):
    client.force_login(User.objects.create(username="eve", is_staff=True))
    for row in (running(), make_evaluation_set(), make_evaluation()):
        assert client.get(page_of(row)).status_code == 403


@pytest.mark.parametrize("number", ["0", "999999", "99999999999999999999", "moon"])
@pytest.mark.parametrize("model", ["trainedclassifier", "evaluationset", "evaluation"])
def test_what_is_not_there_is_not_found(researcher, model, number):
    assert researcher.get(f"/admin/analysis/{model}/{number}/change/").status_code == 404


def queries_of(client, address):
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return len(queries)


def test_every_page_takes_the_same_number_of_queries_with_little_and_with_much(researcher):
    classifier, test_set = trained(name="seventh"), make_evaluation_set()
    evaluation = make_evaluation(test_set, [0.1, 0.2, 0.3, 0.4], model="seventh")
    pages = [
        "/admin/analysis/trainedclassifier/", "/admin/analysis/evaluationset/", "/admin/analysis/evaluation/",
        TRAIN, UPLOAD, EVALUATE, page_of(classifier), page_of(test_set), page_of(evaluation),
        reverse("admin:analysis_training_evaluations", args=[classifier.pk]),
        reverse("admin:analysis_test_set_evaluations", args=[test_set.pk]),
        reverse("admin:analysis_training_progress", args=[classifier.pk]),
    ]  # fmt: skip
    for address in pages:
        queries_of(researcher, address)  # what is remembered from the first time is remembered
    few = {address: queries_of(researcher, address) for address in pages}
    frozen()
    for number in range(12):
        trained()
        make_evaluation(make_evaluation_set(), [0.1, 0.2, 0.3, 0.4], model=f"another-{number}")
        make_evaluation(test_set, model=f"classifier-of-{number}")
        LossPoint.objects.create(classifier=classifier, step=number, validation_loss=0.5, validation_auc=0.5)
    assert {address: queries_of(researcher, address) for address in pages} == few
    assert max(few.values()) <= 14
