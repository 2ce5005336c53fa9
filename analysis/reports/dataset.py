"""How many statements there are, how long they are and how many are implicit: tables 1 and 2 of the paper.

The texts go by once and none is kept, so that memory has a bound. Numbers are added up as integers: they are exact.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scipy.stats import t

from analysis.exports.filtering import of_statements
from analysis.profanity import ProfanityList, english, has_words
from analysis.reports import charts, paper_tables
from analysis.reports.cells import share_cell
from analysis.reports.frame import Cell, Column, Estimate, Kind, Report, Section, Table, Undefined
from analysis.reports.paper import NOT_BESIDE, stands_beside
from analysis.reports.paper_tables import Statistics
from analysis.reports.validated import groups_in_order
from generation.models import Generation, Label, Method

ROWS_AT_ONCE = 5_000
CONFIDENCE = 0.95
FROM_MACHINES = (Method.TOPK, Method.ALICE)
NOTHING = "There are no statements. Start a run, or import some; if filters are set, they leave none."
TOO_FEW = "It takes 2 statements to tell; there {}."

ENOUGH_TO_COMPARE = 30
"""Of fewer statements a share says little: none of them is called the most frequent."""

MEASURES = (
    Column("count", "Statements", Kind.COUNT),
    Column("mean", "Characters, mean", Kind.NUMBER),
    Column("sd", "Characters, sd", Kind.NUMBER),
    Column("implicit", "Implicit", Kind.SHARE, 1),
)
OF_PAPER = (
    Column("paper_count", "Statements in the paper", Kind.COUNT),
    Column("paper_mean", "Mean in the paper", Kind.NUMBER),
    Column("paper_sd", "Sd in the paper", Kind.NUMBER),
    Column("paper_implicit", "Implicit in the paper", Kind.SHARE, 1),
)


@dataclass
class Tally:
    """What is added up of some statements."""

    count: int = 0
    characters: int = 0
    squares: int = 0
    """The sum of the squared lengths."""
    explicit: int = 0
    wordless: int = 0

    def take(self, text: str, terms: ProfanityList) -> None:
        self.count += 1
        self.characters += len(text)
        self.squares += len(text) ** 2
        self.explicit += terms.is_explicit(text)
        self.wordless += not has_words(text)

    @property
    def implicit(self) -> int:
        return self.count - self.explicit

    @property
    def sd(self) -> float:
        """The standard deviation over n - 1; of two statements or more."""
        return math.sqrt((self.count * self.squares - self.characters**2) / (self.count * (self.count - 1)))


@dataclass(frozen=True)
class Beside:
    """Which of the paper's figures may stand beside ours: those of the same statements, all by language models."""

    filters: Mapping
    written: int
    """How many of the statements people wrote."""

    def of(self, published: Statistics | None, *own: str, written: int) -> Statistics | None:
        """The figures of Table 2 for a row that ``own`` filters tell, of which people wrote so many statements."""
        return None if written or not stands_beside(self.filters, *own) else published

    @property
    def notes(self) -> list[str]:
        notes = [] if stands_beside(self.filters) else [NOT_BESIDE]
        if self.written:
            wrote = "1 of these statements" if self.written == 1 else f"{self.written:,} of these statements"
            notes.append(
                f"People wrote {wrote}. Table 2 has none such: its figures stand only beside rows without any. Choose "
                "the methods top-k and ALICE to leave them out."
            )
        return notes


@dataclass
class Tallies:
    """The tallies by slug of the group, label and method."""

    of: dict[tuple[str, str, str], Tally] = field(default_factory=dict)

    def sum(self, *, group: str = "", label: str = "", methods: Iterable[str] = ()) -> Tally:
        """Those of a group, a label, some methods; of all that is not given."""
        methods = tuple(methods)
        total = Counter()
        for (its_group, its_label, its_method), tally in self.of.items():
            if group in ("", its_group) and label in ("", its_label) and (not methods or its_method in methods):
                total.update(vars(tally))
        return Tally(**total)


