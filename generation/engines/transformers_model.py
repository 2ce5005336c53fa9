"""A transformers causal language model that continues many hypotheses of a prompt at once.

The hypotheses of a prompt are one tree of tokens in one row of the batch. A step appends its tokens
to the row, and the attention mask says whom each descends from. So the prompt's keys and values are
computed and kept once, and nothing is put in order when the beam changes. What nobody descends from
any more is dropped from time to time.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, Cache, DynamicLayer
from transformers.masking_utils import sdpa_mask

from generation.decoding.likeliest import likeliest
from generation.decoding.protocols import NextTokens

ATTENTION = "humanval"
WORTH_DROPPING = 0.7
"""The cache is copied without its dead rows, or its dead columns, once no more than this share of them is alive."""
MOST_STEPS_OF_ROOM = 32
"""Room is made for so many steps as wide as the present one; by then, most of what they brought is dropped."""


class TextTooLong(ValueError):
    """A prompt and what follows it are longer than the model reads."""


class TransformersLanguageModel:
    """A transformers causal language model behind ``decoding.protocols.LanguageModel``."""

    def __init__(self, model, tokenizer, *, name: str, revision: str, device: torch.device) -> None:
        self.model = model.to(device).eval()
        if model._can_set_attn_implementation():
            self.model.set_attn_implementation(ATTENTION if _has_plain_attention(model) else "eager")
        self.tokenizer = tokenizer
        self.name = name
        self.revision = revision
        self.device = device
        self.dtype = model.dtype
        self._ending = _ending_tokens(tokenizer, self.model.config.vocab_size)
        self._opening = opening_tokens(tokenizer)

    @property
    def context_length(self) -> int:
        return self.model.config.max_position_embeddings

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def decode(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode(tokens, skip_special_tokens=True)

    def ends(self, tokens: Tensor) -> Tensor:
        return self._ending[tokens]

    def start(self, prompts: Sequence[Sequence[int]], *, best: int, temperature: float, steps: int) -> NextTokens:
        """Read B prompts, padded on the left so that all end at the same place.

        Raises ``TextTooLong`` before anything is computed.
        """
        self._best, self._temperature = best, temperature
        texts = [[*self._opening, *prompt] or [self._first_of_nothing()] for prompt in prompts]
        longest = max(map(len, texts))
        # The last token of a continuation is not read.
        if (length := longest + steps - 1) > self.context_length:
            raise TextTooLong(
                f"A prompt with what follows it has {length} tokens, and {self.name} reads {self.context_length}. "
                "Use shorter demonstrations or fewer new tokens."
            )
        ids = torch.zeros((len(texts), longest), dtype=torch.long)
        seen = torch.zeros((len(texts), longest), dtype=torch.bool)
        for row, text in enumerate(texts):
            ids[row, longest - len(text) :] = torch.tensor(text)
            seen[row, longest - len(text) :] = True
        earlier = torch.ones((longest, longest), dtype=torch.bool).tril()
        itself = torch.eye(longest, dtype=torch.bool)  # padding has to see something
        self.forget()
        self._cache = Cache(layer_class_to_replicate=partial(_RoomyLayer, steps))
        self._rows = list(range(len(texts)))
        self._seen = seen.to(self.device)  # (L, N) what each hypothesis descends from
        return self._forward(ids, (seen.cumsum(-1) - 1).clamp(min=0), (earlier & seen[:, None]) | itself)

    def step(self, parents: Tensor, tokens: Tensor) -> NextTokens:
        rows = self._drop_rows([self._rows[parent] for parent in parents.tolist()])
        seen = self._drop_columns(rows, self._seen[parents.to(self.device)])  # (L, N)
        columns = _columns(rows)
        width = max(columns) + 1
        height = self._height
        ids = torch.zeros((height, width), dtype=torch.long)
        ids[rows, columns] = tokens
        positions = torch.zeros_like(ids)
        positions[rows, columns] = seen.sum(-1).cpu()  # as many as it descends from
        itself = torch.eye(width, dtype=torch.bool, device=self.device)
        mask = torch.zeros((height, width, seen.shape[1] + width), dtype=torch.bool, device=self.device)
        mask[rows, columns, : seen.shape[1]] = seen
        mask[:, :, seen.shape[1] :] = itself
        self._rows, self._seen = rows, torch.cat([seen, itself[columns]], -1)
        return self._forward(ids, positions, mask, (rows, columns))

    @property
    def _height(self) -> int:
        return self._cache.layers[0].keys.shape[0]

    def forget(self) -> None:
        """Let go of the keys and values of the last prompts; they are of no use once those are decoded."""
        self._cache, self._seen, self._rows = None, None, []

    def _drop_rows(self, rows: list[int]) -> list[int]:
        """Take rows that nobody continues out of the cache, if that is worth it; where the ``rows`` are then."""
        alive = sorted(set(rows))
        if len(alive) > WORTH_DROPPING * self._height:
            return rows
        self._cache.batch_select_indices(torch.tensor(alive, device=self.device))
        place = {row: number for number, row in enumerate(alive)}
        return [place[row] for row in rows]

    def _drop_columns(self, rows: list[int], seen: Tensor) -> Tensor:
        """Take tokens that nobody descends from out of the cache, if that is worth it; who is ``seen`` then.

        Each row keeps as many columns as the one with the most that are alive.
        """
        alive = torch.zeros((self._height, seen.shape[1]), dtype=torch.int, device=self.device)
        alive.index_add_(0, torch.tensor(rows, device=self.device), seen.int())
        kept = int((alive > 0).sum(-1).max())
        if kept > WORTH_DROPPING * seen.shape[1]:
            return seen
        columns = (alive > 0).int().argsort(dim=-1, descending=True, stable=True)[:, :kept]  # (R, kept)
        for layer in self._cache.layers:
            layer.select_columns(columns)
        return seen.gather(1, columns[rows])

    def _forward(self, ids: Tensor, positions: Tensor, mask: Tensor, places=None) -> NextTokens:
        """Read ``ids`` (R, W) at ``positions`` (R, W) with ``mask`` (R, W, N); what may follow at the ``places``.

        ``places`` are the rows and columns of the L hypotheses; by default the last of each row.
        """
        lowest = torch.finfo(self.dtype).min
        bias = torch.zeros(mask.shape, dtype=self.dtype, device=self.device).masked_fill_(~mask.to(self.device), lowest)
        output = self.model(
            input_ids=ids.to(self.device),
            attention_mask=bias[:, None],
            position_ids=positions.to(self.device),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1 if places is None else 0,
        )
        logits = output.logits.flatten(0, 1)  # all cells, row by row; of a prompt its last
        if places is not None:
            cells = [row * ids.shape[1] + column for row, column in zip(*places, strict=True)]
            if cells != list(range(len(logits))):
                logits = logits[torch.tensor(cells, device=self.device)]
        return likeliest(logits, best=self._best, temperature=self._temperature)

    def _first_of_nothing(self) -> int:
        """What stands for an empty text."""
        tokenizer = self.tokenizer
        return next((t for t in (tokenizer.bos_token_id, tokenizer.eos_token_id) if t is not None), 0)


class _RoomyLayer(DynamicLayer):
    """Keys and values in tensors with room for the steps to come, so that appending copies nothing else."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps_left = steps
        self._length = 0
        self._room: tuple[Tensor, Tensor] | None = None  # each (R, heads, capacity, D)

    def update(self, key_states: Tensor, value_states: Tensor, *args, **kwargs) -> tuple[Tensor, Tensor]:
        new = key_states.shape[-2]
        if self._room is None:
            self._room = (key_states, value_states)  # the prompt
            self.is_initialized = True
        else:
            if self._room[0].shape[-2] < self._length + new:
                self._make_room(new * min(max(self._steps_left, 1), MOST_STEPS_OF_ROOM))
            for held, states in zip(self._room, (key_states, value_states), strict=True):
                held[:, :, self._length : self._length + new] = states
        self._steps_left -= 1
        self._length += new
        return self._show()

    def batch_select_indices(self, indices: Tensor) -> None:
        self._room = tuple(held[indices] for held in self._room)
        self._show()

    def select_columns(self, columns: Tensor) -> None:
        """Keep of each row the ``columns`` (R, N), and the room there is."""
        length = columns.shape[1]
        for held in self._room:
            index = columns[:, None, :, None].expand(-1, held.shape[1], -1, held.shape[3])
            held[:, :, :length] = held.gather(2, index)
        self._length = length
        self._show()

    def _make_room(self, room: int) -> None:
        self._room = tuple(
            torch.cat([held[:, :, : self._length], held.new_empty((*held.shape[:2], room, held.shape[-1]))], -2)
            for held in self._room
        )

    def _show(self) -> tuple[Tensor, Tensor]:
        self.keys, self.values = (held[:, :, : self._length] for held in self._room)
        return self.keys, self.values


