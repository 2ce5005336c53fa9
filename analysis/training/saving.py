"""Writing a trained classifier as transformers read it: all of it or nothing."""

import os
import shutil
from pathlib import Path

from safetensors import SafetensorError

from analysis.training.outcomes import Trained

CARD = "README.md"


def save(trained: Trained, folder: Path, *, card: str) -> None:
    """Write the model, its tokenizer and the ``card`` to ``folder``, in place of what an earlier attempt left there.

    Raises ``OSError``, and leaves nothing unfinished then.

    ``AutoModelForSequenceClassification.from_pretrained(folder)`` and ``generation.classifiers.load`` read it.
    """
    unfinished, old = (folder.parent / f".{folder.name}.{state}" for state in ("unfinished", "old"))
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        _write(trained, unfinished, card)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise error if isinstance(error, OSError) else OSError(str(error)) from error
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    os.replace(unfinished, folder)
    shutil.rmtree(old, ignore_errors=True)


def _write(trained: Trained, folder: Path, card: str) -> None:
    folder.mkdir(parents=True)
    trained.model.save_pretrained(folder, safe_serialization=True)
    trained.tokenizer.save_pretrained(folder)
    (folder / CARD).write_text(card)
    for file in folder.iterdir():
        with file.open("rb") as written:
            os.fsync(written.fileno())
