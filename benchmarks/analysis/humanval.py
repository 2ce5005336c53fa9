"""Drawing HUMANVAL out of the released dataset's 274,186 statements, with 384-dimensional embeddings.

    python -m benchmarks.analysis.humanval

In a database of its own, filled with made-up sentences and vectors around many centres. The baseline is the matrix
products that the comparison cannot do without: the candidates with all statements, then the set with all statements,
in float32, in blocks, by numpy alone. What reading the vectors and storing the set take besides is told apart.
"""

import argparse

from benchmarks.figure import report
from benchmarks.io.__main__ import run as run_in
from benchmarks.io.filling import FULL
from benchmarks.web.server import Site, own_site

RATIO_GOAL = 2
MEMORY_GOAL_MB = 2000
WITHIN = "benchmarks.analysis.humanval_within"


def main(statements: int = FULL.statements) -> None:
    with own_site() as site:
        run(site, "fill", "--statements", statements)
        drawn = run(site, "draw")
    ratio = drawn["compared_seconds"] / drawn["bare_seconds"]
    report(
        "humanval_against_bare_products", ratio, unit="times their time", goal=f"<= {RATIO_GOAL}",
        ok=ratio <= RATIO_GOAL, seconds=drawn["compared_seconds"], bare_seconds=drawn["bare_seconds"],
        statements=statements, candidates=drawn["candidates"], chosen=drawn["chosen"], removed=drawn["removed"],
        threads=drawn["threads"],
    )  # fmt: skip
    memory = drawn["memory_mb"]
    report(
        "humanval_memory", memory, unit="MB at most", goal=f"< {MEMORY_GOAL_MB}", ok=memory < MEMORY_GOAL_MB,
        vectors_mb=drawn["vectors_mb"],
    )  # fmt: skip
    whole = drawn["seconds"] / drawn["bare_seconds"]
    report(
        "humanval_whole_drawing", whole, unit="times the bare products", goal="told, not set", ok=True,
        seconds=drawn["seconds"], reading_seconds=drawn["reading_seconds"], drawing_seconds=drawn["drawing_seconds"],
        storing_seconds=drawn["storing_seconds"],
    )  # fmt: skip


def run(site: Site, *arguments: object) -> dict:
    return run_in(site, *arguments, module=WITHIN)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=FULL.statements)
    main(parser.parse_args().statements)
