"""Trouble that passes while a model is fine-tuned costs nothing that was learned."""

import errno
import itertools
import os
import resource
from functools import partial

import pytest
import torch

from analysis.training import checkpoints, saving
from analysis.training.outcomes import Paused, TrainingFailed
from generation.devices import OutOfMemory
from tests.analysis import weather
from tests.analysis.fine_tuning import assert_same, train_from


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


@pytest.mark.parametrize(
    "passing",
    [
        MemoryError(),
        OSError(errno.EIO, "Input/output error"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_now_stays(tmp_path, monkeypatch, passing):
    of = {"seed": "5"}
    checkpoints.write(tmp_path, {"model": {}}, of=of)

    def load(*args, **how):
        raise passing

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(torch, "load", load)
        with pytest.raises(type(passing)):
            checkpoints.read(tmp_path, of=of)
    assert checkpoints.read(tmp_path, of=of) == ({"of": of, "model": {}}, ())


def test_a_checkpoint_that_cannot_be_written_ends_nothing(train, whole, tmp_path):
    folder = tmp_path / "checkpoint"

    def fill(step, _):
        if step in (3, 5):  # before the first checkpoint and between two
            folder.mkdir(exist_ok=True)
            (folder / checkpoints.UNFINISHED).symlink_to("/dev/full")

    trained = train(on_step=fill)
    note = "A checkpoint could not be written (No space left on device); training went on without it."
    assert trained.notes.count(note) == 1
    assert os.listdir(folder) == [checkpoints.FILE]
    assert_same(trained, whole)


def test_what_is_larger_than_a_file_may_be_leaves_nothing_unfinished(whole, tmp_path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
    try:
        [note] = checkpoints.write(tmp_path, {"model": torch.zeros(100_000)}, of={})
        with pytest.raises(OSError, match="File too large"):
            saving.save(whole, tmp_path / "weather", card="")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert "(File too large)" in note
    assert not list(tmp_path.iterdir())


def test_the_best_weights_are_kept_once_and_nothing_after_the_last_step(train, tmp_path):
    kept = []

    def look(step, _):
        kept.append(torch.load(tmp_path / "checkpoint" / checkpoints.FILE) if step > 3 else None)

    train(on_step=look)
    assert [state["progress"]["step"] for state in kept[3:]] == [3] * 3 + [6] * 3 + [9] * 3 + [12] * 3 + [15] * 3
    for state in kept[3:]:
        assert (state["progress"]["step"] == state["progress"]["best_step"]) == (not state["best"])


def test_a_model_that_makes_no_numbers_is_told_of_before_any_training(train, folder):
    def spoil(model):
        with torch.no_grad():
            model.classifier.weight[0] = float("inf")

    with pytest.raises(TrainingFailed) as failure:
        train(change=spoil)
    assert str(failure.value) == (
        f"The model {folder} makes no numbers of the validation texts, before any training: its own weights are "
        "damaged, or nothing for float32. Choose another model, or float32."
    )


def diverges_after(step):
    """Its numbers are none any more after so many steps of learning."""

    def change(model):
        learned = itertools.count(1)

        def spoil(_, args, output):
            if model.training and next(learned) > step:
                output.logits = output.logits * float("nan")
            return output

        model.register_forward_hook(spoil)

    return change


def test_a_training_that_diverges_keeps_the_best_that_it_had(train):
    trained = train(change=diverges_after(10))
    assert [point.step for point in trained.curve] == [0, 3, 6, 9]
    assert 0 < trained.best_step <= 9
    assert trained.after.auc == max(point.validation_auc for point in trained.curve) > trained.before.auc
    assert trained.notes[-1] == (
        "The loss at step 11 is no number any more: training diverged. Use a smaller learning rate, a longer warm-up, "
        f"or float32. The weights are those of step {trained.best_step}, the best."
    )


def test_a_training_that_diverges_before_anything_is_better_ends_with_a_sentence(train):
    with pytest.raises(TrainingFailed, match="The loss at step 2 is no number any more: training diverged"):
        train(change=diverges_after(1))


def too_small_a_memory_for(more_than):
    """A model that needs more memory than there is for more texts than so many."""

    def change(model):
        def refuse(_, args, inputs):
            if len(inputs["input_ids"]) > more_than:
                raise torch.OutOfMemoryError("CUDA out of memory.")

        model.register_forward_pre_hook(refuse, with_kwargs=True)

    return change


def without_dropout(model):
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    model.config.attention_probs_dropout_prob = 0.0
    for layer in model.bert.encoder.layer:
        layer.attention.self.dropout.p = 0.0


def test_too_small_a_memory_halves_what_is_taken_at_once_and_not_the_batch(train, folder, tmp_path):
    def both(model):
        without_dropout(model)
        too_small_a_memory_for(5)(model)

    undivided = train_from(folder, tmp_path / "undivided", change=without_dropout)
    parted = train(change=both)
    assert [note for note in parted.notes if "memory" in note] == [
        f"The memory was too small for {tried} texts at once{where}, so they were taken {tried // 2} at a time; a "
        "batch is as large as before."
        for where in (", where nothing was learned", "")
        for tried in (16, 8)
    ]
    first, second = (point.curve[1] for point in (undivided, parted))
    assert abs(first.loss - second.loss) < 1e-5
    assert abs(first.validation_loss - second.validation_loss) < 1e-4


def test_a_memory_too_small_for_one_text_is_said(train):
    with pytest.raises(OutOfMemory, match="too little memory to train on even one text at a time"):
        train(change=too_small_a_memory_for(0))


def test_what_is_read_and_does_not_fit_leaves_the_learning_as_it_was(train):
    learned, read = [], []

    def change(model):
        def look(_, args, inputs):
            texts = len(inputs["input_ids"])
            (learned if model.training else read).append(texts)
            if not model.training and texts > 5:
                raise torch.OutOfMemoryError("CUDA out of memory.")

        model.register_forward_pre_hook(look, with_kwargs=True)

    with pytest.raises(Paused):
        train(change=change, should_pause=lambda: True)
    assert set(learned) == {16}
    assert read[:3] == [16, 8, 4]


def test_a_resumed_training_remembers_how_much_fits(train):
    sizes = []

    def change(model):
        too_small_a_memory_for(5)(model)
        model.register_forward_pre_hook(
            lambda _, args, inputs: sizes.append(len(inputs["input_ids"])), with_kwargs=True
        )

    with pytest.raises(Paused):
        train(change=too_small_a_memory_for(5), should_pause=lambda: True)
    assert len([note for note in train(change=change).notes if "memory" in note]) == 4
    assert max(sizes) <= 4


@pytest.mark.parametrize(
    "said",
    [
        "CUDA error: out of memory\nCUDA kernel errors might be reported later",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    ],
)
def test_cuda_says_in_many_words_that_the_memory_is_too_small(train, monkeypatch, said):
    def refuse(*args, **how):
        raise RuntimeError(said)

    with pytest.raises(OutOfMemory, match="too little memory to train on even one text"):
        train(change=lambda model: model.register_forward_pre_hook(refuse))
    monkeypatch.setattr(torch.optim.AdamW, "step", refuse)
    with pytest.raises(OutOfMemory, match="too little memory to train on even one text"):
        train()
