"""The statements to be judged and the facts that the floor reads: made here, and benign."""

FACTS = 10_000

WHO = ("my aunt", "our neighbor", "the new teacher", "her cousin", "the baker", "his daughter", "the nurse", "a friend")
WHAT = ("plants tomatoes", "repairs old radios", "sings in a choir", "paints small boats", "reads the local paper")
WHERE = ("by the harbor", "behind the library", "on the roof", "near the station", "at the market", "in the valley")


def statements(count: int) -> list[str]:
    """``count`` different statements, the same ones each time."""
    return [
        f"{WHO[n % len(WHO)]} {WHAT[n % len(WHAT)]} {WHERE[n % len(WHERE)]} and has done so {n + 2} times this year"
        for n in range(count)
    ]
