"""Top-k decoding (Fan et al., 2018), as the paper uses it without ALICE (section 3.3).

Pure torch: a language model is anything that answers to ``LanguageModel``. Every statement
has a random stream of its own, so that it does not depend on which others share its batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from generation.parameters import TopKParameters

STOP = "stop"
LENGTH = "length"


class LanguageModel(Protocol):
    """What decoding needs of a language model; ``V`` is the size of its vocabulary."""

    ends: Tensor
    """(V,) bool: tokens that end a statement: those with a newline, and marks such as the end of text."""

    device: torch.device

    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of ``tokens``, without such marks."""

    def start(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Read B prompts and return the (B, V) float32 logits of the next token."""

    def step(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Go on from the hypotheses ``parents`` (B',) of the last call with ``tokens`` (B',).

        Returns the (B', V) logits of the token after that. ``parents`` may leave out,
        reorder and repeat hypotheses.
        """


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


@torch.inference_mode()
def decode(
    model: LanguageModel,
    prompts: Sequence[str],
    *,
    seeds: Sequence[int],
    parameters: TopKParameters,
    on_step: Callable[[], None] = lambda: None,
) -> list[Hypothesis]:
    """Continue each of B prompts until a newline or the token limit.

    ``seeds`` (B) start the random stream of each statement. ``on_step`` is called before
    each step of the model; what it raises ends the decoding.
    """
    if len(seeds) != len(prompts):
        raise ValueError(f"There are {len(prompts)} prompts and {len(seeds)} seeds; give one seed a prompt.")
    if not prompts:
        return []
    tokens: list[list[int]] = [[] for _ in prompts]
    log_probs: list[list[float]] = [[] for _ in prompts]
    reasons = [LENGTH] * len(prompts)
    streams = [torch.Generator().manual_seed(seed) for seed in seeds]
    k = min(parameters.k, len(model.ends))
    running = torch.arange(len(prompts))  # (B',) the statements that have not ended

    on_step()
    logits = model.start([model.encode(prompt) for prompt in prompts])
    for position in range(parameters.max_new_tokens):
        noise = _gumbel_noise([streams[statement] for statement in running.tolist()], k)
        chosen, chosen_log_probs = _sample(logits, noise, parameters.temperature)
        ended = model.ends[chosen].cpu()
        for statement, token, log_prob, end in zip(
            running.tolist(), chosen.tolist(), chosen_log_probs.tolist(), ended.tolist(), strict=True
        ):
            tokens[statement].append(token)
            log_probs[statement].append(log_prob)
            if end:
                reasons[statement] = STOP
        kept = (~ended).nonzero().flatten()
        running = running[kept]
        if not len(running) or position + 1 == parameters.max_new_tokens:
            break
        on_step()
        kept = kept.to(model.device)
        logits = model.step(kept, chosen[kept])

    return [
        Hypothesis(_statement(model.decode(ids)), tuple(ids), tuple(scores), reason)
        for ids, scores, reason in zip(tokens, log_probs, reasons, strict=True)
    ]


def _sample(logits: Tensor, noise: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Draw one of the k best tokens a row: adding Gumbel noise and taking the best is sampling.

    ``logits`` is (B', V), ``noise`` (B', k); returns the tokens (B') and their log-probabilities.
    """
    log_probs = (logits.float() / temperature).log_softmax(-1)
    best, candidates = log_probs.topk(noise.shape[-1], dim=-1)  # (B', k)
    choice = (best + noise.to(best.device)).argmax(-1, keepdim=True)  # (B', 1)
    return candidates.gather(-1, choice).squeeze(-1), best.gather(-1, choice).squeeze(-1)


def _gumbel_noise(streams: Sequence[torch.Generator], k: int) -> Tensor:
    """(B', k) noise, each statement's drawn from its own stream on the CPU."""
    uniform = torch.stack([torch.rand(k, generator=stream) for stream in streams])
    tiny = torch.finfo(uniform.dtype).tiny
    return -torch.log(-torch.log(uniform.clamp(min=tiny, max=1 - torch.finfo(uniform.dtype).eps)))


def _statement(text: str) -> str:
    """What stands before the first newline, less half a character that the token limit cut off.

    Without null characters: no database stores them, and nobody sees them.
    """
    return text.split("\n", 1)[0].rstrip("\ufffd").replace("\0", "").strip()
