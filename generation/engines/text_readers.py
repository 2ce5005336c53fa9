"""Models that read texts: sentence encoders and sequence classifiers of transformers.

Most of ALICE's time is spent here, so texts of one call share forwards without padding, and words
are tokenised once a process.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import chain

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize, scaled_dot_product_attention

from generation.heads import Head

# The quickest sizes of a forward: on a CPU its numbers stay in the caches, a GPU wants more work at once.
TOKENS_A_FORWARD_ON_CPU = 2048
TOKENS_A_FORWARD_ON_GPU = 32_768
MOST_WORDS_KEPT = 20_000  # some 10 MB
PACKED_ATTENTION = "humanval_packed"


class Layout(StrEnum):
    """How texts share a forward: end to end, only with texts as long, or padded to the longest."""

    PACKED = "packed"
    BUCKETED = "bucketed"
    PADDED = "padded"


class Reader:
    """A transformers model that turns each text into a row of numbers.

    ``layout`` changes the speed and nothing else; ``tokens_a_forward`` bounds the memory.
    """

    def __init__(self, model, tokenizer, *, longest: int, name: str, revision: str, device: torch.device) -> None:
        self.model = model.to(device).eval()
        self.tokenize = WordByWord(tokenizer, longest) if WordByWord.suits(tokenizer) else Whole(tokenizer, longest)
        self.pad = tokenizer.pad_token_id
        self.name = name
        self.revision = revision
        self.device = device
        self.dtype = model.dtype
        if device.type != "cpu":
            self.layout, self.tokens_a_forward = Layout.PADDED, TOKENS_A_FORWARD_ON_GPU
        else:
            self.layout = Layout.PACKED if model.config.model_type in FIRST_TOKEN_LOGITS else Layout.BUCKETED
            self.tokens_a_forward = TOKENS_A_FORWARD_ON_CPU
        if self.pad is None:  # such a model refuses two texts at once
            self.tokens_a_forward = 1

    @torch.inference_mode()
    def read(self, texts: Sequence[str]) -> Tensor:
        """(N, ...) float32 on the CPU: ``forward`` of each text; what has the same tokens is read once."""
        place: dict[tuple[int, ...], int] = {}
        places = [place.setdefault(tuple(tokens), len(place)) for tokens in self.tokenize(texts)]
        distinct = list(place)
        order = sorted(range(len(distinct)), key=lambda index: len(distinct[index]))
        rows = torch.cat([self.forward(batch) for batch in self._batches([distinct[index] for index in order])]).cpu()
        rank = torch.empty(len(order), dtype=torch.long)
        rank[order] = torch.arange(len(order))
        return rows[rank[places]]

    def forward(self, rows: list[tuple[int, ...]]) -> Tensor:
        """(B, ...) float32 for the tokens of B texts, the shortest first."""
        raise NotImplementedError

    def _batches(self, rows: list[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
        """``rows``, the shortest first, in parts of bounded size that the layout takes at once."""
        start = 0
        for end in range(1, len(rows) + 1):
            if (
                end == len(rows)
                or (end + 1 - start) * len(rows[end]) > self.tokens_a_forward
                or (self.layout is Layout.BUCKETED and len(rows[end]) != len(rows[start]))
            ):
                yield rows[start:end]
                start = end

    def _packed(self, model, rows: list[tuple[int, ...]]) -> tuple[Tensor, list[tuple[int, int]]]:
        """The (T, H) last hidden states of rows laid end to end, and the (number, length) of those equally long."""
        shapes = [(count, length) for length, count in Counter(map(len, rows)).items()]
        first = 0 if model.config.model_type == "bert" else model.config.pad_token_id + 1
        ids = torch.tensor([list(chain.from_iterable(rows))])
        positions = torch.cat([torch.arange(first, first + length).repeat(count) for count, length in shapes])[None]
        hidden = model(
            input_ids=ids.to(self.device),
            position_ids=positions.to(self.device),
            token_type_ids=torch.zeros_like(ids).to(self.device),
            shapes=shapes,
        ).last_hidden_state[0]
        return hidden, shapes

    def _padded(self, rows: list[tuple[int, ...]]) -> tuple[Tensor, Tensor | None]:
        """The (B, T) tokens of rows padded on the right, and their mask unless all are equally long."""
        lengths = torch.tensor([len(row) for row in rows])
        if len(rows[0]) == len(rows[-1]):
            return torch.tensor(rows).to(self.device), None
        mask = torch.arange(len(rows[-1])) < lengths[:, None]
        ids = torch.full(mask.shape, self.pad)
        ids[mask] = torch.tensor(list(chain.from_iterable(rows)))
        return ids.to(self.device), mask.long().to(self.device)


class Encoder(Reader):
    """A sentence encoder: the mean of a text's last hidden states, of length 1."""

    def embed(self, texts: Sequence[str]) -> Tensor:
        """(N, E) float32 on the CPU, one embedding a text, each of length 1."""
        return self.read(texts) if texts else torch.empty((0, self.model.config.hidden_size))

    def forward(self, rows: list[tuple[int, ...]]) -> Tensor:
        return normalize(self._means(rows), dim=-1)

    def _means(self, rows: list[tuple[int, ...]]) -> Tensor:
        if self.layout is Layout.PACKED:
            hidden, shapes = self._packed(self.model, rows)
            parts = hidden.split([count * length for count, length in shapes])
            pairs = zip(parts, shapes, strict=True)
            return torch.cat([part.view(*shape, -1).mean(1, dtype=torch.float32) for part, shape in pairs])
        ids, mask = self._padded(rows)
        hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
        if mask is None:
            return hidden.mean(1, dtype=torch.float32)
        return (hidden * mask[:, :, None]).sum(1, dtype=torch.float32) / mask.sum(1, keepdim=True)


