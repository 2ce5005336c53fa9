"""What decoding needs of a language model and of a classifier, and what it returns.

Anything that answers to these protocols can be decoded with: a transformers model, a completions
server, or a toy of six words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

STOP = "stop"
LENGTH = "length"
NONE_ALLOWED = "none_allowed"

BENIGN, TOXIC = 0, 1
"""The columns of a classifier's answer."""


class NotANumber(ValueError):
    """A model returned what is no number, as one does whose weights are broken or overflow."""


@dataclass(frozen=True)
class NextTokens:
    """The likeliest next tokens of L hypotheses, on the CPU.

    ``tokens`` is (L, n) int64, likeliest first, and ``log_probs`` (L, n) float32: log-probabilities
    over the whole vocabulary at the temperature asked for. n is the number asked for, or the
    size of a smaller vocabulary. Raises ``NotANumber``.
    """

    tokens: Tensor
    log_probs: Tensor

    def __post_init__(self) -> None:
        if bool(self.log_probs.isnan().any()):
            raise NotANumber("The language model returned a log-probability that is no number.")


class LanguageModel(Protocol):
    """A causal language model that several hypotheses are continued with at once."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ``tokens``, without marks such as the end of text; half a character is U+FFFD."""

    def ends(self, tokens: Tensor) -> Tensor:
        """Bool, as ``tokens``: which of them end a statement, having a newline or being such a mark."""

    def start(self, prompts: Sequence[Sequence[int]], *, best: int, temperature: float, steps: int) -> NextTokens:
        """Read B prompts; the ``best`` next tokens of each, one hypothesis a prompt.

        ``temperature`` divides the logits before the log-softmax, here and in each ``step``.
        ``steps`` is the most tokens that each prompt is continued with.
        """

    def step(self, parents: Tensor, tokens: Tensor) -> NextTokens:
        """Continue the hypotheses ``parents`` (L,) of the last call with ``tokens`` (L,).

        ``parents`` may leave out, reorder and repeat hypotheses.
        """


class Classifier(Protocol):
    """A judge of texts."""

    def log_probs(self, texts: Sequence[str]) -> Tensor:
        """(N, 2) float32 on the CPU: the log-probabilities of ``BENIGN`` and of ``TOXIC``."""


@dataclass(frozen=True)
class Hypothesis:
    """A decoded statement: what stands before its first newline, and how it came about.

    ``log_probs`` has one entry a token: the log-probability under the model at the given
    temperature, over the whole vocabulary.
    """

    text: str
    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    finish_reason: str


def statement(text: str) -> str:
    """What stands before the first newline, less half a character that the token limit cut off.

    Without null characters: no database stores them, and nobody sees them.
    """
    return text.split("\n", 1)[0].rstrip("\ufffd").replace("\0", "").strip()
