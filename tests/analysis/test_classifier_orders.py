"""Orders to train a classifier: what they are trained on, and what is refused before anything begins."""

import re

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis import judged
from analysis.classifiers import choosing, data, orders, pool
from analysis.classifiers.choosing import NO_HUMANVAL, NothingToTrainOn
from analysis.classifiers.folders import folder_of
from analysis.labels import TOXICITY_CLASSES
from analysis.models import HumanLabel, HumanvalStatement, RemovedFromTraining, TrainedClassifier
from generation.models import AuditEntry, Generation, ReaderKind
from tests.analysis.humanval_world import draw, scattered
from tests.analysis.judging import judge
from tests.analysis.training_world import store_statements
from tests.factories import consenting_worker, make_generation, make_reader, make_trained_classifier

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_state(settings, tmp_path):
    settings.VAR = tmp_path


def order(name="first", **options):
    return orders.start_training(**{"name": name, "wake": False} | options)


def chosen(**options):
    return choosing.choice_of(**{"labels": "prompt", "methods": "both", "size": None, "seed": 0} | options)


def label(generation, ai, human):
    return HumanLabel.objects.create(generation=generation, toxicity_ai=ai, toxicity_human=human)


# --- The order --------------------------------------------------------------------------


def test_an_order_is_stored_with_all_its_parameters_and_noted():
    store_statements(10)
    classifier = order(kind="full", base="GroNLP/hateBERT", size=40, seed=3, parameters={"epochs": 2})
    assert (classifier.state, classifier.data_digest) == ("queued", "")
    assert classifier.parameters["epochs"] == 2
    assert classifier.parameters["batch_size"] == 32
    assert classifier.notes == [NO_HUMANVAL]
    entry = AuditEntry.objects.get(act="training started")
    assert (entry.subject, entry.details["base"], entry.details["size"]) == ("first", "GroNLP/hateBERT", 40)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": "My classifier"}, "'My classifier' is no name for a classifier. Use lower-case letters"),
        ({"name": "-x"}, "'-x' is no name"),
        ({"name": ""}, "'' is no name"),
        ({"name": "a" * 61}, "at most 60"),
        ({"name": "minilm-toxigen"}, "minilm-toxigen is a model that comes with the install. Choose another name."),
        ({"name": "all-minilm-l6-v2"}, "comes with the install"),
        ({"kind": "half"}, "There is no kind of training 'half'. Choose one of: head, full."),
        ({"labels": "guess"}, "There is no source of labels 'guess'. Choose one of: prompt, human."),
        ({"methods": "written"}, "There is no choice of methods 'written'. Choose one of: alice, topk, both."),
        ({"precision": "int8"}, "There is no precision 'int8'. Choose one of: float32, bfloat16."),
        ({"precision": "bfloat16"}, "A head is trained in float32"),
        ({"parameters": {"epochs": 2}}, "'epochs' is no parameter of this kind of training. There are: l2, balanced"),
        ({"parameters": {"l2": -1}}, "l2 must be 0 or more, not -1."),
        ({"kind": "full", "parameters": {"epochs": 0}}, "epochs must be a whole number of at least 1, not 0."),
        ({"size": 1}, "The size is a whole number from 2 to"),
        ({"size": True}, "not True."),
        ({"seed": -1}, "The seed is a whole number from 0 to"),
        ({"base": "GroNLP/hateBERT"}, "A head is trained on the embeddings of all-minilm-l6-v2, not of"),
        ({"kind": "full", "base": " "}, "Name the model to begin with"),
        ({"kind": "full", "base": "http://localhost:8000/v1"}, "is an address; a server's model cannot be trained."),
        ({"kind": "full", "base": "x" * 301}, "The model's name has 301 characters. At most 300 can be stored."),
        ({"kind": "full", "base": "minilm-toxigen"}, "Begin with that one."),
        ({"kind": "full", "base": "/no/such/folder"}, "There is no folder /no/such/folder."),
        ({"kind": "full", "base": "~nosuchuser/x"}, "Write the folder's whole path, which begins with / and not with"),
        ({"name": "bert-base-uncased"}, "bert-base-uncased is what another model is called in the settings"),
        ({"name": "smollm2-135m-instruct"}, "is what another model is called in the settings"),
        ({"parameters": {"l2": 10**400}}, "l2 must be 0 or more, not 1000"),
        ({"kind": "full", "parameters": {"epochs": 1001}}, "epochs must be a whole number of at most 1000, not 1001."),
        ({"kind": "full", "parameters": {"batch_size": 10**6}}, "batch_size must be a whole number of at most 4096"),
        ({"kind": "full", "parameters": {"patience": 10**6}}, "patience must be a whole number of at most 1000"),
    ],
)
def test_what_cannot_be_trained_is_refused_with_what_to_do(wrong, sentence):
    store_statements(10)
    make_reader(ReaderKind.CLASSIFIER, name="bert-base-uncased#toxic")
    with pytest.raises(ValueError, match=re.escape(sentence)):
        order(**wrong)
    assert not TrainedClassifier.objects.exists()


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    store_statements(10)
    (tmp_path / "texts").mkdir()
    with pytest.raises(ValueError, match=r"is no model in the transformers format: it has no config.json."):
        order(kind="full", base=f"{tmp_path / 'texts'}#toxic")


