"""``manage.py train_head``: fit the head of the embedded classifier on annotated texts, and write its data card."""

import ast
import csv
import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import torch
from django.core.management.base import BaseCommand, CommandError
from torch import Tensor

from generation import classifiers, heads

TEXT = "text"
RATINGS = ("toxicity_ai", "toxicity_human")
TOXIC_ABOVE = 3
LEAST_OF_A_CLASS = 5
L2_TRIED = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
WRONG_ARGUMENT = 2

CARD = """\
# Data card: {name}

A logistic regression on the sentence embeddings of {encoder} ({revision}): {size} weights and a bias,
made by `manage.py train_head {file} --seed {seed} --folds {folds}`. The same command on the same file
gives the same head.

## Data

- `{file}`, in the format of ToxiGen's human-annotated training statements (Hartvigsen et al., ACL 2022). The head that
  comes with Humanval was trained on that release: statements that GPT-3 wrote about 13 groups. SHA-256 of the file:
  `{sha256}`
- A text is toxic if the larger of the annotators' mean answers (1 to 5) to how harmful it is if an AI system wrote it,
  and if a person did, is above {above}. All others are benign, ambiguous ones included.
- {n} texts, {toxic} of them toxic ({share:.1%}); duplicates left out: {duplicates}. No text is copied into the head.
- Both classes weigh the same in the training, so that a probability of one half is where neither is the likelier, and
  not where the shares of this file put it.

## Measured

The area under the ROC curve, which is the chance that a toxic text has a higher score than a benign one,
in {folds}-fold cross-validation. Each fold has its share of both classes.

| {fold_names} | mean |
|{rules}---|
| {aucs} | **{auc:.3f}** |

The L2 penalty, {l2:g}, is the best by the same mean of these:

| {l2_tried} |
|{l2_rules}
| {l2_aucs} |

## Use

As the adversary in ALICE's search, and to score statements for comparison. An adversary need not be right: where it is
wrong is what ALICE looks for.

## Limits

- It has learnt machine-written English sentences about 13 groups of people. On other subjects, languages and kinds of
  text its probabilities mean little.
- It reads the gist of a text: negation, quotation, irony and reclaimed words mislead it, and the name of a group alone
  may move its score.
- Its labels are the judgements of few annotators.
- It is not made to decide about people or what they write. Do not moderate with it.

## Licence of the data

Microsoft publishes ToxiGen with the MIT licence and the Community Data License Agreement, Permissive, version 2.0.
By its section 3.1 the agreement puts no restriction on results such as this head.
"""


