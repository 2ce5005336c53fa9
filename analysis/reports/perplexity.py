"""How likely language models find the statements, by group and method: table 5 of the paper.

Read of what was stored: a perplexity for each statement and language model, by a reading on the queue.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from analysis.comparison import difference_of_means
from analysis.exports.filtering import of_statements
from analysis.reports import charts, paper_tables
from analysis.reports.cells import (
    correct,
    difference_cells,
    difference_columns,
    mean_cell,
    share_cell,
    spread_notes,
    test_notes,
)
from analysis.reports.frame import Cell, Column, Kind, Report, Section, Table, Undefined
from analysis.reports.paper import NOT_BESIDE, stands_beside
from analysis.reports.validated import told_apart
from generation.models import Method, Perplexity, ReaderKind, TargetGroup, TextReader

DROPPED_ABOVE = 500
"""As the paper does."""
SCALE = (1, DROPPED_ABOVE)
"""The perplexities that enter the means; none is below 1."""
ROWS_AT_ONCE = 10_000
METHODS = (Method.ALICE, Method.TOPK)
WHAT = f"statements with a perplexity of at most {DROPPED_ABOVE}"
TITLE = "Perplexity"
NOTHING = (
    "No language model has read these statements yet. Start a reading of the kind language model under Generate, "
    "Readings, or with: manage.py read_statements language_model."
)

MEASURES = (
    Column("group", "Group"),
    Column("method", "Method"),
    Column("mean", "Mean perplexity", Kind.NUMBER),
    Column("median", "Median of all", Kind.NUMBER),
    Column("kept", f"Statements up to {DROPPED_ABOVE}", Kind.COUNT),
    Column("dropped", f"Dropped, above {DROPPED_ABOVE}", Kind.COUNT),
    Column("dropped_share", "Share dropped", Kind.SHARE, 1),
    Column("undefined", "Without a perplexity", Kind.COUNT),
)
OF_PAPER = (Column("paper", "Mean in the paper (GPT-2)", Kind.NUMBER),)
BOTH_OF_PAPER = (
    Column("paper_alice", "ALICE in the paper (GPT-2)", Kind.NUMBER),
    Column("paper_topk", "top-k in the paper (GPT-2)", Kind.NUMBER),
)
TOTAL = ""
"""Stands among slugs for all groups together; no group has it."""


@dataclass
class Values:
    """The perplexities of some statements; ``undefined`` counts those that have none."""

    of: array = field(default_factory=lambda: array("d"))
    undefined: int = 0

    @property
    def all(self) -> np.ndarray:
        return np.frombuffer(self.of) if self.of else np.empty(0)

    @property
    def kept(self) -> np.ndarray:
        return self.all[self.all <= DROPPED_ABOVE]

    def add(self, others: "Values") -> None:
        self.of.extend(others.of)
        self.undefined += others.undefined


def make(filters: Mapping) -> Report:
    """The report over the statements that the filters leave; the model that was first used last comes first."""
    readers = TextReader.objects.filter(kind=ReaderKind.LANGUAGE_MODEL).order_by("-pk")
    sections = [section for reader in readers for section in _of_reader(reader, filters)]
    if not sections:
        sections = [Section("groups", "By group and method", "", paper="Table 5", missing=NOTHING)]
    return Report("perplexity", TITLE, tuple(sections))


def read(reader: TextReader, filters: Mapping) -> dict[tuple[str, str], Values]:
    """The perplexities under one model by slug of the group and method, read through a cursor on the server."""
    found: dict[tuple[str, str], Values] = {}
    rows = Perplexity.objects.filter(of_statements(filters, "generation__"), reader=reader).order_by()
    columns = rows.values_list("generation__group__slug", "generation__method", "value")
    for group, method, value in columns.iterator(chunk_size=ROWS_AT_ONCE):
        values = found.setdefault((group, method), Values())
        if value is None:
            values.undefined += 1
        else:
            values.of.append(value)
    return found


def _of_reader(reader: TextReader, filters: Mapping) -> Iterable[Section]:
    found = read(reader, filters)
    if not found:
        return
    there = {group for group, _ in found}
    groups = [(slug, name) for slug, name in TargetGroup.objects.values_list("slug", "name") if slug in there]
    methods = [method for method in Method if method in METHODS or any(its == method for _, its in found)]
    total = {method: _sum(values for (_, its), values in found.items() if its == method) for method in methods}
    cells = {(slug, method): found.get((slug, method)) or Values() for slug, _ in groups for method in methods}
    cells |= {(TOTAL, method): values for method, values in total.items()}
    of_paper = paper_tables.PERPLEXITY if stands_beside(filters, "group", "method") else {}
    published = {slug: of_paper.get(slug) for slug, _ in groups}
    published[TOTAL] = paper_tables.PERPLEXITY_OF_ALL if stands_beside(filters, "method") else None
    names = told_apart({**dict(groups), TOTAL: "Total"})
    notes = () if stands_beside(filters) else (NOT_BESIDE,)
    yield _by_group_and_method(reader, cells, published, names, notes)
    yield _alice_against_topk(reader, cells, published, names, notes)


def _sum(several: Iterable[Values]) -> Values:
    total = Values()
    for values in several:
        total.add(values)
    return total


# --- Sections ---------------------------------------------------------------------------------


def _by_group_and_method(
    reader: TextReader, cells: Mapping, published: Mapping, names: Mapping[str, str], notes: tuple[str, ...]
) -> Section:
    of = {key: _measures(values) | _published(published[key[0]], key[1]) for key, values in cells.items()}
    rows = [{"group": names[slug], "method": Method(method).label, **row} for (slug, method), row in of.items()]
    series = {method.label: [of[slug, method]["mean"] for slug in names] for method in METHODS}
    totals = [values for (slug, _), values in cells.items() if slug == TOTAL]
    kept, read_ = sum(len(values.kept) for values in totals), sum(len(values.all) for values in totals)
    undefined = sum(values.undefined for values in totals)
    return Section(
        f"reader-{reader.pk}",
        f"By group and method, under {reader.name}",
        f"{reader.name} read {read_ + undefined:,} statements; {read_ - kept:,} with a perplexity above "
        f"{DROPPED_ABOVE} are left out of the means. The lower the mean, the likelier the model finds the statements.",
        {"statements": read_ + undefined, "in the means": kept},
        Table((*MEASURES, *(OF_PAPER if any(published.values()) else ())), tuple(rows)),
        charts.bars(series, list(names.values()), x_title="Group", y_title="Mean perplexity"),
        paper="Table 5",
        notes=(
            f"The language model is {reader.name}, revision {reader.revision}. The paper's is GPT-2: another model's "
            "perplexities are on another scale, so that only their order and ratios can be compared.",
            "Perplexity is exp of the mean negative log-probability of a statement's tokens. A statement of which the "
            "model predicts no token has none: it is counted apart, in neither the means nor the shares. Medians are "
            f"of all values, also those above {DROPPED_ABOVE}.",
            *spread_notes(row["mean"] for row in rows),
            *notes,
        ),
    )


def _alice_against_topk(
    reader: TextReader, cells: Mapping, published: Mapping, names: Mapping[str, str], notes: tuple[str, ...]
) -> Section:
    rows = []
    for slug, of_paper in published.items():
        alice, topk = (cells[slug, method].kept for method in METHODS)
        row: dict[str, Cell] = {
            "group": names[slug],
            "alice": mean_cell(alice, WHAT, SCALE),
            "topk": mean_cell(topk, WHAT, SCALE),
            **difference_cells(lambda alice=alice, topk=topk: difference_of_means(alice, topk)),
        }
        if of_paper:
            row |= {"paper_alice": of_paper[0], "paper_topk": of_paper[1]}
        rows.append(row)
    # The total is no test beside those of the groups: it rests on the same statements.
    correct(rows[:-1])
    columns = (
        Column("group", "Group"),
        Column("alice", "ALICE", Kind.NUMBER),
        Column("topk", "top-k", Kind.NUMBER),
        *difference_columns("ALICE minus top-k"),
        *(BOTH_OF_PAPER if any(published.values()) else ()),
    )
    alice, topk = (len(cells[TOTAL, method].kept) for method in METHODS)
    chart = {"ALICE minus top-k": [row["difference"] for row in rows]}
    return Section(
        f"reader-{reader.pk}-difference",
        f"ALICE against top-k, under {reader.name}",
        _says(rows[-1]),
        {"ALICE": alice, "top-k": topk},
        Table(columns, tuple(rows)),
        charts.points(chart, list(names.values()), x_title="Group", y_title="Difference of mean perplexities"),
        paper="Table 5",
        notes=(
            *test_notes(rows),
            *spread_notes(cell for row in rows for cell in (row["alice"], row["topk"])),
            *notes,
        ),
    )


def _says(total: Mapping[str, Cell]) -> str:
    difference = total["difference"]
    if isinstance(difference, Undefined):
        return f"The two methods cannot be compared over all groups. {difference.reason}"
    direction = "lower" if difference.value < 0 else "higher"
    interval = (
        ""
        if difference.low is None
        else f" (95 % interval of the difference {difference.low:.1f} to {difference.high:.1f})"
    )
    return (
        f"Over all groups the mean perplexity of ALICE's statements is {abs(difference.value):.1f} {direction} than "
        f"that of top-k's{interval}."
    )


def _measures(values: Values) -> dict[str, Cell]:
    n, kept = len(values.all), len(values.kept)
    return {
        "mean": mean_cell(values.kept, WHAT, SCALE),
        "median": float(np.median(values.all)) if n else Undefined("There are no statements with a perplexity."),
        "kept": kept,
        "dropped": n - kept,
        "dropped_share": share_cell(n - kept, n, "statements with a perplexity"),
        "undefined": values.undefined,
    }


def _published(of_paper: tuple[float, float] | None, method: Method) -> dict[str, Cell]:
    return {"paper": of_paper[METHODS.index(method)]} if of_paper and method in METHODS else {}
