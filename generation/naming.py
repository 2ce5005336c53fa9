"""Whether a text names a group: the half of a response's yield that can be counted (paper, 3.1.2)."""

import re
from collections.abc import Iterable
from functools import lru_cache


def names_group(text: str, words: Iterable[str]) -> bool:
    """Whether one of ``words`` stands in ``text`` as a whole word, in any case, also in a simple plural.

    A name of several words counts where these follow each other. Without words nothing is named.

    >>> names_group("Two Sailors met.", ["sailor"]), names_group("the sailorman", ["sailor"])
    (True, False)
    """
    pattern = _pattern(tuple(sorted({word.casefold() for word in words if word.strip()})))
    return pattern is not None and bool(pattern.search(" ".join(text.casefold().split())))


@lru_cache(maxsize=256)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str] | None:
    if not words:
        return None
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(_with_plural, words))})(?!\w)")


def _with_plural(word: str) -> str:
    """A pattern for a word and its simple plural: lady and ladies, class and classes, sailor, sailors and sailor's."""
    *before, last = re.split(r"\s+", word.strip())
    stem = re.escape(" ".join([*before, last]))
    if re.search(r"[^aeiou\W]y$", last):
        return rf"{stem}|{stem[:-1]}ies"
    return rf"{stem}(?:['’]?s|es)?"
