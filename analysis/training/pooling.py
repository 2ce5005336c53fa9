"""The mean over a text's tokens, written as one more layer of BERT, so that every transformers can read it.

A head is fitted on the mean of a sentence encoder's last hidden states. BERT's own classifier looks at the first
token only. So that ``AutoModelForSequenceClassification`` loads what was trained here without a line of our code,
the mean is taken by a layer after the last one:

- Zero queries and keys give all tokens the same attention, and padding none: the mean, in every layout of a batch.
  The values are the hidden states as they are.
- BERT adds the layer's input to this and normalises the sum. The mean is scaled by 2**12 before; what is added is then
  next to nothing, and the normalisation, whose weights are 1, takes the scale away again. A float16 still holds it.
- The feed-forward part is zero, and normalising twice changes nothing.
- The pooler's tanh is a straight line near zero: it gets numbers of 2**-8 of their size, and the classifier's weights
  are larger by as much.

What reaches the classifier is the mean, less its average over the E features, divided by their standard deviation:
√E times ``centred`` of the embedding, whatever the embedding's length. Heads are fitted on exactly that; what is lost
is one direction of the 384 of MiniLM, and less than 0.001 of a probability.
"""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from generation.engines.text_readers import Encoder
from generation.heads import Head

LABELS = {0: "benign", 1: "toxic"}
OUTWEIGHS = 2.0**12  # the mean against the first token's own state; means up to 16 stay below float16's 65,504
NEARLY_LINEAR = 2.0**-8
LEARNABLE = 2.0**-5  # a step moves weights by the learning rate, whatever their size: large ones stand still
ROOMY = 0.25  # of the pooler, for training: small weights would jump at its first step


def centred(embeddings: Tensor) -> Tensor:
    """(N, E) embeddings without their average over the E features, each of length 1 again."""
    return normalize(embeddings - embeddings.mean(-1, keepdim=True), dim=-1)


@torch.no_grad()
def with_head(encoder: Any, head: Head) -> Any:
    """A sequence classifier of BERT whose logit of toxic is that of ``head`` on the centred embedding.

    ``encoder`` is a ``BertModel`` and is not changed.
    """
    model = with_mean_pooling(encoder, pooler=NEARLY_LINEAR)
    width = model.config.hidden_size
    model.classifier.weight[0].zero_()
    model.classifier.weight[1] = head.weights / (NEARLY_LINEAR * width**0.5)
    model.classifier.bias.copy_(torch.tensor([0.0, head.bias]))
    return model


@torch.no_grad()
def with_mean_pooling(encoder: Any, *, pooler: float = ROOMY) -> Any:
    """A sequence classifier of BERT that reads the mean of ``encoder``; its classifier is new and random."""
    from transformers import BertConfig, BertForSequenceClassification

    settings = {name: value for name, value in encoder.config.to_dict().items() if name != "_name_or_path"}
    settings["num_hidden_layers"] += 1
    config = BertConfig.from_dict(
        {**settings, "id2label": LABELS, "label2id": {name: number for number, name in LABELS.items()}}
    )
    config.problem_type = "single_label_classification"
    model: Any = BertForSequenceClassification(config)
    states = {name: tensor.float().cpu() for name, tensor in encoder.state_dict().items()}
    own = {name: tensor for name, tensor in states.items() if not name.startswith("pooler.")}
    model.bert.load_state_dict(own, strict=False)
    _pool(model.bert.encoder.layer[-1])
    model.bert.pooler.dense.weight.copy_(pooler * torch.eye(config.hidden_size))
    model.bert.pooler.dense.bias.zero_()
    return model.eval()


def freeze_mean_pooling(model: Any) -> bool:
    """Keep the pooling layer, if ``model`` has one, from being trained; whether it has one."""
    layers = getattr(getattr(getattr(model, "bert", None), "encoder", None), "layer", None)
    if not layers or any(
        part.weight.any() for part in (layers[-1].attention.self.query, layers[-1].attention.self.key)
    ):
        return False
    for parameter in (*layers[-1].parameters(), *model.bert.pooler.parameters()):
        parameter.requires_grad_(False)
    return True


@torch.no_grad()
def make_learnable(model: Any) -> None:
    """Let a ``model`` made by ``with_head`` be trained further: the same probabilities of smaller weights."""
    pooler = model.bert.pooler.dense.weight
    scale = float(pooler[0, 0])
    if 0 < scale < LEARNABLE and torch.equal(pooler, scale * torch.eye(len(pooler))):
        pooler *= LEARNABLE / scale
        model.classifier.weight *= scale / LEARNABLE


def tokenizer_of(encoder: Encoder) -> Any:
    """A copy of its tokenizer, which says how much of a text the encoder reads."""
    tokenizer = deepcopy(encoder.tokenize.tokenizer)
    tokenizer.model_max_length = encoder.tokenize.longest
    return tokenizer


def _pool(layer: Any) -> None:
    same = torch.eye(layer.attention.output.dense.in_features)
    weights = {
        layer.attention.self.query: 0 * same,
        layer.attention.self.key: 0 * same,
        layer.attention.self.value: same,
        layer.attention.output.dense: OUTWEIGHS * same,
        layer.intermediate.dense: None,
        layer.output.dense: None,
    }
    for part, weight in weights.items():
        part.weight.zero_() if weight is None else part.weight.copy_(weight)
        part.bias.zero_()
    for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
        norm.weight.fill_(1)
        norm.bias.zero_()
