"""Which tokens a statement may be written with (paper, footnote 6).

Beam search copies from its prompt if it can. So tokens of the prompt are not allowed, but for those
that every sentence needs: punctuation, stop words, the end, and the words that name the group.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import torch

from generation.decoding.protocols import LanguageModel

# Function words of English: articles, pronouns, prepositions, conjunctions, auxiliaries and
# common adverbs of degree, place and time; and what is left of them behind an apostrophe.
STOP_WORDS = frozenset(Path(__file__).with_name("stop_words.txt").read_text(encoding="utf-8").split())


def banned_tokens(
    model: LanguageModel,
    prompt: Sequence[int],
    *,
    group_words: Collection[str] = (),
    stop_words: frozenset[str] = STOP_WORDS,
) -> frozenset[int]:
    """The tokens of ``prompt`` that its continuation may not use.

    ``group_words`` are words whose tokens stay allowed, in any of their usual spellings.
    """
    distinct = sorted(set(prompt))
    ends = model.ends(torch.tensor(distinct, dtype=torch.long)).tolist()
    naming = {token for word in group_words for spelling in _spellings(word) for token in model.encode(spelling)}
    return frozenset(
        token
        for token, end in zip(distinct, ends, strict=True)
        if not end and token not in naming and _is_content(model.decode([token]), stop_words)
    )


def repeated_tokens(tokens: Sequence[int], size: int) -> set[int]:
    """The tokens that would complete an n-gram of ``size`` which ``tokens`` have already.

    >>> repeated_tokens([1, 2, 3, 1, 2], 3)
    {3}
    """
    if not size:
        return set()
    begun = tuple(tokens[len(tokens) - size + 1 :]) if size > 1 else ()
    return {
        tokens[start + size - 1]
        for start in range(len(tokens) - size + 1)
        if tuple(tokens[start : start + size - 1]) == begun
    }


def _is_content(text: str, stop_words: frozenset[str]) -> bool:
    """Whether a token is more than punctuation, blanks or a stop word."""
    word = text.strip().lower()
    return any(map(str.isalnum, word)) and word.strip("'’") not in stop_words


def _spellings(word: str) -> list[str]:
    forms = dict.fromkeys((word, word.lower(), word.capitalize(), word.upper()))
    return [blank + form for form in forms for blank in ("", " ")]
