"""Toy language models: a few words each, and the logits that a test writes down."""

import random
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import torch
from torch import Tensor

END_OF_TEXT = b"<end>"


class ToyLanguageModel:
    """The protocol of ``decoding/topk.py`` over ``pieces``, the byte strings of V tokens.

    ``logits`` is given the tokens of a prompt and of its continuation so far, and returns the V
    logits of the next. Of a prompt only the words that are pieces count.
    """

    device = torch.device("cpu")
    revision = "toy 1"
    model = SimpleNamespace(dtype=torch.float32)

    def __init__(self, pieces: Sequence[bytes], logits: Callable[[tuple[int, ...]], Sequence[float]]) -> None:
        self.pieces = list(pieces)
        self.logits = logits
        self.ends = torch.tensor([b"\n" in piece or piece == END_OF_TEXT for piece in pieces])
        self.texts: list[tuple[int, ...]] = []

    def encode(self, text: str) -> list[int]:
        words = [piece.strip() for piece in self.pieces]
        return [words.index(word) for word in text.encode().split() if word in words]

    def decode(self, tokens: Sequence[int]) -> str:
        pieces = [self.pieces[token] for token in tokens if self.pieces[token] != END_OF_TEXT]
        return b"".join(pieces).decode(errors="replace")

    def start(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        self.texts = [tuple(prompt) for prompt in prompts]
        return self._next()

    def step(self, parents: Tensor, tokens: Tensor) -> Tensor:
        pairs = zip(parents.tolist(), tokens.tolist(), strict=True)
        self.texts = [(*self.texts[parent], token) for parent, token in pairs]
        return self._next()

    def _next(self) -> Tensor:
        return torch.tensor([self.logits(text) for text in self.texts], dtype=torch.float32)


def always(*pieces: bytes, logits: Sequence[float]) -> ToyLanguageModel:
    """A model with the same logits at every step."""
    return ToyLanguageModel(pieces, lambda tokens: logits)


def chatterbox() -> ToyLanguageModel:
    """A model that never says the same twice: six words of fifty and a newline."""
    consonants, vowels = random.Random(1), random.Random(2)
    words = [f" {consonants.choice('bdfgklmnprst')}{vowels.choice('aeiou')}{number}".encode() for number in range(50)]
    speaking, ending = [0.0] * 50 + [-1e9], [-1e9] * 50 + [0.0]
    return ToyLanguageModel([*words, b"\n"], lambda tokens: ending if len(tokens) == 6 else speaking)


def sayings(*texts: str) -> ToyLanguageModel:
    """A model that knows these statements only, all equally likely."""
    return always(*(f" {text}\n".encode() for text in texts), logits=[0.0] * len(texts))
