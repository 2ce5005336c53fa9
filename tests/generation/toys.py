"""Toy language models of a few words each, with the logits that a test writes down, and a toy classifier."""

import random
import threading
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from generation.decoding.likeliest import likeliest
from generation.decoding.protocols import NextTokens

END_OF_TEXT = b"<end>"


class ToyLanguageModel(threading.local):
    """The protocol of ``decoding/protocols.py`` over ``pieces``, the byte strings of V tokens.

    Threads stand for workers in some tests, so each has a search of its own.

    ``logits`` is given the tokens of a prompt and of its continuation so far, and returns the V
    logits of the next. Of a prompt only the words that are pieces count.
    """

    name = "toy"
    revision = "toy 1"
    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(self, pieces: Sequence[bytes], logits: Callable[[tuple[int, ...]], Sequence[float]]) -> None:
        self.pieces = list(pieces)
        self.logits = logits
        self.ending = torch.tensor([b"\n" in piece or piece == END_OF_TEXT for piece in pieces])
        self.texts: list[tuple[int, ...]] = []

    def encode(self, text: str) -> list[int]:
        words = [piece.strip() for piece in self.pieces]
        return [words.index(word) for word in text.encode().split() if word in words]

    def decode(self, tokens: Sequence[int]) -> str:
        pieces = [self.pieces[token] for token in tokens if self.pieces[token] != END_OF_TEXT]
        return b"".join(pieces).decode(errors="replace")

    def ends(self, tokens: Tensor) -> Tensor:
        return self.ending[tokens]

    def start(self, prompts: Sequence[Sequence[int]], *, best: int, temperature: float, steps: int) -> NextTokens:
        self.best, self.temperature = best, temperature
        self.texts = [tuple(prompt) for prompt in prompts]
        return self._next()

    def step(self, parents: Tensor, tokens: Tensor) -> NextTokens:
        pairs = zip(parents.tolist(), tokens.tolist(), strict=True)
        self.texts = [(*self.texts[parent], token) for parent, token in pairs]
        return self._next()

    def _next(self) -> NextTokens:
        logits = torch.tensor([self.logits(text) for text in self.texts], dtype=torch.float32)
        return likeliest(logits, best=self.best, temperature=self.temperature)


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


def moody(*words: str) -> ToyLanguageModel:
    """A model that knows fifty words of its own besides these, whose likings hang on all that went before."""
    pieces = [f" {word}".encode() for word in dict.fromkeys(words)] + chatterbox().pieces
    return ToyLanguageModel(pieces, lambda tokens: random.Random(str(tokens)).choices(range(9), k=len(pieces)))


def share_of_o(text: str) -> float:
    return (1 + text.count("o")) / (2 + len(text))


class ToyClassifier:
    """The protocol's classifier by a rule; by default a text is the more toxic the more of its letters are an o."""

    name = "toy classifier"
    revision = "toy 2"
    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(self, toxic_prob: Callable[[str], float] = share_of_o) -> None:
        self.toxic_prob = toxic_prob
        self.texts_read: list[str] = []

    def log_probs(self, texts: Sequence[str]) -> Tensor:
        self.texts_read += texts
        toxic = torch.tensor([self.toxic_prob(text) for text in texts])
        return torch.stack([(1 - toxic).log(), toxic.log()], -1)
