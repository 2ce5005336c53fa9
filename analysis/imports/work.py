"""An import under way: what was asked for, what has been found, how far it is."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from analysis.imports.faults import Faults, Refused
from analysis.imports.wording import option
from analysis.models import DataImport
from generation.models import Label, Method

REFUSE, SKIP = "refuse", "skip"
MOST_NAMED = 20
TICK = 500
"""Rows between two looks at how far the file is."""


class WrongOption(ValueError):
    """What was asked for makes no sense; ``str`` says what to ask for instead."""


@dataclass(frozen=True)
class Options:
    """What whoever imports may say about a file. ``group``, ``label`` and ``method`` stand in where it is silent."""

    on_fault: str = REFUSE
    make_groups: bool = False
    group: str = ""
    label: str = ""
    method: str = ""
    study: str = ""
    encoding: str = ""

    def __post_init__(self) -> None:
        for name, known in (
            ("on_fault", (REFUSE, SKIP)),
            ("label", ("", *Label.values)),
            ("method", ("", *Method.values)),
        ):
            if (value := getattr(self, name)) not in known:
                words = ", ".join(filter(None, known))
                raise WrongOption(f"{name.replace('_', '-')} cannot be {value!r}. Choose one of: {words}.")
        if len(self.study) > 200:
            raise WrongOption(f"A study's title has at most 200 characters; this one has {len(self.study)}.")

    def given(self) -> dict:
        """Those that were given, as they are stored with the import."""
        return {name: value for name, value in vars(self).items() if value != getattr(Options, name)}


class Progress:
    """How far an import is. The one who reads writes it here; others look at it, and may stop the reading."""

    def __init__(self) -> None:
        self.bytes_read = self.rows = 0
        self.stop_reason: Exception | None = None

    def at(self, position: int, rows: int) -> None:
        self.bytes_read, self.rows = position, rows
        self.check()

    def check(self) -> None:
        if self.stop_reason is not None:
            raise self.stop_reason


@dataclass
class Work:
    """Passed from the reading of a file to the storing of it."""

    options: Options
    record: DataImport
    may_fill_toxic_sets: bool = True
    progress: Progress = field(default_factory=Progress)
    faults: Faults = field(default_factory=Faults)
    rows: int = 0
    new: int = 0
    known: int = 0
    stored: Counter = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    unknown_groups: dict[str, None] = field(default_factory=dict)

    @property
    def good(self) -> int:
        return self.rows - self.faults.count

    def refuse_if_bad(self) -> None:
        """Raise ``Refused`` if a row is bad, unless such rows are to be skipped."""
        self.progress.check()
        if not self.faults.count or (self.options.on_fault == SKIP and self.good):
            return
        bad = self.faults.count
        of_them = f"{bad:,} of {self.rows:,} rows are bad" if bad != 1 else f"1 of {self.rows:,} rows is bad"
        sentence = f"Nothing was stored: {of_them}."
        if self.unknown_groups:
            names = ", ".join(list(self.unknown_groups)[:MOST_NAMED])
            if len(self.unknown_groups) > MOST_NAMED:
                names += f" and {len(self.unknown_groups) - MOST_NAMED:,} more"
            sentence += f" These groups are not known: {names}. Tick {option('make_groups')}, or mend the file."
        elif self.good:
            sentence += f" Mend the file, or choose {option('on_fault', SKIP)}."
        raise Refused(sentence, self.faults)


Tick = Callable[[int], None]
