"""One step of ALICE's search: every candidate, who gets a vote of the classifier, and the new beam."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from generation.decoding.allowed import repeated_tokens
from generation.decoding.protocols import NONE_ALLOWED, STOP, LanguageModel, NextTokens
from generation.decoding.reading import Ballot, Texts
from generation.decoding.topk import gumbel_noise
from generation.parameters import AliceParameters, Selection

NEVER = float("-inf")


@dataclass(frozen=True)
class Vote:
    """A hypothesis of one step: what it is made of and how it fared.

    ``parent`` is the place in the beam before that it continues. ``token`` is empty for a hypothesis
    that had ended before. ``sought_log_prob`` is ``None`` where λ_C is 0. ``rank_without`` is the rank
    from 0 that it would have if the classifier had no vote on this token.
    """

    text: str
    token: str
    parent: int
    log_prob: float
    sought_log_prob: float | None
    score: float
    rank_without: int
    kept: bool
    ended: bool


@dataclass(frozen=True)
class SearchStep:
    """The new beam, best first, then what the language model alone would have kept besides."""

    position: int
    votes: tuple[Vote, ...]


@dataclass(slots=True, eq=False)
class Node:
    """A hypothesis in the making."""

    tokens: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    sought: tuple[float, ...] = ()
    total: float = 0.0
    key: float = 0.0
    """What it is compared by: its mean, with the noise it was chosen with if the search samples."""
    text: str = ""
    raw: str | None = ""
    """Its tokens' text as it is, unless it ends within a character."""
    reason: str = ""
    """Why it ended, if it did."""
    slot: int = 0
    """Its row in the model's last step."""

    @property
    def mean(self) -> float:
        return self.total / len(self.tokens) if self.tokens else 0.0


class Search:
    """The search from one prompt: its beam, best first, in which some hypotheses have ended."""

    def __init__(self, parameters: AliceParameters, banned: frozenset[int], seed: int) -> None:
        self.beam = [Node()]
        self.banned = torch.tensor(sorted(banned), dtype=torch.long)
        sampling = parameters.selection is Selection.SAMPLE
        self.stream = torch.Generator().manual_seed(seed) if sampling else None

    @property
    def running(self) -> list[Node]:
        return [node for node in self.beam if not node.reason]

    @property
    def ended(self) -> list[Node]:
        return [node for node in self.beam if node.reason]

    @property
    def best(self) -> list[Node]:
        return sorted(self.beam, key=lambda node: -node.mean)