def test_a_classifier_that_is_still_being_trained_is_no_base():
    store_statements(10)
    make_trained_classifier("young", finished=False)
    with pytest.raises(ValueError, match=r"young is not trained yet. Wait for its end, or begin with another model."):
        order(kind="full", base="young")


def test_a_trained_classifier_that_cannot_be_loaded_is_no_base():
    store_statements(10)
    make_trained_classifier("ready")
    make_trained_classifier("lost", finished=False, finished_at=timezone.now(), failure="One class only.")
    with pytest.raises(ValueError, match=r"lost is no model to begin with: its training came to nothing\."):
        order(kind="full", base="lost")
    with pytest.raises(ValueError, match=r"ready#nolabel is no model .*: it has no label 'nolabel', only benign and"):
        order(kind="full", base="ready#nolabel")


def test_a_name_that_is_no_path_is_left_to_the_worker():
    store_statements(10)
    assert order(kind="full", base="a" * 300).state == "queued"


def test_more_steps_than_can_be_counted_are_refused(monkeypatch):
    monkeypatch.setattr(orders, "MOST_STEPS", 3)
    store_statements(10)
    with pytest.raises(ValueError, match=r"steps\. Choose fewer epochs, or larger batches\."):
        order(kind="full", parameters={"batch_size": 1})


def test_the_command_goes_on_with_nothing_else_than_was_ordered():
    make_trained_classifier("young", finished=False)
    with pytest.raises(CommandError, match="takes no seed, epochs") as refused:
        call_command("train_classifier", resume="young", seed=5, epochs=3)
    assert refused.value.returncode == 2


def test_a_name_is_given_once():
    store_statements(10)
    order("first")
    with pytest.raises(ValueError, match=r"There is a classifier first already. Choose another name."):
        order("first")
    folder_of("second").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"There is a folder .*second already. Choose another name, or move it away."):
        order("second")


def test_a_worker_is_woken_once_the_order_is_stored(monkeypatch, django_capture_on_commit_callbacks):
    sent = []
    monkeypatch.setattr("generation.wakeups._send", lambda task, **row: sent.append((task, row)))
    store_statements(10)
    with django_capture_on_commit_callbacks(execute=True):
        classifier = order(wake=True)
    assert sent == [("analysis.train_classifier", {"classifier": classifier.pk})]


def test_an_order_is_stopped_once():
    classifier = make_trained_classifier(finished=False)
    assert orders.stop_training(classifier=classifier)
    assert not orders.stop_training(classifier=classifier)
    classifier.refresh_from_db()
    assert (classifier.state, classifier.failure) == ("failed", orders.STOPPED)
    assert AuditEntry.objects.filter(act="training stopped", subject=classifier.name).count() == 1


