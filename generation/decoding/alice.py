"""ALICE: beam search in which a classifier votes on every token (paper, 3.2, equation 1).

Pure torch and exact: every allowed candidate of every hypothesis is ranked by its full score, though
the classifier reads few of them. docs/decoding.md states the algorithm and its choices.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import torch

from generation.decoding.allowed import banned_tokens
from generation.decoding.protocols import BENIGN, LENGTH, TOXIC, Classifier, Hypothesis, LanguageModel
from generation.decoding.reading import Ballot, Texts
from generation.decoding.search import Node, Pool, Search, SearchStep
from generation.parameters import AliceParameters


@dataclass(frozen=True)
class ScoredHypothesis(Hypothesis):
    """A hypothesis with the classifier's votes.

    ``score`` is the mean over its tokens of λ_L·log p_LM + λ_C·log p_CLF(sought class), what
    hypotheses are compared by. ``sought_log_probs`` has the classifier's log-probability of the
    sought class for the text up to each token; it is empty where λ_C is 0, since nobody asked.
    ``toxic_prob`` is the classifier's probability of toxic for the whole text.
    """

    score: float
    sought_log_probs: tuple[float, ...]
    toxic_prob: float


@dataclass(frozen=True)
class Decoding:
    """Of each prompt the n best hypotheses, best first, and how many texts the classifier read."""

    found: list[tuple[ScoredHypothesis, ...]]
    classifier_runs: int


@torch.inference_mode()
def decode(
    model: LanguageModel,
    classifier: Classifier,
    prompts: Sequence[str],
    *,
    seeds: Sequence[int],
    parameters: AliceParameters,
    group_words: Collection[str] = (),
    on_step: Callable[[], None] = lambda: None,
    watch: Callable[[int, SearchStep], None] | None = None,
    pruning: bool = True,
) -> Decoding:
    """Search a continuation of each of B prompts.

    ``seeds`` (B) start the random stream of each statement, which only ``Selection.SAMPLE`` uses.
    ``group_words`` name the target group. ``on_step`` is called before each step of the model; what
    it raises ends the search. ``watch`` is called with the number of a prompt and each step of its
    search. Without ``pruning`` the classifier reads every candidate, to the same result.

    Raises ``NotANumber``.
    """
    if len(seeds) != len(prompts):
        raise ValueError(f"There are {len(prompts)} prompts and {len(seeds)} seeds; give one seed a prompt.")
    if not prompts:
        return Decoding([], 0)
    texts = Texts(model)
    ballot = Ballot(classifier, TOXIC if parameters.sought_class == "toxic" else BENIGN)
    encoded = [model.encode(prompt) for prompt in prompts]
    words = group_words if parameters.group_words_allowed else ()
    searches = [
        Search(parameters, banned_tokens(model, prompt, group_words=words), seed)
        for prompt, seed in zip(encoded, seeds, strict=True)
    ]
    going = list(enumerate(searches))
    for position in range(parameters.max_new_tokens):
        on_step()
        if position == 0:
            likeliest = model.start(
                encoded,
                best=parameters.vocabulary,
                temperature=parameters.temperature,
                steps=parameters.max_new_tokens,
            )
        else:
            nodes = [node for _, search in going for node in search.running]
            likeliest = model.step(
                torch.tensor([node.slot for node in nodes]), torch.tensor([node.tokens[-1] for node in nodes])
            )
        pool = Pool([search for _, search in going], likeliest, model=model, texts=texts, parameters=parameters)
        pool.vote(ballot, pruning=pruning)
        for row, ((number, search), beam) in enumerate(zip(going, pool.best(), strict=True)):
            if watch:
                watch(number, pool.seen(row, search.beam, beam))
            search.beam = beam
        going = [(number, search) for number, search in going if search.running]
        if not going:
            break
    best = [search.best[: parameters.n_best] for search in searches]
    ballot.read([node.text for nodes in best for node in nodes])
    return Decoding([tuple(_scored(node, ballot) for node in nodes) for nodes in best], ballot.runs)


def _scored(node: Node, ballot: Ballot) -> ScoredHypothesis:
    return ScoredHypothesis(
        text=node.text,
        tokens=node.tokens,
        log_probs=node.log_probs,
        finish_reason=node.reason or LENGTH,
        score=node.mean,
        sought_log_probs=node.sought,
        toxic_prob=math.exp(ballot.votes[node.text][TOXIC]),
    )
