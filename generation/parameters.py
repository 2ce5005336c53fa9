"""Decoding parameters as data: validated before any work, and stored with the run.

Apart from the decoding itself, so that the web process can check them without torch.
"""

from dataclasses import dataclass

# Below, the best token is certain as with k = 1, and soon the division overflows.
LOWEST_TEMPERATURE = 0.01
HIGHEST_TEMPERATURE = 100


@dataclass(frozen=True)
class TopKParameters:
    """The paper's temperature and length (section 3.3); k is that of Fan et al. (2018)."""

    k: int = 40
    temperature: float = 0.9
    max_new_tokens: int = 30

    def __post_init__(self) -> None:
        for name in ("k", "max_new_tokens"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}.")
        if not LOWEST_TEMPERATURE <= self.temperature <= HIGHEST_TEMPERATURE:
            raise ValueError(
                f"temperature must be from {LOWEST_TEMPERATURE} to {HIGHEST_TEMPERATURE}, not {self.temperature!r}."
            )
