"""Parameters of training as data: checked before any work, and stored with the classifier. Without torch, for forms."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from generation.parameters import check_count

MOST_TOKENS = 8192
MOST = {"epochs": 1000, "batch_size": 4096, "patience": 1000, "evaluations_an_epoch": 1000}
SHOWN = 60  # characters of a value that is wrong


@dataclass(frozen=True)
class HeadParameters:
    """Of a logistic head on frozen embeddings: see ``generation/heads.py``."""

    l2: float = 1e-4
    balanced: bool = True
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        _check_number("l2", self.l2, low=0, above=False)
        _check_flag("balanced", self.balanced)
        _check_share("validation_share", self.validation_share)


@dataclass(frozen=True)
class FineTuningParameters:
    """Of training all of a model.

    ``warmup`` is the share of the steps in which the learning rate rises to its height; then it falls to 0.
    Training ends early once ``patience`` evaluations in a row brought no better AUC on the validation texts.
    ``longest`` is the number of tokens to which texts are cut for training.
    """

    epochs: int = 2
    batch_size: int = 32
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    warmup: float = 0.1
    patience: int = 4
    evaluations_an_epoch: int = 4
    class_weights: bool = True
    longest: int = 128
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            check_count(name, getattr(self, name), most=most)
        check_count("longest", self.longest, least=8, most=MOST_TOKENS)
        _check_number("learning_rate", self.learning_rate, low=0, above=True, most=1)
        _check_number("weight_decay", self.weight_decay, low=0, above=False, most=1)
        _check_number("warmup", self.warmup, low=0, above=False, most=1)
        _check_flag("class_weights", self.class_weights)
        _check_share("validation_share", self.validation_share)


def of_kind(kind: str, given: Mapping[str, object]) -> HeadParameters | FineTuningParameters:
    """The parameters of ``kind`` ("head" or "full"), the ``given`` ones in place of the defaults.

    Raises ``ValueError`` for a name or a value that is none.

    >>> of_kind("head", {"l2": 0.01}).l2
    0.01
    """
    kinds: dict[str, type[HeadParameters] | type[FineTuningParameters]] = {
        "head": HeadParameters,
        "full": FineTuningParameters,
    }
    if kind not in kinds:
        raise ValueError(f"kind must be head or full, not {kind!r}.")
    known = [field.name for field in fields(kinds[kind])]
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"{unknown[0]!r} is no parameter of this kind of training. There are: {', '.join(known)}.")
    return kinds[kind](**given)  # type: ignore[arg-type]


def as_data(parameters: HeadParameters | FineTuningParameters) -> dict[str, object]:
    """The parameters as JSON has them."""
    return asdict(parameters)


def _check_number(name: str, value: object, *, low: float, above: bool, most: float = math.inf) -> None:
    if not (_is_finite(value) and low <= value <= most) or (above and value == low):  # type: ignore[operator]
        least = f"above {low:g}" if above else f"{low:g} or more"
        raise ValueError(
            f"{name} must be {least}{f', at most {most:g}' if most < math.inf else ''}, not {repr(value)[:SHOWN]}."
        )


def _is_finite(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float is
        return False


def _check_share(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 0.5:
        raise ValueError(f"{name} must be above 0 and at most 0.5, not {value!r}.")


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be true or false, not {value!r}.")
