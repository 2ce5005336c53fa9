"""Fine-tuning: it learns, and a killed and resumed one ends with the very same weights."""

import itertools
import os
from functools import partial

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from analysis.training import batches, checkpoints, saving
from analysis.training.examples import Examples
from analysis.training.outcomes import OtherTraining, Paused
from analysis.training.parameters import FineTuningParameters
from generation import classifiers, heads
from tests.analysis import weather
from tests.analysis.fine_tuning import CPU, Killed, assert_same, train_from

STEPS = 18


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return weather.save_bert(tmp_path_factory.mktemp("base"), body_only=True)


@pytest.fixture
def train(folder, tmp_path):
    """``train()`` fine-tunes the small model anew, or on from the checkpoint."""
    return partial(train_from, folder, tmp_path / "checkpoint")


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory):
    """What comes of it when nothing comes between."""
    return train_from(folder, tmp_path_factory.mktemp("whole"))


def test_it_learns_the_rule_and_keeps_the_best_weights(train, tmp_path):
    points, steps = [], []
    trained = train(on_point=points.append, on_step=lambda *step: steps.append(step))
    assert 0.2 < trained.before.auc < 0.8
    assert trained.after.auc > 0.95
    assert [point.step for point in points] == [0, 3, 6, 9, 12, 15, 18][: len(points)]
    assert points[0].loss is None
    assert points[-1].loss < points[1].loss
    assert steps == [(step, STEPS) for step in range(1, trained.steps + 1)]
    best = max(points, key=lambda point: (point.validation_auc, -point.validation_loss))
    assert (trained.best_step, trained.after.auc, trained.after.loss) == (
        best.step,
        best.validation_auc,
        best.validation_loss,
    )
    assert trained.curve == tuple(points)


def test_what_is_saved_is_read_by_transformers_alone_and_by_the_workbench(whole, tmp_path):
    saving.save(whole, tmp_path / "weather", card="# weather\n")
    saving.save(whole, tmp_path / "weather", card="# weather, again\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["weather"]
    assert (tmp_path / "weather" / "README.md").read_text() == "# weather, again\n"
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "weather").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "weather")
    assert model.config.id2label == {0: "benign", 1: "toxic"}
    assert model.config.problem_type == "single_label_classification"
    assert str(tmp_path) not in (tmp_path / "weather" / "config.json").read_text()
    data = weather.examples()
    with torch.inference_mode():
        logits = model(**tokenizer(list(data.texts), padding=True, return_tensors="pt")).logits
    classifier = classifiers.load.__wrapped__(str(tmp_path / "weather"), device=CPU)
    probs = classifier.log_probs(data.texts)
    assert classifier.toxic == 1
    assert torch.allclose(probs, logits.log_softmax(-1), atol=1e-5)
    assert heads.auc(probs[data.validation, 1], torch.tensor(data.toxic[data.validation])) == whole.after.auc


@pytest.mark.parametrize("steps", [1, 4, 6, 7, 17])
def test_a_killed_training_goes_on_to_the_same_weights(train, whole, steps):

    def kill(step, _):
        if step == steps:
            raise Killed

    points = []
    with pytest.raises(Killed):
        train(on_step=kill)
    assert_same(train(on_point=points.append), whole)
    assert tuple(points) == whole.curve


def test_a_training_that_pauses_every_few_steps_ends_with_the_same_weights(train, whole):
    asked, pauses = itertools.count(1), 0
    while True:
        try:
            trained = train(should_pause=lambda: next(asked) % 4 == 0)
            break
        except Paused:
            pauses += 1
    assert pauses == (whole.steps - 1) // 4
    assert_same(trained, whole)


def test_whoever_is_killed_while_writing_a_checkpoint_leaves_the_one_before(train, whole, tmp_path):
    with pytest.raises(Paused):
        train(should_pause=lambda: True)
    (tmp_path / "checkpoint" / checkpoints.UNFINISHED).write_bytes(b"half of a che")
    assert_same(train(), whole)
    assert os.listdir(tmp_path / "checkpoint") == [checkpoints.FILE]


