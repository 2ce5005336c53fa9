"""Parts of texts: exact components, whole in their part, both classes in each."""

import random
import time
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from analysis.splits import by_text, by_vector, folds, joined, validation
from generation.near_duplicates import word_pairs


def components_of(n, together):
    """The definition: ones that are ``together`` or linked by a chain of such, numbered as they come."""
    groups = [{number} for number in range(n)]
    for one, other in combinations(range(n), 2):
        if together(one, other) and groups[one] is not groups[other]:
            merged = groups[one] | groups[other]
            for number in merged:
                groups[number] = merged
    first = list(dict.fromkeys(min(group) for group in groups))
    return [first.index(min(group)) for group in groups]


def sayings(seed, count=80):
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(rng.choice([5, 12, 40]))]
    texts = [" ".join(rng.choices(words, k=rng.randint(0, 12))) for _ in range(count)]
    for _ in range(count):
        changed = rng.choice(texts).split()
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice(words)
        texts.append(" ".join(changed))
    return texts


@pytest.mark.parametrize("seed", range(10))
def test_texts_are_together_if_a_chain_of_near_duplicates_links_them(seed):
    texts = sayings(seed)
    sets = [word_pairs(text) for text in texts]

    def together(one, other):
        a, b = sets[one], sets[other]
        return texts[one] == texts[other] or (bool(a | b) and Fraction(len(a & b), len(a | b)) >= Fraction(7, 10))

    found = by_text(texts).tolist()
    assert found == components_of(len(texts), together)
    assert max(found) < len(texts) - 1


def test_a_chain_links_texts_that_are_not_similar_themselves():
    words = [f"w{number}" for number in range(40)]
    chain = [" ".join(words[start : start + 20]) for start in range(0, 20, 2)]
    assert by_text([*chain, "a cat slept"]).tolist() == [0] * 10 + [1]
    assert by_text([chain[0], chain[-1]]).tolist() == [0, 1]


def test_texts_without_words_are_together_with_the_same_ones_only():
    assert by_text(["", "!", "rain", " ", "Rain.", "! ", "\uff01"]).tolist() == [0, 1, 2, 0, 2, 1, 1]


@pytest.mark.parametrize(
    ("text", "same"), [("the \ufb01ll", "THE FILL"), ("stra\u00dfe", "STRASSE"), ("cafe\u0301 low", "caf\u00e9 LOW")]
)
def test_what_unicode_holds_for_the_same_characters_is_the_same(text, same):
    assert by_text([text, "a cat slept", same]).tolist() == [0, 1, 0]


def test_no_texts_have_no_components():
    assert by_text([]).tolist() == []
    assert by_vector(np.zeros((0, 4), np.float32)).tolist() == []


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("above", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_vectors_are_together_if_a_chain_of_similar_ones_links_them(seed, above, monkeypatch):
    monkeypatch.setattr("analysis.splits.ROWS_AT_ONCE", 17)
    vectors = unit(np.random.default_rng(seed).standard_normal((120, 5)))
    exact = vectors.astype(float) @ vectors.astype(float).T
    assert np.abs(exact - above + 1e-4).min() > 1e-7, "no pair is so near the threshold that rounding decides"
    expected = components_of(120, lambda one, other: exact[one, other] > above - 1e-4)
    assert by_vector(vectors, above).tolist() == expected
    assert len(set(expected)) < 120


def test_a_vector_of_zeros_is_alone():
    assert by_vector(np.array([[0, 0], [1, 0], [0, 0], [1, 0]], np.float32)).tolist() == [0, 1, 2, 1]


def test_vectors_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"The vectors are of length 1; that of row 1 is 2\."):
        by_vector(np.array([[1, 0], [0, 2]], np.float32))
    with pytest.raises(ValueError, match=r"The vectors are of length 1; that of row 0 is nan\."):
        by_vector(np.array([[np.nan, 0]], np.float32))


@pytest.mark.parametrize("above", [0, -1, 1.1, float("nan")])
def test_a_threshold_that_is_none_is_refused(above):
    with pytest.raises(ValueError, match=r"cosine above 0 and up to 1"):
        by_vector(np.eye(2, dtype=np.float32), above)


@pytest.mark.parametrize("seed", range(5))
def test_joined_components_are_those_of_both_relations_together(seed):
    first, second, third = np.random.default_rng(seed).integers(40, size=(3, 100))
    expected = components_of(
        100, lambda a, b: bool(first[a] == first[b] or second[a] == second[b] or third[a] == third[b])
    )
    assert joined(first, second, third).tolist() == expected


def parts_are_sound(components, toxic, parts, k):
    for component in set(components.tolist()):
        assert len(set(parts[components == component].tolist())) == 1
    for part in range(k):
        assert set(toxic[parts == part].tolist()) == {False, True}


@pytest.mark.parametrize("seed", range(10))
def test_folds_have_whole_components_and_the_classes_in_proportion(seed):
    rng = np.random.default_rng(seed)
    components = np.r_[np.zeros(700, int), 1 + rng.integers(30, size=300), 31 + rng.integers(600, size=1000)]
    toxic = rng.random(2000) < 0.3
    parts = folds(components, toxic, k=5, seed=seed)
    parts_are_sound(components, toxic, parts, 5)
    others = parts != parts[0]
    for label in (False, True):
        counts = np.bincount(parts[others & (toxic == label)], minlength=5)
        assert np.ptp(np.delete(counts, parts[0])) <= 4


def test_folds_of_texts_that_are_all_alone_differ_by_no_more_than_one_of_a_class():
    toxic = np.arange(103) % 3 == 0
    parts = folds(np.arange(103), toxic, k=5, seed=1)
    for label in (False, True):
        assert np.ptp(np.bincount(parts[toxic == label])) <= 1


