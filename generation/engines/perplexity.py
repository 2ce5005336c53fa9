"""How well a causal language model predicts texts: many at once, and the same whatever they are read with.

The perplexity of a text is exp of the mean negative log-probability of its tokens, each predicted from those before
it, as in transformers' guide "Perplexity of fixed-length models" and as exp of its models' own loss. Before a text
comes what the model's tokenizer puts there, such as the mark of the beginning that Llama was trained with, and nothing
else. Where it puts nothing, as with GPT-2, the first token has nothing before it and is not predicted. (Put in front
by hand, GPT-2's end of text would be a choice of ours: the figure would be no longer what others compute.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from generation.engines.transformers_model import TransformersLanguageModel, opening_tokens

LONGEST_WINDOW = 2048
"""Tokens that are read together at most, by a model that reads more, too: the memory of one text is bounded."""
BYTES_OF_LOGITS_ON_CPU = 2**28
BYTES_OF_LOGITS_ON_GPU = 2**32
BYTES_A_LOGIT = 4
BYTES_AT_ONCE = 2**26  # of logits that are turned into log-probabilities


@dataclass(frozen=True)
class Surprise:
    """The sum of the negative log-probabilities (nats) of so many predicted ``tokens``."""

    total: float
    tokens: int


@dataclass(frozen=True)
class _Window:
    """Tokens of the text with this number, of which those from ``first`` on are predicted."""

    text: int
    tokens: Sequence[int]
    first: int


class Predictor:
    """A causal language model that says how surprising texts are. ``tokens_a_forward`` bounds the memory."""

    def __init__(self, language_model: TransformersLanguageModel) -> None:
        self.model: Any = language_model.model
        self.name = language_model.name
        self.revision = language_model.revision
        self.device = language_model.device
        self.encode = language_model.encode
        self.opening = opening_tokens(language_model.tokenizer)
        self.longest = min(language_model.context_length, LONGEST_WINDOW)
        room = BYTES_OF_LOGITS_ON_CPU if self.device.type == "cpu" else BYTES_OF_LOGITS_ON_GPU
        self.tokens_a_forward = max(1, room // (BYTES_A_LOGIT * self.model.config.vocab_size))

    @torch.inference_mode()
    def read(self, texts: Sequence[str]) -> list[Surprise]:
        """What each text costs, in the order of the texts.

        One longer than ``longest`` tokens is read by windows of that length, which overlap by half: each of its tokens
        is predicted once, from half a window at least.
        """
        windows = [window for number, text in enumerate(texts) for window in self._windows(number, text)]
        windows.sort(key=lambda window: len(window.tokens))
        totals, counts = [0.0] * len(texts), [0] * len(texts)
        for batch in self._batches(windows):
            for window, total in zip(batch, self._forward(batch), strict=True):
                totals[window.text] += total
                counts[window.text] += len(window.tokens) - window.first
        return [Surprise(total, count) for total, count in zip(totals, counts, strict=True)]

    def _windows(self, number: int, text: str) -> Iterator[_Window]:
        """The parts of a text that are read together: one, for nearly every text; none, if no token is predicted."""
        tokens = [*self.opening, *self.encode(text)]
        done = max(len(self.opening), 1)
        for start in range(0, len(tokens), max(self.longest // 2, 1)):
            end = min(start + self.longest, len(tokens))
            if done < end:
                yield _Window(number, tokens[start:end], done - start)
                done = end

    def _batches(self, windows: list[_Window]) -> Iterator[list[_Window]]:
        """Windows, the shortest first, in parts that take no more tokens than a forward may, padding counted."""
        start = 0
        for end in range(1, len(windows) + 1):
            if end == len(windows) or (end + 1 - start) * len(windows[end].tokens) > self.tokens_a_forward:
                yield windows[start:end]
                start = end

    def _forward(self, windows: list[_Window]) -> list[float]:
        """Of each of B windows the sum of the negative log-probabilities of its predicted tokens.

        They are padded on the right, where no earlier token sees it.
        """
        B, T = len(windows), len(windows[-1].tokens)
        ids = torch.zeros((B, T), dtype=torch.long)
        is_predicted = torch.zeros((B, T), dtype=torch.bool)
        for row, window in enumerate(windows):
            ids[row, : len(window.tokens)] = torch.tensor(window.tokens)
            is_predicted[row, window.first : len(window.tokens)] = True
        ids, is_predicted = ids.to(self.device), is_predicted.to(self.device)
        dtype = self.model.dtype
        later = torch.ones((T, T), dtype=torch.bool, device=self.device).triu(1)
        bias = torch.zeros((T, T), dtype=dtype, device=self.device).masked_fill_(later, torch.finfo(dtype).min)
        logits = self.model(
            input_ids=ids,
            attention_mask=bias.expand(B, 1, T, T),
            position_ids=torch.arange(T, device=self.device).expand(B, T),
            use_cache=False,
        ).logits  # (B, T, V): of what comes after each token
        at_once = max(1, BYTES_AT_ONCE // (BYTES_A_LOGIT * T * logits.shape[-1]))
        parts = zip(
            *(torch.split(tensor, at_once) for tensor in (logits[:, :-1], ids[:, 1:], is_predicted[:, 1:])), strict=True
        )
        return [total for part in parts for total in _totals(*part)]


def _totals(logits: Tensor, ids: Tensor, is_predicted: Tensor) -> list[float]:
    """Of each row of (B, T, V) logits the sum over its predicted tokens of minus the log-probability of its ids."""
    logits = logits.float()
    costs = logits.logsumexp(-1) - logits.gather(-1, ids[:, :, None])[:, :, 0]  # (B, T)
    # A likelihood of 1 rounded up would be a cost below 0.
    kept = costs.clamp(min=0).where(is_predicted, 0)
    totals: list[float] = kept.double().sum(-1).tolist()
    return totals
