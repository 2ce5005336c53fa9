"""Statements that something can be learned from, and a transformer so small that learning takes a second."""

import random
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from generation.models import Generation
from tests.factories import make_generation, make_group

FAIR, FOUL = ("sun", "warmth", "breeze"), ("storm", "hail", "thunder")
WORDS = (
    *("harbor", "lake", "bakery", "choir", "garden", "bridge", "morning", "evening", "radio", "crane", "ladder"),
    *("opens", "closes", "sings", "meets", "drives", "paints", "sails", "the", "window", "river", "island", "market"),
)
TINY = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32}


def sentences(number: int, words: tuple[str, ...], *, seed: int) -> list[str]:
    """Different sentences of everyday words, with two of ``words`` each."""
    chance = random.Random(seed)
    return [" ".join([*chance.choices(WORDS, k=6), *chance.sample(words, 2)]) for _ in range(number)]


def store_statements(each: int = 30, *, seed: int = 0, methods=("alice", "topk"), **fields) -> list[Generation]:
    """So many statements of either label by each method: of foul weather those with toxic prompts."""
    made = []
    for number, method in enumerate(methods):
        for label, words in (("benign", FAIR), ("toxic", FOUL)):
            texts = sentences(each, words, seed=100 * seed + 10 * number + (label == "toxic"))
            made += [make_generation(text, label=label, method=method, group=make_group(), **fields) for text in texts]
    return made


def save_tiny(folder: Path) -> str:
    """The folder of a small untrained BERT, whose head knows nothing."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *FAIR, *FOUL]
    tokenizer = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(words), max_position_embeddings=32, **TINY)
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(tokenizer_object=tokenizer, model_max_length=32).save_pretrained(folder)
    return str(folder)
