"""Reading single cells: each function returns what is stored, or raises ``BadCell`` with a sentence."""

import ast
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone

from analysis.imports.faults import BadCell
from analysis.released import LABELS, METHODS

LONGEST_TEXT = 100_000
"""Longer texts cannot be searched by their words, and no statement or prompt is a tenth as long."""

TRUE, FALSE = ("true", "1", "yes", "on", "1.0"), ("", "false", "0", "no", "off", "0.0", "nan")
EMPTY = ("", "nan")
"""How tools write that there is no value."""

ZONES = {"UTC": 0, "GMT": 0, "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "CST": -6, "CDT": -5, "EST": -5, "EDT": -4}
MTURK_TIME = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2} \d{1,2} \d\d:\d\d:\d\d) ([A-Z]{3,4}) (\d{4})")


def text_of(column: str, value: str, *, longest: int = LONGEST_TEXT) -> str:
    """A text as it stands, if it can be stored and says something."""
    storable(column, value)
    if len(value) > longest:
        raise BadCell(column, value, f"The text has {len(value):,} characters; at most {longest:,} are possible.")
    if not value.strip():
        raise BadCell(column, value, "The text is empty. Fill it in or remove the row.")
    return value


def storable(column: str, value: str) -> str:
    """A value without what PostgreSQL cannot store."""
    if "\0" in value:
        raise BadCell(column, value, "There is a NUL character (U+0000), which no text has. Remove it.")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise BadCell(column, value, "There is half of a surrogate pair, which is no character.") from error
    return value


def short(column: str, value: str, longest: int) -> str:
    if len(value) > longest:
        raise BadCell(column, value, f"There are {len(value):,} characters; at most {longest:,} are possible.")
    return storable(column, value)


def prompt_of(column: str, value: str) -> str:
    r"""A prompt with its line ends; published files write them as two characters.

    One with real line ends is meant as it stands: so Humanval exports prompts.

    >>> prompt_of("prompt", r"- the harbor is busy\n-")
    '- the harbor is busy\n-'
    """
    if not value.strip():
        return ""
    return text_of(column, value if "\n" in value else value.replace("\\n", "\n"))


def plain_text(column: str, value: str) -> str:
    """A text that may be written as a Python bytes literal.

    >>> plain_text("text", r"b'caf\\xc3\\xa9'")
    'café'
    """
    if value[:2] not in ("b'", 'b"') or len(value) < 3 or value[-1] != value[1]:
        return value
    try:
        return ast.literal_eval(value).decode()
    except (ValueError, SyntaxError, AttributeError) as error:
        reason = "its bytes are not UTF-8" if isinstance(error, UnicodeDecodeError) else "it cannot be read as one"
        raise BadCell(column, value, f"The text looks like a Python bytes literal, but {reason}.") from error


def word(column: str, value: str, words: Mapping[str, str]) -> str:
    """Our word for one of a file's."""
    try:
        return words[value.strip().lower()]
    except KeyError:
        raise BadCell(column, value, f"This word is not known here. Known are: {_named(words)}.") from None


def _named(words: Iterable[str]) -> str:
    """Words one after another: one with a comma in quotes, and one with blanks or underscores once.

    >>> _named(["directly", "yes, directly", "moral judgement", "moral_judgement", ""])
    'directly, “yes, directly”, moral judgement'
    """
    once = {word.replace("_", " "): word for word in reversed([*filter(None, words)])}
    return ", ".join(f"“{word}”" if "," in word else word for word in reversed(once.values()))


def label_of(column: str, value: str, default: str = "") -> str:
    return word(column, _whole(value), LABELS) if value.strip().lower() not in EMPTY else default


def method_of(column: str, value: str, default: str = "") -> str:
    return word(column, value, METHODS) if value.strip().lower() not in EMPTY else default


def _whole(value: str) -> str:
    """``1.0`` is what tools make of a column of whole numbers with gaps."""
    return value.strip().removesuffix(".0")


def number(column: str, value: str, least: float, most: float) -> float | None:
    """A number in a range; None if the cell is empty."""
    if value.strip().lower() in EMPTY:
        return None
    try:
        found = float(value)
    except ValueError:
        raise BadCell(column, value, f"This is no number. Write one from {least:g} to {most:g}.") from None
    if not least <= found <= most or math.isnan(found):
        raise BadCell(column, value, f"{found:g} is not in the range from {least:g} to {most:g}.")
    return found


def scale(column: str, value: str) -> int | None:
    found = number(column, value, 1, 5)
    if found is None or found == int(found):
        return None if found is None else int(found)
    raise BadCell(column, value, "The answer is one of 1, 2, 3, 4 and 5.")


def flag(column: str, value: str) -> bool:
    found = value.strip().lower()
    if found in TRUE:
        return True
    if found in FALSE:
        return False
    raise BadCell(column, value, "This is neither true nor false.")


def moment(column: str, value: str) -> datetime | None:
    """A time as ISO 8601 has it (UTC where it says nothing else) or as Mechanical Turk writes it.

    >>> moment("AcceptTime", "Mon Nov 16 10:15:00 PST 2020").isoformat()
    '2020-11-16T10:15:00-08:00'
    """
    written = value.strip()
    if written.lower() in EMPTY:
        return None
    try:
        if found := MTURK_TIME.fullmatch(written):
            clock, zone, year = found.groups()
            offset = timezone(timedelta(hours=ZONES[zone]))
            return datetime.strptime(f"{clock} {year}", "%b %d %H:%M:%S %Y").replace(tzinfo=offset)
        iso = datetime.fromisoformat(written)
        iso = iso if iso.tzinfo else iso.replace(tzinfo=UTC)
        iso.astimezone(UTC)
    except (ValueError, KeyError, OverflowError):
        message = "This is no time. Write it as 2020-11-16T10:15:00+00:00 or as Mon Nov 16 10:15:00 PST 2020."
        raise BadCell(column, value, message) from None
    return iso
