"""Drawing statements until there are enough good ones; what is thrown away is counted.

Pure: how to decode and what is taken already are handed in.
"""

import hashlib
import re
import string
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from generation.prompting import build_prompt, draw_demonstrations, prompt_lines

MAX_ROUNDS = 20
SEED_BITS = 63
LOWER_A_TO_Z = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class DrawingFailed(RuntimeError):
    """The model did not write enough new statements."""


class Output(Protocol):
    """What drawing reads of a decoded continuation (``decoding.topk.Hypothesis``)."""

    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> Sequence[int]: ...
    @property
    def log_probs(self) -> Sequence[float]: ...
    @property
    def finish_reason(self) -> str: ...


@dataclass(frozen=True)
class Statement:
    """A good statement with what it was drawn from; ``position`` is its place in the chunk."""

    position: int
    prompt: str
    seed: int
    text: str
    tokens: int
    log_prob: float
    finish_reason: str


@dataclass
class Draw:
    """The statements of a chunk in order, and how often an output had to be drawn again."""

    statements: list[Statement] = field(default_factory=list)
    empty: int = 0
    duplicate: int = 0
    copy: int = 0


def draw_statements(
    size: int,
    *,
    demonstrations: Sequence[str],
    seed: int,
    decode: Callable[[list[str], list[int]], Sequence[Output]],
    taken: Callable[[Collection[str]], Collection[str]],
) -> Draw:
    """Return ``size`` statements, each from a prompt of its own.

    ``seed`` decides everything: place and attempt give each output its own random stream.
    ``decode`` continues prompts with seeds; ``taken`` says which of some keys
    (``duplicate_key``) others have. Empty outputs, duplicates and copies of the prompt are
    drawn again, up to ``MAX_ROUNDS`` times; then ``DrawingFailed`` is raised.
    """
    draw = Draw()
    kept: dict[int, Statement] = {}
    keys: set[str] = set()
    for attempt in range(MAX_ROUNDS):
        missing = [position for position in range(size) if position not in kept]
        if not missing:
            break
        seeds = [derived_seed(seed, position, attempt) for position in missing]
        prompts = [build_prompt(draw_demonstrations(demonstrations, seed=seed)) for seed in seeds]
        outputs = decode(prompts, seeds)
        keys |= set(taken([duplicate_key(output.text) for output in outputs]))
        for position, prompt, own_seed, output in zip(missing, prompts, seeds, outputs, strict=True):
            key = duplicate_key(output.text)
            if not key:
                draw.empty += 1
            elif is_copy(output.text, prompt):
                draw.copy += 1
            elif key in keys:
                draw.duplicate += 1
            else:
                keys.add(key)
                kept[position] = Statement(
                    position=position,
                    prompt=prompt,
                    seed=own_seed,
                    text=output.text,
                    tokens=len(output.tokens),
                    log_prob=sum(output.log_probs),
                    finish_reason=output.finish_reason,
                )
    if len(kept) < size:
        raise DrawingFailed(
            f"After {MAX_ROUNDS} rounds the language model had written {len(kept)} of {size} new statements "
            f"({draw.empty} were empty, {draw.duplicate} duplicates, {draw.copy} copies of their prompt). "
            "Raise the temperature, add demonstrations or ask for fewer."
        )
    draw.statements = [kept[position] for position in range(size)]
    return draw


def derived_seed(*parts: int) -> int:
    """A seed from a run's seed and the place it is for; never negative, stable for ever.

    >>> derived_seed(7, 0) == derived_seed(7, 0) != derived_seed(7, 1)
    True
    """
    digest = hashlib.sha256(":".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - SEED_BITS)


def duplicate_key(text: str) -> str:
    """What two statements have in common when they are the same: the case of A to Z does not count.

    The constraint ``generation_text_once_a_run`` says the same in SQL. Other letters keep their
    case, since how to lower them differs between Python and the locales of databases.

    >>> duplicate_key("My aunt sails ") == duplicate_key("my aunt sails")
    True
    """
    return text.strip().translate(LOWER_A_TO_Z)


def is_copy(text: str, prompt: str) -> bool:
    """Whether a statement stands in a line of its prompt, or contains one; letters and digits count.

    >>> is_copy("my aunt sails!", "- my aunt sails\\n-")
    True
    """
    words = _words(text)
    return any(_contains(line, words) or _contains(words, line) for line in map(_words, prompt_lines(prompt)))


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _contains(long: str, short: str) -> bool:
    """Whether the whole words of ``short`` stand in ``long``, one after the other."""
    return f" {short} " in f" {long} "
