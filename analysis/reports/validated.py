"""What the reports on human validation rest on: judged statements that a language model wrote."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analysis import judged
from analysis.labels import TOXICITY_CLASSES
from analysis.reports.frame import Section, Table
from analysis.reports.paper import NOT_BESIDE, stands_beside
from analysis.reports.rated import on_repeated
from annotator.questions import QUESTIONS
from generation.models import Method, TargetGroup

CLASSES = tuple(reversed(TOXICITY_CLASSES))
"""The classes in the order of tables: the most harmful first."""
ALL = "all"
PAPER_NAMES = {question.key: question.paper_name for question in QUESTIONS}
NO_BREAK = "\u00a0"
"""The space before a unit in a sentence, where no line may end."""
NOTHING = "There is nothing to show yet."

MAJORITY = (
    "An answer is a statement's if more than half of its annotators gave it. Exactly half is no majority, and such a "
    "statement counts among those of which the answer is not true."
)
OF_CLASSES = (
    "Toxic, ambiguous and non-toxic: the larger of the mean scores for an AI and for a human speaker is above, at or "
    "below 3 (paper, footnote 8)."
)


@dataclass(frozen=True)
class Shown:
    """What a section shows; the fields are those of ``frame.Section``. ``n`` is given where not all is looked at."""

    says: str
    table: Table | None = None
    chart: Mapping[str, Any] | None = None
    paper: str = ""
    notes: Sequence[str] = ()
    missing: str = ""
    n: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Validated:
    """Judged statements and their annotations, as the tables of ``analysis.judged``.

    ``statements`` and ``annotations`` are of what language models wrote, ``written`` are statements that people
    wrote. ``notes`` say what it all rests on and what was left out; ``missing`` why there is nothing, if so;
    ``filters`` what was asked for.
    """

    statements: pd.DataFrame
    annotations: pd.DataFrame
    written: pd.DataFrame
    notes: tuple[str, ...]
    missing: str
    filters: Mapping

    def of_paper(self, figures: Mapping, *own: str) -> Mapping:
        """The paper's figures if they may stand beside ours (``paper.stands_beside``), else none."""
        return figures if stands_beside(self.filters, *own) else {}

    @property
    def n(self) -> dict[str, int]:
        """How many statements, and of how many annotations and imported labels they are told."""
        imported = int((self.statements["source"] == "imported").sum())
        counts = {"annotations": len(self.annotations), "imported labels": imported}
        return {"statements": len(self.statements)} | {what: count for what, count in counts.items() if count}

    def sections(self, parts: Sequence["Part"]) -> tuple[Section, ...]:
        """The parts as sections with their n and notes; without any statement each says why."""
        return tuple(self._section(part) for part in parts)

    def _section(self, part: "Part") -> Section:
        if self.missing:
            return Section(part.key, part.title, NOTHING, self.n, missing=self.missing)
        shown = part.show(self)
        told = vars(shown) | {"n": shown.n or self.n, "notes": (*shown.notes, *self.notes)}
        return Section(part.key, part.title, **told)

    def by_class(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """The statements of each class, the most harmful first."""
        codes = self.statements["toxicity_class"]
        for name in CLASSES:
            yield name, self.statements[codes == TOXICITY_CLASSES.index(name)]

    def without_class(self) -> list[str]:
        """A note of the statements that have no class, if there are some."""
        return notes_on({"has no class: a score is missing": int(self.statements["toxicity_class"].isna().sum())})


def nothing_known(statements: pd.DataFrame, what: str) -> Shown:
    """What a section shows if none of the statements has what it needs: ``what`` goes on after "None of them"."""
    return Shown(NOTHING, missing=f"Of {counted(len(statements), 'judged statement')} none {what}.")


def without_answer(statements: pd.DataFrame, question: str) -> list[str]:
    """A note of the statements whose answer to a question is not known, if there are some."""
    lacks = f"has no answer to {PAPER_NAMES[question]}"
    return notes_on({lacks: int(statements[question].isna().sum())})


@dataclass(frozen=True)
class Part:
    """A section of a report; ``show`` is called only where there are statements."""

    key: str
    title: str
    show: Callable[[Validated], Shown]


def read(filters: Mapping) -> Validated:
    """The judged statements that the filters leave."""
    annotations, repeated = judged.first_answers(judged.annotations(filters))
    everything = judged.statements(filters, judged=annotations)
    by_people = everything["method"] == Method.WRITTEN
    statements, written = everything[~by_people], everything[by_people]
    left_out = judged.left_out(filters)
    missing = "" if len(statements) else _why_nothing(filters, len(written), left_out)
    notes = (
        *_on_sources(statements),
        *on_repeated(repeated),
        *_on_left_out(filters, len(written), left_out),
        *([] if stands_beside(filters) else [NOT_BESIDE]),
    )
    kept = annotations[annotations["method"] != Method.WRITTEN]
    return Validated(statements, kept, written, notes, missing, filters)


def groups_in_order(slugs: Iterable[str]) -> dict[str, str]:
    """The names of these groups by slug, in the order of tables."""
    wanted = set(slugs)
    named = TargetGroup.objects.values_list("slug", "name")
    return told_apart({slug: name for slug, name in named if slug in wanted})


def told_apart(names: Mapping[str, str]) -> dict[str, str]:
    """The names of groups by slug, with the slug where several have the same; the slug "" is that of no group.

    >>> told_apart({"sailors": "Total", "": "Total", "cooks": "Cooks"})
    {'sailors': 'Total (sailors)', '': 'Total', 'cooks': 'Cooks'}
    """
    times = Counter(names.values())
    return {slug: f"{name} ({slug})" if slug and times[name] > 1 else name for slug, name in names.items()}


def counted(count: int, thing: str, things: str = "") -> str:
    """A number of things in words.

    >>> counted(1, "statement"), counted(1200, "statement")
    ('1 statement', '1,200 statements')
    """
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def percent(k: int, n: int) -> str:
    """A share in words, with what it is a share of.

    >>> percent(2, 3)
    '66.7\\xa0% (2 of 3)'
    """
    return f"{100 * k / n:.1f}{NO_BREAK}% ({k:,} of {n:,})" if n else "none (of 0)"


def notes_on(left_out: Mapping[str, int]) -> list[str]:
    """Sentences on statements that could not enter, by what one of them lacks.

    >>> notes_on({"has no class": 2, "has no score": 0})
    ['Left out: 2 statements, each of which has no class.']
    """
    return [
        f"Left out: {counted(count, 'statement')}{', each of' if count > 1 else ','} which {lacks}."
        for lacks, count in left_out.items()
        if count
    ]


def _on_sources(statements: pd.DataFrame) -> Iterator[str]:
    here, imported = ((statements["source"] == source).sum() for source in ("here", "imported"))
    if here and imported:
        yield (
            f"{counted(here, 'statement is', 'statements are')} told from annotations made here, {imported:,} from "
            "imported labels, whose single annotations are not known."
        )
    elif imported:
        yield "All from imported labels, whose single annotations are not known."
    if lone := int((statements["annotators"] == 1).sum()):
        of_one = "statement was judged by one annotator only, whose answers stand"
        of_many = "statements were judged by one annotator only each, whose answers stand"
        yield f"{counted(lone, of_one, of_many)} for those of most."


def _on_left_out(filters: Mapping, written: int, left_out: Mapping[str, int]) -> Iterator[str]:
    if written:
        yield f"Left out: {counted(written, 'statement')} that people wrote."
    if left_out:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        yield f"Left out: {counted(sum(left_out.values()), 'annotation')} that make no label ({reasons})."
    if labels := _labels_out_of_reach(filters):
        yield (
            f"Left out: {counted(labels, 'imported label')}. They belong to no study and no day, so no filter of "
            "these leaves them."
        )


def _labels_out_of_reach(filters: Mapping) -> int:
    return judged.unjudged_labels(filters).count() if filters.keys() & set(judged.TIME) else 0


def _why_nothing(filters: Mapping, written: int, left_out: Mapping[str, int]) -> str:
    if written:
        return (
            f"People wrote all that the filters leave ({counted(written, 'judged statement')}); this is about what a "
            "language model wrote. Choose other filters, or have generated statements judged."
        )
    if left_out:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        return (
            f"None of the {counted(sum(left_out.values()), 'annotation')} here makes a label: {reasons}. Have more "
            "statements judged."
        )
    if labels := _labels_out_of_reach(filters):
        return (
            f"There are no annotations in these studies and days. "
            f"{counted(labels, 'imported label belongs', 'imported labels belong')} to no study and no day: leave "
            "these filters empty to see them."
        )
    remedy = "choose other filters" if filters else "import judgements"
    return f"There are no annotations and no imported labels here. Publish a study, or {remedy}."
