"""What training has done so far, in a file: whole or not there, and only for the training it is of."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from analysis.training.outcomes import OtherTraining

FILE = "state.pt"
UNFINISHED = "state.pt.unfinished"
UNREADABLE = "state.pt.unreadable"
WORDS = {
    "model": "another model",
    "data": "other texts or labels",
    "parameters": "other parameters",
    "seed": "another seed",
    "precision": "another precision",
}


def write(folder: Path, state: Mapping[str, Any], *, of: Mapping[str, str]) -> None:
    """Keep ``state`` in ``folder``; whoever is killed meanwhile leaves the one before.

    ``of`` says of which training it is, by the names of ``WORDS``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / UNFINISHED).open("wb") as file:
        torch.save({"of": dict(of), **state}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / UNFINISHED, folder / FILE)


def read(folder: Path, *, of: Mapping[str, str]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """What was kept of this training, if anything, and sentences about what could not be used.

    A file that cannot be read is set aside. Raises ``OtherTraining``.
    """
    with contextlib.suppress(FileNotFoundError):
        (folder / UNFINISHED).unlink()
    if not (folder / FILE).exists():
        return None, ()
    try:
        state: dict[str, Any] = torch.load(folder / FILE, map_location="cpu", weights_only=True)
        kept = dict(state["of"])
    except Exception as error:  # of any kind: what a damaged archive raises is not told
        os.replace(folder / FILE, folder / UNREADABLE)
        return None, (
            f"The checkpoint could not be read ({type(error).__name__}); it was set aside as {UNREADABLE}, and "
            "training began anew.",
        )
    if others := [WORDS[name] for name in WORDS if kept.get(name) != of.get(name)]:
        raise OtherTraining(
            f"The checkpoint in {folder.name!r} is of {' and '.join(others)} than this training. Train under another "
            "name, or remove that folder to begin anew."
        )
    return state, ()
