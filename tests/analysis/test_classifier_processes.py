"""A real worker that is killed in the middle of a training: the next one comes to the same weights."""

import hashlib
import signal

import pytest

from analysis.classifiers import orders
from analysis.models import TrainedClassifier
from tests.analysis.training_world import save_tiny, store_statements
from tests.generation.test_working_with_processes import Surroundings, ended_with_the_test

pytestmark = pytest.mark.django_db(transaction=True)

LONG = {"epochs": 20, "batch_size": 4, "learning_rate": 0.001, "evaluations_an_epoch": 2, "patience": 1000}


class Trainers(Surroundings):
    def wake(self, classifier) -> None:
        self.queue.send_task(orders.TRAIN, [classifier.pk], queue="generation", expires=10)


def order(name, base):
    return orders.start_training(name=name, kind="full", base=base, parameters=LONG, wake=False)


def weights_in(folder):
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def test_a_worker_killed_in_the_middle_of_a_training_and_started_again_ends_with_the_same_weights(tmp_path):
    store_statements(20)
    base = save_tiny(tmp_path / "tiny")
    with ended_with_the_test(Trainers(tmp_path / "state")) as surroundings:
        killed = order("killed", base)
        worker = surroundings.start_worker()
        checkpoint = tmp_path / "state" / "classifiers" / ".training" / "killed" / "state.pt"
        surroundings.wait_until(lambda: checkpoint.exists() and killed.curve.count() > 3, run=killed)
        surroundings.kill(worker)
        assert worker.returncode == -signal.SIGKILL
        killed.refresh_from_db()
        assert killed.state == "running"
        assert killed.curve.count() < 2 * LONG["epochs"]
        assert not (tmp_path / "state" / "classifiers" / "killed").exists()

        surroundings.start_worker()
        surroundings.wait_until(lambda: not TrainedClassifier.objects.unended().exists(), run=killed)
        undisturbed = order("undisturbed", base)
        surroundings.wait_until(lambda: not TrainedClassifier.objects.unended().exists(), run=undisturbed)
    for classifier in (killed, undisturbed):
        classifier.refresh_from_db()
        assert (classifier.state, classifier.failure) == ("finished", "")
    folders = [tmp_path / "state" / "classifiers" / name for name in ("killed", "undisturbed")]
    assert weights_in(folders[0]) == weights_in(folders[1])
    columns = ("step", "loss", "validation_loss", "validation_auc")
    assert list(killed.curve.values_list(*columns)) == list(undisturbed.curve.values_list(*columns))
    assert not checkpoint.exists()
