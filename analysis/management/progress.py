"""Telling how far a command is."""

from typing import TextIO


class Progress:
    """One line that counts up, on a terminal; in a file or a pipe it would be noise, and nothing is written."""

    def __init__(self, out: TextIO, *, did: str = "embedded", what: str = "statements") -> None:
        self._out, self._did, self._what = out, did, what
        self._told: tuple[int, int] | None = None

    def __call__(self, done: int, total: int) -> None:
        if not total or (done, total) == self._told or not self._out.isatty():
            return
        self._told = done, total
        line = f"\r{self._did} {done:,} of {total:,} {self._what}"
        self._out.write(line + ("\n" if done == total else ""), ending="")
        self._out.flush()