class EncoderWithHead:
    """A classifier that is a sentence encoder and a logistic head on its embeddings."""

    def __init__(self, encoder: Encoder, head: Head, *, name: str, revision: str) -> None:
        self.encoder = encoder
        self.head = head
        self.name = name
        self.revision = revision
        self.device = encoder.device
        self.dtype = encoder.dtype

    def log_probs(self, texts: Sequence[str]) -> Tensor:
        """(N, 2) float32 on the CPU: the log-probabilities of benign and of toxic."""
        return _of_two(self.head.logits(self.encoder.embed(texts)))


class SequenceClassifier(Reader):
    """A transformers sequence-classification model, one of whose labels is the toxic one."""

    def __init__(self, model, tokenizer, *, toxic: int, **about) -> None:
        super().__init__(model, tokenizer, **about)
        self.toxic = toxic
        self.independent = model.config.num_labels == 1 or model.config.problem_type == "multi_label_classification"

    def log_probs(self, texts: Sequence[str]) -> Tensor:
        """(N, 2) float32 on the CPU: the log-probabilities of the other labels together and of the toxic one."""
        if not texts:
            return torch.empty((0, 2))
        logits = self.read(texts)
        if self.independent:
            return _of_two(logits[:, self.toxic])
        log_probs = logits.log_softmax(-1)
        others = [label for label in range(log_probs.shape[1]) if label != self.toxic]
        return torch.stack([log_probs[:, others].logsumexp(-1), log_probs[:, self.toxic]], -1)

    def forward(self, rows: list[tuple[int, ...]]) -> Tensor:
        if self.layout is not Layout.PACKED:
            ids, mask = self._padded(rows)
            return self.model(input_ids=ids, attention_mask=mask).logits.float()
        hidden, _ = self._packed(self.model.base_model, rows)
        starts = torch.tensor([0, *map(len, rows[:-1])]).cumsum(0)
        return FIRST_TOKEN_LOGITS[self.model.config.model_type](self.model, hidden[starts, None]).float()