def make(filters: Mapping) -> Report:
    """The report over the statements that the filters leave."""
    terms = english()
    tallies = tally(filters, terms)
    total = tallies.sum()
    if not total.count:
        return Report("dataset", "Dataset", (Section("groups", "By group and label", "", missing=NOTHING),))
    n = {"statements": total.count}
    beside = Beside(filters, tallies.sum(methods=[Method.WRITTEN]).count)
    notes = tuple(_notes(terms, total))
    return Report(
        "dataset",
        "Dataset",
        (
            _by_group(tallies, n, (*notes, *beside.notes), beside),
            _by_method(tallies, n, (*notes[:1], *beside.notes), beside),
            _as_a_whole(tallies, n, notes[:1], beside),
        ),
    )


def tally(filters: Mapping, terms: ProfanityList) -> Tallies:
    """The statements added up, read through a cursor on the server."""
    tallies = Tallies()
    rows = Generation.objects.filter(of_statements(filters)).order_by()
    for *cell, text in rows.values_list("group__slug", "label", "method", "text").iterator(chunk_size=ROWS_AT_ONCE):
        tallies.of.setdefault(tuple(cell), Tally()).take(text, terms)
    return tallies


# --- Sections ---------------------------------------------------------------------------------


def _by_group(tallies: Tallies, n: Mapping[str, int], notes: tuple[str, ...], beside: Beside) -> Section:
    groups = groups_in_order(group for group, _, _ in tallies.of)
    rows = []
    for slug, name in groups.items():
        for label in Label.values:
            cell = {"group": slug, "label": label}
            written = tallies.sum(**cell, methods=[Method.WRITTEN]).count
            published = beside.of(paper_tables.BY_GROUP.get((slug, label)), *cell, written=written)
            rows.append({"group": name, "label": label, **_measures(tallies.sum(**cell), published)})
    rows.append({"group": "Total", **_measures(tallies.sum(), beside.of(paper_tables.ALL, written=beside.written))})
    table = _table((Column("group", "Group"), Column("label", "Prompt label")), rows)
    series = {label: [row["implicit"] for row in rows[:-1] if row["label"] == label] for label in Label.values}
    return Section(
        "groups",
        "By group and label",
        f"{_least_implicit(rows[:-1])} The figure shows the share that is implicit of each group and label.",
        n,
        table,
        charts.points(series, list(groups.values()), x_title="Group", y_title="Implicit", share=True),
        paper="Table 2",
        notes=notes,
    )


def _least_implicit(rows: Iterable[Mapping[str, Cell]]) -> str:
    """Where words of the list are most frequent, of the cells that have enough statements to be compared."""
    shares = [(row["implicit"].value, row) for row in rows if isinstance(row["implicit"], Estimate)]
    if all(share == 1 for share, _ in shares):
        return "No statement has a word of the profanity list."
    enough = [(share, row) for share, row in shares if row["count"] >= ENOUGH_TO_COMPARE]
    if not enough:
        return (
            f"Where words of the profanity list are most frequent cannot be told: no group has {ENOUGH_TO_COMPARE} "
            "statements of a label."
        )
    share, least = min(enough, key=lambda pair: pair[0])
    of = f"the {least['label']} ones about the group {least['group']}"
    return (
        f"Words of the profanity list are most frequent in {of}, of which {100 * share:.1f} % are implicit "
        f"(n = {least['count']:,}; of groups and labels with {ENOUGH_TO_COMPARE} statements or more)."
    )


def _by_method(tallies: Tallies, n: Mapping[str, int], notes: tuple[str, ...], beside: Beside) -> Section:
    there = {method for _, _, method in tallies.of}
    methods = [method for method in Method if method.value in there]
    published = {method: beside.of(paper_tables.BY_METHOD.get(method.value), "method", written=0) for method in methods}
    rows = [
        {"method": method.label, **_measures(tallies.sum(methods=[method]), published[method])} for method in methods
    ]
    rows.append({"method": "Total", **_measures(tallies.sum(), beside.of(paper_tables.ALL, written=beside.written))})
    total = tallies.sum()
    return Section(
        "methods",
        "By method",
        f"{100 * total.implicit / total.count:.1f} % of all statements are implicit, and they are "
        f"{total.characters / total.count:.1f} characters long on average. "
        "The figure shows the mean length of each method's statements.",
        n,
        _table((Column("method", "Method"),), rows),
        charts.points(
            {"Here": [row["mean"] for row in rows]},
            [str(row["method"]) for row in rows],
            x_title="Method",
            y_title="Characters",
            marks={str(row["method"]): row["paper_mean"] for row in rows if "paper_mean" in row} or None,
        ),
        paper="Table 2",
        notes=notes,
    )


