"""The trial on human labels: a head on frozen embeddings, and full fine-tuning, of the same encoder on the same folds.

The file is ToxiGen's of annotated statements, which is not part of the project. No fold has a near-duplicate of a text
of another one, neither by words nor by embeddings: both are counted once more, pair by pair, from the texts. The
head is fitted on all of the other folds; fine-tuning keeps a tenth of them to decide when to stop. What was fine-tuned
is saved and loaded before it is tested, as a run's adversary is.
"""

import tempfile
import time
from pathlib import Path
from statistics import mean

import numpy as np
import torch

from analysis.splits import by_text, by_vector, folds, joined, validation
from analysis.training.bases import load_base
from analysis.training.examples import Examples
from analysis.training.loop import fine_tune
from analysis.training.parameters import FineTuningParameters, HeadParameters
from analysis.training.saving import save
from benchmarks.figure import report
from generation import classifiers, heads
from generation.management.commands.train_head import read
from generation.near_duplicates import similar_earlier

HEAD_GOAL, MORE_GOAL = 0.83, 0.01
FOLDS = 5
SIMILAR_ABOVE = 0.9
CPU = torch.device("cpu")


def main(file: Path, *, seed: int = 0, precision: str = "float32") -> bool:
    """Whether all goals were reached; they were not missed, either, where there is no file."""
    if not file.is_file():
        print(f"The trial on human labels was skipped: {file} is not there. Name it with --file.", flush=True)
        return True
    toxic_by_text = dict(reversed(list(read(file))))
    texts = sorted(toxic_by_text)
    toxic = np.array([toxic_by_text[text] for text in texts])
    embeddings = classifiers.load_encoder(device=CPU).embed(texts)
    components = joined(by_text(texts), by_vector(embeddings.numpy(), SIMILAR_ABOVE))
    fold_of = folds(components, toxic, k=FOLDS, seed=seed)
    across = pairs_across(fold_of, texts, embeddings.numpy())
    aucs: dict[str, list[float]] = {"head": [], "full": []}
    for fold in range(FOLDS):
        started = time.monotonic()
        test = np.flatnonzero(fold_of == fold)
        train = np.flatnonzero(fold_of != fold)
        aucs["head"].append(auc_of_head(embeddings, toxic, train, test))
        held_out = validation(components[train], toxic[train], share=FineTuningParameters().validation_share, seed=seed)
        examples = Examples([texts[place] for place in train], toxic[train], held_out)
        tested = [texts[place] for place in test], torch.tensor(toxic[test])
        full, best_step, steps = auc_of_full(examples, *tested, seed=seed, precision=precision)
        aucs["full"].append(full)
        print(
            f"Fold {fold + 1}: AUC {aucs['head'][-1]:.4f} of the head, {full:.4f} of full fine-tuning "
            f"(step {best_step} of {steps}, {time.monotonic() - started:.0f} s)",
            flush=True,
        )
    return told(
        aucs, across, precision=precision, seed=seed, texts=len(texts), toxic=int(toxic.sum()),
        components=int(components.max()) + 1,
    )  # fmt: skip


def told(aucs: dict[str, list[float]], across: int, *, precision: str, **circumstances: int) -> bool:
    head, full = mean(aucs["head"]), mean(aucs["full"])
    threads = torch.get_num_threads()
    reached = head >= HEAD_GOAL, full - head >= MORE_GOAL, across == 0
    report(
        "trial_auc_of_the_head", head, unit="mean AUC of the folds", goal=f">= {HEAD_GOAL}", ok=reached[0],
        folds=[round(auc, 4) for auc in aucs["head"]], threads=threads, **circumstances,
    )  # fmt: skip
    report(
        "trial_full_fine_tuning_above_the_head", full - head, unit="of AUC", goal=f">= {MORE_GOAL}", ok=reached[1],
        auc=round(full, 4), folds=[round(auc, 4) for auc in aucs["full"]], precision=precision, threads=threads,
    )  # fmt: skip
    report("trial_near_duplicates_across_folds", across, unit="pairs", goal="0", ok=reached[2])
    return all(reached)


def auc_of_head(embeddings: torch.Tensor, toxic: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    parameters = HeadParameters()
    labels = torch.tensor(toxic)
    head = heads.fit(embeddings[train], labels[train], l2=parameters.l2, balanced=parameters.balanced)
    return heads.auc(head.logits(embeddings[test]), labels[test])


def auc_of_full(
    examples: Examples, texts: list[str], labels: torch.Tensor, *, seed: int, precision: str
) -> tuple[float, int, int]:
    """The AUC on other texts, the step of which the weights are, and how many were taken."""
    base = load_base(classifiers.EMBEDDED_ENCODER, device=CPU, seed=seed)
    with tempfile.TemporaryDirectory(prefix="humanval-trial-") as folder:
        trained = fine_tune(
            base, examples, FineTuningParameters(), seed=seed, checkpoint=Path(folder, "checkpoint"), device=CPU,
            precision=precision,
        )  # fmt: skip
        save(trained, Path(folder, "trained"), card="")
        log_probs = classifiers.load(str(Path(folder, "trained")), device=CPU).log_probs(texts).double()
    return heads.auc(log_probs[:, 1] - log_probs[:, 0], labels), trained.best_step, trained.steps


def pairs_across(fold_of: np.ndarray, texts: list[str], vectors: np.ndarray) -> int:
    """How many pairs of near-duplicates, by words or by embeddings, are not in the same fold."""
    found = {
        (other, number)
        for number, others in enumerate(similar_earlier(texts))
        for other in others
        if fold_of[number] != fold_of[other]
    }
    for number, vector in enumerate(vectors):
        others = np.flatnonzero((vectors[:number] @ vector > SIMILAR_ABOVE) & (fold_of[:number] != fold_of[number]))
        found.update((int(other), number) for other in others)
    return len(found)
