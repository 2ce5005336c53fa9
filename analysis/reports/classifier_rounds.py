"""The loop: how often ALICE's statements fool the classifier that they were searched against, from round to round."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from django.db.models import Count, Exists, F, Min, OuterRef, Q, QuerySet, Value

from analysis import judged, metrics
from analysis.labels import TOXICITY_CLASSES
from analysis.models import TrainedClassifier, TrainingStatement
from analysis.reports import charts
from analysis.reports.by_method import in_words
from analysis.reports.cells import share_cell
from analysis.reports.classifier_data import shortened
from analysis.reports.frame import Cell, Column, Estimate, Kind, Section, Table
from analysis.reports.validated import NO_BREAK, counted
from analysis.seen import line_of
from generation.models import Generation, GenerationRun, Label, Method, ReaderKind, RunMethod, TextReader

MOST_ROUNDS = 10
KEY, TITLE = "rounds", "From round to round"
BY_PEOPLE, BY_PROMPT = "people", "prompt"
METHODS = {Method.ALICE.value: "ALICE", Method.TOPK.value: "top-k"}
LABELS = {BY_PEOPLE: "people", BY_PROMPT: "prompt label"}
TOLD = {BY_PEOPLE: "by people", BY_PROMPT: "by prompt label"}
SAYS = (
    "A round is a classifier that ALICE searched against. Trained on what fooled the one before, a classifier should "
    "be fooled less often."
)
NOTHING = (
    "ALICE has written nothing against a classifier yet. Start a run of the method ALICE under Generate; train a "
    "classifier on what it writes, and choose that one for the next run."
)
COLUMNS = (
    Column("label", "Toxic or benign by", names=LABELS),
    Column("alice_n", "ALICE (n)", Kind.COUNT),
    Column("alice", "ALICE's that fool it", Kind.SHARE, 1),
    Column("topk_n", "top-k (n)", Kind.COUNT),
    Column("topk", "top-k's that fool it", Kind.SHARE, 1),
    Column("learnt", "Left out, trained on", Kind.COUNT),
)


@dataclass
class Told:
    """How many statements there are, and how many of them fool; ``learnt`` were left out: it was trained on them."""

    n: int = 0
    fooled: int = 0
    learnt: int = 0

    def add(self, learnt: bool, n: int, fooled: int) -> None:
        if learnt:
            self.learnt += n
        else:
            self.n, self.fooled = self.n + n, self.fooled + fooled


#: By method and kind of label.
Counts = Mapping[tuple[str, str], Told]


@dataclass(frozen=True)
class Round:
    """An adversary, and by method and kind of label what its statements are."""

    number: int
    classifier: str
    told: Counts


def section() -> Section:
    """A row for each round, method and kind of label."""
    adversaries, left_out = _adversaries()
    by_people = _judged() if adversaries else pd.Series(dtype=bool)
    by_name = {one.name: one for one in TrainedClassifier.objects.finished()}
    rounds = [Round(number, name, _told(name, by_people, by_name)) for number, name in adversaries.items()]
    rows = [row for round in rounds for row in _rows(round)]
    if not rows:
        return Section(KEY, TITLE, SAYS, missing=NOTHING)
    return Section(
        KEY,
        TITLE,
        f"{SAYS} {_says(rows)}",
        {"rounds": len(rounds), "statements of ALICE": sum(round.told[Method.ALICE, BY_PROMPT].n for round in rounds)},
        Table(_columns(adversaries.values()), tuple(rows)),
        _chart(rounds, rows),
        notes=(
            f"A statement fools a classifier that gives it less than {metrics.THRESHOLD} though it is toxic, or "
            f"{metrics.THRESHOLD} or more though it is benign. What people judged, ambiguous ones left out, is told "
            "apart from what prompts are labelled, which is often wrong.",
            "Rounds are in the order of their first runs. The probabilities are those that were stored with the "
            "statements of its runs; top-k's also those of a reading by the same classifier.",
            "Intervals: 95 %, Wilson's. The statements are taken as independent of each other.",
            "Left out: statements that the adversary, or one it was trained from, has learnt from.",
            *_on_left_out(left_out),
        ),
    )


def _columns(adversaries: Iterable[str]) -> tuple[Column, ...]:
    names = {name: shortened(name) for name in adversaries}
    return Column("round", "Round"), Column("classifier", "Adversary", names=names), *COLUMNS


def _adversaries() -> tuple[dict[int, str], int]:
    """The last classifiers that ALICE searched against by their round's number, and how many came before them."""
    runs = GenerationRun.objects.exclude(method=RunMethod.TOPK)
    wrote = runs.filter(Exists(Generation.objects.filter(run=OuterRef("pk"), method=Method.ALICE)))
    names = wrote.order_by().values("classifier").annotate(first=Min("pk")).order_by("first")
    found = dict(enumerate(names.values_list("classifier", flat=True), start=1))
    kept = [*found][-MOST_ROUNDS:]
    return {number: found[number] for number in kept}, len(found) - len(kept)


