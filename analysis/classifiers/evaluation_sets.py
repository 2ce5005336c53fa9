"""Test sets from files: texts with labels, one row a text and functionality, to evaluate classifiers on.

A file is read in one pass into a temporary table, and the database finds what is there several times: how large a file
is matters to neither.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog
from django.db import DataError, IntegrityError, transaction

from analysis.classifiers.labels_in_files import Conditions, Labels, WrongValue
from analysis.classifiers.uploaded import MOST_ROWS_OF_UPLOAD, TOO_LARGE, kept, sha256_of
from analysis.imports import cells
from analysis.imports.faults import BadCell, Faults, Refused, storable
from analysis.imports.reading import table_in
from analysis.imports.staging import Staging, execute, fetch
from analysis.imports.tables import Table
from analysis.imports.work import REFUSE, Options, Work, WrongOption
from analysis.models import EvaluationSet, EvaluationText
from analysis.models.classifiers import NAME
from analysis.texts import text_key
from generation.auditing import note

LONGEST_NAME = EvaluationSet._meta.get_field("name").max_length
LONGEST_FILE_NAME = EvaluationSet._meta.get_field("file_name").max_length
LONGEST_WORD = EvaluationText._meta.get_field("group").max_length
RESERVED = re.compile(r"humanval(-\d+)?")

NO_TEXT, NO_LABEL, NOT_CHOSEN = "without a text", "without a label", "not chosen by the conditions"
TIED, AGAIN, BAD = "of texts that as many rows call toxic as not", "a text that is there already", "that are faulty"
REASONS = (NOT_CHOSEN, NO_TEXT, NO_LABEL, TIED, AGAIN, BAD)

STAGED = {
    "number": "bigint", "key": "text", "text": "text", "is_toxic": "boolean", "about": "text", "functionality": "text",
}  # fmt: skip
VOTES = """
DROP TABLE IF EXISTS pg_temp.import_votes;
CREATE TEMPORARY TABLE import_votes ON COMMIT DROP AS
SELECT min(number) AS number, (array_agg(text ORDER BY number))[1] AS text, functionality, count(*) AS rows,
       mode() WITHIN GROUP (ORDER BY about) FILTER (WHERE about <> '') AS about,
       sign(sum(sum(CASE WHEN is_toxic THEN 1 ELSE -1 END)) OVER (PARTITION BY key)) AS vote
FROM import_evaluation GROUP BY key, functionality
"""
COUNT = """
SELECT count(*) FILTER (WHERE vote <> 0), count(*) FILTER (WHERE vote > 0),
       coalesce(sum(rows) FILTER (WHERE vote = 0), 0), coalesce(sum(rows - 1) FILTER (WHERE vote <> 0), 0)
