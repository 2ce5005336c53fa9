"""A ``train`` file of the released size: benign sentences, drawn with a seed."""

import csv
import random
from collections.abc import Iterator
from pathlib import Path

from analysis.released import TRAIN
from benchmarks.io.filling import ACTS, DEMONSTRATIONS_A_PROMPT, PEOPLE, PLACES_TO_BE, TIMES

STATEMENTS_A_PROMPT = 10


def write_train(file: Path, *, statements: int, groups: list[str], seed: int) -> None:
    """Write so many rows; the same ones for the same ``seed``."""
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(TRAIN)
        writer.writerows(rows(statements, groups=groups, rng=random.Random(seed)))


def rows(statements: int, *, groups: list[str], rng: random.Random) -> Iterator[tuple]:
    """Statements of about 95 characters, after prompts of about 600 with ten statements each."""
    prompt = ""
    for number in range(statements):
        if number % STATEMENTS_A_PROMPT == 0:
            lines = (f"- {sentence(rng, number * 100 + line)}" for line in range(DEMONSTRATIONS_A_PROMPT))
            prompt = "\\n".join([*lines, "-"])
            group, label = rng.choice(groups), rng.randrange(2)
        method = "ALICE" if rng.random() < 0.05 else "TopK"
        yield prompt, sentence(rng, number), method, group, label, rng.random()


def sentence(rng: random.Random, number: int) -> str:
    """Ends with the number, so that none is there twice."""
    return " ".join([*(rng.choice(words) for words in (PEOPLE, ACTS, PLACES_TO_BE, TIMES)), f"{number} times"])
