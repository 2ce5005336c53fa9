"""Top-k decoding (Fan et al., 2018), as the paper uses it without ALICE (section 3.3).

Pure torch. Every statement has a random stream of its own, so that it does not depend on which
others share its batch.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from generation.decoding.protocols import LENGTH, STOP, Hypothesis, LanguageModel, statement
from generation.parameters import TopKParameters


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
    running = torch.arange(len(prompts))  # (L,) the statements that have not ended

    on_step()
    likeliest = model.start(
        [model.encode(prompt) for prompt in prompts],
        best=parameters.k,
        temperature=parameters.temperature,
        steps=parameters.max_new_tokens,
    )
    for position in range(parameters.max_new_tokens):
        noise = gumbel_noise([streams[number] for number in running.tolist()], likeliest.tokens.shape[-1])
        # Adding Gumbel noise and taking the best is sampling from the softmax over the k best.
        choice = (likeliest.log_probs + noise).argmax(-1, keepdim=True)  # (L, 1)
        chosen = likeliest.tokens.gather(-1, choice).squeeze(-1)  # (L,)
        chosen_log_probs = likeliest.log_probs.gather(-1, choice).squeeze(-1)
        ended = model.ends(chosen)
        for number, token, log_prob, end in zip(
            running.tolist(), chosen.tolist(), chosen_log_probs.tolist(), ended.tolist(), strict=True
        ):
            tokens[number].append(token)
            log_probs[number].append(log_prob)
            if end:
                reasons[number] = STOP
        kept = (~ended).nonzero().flatten()
        running = running[kept]
        if not len(running) or position + 1 == parameters.max_new_tokens:
            break
        on_step()
        likeliest = model.step(kept, chosen[kept])

    return [
        Hypothesis(statement(model.decode(ids)), tuple(ids), tuple(scores), reason)
        for ids, scores, reason in zip(tokens, log_probs, reasons, strict=True)
    ]


def gumbel_noise(streams: Sequence[torch.Generator], *shape: int) -> Tensor:
    """(L, *shape) noise, each hypothesis's drawn from its own stream on the CPU."""
    uniform = torch.stack([torch.rand(shape, generator=stream) for stream in streams])
    tiny = torch.finfo(uniform.dtype).tiny
    return -torch.log(-torch.log(uniform.clamp(min=tiny, max=1 - torch.finfo(uniform.dtype).eps)))
