"""Drawing statements until there are enough good ones; what is thrown away is counted.

Pure: how to decode and what is taken already are handed in.
"""

import hashlib
import re
import string
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from generation.prompting import build_prompt, draw_demonstrations, prompt_lines

MAX_ROUNDS = 20
SEED_BITS = 63
LOWER_A_TO_Z = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


class DrawingFailed(RuntimeError):
    """The model did not write enough new statements."""


@dataclass(frozen=True, kw_only=True)
class Output:
    """What a method made of a prompt, as it is stored; the last three are ``None`` and empty where there are none."""

    text: str
    tokens: int
    log_prob: float
    finish_reason: str
    score: float | None = None
    toxic_prob: float | None = None
    hypotheses: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, kw_only=True)
class Statement(Output):
    """A good output with what it was drawn from; ``position`` is its place in the chunk."""

    position: int
    method: str
    prompt: str
    seed: int


@dataclass
class Draw:
    """The statements of a chunk in order, and how often a place had to be drawn again."""

    statements: list[Statement] = field(default_factory=list)
    empty: int = 0
    duplicate: int = 0
    copy: int = 0


def draw_statements(
    size: int,
    *,
    demonstrations: Sequence[str],
    seed: int,
    decode: Callable[[list[str], list[int]], Sequence[Mapping[str, Output]]],
    taken: Callable[[Collection[str]], Collection[str]],
) -> Draw:
    """Fill ``size`` places, each from a prompt of its own, with a statement of each method.

    ``seed`` decides everything: place and attempt give each output its own random stream.
    ``decode`` continues prompts with seeds and returns for each its outputs by method; ``taken`` says
    which of some keys (``duplicate_key``) others have. A place with an empty output, a duplicate or
    a copy of the prompt is drawn again from another one, up to ``MAX_ROUNDS`` times; then
    ``DrawingFailed`` is raised.
    """
    draw = Draw()
    kept: dict[int, list[Statement]] = {}
    keys: set[str] = set()
    for attempt in range(MAX_ROUNDS):
        missing = [position for position in range(size) if position not in kept]
        if not missing:
            break
        seeds = [derived_seed(seed, position, attempt) for position in missing]
        prompts = [build_prompt(draw_demonstrations(demonstrations, seed=seed)) for seed in seeds]
        decoded = decode(prompts, seeds)
        keys |= set(taken([duplicate_key(output.text) for outputs in decoded for output in outputs.values()]))
        for position, prompt, own_seed, outputs in zip(missing, prompts, seeds, decoded, strict=True):
            fault = _fault(outputs.values(), prompt=prompt, taken=keys)
            if fault:
                setattr(draw, fault, getattr(draw, fault) + 1)
                continue
            keys |= {duplicate_key(output.text) for output in outputs.values()}
            kept[position] = [
                Statement(position=position, method=method, prompt=prompt, seed=own_seed, **vars(output))
                for method, output in outputs.items()
            ]
    if len(kept) < size:
        raise DrawingFailed(
            f"After {MAX_ROUNDS} rounds the language model had written {len(kept)} of {size} new statements "
            f"({draw.empty} were empty, {draw.duplicate} duplicates, {draw.copy} copies of their prompt). "
            "Raise the temperature, add demonstrations or ask for fewer."
        )
    draw.statements = [statement for position in range(size) for statement in kept[position]]
    return draw


def _fault(outputs: Iterable[Output], *, prompt: str, taken: Collection[str]) -> str:
    """Why a place has to be drawn again, as ``Draw`` counts it; empty if all of its outputs are good."""
    own: set[str] = set()
    for output in outputs:
        key = duplicate_key(output.text)
        if not key:
            return "empty"
        if is_copy(output.text, prompt):
            return "copy"
        if key in taken or key in own:
            return "duplicate"
        own.add(key)
    return ""


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
