"""Decoding parameters as data: validated before any work, and stored with the run.

Apart from the decoding itself, so that the web process can check them without torch.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

# Below, the best token is certain as with k = 1, and soon the division overflows.
LOWEST_TEMPERATURE = 0.01
HIGHEST_TEMPERATURE = 100

Choice = TypeVar("Choice", bound=StrEnum)


class Direction(StrEnum):
    """The two ways in which ALICE plays against a classifier (paper, 3.2), and no other."""

    FALSE_POSITIVES = "false_positives"
    FALSE_NEGATIVES = "false_negatives"

    @property
    def prompt_label(self) -> str:
        return "benign" if self is Direction.FALSE_POSITIVES else "toxic"

    @property
    def sought_class(self) -> str:
        """The class whose probability is raised: the other one than the prompt's."""
        return "toxic" if self is Direction.FALSE_POSITIVES else "benign"

    @classmethod
    def for_label(cls, label: str) -> "Direction":
        """The direction of prompts with this label.

        >>> Direction.for_label("benign").sought_class
        'toxic'
        """
        return next(direction for direction in cls if direction.prompt_label == label)


class Selection(StrEnum):
    """How the next beam is chosen among the allowed candidates."""

    TOPK = "topk"
    SAMPLE = "sample"


@dataclass(frozen=True)
class TopKParameters:
    """The paper's temperature and length (section 3.3); k is that of Fan et al. (2018)."""

    k: int = 40
    temperature: float = 0.9
    max_new_tokens: int = 30

    def __post_init__(self) -> None:
        for name in ("k", "max_new_tokens"):
            check_count(name, getattr(self, name))
        check_temperature(self.temperature)


@dataclass(frozen=True)
class AliceParameters:
    """The paper's settings of ALICE (section 3.3) as defaults.

    ``lm_weight`` and ``classifier_weight`` are λ_L and λ_C, ``vocabulary`` is how many of the
    language model's best tokens are candidates, and ``n_best`` how many hypotheses are kept.
    Without a ``direction`` each prompt's label decides it (``for_label``).
    """

    direction: Direction | None = None
    lm_weight: float = 0.5
    classifier_weight: float = 0.5
    beam: int = 10
    vocabulary: int = 100
    temperature: float = 0.9
    max_new_tokens: int = 30
    selection: Selection = Selection.TOPK
    no_repeat_ngram_size: int = 0
    group_words_allowed: bool = True
    n_best: int = 10

    def __post_init__(self) -> None:
        if self.direction is not None:
            object.__setattr__(self, "direction", _one_of(Direction, "direction", self.direction))
        object.__setattr__(self, "selection", _one_of(Selection, "selection", self.selection))
        for name in ("beam", "vocabulary", "max_new_tokens", "n_best"):
            check_count(name, getattr(self, name))
        check_count("no_repeat_ngram_size", self.no_repeat_ngram_size, least=0)
        check_temperature(self.temperature)
        for name in ("lm_weight", "classifier_weight"):
            weight = getattr(self, name)
            if not (0 <= weight < math.inf):
                raise ValueError(f"{name} must be 0 or more, not {weight!r}.")
        if not self.lm_weight and not self.classifier_weight:
            raise ValueError("lm_weight and classifier_weight are both 0: nothing would rank the hypotheses.")

    @property
    def sought_class(self) -> str:
        """The class whose probability is raised. Raises ``ValueError`` where no direction was given."""
        if self.direction is None:
            raise ValueError("ALICE needs a direction: give one, or take the parameters for a label.")
        return self.direction.sought_class

    def for_label(self, label: str) -> "AliceParameters":
        """The same in the only direction of prompts with this label. Raises ``ValueError`` for another one's.

        >>> AliceParameters().for_label("toxic").sought_class
        'benign'
        """
        self.check_label(label)
        return replace(self, direction=Direction.for_label(label))

    def check_label(self, label: str) -> None:
        """Raise ``ValueError`` if prompts with this label are not decoded in this direction."""
        if self.direction is not None and label != self.direction.prompt_label:
            raise ValueError(
                f"{_words(self.direction)} are sought from {self.direction.prompt_label} prompts, not from {label} "
                f"ones. For {label} prompts choose {_words(Direction.for_label(label)).lower()}."
            )


def check_count(name: str, value: object, *, least: int = 1, most: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    if most is not None and value > most:
        raise ValueError(f"{name} must be a whole number of at most {most}, not {value}.")


def check_temperature(value: float) -> None:
    if not LOWEST_TEMPERATURE <= value <= HIGHEST_TEMPERATURE:
        raise ValueError(f"temperature must be from {LOWEST_TEMPERATURE} to {HIGHEST_TEMPERATURE}, not {value!r}.")


def _one_of(choices: type[Choice], name: str, value: str) -> Choice:
    try:
        return choices(value)
    except ValueError:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, not {value!r}.") from None


def _words(direction: Direction) -> str:
    return direction.value.replace("_", " ").capitalize()
