"""What a worker computes on, and how many prompts it decodes there at once."""

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

NAMES = ("auto", "cpu", "cuda")
PROMPTS_ON_A_CPU = 16  # more are no faster: they keep its cores busy already
SHARE_OF_FREE_MEMORY = 0.6  # the rest is for the classifier's texts and what the allocator cannot use
COPIES_OF_THE_CACHE = 1.5  # a layer's keys and values are copied when they grow
COPIES_OF_THE_LOGITS = 3  # the model's, those divided by the temperature, and what the best are chosen from
BYTES_A_LOGIT = 4

Result = TypeVar("Result")


class DeviceUnavailable(RuntimeError):
    """The device that the settings name is not there."""


class OutOfMemory(RuntimeError):
    """Not even one prompt at a time fits into the memory of the device."""


def choose(name: str) -> torch.device:
    """The device called ``name``; ``auto`` is CUDA where there is some. Raises ``DeviceUnavailable``."""
    if name not in NAMES:
        raise DeviceUnavailable(f"HUMANVAL_DEVICE is {name!r}. Set it to one of: {', '.join(NAMES)}.")
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise DeviceUnavailable(
            "HUMANVAL_DEVICE is 'cuda', and torch finds no CUDA device on this worker's machine. Start a worker where "
            "there is one, with the CUDA build of torch, or set HUMANVAL_DEVICE to 'auto' or 'cpu'."
        )
    return torch.device("cuda" if there and name != "cpu" else "cpu")


def describe(device: torch.device | str) -> str:
    """The device as a run notes it: a GPU with its name."""
    if str(device).startswith("cuda"):
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return str(device)


def prompts_at_once(model: Any, prompts: Sequence[str], *, beam: int, steps: int) -> int:
    """How many of ``prompts`` to decode at once with ``beam`` hypotheses each and ``steps`` tokens.

    On a GPU as many as its free memory holds by an estimate: of each prompt the keys and values of its
    tokens and of each hypothesis's at each step, and the logits of a step. A
    server has its own memory, and parts its work itself.
    """
    if model.device == "server":
        return len(prompts)
    device = torch.device(model.device)
    if device.type != "cuda":
        return PROMPTS_ON_A_CPU
    longest = max(len(model.encode(prompt)) for prompt in prompts)
    need = bytes_a_prompt(model.model.config, model.dtype.itemsize, tokens=longest + beam * steps, beam=beam)
    model.forget()
    free, _ = torch.cuda.mem_get_info(device)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # by torch, to use again
    return max(1, min(len(prompts), int(SHARE_OF_FREE_MEMORY * (free + kept) / need)))


def give_memory_back() -> None:
    """Hand freed memory back to the system. glibc keeps it in pieces, by which a long run grows by a sixth."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def bytes_a_prompt(config: Any, bytes_a_number: int, *, tokens: int, beam: int) -> float:
    """What a prompt takes of the memory: the cache of so many tokens, and the logits of its beam.

    ``config`` is a transformers model's.
    """
    heads = config.num_attention_heads
    key_heads = getattr(config, "num_key_value_heads", None) or heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    cache = 2 * config.num_hidden_layers * key_heads * size * bytes_a_number * tokens
    logits = BYTES_A_LOGIT * beam * config.vocab_size
    return float(COPIES_OF_THE_CACHE * cache + COPIES_OF_THE_LOGITS * logits)


class Batches:
    """Decodes prompts in batches, which are halved for good each time that the memory is too small."""

    def __init__(self) -> None:
        self.most: float = float("inf")

    def decode(
        self,
        decode: Callable[[Sequence[str], Sequence[int]], Sequence[Result]],
        prompts: Sequence[str],
        seeds: Sequence[int],
        *,
        at_once: int,
    ) -> list[Result]:
        """What ``decode`` makes of all prompts, ``at_once`` of them at a time or less. Raises ``OutOfMemory``."""
        done: list[Result] = []
        while len(done) < len(prompts):
            size = int(min(at_once, self.most, len(prompts) - len(done)))
            part = slice(len(done), len(done) + size)
            try:
                done += decode(prompts[part], seeds[part])
                continue
            except torch.OutOfMemoryError as error:
                if size == 1:
                    raise OutOfMemory(
                        "The device has too little memory for even one prompt at a time. Use a smaller model, beam or "
                        "vocabulary, fewer new tokens, bfloat16, or a device with more memory that nobody else uses."
                    ) from error
            # Here, where the error no longer holds on to the tensors of the attempt.
            self.most = size // 2
            torch.cuda.empty_cache()
        return done