class Pool:
    """Every hypothesis that could be in the new beams of B searches.

    That is, of each search, the M = W·n candidates of its running hypotheses (W at most), and what has
    ended. Arrays are (B, M), a search's candidates in the order of its beam and of the model's votes.
    """

    def __init__(
        self,
        searches: Sequence[Search],
        likeliest: NextTokens,
        *,
        model: LanguageModel,
        texts: Texts,
        parameters: AliceParameters,
    ) -> None:
        self.parameters, self.texts = parameters, texts
        self.running = [search.running for search in searches]
        self.breadth = likeliest.tokens.shape[-1]  # n
        nodes = [node for running in self.running for node in running]  # L
        for slot, node in enumerate(nodes):
            node.slot = slot
        self.length = len(nodes[0].tokens) + 1
        widest = max(map(len, self.running))
        rows = [row * widest + place for row, running in enumerate(self.running) for place in range(len(running))]

        def spread(values: Tensor, fill: float) -> Tensor:
            """From (L, n), a row a hypothesis, to (B, M)."""
            wide = torch.full((len(searches) * widest, self.breadth), fill, dtype=values.dtype)
            wide[rows] = values
            return wide.view(len(searches), -1)

        log_probs = likeliest.log_probs.double()
        totals = torch.tensor([[node.total] for node in nodes], dtype=torch.double)
        last_votes = torch.tensor([[node.sought[-1] if node.sought else 0.0] for node in nodes], dtype=torch.double)
        bound = totals + _weighted(parameters.lm_weight, log_probs)
        ends = model.ends(likeliest.tokens)

        self.tokens = spread(likeliest.tokens, 0)
        self.log_probs = spread(log_probs, NEVER)
        self.ends = spread(ends, False)
        self.allowed = spread(_allowed(searches, likeliest, ends, parameters.no_repeat_ngram_size), False)
        self.noise = spread(_noise(searches, self.breadth), 0.0)
        self.bound = spread(bound, NEVER)
        self.guess = spread(bound + _weighted(parameters.classifier_weight, last_votes), NEVER)
        self.sought = torch.zeros_like(self.bound)
        self.scored = torch.zeros_like(self.allowed)

        candidates = self.allowed.view(len(searches), widest, self.breadth).any(-1).tolist()
        for running, has_candidates in zip(self.running, candidates, strict=True):
            for node, has_one in zip(running, has_candidates, strict=False):
                if not has_one:
                    node.reason = NONE_ALLOWED
        self.ended = [search.ended for search in searches]
        self.ended_keys = torch.full((len(searches), parameters.beam), NEVER, dtype=torch.double)
        for row, ended in enumerate(self.ended):
            self.ended_keys[row, : len(ended)] = torch.tensor([node.key for node in ended], dtype=torch.double)

    def vote(self, ballot: Ballot, *, pruning: bool) -> None:
        """Let the classifier vote until no candidate without its vote can enter a beam.

        The vote is a log-probability, so the rest of the score bounds the score from above. Candidates
        are read in the order of that bound, a round's together: those that would enter if the
        classifier judged them as it judged the text without their token.
        """
        if not self.parameters.classifier_weight:
            self.scored = self.allowed
            return
        self._read(self.allowed & self.ends, ballot, only_known=True)
        bound, guess = self._key(self.bound), self._key(self.guess)
        while bool((waiting := self.allowed & ~self.scored).any()):
            if not pruning:
                return self._read(waiting, ballot)
            keys = self._keys()
            able = waiting & (bound >= self._lowest_of_the_beam(keys))
            if not bool(able.any()):
                return
            likely = able & (bound >= self._lowest_of_the_beam(torch.where(waiting, guess, keys)))
            self._read(torch.where(likely.any(-1, keepdim=True), likely, able), ballot)

    def best(self) -> list[list[Node]]:
        """The new beam of each search, best first; of equals, what stood first before."""
        keys = self._keys()
        entering = (self.scored & (keys >= self._lowest_of_the_beam(keys))).nonzero().tolist()
        pools = [list(ended) for ended in self.ended]
        for row, place in entering:
            pools[row].append(self._node(row, place))
        return [sorted(pool, key=lambda node: -node.key)[: self.parameters.beam] for pool in pools]

    def seen(self, row: int, before: list[Node], after: list[Node]) -> SearchStep:
        """The step as it is replayed: the new beam, and whom the classifier kept out of it.

        What the language model alone would have kept has a bound that is among the best, so the
        classifier has voted on it.
        """
        bound = self._key(self.bound)[row]
        places = self.allowed[row].nonzero().flatten().tolist()
        without = [(node.key, node.tokens) for node in self.ended[row]]
        without += [(bound[place].item(), self._tokens(row, place)) for place in places]
        ranked = [tokens for _, tokens in sorted(without, key=lambda pair: -pair[0])]
        favourites = set(ranked[: self.parameters.beam])
        kept = {node.tokens for node in after}
        crowded_out = [
            self._node(row, place)
            for place in places
            if (tokens := self._tokens(row, place)) in favourites and tokens not in kept
        ]
        parents = {node.tokens: place for place, node in enumerate(before)}
        ranks = {tokens: rank for rank, tokens in enumerate(ranked)}
        votes = [
            Vote(
                text=node.text,
                token="" if node.tokens in parents else self.texts.token(node.tokens[-1]),
                parent=parents[node.tokens if node.tokens in parents else node.tokens[:-1]],
                log_prob=node.log_probs[-1] if node.log_probs else 0.0,
                sought_log_prob=node.sought[-1] if node.sought else None,
                score=node.key,
                rank_without=ranks[node.tokens],
                kept=node.tokens in kept,
                ended=bool(node.reason),
            )
            for node in [*after, *sorted(crowded_out, key=lambda node: -node.key)]
        ]
        return SearchStep(self.length - 1, tuple(votes))

    def _read(self, chosen: Tensor, ballot: Ballot, *, only_known: bool = False) -> None:
        """Store the classifier's votes on the ``chosen`` (B, M); ``only_known``: those it has given already."""
        places = chosen.nonzero().tolist()
        texts = [self._text(row, place) for row, place in places]
        if only_known:
            known = [number for number, text in enumerate(texts) if text in ballot.votes]
            places, texts = [places[number] for number in known], [texts[number] for number in known]
        if not places:
            return
        ballot.read(texts)
        index = tuple(torch.tensor(places).T)
        self.sought[index] = torch.tensor([ballot.sought(text) for text in texts], dtype=torch.double)
        self.scored[index] = True

    def _text(self, row: int, place: int) -> str:
        parent, token = self._parts(row, place)
        return self.texts.extended(parent.raw, parent.tokens, token)[1]

    def _key(self, totals: Tensor) -> Tensor:
        return (totals + self.noise) / self.length

    def _keys(self) -> Tensor:
        """(B, M) what the scored candidates are compared by."""
        totals = self.bound + _weighted(self.parameters.classifier_weight, self.sought)
        return self._key(totals).where(self.scored, NEVER)

    def _lowest_of_the_beam(self, keys: Tensor) -> Tensor:
        """(B, 1) what is needed to be in a beam, given the candidates' keys and what has ended."""
        return torch.cat([self.ended_keys, keys], -1).topk(self.parameters.beam, dim=-1).values[:, -1:]

    def _parts(self, row: int, place: int) -> tuple[Node, int]:
        """The hypothesis that a candidate continues and its token."""
        return self.running[row][place // self.breadth], int(self.tokens[row, place])

    def _tokens(self, row: int, place: int) -> tuple[int, ...]:
        parent, token = self._parts(row, place)
        return (*parent.tokens, token)

    def _node(self, row: int, place: int) -> Node:
        parent, token = self._parts(row, place)
        raw, text = self.texts.extended(parent.raw, parent.tokens, token)
        weight, sought = self.parameters.classifier_weight, self.sought[row, place]
        total = self.bound[row, place] + _weighted(weight, sought)
        return Node(
            tokens=(*parent.tokens, token),
            log_probs=(*parent.log_probs, self.log_probs[row, place].item()),
            sought=(*parent.sought, sought.item()) if weight else (),
            total=total.item(),
            key=((total + self.noise[row, place]) / self.length).item(),
            text=text,
            raw=raw,
            reason=STOP if self.ends[row, place] else "",
            slot=parent.slot,
        )


def _weighted(weight: float, log_probs: Tensor) -> Tensor:
    """A weight of 0 counts for nothing, also against a log-probability of minus infinity."""
    return weight * log_probs if weight else torch.zeros_like(log_probs)


def _allowed(searches: Sequence[Search], likeliest: NextTokens, ends: Tensor, ngram: int) -> Tensor:
    """(L, n) which candidates may be chosen."""
    allowed = torch.ones_like(ends)
    first = 0
    for search in searches:
        for number, node in enumerate(search.running, start=first):
            if repeated := repeated_tokens(node.tokens, ngram):
                allowed[number] = ~torch.isin(likeliest.tokens[number], torch.tensor(sorted(repeated)))
        last = first + len(search.running)
        allowed[first:last] &= ~torch.isin(likeliest.tokens[first:last], search.banned)
        first = last
    return (allowed | ends) & (likeliest.log_probs > NEVER)


def _noise(searches: Sequence[Search], n: int) -> Tensor:
    """(L, n) Gumbel noise from each statement's own stream; none where the best are taken."""
    return torch.cat(
        [
            gumbel_noise([search.stream], len(search.running), n)[0]
            if search.stream
            else torch.zeros(len(search.running), n)
            for search in searches
        ]
    ).double()
