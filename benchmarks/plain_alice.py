"""ALICE as a competent reader of the paper would write it: what ours is timed against and has to agree with.

With transformers alone: one prompt at a time, its keys and values cached and put in order after each step,
and each step's candidates all classified, in padded batches. Nothing is pruned and nothing remembered.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize

from generation.decoding.allowed import banned_tokens, repeated_tokens
from generation.decoding.protocols import BENIGN, TOXIC, statement
from generation.heads import Head
from generation.parameters import AliceParameters, Selection

TEXTS_A_BATCH = 64


@dataclass
class PlainLanguageModel:
    """A causal language model of transformers and its tokenizer."""

    model: torch.nn.Module
    tokenizer: object

    def __post_init__(self) -> None:
        texts = self.tokenizer.batch_decode([[token] for token in range(len(self.tokenizer))])
        special = set(self.tokenizer.all_special_ids)
        self.ending = torch.tensor([token in special or "\n" in text for token, text in enumerate(texts)])

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def decode(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(tokens, skip_special_tokens=True)

    def ends(self, tokens: Tensor) -> Tensor:
        return self.ending[tokens]


@dataclass
class PlainClassifier:
    """A sentence encoder of transformers, its tokenizer, and a logistic head on the mean of its hidden states."""

    model: torch.nn.Module
    tokenizer: object
    head: Head

    def log_probs(self, texts: Sequence[str]) -> Tensor:
        """(N, 2) log-probabilities of benign and of toxic."""
        parts = [texts[start : start + TEXTS_A_BATCH] for start in range(0, len(texts), TEXTS_A_BATCH)]
        return torch.cat([self._batch(part) for part in parts])

    def _batch(self, texts: Sequence[str]) -> Tensor:
        batch = self.tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt").to(self.model.device)
        hidden = self.model(**batch).last_hidden_state
        mask = batch["attention_mask"][:, :, None]
        logits = self.head.logits(normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1))
        return torch.stack([logsigmoid(-logits), logsigmoid(logits)], -1).cpu()


def plain_copies(language_model, classifier) -> tuple[PlainLanguageModel, PlainClassifier]:
    """The same models as transformers loads them: ``language_model`` and ``classifier`` are this project's."""
    from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

    def load(kind, model):
        folder = model.config.name_or_path
        loaded = kind.from_pretrained(folder, local_files_only=True, dtype=model.dtype)
        return loaded.to(model.device).eval(), AutoTokenizer.from_pretrained(folder, local_files_only=True)

    return (
        PlainLanguageModel(*load(AutoModelForCausalLM, language_model.model)),
        PlainClassifier(*load(AutoModel, classifier.encoder.model), classifier.head),
    )


@dataclass(frozen=True)
class Hypothesis:
    """``row`` is where what it continues stood in the last forward."""

    tokens: tuple[int, ...] = ()
    text: str = ""
    total: float = 0.0
    ended: bool = False
    row: int = 0

    @property
    def mean(self) -> float:
        return self.total / len(self.tokens) if self.tokens else 0.0


@torch.inference_mode()
def plain_decode(
    model: PlainLanguageModel,
    classifier: PlainClassifier,
    prompt: str,
    *,
    parameters: AliceParameters,
    group_words: Collection[str] = (),
) -> tuple[str, tuple[int, ...], float]:
    """The best statement after ``prompt``: its text, tokens and score. Only ``Selection.TOPK`` is read here."""
    if parameters.selection is not Selection.TOPK:
        raise ValueError(f"The plain reading takes the best candidates; it has no selection {parameters.selection}.")
    ids = model.encode(prompt)
    banned = banned_tokens(model, ids, group_words=group_words if parameters.group_words_allowed else ())
    device = model.model.device
    beam = [Hypothesis()]
    output = model.model(input_ids=torch.tensor([ids], device=device), use_cache=True, logits_to_keep=1)
    for position in range(parameters.max_new_tokens):
        log_probs = (output.logits[:, -1].float() / parameters.temperature).log_softmax(-1)  # (L, V)
        likeliest = log_probs.topk(min(parameters.vocabulary, log_probs.shape[-1]))  # (L, n)
        pool = step(model, classifier, beam, likeliest, banned, parameters)
        beam = sorted(pool, key=lambda hypothesis: -hypothesis.mean)[: parameters.beam]
        running = [hypothesis for hypothesis in beam if not hypothesis.ended]
        if not running or position + 1 == parameters.max_new_tokens:
            break
        cache = output.past_key_values
        cache.reorder_cache(torch.tensor([hypothesis.row for hypothesis in running], device=device))
        last = torch.tensor([[hypothesis.tokens[-1]] for hypothesis in running], device=device)
        output = model.model(input_ids=last, past_key_values=cache, use_cache=True)
    return beam[0].text, beam[0].tokens, beam[0].mean


def step(
    model: PlainLanguageModel,
    classifier: PlainClassifier,
    beam: Sequence[Hypothesis],
    likeliest: tuple[Tensor, Tensor],
    banned: frozenset[int],
    parameters: AliceParameters,
) -> list[Hypothesis]:
    """What has ended and every allowed continuation of what has not; ``likeliest`` are log-probabilities and tokens."""
    running = [hypothesis for hypothesis in beam if not hypothesis.ended]
    candidates = []
    for row, (hypothesis, log_probs, tokens) in enumerate(zip(running, *map(Tensor.tolist, likeliest), strict=True)):
        repeated = repeated_tokens(hypothesis.tokens, parameters.no_repeat_ngram_size)
        candidates += [
            (row, token, log_prob)
            for log_prob, token in zip(log_probs, tokens, strict=True)
            if token not in banned and (token not in repeated or model.ending[token])
        ]
    continued = {running[row] for row, _, _ in candidates}
    ended = [replace(hypothesis, ended=True) for hypothesis in beam if hypothesis not in continued]
    if not candidates:
        return ended
    sequences = [(*running[row].tokens, token) for row, token, _ in candidates]
    texts = [statement(text) for text in model.tokenizer.batch_decode(sequences, skip_special_tokens=True)]
    column = TOXIC if parameters.direction.sought_class == "toxic" else BENIGN
    votes = classifier.log_probs(texts)[:, column].tolist()
    return ended + [
        Hypothesis(
            tokens=tokens,
            text=text,
            total=running[row].total + parameters.lm_weight * log_prob + parameters.classifier_weight * vote,
            ended=bool(model.ending[token]),
            row=row,
        )
        for (row, token, log_prob), tokens, text, vote in zip(candidates, sequences, texts, votes, strict=True)
    ]
