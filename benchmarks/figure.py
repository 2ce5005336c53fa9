"""How a benchmark prints a figure: one JSON object a line, a ratio against a baseline of the same run."""

import json
import time
from collections.abc import Callable


def report(name: str, value: float, *, unit: str, goal: str, ok: bool, **circumstances: object) -> None:
    """``circumstances`` say what the figure was taken with, such as the number of threads."""
    figure = {"name": name, "value": round(float(value), 3), "unit": unit, "goal": goal, "ok": bool(ok)}
    print(json.dumps(figure | circumstances), flush=True)


def best_seconds(work: Callable[[], object], *, rounds: int = 3) -> float:
    """The shortest of some rounds: what the work takes when nothing else disturbs it."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
