"""The head: what is saved is a BERT like any other, and gives what was fitted."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from analysis.training import saving
from analysis.training.examples import Examples
from analysis.training.heads import train_head
from analysis.training.outcomes import OtherTraining, Paused
from analysis.training.parameters import HeadParameters
from analysis.training.pooling import centred, freeze_mean_pooling, with_head
from generation import classifiers, heads
from generation.engines.text_readers import Layout
from generation.heads import Head
from tests.analysis import weather

CPU = torch.device("cpu")
TEXTS = [
    "rain",
    "",
    "the choir sang in town",
    "a storm reached the valley, and my aunt drives to the harbor whenever it rains",
    "the bridge is closed " * 40,
    "the bridge is closed " * 100,
]


@pytest.fixture(scope="module")
def encoder():
    return classifiers.load_encoder.__wrapped__(device=CPU)


@pytest.fixture(scope="module")
def data():
    return weather.examples(200)


@pytest.fixture(scope="module")
def trained(encoder, data):
    return train_head(data, HeadParameters(), encoder=encoder)


@pytest.fixture(scope="module")
def steep(encoder, tmp_path_factory):
    """A folder with the saved form of a head with large random weights, and its logits for ``TEXTS``."""
    head = Head(20 * torch.randn(384, generator=torch.Generator().manual_seed(0)) / 384**0.5 * 4, -0.7)
    folder = tmp_path_factory.mktemp("steep")
    with_head(encoder.model, head).save_pretrained(folder)
    tokenizer = encoder.tokenize.tokenizer
    tokenizer.model_max_length = encoder.tokenize.longest
    tokenizer.save_pretrained(folder)
    return folder, head.logits(centred(encoder.embed(TEXTS)))


def test_it_learns_the_rule(trained):
    assert (trained.before.auc, trained.after.auc > 0.95) == (0.5, True)
    assert trained.after.loss < trained.before.loss
    assert [(point.step, point.loss is None) for point in trained.curve] == [(0, True), (2, False)]
    assert (trained.steps, trained.best_step) == (2, 2)


def test_the_saved_classifier_gives_the_fitted_probabilities_in_every_layout(steep, monkeypatch):
    folder, expected = steep
    assert expected.std() > 1
    classifier = classifiers.load.__wrapped__(str(folder), device=CPU)
    assert (classifier.layout, classifier.tokenize.longest) == (Layout.PACKED, 256)
    for layout in Layout:
        monkeypatch.setattr(classifier, "layout", layout)
        probs = classifier.log_probs(TEXTS)[:, 1].exp()
        assert (probs - expected.sigmoid()).abs().max() < 1e-3, layout


@torch.inference_mode()
def test_transformers_alone_read_it_and_padding_does_not_count(steep):
    folder, expected = steep
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert type(model).__module__.startswith("transformers.")
    inputs = tokenizer(TEXTS, padding=True, truncation=True, return_tensors="pt")
    assert inputs["input_ids"].shape == (len(TEXTS), 256)
    assert not inputs["attention_mask"].all()
    logits = model(**inputs).logits
    assert ((logits[:, 1] - logits[:, 0]).sigmoid() - expected.sigmoid()).abs().max() < 1e-3


@pytest.mark.parametrize(("dtype", "most"), [(torch.float16, 0.01), (torch.bfloat16, 0.1)])
def test_in_half_the_precision_it_is_about_the_same(steep, dtype, most):
    folder, expected = steep
    classifier = classifiers.load.__wrapped__(str(folder), device=CPU, dtype=dtype)
    assert (classifier.log_probs(TEXTS)[:, 1].exp() - expected.sigmoid()).abs().max() < most


def test_the_whole_way_through_a_folder_keeps_the_scores(trained, data, tmp_path):
    saving.save(trained, tmp_path / "weather", card="# weather\n")
    classifier = classifiers.load.__wrapped__(str(tmp_path / "weather"), device=CPU)
    held_out = [text for text, validation in zip(data.texts, data.validation, strict=True) if validation]
    scores = classifier.log_probs(held_out)[:, 1]
    auc = heads.auc(scores.double(), torch.tensor(data.toxic[data.validation]))
    assert abs(auc - trained.after.auc) < 1e-3


def test_the_encoder_is_not_changed_and_the_same_data_give_the_same_head(trained, encoder, data):
    before = encoder.embed(TEXTS)
    again = train_head(data, HeadParameters(), encoder=encoder)
    assert torch.equal(encoder.embed(TEXTS), before)
    assert torch.equal(again.model.classifier.weight, trained.model.classifier.weight)
    assert encoder.model.config.num_hidden_layers == 6


def test_a_head_that_pauses_keeps_its_embeddings_and_ends_the_same(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("analysis.training.heads.TEXTS_A_STEP", 16)
    data, steps, pauses = weather.examples(40, seed=1), [], 0
    whole = train_head(data, HeadParameters(), encoder=encoder)
    while True:
        try:
            resumed = train_head(
                data,
                HeadParameters(),
                encoder=encoder,
                checkpoint=tmp_path,
                on_step=lambda step, of: steps.append((step, of)),
                should_pause=lambda: True,
            )
            break
        except Paused:
            pauses += 1
    assert pauses == 2
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert torch.equal(resumed.model.classifier.weight, whole.model.classifier.weight)
    with pytest.raises(OtherTraining, match="is of other texts or labels than this training"):
        train_head(weather.examples(40, seed=3), HeadParameters(), encoder=encoder, checkpoint=tmp_path)


def test_stronger_l2_gives_smaller_weights(trained, encoder, data):
    weak = train_head(data, HeadParameters(l2=1.0), encoder=encoder)
    assert weak.model.classifier.weight.norm() < trained.model.classifier.weight.norm() / 10


def test_validation_texts_are_not_learned_from(trained, encoder, data):
    otherwise = Examples(data.texts, data.toxic ^ data.validation, data.validation)
    again = train_head(otherwise, HeadParameters(), encoder=encoder)
    assert torch.equal(again.model.classifier.weight, trained.model.classifier.weight)
    assert again.after.auc < 0.5


def test_balanced_gives_both_classes_the_same_say_in_the_head_and_in_its_losses(encoder):
    data = weather.examples(150, seed=2, share=0.2)
    toxic, held_out = torch.tensor(data.toxic), torch.tensor(data.validation)
    embeddings, share = centred(encoder.embed(data.texts)), data.toxic[~data.validation].mean()
    for balanced, of_benign, of_toxic in ((True, 0.5 / (1 - share), 0.5 / share), (False, 1, 1)):
        made = train_head(data, HeadParameters(l2=0.1, balanced=balanced), encoder=encoder)
        head = heads.fit(embeddings[~held_out], toxic[~held_out], l2=0.1, balanced=balanced)
        assert made.model.classifier.bias[1] == head.bias
        probs = head.logits(embeddings[held_out]).double().sigmoid().numpy()
        right, weights = (
            np.where(data.toxic[data.validation], *pair) for pair in ((probs, 1 - probs), (of_toxic, of_benign))
        )
        assert made.after.loss == pytest.approx((-np.log(right) * weights).mean())
        assert made.before.loss == pytest.approx(np.log(2) * weights.mean())


def test_the_pooling_layer_is_told_from_others_and_kept_from_training(trained, encoder):
    assert freeze_mean_pooling(trained.model)
    frozen = [name for name, weights in trained.model.named_parameters() if not weights.requires_grad]
    assert frozen
    assert all(name.startswith(("bert.encoder.layer.6.", "bert.pooler.")) for name in frozen)
    assert not freeze_mean_pooling(encoder.model)


def test_centred_embeddings_are_of_length_one_and_have_no_average():
    made = centred(torch.tensor(np.random.default_rng(0).normal(1, 1, (5, 8))))
    assert torch.allclose(made.norm(dim=-1), torch.ones(5, dtype=torch.float64))
    assert torch.allclose(made.mean(-1), torch.zeros(5, dtype=torch.float64))