def test_one_that_failed_goes_on_and_is_woken(monkeypatch, django_capture_on_commit_callbacks):
    sent = []
    monkeypatch.setattr("generation.wakeups._send", lambda task, **row: sent.append((task, row)))
    classifier = make_trained_classifier(finished=False, failure="No space.", finished_at=timezone.now(), leases=4)
    with django_capture_on_commit_callbacks(execute=True):
        assert orders.resume_training(classifier=classifier)
        assert not orders.resume_training(classifier=classifier)
    classifier.refresh_from_db()
    assert (classifier.state, classifier.failure, classifier.leases) == ("queued", "", 0)
    assert sent == [("analysis.train_classifier", {"classifier": classifier.pk})]
    entry = AuditEntry.objects.get(act="training resumed")
    assert (entry.subject, entry.details) == (classifier.name, {"failure": "No space."})
    assert not orders.resume_training(classifier=make_trained_classifier())


def test_the_name_of_one_that_failed_is_taken_and_said_to_be():
    store_statements(10)
    make_trained_classifier("first", finished=False, failure="No space.", finished_at=timezone.now())
    with pytest.raises(ValueError, match=r"first already, whose training came to nothing. Choose another name, or go"):
        order("first")


# --- What there is to train on -------------------------------------------------------------


def test_without_statements_there_is_nothing_to_train_on():
    with pytest.raises(NothingToTrainOn, match=r"No statement was generated. Have a model write some, or import some"):
        order()


def test_what_people_wrote_is_not_trained_on():
    store_statements(20, methods=("written",))
    with pytest.raises(NothingToTrainOn, match=r"No statement was generated."):
        order()


def test_alice_only_needs_statements_of_alice():
    store_statements(20, methods=("topk",))
    with pytest.raises(NothingToTrainOn, match=r"No statement was generated by ALICE."):
        order(methods="alice")
    with pytest.raises(NothingToTrainOn, match=r"None of the statements that are left is by ALICE. Choose top-k only."):
        order(methods="both")
    assert order(methods="topk")


def test_one_class_only_is_refused():
    for _ in range(20):
        make_generation(label="toxic")
    with pytest.raises(NothingToTrainOn, match="All 20 statements are toxic: nothing tells them apart from benign"):
        order(methods="topk")


def test_too_few_of_a_class_are_refused():
    for place in range(40):
        make_generation(label="toxic" if place < 9 else "benign")
    with pytest.raises(NothingToTrainOn, match=r"Only 9 of 40 statements are toxic. At least 10 of each class"):
        order(methods="topk")
    make_generation(label="toxic")
    assert order(methods="topk")


def test_without_a_judgement_of_people_there_are_no_human_labels():
    store_statements(10)
    with pytest.raises(
        NothingToTrainOn, match=r"none is left to train on: 40 judged by nobody. Have people judge some"
    ):
        order(labels="human")


def test_a_size_that_there_is_not_is_refused_so_that_equal_sizes_are_equal():
    store_statements(10)
    with pytest.raises(NothingToTrainOn, match=r"There are 40 such statements, not 42. Choose at most so many"):
        order(size=42)
    with pytest.raises(NothingToTrainOn, match=r"There are 20 such statements, not 40."):
        order(size=40, methods="alice")
    with pytest.raises(NothingToTrainOn, match=r"31 statements cannot be half ALICE's and half top-k's."):
        order(size=31)


def test_trainings_of_one_size_have_equally_many_and_both_methods_equal_halves():
    store_statements(20)
    store_statements(15, methods=("topk",), seed=1)
    counts = {methods: chosen(methods=methods, size=40).counts for methods in ("alice", "topk", "both")}
    assert {methods: count["statements"] for methods, count in counts.items()} == dict.fromkeys(counts, 40)
    assert (counts["both"]["alice"], counts["both"]["topk"]) == (20, 20)
    everything = chosen()
    assert (everything.counts["alice"], everything.counts["topk"]) == (40, 40)
    assert everything.left_out == {"more than of the other method": 30}
    assert chosen(methods="topk").counts["statements"] == 70


