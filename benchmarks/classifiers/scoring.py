"""Scoring as many statements as were released, through the queue's own path, killed in the middle and taken up again.

In a database of its own. The statements are benign sentences of about 95 characters. The first worker is killed
(``kill -9``) in the middle of a chunk when half is scored; a second one goes on once the lease has lapsed. The memory
of the second is looked at after each chunk, and must not grow from a tenth of its part to the end.
"""

import signal
import subprocess
import sys

from benchmarks.figure import report
from benchmarks.io.__main__ import run
from benchmarks.io.filling import FULL
from benchmarks.web.server import ROOT, Site, own_site

WITHIN = "benchmarks.classifiers.scoring_within"
GROWTH_GOAL = 1.05
LEASE_SECONDS = 5


def main(statements: int) -> bool:
    with own_site() as site:
        site.environment["HUMANVAL_LEASE_SECONDS"] = str(LEASE_SECONDS)
        run(site, "fill", "--statements", statements, module=WITHIN)
        kill_half_way(site)
        scored = run(site, "score", module=WITHIN)
    growth = scored["memory_at_end_mb"] / scored["memory_at_a_tenth_mb"]
    whole = scored["scores"] == statements and scored["finished"] and 0 < scored["before"] < statements
    report(
        "scoring_memory_end_against_a_tenth", growth, unit="times", goal=f"<= {GROWTH_GOAL}", ok=growth <= GROWTH_GOAL,
        memory_at_a_tenth_mb=scored["memory_at_a_tenth_mb"], memory_at_end_mb=scored["memory_at_end_mb"],
    )  # fmt: skip
    report(
        "scoring_resumed_after_kill", scored["scores"], unit="scores, each once", goal=f"{statements}", ok=whole,
        stored_before_the_kill=scored["before"],
    )  # fmt: skip
    rate = scored["statements_a_second"]
    report(
        "scoring_statements_a_second", rate, unit="a second", goal="told, not set", ok=True, statements=statements,
        minutes_for_all_of_the_release_at_this_rate=round(FULL.statements / rate / 60), threads=scored["threads"],
    )  # fmt: skip
    return growth <= GROWTH_GOAL and whole


def kill_half_way(site: Site) -> None:
    """Let a worker score until it kills itself."""
    command = [sys.executable, "-m", WITHIN, "score", "--die-half-way"]
    done = subprocess.run(command, cwd=ROOT, env=site.environment, stdout=subprocess.DEVNULL)
    if done.returncode != -signal.SIGKILL:
        raise SystemExit(f"{' '.join(command)} was to be killed, and ended with {done.returncode}.")
