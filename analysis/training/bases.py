"""Models to fine-tune: each becomes a classifier with the labels benign (0) and toxic (1)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from analysis.training.batches import padded, tokenise
from analysis.training.pooling import LABELS, freeze_mean_pooling, make_learnable, tokenizer_of, with_mean_pooling
from generation.classifiers import (
    EMBEDDED_ENCODER,
    ClassifierUnavailable,
    NoToxicLabel,
    load_encoder,
    longest,
    prepare_transformers,
    toxic_label,
)
from generation.model_files import revision_of, why_not_loaded

HEAD_SPREAD = 0.02  # of the weights of a new head, as BERT has it
MOST_TRIED = 1024  # tokens of a text that is read before training, to see whether the model can


@dataclass(frozen=True)
class Base:
    """A transformers classifier of two labels to train, its tokenizer, and where it is from.

    ``notes`` are sentences about its head.
    """

    name: str
    model: Any
    tokenizer: Any
    revision: str
    notes: tuple[str, ...] = ()


def load_base(name: str, *, device: torch.device, seed: int, allow_downloads: bool = False) -> Base:
    """Return the model called ``name`` to fine-tune: the embedded encoder, a folder, or an id on the hub.

    A folder or an id may be followed by ``#`` and the name or number of its toxic label. A toxicity classifier of
    two labels keeps its head; any other gets a new one, which ``seed`` decides. Raises ``ClassifierUnavailable`` and
    ``NoToxicLabel``.
    """
    prepare_transformers(allow_downloads=allow_downloads)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            base = _embedded(seed) if name == EMBEDDED_ENCODER else _loaded(name, seed, allow_downloads)
        except (NoToxicLabel, ClassifierUnavailable, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # of any kind: foreign code reads a foreign file
            raise ClassifierUnavailable(
                f"The model {name!r} cannot be loaded from this machine. Choose {EMBEDDED_ENCODER!r}, the folder of a "
                "model in the transformers format, or a model id, with HUMANVAL_ALLOW_DOWNLOADS=1 if it may be "
                f"fetched. ({why_not_loaded(error)})"
            ) from error
    base.model.to(device)
    return base


def _embedded(seed: int) -> Base:
    encoder = load_encoder(device=torch.device("cpu"))
    model = with_mean_pooling(encoder.model)
    freeze_mean_pooling(model)
    note = f"The embedded encoder got a layer that takes the mean over tokens, and a new head of seed {seed}."
    return Base(EMBEDDED_ENCODER, model, tokenizer_of(encoder), encoder.revision, (note,))


def _loaded(name: str, seed: int, allow_downloads: bool) -> Base:
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    source, _, label = name.partition("#")
    where: dict[str, Any] = {"local_files_only": not allow_downloads, "trust_remote_code": False}
    config = AutoConfig.from_pretrained(source, **where)
    tokenizer = AutoTokenizer.from_pretrained(source, **where)
    if tokenizer.pad_token_id is None:
        raise ClassifierUnavailable(
            f"The model {source!r} has no token that fills up shorter texts, so it cannot be trained on several at "
            "once. Choose a model of BERT's or RoBERTa's family."
        )
    revision = revision_of(source, config)
    labels = dict(config.id2label)
    if label:
        toxic_label(source, labels, label)  # before the weights, which take a while
        if why := _why_not_two(config):
            raise NoToxicLabel(f"The model {source!r} will get a new head, since {why}. Leave out #{label}.")
    model, report = AutoModelForSequenceClassification.from_pretrained(
        source, **where, dtype=torch.float32, output_loading_info=True
    )
    missing = sorted(report["missing_keys"])
    if label and missing:
        raise NoToxicLabel(
            f"The model {source!r} was not trained to classify texts: it has no {missing[0]}. "
            f"Leave out #{label}: it will get a new head."
        )
    why = "it was not trained to classify texts" if missing else _why_no_head_to_keep(source, model.config, label)
    if why:
        _put_new_head(model, source)
        note = f"The model got a new head of seed {seed}, since {why}."
    else:
        note = "The model was a toxicity classifier and kept its head."
        if toxic_label(source, labels, label) == 0:
            _swap_labels(_last_layer(model, source))
    model.config.id2label = dict(LABELS)
    model.config.label2id = {name: number for number, name in LABELS.items()}
    model.config.problem_type = "single_label_classification"
    if freeze_mean_pooling(model):
        make_learnable(model)
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id
    tokenizer.model_max_length = longest(model, tokenizer)
    _try(model.eval(), tokenizer, source)
    return Base(name, model, tokenizer, revision, (note,))


@torch.no_grad()
def _try(model: Any, tokenizer: Any, source: str) -> None:
    """Refuse a model that cannot read a text of as many tokens as it says next to a short one."""
    most = min(tokenizer.model_max_length, MOST_TRIED)
    ids, mask = padded(tokenise(tokenizer, ["one " * most, "one"], longest=most), tokenizer.pad_token_id)
    try:
        model(input_ids=ids, attention_mask=mask)
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # of any kind: foreign code
        raise ClassifierUnavailable(
            f"The model {source!r} cannot read a text of {ids.shape[1]} tokens next to a short one, though it says so. "
            "Correct model_max_length or the padding token in its tokenizer_config.json, or choose a model of BERT's "
            f"or RoBERTa's family. ({why_not_loaded(error)})"
        ) from error


def _why_no_head_to_keep(source: str, config: Any, label: str) -> str:
    if why := _why_not_two(config):
        return why
    try:
        toxic_label(source, config.id2label, label)
    except NoToxicLabel:
        names = ", ".join(config.id2label.values())
        return f"which of its labels means toxic cannot be told from their names ({names}; write #LABEL after its name)"
    return ""


def _why_not_two(config: Any) -> str:
    if config.num_labels != 2 or config.problem_type == "multi_label_classification":
        return f"its labels are not two of which one is right: {', '.join(config.id2label.values())}"
    return ""


def _last_layer(model: nn.Module, source: str) -> nn.Linear:
    """The layer whose rows are the labels."""
    return model.get_submodule(_name_of_last_layer(model, source))  # type: ignore[return-value]


def _name_of_last_layer(model: Any, source: str) -> str:
    names = [
        name
        for name, part in model.named_modules()
        if isinstance(part, nn.Linear) and part.out_features == model.config.num_labels
    ]
    if not names:
        raise ClassifierUnavailable(
            f"The model {source!r} has no last layer with a row for each label. "
            "Choose a model of BERT's or RoBERTa's family."
        )
    return str(names[-1])


def _put_new_head(model: Any, source: str) -> None:
    path, _, name = _name_of_last_layer(model, source).rpartition(".")
    parent = model.get_submodule(path)
    old = getattr(parent, name)
    new = nn.Linear(old.in_features, 2, bias=old.bias is not None)
    nn.init.normal_(new.weight, std=HEAD_SPREAD)
    if new.bias is not None:
        nn.init.zeros_(new.bias)
    setattr(parent, name, new)
    model.num_labels = 2


@torch.no_grad()
def _swap_labels(layer: nn.Linear) -> None:
    for parameter in layer.parameters():
        parameter.copy_(parameter.flip(0))
