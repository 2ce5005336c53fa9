"""A search of ALICE as it is stored and drawn: each step's hypotheses, and what the classifier changed.

Pure, and apart from the search itself, so that the web process can draw it without torch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple, Protocol

DIGITS = 6
TAIL = 44  # so many characters fit into two lines of the page


class Fate(StrEnum):
    """What became of a hypothesis in a step."""

    KEPT = "kept"
    COMPLETE = "complete"
    BROUGHT_IN = "brought-in"
    KEPT_OUT = "kept-out"


FATES = {
    Fate.KEPT: "kept",
    Fate.COMPLETE: "kept, complete before",
    Fate.BROUGHT_IN: "brought in by the classifier",
    Fate.KEPT_OUT: "kept out by the classifier",
}


class Voted(Protocol):
    """What is stored of a hypothesis of a step (``decoding.search.Vote``)."""

    @property
    def text(self) -> str: ...
    @property
    def token(self) -> str: ...
    @property
    def parent(self) -> int: ...
    @property
    def log_prob(self) -> float: ...
    @property
    def sought_log_prob(self) -> float | None: ...
    @property
    def score(self) -> float: ...
    @property
    def rank_without(self) -> int: ...
    @property
    def kept(self) -> bool: ...
    @property
    def ended(self) -> bool: ...


class SeenVote(NamedTuple):
    """A hypothesis of a step as it is stored: both models' votes as probabilities.

    ``parent`` is its place in the beam of the step before, and ``rank_without`` the rank from 0 that it would
    have if the classifier had no vote on its token. ``score`` is ``None`` where it is minus infinity.
    """

    text: str
    token: str
    parent: int
    lm_prob: float
    sought_prob: float | None
    score: float | None
    rank_without: int
    kept: bool
    ended: bool

    @property
    def token_in_sight(self) -> str:
        """The token for a page, where a line break or an end mark would leave nothing to see."""
        if "\n" in self.token:
            return "↵"
        return self.token.strip() or ("␣" if self.token else "end")

    @property
    def lm_percent(self) -> float:
        return 100 * self.lm_prob

    @property
    def sought_percent(self) -> float | None:
        return None if self.sought_prob is None else 100 * self.sought_prob


def packed(votes: Sequence[Voted]) -> list[list[Any]]:
    """The hypotheses of a step as JSON can hold them and databases store them."""
    return [
        [
            vote.text,
            vote.token.replace("\0", ""),
            vote.parent,
            _probability(vote.log_prob),
            None if vote.sought_log_prob is None else _probability(vote.sought_log_prob),
            round(vote.score, DIGITS) if math.isfinite(vote.score) else None,
            vote.rank_without,
            vote.kept,
            vote.ended,
        ]
        for vote in votes
    ]


def tail_of(text: str) -> str:
    """The end of a long text: what its next token continues.

    >>> tail_of("the sea")
    'the sea'
    >>> len(tail_of("the sea " * 100))
    44
    """
    return text if len(text) <= TAIL else f"…{text[1 - TAIL :]}"


@dataclass(frozen=True)
class Row:
    """A hypothesis of a step with its fate; ``place`` counts from 1, ``parent`` too."""

    place: int
    vote: SeenVote
    parent: int
    parent_tail: str
    had_ended: bool
    brought_in: bool
    kept_out: bool
    on_path: bool

    @property
    def rank_without(self) -> int:
        return self.vote.rank_without + 1

    @property
    def tail(self) -> str:
        return tail_of(self.vote.text)

    @property
    def fate(self) -> Fate:
        if self.kept_out:
            return Fate.KEPT_OUT
        if self.brought_in:
            return Fate.BROUGHT_IN
        return Fate.COMPLETE if self.had_ended else Fate.KEPT

    @property
    def fate_in_words(self) -> str:
        ended = self.vote.ended and not self.had_ended and not self.kept_out
        return f"{FATES[self.fate]}; ends here" if ended else FATES[self.fate]


@dataclass(frozen=True)
class Line:
    """From a hypothesis of the beam before to one that continues it; heights are in rows."""

    start: float
    end: float
    row: Row


@dataclass(frozen=True)
class Mark:
    """A step in the strip of all steps: the token that the result has there, and what the classifier changed."""

    number: int
    vote: SeenVote | None
    brought_in: int


class Search:
    """The S steps of a search, as ``packed`` stores them, that ended with the statement ``text``."""

    def __init__(self, steps: Sequence[Sequence[Sequence[Any]]], *, beam: int, text: str) -> None:
        self.steps = [[SeenVote(*vote) for vote in votes] for votes in steps]
        self.beam = beam
        self.text = text

    def __len__(self) -> int:
        return len(self.steps)

    def kept(self, number: int) -> list[SeenVote]:
        """The beam after step ``number``, best first; steps count from 1 and 0 is the bare prompt."""
        return [vote for vote in self.steps[number - 1] if vote.kept] if number else []

    @cached_property
    def path(self) -> list[int]:
        """The place in each step's beam, from 0, of what became the result."""
        last = self.kept(len(self))
        place = next((place for place, vote in enumerate(last) if vote.text == self.text), 0)
        path = []
        for votes in reversed(self.steps):
            path.append(place)
            place = votes[place].parent
        return path[::-1]

    def brought_in(self, number: int) -> int:
        """How many of a step's beam the language model alone would have left out."""
        return sum(self._was_brought_in(vote) for vote in self.kept(number))

    @property
    def steps_changed(self) -> int:
        return sum(self.brought_in(number) > 0 for number in range(1, len(self) + 1))

    @property
    def all_brought_in(self) -> int:
        return sum(self.brought_in(number) for number in range(1, len(self) + 1))

    @property
    def marks(self) -> list[Mark]:
        """The strip of all steps, on which the result's token is missing once it has ended."""
        marks = []
        for number, place in enumerate(self.path, start=1):
            vote = self.steps[number - 1][place]
            marks.append(Mark(number, None if self._had_ended(number, vote) else vote, self.brought_in(number)))
        return marks

    def before(self, number: int) -> list[Row]:
        """The beam that step ``number`` continues; none for the first, which continues the prompt."""
        return [row for row in self.rows(number - 1) if row.vote.kept] if number > 1 else []

    def rows(self, number: int) -> list[Row]:
        """The hypotheses of a step: the new beam, best first, then what the classifier kept out."""
        before = self.kept(number - 1)
        return [
            Row(
                place=place + 1,
                vote=vote,
                parent=vote.parent + 1,
                parent_tail=tail_of(before[vote.parent].text) if before else "",
                had_ended=self._had_ended(number, vote),
                brought_in=self._was_brought_in(vote),
                kept_out=not vote.kept,
                on_path=vote.kept and place == self.path[number - 1],
            )
            for place, vote in enumerate(self.steps[number - 1])
        ]

    def lines(self, number: int) -> list[Line]:
        """From each parent to its continuations, those that lead to the result last, so that they lie on top."""
        lines = [Line(row.parent - 0.5, row.place - 0.5, row) for row in self.rows(number)]
        return sorted(lines, key=lambda line: (line.row.on_path, line.row.vote.kept))

    def _was_brought_in(self, vote: SeenVote) -> bool:
        return vote.kept and vote.rank_without >= self.beam

    def _had_ended(self, number: int, vote: SeenVote) -> bool:
        """Whether the hypothesis had ended before step ``number``."""
        return number > 1 and self.kept(number - 1)[vote.parent].ended


def _probability(log_prob: float) -> float:
    return round(math.exp(log_prob), DIGITS)
