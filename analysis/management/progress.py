"""Telling how far a command is."""

from typing import TextIO


class Progress:
    """One line that counts up, on a terminal; in a file or a pipe it would be noise, and nothing is written."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._told: tuple[int, int] | None = None

    def __call__(self, done: int, total: int) -> None:
        if not total or (done, total) == self._told or not self._out.isatty():
            return
        self._told = done, total
        self._out.write(f"\rembedded {done:,} of {total:,} statements" + ("\n" if done == total else ""), ending="")
        self._out.flush()