class Command(BaseCommand):
    help = (
        "Train the embedded classifier's head on a CSV of annotated texts: prints its AUC, writes it and its data card."
    )

    def add_arguments(self, parser) -> None:
        parser.add_argument("file", metavar="CSV", type=Path, help=f"has the columns {', '.join((TEXT, *RATINGS))}")
        parser.add_argument("--output", type=Path, default=classifiers.HEAD_FILE.parent, help="folder to write to")
        parser.add_argument("--seed", type=int, default=0, help="decides which texts are in which fold")
        parser.add_argument("--folds", type=int, default=5, help="parts of the cross-validation")

    def handle(self, *, file: Path, output: Path, seed: int, folds: int, **options) -> None:
        try:
            examples = list(read(file))
            toxic_by_text = dict(reversed(examples))  # the first of duplicates stays
            check(list(toxic_by_text.values()), folds=folds)
            if output.exists() and not output.is_dir():
                raise ValueError(f"{output} is not a folder. Choose another one to write to.")
        except ValueError as error:
            raise CommandError(str(error), returncode=WRONG_ARGUMENT) from error
        texts = list(dict(examples))
        labels = torch.tensor([toxic_by_text[text] for text in texts])
        counts = {"n": len(texts), "toxic": int(labels.sum()), "duplicates": len(examples) - len(texts)}
        self.stdout.write("{n} texts, {toxic} of them toxic; duplicates left out: {duplicates}.".format(**counts))
        data = {**counts, "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "seed": seed, "folds": folds}
        self.train(texts, labels, data, file=file, target=output / classifiers.HEAD_FILE.name)

    def train(self, texts: list[str], labels: Tensor, data: dict, *, file: Path, target: Path) -> None:
        """Measure and write a head; ``data`` says what the texts and the folds are."""
        try:
            encoder = classifiers.load_encoder(device=torch.device("cpu"))
        except classifiers.ClassifierUnavailable as error:
            raise CommandError(str(error)) from error
        embeddings = encoder.embed(texts)
        aucs_by_l2 = {l2: cross_validated(embeddings, labels, l2, data["folds"], data["seed"]) for l2 in L2_TRIED}
        l2 = max(L2_TRIED, key=lambda tried: mean(aucs_by_l2[tried]))
        for fold, auc in enumerate(aucs_by_l2[l2], start=1):
            self.stdout.write(f"Fold {fold}: AUC {auc:.3f}")
        self.stdout.write(f"Mean: AUC {mean(aucs_by_l2[l2]):.3f}, L2 penalty {l2:g}")
        about = {
            "name": classifiers.EMBEDDED_CLASSIFIER,
            "encoder": encoder.name,
            "revision": encoder.revision,
            "size": embeddings.shape[1],
            **data,
            "l2": l2,
            "aucs": [round(auc, 4) for auc in aucs_by_l2[l2]],
        }
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(heads.dumps(heads.fit(embeddings, labels, l2=l2, balanced=True), about))
        target.with_suffix(".md").write_text(card(about, file=file.name, aucs_by_l2=aucs_by_l2))
        self.stdout.write(f"Written: {target} and {target.with_suffix('.md')}")


def cross_validated(embeddings: Tensor, labels: Tensor, l2: float, folds: int, seed: int) -> list[float]:
    return heads.cross_validated_auc(embeddings, labels, l2=l2, folds=folds, seed=seed, balanced=True)


def read(file: Path) -> Iterator[tuple[str, bool]]:
    """The texts of a CSV, and whether each is toxic. Raises ``ValueError``."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            present = reader.fieldnames or ()
            if missing := [column for column in (TEXT, *RATINGS) if column not in present]:
                raise ValueError(
                    f"{file} lacks the column{'s' * (len(missing) > 1)} {', '.join(missing)}. "
                    f"Its first line must name {', '.join((TEXT, *RATINGS))}."
                )
            for row in reader:
                harm = max(rating(row, column, f"{file}, line {reader.line_num}") for column in RATINGS)
                yield decoded(row[TEXT]), harm > TOXIC_ABOVE
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not text in UTF-8. Save it as CSV in UTF-8.") from error
    except csv.Error as error:
        raise ValueError(f"{file} is not a CSV, line {reader.line_num}: {error}.") from error


def rating(row: dict[str, str | None], column: str, place: str) -> float:
    """The number in a column of a row. Raises ``ValueError``, naming the place."""
    try:
        number = float(row[column] or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{place}: {column} is {row[column]!r}, which is not a number.")
    return number


def decoded(text: str) -> str:
    """The text itself, where it may be written as a Python bytes literal.

    >>> decoded("b'it\\\\xe2\\\\x80\\\\x99s'") == "it’s" == decoded("it’s")
    True
    """
    if not text.startswith(("b'", 'b"')):
        return text
    try:
        return ast.literal_eval(text).decode(errors="replace")
    except (SyntaxError, ValueError):
        return text  # it only looks like one


def check(labels: list[bool], *, folds: int) -> None:
    """Raise ``ValueError`` if no head can be trained and measured on these."""
    if folds < 2:
        raise ValueError(f"folds must be a whole number of at least 2, not {folds}.")
    least = max(LEAST_OF_A_CLASS, folds)
    for name, count in (("toxic", sum(labels)), ("benign", len(labels) - sum(labels))):
        if count < least:
            raise ValueError(
                f"At least {least} toxic and {least} benign texts are needed; {count} of {len(labels)} are {name}. "
                f"A text is toxic if {RATINGS[0]} or {RATINGS[1]} is above {TOXIC_ABOVE}."
            )


def card(about: dict, *, file: str, aucs_by_l2: dict[float, list[float]]) -> str:
    """The data card, in Markdown."""
    aucs = aucs_by_l2[about["l2"]]
    return CARD.format(
        **{**about, "aucs": cells(f"{auc:.3f}" for auc in aucs)},
        file=file,
        above=TOXIC_ABOVE,
        share=about["toxic"] / about["n"],
        fold_names=cells(f"fold {fold}" for fold in range(1, len(aucs) + 1)),
        rules="---|" * len(aucs),
        auc=mean(aucs),
        l2_tried=cells(f"{l2:g}" for l2 in aucs_by_l2),
        l2_rules="---|" * len(aucs_by_l2),
        l2_aucs=cells(f"{mean(tried):.3f}" for tried in aucs_by_l2.values()),
    )


def cells(texts: Iterator[str]) -> str:
    return " | ".join(texts)
