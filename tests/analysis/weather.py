"""Harmless sentences with a rule that can be learned, and small models that know nothing: what is about weather is
of the class "toxic"."""

import random
from pathlib import Path

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from analysis.training.examples import Examples

WEATHER = ["rain fell on", "a storm reached", "it snowed in", "fog covers", "the wind is cold in"]
OTHER = ["the choir sang in", "a baker moved to", "my aunt drives to", "the chess club meets in", "they painted"]
PLACES = ["the harbor", "town", "the valley", "Lisbon", "the village", "the old market", "the school", "the station"]
ENDINGS = ["", " today", " and the bridge", " again, as it was in spring and in the autumn before", " late on Monday"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}


def examples(count=120, *, seed=0, share=0.4) -> Examples:
    """Of every five the last is for validation."""
    draw = random.Random(seed)
    toxic = [draw.random() < share for _ in range(count)]
    texts = [
        f"{draw.choice(WEATHER if weather else OTHER)} {draw.choice(PLACES)}{draw.choice(ENDINGS)}" for weather in toxic
    ]
    return Examples(texts, np.array(toxic), np.arange(count) % 5 == 4)


def tokenizer(*, kind="bert"):
    words = sorted({word for part in (WEATHER, OTHER, PLACES, ENDINGS) for text in part for word in pieces(text)})
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(["pad_token", "unk_token", "cls_token", "sep_token"], SPECIAL, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)


def pieces(text):
    return text.lower().replace(",", " ,").split()


def named(labels):
    return {"id2label": dict(enumerate(labels)), "label2id": {label: number for number, label in enumerate(labels)}}


def save_bert(folder: Path, labels=("LABEL_0", "LABEL_1"), *, body_only=False, **options) -> str:
    config = transformers.BertConfig(vocab_size=100, max_position_embeddings=32, **SIZES, **named(labels), **options)
    return _save(transformers.BertForSequenceClassification(config), folder, body_only)


def save_roberta(folder: Path, labels=("LABEL_0", "LABEL_1"), *, body_only=False) -> str:
    config = transformers.RobertaConfig(
        vocab_size=100, max_position_embeddings=34, pad_token_id=0, type_vocab_size=1, **SIZES, **named(labels)
    )
    return _save(transformers.RobertaForSequenceClassification(config), folder, body_only)


def save_distilbert(folder: Path, labels=("LABEL_0", "LABEL_1"), *, body_only=False) -> str:
    config = transformers.DistilBertConfig(
        vocab_size=100, max_position_embeddings=32, dim=16, hidden_dim=24, n_layers=1, n_heads=2, **named(labels)
    )
    return _save(transformers.DistilBertForSequenceClassification(config), folder, body_only)


def _save(model, folder: Path, body_only: bool) -> str:
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weights in model.named_parameters():
            if "LayerNorm" not in name and "layer_norm" not in name:
                weights.copy_(torch.randn(weights.shape, generator=draw) * 0.2)
    (model.base_model if body_only else model).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)
