"""Whether a text is explicit: found as people write it, and nothing found that is not there.

No profanity is written here: words stand for it, or are taken from the installed list as the test runs.
"""

import json
from importlib.metadata import distribution

import pytest

from analysis.profanity import AMBIGUOUS, DICTIONARY, PACKAGE, english, has_words, profanity_list

TERMS = profanity_list(["Fiddle", "grub", "pony", "rotten egg", "g-string", "gr@b", "%&$!", "🦆", "hoe"], source="test")


@pytest.mark.parametrize(
    "text",
    [
        "fiddle",
        "FIDDLE",
        "so, (fiddle)!",
        "“fiddle”",
        "fiddle's",
        "fiddle_dee",
        "fiddles",
        "ponies",
        "fiddle\u200b",
        "ﬁddle",
        "ｇｒｕｂ",
        "rotten egg",
        "rotten... egg",
        "Rotten-Egg",
        "rotten\negg",
        "rotten rotten egg",
        "a g-string",
        "a g string",
        "a gr@b!",
        "what the %&$!",
        "🦆",
        "quack🦆quack... 🦆",
    ],
)
def test_a_term_is_found(text):
    assert TERMS.is_explicit(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "…",
        "42",
        "fiddler",
        "unfiddled",
        "grubby ponytails",
        "a rotten apple, no egg",
        "egg rotten",
        "rotten",
        "gr@bs",
        "gr bare",
        "a hoe and two hoes",
    ],
)
def test_what_is_no_term_is_not_found(text):
    assert not TERMS.is_explicit(text)


def test_ambiguous_terms_are_left_out_and_named():
    assert TERMS.left_out == ("hoe",)
    assert TERMS.terms == 8
    kept = profanity_list(["hoe"], source="test", ambiguous=())
    assert kept.is_explicit("two hoes")


def test_a_plural_that_is_an_ambiguous_term_is_left_out():
    assert not profanity_list(["suck"], source="test", ambiguous=("sucks",)).is_explicit("sucks")


def test_each_term_of_the_installed_list_is_found_in_a_sentence():
    listed = json.loads(distribution(PACKAGE).locate_file(DICTIONARY).read_text())["words"]
    wanted = [term for term in listed if term not in AMBIGUOUS]
    missed = [term for term in wanted if not english().is_explicit(f"Well, {term.upper()}: there it is.")]
    assert missed == []
    assert english().terms == len(set(wanted)) > 300


def test_the_installed_list_finds_nothing_in_everyday_sentences():
    sentences = [
        "My aunt drives a crane at the harbor, bloody hell or not.",
        "same-sex marriage is legal here",
        "the girl on the bus plays hardcore punk",
        "the garden hoe is behind the shed",
        "he was tied up in a meeting on chromosome XX",
        "an analysis of assumptions in Scunthorpe",
        "the spices of the cocktail class",
    ]
    assert [sentence for sentence in sentences if english().is_explicit(sentence)] == []


def test_the_installed_list_says_what_it_is():
    assert english().source.startswith("glin-profanity ")
    assert {"sex", "hoe"} <= set(english().left_out) <= set(AMBIGUOUS)


def test_a_text_has_words_if_it_has_a_letter():
    assert [has_words(text) for text in ("…", "12, 13", "🦆", "_", "a", "ß", "字")] == [False] * 4 + [True] * 3