# The models that read packed rows: how the (B, 1, H) hidden states of first tokens become (B, C) logits.
FIRST_TOKEN_LOGITS = {
    "bert": lambda model, first: model.classifier(model.bert.pooler(first)),
    "roberta": lambda model, first: model.classifier(first),
    "xlm-roberta": lambda model, first: model.classifier(first),
}


def _of_two(logits: Tensor) -> Tensor:
    """(N, 2) log-probabilities of two classes, from the (N,) logits of the second."""
    return torch.stack([logsigmoid(-logits), logsigmoid(logits)], -1)


def packed_attention(module, query, key, value, mask, *, scaling=None, shapes=None, **options):
    """Attention of rows that lie end to end, each to itself; as transformers' own where there are no ``shapes``.

    ``query``, ``key`` and ``value`` are (1, A, T, D) of A heads and all rows' T tokens; returns (1, T, A, D).
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if shapes is None:
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling, **options)
    _, A, T, D = query.shape
    output = query.new_empty(T, A, D)
    start = 0
    for count, length in shapes:
        end = start + count * length
        part = [states[0, :, start:end].view(A, count, length, D) for states in (query, key, value)]
        attended = _attend(*part, scaling=scaling or D**-0.5)
        output[start:end].view(count, length, A, D).copy_(attended.permute(1, 2, 0, 3))
        start = end
    return output[None], None


def _attend(query: Tensor, key: Tensor, value: Tensor, *, scaling: float) -> Tensor:
    """(A, B, L, D) attention of B texts of L tokens each, by what is quicker in their precision."""
    if query.dtype == torch.float32:
        return scaled_dot_product_attention(query, key, value, scale=scaling)
    queries, keys, values = (states.flatten(0, 1) for states in (query, key, value))  # (A·B, L, D)
    weights = torch.bmm(queries, keys.transpose(1, 2)).mul_(scaling).softmax(-1)
    return torch.bmm(weights, values).view(query.shape)


class Whole:
    """Tokens of texts by the tokenizer's own batch call, cut to the ``longest`` that the model reads."""

    def __init__(self, tokenizer, longest: int) -> None:
        self.tokenizer = tokenizer
        self.longest = longest
        self.nothing = [tokenizer.eos_token_id or 0]

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        rows = self.tokenizer(list(texts), truncation=True, max_length=self.longest)["input_ids"]
        return [row or self.nothing for row in rows]  # no model reads a text of no tokens


class WordByWord:
    """The same tokens, by a dictionary of words; for tokenizers that never look past a blank."""

    def __init__(self, tokenizer, longest: int) -> None:
        self.tokenizer = tokenizer
        self.longest = longest
        self.first, self.last = tokenizer("")["input_ids"]
        self.known: dict[str, list[int]] = {}

    @staticmethod
    def suits(tokenizer) -> bool:
        """BERT's own kind: whatever else it does to a text, blanks part words, and no token spans one."""
        from tokenizers import models, normalizers, pre_tokenizers

        backend = getattr(tokenizer, "backend_tokenizer", None)
        return (
            backend is not None
            and isinstance(backend.normalizer, normalizers.BertNormalizer)
            and isinstance(backend.pre_tokenizer, pre_tokenizers.BertPreTokenizer)
            and isinstance(backend.model, models.WordPiece)
            and tokenizer.truncation_side == "right"
            and tokenizer("")["input_ids"] == [tokenizer.cls_token_id, tokenizer.sep_token_id]
            and not any(" " in token for token in tokenizer.get_added_vocab())
        )

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        split = [text.split(" ") for text in texts]
        self._learn(set(chain.from_iterable(split)))
        most = self.longest - 1
        return [
            [*[self.first, *chain.from_iterable(map(self.known.__getitem__, words))][:most], self.last]
            for words in split
        ]

    def _learn(self, words: set[str]) -> None:
        if len(self.known) > MOST_WORDS_KEPT:
            self.known.clear()
        if new := list(words - self.known.keys()):
            ids = self.tokenizer(new, add_special_tokens=False, verbose=False)["input_ids"]
            self.known.update(zip(new, ids, strict=True))
