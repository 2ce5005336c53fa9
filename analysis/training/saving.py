"""Writing a trained classifier as transformers read it: all of it or nothing."""

import os
import shutil
from pathlib import Path

from analysis.training.outcomes import Trained

CARD = "README.md"


def save(trained: Trained, folder: Path, *, card: str) -> None:
    """Write the model, its tokenizer and the ``card`` to ``folder``, in place of what an earlier attempt left there.

    ``AutoModelForSequenceClassification.from_pretrained(folder)`` and ``generation.classifiers.load`` read it.
    """
    unfinished, old = (folder.parent / f".{folder.name}.{state}" for state in ("unfinished", "old"))
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    trained.model.save_pretrained(unfinished, safe_serialization=True)
    trained.tokenizer.save_pretrained(unfinished)
    (unfinished / CARD).write_text(card)
    for file in unfinished.iterdir():
        with file.open("rb") as written:
            os.fsync(written.fileno())
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    os.replace(unfinished, folder)
    shutil.rmtree(old, ignore_errors=True)
