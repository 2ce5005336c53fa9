"""A report in the formats that go elsewhere: JSON, CSV a table, Markdown."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from analysis.reports.frame import Cell, Column, Estimate, Report, Section, Table, Undefined
from analysis.reports.showing import IN_WORDS, shown
from annotator.spreadsheets import harmless

FORMATS = ("json", "csv", "markdown")
UNDEFINED = "undefined_because"


class UnknownSection(LookupError):
    """The report has no such section with a table; the message names those it has."""


# --- JSON ----------------------------------------------------------------------------------------


def as_json(packed: Mapping[str, Any], *, filters: Mapping[str, Any], made_at: datetime) -> str:
    """A report as ``frame.pack`` gives it, with what it is of and from when."""
    whole = {"made_at": made_at.isoformat(timespec="seconds"), "filters": filters, **packed}
    return json.dumps(whole, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


# --- CSV -----------------------------------------------------------------------------------------


def as_csv(report: Report, section: str = "") -> str:
    """The table of one section; without ``section`` each table after a line with its key, parted by empty lines.

    A report with a single table needs no ``section``. Raises ``UnknownSection``.
    """
    tables = {one.key: one.table for one in report.sections if one.table}
    if section and section not in tables:
        there = f"It has: {', '.join(tables)}." if tables else "It has none."
        raise UnknownSection(f"The report {report.name} has no table {section!r}. {there}")
    if section or len(tables) == 1:
        return table_as_csv(tables[section] if section else next(iter(tables.values())))
    return "\n".join(f"{key}\n{table_as_csv(table)}" for key, table in tables.items())


def table_as_csv(table: Table) -> str:
    """A table, header first.

    A column of estimates ``x`` is followed by ``x_low`` and ``x_high``, and where a value is undefined by
    ``x_undefined_because``. Numbers are written in full, and text such that no spreadsheet runs it as a formula.

    >>> from analysis.reports.frame import Kind
    >>> columns = (Column("method", "Method"), Column("share", "Share", Kind.SHARE))
    >>> rows = ({"method": "ALICE", "share": Estimate(0.5, 0.4, 0.6)}, {"method": "top-k", "share": Undefined("None.")})
    >>> print(table_as_csv(Table(columns, rows)).strip())
    method,share,share_low,share_high,share_undefined_because
    ALICE,0.5,0.4,0.6,
    top-k,,,,None.
    """
    parts = {column.key: [*_parts(column, table.rows)] for column in table.columns}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_header(key, part) for key, of_key in parts.items() for part in of_key])
    for row in table.rows:
        writer.writerow([_part(row.get(key), part) for key, of_key in parts.items() for part in of_key])
    return out.getvalue()


def _header(key: str, part: str) -> str:
    return f"{key}_{part}" if part else key


def _parts(column: Column, rows: Sequence[Mapping[str, Cell]]) -> Iterator[str]:
    """What a column is written as, by what its name ends in."""
    cells = [row.get(column.key) for row in rows]
    yield ""
    if any(isinstance(cell, Estimate) for cell in cells):
        yield from ("low", "high")
    if any(isinstance(cell, Undefined) for cell in cells):
        yield UNDEFINED


def _part(cell: Cell, part: str) -> str | float:
    if isinstance(cell, Undefined):
        return harmless(cell.reason) if part == UNDEFINED else ""
    if isinstance(cell, Estimate):
        bound = {"": cell.value, "low": cell.low, "high": cell.high}.get(part)
        return "" if bound is None else bound
    if cell is None or part:
        return ""
    return harmless(cell) if isinstance(cell, str) else cell


# --- Markdown ------------------------------------------------------------------------------------


def as_markdown(report: Report, *, filters: Mapping[str, Any], made_at: datetime) -> str:
    """The report to read: a heading, sentences and a table for each section."""
    about = f"Worked out on {made_at:%Y-%m-%d at %H:%M} UTC, {in_one_line(told(filters))}."
    sections = [part for section in report.sections for part in _in_markdown(section)]
    return "\n\n".join([f"# {in_one_line(report.title)}", about, *sections]) + "\n"


def told(filters: Mapping[str, Any]) -> str:
    """Filters, as an address has them, in words.

    >>> told({}), told({"group": ["asian", "women"], "imported": "yes"})
    ('over everything', 'filtered by group: asian, women; imported: yes')
    """
    words = "; ".join(
        f"{name}: {', '.join(value) if isinstance(value, list) else value}" for name, value in filters.items()
    )
    return f"filtered by {words}" if words else "over everything"


def numbers(section: Section) -> str:
    """How many of what a section rests on."""
    return ", ".join(f"{n:,} {_one(what) if n == 1 else what}" for what, n in section.n.items())


def _one(things: str) -> str:
    """The first plural made a singular.

    >>> [_one(things) for things in ("studies", "rows of the ledger", "imported labels", "ALICE")]
    ['study', 'row of the ledger', 'imported label', 'ALICE']
    """
    return re.sub(r"(ies|s)\b", lambda ending: "y" if ending[1] == "ies" else "", things, count=1)


def _in_markdown(section: Section) -> Iterator[str]:
    yield f"## {in_one_line(section.title)}"
    yield in_one_line(section.says)
    if section.missing:
        yield in_one_line(section.missing)
    beside = [f"n = {numbers(section)}"] if section.n else []
    beside += [f"in the paper: {section.paper}"] if section.paper else []
    if beside:
        yield in_one_line("; ".join(beside)) + "."
    if section.table:
        yield from _table_in_markdown(section.table)
    if section.notes:
        yield "\n".join(f"- {in_one_line(note)}" for note in section.notes)


def _table_in_markdown(table: Table) -> Iterator[str]:
    in_words = shown(table)
    rows = [[_cell(column.label) for column in in_words.columns]]
    rows += [["---" if column.kind in IN_WORDS else "---:" for column in in_words.columns]]
    rows += [[_cell(cell.text) + (f" [{cell.note}]" if cell.note else "") for cell in row] for row in in_words.rows]
    yield "\n".join(f"| {' | '.join(row)} |" for row in rows)
    if in_words.reasons:
        yield "\n".join(f"- [{letter}] {in_one_line(why)}" for letter, why in in_words.reasons.items())


def _cell(text: str) -> str:
    return in_one_line(text).replace("|", "\\|")


def in_one_line(text: str) -> str:
    """Text as one line in which Markdown finds no markup.

    >>> print(in_one_line("1. a_b [c](d) <e> &amp; f\\n# g"), in_one_line("- h"))
    1\\. a\\_b \\[c\\](d) &lt;e> &amp;amp; f # g \\- h
    """
    line = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    line = re.sub(r"[\\`*_\[\]~]", r"\\\g<0>", line)
    return re.sub(r"^(?:(?=[#>+-])|(\d+)(?=[.)](?: |$)))", r"\1\\", line)
