"""``manage.py export annotations FILE.csv``: the labelled set as a file."""

import os
import tempfile
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from analysis.exports import EXPORTS


class Command(BaseCommand):
    help = "Write an export to a file: UTF-8, one header line, one row an annotation."

    def add_arguments(self, parser) -> None:
        parser.add_argument("name", help=f"what to export: {', '.join(EXPORTS)}")
        parser.add_argument(
            "file", type=Path, help="the file to write; one that exists is replaced when all is written"
        )

    def handle(self, *, name: str, file: Path, **options) -> None:
        if name not in EXPORTS:
            raise CommandError(f"There is no export {name!r}. Choose one of: {', '.join(EXPORTS)}.", returncode=2)
        try:
            lines = write_whole(file, EXPORTS[name]())
        except OSError as error:
            raise CommandError(
                f"{file} cannot be written: {error.strerror}. Choose another folder or free some space."
            ) from error
        self.stdout.write(f"{lines - 1} rows written to {file}.")


def write_whole(file: Path, lines) -> int:
    """Write ``lines`` beside ``file`` and rename, so that a broken export never replaces a good one."""
    descriptor, scratch = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
            count = sum(bool(out.write(line)) for line in lines)
        os.replace(scratch, file)
    except BaseException:
        os.unlink(scratch)
        raise
    return count
