"""Files and pages at the size of the released dataset: 274,186 statements and 27,450 annotations.

    python -m benchmarks.io

In a database of its own: a made-up ``train`` file is copied by PostgreSQL into a bare table with the same indexes and
imported by the project, then copied and exported, each in a process of its own, in turns. Then the work on the
statements is added, and every page of the workspace is timed beside an empty one.
"""

import argparse
import json
import subprocess
import sys

from benchmarks.figure import report
from benchmarks.io.filling import FULL
from benchmarks.web.server import ROOT, Site, own_site

IMPORT_GOAL, EXPORT_GOAL = 0.5, 0.3
IMPORT_MEMORY_MB, EXPORT_GROWTH_MB = 400, 100
PAGE_GOAL_MS = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=FULL.statements)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    with own_site() as site:
        file, out = site.state / "train.csv", site.state / "out.csv"
        sized = ["--statements", options.statements, "--seed", options.seed]
        run(site, "prepare", "--file", file, *sized)
        copied, imported = run(site, "copy-in", "--file", file), run(site, "import", "--file", file)
        copied_out, exported = run(site, "copy-out", "--file", out), run(site, "export", "--file", out)
        report_import(copied, imported, statements=options.statements)
        report_export(copied_out, exported, statements=options.statements)
        report_pages(run(site, "pages", *sized))


def run(site: Site, *arguments: object, module: str = "benchmarks.io.within") -> dict:
    """What a module such as ``benchmarks.io.within`` prints, in a process of its own."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=site.environment, text=True, stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed; what it said stands above.")
    return json.loads(done.stdout.splitlines()[-1])


def report_import(copied: dict, imported: dict, *, statements: int) -> None:
    ratio = copied["seconds"] / imported["seconds"]
    report(
        "import_train_against_copy", ratio, unit="of its rate", goal=f">= {IMPORT_GOAL}", ok=ratio >= IMPORT_GOAL,
        seconds=round(imported["seconds"], 1), copy_seconds=round(copied["seconds"], 1), statements=statements,
    )  # fmt: skip
    memory = imported["memory_mb"]
    report("import_train_memory", memory, unit="MB at most", goal=f"< {IMPORT_MEMORY_MB}", ok=memory < IMPORT_MEMORY_MB)


def report_export(copied: dict, exported: dict, *, statements: int) -> None:
    ratio = copied["seconds"] / exported["seconds"]
    report(
        "export_train_against_copy", ratio, unit="of its rate", goal=f">= {EXPORT_GOAL}", ok=ratio >= EXPORT_GOAL,
        seconds=round(exported["seconds"], 1), copy_seconds=round(copied["seconds"], 1), statements=statements,
    )  # fmt: skip
    grown = exported["grown_mb"]
    report("export_train_memory", grown, unit="MB more", goal=f"< {EXPORT_GROWTH_MB}", ok=grown < EXPORT_GROWTH_MB)


def report_pages(pages: dict[str, dict]) -> None:
    """Each page that takes more than twice the floor, and the slowest of all."""
    slowest = max(pages, key=lambda address: pages[address]["ms"])
    for address, timed in sorted(pages.items(), key=lambda item: -item[1]["ms"]):
        if timed["ms"] > 2 * timed["floor_ms"]:
            report_page("page", address, timed)
    report_page("slowest_page", slowest, pages[slowest], pages=len(pages))


def report_page(name: str, address: str, timed: dict, **circumstances: object) -> None:
    report(
        name, timed["ms"], unit="ms", goal=f"< {PAGE_GOAL_MS}", ok=timed["ms"] < PAGE_GOAL_MS,
        address=address, floor_ms=timed["floor_ms"], times_the_floor=round(timed["ms"] / timed["floor_ms"], 1),
        **circumstances,
    )  # fmt: skip


if __name__ == "__main__":
    main()