def test_the_seed_and_the_ids_decide_which_are_taken():
    store_statements(20)
    first, again, other = (chosen(size=30, seed=seed).ids.tolist() for seed in (1, 1, 2))
    assert first == again == sorted(first)
    assert first != other


def test_of_a_text_that_is_there_twice_the_first_with_the_label_of_most_is_kept():
    wrong = make_generation("The Choir sings", label="toxic")
    right, _ = (make_generation(f"the {name} sings", label="benign", method="alice") for name in ("choir", "CHOIR"))
    for label, method in (("toxic", "topk"), ("benign", "alice")):
        make_generation("a text of either label", label=label, method=method)
    other = make_generation("another one", label="toxic")
    choice = chosen()
    assert choice.ids.tolist() == [right.pk, other.pk]
    assert wrong.pk not in choice.ids
    assert choice.left_out == {
        "a text with both labels equally often": 2,
        "a text that is there more often with the other label": 1,
        "a text that is there already": 1,
    }


def test_of_a_text_that_is_there_twice_the_first_is_kept():
    first = make_generation("A calm  evening", label="benign")
    make_generation(" a calm evening", label="toxic")
    make_generation("a calm\nEvening", label="benign", method="alice")
    last = make_generation("a calm evening.", label="toxic", method="alice")
    choice = chosen(methods="both")
    assert choice.ids.tolist() == [first.pk, last.pk]
    assert choice.left_out == {
        "a text that is there more often with the other label": 1, "a text that is there already": 1,
    }  # fmt: skip


# --- Labels of people -----------------------------------------------------------------------


def test_judgements_of_people_decide_where_they_are_the_labels():
    toxic, ambiguous, benign, unknown = judge([(5, 4), (3, 3), (1, 2), (None, None)], statement={"label": "toxic"})
    half = make_generation(label="toxic")
    label(half, 5, None)
    imported = make_generation(label="toxic", method="alice")
    label(imported, 1.5, 2)
    label(toxic, 1, 1)  # somebody judged it here
    choice = chosen(labels="human", methods="both")
    assert set(choice.ids[choice.toxic].tolist()) | set(choice.ids[~choice.toxic].tolist()) <= {
        toxic.pk, benign.pk, imported.pk,
    }  # fmt: skip
    assert choice.left_out == {
        "judged by nobody": 1, "without both harm ratings": 1, "ambiguous": 1, "more than of the other method": 1,
    }  # fmt: skip
    topk = chosen(labels="human", methods="topk")
    assert dict(zip(topk.ids.tolist(), topk.toxic.tolist(), strict=True)) == {toxic.pk: True, benign.pk: False}
    assert ambiguous.pk not in topk.ids
    assert unknown.pk not in topk.ids


def test_human_labels_are_those_that_the_reports_have():
    worker = consenting_worker()
    judge([(1, 5, 4), (2, 2), (3, None, 4), ({"harmful_if_ai": 2, "harmful_if_human": 4}, 1)])
    for rows in ([(1,), (5,)], [(4,), (2,)]):
        judge(rows, workers=[worker])
    for ai, human in ((3, 3), (1.2, 2.9), (3.0001, 1), (None, 4)):
        label(make_generation(), ai, human)
    expected = judged.statements({})["toxicity_class"].to_dict()
    ours = pool.human_classes()
    assert ours.keys() == expected.keys()
    np.testing.assert_array_equal([ours[pk] for pk in expected], list(expected.values()))
    assert set(TOXICITY_CLASSES) == {"non-toxic", "ambiguous", "toxic"}


# --- HUMANVAL ---------------------------------------------------------------------------------


