"""In which encoding a file is.

What is certain is decoded; what is not is refused, since a guess spoils texts silently.
"""

import codecs
from pathlib import Path

from analysis.imports.faults import Refused
from analysis.imports.wording import option

MARKS = (  # The mark of UTF-32 begins with that of UTF-16, so it is looked for first.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
BLOCK = 1 << 20
NEED_A_MARK = ("utf-16", "utf-32")
NOT_OF_FILES = ("idna", "punycode", "undefined")
"""Codecs of names on the internet, and one that only raises errors."""


def encoding_of(path: Path, *, asked_for: str = "") -> str:
    """The name of the encoding: the one asked for, else the one of the byte order mark, else UTF-8.

    Raises ``Refused`` for an encoding that Python does not know, and for UTF-16 without its mark.
    """
    with path.open("rb") as file:
        start = file.read(64)
    if asked_for:
        name = encoding_of_name(asked_for)
        _need_mark(path, name, start)
        return name
    for mark, name in MARKS:
        if start.startswith(mark):
            return name
    if b"\0" in start[:2]:
        name = "utf-16-be" if start[:1] == b"\0" else "utf-16-le"
        raise Refused(
            f"{path.name} looks like UTF-16 without a byte order mark. "
            f"Save it as UTF-8, or give {option('encoding', name)}."
        )
    return "utf-8"


def _need_mark(path: Path, name: str, start: bytes) -> None:
    if name in NEED_A_MARK and not any(start.startswith(mark) for mark, marked in MARKS if marked == name):
        raise Refused(
            f"{path.name} has no byte order mark, which {name} needs. Give {option('encoding', f'{name}-le')}, "
            f"or {name}-be for a file of a machine that writes the larger part of a number first."
        )


def undecodable(path: Path, encoding: str, error: UnicodeError) -> Refused:
    """The sentence for a file whose bytes are not of its encoding: which byte, and in which line."""
    if not isinstance(error, UnicodeDecodeError):  # some codecs say no place
        return Refused(f"{path.name} cannot be read as {_spoken(encoding)}: {error}. Say in which encoding it is.")
    decoder = codecs.getincrementaldecoder(encoding)()
    before = lines = 0
    last = b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            held = decoder.getstate()[0]
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                position = before - len(held) + error.start
                byte = error.object[error.start]
                lines += _line_ends(last + (held + block)[: error.start])
                return Refused(
                    f"{path.name} is not {_spoken(encoding)}: byte {position + 1:,}, in line {lines + 1:,}, is "
                    f"0x{byte:02X}. Save the file as UTF-8, or say in which encoding it is: for a file from Windows or "
                    f"an old spreadsheet it is often {option('encoding', 'cp1252')}."
                )
            lines += _line_ends(last + block)
            last = b"\r" if block.endswith(b"\r") else b""
            lines -= len(last)
            before += len(block)
    return Refused(f"{path.name} ends within a character of {_spoken(encoding)}. It may be cut off: fetch it again.")


def _line_ends(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def encoding_of_name(name: str) -> str:
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError) as error:
        raise Refused(f"There is no encoding {name!r}. Say for example utf-8, cp1252, latin-1 or utf-16.") from error
    if not codec._is_text_encoding or codec.name in NOT_OF_FILES:
        raise Refused(f"{name!r} is no encoding of text. Say for example utf-8, cp1252, latin-1 or utf-16.")
    return "utf-8-sig" if codec.name == "utf-8" else codec.name


def _spoken(encoding: str) -> str:
    return "UTF-8" if encoding in ("utf-8", "utf-8-sig") else encoding
