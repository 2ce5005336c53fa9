"""Where trained classifiers lie: each in the folder of its name, once it is whole."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

FOLDER = "classifiers"
UNFINISHED = ".training"
"""Within it, what trainings have come to so far; no classifier is called so."""
ORDER = "humanval_order"
"""In the config of a model: the id of the training that wrote it, and so may replace it."""


def all_of_them() -> Path:
    """``generation.working`` finds them there by their names."""
    return settings.VAR / FOLDER


def folder_of(name: str) -> Path:
    """The files of a finished classifier, in the transformers format."""
    return all_of_them() / name


def checkpoint_of(name: str) -> Path:
    """What its training goes on from if it is interrupted; removed at its end."""
    return all_of_them() / UNFINISHED / name


def names_of_folders() -> set[str]:
    """Of which classifiers there are files on this machine, finished or not."""
    found = [*_in(all_of_them()), *_in(all_of_them() / UNFINISHED)]
    return {path.name for path in found if not path.name.startswith(".")}


def throw_away_checkpoint(name: str) -> None:
    shutil.rmtree(checkpoint_of(name), ignore_errors=True)


def is_of(folder: Path, order: int) -> bool:
    """Whether the training with this id wrote a folder, and not another one or a person."""
    try:
        return bool(json.loads((folder / "config.json").read_text())[ORDER] == order)
    except (OSError, ValueError, LookupError, TypeError):
        return False


def throw_away_files(name: str, *, order: int) -> None:
    """Leave no files of a classifier that came to nothing; what its training goes on from is kept."""
    if is_of(folder_of(name), order):
        shutil.rmtree(folder_of(name), ignore_errors=True)
    for left in all_of_them().glob(f".{name}.*"):  # by who was killed while writing it
        shutil.rmtree(left, ignore_errors=True)


def _in(folder: Path) -> Iterator[Path]:
    return folder.iterdir() if folder.is_dir() else iter(())
