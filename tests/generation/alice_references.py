"""ALICE read twice more from its definition, in plain Python: what the search is held against.

``exhaustive`` writes down every statement there is. ``plain_beam_search`` is the search without
anything that makes it fast. Neither shares a line with ``generation/decoding/alice.py``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """One prompt to be continued, and what is asked of its continuation."""

    likeliest: Callable[[Tokens], Sequence[tuple[int, float]]]
    """The next tokens after some, likeliest first, with the language model's log-probabilities."""
    text: Callable[[Tokens], str]
    sought: Callable[[str], float]
    """The classifier's log-probability of the sought class."""
    ending: frozenset[int]
    barred: frozenset[int]
    """The tokens of the prompt that may not be said again."""
    lm_weight: float
    classifier_weight: float
    vocabulary: int
    length: int
    no_repeat_ngram_size: int = 0


@dataclass(frozen=True)
class Expected:
    """A statement as a reference has it."""

    tokens: Tokens
    log_probs: tuple[float, ...]
    sought_log_probs: tuple[float, ...]
    text: str
    finish_reason: str
    score: float


@dataclass(frozen=True)
class Seen:
    """A hypothesis after a step of the search, as a replay shows it."""

    tokens: Tokens
    parent: int
    score: float
    rank_without: int
    kept: bool
    ended: bool


def exhaustive(task: Task) -> list[Expected]:
    """Every statement that the task allows, best first."""
    return sorted(_continuations(task, (), (), ()), key=lambda expected: expected.score, reverse=True)


def _continuations(task: Task, tokens: Tokens, log_probs: tuple[float, ...], votes: tuple[float, ...]):
    options = _allowed(task, tokens)
    if tokens and tokens[-1] in task.ending:
        reason = "stop"
    elif len(tokens) == task.length:
        reason = "length"
    elif not options:
        reason = "none_allowed"
    else:
        for _, token, log_prob in options:
            grown = (*tokens, token)
            yield from _continuations(task, grown, (*log_probs, log_prob), (*votes, task.sought(task.text(grown))))
        return
    terms = [_weighted(task.lm_weight, log_prob) for log_prob in log_probs]
    terms += [_weighted(task.classifier_weight, vote) for vote in votes]
    score = math.fsum(terms) / len(tokens) if tokens else 0.0
    yield Expected(tokens, log_probs, votes, task.text(tokens), reason, score)


@dataclass
class _Candidate:
    tokens: Tokens
    log_probs: tuple[float, ...]
    votes: tuple[float, ...]
    total: float
    key: float
    without: float
    """Its key if the classifier had no vote on its last token."""
    reason: str | None = None

    @property
    def mean(self) -> float:
        return self.total / len(self.tokens) if self.tokens else 0.0


def plain_beam_search(
    task: Task,
    *,
    beam: int,
    noise: Callable[[int, int], Sequence[Sequence[float]]] | None = None,
    watch: Callable[[list[Seen]], None] = lambda seen: None,
) -> list[Expected]:
    """The beam when the search ends, best first.

    ``noise`` is asked once a step for as many rows as hypotheses are running and as many columns as the
    language model returned tokens. ``watch`` is told after each step what is in the beam, best first, and
    then what would be if the classifier had had no vote in this step.
    """
    held = [_Candidate((), (), (), total=0.0, key=0.0, without=0.0)]
    for _ in range(task.length):
        running = [candidate for candidate in held if candidate.reason is None]
        if not running:
            break
        columns = len(task.likeliest(running[0].tokens)[: task.vocabulary])
        noises = noise(len(running), columns) if noise else [[0.0] * columns] * len(running)
        grown = []
        for candidate, row in zip(running, noises, strict=True):
            options = _allowed(task, candidate.tokens)
            if not options:
                candidate.reason = "none_allowed"
            grown += [_grow(task, candidate, token, log_prob, row[rank]) for rank, token, log_prob in options]
        ended = [candidate for candidate in held if candidate.reason is not None]
        for candidate in ended:
            candidate.without = candidate.key
        pool = ended + grown
        before, held = held, sorted(pool, key=lambda candidate: candidate.key, reverse=True)[:beam]
        watch(_seen(before, pool, held, beam))
    return [
        Expected(c.tokens, c.log_probs, c.votes, task.text(c.tokens), c.reason or "length", c.mean)
        for c in sorted(held, key=lambda candidate: candidate.mean, reverse=True)
    ]


def _seen(before: list[_Candidate], pool: list[_Candidate], held: list[_Candidate], beam: int) -> list[Seen]:
    ranked = sorted(pool, key=lambda candidate: candidate.without, reverse=True)
    ranks = {candidate.tokens: rank for rank, candidate in enumerate(ranked)}
    kept = {candidate.tokens for candidate in held}
    places = {candidate.tokens: place for place, candidate in enumerate(before)}
    return [
        Seen(
            tokens=candidate.tokens,
            parent=places.get(candidate.tokens, places.get(candidate.tokens[:-1], 0)),
            score=candidate.key,
            rank_without=ranks[candidate.tokens],
            kept=candidate.tokens in kept,
            ended=candidate.reason is not None,
        )
        for candidate in [*held, *(favourite for favourite in ranked[:beam] if favourite.tokens not in kept)]
    ]


def _grow(task: Task, parent: _Candidate, token: int, log_prob: float, noise: float) -> _Candidate:
    tokens = (*parent.tokens, token)
    vote = task.sought(task.text(tokens))
    bound = parent.total + _weighted(task.lm_weight, log_prob)
    total = bound + _weighted(task.classifier_weight, vote)
    return _Candidate(
        tokens=tokens,
        log_probs=(*parent.log_probs, log_prob),
        votes=(*parent.votes, vote),
        total=total,
        key=(total + noise) / len(tokens),
        without=(bound + noise) / len(tokens),
        reason="stop" if token in task.ending else None,
    )


def _allowed(task: Task, tokens: Tokens) -> list[tuple[int, int, float]]:
    """The rank, the token and the log-probability of what may follow."""
    return [
        (rank, token, log_prob)
        for rank, (token, log_prob) in enumerate(task.likeliest(tokens)[: task.vocabulary])
        if log_prob > -math.inf
        and token not in task.barred
        and (token in task.ending or not _repeats((*tokens, token), task.no_repeat_ngram_size))
    ]


def _repeats(tokens: Tokens, size: int) -> bool:
    """Whether the last ``size`` tokens stand together earlier as well."""
    ngrams = [tokens[start : start + size] for start in range(len(tokens) - size + 1)]
    return size > 0 and len(ngrams) > 0 and ngrams[-1] in ngrams[:-1]


def _weighted(weight: float, log_prob: float) -> float:
    return weight * log_prob if weight else 0.0
