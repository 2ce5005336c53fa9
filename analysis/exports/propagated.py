"""Propagated labels: a classifier's probabilities in place of judgements, and what is known of the classifier."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from analysis.exports.train import statements_of, without_score
from analysis.models import LabelSource, TrainedClassifier
from generation.models import TextReader

TRAINED_ON = {
    LabelSource.PROMPT: "with the labels of their prompts",
    LabelSource.HUMAN: "with labels of people",
}


@dataclass(frozen=True)
class Propagated:
    """Whose probabilities ``train`` gives, and of how many statements."""

    reader: TextReader
    statements: int
    without_score: int
    trained: TrainedClassifier | None = None
    """The training that the classifier is from, of one trained here."""
    trained_on: int = 0
    """How many of the statements it was trained on."""

    @property
    def name(self) -> str:
        return f"{self.reader.name} (revision {self.reader.revision or 'unknown'}, {self.reader.precision})"

    @property
    def sentences(self) -> list[str]:
        return [
            f"roberta_prediction of train is the probability that the statement is toxic by {self.name}: a label "
            "propagated by a classifier, not what people made of the statement.",
            *self.empty,
            *self._training(),
        ]

    @property
    def empty(self) -> list[str]:
        """That statements have no score, and how they get one; nothing if all have."""
        return not_scored(self.reader, self.without_score, of=self.statements)

    def _training(self) -> Iterator[str]:
        if self.trained is None:
            return
        trained, data = self.trained, self.trained.data
        yield (
            f"This classifier is {trained.name}, trained here from {trained.base} ({trained.get_kind_display()}, seed "
            f"{trained.seed}) on {data['statements']:,} statements {TRAINED_ON[LabelSource(trained.labels)]}: "
            f"{data['toxic']:,} toxic, {data['benign']:,} benign; {data['alice']:,} by ALICE, "
            f"{data['topk']:,} by top-k."
        )
        if data["humanval"]:
            versions = ", ".join(map(str, data["humanval"]))
            yield f"HUMANVAL {versions}, and what is too similar to its statements, was left out of its training."
        if self.trained_on:
            yield (
                f"It was trained on {self.trained_on:,} of the statements in train: of these its probabilities are "
                "closer to the labels than of others."
            )


def propagated(filters: Mapping) -> Propagated | None:
    """What is known of the classifier among the filters, and of the statements that they leave; ``None`` without."""
    if "classifier" not in filters:
        return None
    reader, statements = filters["classifier"], statements_of(filters)
    trained = _training_of(reader)
    return Propagated(
        reader=reader,
        statements=statements.count(),
        without_score=without_score(filters),
        trained=trained,
        trained_on=statements.filter(trained_on__classifier=trained).count() if trained else 0,
    )


def _training_of(reader: TextReader) -> TrainedClassifier | None:
    """The training that a classifier is from: of those that came to the same files, the one of its name."""
    same = TrainedClassifier.objects.finished().filter(revision=reader.revision)
    name = reader.name.partition("#")[0].rstrip("/").rpartition("/")[-1]  # it may be named by its folder
    return same.filter(name=name).first() or same.first()


def not_scored(reader: TextReader, number: int, *, of: int) -> list[str]:
    """That a classifier has not scored some statements, and what to do about it; nothing if it has scored all."""
    if not number:
        return []
    return [
        f"{number:,} of {of:,} statements {'has' if number == 1 else 'have'} no score by {reader}: there "
        f"roberta_prediction is empty. To have them scored: manage.py read_statements classifier --model {reader.name} "
        f"--precision {reader.precision}"
    ]
