"""The state folder: what one installation keeps for itself, readable by its owner alone.

It holds the embedded database, the queue's files, cached weights, collected static files
and the secrets made on first run.
"""

import os
import secrets
import tempfile
from pathlib import Path

SECRET_BYTES = 48


class StateFolderError(RuntimeError):
    """The state folder cannot be used; the message says why and what to do."""


def make_state_folder(folder: Path) -> Path:
    """Create the state folder if it is missing and return its resolved path."""
    folder = folder.expanduser().resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateFolderError(
            f"The state folder {folder} cannot be made: {error.strerror}. Set HUMANVAL_VAR to a folder that can."
        ) from error
    return folder


def secret(folder: Path, name: str) -> str:
    """Return the secret kept in ``folder/name``; the first caller ever makes it at random.

    Safe when several processes start at once: a hard link appears whole or not at all, so
    all of them read the same secret.
    """
    path = folder / name
    try:
        if not path.exists():
            _make_secret(path)
        return path.read_text()
    except OSError as error:
        raise StateFolderError(
            f"{path} cannot be made or read: {error.strerror}. Run Humanval as the user who owns {folder}, "
            "or set HUMANVAL_VAR to a folder of your own."
        ) from error


def _make_secret(path: Path) -> None:
    scratch = _private_scratch(path, secrets.token_urlsafe(SECRET_BYTES))
    try:
        os.link(scratch, path)
    except FileExistsError:
        pass  # another process was first: its secret is the one in force
    finally:
        os.unlink(scratch)


def write_private(path: Path, text: str) -> None:
    """Make ``text`` all there is in ``path``, at once and with mode 600."""
    os.replace(_private_scratch(path, text), path)


def _private_scratch(path: Path, text: str) -> str:
    """Write ``text`` beside ``path`` under a name of its own; in two containers even process ids are the same."""
    descriptor, scratch = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 600
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    return scratch
