"""Texts as tokens, in batches of about the same length that a seed decides."""

import hashlib
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor

POOL = 32  # batches; within so many texts of the shuffled order those of like length come together
TEXTS_A_CALL = 10_000


def tokenise(tokenizer: Any, texts: Sequence[str], *, longest: int) -> "list[array[int]]":
    """The tokens of each text, ``longest`` at most, in 32 bits each."""
    longest = min(longest, tokenizer.model_max_length)
    rows: list[array[int]] = []
    for start in range(0, len(texts), TEXTS_A_CALL):
        part = list(texts[start : start + TEXTS_A_CALL])
        ids = tokenizer(part, truncation=True, max_length=longest)["input_ids"]
        rows += [array("i", row or [tokenizer.pad_token_id]) for row in ids]  # no model reads a text of no tokens
    return rows


def of_epoch(lengths: Sequence[int], *, size: int, seed: int) -> list[list[int]]:
    """The batches of an epoch: each a list of places in ``lengths``, of ``size`` but for one.

    The order is random, and so is which texts share a batch, apart from their length.

    >>> sorted(map(len, of_epoch([3, 5, 4, 3, 9], size=2, seed=0)))
    [1, 2, 2]
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(lengths), generator=generator).tolist()
    batches = []
    for start in range(0, len(order), POOL * size):
        pool = sorted(order[start : start + POOL * size], key=lambda place: lengths[place])
        batches += [pool[first : first + size] for first in range(0, len(pool), size)]
    return [batches[place] for place in torch.randperm(len(batches), generator=generator).tolist()]


def padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[Tensor, Tensor]:
    """(B, T) tokens of rows, filled up on the right, and their (B, T) mask."""
    lengths = torch.tensor([len(row) for row in rows])
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    ids = torch.full(mask.shape, pad)
    ids[mask] = torch.tensor(list(chain.from_iterable(rows)))
    return ids, mask.long()


def seed_of(seed: int, *what: object) -> int:
    """A seed for one part of the work, such as the dropout of a step; unrelated to those of other parts."""
    digest = hashlib.sha256(repr((seed, *what)).encode()).digest()
    return int.from_bytes(digest[:8]) >> 1
