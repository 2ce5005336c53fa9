"""Annotators at work on this machine: gunicorn and PostgreSQL on two cores, fifty people in a closed loop.

    python -m benchmarks.web --annotators 50 --seconds 20

A cycle is to see a statement and to submit its nine answers, without a pause. The floor, in the same run and
server, is a plain Django view that reads one row by an index and inserts one; its rate is the mean of a run
before the annotators and one after them. All of it happens in a study that is under way: they have worked for a
few seconds already, and PostgreSQL's statistics know it. Afterwards the database has to hold just what was
acknowledged. With ``--profile 200``, no server: the queries of a cycle, and where the time of 200 goes.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from benchmarks.figure import report
from benchmarks.web.annotators import Annotator, Visitor
from benchmarks.web.browser import Browser, Connection
from benchmarks.web.load import Tally, closed_loop
from benchmarks.web.server import Cores, Site, Watch, own_site, stay_on
from benchmarks.web.texts import statements

FLOOR_GOAL = 0.2
TURKLE = 36  # cycles a second with 50 annotators on two cores of another machine; the most of the tools compared
TURKLE_AIM = 5


@dataclass(frozen=True)
class Phase:
    """What the load met, and what the server and its database computed for it."""

    tally: Tally
    processor_seconds: float

    @property
    def processor_ms(self) -> float:
        """Milliseconds of the server's cores for one cycle."""
        return 1000 * self.processor_seconds / self.tally.done


@dataclass(frozen=True)
class Measured:
    """The annotators' work, first to get the study under way and then to be measured, and the floor around that."""

    begun: Phase
    floors: tuple[Phase, Phase]
    work: Phase

    @property
    def floor_rate(self) -> float:
        """Requests a second."""
        return mean(phase.tally.rate for phase in self.floors)

    @property
    def floor_processor_ms(self) -> float:
        return mean(phase.processor_ms for phase in self.floors)

    @property
    def tallies(self) -> list[Tally]:
        return [phase.tally for phase in (self.begun, *self.floors, self.work)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--statements", type=int, default=10_000, help="at least a third of the cycles there will be")
    parser.add_argument("--seconds", type=float, default=20, help="for the annotators; half of it for either floor")
    parser.add_argument("--warm-up", type=float, default=5, help="seconds before each measurement")
    parser.add_argument("--profile", type=int, metavar="CYCLES", help="profile so many cycles instead")
    options = parser.parse_args()
    cores = Cores.split()
    stay_on(cores.server)
    study = ["--annotators", options.annotators, "--statements", options.statements]
    with own_site() as site:
        if options.profile:
            print(site.run("profile", *study, "--cycles", options.profile))
        else:
            benchmark(site, cores, json.loads(site.run("prepare", *study)), options)


def benchmark(site: Site, cores: Cores, paths: dict, options) -> None:
    """Print the figures; exit with 1 after an error, or if what is stored is not what was acknowledged."""
    texts = frozenset(statements(options.statements))
    annotators = [
        Annotator(browser(site), invite_path=path, accept_path=paths["accept"], statements=texts, seed=seed)
        for seed, path in enumerate(paths["invite"])
    ]
    with site.served(cores.server) as watch:
        stay_on(cores.load)
        measured = asyncio.run(measure(site, watch, annotators, options))
        stored = json.loads(site.run("check"))
    tell_errors(site, measured.tallies)
    if not all(phase.tally.cycles for phase in (*measured.floors, measured.work)):
        sys.exit("No cycle ended within the time.")
    report_rates(measured, cores, annotators=options.annotators, database_on_the_server_cores=watch.holds_database)
    all_well = report_errors(measured, stored, acknowledged=sum(annotator.acknowledged for annotator in annotators))
    sys.exit(not all_well)


async def measure(site: Site, watch: Watch, annotators: Sequence[Annotator], options) -> Measured:
    """The annotators for a while, then the floor, the annotators, and the floor again, with as many connections."""

    async def phase(actors: Sequence[Annotator | Visitor], seconds: float) -> Phase:
        watch.look()
        before = watch.total_seconds
        cycles = [actor.cycle for actor in actors]
        tally = await closed_loop(cycles, warm_up=options.warm_up, seconds=seconds, beside=watch.look)
        watch.look()
        return Phase(tally, watch.total_seconds - before)

    visitors = [Visitor(browser(site)) for _ in annotators]
    begun = await phase(annotators, 0)
    site.run("analyze")
    before = await phase(visitors, options.seconds / 2)
    work = await phase(annotators, options.seconds)
    after = await phase(visitors, options.seconds / 2)
    return Measured(begun, (before, after), work)


def report_rates(measured: Measured, cores: Cores, **circumstances: object) -> None:
    """The rates of this machine, which are context, and their ratios, which are the figures."""
    work, floor_rate = measured.work.tally, measured.floor_rate
    report(
        "web_cycles",
        work.rate,
        unit="a second",
        goal="none: context",
        ok=True,
        p50_ms=round(work.percentile(50), 1),
        p95_ms=round(work.percentile(95), 1),
        processor_ms=round(measured.work.processor_ms, 2),
        server_cores=sorted(cores.server),
        load_cores=sorted(cores.load),
        load_generator_busy=round(work.busy, 2),
        **circumstances,
    )
    floors = [phase.tally for phase in measured.floors]
    report(
        "web_floor",
        floor_rate,
        unit="requests a second",
        goal="none: context",
        ok=True,
        before_and_after=[round(tally.rate) for tally in floors],
        p50_ms=round(mean(tally.percentile(50) for tally in floors), 1),
        p95_ms=round(mean(tally.percentile(95) for tally in floors), 1),
        processor_ms=round(measured.floor_processor_ms, 2),
        load_generator_busy=round(max(tally.busy for tally in floors), 2),
    )
    ratio = work.rate / floor_rate
    report(
        "web_cycles_against_the_floor",
        ratio,
        unit="of its rate",
        goal=f">= {FLOOR_GOAL}",
        ok=ratio >= FLOOR_GOAL,
        by_processor_time=round(measured.floor_processor_ms / measured.work.processor_ms, 3),
    )
    times = work.rate / TURKLE
    report(
        "web_cycles_against_turkle",
        times,
        unit="times as many",
        goal=f">= {TURKLE_AIM}, an aim: Turkle's {TURKLE} a second are another machine's figure",
        ok=times >= TURKLE_AIM,
    )


def report_errors(measured: Measured, stored: dict[str, int], *, acknowledged: int) -> bool:
    """Whether nobody met an error and each acknowledged submit is stored once, in a place of its HIT."""
    errors = sum(tally.errors for tally in measured.tallies)
    report("web_errors", errors, unit="answers other than expected", goal="0", ok=not errors)
    as_acknowledged = stored["annotations"] == acknowledged and not stored["overfull"]
    report(
        "web_annotations_stored",
        stored["annotations"],
        unit="annotations",
        goal=f"{acknowledged}, as acknowledged, and no HIT with more labels than places",
        ok=as_acknowledged,
        hits_with_more=stored["overfull"],
    )
    return not errors and as_acknowledged


def tell_errors(site: Site, tallies: Sequence[Tally]) -> None:
    """What the first bodies with errors said, and what the server logged about the last ones."""
    sentences = [sentence for tally in tallies for sentence in tally.sentences]
    if sentences:
        print(*sentences, *site.last_exceptions(), sep="\n", file=sys.stderr)


def browser(site: Site) -> Browser:
    return Browser(Connection(site.port).exchange)


if __name__ == "__main__":
    main()