FROM import_votes
"""
STORE = """
INSERT INTO analysis_evaluationtext (evaluation_set_id, index, text, is_toxic, "group", functionality)
SELECT %s, number, text, vote > 0, coalesce(about, ''), functionality
FROM import_votes WHERE vote <> 0 ORDER BY number
"""

log = structlog.get_logger(__name__)


class WrongFile(ValueError):
    """No test set can be made of the file as it was asked for; ``str`` says why, ``faults`` where."""

    def __init__(self, message: str, faults: Faults | None = None) -> None:
        super().__init__(message)
        self.faults = faults or Faults()


class WrongArgument(WrongFile):
    """What was asked for makes no sense, whatever is in the file."""


def import_test_set(
    file: Any,
    *,
    name: str = "",
    text: str,
    label: str,
    positive: Sequence[str] = (),
    above: float | None = None,
    group: str | None = None,
    functionality: str | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    encoding: str = "",
    on_fault: str = REFUSE,
    by=None,
) -> EvaluationSet:
    """Make a test set of a file: a path, or an upload with ``name``, ``size`` and ``chunks()``.

    ``text``, ``label``, ``group`` and ``functionality`` are its columns. Toxic is a label among the ``positive``, or
    ``above`` a number. ``where`` chooses rows: by each column the values that are taken. Without a ``name`` the file's
    is taken. If the same file was read so before under that name, the set is that one: it ``was_there``. Raises
    ``WrongFile``; nothing is stored then.
    """
    columns = {
        "text": text,
        "label": label,
        "positive": list(positive),
        "above": above,
        "group": group or "",
        "functionality": functionality or "",
        "where": {column: [one] if isinstance(one, str) else list(one) for column, one in (where or {}).items()},
    }
    try:
        labels = Labels(label, positive=columns["positive"], above=above)
        work = Work(options=Options(encoding=encoding, on_fault=on_fault), record=None)
    except (WrongValue, WrongOption) as wrong:
        raise WrongArgument(str(wrong)) from wrong
    try:
        with kept(file) as (path, file_name), transaction.atomic():
            wanted = EvaluationSet(
                name=_checked_name(name or file_name, is_given=bool(name)),
                file_name=storable(file_name)[:LONGEST_FILE_NAME],
                sha256="",
                columns=columns,
                created_by=by,
            )
            return _import(path, wanted, labels, work, is_upload=not isinstance(file, str | Path))
    except DataError as error:
        reason = str(error).strip().splitlines()[0]
        raise WrongFile(f"PostgreSQL cannot store what the file says: {reason}.") from error
    except (Refused, WrongValue) as refused:
        raise WrongFile(str(refused), getattr(refused, "faults", None)) from refused


def _import(path: Path, wanted: EvaluationSet, labels: Labels, work: Work, *, is_upload: bool) -> EvaluationSet:
    with table_in(path, encoding=work.options.encoding) as table:  # refuses what is missing or no table
        conditions = Conditions(wanted.columns["where"])
        table.need(column for column in (*_columns(wanted), *conditions.columns) if column)
        wanted.sha256 = sha256_of(path)
        if there := _there_already(wanted):
            return there
        staging, left_out = _stage(table, wanted, labels, conditions, work, is_upload=is_upload)
    work.refuse_if_bad()
    conditions.refuse_what_never_occurs()
    labels.refuse_what_never_occurs()
    staging.finish()
    wanted.texts_count, wanted.toxic_count, tied, again = _count_votes()
    left_out |= {TIED: tied, AGAIN: again, BAD: work.faults.count}
    wanted.left_out = {reason: int(count) for reason, count in left_out.items() if count}
    _refuse_one_class(wanted, labels)
    return _store(wanted)


def left_out_in_words(test_set: EvaluationSet) -> str:
    """How many rows of its file are not in a test set, and why; empty if all are."""
    reasons = [f"{count:,} {reason}" for reason in REASONS if (count := test_set.left_out.get(reason))]
    return f"Rows left out: {'; '.join(reasons)}." if reasons else ""


def _stage(table: Table, wanted: EvaluationSet, labels: Labels, conditions: Conditions, work: Work, *, is_upload: bool):
    """Send the rows with a text and a label into the temporary table; that, and how many others there are."""
    staging = Staging("import_evaluation", STAGED)
    left_out = dict.fromkeys((NOT_CHOSEN, NO_TEXT, NO_LABEL), 0)
    pick, pick_conditions = table.pick(_columns(wanted)), table.pick(conditions.columns)
    _, label_column, group_column, functionality_column = _columns(wanted)
    for line, row in table.read(work):
        if is_upload and work.rows > MOST_ROWS_OF_UPLOAD:
            raise Refused(f"The upload has more than {MOST_ROWS_OF_UPLOAD:,} rows. {TOO_LARGE}")
        text, label, group, functionality = pick(row)
        if not conditions.hold(pick_conditions(row)):
            left_out[NOT_CHOSEN] += 1
        elif text.strip().lower() in cells.EMPTY:
            left_out[NO_TEXT] += 1
        elif label.strip().lower() in cells.EMPTY:
            left_out[NO_LABEL] += 1
        else:
            try:
                said = cells.text_of(wanted.columns["text"], cells.plain_text(wanted.columns["text"], text)).strip()
                staging.add((
                    work.rows,
                    text_key(said).decode(),
                    said,
                    labels.is_toxic(cells.storable(label_column, label)),
                    _word(group_column, group),
                    _word(functionality_column, functionality),
                ))  # fmt: skip
            except BadCell as bad:
                work.faults.add_cell(line, bad)
    return staging, left_out


def _word(column: str, value: str) -> str:
    word = value.strip()
    return "" if word.lower() in cells.EMPTY else cells.short(column, word, LONGEST_WORD)


def _columns(wanted: EvaluationSet) -> list[str]:
    return [wanted.columns[role] for role in ("text", "label", "group", "functionality")]


def _count_votes() -> tuple[int, int, int, int]:
    """How many texts are labelled, and how many of them toxic; rows of undecided texts, and those beyond one a text."""
    execute(VOTES)
    [counts] = fetch(COUNT)
    return counts


def _refuse_one_class(wanted: EvaluationSet, labels: Labels) -> None:
    if not wanted.texts_count:
        raise WrongFile(f"{wanted.file_name} has no text with a label. {left_out_in_words(wanted)}".strip())
    if wanted.toxic_count in (0, wanted.texts_count):
        which = "toxic" if wanted.toxic_count else "benign"
        raise WrongFile(
            f"All {wanted.texts_count:,} texts of {wanted.file_name} are {which} if {labels.rule} means toxic. A "
            f"classifier is tested on both classes. The labels there are: {labels.seen}."
        )


def _store(wanted: EvaluationSet) -> EvaluationSet:
    """Store the set, unless somebody who imported at the same time stored it first."""
    try:
        with transaction.atomic():
            wanted.save()
    except IntegrityError:
        if there := _there_already(wanted):
            return there
        raise
    execute(STORE, [wanted.pk])
    note(
        "test set imported", by=wanted.created_by, subject=wanted.name,
        file=wanted.file_name, sha256=wanted.sha256, texts=wanted.texts_count, toxic=wanted.toxic_count,
    )  # fmt: skip
    wanted.refresh_from_db()
    log.info("test_set_imported", test_set=wanted.name, texts=wanted.texts_count)
    return wanted


# --- The name ------------------------------------------------------------------------------------


def _checked_name(name: str, *, is_given: bool) -> str:
    """The name that was given, or one made of the file's."""
    if not is_given:
        stem = Path(name).stem if Path(name).suffix else name
        name = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:LONGEST_NAME].strip("-")
    if not re.fullmatch(NAME, name) or len(name) > LONGEST_NAME:
        what = f"A test set cannot be called {storable(name)!r}" if name else "The file's name makes no name of a set"
        raise WrongArgument(
            f"{what}. Give a name of at most {LONGEST_NAME} lower-case letters, digits and hyphens, such as hatecheck."
        )
    if RESERVED.fullmatch(name):
        raise WrongArgument(f"{name} is what the HUMANVAL sets made here are called. Give another name.")
    return name


def _there_already(wanted: EvaluationSet) -> EvaluationSet | None:
    """The set of that name, if it is of the same file read the same way. Raises ``WrongFile`` if it is another."""
    there = EvaluationSet.objects.filter(name=wanted.name).first()
    if there is None:
        return None
    if there.sha256 != wanted.sha256:
        raise WrongFile(_taken(wanted))
    if there.columns != wanted.columns:
        raise WrongFile(f"The test set {wanted.name} is of this file, but read otherwise. Give another name.")
    there.was_there = True
    return there


def _taken(wanted: EvaluationSet) -> str:
    return f"There is a test set {wanted.name} of another file. Give another name."
