"""Classifiers: how fast they score, in how much memory, and whether training makes better ones.

    python -m benchmarks.classifiers [throughput] [scoring] [trial] [--file CSV] [--statements N]

Ends with an error if a goal was missed.
"""

import argparse
import os
import sys
from pathlib import Path

import torch

from benchmarks.io.filling import FULL

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("throughput", "scoring", "trial")


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all, if none is named")
    parser.add_argument("--file", type=Path, default=ROOT.parent / "shared/data/toxigen/annotated.csv")
    parser.add_argument("--statements", type=int, default=FULL.statements, help="how many are scored in a database")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="of fine-tuning")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"{min(unknown)!r} is no part. There are: {', '.join(PARTS)}.")
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    reached = [measure(part, options) for part in options.parts or PARTS]
    return all(reached)


def measure(part: str, options: argparse.Namespace) -> bool:
    """Whether a part reached its goals. The parts' packages are imported as they are needed: each takes seconds."""
    from benchmarks.classifiers import scoring, throughput, trial

    if part == "throughput":
        return throughput.main(seed=options.seed)
    if part == "scoring":
        return scoring.main(options.statements)
    return trial.main(options.file, seed=options.seed, precision=options.precision)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
