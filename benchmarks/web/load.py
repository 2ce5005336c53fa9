"""A closed loop: so many at once, each beginning its next cycle as soon as the last one ended."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

PATIENCE = 60  # seconds for one cycle
PAUSE_AFTER_AN_ERROR = 1  # second, so that a broken server does not make thousands of them
SENTENCES = 5


@dataclass
class Tally:
    """The cycles that ended inside a window of time, in seconds each; ``done`` and errors count whenever they come.

    ``busy`` is the share of the time that this process computed: near 1, the load is what limits the rate.
    """

    starts: float
    ends: float
    cycles: list[float] = field(default_factory=list)
    errors: int = 0
    sentences: list[str] = field(default_factory=list)
    done: int = 0
    busy: float = 0

    def add(self, *, began: float, ended: float) -> None:
        self.done += 1
        if self.starts <= ended < self.ends:
            self.cycles.append(ended - began)

    def add_error(self, error: Exception) -> None:
        self.errors += 1
        if len(self.sentences) < SENTENCES:
            self.sentences.append(f"{type(error).__name__}: {error}")

    @property
    def rate(self) -> float:
        """Cycles a second."""
        return len(self.cycles) / (self.ends - self.starts)

    def percentile(self, percent: int) -> float:
        """Milliseconds within which that share of the cycles ended."""
        return 1000 * sorted(self.cycles)[min(len(self.cycles) - 1, len(self.cycles) * percent // 100)]


async def closed_loop(
    cycles: Sequence[Callable[[], Awaitable[None]]], *, warm_up: float, seconds: float, beside: Callable[[], None]
) -> Tally:
    """Run each of ``cycles`` over and over for ``seconds`` after the warm-up; ``beside`` is called every second.

    They begin one after the other during the first half of the warm-up: of connections that all come at the same
    moment, one of gunicorn's processes may take nearly all, and it keeps them. A cycle that has begun when the time
    is over runs to its end outside the window.
    """
    now, used = time.perf_counter(), time.process_time()
    tally = Tally(starts=now + warm_up, ends=now + warm_up + seconds)
    pause = warm_up / 2 / len(cycles)
    async with asyncio.TaskGroup() as tasks:
        every_second = tasks.create_task(_every_second(beside))
        await asyncio.gather(*(_repeat(cycle, tally, after=number * pause) for number, cycle in enumerate(cycles)))
        every_second.cancel()
    tally.busy = (time.process_time() - used) / (time.perf_counter() - now)
    return tally


async def _repeat(cycle: Callable[[], Awaitable[None]], tally: Tally, *, after: float) -> None:
    await asyncio.sleep(after)
    while (began := time.perf_counter()) < tally.ends:
        try:
            async with asyncio.timeout(PATIENCE):
                await cycle()
        except Exception as error:  # whatever it is, it is an error of the run and told
            tally.add_error(error)
            await asyncio.sleep(PAUSE_AFTER_AN_ERROR)
        else:
            tally.add(began=began, ended=time.perf_counter())


async def _every_second(act: Callable[[], None]) -> None:
    while True:
        act()
        await asyncio.sleep(1)
