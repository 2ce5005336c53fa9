"""What tells two folders with models apart, and why one cannot be loaded. Pure."""

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

WHOLE_BELOW = 32 * 2**20  # bytes; configurations, tokenizers and small weights are read whole
SAMPLES = 64
SAMPLE = 64 * 2**10
DIGITS = 16
SUFFIXES = {".json", ".txt", ".model", ".safetensors", ".bin", ".gguf", ".jinja"}


def fingerprint(folder: Path) -> str:
    """A digest of a model's files: their names, their sizes and what is in them.

    Of large files, which are weights, 64 parts at even distances are read, so that this takes well under a second for
    any model and still tells apart two that were trained differently. The folder's own name does not count.
    """
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES and file.is_file()):
        digest.update(f"{file.name}\n{file.stat().st_size}\n".encode())
        for part in _parts(file):
            digest.update(part)
    return digest.hexdigest()[:DIGITS]


def is_folder(name: str | Path) -> bool:
    """Whether a text that somebody gave is a folder that can be seen here, whatever is in it.

    >>> is_folder("/"), is_folder("a" * 300), is_folder("~nobody/x")
    (True, False, False)
    """
    return os.path.isdir(name)  # unlike Path's, it raises nothing


def folder_of_word(folders: Path, name: str) -> Path | None:
    """The folder that a name, up to its label, stands for among ``folders``; ``None`` for one that is no word.

    >>> folder_of_word(Path("classifiers"), "first#toxic"), folder_of_word(Path("classifiers"), "../up")
    (PosixPath('classifiers/first'), None)
    """
    word = name.partition("#")[0]
    return folders / word if re.fullmatch("[a-z0-9][a-z0-9-]*", word) else None


def state_of(folder: Path) -> tuple[tuple[str, int, int, int], ...]:
    """The names, numbers, sizes and times of a folder's files: another one whenever they are replaced or written to.

    Unlike the fingerprint, nothing is read.
    """
    found = ((file.name, file.stat()) for file in sorted(folder.iterdir()) if file.is_file())
    return tuple((name, file.st_ino, file.st_size, file.st_mtime_ns) for name, file in found)


def revision_of(name: str, config: object) -> str:
    """What else than its name says which model was loaded: the hub's commit, or the folder's fingerprint."""
    commit = getattr(config, "_commit_hash", None)
    if commit:
        return str(commit)
    return f"files {fingerprint(Path(name))}" if is_folder(name) else ""


def why_not_loaded(error: Exception) -> str:
    """What went wrong while a library read somebody's files, in a line.

    >>> why_not_loaded(ValueError("no weights\\nSee the manual.")), why_not_loaded(ZeroDivisionError("by zero"))
    ('no weights', 'ZeroDivisionError: by zero')
    """
    if "trust_remote_code" in str(error):
        return "it brings code of its own, which is never run here"
    first, _, more = str(error).strip().partition("\n")
    said = f"{first} {more.strip().partition(chr(10))[0]}".strip() if first.endswith(":") else first
    is_sentence = said and isinstance(error, (OSError, ValueError, RuntimeError))
    return said if is_sentence else f"{type(error).__name__}: {said}".removesuffix(": ")


def _parts(file: Path) -> Iterator[bytes]:
    size = file.stat().st_size
    with file.open("rb") as content:
        if size <= WHOLE_BELOW:
            yield content.read()
            return
        for number in range(SAMPLES):
            content.seek(number * (size - SAMPLE) // (SAMPLES - 1))
            yield content.read(SAMPLE)
