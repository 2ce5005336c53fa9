"""Made-up benign texts as long as the released statements, each another one."""

import random
from itertools import pairwise

from benchmarks.io.data import sentence

# Tokens of the 8,960 annotated statements of the release, the two at the ends among them: of this share and all below.
LENGTHS = ((0.0, 4), (0.05, 9), (0.5, 24), (0.95, 33), (0.99, 36), (1.0, 98))
MARKS = 2  # the tokens at the ends


def made_up(count: int, *, seed: int) -> list[str]:
    """So many texts; the same ones for the same ``seed``."""
    rng = random.Random(seed)
    return [text(rng, number) for number in range(count)]


def text(rng: random.Random, number: int) -> str:
    """Of about as many words as its tokens should be; it begins with its number, so that none is there twice."""
    wanted = length(rng.random()) - MARKS - 1
    words = [str(number)]
    while len(words) <= wanted:
        words += sentence(rng, number).split()[:-2]
    return " ".join(words[: wanted + 1])


def length(share: float) -> int:
    """The number of tokens that this share of the released statements does not exceed.

    >>> length(0.5), length(0.95)
    (24, 33)
    """
    for (low, shortest), (high, longest) in pairwise(LENGTHS):
        if share <= high:
            return round(shortest + (longest - shortest) * (share - low) / (high - low))
    return LENGTHS[-1][1]
