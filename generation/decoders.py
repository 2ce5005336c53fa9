"""A run's methods as one decoder: prompts in, of each what the run stores of it out."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from generation.decoding import alice, topk
from generation.decoding.alice import ScoredHypothesis
from generation.decoding.protocols import TOXIC, Classifier, Hypothesis, LanguageModel
from generation.decoding.reading import Ballot
from generation.devices import Batches, prompts_at_once
from generation.drawing import Output
from generation.parameters import AliceParameters, TopKParameters

DIGITS = 6


@dataclass
class Decoder:
    """Decodes each prompt by every method that ``parameters`` are given for.

    ``classifier_runs`` counts the texts that the classifier has read in searches. A statement
    does not depend on which others share its batch.
    """

    model: LanguageModel
    classifier: Classifier | None
    parameters: Mapping[str, TopKParameters | AliceParameters]
    group_words: Collection[str] = ()
    on_step: Callable[[], None] = lambda: None
    batches: Batches = field(default_factory=Batches)
    classifier_runs: int = 0

    def __call__(self, prompts: Sequence[str], seeds: Sequence[int]) -> list[dict[str, Output]]:
        """Of each prompt the outputs by method. Raises ``OutOfMemory`` and what the models raise."""
        by_method = {method: self._decode(parameters, prompts, seeds) for method, parameters in self.parameters.items()}
        return [dict(zip(by_method, outputs, strict=True)) for outputs in zip(*by_method.values(), strict=True)]

    def _decode(
        self, parameters: TopKParameters | AliceParameters, prompts: Sequence[str], seeds: Sequence[int]
    ) -> list[Output]:
        if isinstance(parameters, AliceParameters):
            beam, decode = parameters.beam, partial(self._search, parameters)
        else:
            beam, decode = 1, partial(self._draw, parameters)
        at_once = prompts_at_once(self.model, prompts, beam=beam, steps=parameters.max_new_tokens)
        return self.batches.decode(decode, prompts, seeds, at_once=at_once)

    def _draw(self, parameters: TopKParameters, prompts: Sequence[str], seeds: Sequence[int]) -> list[Output]:
        drawn = topk.decode(self.model, prompts, seeds=seeds, parameters=parameters, on_step=self.on_step)
        toxic_probs = self._toxic_probs([hypothesis.text for hypothesis in drawn])
        return [
            _output(hypothesis, toxic_prob=toxic_prob)
            for hypothesis, toxic_prob in zip(drawn, toxic_probs, strict=True)
        ]

    def _search(self, parameters: AliceParameters, prompts: Sequence[str], seeds: Sequence[int]) -> list[Output]:
        if self.classifier is None:
            raise ValueError("ALICE needs a classifier.")
        decoding = alice.decode(
            self.model,
            self.classifier,
            prompts,
            seeds=seeds,
            parameters=parameters,
            group_words=self.group_words,
            on_step=self.on_step,
        )
        self.classifier_runs += decoding.classifier_runs
        return [
            _output(
                found[0],
                score=found[0].score,
                toxic_prob=found[0].toxic_prob,
                hypotheses=[self._stored(hypothesis) for hypothesis in found],
            )
            for found in decoding.found
        ]

    def _toxic_probs(self, texts: Sequence[str]) -> Sequence[float | None]:
        """The classifier's probabilities that ``texts`` are toxic, where the run has a classifier."""
        if self.classifier is None:
            return [None] * len(texts)
        ballot = Ballot(self.classifier, TOXIC)
        ballot.read(texts)
        return [math.exp(ballot.sought(text)) for text in texts]

    def _stored(self, hypothesis: ScoredHypothesis) -> dict[str, object]:
        """A hypothesis as JSON, which has neither infinity nor null characters."""
        return {
            "text": hypothesis.text,
            "score": _rounded(hypothesis.score),
            "toxic_prob": _rounded(hypothesis.toxic_prob),
            "finish_reason": hypothesis.finish_reason,
            "tokens": [self.model.decode([token]).replace("\0", "") for token in hypothesis.tokens],
            "log_probs": [_rounded(log_prob) for log_prob in hypothesis.log_probs],
            "sought_log_probs": [_rounded(log_prob) for log_prob in hypothesis.sought_log_probs],
        }


def _output(hypothesis: Hypothesis, **scores: Any) -> Output:
    return Output(
        text=hypothesis.text,
        tokens=len(hypothesis.tokens),
        log_prob=sum(hypothesis.log_probs),
        finish_reason=hypothesis.finish_reason,
        **scores,
    )


def _rounded(value: float) -> float | None:
    """To six digits; ``None`` for minus infinity."""
    return round(value, DIGITS) if math.isfinite(value) else None
