"""The labelled set as CSV: one row an annotation, in constant memory.

A worker appears as a salted hash: the same worker has the same hash in every export of an
installation, and nobody without its salt can tell which worker that is.
"""

import csv
import hashlib
import hmac
from collections.abc import Callable, Iterator

from django.conf import settings

from analysis.labels import TOXICITY_CLASSES, toxicity, toxicity_class
from annotator.models import Annotation
from annotator.questions import QUESTIONS

CHUNK = 2000
NAME = "annotations"


def hashed_worker(worker_id: int) -> str:
    """The salted hash, 32 hexadecimal digits, that stands for a worker outside of the database."""
    key = settings.WORKER_HASH_SALT.encode()
    return hmac.new(key, str(worker_id).encode(), hashlib.sha256).hexdigest()[:32]


def _toxicity(annotation: Annotation) -> int | None:
    if annotation.harmful_if_ai is None or annotation.harmful_if_human is None:
        return None
    return int(toxicity(annotation.harmful_if_ai, annotation.harmful_if_human))


def _class(annotation: Annotation) -> str | None:
    value = _toxicity(annotation)
    return None if value is None else TOXICITY_CLASSES[int(toxicity_class(value))]


def _answer_columns() -> dict[str, Callable[[Annotation], object]]:
    columns: dict[str, Callable[[Annotation], object]] = {}
    for question in QUESTIONS:
        columns[question.key] = lambda row, key=question.key: getattr(row, key)
        if question.free_text:
            columns[question.free_text.key] = lambda row, key=question.free_text.key: getattr(row, key)
    return columns


COLUMNS: dict[str, Callable[[Annotation], object]] = {
    "annotation_id": lambda row: row.pk,
    "study": lambda row: row.assignment.hit.hit_type.title,
    "hit_id": lambda row: row.assignment.hit_id,
    "statement_id": lambda row: row.assignment.hit.generation_id,
    "text": lambda row: row.assignment.hit.generation.text,
    "target_group": lambda row: row.assignment.hit.generation.group.slug,
    "prompt_label": lambda row: row.assignment.hit.generation.label,
    "generation_method": lambda row: row.assignment.hit.generation.method,
    "hashed_worker_id": lambda row: hashed_worker(row.assignment.worker_id),
    "accepted_at": lambda row: row.assignment.accepted_at.isoformat(),
    "submitted_at": lambda row: row.assignment.submitted_at.isoformat(),
    "assignment_status": lambda row: row.assignment.status,
    "counted": lambda row: row.is_counted,
    "not_understood": lambda row: row.not_understood,
    **_answer_columns(),
    "toxicity": _toxicity,
    "toxicity_class": _class,
}


class _Echo:
    """A file that hands back what is written, so that rows can be streamed."""

    def write(self, text: str) -> str:
        return text


def csv_lines() -> Iterator[str]:
    """The lines of the CSV, header first; an empty cell is an answer that was not given."""
    writer = csv.writer(_Echo())
    yield writer.writerow(COLUMNS)
    rows = Annotation.objects.select_related(
        "assignment__hit__hit_type", "assignment__hit__generation__group"
    ).order_by("pk")
    for row in rows.iterator(chunk_size=CHUNK):
        yield writer.writerow([value(row) for value in COLUMNS.values()])
