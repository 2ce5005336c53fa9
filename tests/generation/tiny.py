"""A language model of seventeen words that knows nothing, for tests of what reads texts."""

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing

WORDS = [
    "my",
    "aunt",
    "drives",
    "a",
    "crane",
    "at",
    "the",
    "harbor",
    "and",
    "choir",
    "sang",
    "in",
    "three",
    "languages",
    "rain",
    "fell",
]
CONTEXT = 16


def make_tokenizer(*, begins_with_a_mark=False):
    vocabulary = {word: number for number, word in enumerate(["<unk>", "<s>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if begins_with_a_mark:
        tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>")


def gpt2():
    torch.manual_seed(3)
    config = transformers.GPT2Config(
        vocab_size=len(WORDS) + 2, n_positions=CONTEXT, n_embd=8, n_layer=2, n_head=2, initializer_range=1.0
    )
    return transformers.GPT2LMHeadModel(config).eval()


def save(folder: Path, model=None) -> str:
    """The folder as transformers load it, by name."""
    (model or gpt2()).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return str(folder)