def _as_a_whole(tallies: Tallies, n: Mapping[str, int], notes: tuple[str, ...], beside: Beside) -> Section:
    total = tallies.sum()
    toxic = tallies.sum(label=Label.TOXIC).count
    machines = tallies.sum(methods=FROM_MACHINES).count
    ours = {
        "dataset": "Here",
        "size": total.count,
        "hate": share_cell(toxic, total.count, "statements"),
        "implicit": share_cell(total.implicit, total.count, "statements"),
        "machine": share_cell(machines, total.count, "statements"),
    }
    published = {
        "dataset": "TOXIGEN, as published",
        "size": paper_tables.ALL.count,
        "hate": paper_tables.HATE_CLASS,
        "implicit": paper_tables.ALL.implicit,
        "machine": 1.0,
    }
    columns = (
        Column("dataset", "Dataset"),
        Column("size", "Size", Kind.COUNT),
        Column("hate", "Hate class", Kind.SHARE, 1),
        Column("implicit", "Implicit", Kind.SHARE, 1),
        Column("machine", "Generated by machine", Kind.SHARE, 1),
    )
    return Section(
        "whole",
        "The dataset as a whole",
        f"Of {total.count:,} statements {100 * toxic / total.count:.1f} % have a toxic prompt label "
        f"and {100 * total.implicit / total.count:.1f} % are implicit.",
        n,
        Table(columns, (ours, published) if stands_beside(beside.filters) else (ours,)),
        paper="Table 1",
        notes=(
            *notes,
            "A statement is of the hate class if its prompt was to bring out a toxic one, whatever became of it. "
            "Generated by machine are those that ALICE or top-k decoding wrote; the others were written by people.",
            f"The paper's tables differ: the counts of Table 2 make {100 * paper_tables.TOXIC_BY_COUNT:.1f} % toxic.",
        ),
    )


def _table(first: tuple[Column, ...], rows: list[dict[str, Cell]]) -> Table:
    beside = any("paper_count" in row for row in rows)
    return Table((*first, *MEASURES, *(OF_PAPER if beside else ())), tuple(rows))


def _measures(tally: Tally, published: Statistics | None) -> dict[str, Cell]:
    cells: dict[str, Cell] = {
        "count": tally.count,
        "mean": _mean(tally),
        "sd": tally.sd if tally.count > 1 else Undefined(TOO_FEW.format("is 1" if tally.count else "are none")),
        "implicit": share_cell(tally.implicit, tally.count, "statements"),
    }
    if published:
        cells |= {f"paper_{name}": value for name, value in vars(published).items()}
    return cells


def _mean(tally: Tally) -> Cell:
    """The mean length with Student's interval, if there are two statements to tell it from."""
    if not tally.count:
        return Undefined("There are no such statements.")
    mean = tally.characters / tally.count
    if tally.count == 1 or not tally.sd:
        return Estimate(mean)
    half = float(t.ppf((1 + CONFIDENCE) / 2, tally.count - 1)) * tally.sd / math.sqrt(tally.count)
    return Estimate(mean, mean - half, mean + half)


def _notes(terms: ProfanityList, total: Tally) -> list[str]:
    """What implicit means here, and how far that is what it means in the paper."""
    notes = [
        f"Implicit: without any of the {terms.terms} terms of the English list of {terms.source}, found as whole words "
        "in any case and between any punctuation, also in their simple plural. The paper took another list "
        "(footnote 7), so that shares may differ from its own.",
        f"Left out of the list for an everyday meaning that they have, too: {', '.join(terms.left_out)}.",
        "Characters are those of the text as it is stored. Intervals of means are Student's, of shares Wilson's; they "
        "say how far another set of statements, written in the same way, might differ.",
    ]
    if total.wordless:
        have = "1 statement has" if total.wordless == 1 else f"{total.wordless:,} statements have"
        notes.append(
            f"{have} no letter, only digits, signs or emoji: implicit, unless one of the signs is on the list."
        )
    return notes
