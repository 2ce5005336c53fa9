"""ALICE on a GPU at the sizes of real models, whose weights are random: speed does not depend on them.

    python -m benchmarks.alice_gpu --model gpt-j-6b --prompts 64

What does depend on the weights is how often the classifier has to read, so the temperature is chosen to
spread the random model's best tokens about as far as a trained model's, and the runs are printed.
"""

import argparse
import json
import time

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    GPTJConfig,
    LlamaConfig,
)

from benchmarks.alice import MODELS, matrix_product_rate, prompts
from generation import classifiers, language_models
from generation.decoding import alice
from generation.devices import DeviceUnavailable, choose
from generation.engines.text_readers import SequenceClassifier
from generation.engines.transformers_model import TransformersLanguageModel
from generation.parameters import AliceParameters, Direction

SHAPES = {
    "gpt-j-6b": GPTJConfig(),
    "llama-8b": LlamaConfig(
        vocab_size=128_256,
        hidden_size=4096,
        intermediate_size=14_336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
    ),
    "tiny": LlamaConfig(
        vocab_size=60_000, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4
    ),
}
GOAL = {"gpt-j-6b": 60}
SPREADING_TEMPERATURE = 0.2


class Repeating:
    """The embedded model's tokenizer for a model with more tokens: those beyond its own begin again."""

    def __init__(self, tokenizer) -> None:
        self.tokenizer = tokenizer
        self.all_special_ids = tokenizer.all_special_ids
        self.bos_token_id = self.eos_token_id = tokenizer.eos_token_id

    def __len__(self) -> int:
        return len(self.tokenizer)

    def encode(self, text: str, **options) -> list[int]:
        return self.tokenizer.encode(text, **options)

    def decode(self, tokens, **options) -> str:
        return self.tokenizer.decode([token % len(self) for token in tokens], **options)

    def batch_decode(self, rows, **options) -> list[str]:
        return [self.decode(row, **options) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=list(SHAPES), default="gpt-j-6b")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tokens", type=int, default=30)
    options = parser.parse_args()
    try:
        device = choose(options.device)
    except DeviceUnavailable:
        raise SystemExit(
            "There is no CUDA device here, or torch is its CPU build. Run this where there is one."
        ) from None
    model, classifier = models(SHAPES[options.model], device)
    parameters = AliceParameters(
        direction=Direction.FALSE_POSITIVES, temperature=SPREADING_TEMPERATURE, max_new_tokens=options.tokens
    )
    texts = prompts(options.prompts)

    def decode() -> tuple[alice.Decoding, float]:
        started = time.perf_counter()
        found = alice.decode(model, classifier, texts, seeds=range(len(texts)), parameters=parameters)
        return found, time.perf_counter() - started

    decode()  # warms up
    found, seconds = min((decode() for _ in range(2)), key=lambda pair: pair[1])
    with FlopCounterMode(display=False) as counter:
        decode()
    rate = matrix_product_rate(torch.bfloat16, device=device, size=8192 if device.type == "cuda" else 512)
    bound = len(texts) * rate / counter.get_total_flops()
    speed = len(texts) / seconds
    goal = GOAL.get(options.model)
    print(
        json.dumps(
            {
                "name": f"alice_{options.model}",
                "value": round(speed, 2),
                "unit": "statements a second",
                "goal": f">= {goal}" if goal else "none",
                "ok": goal is None or speed >= goal,
                "share_of_the_matrix_product_bound": round(speed / bound, 3),
                "classifier_runs_a_statement": round(found.classifier_runs / len(texts)),
                "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
                "prompts": len(texts),
                "beam": parameters.beam,
            }
        )
    )


def models(config, device: torch.device):
    """A language model of that shape and a classifier of BERT-base's, with random weights in bfloat16."""
    torch.manual_seed(0)
    tokenizer = Repeating(AutoTokenizer.from_pretrained(language_models.unpacked(MODELS)))
    encoder = classifiers.load_encoder(device=torch.device("cpu"))
    with device:
        language_model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        bert = BertForSequenceClassification(BertConfig()).to(torch.bfloat16)
    return (
        TransformersLanguageModel(language_model, tokenizer, name="random", revision="", device=device),
        SequenceClassifier(
            bert, encoder.tokenize.tokenizer, toxic=1, longest=512, name="random", revision="", device=device
        ),
    )


if __name__ == "__main__":
    main()