def test_random_numbers_drawn_meanwhile_change_nothing_and_are_not_changed(train, whole):
    torch.manual_seed(77)
    expected = torch.rand(3)
    torch.manual_seed(77)
    assert_same(train(), whole)
    assert torch.equal(torch.rand(3), expected)


def test_another_seed_gives_other_weights(train, whole):
    assert not torch.equal(train(seed=2).model.classifier.weight, whole.model.classifier.weight)


@pytest.mark.parametrize(
    ("words", "other"),
    [
        ("other texts or labels", {"examples": weather.examples(seed=9)}),
        ("other parameters", {"parameters": FineTuningParameters(epochs=2, longest=24)}),
        ("another precision", {"precision": "bfloat16"}),
        ("another seed", {"seed": 6}),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(train, words, other):
    with pytest.raises(Paused):
        train(should_pause=lambda: True)
    with pytest.raises(OtherTraining) as refusal:
        train(**other)
    assert str(refusal.value) == (
        f"The checkpoint in 'checkpoint' is of {words} than this training. "
        "Train under another name, or remove that folder to begin anew."
    )


def test_a_checkpoint_of_another_architecture_is_refused(train, tmp_path):
    with pytest.raises(Paused):
        train(should_pause=lambda: True)
    with pytest.raises(OtherTraining, match="is of another model than this training"):
        train_from(weather.save_roberta(tmp_path / "roberta"), tmp_path / "checkpoint")


def test_a_damaged_checkpoint_is_set_aside_and_said(train, whole, tmp_path):
    with pytest.raises(Paused):
        train(should_pause=lambda: True)
    (tmp_path / "checkpoint" / checkpoints.FILE).write_bytes(b"no archive")
    trained = train()
    assert "it was set aside as state.pt.unreadable, and training began anew" in trained.notes[-1]
    assert (tmp_path / "checkpoint" / checkpoints.UNREADABLE).exists()
    assert_same(trained, whole)


def test_training_ends_early_and_keeps_the_best_weights_though_it_was_killed_after_them(train, folder, tmp_path):
    texts = weather.examples()
    nothing_to_learn = Examples(texts.texts, np.random.default_rng(0).permutation(texts.toxic), texts.validation)
    parameters = FineTuningParameters(
        epochs=30, batch_size=16, learning_rate=0.01, patience=2, evaluations_an_epoch=1, longest=24
    )
    how = {"examples": nothing_to_learn, "parameters": parameters}
    ended = train_from(folder, tmp_path / "undisturbed", **how)
    assert 0 < ended.steps == ended.best_step + 2 * 6 < 30 * 6

    def kill(step, _):
        if step == ended.best_step + 7:
            raise Killed

    with pytest.raises(Killed):
        train(**how, on_step=kill)
    assert_same(train(**how), ended)
    held_out = [text for text, chosen in zip(texts.texts, texts.validation, strict=True) if chosen]
    with torch.inference_mode():
        logits = ended.model(**ended.tokenizer(held_out, padding=True, return_tensors="pt")).logits
    toxic = torch.tensor(nothing_to_learn.toxic[texts.validation])
    assert heads.auc(logits[:, 1] - logits[:, 0], toxic) == ended.after.auc > ended.curve[-1].validation_auc
    assert any("2 evaluations without a better AUC" in note or "nothing better" in note for note in ended.notes)


def test_bfloat16_learns_too(train):
    assert train(precision="bfloat16").after.auc > 0.9


def test_an_unknown_precision_is_refused(train):
    with pytest.raises(ValueError, match="precision must be one of float32, bfloat16, not 'int3'"):
        train(precision="int3")


def test_batches_hold_every_text_once_and_texts_of_like_length():
    lengths = np.random.default_rng(0).integers(3, 60, 1000).tolist()
    made = batches.of_epoch(lengths, size=16, seed=3)
    assert sorted(place for batch in made for place in batch) == list(range(1000))
    spread = [max(lengths[place] for place in batch) - min(lengths[place] for place in batch) for batch in made]
    assert np.mean(spread) < 5
    assert made != batches.of_epoch(lengths, size=16, seed=4)
    assert made == batches.of_epoch(lengths, size=16, seed=3)
