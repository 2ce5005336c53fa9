"""Tables 4 and 7 of the paper: AUC before training, and after training on ALICE, on top-k and on both."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.models import LabelSource, TrainedClassifier, TrainingKind, TrainingMethods
from analysis.reports import charts, paper_tables
from analysis.reports.cells import share_cell
from analysis.reports.classifier_cells import CLASSIFIER, INTERVALS, TEST_SET, auc_cell, in_words, on_left_out
from analysis.reports.classifier_data import Evaluated, Scored, TestSet, shortened, trained_on
from analysis.reports.classifier_figures import on_embedded
from analysis.reports.frame import Cell, Column, Estimate, Kind, Section, Table, Undefined
from generation.models import Method

BEFORE = "none"
PLACES = (BEFORE, *TrainingMethods.values)
"""The columns of both tables: trained on nothing, on ALICE, on top-k, on both."""
NAMES = {BEFORE: "Before", "alice": "ALICE", "topk": "top-k", "both": "ALICE + top-k"}
KINDS = {TrainingKind.HEAD: "head", TrainingKind.FULL: "full fine-tuning"}
METHODS = {Method.ALICE.value: "ALICE", Method.TOPK.value: "top-k"}
SUBSETS = METHODS | {Method.WRITTEN.value: "written by people"}
IN_PAPER = ", in the paper"
TEXTS = Column("texts", "Texts", Kind.COUNT)
FIGURES = tuple(Column(place, NAMES[place], Kind.NUMBER, 2) for place in PLACES)
MOST_IN_FIGURE = 8
SAME_SIZE = (
    "The paper takes as many statements of each method, and both together. How many each was trained on here stands "
    "under “What they were trained on”."
)
NEWEST = "Of several classifiers that were trained alike the last one stands here; all stand under “All figures”."
OF_PAPER = "The paper's rows are its own, on its own version of the test set."


@dataclass(frozen=True)
class Family:
    """Classifiers that were trained from the same model in the same way; ``kind`` is "" for one as it came."""

    base: str
    kind: str = ""
    labels: str = ""

    @property
    def told(self) -> str:
        if not self.kind:
            return "as it came"
        return f"{KINDS[self.kind]}, {'prompt labels' if self.labels == LabelSource.PROMPT else 'human labels'}"


def sections(evaluated: Evaluated) -> Iterator[Section]:
    """Table 4, table 7 and what the classifiers were trained on."""
    yield _table_4(evaluated)
    yield _table_7(evaluated)
    yield _training(evaluated)


def families(evaluated: Evaluated) -> dict[Family, dict[str, str]]:
    """The classifiers of each family by what they were trained on; those trained last, of several."""
    found: dict[Family, dict[str, str]] = {}
    for trained in evaluated.trained:
        family = found.setdefault(Family(trained.base, trained.kind, trained.labels), {BEFORE: trained.base})
        family[trained.methods] = trained.name
    told = {model for family in found.values() for model in family.values()} | {
        trained.name for trained in evaluated.trained
    }
    for scored in evaluated.scored:
        if scored.model not in told:
            found.setdefault(Family(scored.model), {BEFORE: scored.model})
    return found


# --- Table 4 --------------------------------------------------------------------------------------


def _table_4(evaluated: Evaluated) -> Section:
    rows: list[dict[str, Cell]] = []
    for test_set in evaluated.test_sets:
        rows += _rows(evaluated, test_set, test_set.name, lambda scored: scored)
        rows += _of_paper(paper_tables.AUC, test_set.paper, test_set.name)
    return Section(
        "table-4",
        "Before and after training",
        " ".join((*evaluated.warnings(), _says(evaluated, rows))),
        {"test sets": len(evaluated.test_sets), "evaluations": len(evaluated.scored)},
        Table(_columns(evaluated), tuple(rows)),
        _chart(evaluated, rows),
        paper="Table 4",
        notes=(
            "AUC: the chance that a toxic text gets a higher probability than a benign one; 0.5 is guessing.",
            *_notes(evaluated, rows, evaluated.test_sets),
        ),
    )


def _rows(
    evaluated: Evaluated, test_set: TestSet, name: str, part: Callable[[Scored], Scored]
) -> Iterator[dict[str, Cell]]:
    """A row for each family of which something was evaluated on the set; ``part`` takes what of it is looked at."""
    for family, models in families(evaluated).items():
        found = {place: evaluated.of(model, test_set) for place, model in models.items()}
        if not any(found.values()):
            continue
        row: dict[str, Cell] = {"test_set": name, "classifier": f"{family.base}, {family.told}"}
        for place in PLACES if family.kind else (BEFORE,):
            scored = found.get(place)
            row[place] = auc_cell(part(scored)) if scored else Undefined(_why_not(family, models, place, test_set))
        row["texts"] = max(len(part(scored).results.probs) for scored in found.values() if scored)
        yield row


def _why_not(family: Family, models: Mapping[str, str], place: str, test_set: TestSet) -> str:
    if place not in models:
        return f"None of the classifiers shown was trained on {NAMES[place]} from {family.base} ({family.told})."
    if place == BEFORE and family.kind == TrainingKind.HEAD:
        return (
            f"{family.base} was not evaluated on {test_set.name}. An encoder without a head tells nothing toxic: then "
            "there is no before."
        )
    return f"{models[place]} was not evaluated on {test_set.name}."


def _of_paper(published: Mapping[tuple[str, str], Sequence[float]], key: str, name: str) -> Iterator[dict[str, Cell]]:
    for (place, classifier), figures in published.items():
        if place == key:
            row: dict[str, Cell] = {"test_set": name, "classifier": f"{classifier}{IN_PAPER}"}
            yield row | dict(zip(PLACES, figures, strict=True))


def _says(evaluated: Evaluated, rows: Iterable[Mapping[str, Cell]]) -> str:
    told, names = [], _names(evaluated)
    for row in rows:
        after = [place for place in PLACES[1:] if isinstance(row.get(place), Estimate)]
        if isinstance(row.get(BEFORE), Estimate) and after:
            told.append(
                f"On {row['test_set']} the AUC is {in_words(row[BEFORE])} before training and "
                f"{in_words(row[after[-1]])} after training on {NAMES[after[-1]]} ({names[str(row['classifier'])]})."
            )
    if told:
        return " ".join(told[:2])
    return "No classifier was evaluated both before and after its training, on the same test set."


def _columns(evaluated: Evaluated) -> tuple[Column, ...]:
    return TEST_SET, replace(CLASSIFIER, names=_names(evaluated)), *FIGURES, TEXTS


def _names(evaluated: Evaluated) -> dict[str, str]:
    """What people read in place of the names of families."""
    bases = {family: evaluated.short.get(family.base, family.base) for family in families(evaluated)}
    return {f"{family.base}, {family.told}": f"{short}, {family.told}" for family, short in bases.items()}


def _chart(evaluated: Evaluated, rows: Sequence[Mapping[str, Cell]]) -> charts.Chart:
    """The first rows that are ours."""
    names = _names(evaluated)
    ours = [row for row in rows if row["classifier"] in names][:MOST_IN_FIGURE]
    places = [f"{shortened(str(row['test_set']))}, {names[str(row['classifier'])]}" for row in ours]
    return charts.points(
        {NAMES[place]: [row.get(place) for row in ours] for place in PLACES},
        places,
        x_title="",
        y_title="AUC",
        horizontal=True,
    )


def _notes(evaluated: Evaluated, rows: Iterable[Mapping[str, Cell]], test_sets: Iterable[TestSet]) -> Iterator[str]:
    yield INTERVALS
    if evaluated.trained:
        yield SAME_SIZE
        yield NEWEST
    if any(str(row["classifier"]).endswith(IN_PAPER) for row in rows):
        yield OF_PAPER
    yield from on_left_out(scored for test_set in test_sets for scored in evaluated.on(test_set))
    yield from on_embedded(evaluated)
    yield from evaluated.notes


# --- Table 7 --------------------------------------------------------------------------------------


def _table_7(evaluated: Evaluated) -> Section:
    title = "HUMANVAL by method"
    says = "The same AUC on the statements of HUMANVAL that ALICE wrote, and on those of top-k."
    sets = [test_set for test_set in evaluated.test_sets if test_set.is_humanval]
    if not sets:
        missing = "No classifier was evaluated on a HUMANVAL set. Freeze one, then have classifiers evaluated on it."
        return Section("table-7", title, says, paper="Table 7", missing=missing)
    rows: list[dict[str, Cell]] = []
    for test_set in sets:
        there = {method for scored in evaluated.on(test_set) for method in scored.results.methods}
        for method, label in SUBSETS.items():
            if method in METHODS or method in there:
                name = f"{test_set.name}, {label}"
                rows += _rows(evaluated, test_set, name, lambda scored, of=method, its=name: _part(scored, of, its))
                rows += _of_paper(paper_tables.AUC_BY_METHOD, method, name)
    return Section(
        "table-7",
        title,
        says,
        {"HUMANVAL sets": len(sets)},
        Table(_columns(evaluated), tuple(rows)),
        _chart(evaluated, rows),
        paper="Table 7",
        notes=(
            "The paper: without training a classifier does worse on what ALICE wrote, since ALICE searched for what "
            "deceives it.",
            *_notes(evaluated, rows, sets),
        ),
    )


def _part(scored: Scored, method: str, name: str) -> Scored:
    chosen = np.array([its == method for its in scored.results.methods], dtype=bool)
    return scored.only(chosen, name)


# --- What they were trained on --------------------------------------------------------------------

OF_TRAINING = (
    Column("trained", "Training"),
    Column("methods", "Written by", names=dict(TrainingMethods.choices)),
    Column("n", "Statements (n)", Kind.COUNT),
    Column("toxic", "Toxic", Kind.SHARE, 1),
    Column("validation", "Decided when to stop", Kind.COUNT),
    Column("seed", "Seed"),
    Column("ended", "Ended"),
)


def _training(evaluated: Evaluated) -> Section:
    title = "What they were trained on"
    says = "The statements that the classifiers of these tables, as far as they were trained here, learnt from."
    if not evaluated.trained:
        missing = "None of the classifiers that were evaluated was trained here. Order a training, then evaluate it."
        return Section("training", title, says, missing=missing)
    counts = trained_on(evaluated.trained)
    return Section(
        "training",
        title,
        says,
        {"trained classifiers": len(evaluated.trained)},
        Table(
            _of_training(evaluated), tuple(_row_of_training(one, counts.get(one.pk, {})) for one in evaluated.trained)
        ),
        notes=("None is of a HUMANVAL set that was there when the training began, or too similar to one.",),
    )


def _of_training(evaluated: Evaluated) -> tuple[Column, ...]:
    names = evaluated.short
    return replace(CLASSIFIER, names=names), Column("base", "Trained from", names=names), *OF_TRAINING


def _row_of_training(trained: TrainedClassifier, counts: Mapping[str, int]) -> dict[str, Cell]:
    n = counts.get("n", 0)
    return {
        "classifier": trained.name,
        "base": trained.base,
        "trained": Family(trained.base, trained.kind, trained.labels).told,
        "methods": trained.methods,
        "n": n,
        "toxic": share_cell(counts.get("toxic", 0), n, "statements that it was trained on"),
        "validation": counts.get("validation", 0),
        "seed": str(trained.seed),
        "ended": f"{trained.finished_at:%Y-%m-%d}",
    }