def test_one_giant_component_has_its_fold_and_the_others_share_the_rest():
    components = np.r_[np.zeros(9000, int), np.arange(1, 1001)]
    toxic = np.arange(10000) % 2 == 0
    counts = np.bincount(folds(components, toxic, k=5, seed=0))
    assert sorted(counts.tolist())[:4] == pytest.approx([250] * 4, abs=2)
    held_out = validation(components, toxic, share=0.1, seed=0)
    assert 900 <= held_out.sum() <= 1000
    assert not held_out[0]


@pytest.mark.parametrize(
    ("components", "toxic"),
    [
        ([0, 0, 1, 1, 2, 2, 2, 2], [1, 0, 1, 0, 1, 0, 1, 0]),
        ([0, 0, 0, 0, 1, 2, 3, 4], [1, 0, 1, 0, 1, 0, 0, 1]),
        ([0] * 50 + [1] * 50 + [2] * 3 + [3, 4], [1] * 50 + [0] * 50 + [1] * 2 + [0] + [0, 1]),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_both_classes_are_in_every_fold_wherever_that_can_be(components, toxic, seed):
    components, toxic = np.array(components), np.array(toxic, bool)
    parts_are_sound(components, toxic, folds(components, toxic, k=3, seed=seed), 3)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.5])
def test_validation_has_about_its_share_of_both_classes(share):
    rng = np.random.default_rng(3)
    components, toxic = rng.integers(900, size=2000), rng.random(2000) < 0.2
    held_out = validation(components, toxic, share=share, seed=0)
    parts_are_sound(components, toxic, held_out.astype(int), 2)
    for label in (False, True):
        assert held_out[toxic == label].mean() == pytest.approx(share, abs=0.01)


def test_a_small_share_of_few_texts_has_both_classes_all_the_same():
    toxic = np.array([True] * 3 + [False] * 9)
    held_out = validation(np.arange(12), toxic, share=0.05, seed=0)
    assert (held_out & toxic).sum() == (held_out & ~toxic).sum() == 1


def test_what_is_large_and_of_both_classes_is_trained_on_where_anything_else_can_validate():
    components, toxic = np.r_[np.zeros(100, int), 1, 2], np.arange(102) % 2 == 0
    assert validation(components, toxic, share=0.1, seed=0).tolist() == [False] * 100 + [True] * 2


@pytest.mark.parametrize("seed", range(6))
def test_the_rare_class_is_in_proportion_as_the_frequent_one_is(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(20, 60, size=60)
    components = np.repeat(np.arange(60), sizes)
    chances = np.repeat(rng.choice([0, 0, 0.1, 0.2], size=60), sizes)
    toxic = rng.random(len(components)) < chances
    parts = folds(components, toxic, k=4, seed=0)
    assert np.ptp(np.bincount(parts[toxic])) <= 6
    assert np.ptp(np.bincount(parts)) <= 7


def test_the_seed_decides_the_parts():
    components, toxic = np.arange(300), np.arange(300) % 2 == 0
    first, again, other = (folds(components, toxic, k=5, seed=seed) for seed in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()
    held_out = [validation(components, toxic, share=0.2, seed=seed).tolist() for seed in (1, 1, 2)]
    assert held_out[0] == held_out[1] != held_out[2]


def test_what_cannot_be_parted_is_refused_in_a_sentence():
    with pytest.raises(ValueError) as error:
        folds([0, 0, 1, 2, 3], [True, False, True, False, False], k=3, seed=0)
    assert str(error.value) == (
        "Toxic and benign texts are needed in each of 3 parts, and near-duplicates stay together: these 5 texts, 2 of "
        "them toxic, are enough for 2. Ask for fewer parts, or add texts of the rarer class."
    )
    with pytest.raises(ValueError, match="are enough for 1"):
        validation([0, 0, 0], [True, False, True], share=0.1, seed=0)
    with pytest.raises(ValueError, match="are enough for 0"):
        validation([0, 1, 2], [True, True, True], share=0.1, seed=0)
    with pytest.raises(ValueError, match="are enough for 0"):
        validation([], [], share=0.1, seed=0)


@pytest.mark.parametrize("k", [1, 0, -1])
def test_one_fold_is_refused(k):
    with pytest.raises(ValueError, match=f"folds must be a whole number of at least 2, not {k}"):
        folds([0, 1], [True, False], k=k, seed=0)


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        validation([0, 1, 2, 3], [True, False, True, False], share=share, seed=0)


def test_thousands_of_texts_are_parted_in_seconds():
    """250,000 take half a minute at most; fewer are tried here, with room for a busy machine."""
    rng = random.Random(1)
    words = [f"w{number}" for number in range(3000)]
    weights = [1 / (number + 1) for number in range(3000)]
    texts = [" ".join(rng.choices(words, weights, k=rng.randint(8, 25))) for _ in range(8_000)]
    texts += [f"{texts[0]} again {number}" for number in range(500)]
    before = time.process_time()
    components = by_text(texts)
    folds(components, np.arange(8_500) % 2 == 0, k=5, seed=0)
    assert time.process_time() - before < 10


def test_thousands_of_near_duplicates_of_one_text_take_a_moment():
    """Twenty thousand take two seconds; fewer are tried here, with room for a busy machine."""
    words = " ".join(f"w{number}" for number in range(22))
    texts = [f"{words} {number}" for number in range(5_000)]
    before = time.process_time()
    assert not by_text(texts).any()
    assert time.process_time() - before < 5