def _has_plain_attention(model) -> bool:
    """Whether a model's attention is a softmax of products: some cap them, or let tokens attend to nothing."""
    return model._supports_sdpa and getattr(model.config, "attn_logit_softcapping", None) is None


def _attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, softcap=None, s_aux=None, **_):
    """Scaled dot-product attention in which query heads that share a key head are read together."""
    if softcap is not None or s_aux is not None:
        raise NotImplementedError("This attention neither caps its products nor has sinks.")
    batch, heads, length, size = query.shape
    groups = heads // key.shape[1]
    mask = attention_mask.repeat(1, 1, groups, 1)
    output = torch.nn.functional.scaled_dot_product_attention(
        query.reshape(batch, key.shape[1], groups * length, size), key, value, attn_mask=mask, scale=scaling
    )
    return output.reshape(batch, heads, length, value.shape[-1]).transpose(1, 2), None


AttentionInterface.register(ATTENTION, _attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


def _columns(rows: Sequence[int]) -> list[int]:
    """The place of each hypothesis in its row: how many of the same row stand before it.

    >>> _columns([0, 0, 1, 0])
    [0, 1, 0, 2]
    """
    seen: dict[int, int] = {}
    columns = []
    for row in rows:
        columns.append(seen.get(row, 0))
        seen[row] = columns[-1] + 1
    return columns


def _ending_tokens(tokenizer, vocabulary_size: int) -> Tensor:
    """(V,) bool: tokens whose text has a newline, and the tokenizer's special tokens."""
    ends = torch.zeros(vocabulary_size, dtype=torch.bool)
    texts = tokenizer.batch_decode([[token] for token in range(min(len(tokenizer), vocabulary_size))])
    ends[[token for token, text in enumerate(texts) if "\n" in text]] = True
    ends[[token for token in tokenizer.all_special_ids if token < vocabulary_size]] = True
    return ends


def opening_tokens(tokenizer) -> list[int]:
    """What the tokenizer puts before every text: the mark of the beginning, which Llama was trained with."""
    marked = tokenizer.encode("a", add_special_tokens=True)
    plain = tokenizer.encode("a", add_special_tokens=False)
    return marked[: len(marked) - len(plain)] if marked[len(marked) - len(plain) :] == plain else []
