"""The logistic head: its numbers agree with a count by hand and with other libraries."""

import numpy as np
import pytest
import torch
from scipy.stats import mannwhitneyu
from statsmodels.discrete.discrete_model import Logit

from generation import heads
from generation.heads import Head


@pytest.fixture
def points():
    """200 points in 3 dimensions, the first of which has to do with their label."""
    generator = torch.Generator().manual_seed(3)
    embeddings = torch.randn(200, 3, generator=generator)
    noise = torch.randn(200, generator=generator)
    return embeddings, embeddings[:, 0] + noise > 0.5


# --- The area under the curve -----------------------------------------------------------


def test_auc_is_the_share_of_pairs_in_which_the_toxic_text_scores_higher():
    # Toxic 0.9 beats 0.1, 0.5 and 0.7; toxic 0.6 beats 0.1 and 0.5: 5 of 6 pairs.
    scores, labels = torch.tensor([0.9, 0.1, 0.6, 0.5, 0.7]), torch.tensor([True, False, True, False, False])
    assert heads.auc(scores, labels) == pytest.approx(5 / 6)


def test_equal_scores_count_half():
    assert heads.auc(torch.zeros(7), torch.tensor([True, False, True, False, False, True, True])) == 0.5


@pytest.mark.parametrize("seed", range(5))
def test_auc_is_the_mann_whitney_statistic_over_the_number_of_pairs(seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(0, 9, (60,), generator=generator).float()
    labels = torch.rand(60, generator=generator) < 0.3
    statistic = mannwhitneyu(scores[labels].numpy(), scores[~labels].numpy()).statistic
    assert heads.auc(scores, labels) == pytest.approx(statistic / (int(labels.sum()) * int((~labels).sum())))


def test_auc_of_one_class_is_refused():
    with pytest.raises(ValueError) as refusal:
        heads.auc(torch.tensor([0.1, 0.2]), torch.tensor([True, True]))
    assert str(refusal.value) == "The texts are all of one class; a toxic and a benign one are needed."


# --- Fitting ----------------------------------------------------------------------------


def test_without_a_penalty_the_weights_are_those_of_another_library(points):
    embeddings, labels = points
    head = heads.fit(embeddings, labels, l2=0)
    inputs = np.column_stack([np.ones(len(labels)), embeddings.double().numpy()])
    expected = Logit(labels.double().numpy(), inputs).fit(disp=False).params
    assert [head.bias, *head.weights.tolist()] == pytest.approx(expected, abs=1e-5)


def test_with_a_penalty_the_gradient_of_the_penalised_loss_is_zero(points):
    embeddings, labels = points
    head = heads.fit(embeddings, labels, l2=0.1)
    error = torch.sigmoid(head.logits(embeddings)) - labels.float()
    torch.testing.assert_close(
        (error[:, None] * embeddings).mean(0) + 0.1 * head.weights, torch.zeros(3), atol=1e-6, rtol=0
    )
    assert float(error.mean()) == pytest.approx(0, abs=1e-6)  # the bias is free


def test_a_penalty_keeps_weights_of_separable_classes_finite_and_right():
    embeddings = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]])
    labels = torch.tensor([False, False, True, True])
    head = heads.fit(embeddings, labels, l2=1e-3)
    assert torch.equal(head.logits(embeddings) > 0, labels)
    assert 1 < float(head.weights[0]) < 100


def test_balanced_classes_have_the_same_say():
    embeddings, labels = torch.zeros(10, 1), torch.tensor([True] + [False] * 9)
    assert torch.sigmoid(torch.tensor(heads.fit(embeddings, labels, l2=1).bias)) == pytest.approx(0.1)
    assert heads.fit(embeddings, labels, l2=1, balanced=True).bias == pytest.approx(0, abs=1e-6)


def test_the_same_points_give_the_same_head(points):
    first, second = (heads.fit(*points, l2=1e-3) for _ in range(2))
    assert first.bias == second.bias
    assert torch.equal(first.weights, second.weights)


# --- Cross-validation -------------------------------------------------------------------


def test_each_fold_has_its_share_of_both_classes():
    labels = torch.arange(40) % 4 == 0
    fold_of = heads.stratified_folds(labels, folds=5, seed=0)
    assert [int((fold_of == fold).sum()) for fold in range(5)] == [8] * 5
    assert [int(labels[fold_of == fold].sum()) for fold in range(5)] == [2] * 5


def test_another_seed_gives_other_folds_and_the_same_seed_the_same():
    labels = torch.arange(40) % 4 == 0
    first, again, other = (heads.stratified_folds(labels, folds=5, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_noise_has_an_auc_of_about_a_half():
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(1000, 5, generator=generator)
    aucs = heads.cross_validated_auc(embeddings, torch.rand(1000, generator=generator) < 0.4, l2=1e-3)
    assert len(aucs) == 5
    assert sum(aucs) / 5 == pytest.approx(0.5, abs=0.05)


def test_what_can_be_learnt_has_a_high_auc(points):
    aucs = heads.cross_validated_auc(*points, l2=1e-3)
    assert 0.75 < sum(aucs) / 5 < 0.95


def test_more_folds_than_texts_of_a_class_are_refused():
    with pytest.raises(ValueError) as refusal:
        heads.cross_validated_auc(torch.zeros(20, 1), torch.arange(20) < 4, l2=1, folds=5)
    assert str(refusal.value) == "5 folds need at least 5 texts of each class; 4 of 20 are toxic."


def test_a_single_fold_is_refused():
    with pytest.raises(ValueError) as refusal:
        heads.stratified_folds(torch.arange(20) < 9, folds=1, seed=0)
    assert str(refusal.value) == "folds must be a whole number of at least 2, not 1."


# --- As JSON ----------------------------------------------------------------------------


def test_a_head_is_written_with_what_is_known_about_it_to_six_digits():
    text = heads.dumps(Head(torch.tensor([1 / 3, -2e-7]), 2 / 3), {"name": "toy", "n": 4})
    assert text == ('{\n  "name": "toy",\n  "n": 4,\n  "bias": 0.666667,\n  "weights": [0.333333, -2e-07]\n}\n')
    head = heads.loads(text)
    assert head.bias == 0.666667
    torch.testing.assert_close(head.weights, torch.tensor([0.333333, -2e-7]))
