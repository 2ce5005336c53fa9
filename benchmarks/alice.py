"""ALICE on the embedded models: against a plain reading of the paper, and against what the processor can do.

    python -m benchmarks.alice --threads 1 --plain 4

All figures are ratios within this run, on benign prompts from the project's own demonstrations.
"""

import argparse
import time
from pathlib import Path

import psutil
import torch
from torch.utils.flop_counter import FlopCounterMode, register_flop_formula, sdpa_flop_count

from benchmarks.figure import best_seconds, report
from benchmarks.plain_alice import plain_copies, plain_decode
from generation import classifiers, language_models
from generation.decoding import alice
from generation.devices import give_memory_back
from generation.parameters import AliceParameters, Direction
from generation.prompting import build_prompt, draw_demonstrations

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "var" / "models"
CPU = torch.device("cpu")
PROMPTS = 16
MANY = 2000
PAPER = AliceParameters(direction=Direction.FALSE_POSITIVES)
SHORT = AliceParameters(direction=Direction.FALSE_POSITIVES, beam=4, vocabulary=50, max_new_tokens=6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--plain", type=int, default=4, help="how many of the prompts the plain reading decodes, too")
    parser.add_argument("--only", choices=list(FIGURES), help="one figure instead of all")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    register_flop_formula(torch.ops.aten._scaled_dot_product_flash_attention_for_cpu)(attention_flops)
    for name, figure in FIGURES.items():
        if options.only in (None, name):
            figure(options)


def against_the_plain_reading(options) -> None:
    """Statements a second at 16 prompts; the plain reading takes one prompt after the other, so a few will do."""
    model, classifier = models()
    texts = prompts(PROMPTS)
    found, seconds = timed(lambda: decode(model, classifier, texts))
    plain = plain_copies(model, classifier)
    alone, plain_seconds = timed(
        lambda: [plain_decode(*plain, text, parameters=PAPER) for text in texts[: options.plain]]
    )
    same = sum(tokens == best[0].tokens for (_, tokens, _), best in zip(alone, found.found, strict=False))
    ratio = (PROMPTS / seconds) / (options.plain / plain_seconds)
    report(
        "alice_against_a_plain_reading",
        ratio,
        unit="times as many statements a second",
        goal=f">= 20 and all {options.plain} statements identical",
        ok=ratio >= 20 and same == options.plain,
        identical=same,
        threads=options.threads,
    )
    runs = found.classifier_runs / PROMPTS
    report(
        "alice_classifier_runs", runs, unit="a statement", goal="<= 500", ok=runs <= 500, candidates="10 x 100 a step"
    )


def against_the_matrix_products(options) -> None:
    """The time that the executed matrix products would take at the measured rate, as a share of the time taken."""
    model, classifier = models()
    texts = prompts(PROMPTS)
    rate = matrix_product_rate(torch.float32)
    seconds = best_seconds(lambda: decode(model, classifier, texts), rounds=2)
    with FlopCounterMode(display=False) as counter:
        decode(model, classifier, texts)
    rate = max(rate, matrix_product_rate(torch.float32))
    share = counter.get_total_flops() / rate / seconds
    report(
        "alice_share_of_the_matrix_product_bound",
        share,
        unit="of the bound",
        goal=">= 0.7",
        ok=share >= 0.7,
        threads=options.threads,
        gigaflops_a_statement=round(counter.get_total_flops() / PROMPTS / 1e9),
    )


def bfloat16(options) -> None:
    texts = prompts(PROMPTS)
    seconds = {}
    for dtype in (torch.float32, torch.bfloat16):
        model, classifier = models(dtype)
        seconds[dtype] = best_seconds(lambda: decode(model, classifier, texts), rounds=2)  # noqa: B023
    ratio = seconds[torch.float32] / seconds[torch.bfloat16]
    product = matrix_product_rate(torch.bfloat16) / matrix_product_rate(torch.float32)
    report(
        "alice_bfloat16_against_float32",
        ratio,
        unit="times as fast",
        goal=">= 1.8 where the processor has bf16 instructions",
        ok=ratio >= 1.8,
        threads=options.threads,
        matrix_products=round(product, 2),
    )


def over_a_long_run(options) -> None:
    """A run of 2,000 short statements in batches of 16: the time of its last quarter against its first, and memory."""
    model, classifier = models()
    decode(model, classifier, prompts(PROMPTS), SHORT)
    texts = prompts(MANY)
    process = psutil.Process()
    seconds, memory = [], []
    for start in range(0, MANY, PROMPTS):
        seconds.append(timed(lambda: decode(model, classifier, texts[start : start + PROMPTS], SHORT))[1])  # noqa: B023
        give_memory_back()
        memory.append(process.memory_info().rss)
    quarter = len(seconds) // 4
    slower = sum(seconds[-quarter:]) / sum(seconds[:quarter])
    report(
        "alice_last_quarter_of_2000_statements",
        slower,
        unit="times the time of the first quarter",
        goal="<= 1.1",
        ok=slower <= 1.1,
        threads=options.threads,
    )
    growth = max(memory[-quarter:]) / max(memory[:quarter])
    report(
        "alice_memory_in_the_last_quarter_of_2000_statements",
        growth,
        unit="times that of the first quarter",
        goal="<= 1.05",
        ok=growth <= 1.05,
    )


FIGURES = {
    "plain": against_the_plain_reading,
    "bound": against_the_matrix_products,
    "bfloat16": bfloat16,
    "long": over_a_long_run,
}


def models(dtype: torch.dtype = torch.float32):
    model = language_models.load(
        language_models.EMBEDDED_MODEL,
        cache_folder=MODELS,
        device=CPU,
        precision=str(dtype).removeprefix("torch."),
    )
    return model, classifiers.load(classifiers.EMBEDDED_CLASSIFIER, device=CPU, dtype=dtype)


def prompts(count: int) -> list[str]:
    files = sorted((ROOT / "generation" / "demonstrations" / "benign").glob("*.txt"))
    sets = [file.read_text(encoding="utf-8").splitlines() for file in files]
    return [build_prompt(draw_demonstrations(sets[number % len(sets)], seed=number)) for number in range(count)]


def decode(model, classifier, texts: list[str], parameters: AliceParameters = PAPER) -> alice.Decoding:
    return alice.decode(model, classifier, texts, seeds=range(len(texts)), parameters=parameters)


def timed(work):
    started = time.perf_counter()
    result = work()
    return result, time.perf_counter() - started


def matrix_product_rate(dtype: torch.dtype, *, device: torch.device = CPU, size: int = 1024) -> float:
    """The most floating-point operations a second that a product of two large matrices reached."""
    left, right = (torch.randn(size, size, dtype=dtype, device=device) for _ in range(2))

    def product() -> None:
        torch.nn.functional.linear(left, right)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return 2 * size**3 / min(timed(product)[1] for _ in range(30))


def attention_flops(query_shape, key_shape, value_shape, *args, out_shape=None, **options) -> int:
    """torch counts the products of attention on a GPU only."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


if __name__ == "__main__":
    main()
