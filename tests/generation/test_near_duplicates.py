"""Near-duplicates: the definition, found as by comparing each with each, and quickly."""

import random
import time
from fractions import Fraction

import pytest

from generation.near_duplicates import near_duplicates, word_pairs


def by_brute_force(texts, similar_from):
    """The definition itself: each text against each earlier one, in exact fractions."""
    sets = [word_pairs(text) for text in texts]

    def similar(a, b):
        return bool(a | b) and Fraction(len(a & b), len(a | b)) >= similar_from

    return [any(similar(sets[i], sets[j]) for j in range(i)) for i in range(len(texts))]


def sayings(seed, count):
    """Sentences of few words, so that many are near each other, and some that differ by a word."""
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(rng.choice([5, 12, 40]))]
    texts = [" ".join(rng.choices(words, k=rng.randint(0, 12))) for _ in range(count)]
    for _ in range(count // 3):
        changed = rng.choice(texts).split()
        if changed:
            changed[rng.randrange(len(changed))] = rng.choice(words)
        texts.append(" ".join(changed))
    rng.shuffle(texts)
    return texts


@pytest.mark.parametrize(
    "similar_from", [Fraction(7, 10), Fraction(1, 2), Fraction(9, 10), Fraction(1), Fraction(1, 3)]
)
@pytest.mark.parametrize("seed", range(12))
def test_the_same_are_found_as_by_comparing_each_with_each(seed, similar_from):
    texts = sayings(seed, 120)
    found = near_duplicates(texts, similar_from=similar_from)
    assert found == by_brute_force(texts, similar_from)
    if similar_from < 1:
        assert any(found)


def test_exactly_seventy_percent_of_the_pairs_in_common_are_enough():
    tide = "the tide was very low today so we all walked out"  # ten pairs; eleven in both together …
    assert near_duplicates([tide, f"{tide} far"]) == [False, True]
    seven_of_ten = "a b c d e f g h", "a b c d e f g h i j k"
    assert [len(word_pairs(text)) for text in seven_of_ten] == [7, 10]
    assert near_duplicates(seven_of_ten) == [False, True]
    assert near_duplicates(["a b c d e f g", "a b c d e f g h i j"]) == [False, False]  # six of nine


def test_the_first_of_several_is_none_and_all_later_ones_are():
    assert near_duplicates(["Rain fell all day.", "rain fell all day", "RAIN fell, all day!"]) == [False, True, True]


def test_single_words_and_texts_without_words_are_compared_as_they_are():
    assert near_duplicates(["", "", "!", "rain", "Rain.", "snow"]) == [False, False, False, False, True, False]


def test_no_statements_have_no_near_duplicates():
    assert near_duplicates([]) == []


@pytest.mark.parametrize("similar_from", [Fraction(0), Fraction(-1), Fraction(11, 10)])
def test_a_similarity_that_is_none_is_refused(similar_from):
    with pytest.raises(ValueError, match="similar_from must be above 0 and at most 1"):
        near_duplicates(["a"], similar_from=similar_from)


def test_thousands_of_statements_take_a_moment():
    """Thirty thousand take three seconds; a tenth of them is tried here, with room for a busy machine."""
    rng = random.Random(1)
    words = [f"w{number}" for number in range(3000)]
    weights = [1 / (number + 1) for number in range(3000)]
    texts = [" ".join(rng.choices(words, weights, k=rng.randint(8, 25))) for _ in range(3000)]
    before = time.process_time()
    near_duplicates(texts)
    assert time.process_time() - before < 2
