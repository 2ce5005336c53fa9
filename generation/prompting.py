"""From demonstrations to the prompt that a language model continues (paper, appendix A)."""

import random
from collections.abc import Sequence

DEMONSTRATIONS_A_PROMPT = 5
BULLET = "- "
LAST_HYPHEN = "-"


class NotEnoughDemonstrations(ValueError):
    """A set is too small to draw a prompt from it."""


def build_prompt(demonstrations: Sequence[str]) -> str:
    """Return the demonstrations, each on its line after a hyphen, and one more hyphen.

    >>> build_prompt(["many women code", "my aunt sails"])
    '- many women code\\n- my aunt sails\\n-'
    """
    return "".join(f"{BULLET}{text}\n" for text in demonstrations) + LAST_HYPHEN


def draw_demonstrations(demonstrations: Sequence[str], *, seed: int) -> list[str]:
    """Draw five of ``demonstrations`` at random, without replacement, in random order.

    The draw depends on the seed and on the order of ``demonstrations`` alone. Raises
    ``NotEnoughDemonstrations`` if there are fewer than five.
    """
    check_enough(demonstrations)
    return random.Random(seed).sample(list(demonstrations), DEMONSTRATIONS_A_PROMPT)


def check_enough(demonstrations: Sequence[str], *, of: str = "this set") -> None:
    """Raise ``NotEnoughDemonstrations`` with what to do if no prompt can be drawn."""
    missing = DEMONSTRATIONS_A_PROMPT - len(demonstrations)
    if missing > 0:
        raise NotEnoughDemonstrations(
            f"A prompt needs {DEMONSTRATIONS_A_PROMPT} demonstrations and {of} has {len(demonstrations)}. "
            f"Add {missing} more."
        )


def prompt_lines(prompt: str) -> list[str]:
    """The demonstrations that stand in a prompt.

    >>> prompt_lines("- many women code\\n- my aunt sails\\n-")
    ['many women code', 'my aunt sails']
    """
    lines = (line.removeprefix(LAST_HYPHEN).strip() for line in prompt.split("\n"))
    return [line for line in lines if line]
