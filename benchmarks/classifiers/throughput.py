"""How many texts a second classifiers score, against two baselines on the same device and threads.

- ``sentence-transformers`` encodes the same texts with the same encoder: the work of the embedded classifier but for
  its head. It sorts them by length itself; its batch size is the best of some.
- Batches in the order of the texts, padded to the longest of each, as a plain loop over ``transformers`` makes them;
  the batch size is the best of some here, too.

Beside the embedded classifier, a head that was trained and saved is measured, read back as any model of transformers.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch.nn.functional import normalize
from transformers import AutoModel, AutoTokenizer

from analysis.training.examples import Examples
from analysis.training.heads import train_head
from analysis.training.parameters import HeadParameters
from analysis.training.saving import save
from benchmarks.classifiers.texts import made_up
from benchmarks.figure import best_seconds, report
from generation import classifiers

TEXTS, TRAINED_ON = 4096, 200
BATCH_SIZES = (32, 128)
ROUNDS = 3
AGAINST_SENTENCE_TRANSFORMERS, AGAINST_UNBUCKETED = 0.8, 1.5
SAME_TO = 1e-4
CPU = torch.device("cpu")


def main(*, seed: int = 0) -> bool:
    texts = made_up(TEXTS, seed=seed)
    folder = classifiers.wheel_folder()
    sentences = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    plain = Plain(folder)
    embedded = classifiers.load(classifiers.EMBEDDED_CLASSIFIER, device=CPU)
    with tempfile.TemporaryDirectory(prefix="humanval-head-") as trained:
        train(Path(trained, "head"), seed=seed)
        saved = classifiers.load(str(Path(trained, "head")), device=CPU)
    check_same(embedded, sentences, plain, texts[:200])
    works = {
        "embedded": lambda: embedded.log_probs(texts),
        "saved": lambda: saved.log_probs(texts),
        **{f"sentences_{size}": of_size(sentences.encode, texts, size) for size in BATCH_SIZES},
        **{f"plain_{size}": of_size(plain.embed, texts, size) for size in BATCH_SIZES},
    }
    seconds = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):  # in turns, so that what else the machine does disturbs all
        for name, work in works.items():
            seconds[name] = min(seconds[name], best_seconds(work, rounds=1))
    return told(seconds)


def told(seconds: dict[str, float]) -> bool:
    reached = []
    for baseline, name, goal in (
        ("sentences", "against_sentence_transformers", AGAINST_SENTENCE_TRANSFORMERS),
        ("plain", "bucketed_against_unbucketed", AGAINST_UNBUCKETED),
    ):
        theirs, size = min((seconds[f"{baseline}_{size}"], size) for size in BATCH_SIZES)
        for ours in ("embedded", "saved"):
            ratio = theirs / seconds[ours]
            reached.append(ratio >= goal)
            report(
                f"{ours}_head_{name}", ratio, unit="times its rate", goal=f">= {goal}", ok=ratio >= goal,
                texts_a_second=round(TEXTS / seconds[ours]), baseline_texts_a_second=round(TEXTS / theirs),
                baseline_batch_size=size, texts=TEXTS, threads=torch.get_num_threads(),
            )  # fmt: skip
    return all(reached)


class Plain:
    """A plain loop over ``transformers``: the encoder's embeddings, batches in the order of the texts."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.model = AutoModel.from_pretrained(folder, local_files_only=True).eval()

    @torch.inference_mode()
    def embed(self, texts: list[str], *, batch_size: int, **options: object) -> torch.Tensor:
        return torch.cat([self.means(texts[start : start + batch_size]) for start in range(0, len(texts), batch_size)])

    def means(self, texts: list[str]) -> torch.Tensor:
        batch = self.tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
        mask = batch["attention_mask"][:, :, None]
        return normalize((self.model(**batch).last_hidden_state * mask).sum(1) / mask.sum(1), dim=-1)


def of_size(embed: Callable, texts: list[str], size: int) -> Callable[[], object]:
    return lambda: embed(texts, batch_size=size, show_progress_bar=False)


def train(folder: Path, *, seed: int) -> None:
    """Save a head that was trained on made-up texts, of which one kind is called toxic."""
    texts = made_up(TRAINED_ON, seed=seed + 1)
    toxic = np.array(["radios" in text for text in texts])
    examples = Examples(texts, toxic, np.arange(TRAINED_ON) % 4 == 0)
    trained = train_head(examples, HeadParameters(), encoder=classifiers.load_encoder(device=CPU))
    save(trained, folder, card="")


def check_same(embedded, sentences: SentenceTransformer, plain: Plain, texts: list[str]) -> None:
    """All do the same work: their embeddings are the same."""
    ours = embedded.encoder.embed(texts)
    theirs = torch.tensor(sentences.encode(texts, show_progress_bar=False))
    for others in (theirs, plain.embed(texts, batch_size=BATCH_SIZES[0])):
        if (difference := float((ours - others).abs().max())) > SAME_TO:
            raise SystemExit(f"The baselines do other work: an embedding differs by {difference:g}.")
