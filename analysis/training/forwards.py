"""Forwards and gradients of a batch, in parts that fit into the memory."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from analysis.training.batches import padded
from analysis.training.outcomes import Diverged, Scores
from generation import heads
from generation.devices import OutOfMemory

TOKENS_A_FORWARD = 8192  # where nothing is learned
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SAID_OF_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)
"""What errors that are no ``OutOfMemoryError`` say, in the words of torch and of CUDA's libraries."""


class Forwards:
    """Runs a model on rows of tokens: learns from ``at_once`` or less, and reads ``read_at_once`` without learning.

    Each is halved each time that the memory is too small for it.
    """

    def __init__(
        self,
        model: Any,
        *,
        pad: int,
        device: torch.device,
        precision: str,
        class_weights: tuple[float, float],
        at_once: int,
    ) -> None:
        if precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}.")
        self.model = model
        self.pad = pad
        self.device = device
        self.dtype = PRECISIONS[precision]
        self.class_weights = torch.tensor(class_weights)
        self.at_once = self.read_at_once = at_once
        self.notes: list[str] = []

    def learn(self, rows: Sequence[Sequence[int]], toxic: Tensor, *, seed: int) -> float:
        """The mean loss of a batch, whose gradients are left in the model; ``seed`` decides what is dropped out.

        The parts' gradients add up to those of the whole batch. Raises ``OutOfMemory``.
        """
        self.model.train()
        while True:
            try:
                return self._learn(rows, toxic, seed)
            except (RuntimeError, MemoryError) as error:
                self.at_once = self._half(error, min(len(rows), self.at_once), "")
            # Here, where the error no longer holds on to the tensors of the attempt.
            self.model.zero_grad(set_to_none=True)
            _empty(self.device)

    def _learn(self, rows: Sequence[Sequence[int]], toxic: Tensor, seed: int) -> float:
        self.model.zero_grad(set_to_none=True)
        torch.manual_seed(seed)
        total = 0.0
        for start in range(0, len(rows), self.at_once):
            part = slice(start, start + self.at_once)
            loss = self._losses(self._logits(rows[part]), toxic[part]).sum() / len(rows)
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        return total

    @torch.inference_mode()
    def logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """(N, 2) float32 on the CPU, in the order of ``rows``; nothing is dropped out. Raises ``OutOfMemory``."""
        self.model.eval()
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        done: list[Tensor] = []
        start = 0
        while start < len(order):
            size = self._fitting([len(rows[place]) for place in order[start : start + self.read_at_once]])
            try:
                done.append(self._logits([rows[place] for place in order[start : start + size]]).cpu())
                start += size
                continue
            except (RuntimeError, MemoryError) as error:
                self.read_at_once = self._half(error, size, ", where nothing was learned")
            _empty(self.device)
        logits = torch.empty(len(rows), 2)
        logits[order] = torch.cat(done)
        return logits

    def score(self, rows: Sequence[Sequence[int]], toxic: Tensor) -> Scores:
        """The mean loss and the AUC on (N,) bool ``toxic``. Raises ``Diverged`` if there are none any more."""
        logits = self.logits(rows)
        loss = float(self._losses(logits, toxic).mean())
        if not math.isfinite(loss):
            raise Diverged(NO_NUMBER.format(where="on the validation texts"))
        return Scores(loss=loss, auc=heads.auc((logits[:, 1] - logits[:, 0]).double(), toxic))

    def _logits(self, rows: Sequence[Sequence[int]]) -> Tensor:
        ids, mask = padded(rows, self.pad)
        cast = torch.autocast(self.device.type, self.dtype) if self.dtype != torch.float32 else contextlib.nullcontext()
        with cast:
            logits: Tensor = self.model(input_ids=ids.to(self.device), attention_mask=mask.to(self.device)).logits
        return logits.float()

    def _losses(self, logits: Tensor, toxic: Tensor) -> Tensor:
        """(B,) losses, each times the weight of its class."""
        classes = toxic.long()
        weights = self.class_weights[classes].to(logits.device)
        return cross_entropy(logits, classes.to(logits.device), reduction="none") * weights

    def _fitting(self, lengths: Sequence[int]) -> int:
        """How many of the rows, the shortest first, make a forward of bounded size."""
        return next(
            (count for count, length in enumerate(lengths) if count and (count + 1) * length > TOKENS_A_FORWARD),
            len(lengths),
        )

    def _half(self, error: RuntimeError | MemoryError, tried: int, where: str) -> int:
        """How many to try after so many were too many."""
        if not is_out_of_memory(error):
            raise error
        if tried == 1:
            raise OutOfMemory(TOO_LITTLE_MEMORY) from error
        self.notes.append(
            f"The memory was too small for {tried} texts at once{where}, so they were taken {tried // 2} at a time; "
            "a batch is as large as before."
        )
        return tried // 2


NO_NUMBER = (
    "The loss {where} is no number any more: training diverged. Use a smaller learning rate, a longer warm-up, or "
    "float32."
)
NO_NUMBER_AT_ALL = (
    "The model {name} makes no numbers of the validation texts, before any training: its own weights are damaged, or "
    "nothing for {precision}. Choose another model, or float32."
)
TOO_LITTLE_MEMORY = (
    "The device has too little memory to train on even one text at a time. Use a smaller model, a smaller longest, "
    "bfloat16, or a device with more memory that nobody else uses."
)


@contextlib.contextmanager
def memory_in_words() -> Iterator[None]:
    """Raises ``OutOfMemory`` for what torch raises of it."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise OutOfMemory(TOO_LITTLE_MEMORY) from error
        raise


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(
        said in str(error) for said in SAID_OF_MEMORY
    )


def _empty(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()
