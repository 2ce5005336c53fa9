"""Everything up to a stored generation: groups, demonstrations, prompts, runs and their chunks."""

from generation.models.audit import AuditEntry
from generation.models.choices import Label, Method, Precision, RunMethod, has_text, nobody_has_it, one_of
from generation.models.generations import TEXT_DIGEST, TEXT_WORDS, FinishReason, Generation, digest
from generation.models.groups import Demonstration, DemonstrationQuerySet, Origin, Prompt, TargetGroup
from generation.models.readings import (
    Embedding,
    Perplexity,
    ReaderKind,
    Reading,
    ReadingChunk,
    ReadingChunkQuerySet,
    ReadingQuerySet,
    TextReader,
    ToxicityScore,
)
from generation.models.replays import Replay, ReplayQuerySet
from generation.models.runs import (
    OPEN_STATES,
    STATES_WITH_A_REASON,
    UNENDED_STATES,
    GenerationCell,
    GenerationChunk,
    GenerationChunkQuerySet,
    GenerationRun,
    GenerationRunQuerySet,
    RunState,
)
from generation.models.trials import BadBecause, Response, Trial, TrialQuerySet, Verdict

__all__ = [
    "OPEN_STATES",
    "STATES_WITH_A_REASON",
    "TEXT_DIGEST",
    "TEXT_WORDS",
    "UNENDED_STATES",
    "AuditEntry",
    "BadBecause",
    "Demonstration",
    "DemonstrationQuerySet",
    "Embedding",
    "FinishReason",
    "Generation",
    "GenerationCell",
    "GenerationChunk",
    "GenerationChunkQuerySet",
    "GenerationRun",
    "GenerationRunQuerySet",
    "Label",
    "Method",
    "Origin",
    "Perplexity",
    "Precision",
    "Prompt",
    "ReaderKind",
    "Reading",
    "ReadingChunk",
    "ReadingChunkQuerySet",
    "ReadingQuerySet",
    "Replay",
    "ReplayQuerySet",
    "Response",
    "RunMethod",
    "RunState",
    "TargetGroup",
    "TextReader",
    "ToxicityScore",
    "Trial",
    "TrialQuerySet",
    "Verdict",
    "digest",
    "has_text",
    "nobody_has_it",
    "one_of",
]
