"""Judgements for tests of reports: stored as they are, past the acts."""

from datetime import UTC, datetime, timedelta

from annotator.models import Annotation
from tests.factories import answers, consenting_worker, make_assignment, make_generation, make_hit, make_hit_type

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
"""A Monday."""


def people(number: int) -> list:
    return [consenting_worker() for _ in range(number)]


def judge(rows, *, study=None, workers=None, at=NOON, seconds=60, statement=None, **fields):
    """Statements with a row of ``rows`` each: what the first, second… of ``workers`` answered, ``None`` for a gap.

    An answer is a number, how harmful the statement is whoever wrote it, or answers by question. ``statement`` are
    fields of the statements, ``fields`` of the assignments. Returns the statements.
    """
    study = study or make_hit_type(max_assignments=max(map(len, rows)))
    workers = workers or people(max(map(len, rows)))
    made = []
    for row in rows:
        hit = make_hit(hit_type=study, generation=make_generation(**statement or {}))
        made.append(hit.generation)
        for worker, answer in zip(workers, row, strict=False):
            if answer is not None:
                give(hit, worker, answer, at=at, seconds=seconds, **fields)
    return made


def give(hit, worker, answer, *, at=NOON, seconds=60, **fields) -> Annotation:
    """A worker's answer to a HIT, accepted ``at`` and submitted so many seconds later."""
    given = answer if isinstance(answer, dict) else {"harmful_if_ai": answer, "harmful_if_human": answer}
    times = {"accepted_at": at, "submitted_at": at + timedelta(seconds=seconds), "deadline": at + timedelta(days=1)}
    assignment = make_assignment(hit, worker, **{"status": "submitted"} | times | fields)
    return Annotation.objects.create(assignment=assignment, **answers(**given))


def section(report, key):
    return next(section for section in report.sections if section.key == key)


def rows_by(table, key):
    return {row[key]: row for row in table.rows}
