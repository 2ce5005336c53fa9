"""Which statements are implicit: those without a word of a profanity list.

The list is the English dictionary of the package glin-profanity. Of its modules none is loaded, only the file read.
Source: ToxiGen, footnote 7, which uses another list, and leaves ambiguous terms out as we do.
"""

import json
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

PACKAGE = "glin-profanity"
DICTIONARY = "glin_profanity/data/dictionaries/english.json"

AMBIGUOUS = (
    "bareback", "big black", "bloody", "bondage", "bs", "butt", "cornhole", "domination", "escort", "eunuch", "fecal",
    "girl on", "hard core", "hardcore", "hoe", "how to kill", "how to murder", "huge fat", "intercourse",
    "jelly donut", "kinky", "leather restraint", "make me come", "nude", "nudity", "pegging", "playboy", "santorum",
    "scat", "scissoring", "sex", "skeet", "snatch", "snowballing", "spunk", "strap on", "suck", "sucks", "swastika",
    "swinger", "tainted love", "taste my", "tied up", "tight white", "tongue in a", "undressing", "xx",
)  # fmt: skip
"""Terms of such lists that have an everyday meaning, too: they make no statement explicit."""

WORD = re.compile(r"[^\W_]+")
LETTER = re.compile(r"[^\W\d_]")
SHORTEST_WITH_PLURAL = 3


@dataclass(frozen=True)
class ProfanityList:
    """The terms, sorted by how they are found in a text; ``left_out`` are the ambiguous ones that the list has."""

    source: str
    terms: int
    left_out: tuple[str, ...]
    words: frozenset[str]
    """Terms of one word, and their plurals."""
    phrases: dict[str, tuple[tuple[str, ...], ...]]
    """Terms of several words, by the first."""
    spelled: re.Pattern[str] | None
    """Terms with other signs than letters and digits, as they are written; None: there are none."""

    def is_explicit(self, text: str) -> bool:
        """Whether the text has a term of the list.

        Terms are found as whole words, in any case and between any punctuation; a word also in its simple plural
        (with s, es, or ies for y). What is misspelled in a way that the list does not know is not found.

        >>> terms = profanity_list(["fiddlesticks", "dirty sock", "f!ddle"], source="a test")
        >>> [terms.is_explicit(text) for text in ("Fiddlesticks!", "two dirty, socks", "a DIRTY-sock", "f!ddle")]
        [True, False, True, True]
        """
        text = plain(text)
        words = WORD.findall(text)
        if not self.words.isdisjoint(words):
            return True
        if self.spelled and self.spelled.search(text):
            return True
        for place, word in enumerate(words):
            for phrase in self.phrases.get(word, ()):
                if tuple(words[place : place + len(phrase)]) == phrase:
                    return True
        return False


def profanity_list(terms: Iterable[str], *, source: str, ambiguous: Iterable[str] = AMBIGUOUS) -> ProfanityList:
    """The list of these terms, without the ambiguous ones."""
    listed = {plain(term).strip() for term in terms} - {""}
    ambiguous = {plain(term) for term in ambiguous}
    left_out = listed & ambiguous
    words: set[str] = set()
    phrases: dict[str, list[tuple[str, ...]]] = {}
    spelled = []
    for term in sorted(listed - left_out):
        parts = tuple(re.split(r"[\s-]+", term))
        if not all(map(WORD.fullmatch, parts)):
            spelled.append(re.escape(term))
        elif len(parts) == 1:
            words |= {term, plural(term)}
        else:
            phrases.setdefault(parts[0], []).append(parts)
    return ProfanityList(
        source=source,
        terms=len(listed - left_out),
        left_out=tuple(sorted(left_out)),
        words=frozenset(words - ambiguous),
        phrases={first: tuple(rest) for first, rest in phrases.items()},
        spelled=re.compile(rf"(?<![^\W_])(?:{'|'.join(spelled)})(?![^\W_])") if spelled else None,
    )


@cache
def english() -> ProfanityList:
    """The English list of the installed package."""
    package = distribution(PACKAGE)
    listed = json.loads(Path(str(package.locate_file(DICTIONARY))).read_text(encoding="utf-8"))["words"]
    return profanity_list(listed, source=f"{PACKAGE} {package.version}")


def plain(text: str) -> str:
    """A text in one case, without the forms of letters and the invisible signs that hide words.

    >>> plain("Ｆｉｄｄｌｅ\u200bＳＴＩＣＫＳ")
    'fiddlesticks'
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(sign for sign in text if unicodedata.category(sign) != "Cf")


def plural(word: str) -> str:
    """The simple plural of a word; short words and those that do not end in a letter stay as they are.

    >>> [plural(word) for word in ("sock", "dish", "pony", "toy", "xy")]
    ['socks', 'dishes', 'ponies', 'toys', 'xy']
    """
    if len(word) < SHORTEST_WITH_PLURAL or not word[-1].isalpha():
        return word
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return f"{word}es"
    if word[-1] == "y" and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


def has_words(text: str) -> bool:
    """Whether there is a letter in the text.

    >>> has_words("…"), has_words("42 :)"), has_words("été")
    (False, False, True)
    """
    return LETTER.search(text) is not None