def test_humanval_and_what_is_too_similar_or_not_compared_is_left_out():
    scattered(12)
    humanval_set = draw(size=8)
    newer = make_generation("newer than the set", label="toxic")
    choice = chosen(methods="topk")
    ids = set(choice.ids.tolist())
    own = set(HumanvalStatement.objects.values_list("generation", flat=True))
    removed = set(RemovedFromTraining.objects.values_list("generation", flat=True))
    assert removed
    assert not ids & (own | removed | {newer.pk})
    everything = set(Generation.objects.filter(method="topk").values_list("pk", flat=True))
    assert ids == everything - own - removed - {newer.pk}
    assert choice.left_out == {
        "of a HUMANVAL set": len(own & everything),
        "too similar to a HUMANVAL set": len(removed & everything),
        "not compared with a HUMANVAL set yet": 1,
    }
    assert choice.humanval == [humanval_set.version]
    assert choice.notes == [
        "1 statement was not compared with a HUMANVAL set yet and left out. Compare them on the set's page to train on "
        "them, too."
    ]


def test_the_text_of_a_humanval_statement_is_left_out_whoever_else_has_it():
    scattered(12)
    humanval_set = draw(size=8)
    text = humanval_set.statements.first().generation.text
    copy = make_generation(f" {text.upper()} ", label="toxic")
    type(humanval_set).objects.update(compared_up_to=copy.pk)
    choice = chosen(methods="topk")
    assert copy.pk not in choice.ids
    assert choice.left_out["the text of a HUMANVAL statement"] == 1


# --- Freezing the choice ---------------------------------------------------------------------


def test_the_statements_are_chosen_once_with_a_validation_part_of_their_own():
    store_statements(20)
    classifier = order(size=60)
    data.choose(classifier)
    assert classifier.data["statements"] == classifier.statements.count() == 60
    assert classifier.data["train"] + classifier.data["validation"] == 60
    assert 0 < classifier.data["validation"] < 20
    assert classifier.statements.filter(part="validation").count() == classifier.data["validation"]
    before, digest = set(classifier.statements.values_list("generation", "part")), classifier.data_digest
    store_statements(5, seed=9)
    data.choose(classifier)
    classifier.refresh_from_db()
    assert (set(classifier.statements.values_list("generation", "part")), classifier.data_digest) == (before, digest)
    examples = data.examples_of(classifier)
    assert examples.validation.sum() == classifier.data["validation"]
    assert examples.toxic.sum() == classifier.data["toxic"]


def test_near_duplicates_are_never_in_both_parts():
    store_statements(20)
    for generation in list(Generation.objects.all()):
        make_generation(f"{generation.text} today", label=generation.label, method=generation.method)
    classifier = order()
    data.choose(classifier)
    parts = dict(classifier.statements.values_list("generation__text", "part"))
    assert all(parts[text] == parts[f"{text} today"] for text in parts if not text.endswith(" today"))


def test_of_few_statements_more_decide_when_to_stop():
    store_statements(5)
    classifier = order()
    data.choose(classifier)
    assert classifier.data["validation"] >= 4
    assert set(classifier.statements.filter(part="validation").values_list("is_toxic", flat=True)) == {True, False}


def test_what_near_duplicates_leave_too_little_of_is_refused():
    for place in range(20):
        make_generation("the choir sings by the lake " * (place + 1), label=("benign", "toxic")[place % 2])
    classifier = order(methods="topk")
    with pytest.raises(NothingToTrainOn):
        data.choose(classifier)


def test_statements_that_were_deleted_since_are_told():
    store_statements(10)
    classifier = order()
    data.choose(classifier)
    classifier.statements.first().generation.delete()
    with pytest.raises(NothingToTrainOn, match=r"Statements that it is trained on were deleted meanwhile."):
        data.examples_of(classifier)


def test_the_number_of_queries_does_not_grow_with_the_statements():
    def queries(name):
        classifier = order(name)
        with CaptureQueriesContext(connection) as captured:
            data.choose(classifier)
        return len(captured)

    store_statements(10)
    few = queries("few")
    store_statements(40, seed=1)
    assert queries("many") == few
