"""What training has done so far, in a file: whole or not there, and only for the training it is of."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from analysis.training.forwards import is_out_of_memory
from analysis.training.outcomes import OtherTraining

FILE = "state.pt"
UNFINISHED = "state.pt.unfinished"
UNREADABLE = "state.pt.unreadable"
DAMAGED = (UnpicklingError, EOFError, LookupError, TypeError, ValueError, RuntimeError)
"""What reading a damaged archive raises; a ``RuntimeError`` may also be of the memory."""
WORDS = {
    "model": "another model",
    "data": "other texts or labels",
    "parameters": "other parameters",
    "seed": "another seed",
    "precision": "another precision",
}


def write(folder: Path, state: Mapping[str, Any], *, of: Mapping[str, str]) -> tuple[str, ...]:
    """Keep ``state`` in ``folder``, and return sentences about why not; the one before stands until it is whole.

    ``of`` says of which training it is, by the names of ``WORDS``.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / UNFINISHED).open("wb") as file:
            torch.save({"of": dict(of), **state}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(folder / UNFINISHED, folder / FILE)
    except (OSError, RuntimeError) as error:  # such as a full disk: no reason to lose what was learned
        # torch closes its archive while the disk's error is raised, and may raise one of its own in place of it.
        of_disk = error if isinstance(error, OSError) else error.__context__
        if not isinstance(of_disk, OSError):
            raise
        with contextlib.suppress(OSError):
            (folder / UNFINISHED).unlink()
        return (f"A checkpoint could not be written ({of_disk.strerror}); training went on without it.",)
    return ()


def read(folder: Path, *, of: Mapping[str, str]) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """What was kept of this training, if anything, and sentences about what could not be used.

    A damaged file is set aside; one that cannot be read now, for want of memory or by the disk, stays. Raises
    ``OtherTraining``, and what hindered reading.
    """
    with contextlib.suppress(FileNotFoundError):
        (folder / UNFINISHED).unlink()
    if not (folder / FILE).exists():
        return None, ()
    try:
        state: dict[str, Any] = torch.load(folder / FILE, map_location="cpu", weights_only=True)
        kept = dict(state["of"])
    except DAMAGED as error:
        if is_out_of_memory(error):
            raise
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
