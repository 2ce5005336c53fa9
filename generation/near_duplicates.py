"""Statements that say nearly what an earlier one says. Pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil

SIMILAR_FROM = Fraction(7, 10)  # a fraction, so that what is exactly as similar counts
WORD = re.compile(r"\w+")

DEFINITION = (
    "A statement is a near-duplicate if it shares at least 70 % of its pairs of neighbouring words with an earlier "
    "statement of the run (Jaccard similarity of the two sets of pairs; case and punctuation do not count)."
)


def near_duplicates(texts: Iterable[str], *, similar_from: Fraction = SIMILAR_FROM) -> list[bool]:
    """(N,) whether each text is a near-duplicate of an earlier one.

    Two texts are near-duplicates if the Jaccard similarity |A ∩ B| / |A ∪ B| of their sets of word pairs
    (``word_pairs``) is at least ``similar_from``, above 0 and up to 1. A text without words is none.
    Exact: two sets that are so similar share one of their rarest pairs (prefix filtering; Bayardo, Ma and
    Srikant 2007, Xiao et al. 2008), so that only those which do are compared.

    >>> near_duplicates(["The tide was low today.", "a cat slept", "the tide was low today!"])
    [False, False, True]
    """
    return [any(True for _ in earlier) for earlier in similar_earlier(texts, similar_from=similar_from)]


def similar_earlier(texts: Iterable[str], *, similar_from: Fraction = SIMILAR_FROM) -> Iterator[Iterator[int]]:
    """Of each text in turn, the numbers of the earlier ones that it is a near-duplicate of, in no order.

    They are looked for as they are asked for, and only until the next text's are. Raises ``ValueError``.

    >>> [sorted(earlier) for earlier in similar_earlier(["Low tide", "low tide!", "a cat", "LOW TIDE"])]
    [[], [0], [], [0, 1]]
    """
    sets, rarest = _with_rarest(texts, similar_from)
    having: dict[int, list[int]] = defaultdict(list)  # the earlier texts that have a pair among their rarest
    for number, pairs in enumerate(sets):
        others = (other for pair in rarest[number] for other in having.get(pair, ()))
        yield _similar_ones(pairs, others, sets, similar_from)
        for pair in rarest[number]:
            having[pair].append(number)


def linked(texts: Iterable[str], *, similar_from: Fraction = SIMILAR_FROM) -> list[int]:
    """(N,) of each text the number of one that stands for all which a chain of near-duplicates links it to.

    Exact. A text is compared with those of a component, as its texts are together called, only until it is found to
    belong to it: of many that are nearly the same, each is compared once or so. Raises ``ValueError``.

    >>> linked(["Low tide today", "low tide TODAY!", "a cat", "Low tide, today?"])
    [0, 0, 2, 0]
    """
    sets, rarest = _with_rarest(texts, similar_from)
    parents = list(range(len(sets)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    # The earlier texts that have a pair among their rarest, in parts of one component each, by any text of it.
    having: dict[int, dict[int, list[int]]] = defaultdict(dict)

    def others(number: int) -> Iterator[int]:
        for pair in rarest[number]:
            for known, part in having[pair].items():
                for other in part:
                    if root(known) == root(number):
                        break
                    yield other

    for number, pairs in enumerate(sets):
        for other in _similar_ones(pairs, others(number), sets, similar_from):
            parents[root(number)] = root(other)
        for pair in rarest[number]:
            _join(having[pair], [known for known in having[pair] if root(known) == root(number)], number)
    return [root(number) for number in range(len(sets))]


def word_pairs(text: str) -> set[tuple[str, ...]]:
    """The pairs of neighbouring words of a text in lower case; of a single word, that word.

    >>> sorted(word_pairs("Rain, rain: go away"))
    [('go', 'away'), ('rain', 'go'), ('rain', 'rain')]
    """
    words = WORD.findall(text.lower())
    return set(pairwise(words)) if len(words) > 1 else {(word,) for word in words}


def _similar_ones(
    pairs: frozenset[int], others: Iterable[int], sets: Sequence[frozenset[int]], similar_from: Fraction
) -> Iterator[int]:
    size = len(pairs)
    least, most = ceil(similar_from * size), int(size / similar_from)
    of, enough = similar_from.denominator, similar_from.numerator
    compared: set[int] = set()
    for other in others:
        if other in compared:
            continue
        compared.add(other)
        theirs = sets[other]
        if least <= len(theirs) <= most:
            shared = len(pairs & theirs)
            if of * shared >= enough * (size + len(theirs) - shared):
                yield other


def _join(parts: dict[int, list[int]], same: Sequence[int], number: int) -> None:
    """Make those parts one, with a new ``number``; the shorter ones are added to the longest."""
    longest = max(same, key=lambda known: len(parts[known]), default=number)
    whole = parts.setdefault(longest, [])
    for known in same:
        if known != longest:
            whole += parts.pop(known)
    whole.append(number)


def _with_rarest(texts: Iterable[str], similar_from: Fraction) -> tuple[list[frozenset[int]], list[list[int]]]:
    """The texts' pairs as numbers, and those so rare that one is in any other text that is so similar."""
    if not 0 < similar_from <= 1:
        raise ValueError(f"similar_from must be above 0 and at most 1, not {similar_from}.")
    rows = _by_rarity([word_pairs(text) for text in texts])
    rarest = [row[: len(row) - ceil(similar_from * len(row)) + 1] for row in rows]
    return [frozenset(row) for row in rows], rarest


def _by_rarity(sets: Sequence[set[tuple[str, ...]]]) -> list[list[int]]:
    """Each set as numbers of its pairs, the rarest first; a pair has the same number in all."""
    counts = Counter(pair for pairs in sets for pair in pairs)
    number = {pair: place for place, pair in enumerate(sorted(counts, key=counts.__getitem__))}
    return [sorted(number[pair] for pair in pairs) for pairs in sets]