def _judged() -> pd.Series:
    """By statement of a language model whether people find it toxic; those that they find ambiguous are left out."""
    codes = judged.statements({"method": list(METHODS)})["toxicity_class"]
    known = codes[codes.isin([TOXICITY_CLASSES.index(name) for name in ("toxic", "non-toxic")])]
    return known == TOXICITY_CLASSES.index("toxic")


def _told(classifier: str, by_people: pd.Series, by_name: Mapping[str, TrainedClassifier]) -> Counts:
    """The statements that the classifier has scored, by method and kind of label."""
    told = {(method, label): Told() for method in METHODS for label in LABELS}
    own = Q(run__classifier=classifier)
    stored = Generation.objects.filter(own, method__in=METHODS).exclude(toxic_prob=None)
    readers = TextReader.objects.filter(kind=ReaderKind.CLASSIFIER, name=classifier).order_by("-used_at", "-pk")
    # Without HUMANVAL's, which evaluations score by themselves: rounds are of the same statements once all were read.
    read = Generation.objects.filter(
        method=Method.TOPK, toxicity_scores__reader=readers.values("pk")[:1], humanval__isnull=True
    )
    line = line_of(classifier, by_name)
    learnt = Exists(TrainingStatement.objects.filter(classifier__in=line, generation=OuterRef("pk")))
    for statements, probability in ((stored, "toxic_prob"), (read.exclude(own), "toxicity_scores__toxic_prob")):
        of = statements.order_by().annotate(probability=F(probability), learnt=learnt if line else Value(False))
        _count_by_prompt(of, told)
        _count_by_people(of, by_people, told)
    return told


def _count_by_prompt(statements: QuerySet, told: Counts) -> None:
    takes_for_toxic = Q(probability__gte=metrics.THRESHOLD)
    fools = Q(label=Label.TOXIC) & ~takes_for_toxic | Q(label=Label.BENIGN) & takes_for_toxic
    counts = statements.values("method", "learnt").annotate(n=Count("pk"), fooled=Count("pk", filter=fools))
    for row in counts.values_list("method", "learnt", "n", "fooled"):
        told[row[0], BY_PROMPT].add(*row[1:])


def _count_by_people(statements: QuerySet, by_people: pd.Series, told: Counts) -> None:
    rows = statements.filter(pk__in=by_people.index.tolist()).values_list("pk", "method", "learnt", "probability")
    for pk, method, learnt, probability in rows:
        fools = by_people[pk] != (probability >= metrics.THRESHOLD)
        told[method, BY_PEOPLE].add(learnt, 1, int(fools))


def _rows(round: Round) -> Iterator[dict[str, Cell]]:
    """What people say, if they say something, then what the prompts say."""
    for label in LABELS:
        told = {method: round.told[method, label] for method in METHODS}
        if label == BY_PROMPT or any(of.n for of in told.values()):
            row: dict[str, Cell] = {"round": str(round.number), "classifier": round.classifier, "label": label}
            for method, of in told.items():
                what = f"statements of {METHODS[method]}, told {TOLD[label]}, that {round.classifier} has scored"
                row |= {f"{method}_n": of.n, method: share_cell(of.fooled, of.n, what)}
            yield row | {"learnt": sum(of.learnt for of in told.values())}


def _says(rows: Sequence[Mapping[str, Cell]]) -> str:
    """The first round against the last one, by people where they judged both."""
    for label in LABELS:
        there = [row for row in rows if row["label"] == label and row["alice_n"]]
        if len(there) > 1:
            first, last = (
                f"{in_words(row['alice'], Kind.SHARE)} in round {row['round']}" for row in (there[0], there[-1])
            )
            told = f"Of ALICE's statements, told {TOLD[label]}, {first} fool their adversary, and {last}."
            return told.replace(" %", f"{NO_BREAK}%")
    return "There is one round so far."


def _chart(rounds: Sequence[Round], rows: Iterable[Mapping[str, Cell]]) -> charts.Chart:
    of = {(row["round"], row["label"]): row for row in rows}
    numbers = [str(round.number) for round in rounds]
    series = {
        f"{name}, {TOLD[label]}": [of.get((number, label), {}).get(method) for number in numbers]
        for label in LABELS
        for method, name in METHODS.items()
    }
    shown = {name: cells for name, cells in series.items() if any(isinstance(cell, Estimate) for cell in cells)}
    return charts.lines(shown, numbers, x_title="Round", y_title="Fool the adversary", share=True)


def _on_left_out(left_out: int) -> list[str]:
    if not left_out:
        return []
    return [f"The last {MOST_ROUNDS} rounds are shown; {counted(left_out, 'earlier one is', 'earlier ones are')} not."]
