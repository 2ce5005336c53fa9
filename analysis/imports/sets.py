"""What demonstrations and prompts have in common: sets by group and label, as folders, text files or tables."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from analysis.imports import cells
from analysis.imports.encodings import encoding_of, undecodable
from analysis.imports.faults import BadCell, Refused
from analysis.imports.groups import Groups, slug_of
from analysis.imports.reading import beginning_of, lines_of, table_in
from analysis.imports.staging import Staging
from analysis.imports.wording import option
from analysis.imports.work import TICK, Work
from analysis.released import LABELS

COLUMNS = ("group", "label", "text")
NAME = re.compile(r"(hate|neutral|toxic|benign)_(.+?)(?:_sentences?|_prompts?|_demonstrations?|_\d+k?)*", re.IGNORECASE)
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".pq")

Reads = Callable[[str], str]
"""What makes of a line the text that is stored; raises ``BadCell``."""


@dataclass(frozen=True)
class Set:
    """The group and the label that a file's name says, empty where it does not."""

    group: str
    label: str


def set_of(name: str) -> Set:
    """What a published file's name says of its lines.

    >>> set_of("hate_native_american_sentences.txt"), set_of("neutral_women_1k.txt").group
    (Set(group='native_american', label='toxic'), 'women')
    """
    found = NAME.fullmatch(Path(name).stem)
    return Set(found[2].lower(), LABELS[found[1].lower()]) if found else Set("", "")


def stage(path: Path, work: Work, *, name: str, reads: Reads) -> Staging:
    """Read a folder, a text file or a table into a temporary table: line, group_id, label, text."""
    staging = Staging(name, {"line": "bigint", "group_id": "bigint", "label": "text", "text": "text"})
    groups = Groups(work)
    if path.is_dir():
        done = 0
        for file in _files_in(path, work):
            work.faults.file = str(file.relative_to(path))
            _stage_lines(file, work, groups, staging, reads, before=done)
            done += file.stat().st_size
    elif path.suffix.lower() in TABLES or beginning_of(path).startswith(b"PAR1"):
        _stage_table(path, work, groups, staging, reads)
    else:
        _stage_lines(path, work, groups, staging, reads)
    return staging


def _files_in(folder: Path, work: Work) -> list[Path]:
    files = sorted(file for file in folder.rglob("*.txt") if file.is_file())
    named = [file for file in files if set_of(file.name).label]
    if not named:
        raise Refused(
            f"In {folder} there is no file named as published: hate_GROUP….txt or neutral_GROUP….txt. "
            f"Of {len(files)} text files none says its label and group."
        )
    if others := [str(file.relative_to(folder)) for file in files if file not in named]:
        listed = ", ".join(others[:20])
        work.notes.append(f"Left out, since their names say no label and group: {listed}.")
    work.notes.append(f"Files read: {len(named)}.")
    return named


def _stage_lines(file: Path, work: Work, groups: Groups, staging: Staging, reads: Reads, *, before: int = 0) -> None:
    try:
        beginning_of(file)
    except Refused:
        if file.stat().st_size if file.exists() else True:
            raise
        if not work.faults.file:
            raise
        return  # of a folder: an empty file has no lines
    said = set_of(file.name)
    _refuse_contradiction(file, said, work)
    group, label = said.group or work.options.group, said.label or work.options.label
    if not group or not label:
        raise Refused(
            f"The name {file.name} does not say label and group, as hate_GROUP.txt or neutral_GROUP.txt do. "
            f"Give {option('group')} and {option('label')}."
        )
    for line, written in _lines_of(file, work, before):
        work.rows += 1
        try:
            text = reads(written)
            staging.add((line, groups.id_of("", group), label, text))
        except BadCell as bad:
            work.faults.add(line, str(bad), value=bad.value)


def _refuse_contradiction(file: Path, said: Set, work: Work) -> None:
    for what, name, given in (
        ("group", slug_of(said.group), slug_of(work.options.group)),
        ("label", said.label, work.options.label),
    ):
        if name and given and name != given:
            raise Refused(
                f"The name {file.name} says the {what} {name}, but {option(what)} says {given}. "
                "Leave that away, or rename the file."
            )


def _lines_of(file: Path, work: Work, before: int) -> Iterator[tuple[int, str]]:
    """The lines that say something, from 1."""
    encoding = encoding_of(file, asked_for=work.options.encoding)
    try:
        with file.open("rb") as raw, TextIOWrapper(raw, encoding=encoding) as lines:
            for number, line in enumerate(lines_of(lines, file.name), start=1):
                if not number % TICK:
                    work.progress.at(before + raw.tell(), work.rows)
                if line.strip():
                    yield number, line.removesuffix("\n")
            work.progress.at(before + raw.tell(), work.rows)
    except UnicodeError as error:
        raise undecodable(file, encoding, error) from None


def _stage_table(path: Path, work: Work, groups: Groups, staging: Staging, reads: Reads) -> None:
    with table_in(path, encoding=work.options.encoding) as table:
        table.need(["text"] + [name for name in ("group", "label") if not getattr(work.options, name)])
        table.note_extra(work, COLUMNS)
        pick = table.pick(COLUMNS)
        for line, row in table.read(work):
            group, label, text = pick(row)
            try:
                label = cells.label_of("label", label, work.options.label)
                if not label:
                    raise BadCell("label", label, "The row says no label. Write benign or toxic.")
                staging.add((line, groups.id_of("group", group), label, reads(text)))
            except BadCell as bad:
                work.faults.add_cell(line, bad)
