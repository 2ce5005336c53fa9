"""Files of test sets: a path on the command line, or an upload, which is to be small."""

import hashlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings

from analysis.imports.faults import Refused

LARGEST_UPLOAD_MB, MOST_ROWS_OF_UPLOAD = 64, 50_000
"""An upload is read while whoever sent it waits, and that process serves nobody else meanwhile."""
TOO_LARGE = "Import it on the command line: manage.py import_evaluation"
BLOCK = 1 << 20


@contextmanager
def kept(file: Any) -> Iterator[tuple[Path, str]]:
    """Where a file lies as long as the context is, and its name; an upload is written down for that time.

    Raises ``Refused`` for one that is too large.
    """
    if isinstance(file, str | Path):
        yield Path(file), Path(file).name
        return
    megabytes, most = file.size / 1_000_000, min(LARGEST_UPLOAD_MB, settings.LARGEST_UPLOAD_MB)
    if megabytes > most:
        raise Refused(f"The upload has {megabytes:,.0f} MB; at most {most:,} MB are taken. {TOO_LARGE}")
    name = Path(file.name.replace("\\", "/")).name
    uploads = settings.VAR / "uploads"
    uploads.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=uploads) as folder:
        path = Path(folder) / (re.sub(r"[^\w.+-]", "_", name).lstrip(".")[-150:] or "upload")
        with path.open("wb") as written:
            for chunk in file.chunks():
                written.write(chunk)
        yield path, name


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
