"""The likeliest next tokens from a model's logits."""

import torch
from torch import Tensor

from generation.decoding.protocols import NextTokens

ROWS_IN_A_PROCESSOR_S_CACHE = 16


def likeliest(logits: Tensor, *, best: int, temperature: float) -> NextTokens:
    """The ``best`` tokens of each row of ``logits`` (L, V) and their log-probabilities, likeliest first.

    The log-softmax is over the whole vocabulary, of the logits divided by ``temperature``. ``best``
    may be more than V.
    """
    n = min(best, logits.shape[-1])
    parts = torch.split(logits, ROWS_IN_A_PROCESSOR_S_CACHE) if logits.device.type == "cpu" else [logits]
    found = [(part.float() / temperature).log_softmax(-1).topk(n, dim=-1) for part in parts]
    return NextTokens(
        torch.cat([part.indices for part in found]).cpu(), torch.cat([part.values for part in found]).cpu()
    )
