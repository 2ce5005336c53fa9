"""The model card of a trained classifier: YAML that the hub reads, and text that people do. Without torch."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.training.outcomes import Scores

DIGITS = 4


@dataclass(frozen=True)
class Count:
    """How many texts of one method, label and group were trained on, and how many decided when to stop."""

    method: str
    label: str
    group: str
    trained_on: int
    validation: int


@dataclass(frozen=True)
class Facts:
    """What a card tells. ``kind``, ``labels`` and ``methods`` are in words; ``left_out`` is by the reason."""

    name: str
    kind: str
    base: str
    base_revision: str
    labels: str
    methods: str
    counts: Sequence[Count]
    left_out: Mapping[str, int]
    data_digest: str
    seed: int
    precision: str
    parameters: Mapping[str, object]
    before: Scores
    after: Scores
    steps: int
    best_step: int
    made_on: str
    notes: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    base_license: str = ""
    set_apart: str = ""
    """What was kept out of the training, for testing."""


def card(facts: Facts) -> str:
    """The text of README.md."""
    return "\n".join([*_head(facts), "", *_body(facts)]) + "\n"


def _head(facts: Facts) -> Iterator[str]:
    """The metadata. Every string is written as JSON, which is YAML too."""
    yield "---"
    yield "library_name: transformers"
    yield "pipeline_tag: text-classification"
    yield "language:\n- en"
    yield f"license: {json.dumps(facts.base_license or 'other')}"
    yield "tags:\n- toxicity\n- hate-speech-detection"
    yield "---"


def _body(facts: Facts) -> Iterator[str]:
    yield f"# {facts.name}\n"
    yield (
        f"Tells toxic from benign statements about groups of people in English; label 1 is toxic. Made on "
        f"{facts.made_on} with Humanval, after ToxiGen (Hartvigsen et al., ACL 2022, section 5).\n"
    )
    yield f"```python\n{EXAMPLE}\n```\n"
    yield "## What it is for\n"
    yield f"{INTENDED_USE}\n"
    yield from _training(facts)
    yield from _data(facts)
    yield from _scores(facts)
    yield "## Limits\n"
    yield from (f"- {limit}" for limit in LIMITS)
    yield "\n## Licence\n"
    yield (
        f"The weights began as those of {_cell(_told(facts.base))}"
        + (f", under {_cell(facts.base_license)}" if facts.base_license else "")
        + ". Its licence holds for them: read it before you pass them on.\n"
    )


def _training(facts: Facts) -> Iterator[str]:
    yield "## How it was trained\n"
    told = {
        "what was trained": facts.kind,
        "base": f"{_told(facts.base)} ({facts.base_revision})" if facts.base_revision else _told(facts.base),
        "labels": facts.labels,
        "methods": facts.methods,
        "seed": facts.seed,
        "precision": facts.precision,
        "steps": f"{facts.steps:,}, the weights are of step {facts.best_step:,}",
        **facts.parameters,
        **facts.environment,
    }
    yield "| | |\n|---|---|"
    yield from (f"| {_cell(name.replace('_', ' '))} | {_cell(str(value))} |" for name, value in told.items())
    yield ""
    yield from (f"- {_cell(note)}" for note in facts.notes)
    yield ""


def _data(facts: Facts) -> Iterator[str]:
    trained_on, validation = (
        sum(getattr(count, part) for count in facts.counts) for part in ("trained_on", "validation")
    )
    yield "## What it was trained on\n"
    yield (
        f"{trained_on:,} statements; {validation:,} others decided which weights are kept, and were not learned from. "
        f"SHA-256 of their ids and labels: `{facts.data_digest}`.\n"
    )
    yield "| method | label | group | trained on | validation |\n|---|---|---|---:|---:|"
    for count in facts.counts:
        cells = (_cell(text) for text in (count.method, count.label, count.group))
        yield f"| {' | '.join(cells)} | {count.trained_on:,} | {count.validation:,} |"
    yield ""
    if facts.left_out:
        yield "Left out:\n"
        yield from (f"- {_cell(reason)}: {number:,}" for reason, number in facts.left_out.items())
        yield ""
    if facts.set_apart:
        yield f"{facts.set_apart}\n"


def _scores(facts: Facts) -> Iterator[str]:
    yield "## How well it does\n"
    yield (
        "On the validation statements, which chose the weights and so flatter them. Judge it by the dashboard of "
        "evaluations instead, on test sets it has never seen.\n"
    )
    yield "| | loss | AUC |\n|---|---:|---:|"
    for name, scores in (("before training", facts.before), ("after", facts.after)):
        yield f"| {name} | {scores.loss:.{DIGITS}f} | {scores.auc:.{DIGITS}f} |"
    yield ""


def _told(base: str) -> str:
    """A base as a reader elsewhere knows it: of a folder on this machine its name alone.

    >>> _told("/home/ann/models/rain-bert#toxic"), _told("facebook/roberta-hate-speech")
    ('rain-bert#toxic', 'facebook/roberta-hate-speech')
    """
    path, mark, label = base.partition("#")
    is_path = path.startswith(("/", ".", "~")) or path.count("/") > 1 or Path(path).is_dir()
    return Path(path).name + mark + label if is_path else base


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


EXAMPLE = """from transformers import pipeline

classify = pipeline("text-classification", model="this folder")"""

INTENDED_USE = (
    "Research on detection: measuring how far machine-generated, implicitly toxic text is found, and which groups are "
    "wrongly taken for being attacked. It is not meant to decide about people, such as whose words are removed or who "
    "is banned, nor to be the only judge of any text."
)
LIMITS = (
    "It learned from short machine-written statements about some groups in English; of other texts, languages and "
    "groups nothing is known.",
    "The label of a prompt is not that of the statement written from it; where it learned from these, it learned their "
    "mistakes.",
    "A mention of a group can be taken for toxicity. The false-positive rate by group in the dashboard says how often.",
    "Its probabilities were not calibrated on other data; a threshold wants to be chosen on the data it is used for.",
    "What it misses and what it flags can be searched for, by ALICE among others: do not rely on it against somebody "
    "who tries to get past it.",
)
