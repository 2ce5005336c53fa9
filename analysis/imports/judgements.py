"""Storing imported annotations as what they are: the work of workers in a study, done and paid elsewhere."""

import hashlib
import hmac
import json
import re
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from analysis.imports import cells, known_work, statements
from analysis.imports.annotated import note_different
from analysis.imports.answers import FREE, KEYS, SCALES, Answers
from analysis.imports.faults import BadCell
from analysis.imports.staging import Staging, execute, fetch
from analysis.imports.work import Options, Work
from annotator.models import GIVEN_ELSEWHERE, AssignmentStatus, ConsentForm, HITType, Worker

RELEASED = ("Input.prompt_label", "Input.generation_method")
DEFAULT_STUDY = "Imported annotations"
NO_REASON = "Rejected where the work was done; no reason was given."
HASH = re.compile(r"[0-9a-fA-F]{32,128}")
"""What looks like a hash. Anything else may be an id that can be traced to a person, so only its hash is stored."""
TIME_FOR_ONE = "30 minutes"

STAGED = {
    **statements.STAGED,
    "study": "text", "title": "text", "worker": "text", "status": "text", "holds_place": "boolean", "reason": "text",
    "accepted_at": "timestamptz", "submitted_at": "timestamptz", "decided_at": "timestamptz",
    "not_understood": "boolean",
    **{key: "smallint" if key in SCALES else "text" for key in KEYS},
    **dict.fromkeys(FREE, "text"),
    "kept": "text", "hit_type_id": "bigint", "worker_id": "bigint", "hit_id": "bigint", "done_id": "bigint",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judgement:
    """One row of a file of annotations; ``study`` is where it goes, ``title`` the study that the file says."""

    study: str
    text: str
    prompt: str
    label: str
    method: str
    worker: str
    not_understood: bool
    answers: Answers
    title: str = ""
    is_rejected: bool = False
    holds_place: bool = True
    reason: str = ""
    accepted_at: datetime | None = None
    submitted_at: datetime | None = None
    decided_at: datetime | None = None
    kept: dict[str, str] = field(default_factory=dict)

    def staged(self, line: int, group_id: int, options: Options) -> tuple:
        if self.accepted_at and self.submitted_at and self.submitted_at < self.accepted_at:
            raise BadCell("", self.submitted_at.isoformat(), "The work was submitted before it was accepted.")
        status = AssignmentStatus.REJECTED if self.is_rejected else AssignmentStatus.APPROVED
        kept = json.dumps(self.kept) if self.kept else ""
        return (
            line, self.text, self.prompt, group_id, self.label, self.method, options.label, options.method, None,
            self.study, self.title, self.worker, status, self.holds_place and not self.is_rejected,
            (self.reason.strip() or NO_REASON) if self.is_rejected else "",
            self.accepted_at, self.submitted_at, self.decided_at, self.not_understood,
            *(self.answers[key] for key in (*KEYS, *FREE)), kept, None, None, None, None,
        )  # fmt: skip


def staging() -> Staging:
    return Staging("import_statements", STAGED)


def study_title(column: str, value: str) -> str:
    title = cells.short(column, value.strip(), 200)
    return title or DEFAULT_STUDY


def worker_hash(column: str, value: str) -> str:
    """What stands for a worker: the file's hash, or ours of whatever else the file says."""
    value = value.strip()
    if value.lower() in cells.EMPTY:
        raise BadCell(column, "", "The row does not say who gave the answers. Fill in a hash of the worker.")
    if HASH.fullmatch(value):
        return value
    try:
        cells.storable(column, value)
    except BadCell as bad:
        raise BadCell(column, "", str(bad)) from None  # a fault shows no id
    # What is hashed of our own workers is their number; here it must never be one.
    elsewhere = f"elsewhere {value}".encode()
    return hmac.new(settings.WORKER_HASH_SALT.encode(), elsewhere, hashlib.sha256).hexdigest()[:32]


def note_undecided(work: Work, undecided: int) -> None:
    if undecided:
        work.notes.append(f"{undecided:,} annotations were neither approved nor rejected; they are stored as approved.")


NAMED = ", ".join(KEYS)
GIVEN = ", ".join(key if key in SCALES else f"NULLIF({key}, '')" for key in KEYS)
GIVEN_IN_FILE = ", ".join(f"staged.{key}" if key in SCALES else f"NULLIF(staged.{key}, '')" for key in KEYS)
FREE_NAMED = ", ".join(FREE)

ONCE = """
CREATE TEMPORARY TABLE import_once ON COMMIT DROP AS
SELECT DISTINCT ON (staged.hit_type_id, staged.generation_id, staged.worker) staged.*
FROM import_statements staged
LEFT JOIN annotator_hit hit USING (hit_type_id, generation_id)
LEFT JOIN import_workers worker ON worker.hash = staged.worker
LEFT JOIN annotator_assignment done ON done.hit_id = hit.id AND done.worker_id = worker.id
WHERE done.id IS NULL AND staged.done_id IS NULL
ORDER BY staged.hit_type_id, staged.generation_id, staged.worker, staged.line
"""
CONSENTS = """
INSERT INTO annotator_consent (worker_id, form_id, given_at)
SELECT DISTINCT worker_id, %s::bigint, %s::timestamptz FROM import_once
ON CONFLICT DO NOTHING
"""
MORE_PLACES = """
UPDATE annotator_hit hit
SET max_assignments = GREATEST(hit.max_assignments, hit.held_places + more.places)
FROM (
    SELECT hit_type_id, generation_id, count(*) FILTER (WHERE holds_place) AS places
    FROM import_once GROUP BY hit_type_id, generation_id
) more
WHERE hit.hit_type_id = more.hit_type_id AND hit.generation_id = more.generation_id
AND hit.held_places + more.places > hit.max_assignments
"""
NEW_HITS = """
INSERT INTO annotator_hit
    (hit_type_id, generation_id, max_assignments, held_places, open_assignments, is_check, prompt_label, expires_at)
SELECT once.hit_type_id, once.generation_id, GREATEST(1, count(*) FILTER (WHERE holds_place)), 0, 0, FALSE, '',
    max(once.submitted_at)
FROM import_once once
WHERE NOT EXISTS (
    SELECT FROM annotator_hit hit WHERE hit.hit_type_id = once.hit_type_id AND hit.generation_id = once.generation_id
)
GROUP BY once.hit_type_id, once.generation_id ORDER BY min(once.line)
"""
ASSIGNMENTS = f"""
INSERT INTO annotator_assignment
    (key, hit_id, worker_id, consent_id, status, holds_place, reward, accepted_at, deadline, submitted_at, decided_at,
     rejection_reason)
SELECT gen_random_uuid(), once.hit_id, once.worker_id, consent.id, once.status, once.holds_place, 0, once.accepted_at,
    GREATEST(once.accepted_at + interval '{TIME_FOR_ONE}', once.submitted_at), once.submitted_at, once.decided_at,
    once.reason
FROM import_once once
JOIN annotator_consent consent
ON consent.worker_id = once.worker_id AND consent.form_id = %s AND consent.withdrawn_at IS NULL
ORDER BY once.line
ON CONFLICT DO NOTHING
"""  # noqa: S608 - a constant
ANNOTATIONS = f"""
INSERT INTO annotator_annotation (assignment_id, not_understood, created_at, {NAMED}, {FREE_NAMED})
SELECT done.id, once.not_understood, once.submitted_at, {GIVEN}, {FREE_NAMED}
FROM import_once once JOIN annotator_assignment done ON done.hit_id = once.hit_id AND done.worker_id = once.worker_id
ORDER BY once.line
ON CONFLICT DO NOTHING
"""  # noqa: S608 - names of columns
KEPT = """
INSERT INTO analysis_importedannotation (annotation_id, data_import_id, columns)
SELECT annotation.id, %s::bigint, once.kept::jsonb
FROM import_once once
JOIN annotator_assignment done ON done.hit_id = once.hit_id AND done.worker_id = once.worker_id
JOIN annotator_annotation annotation ON annotation.assignment_id = done.id
WHERE once.kept <> ''
ON CONFLICT DO NOTHING
"""
COUNT_DIFFERENT = f"""
SELECT count(*)
FROM import_statements staged
LEFT JOIN annotator_hit hit USING (hit_type_id, generation_id)
LEFT JOIN import_workers worker ON worker.hash = staged.worker
LEFT JOIN annotator_assignment done ON done.hit_id = hit.id AND done.worker_id = worker.id
JOIN annotator_annotation stored ON stored.assignment_id = COALESCE(staged.done_id, done.id)
WHERE (staged.not_understood, {GIVEN_IN_FILE})
IS DISTINCT FROM (stored.not_understood, {", ".join(f"stored.{key}" for key in KEYS)})
"""  # noqa: S608


def store(staging: Staging, work: Work, *, columns: tuple[str, str]) -> None:
    """Store what was read, unless it is refused: studies, statements, workers, HITs, assignments, annotations.

    ``columns`` are those of the file that say the label and the method.
    """
    staging.finish()
    now = timezone.now()
    execute(
        "UPDATE import_statements SET submitted_at = COALESCE(submitted_at, accepted_at, %s), "
        "accepted_at = COALESCE(accepted_at, submitted_at, %s), "
        "decided_at = COALESCE(decided_at, submitted_at, accepted_at, %s)",
        [now, now, now],
    )
    known_work.find_workers()
    known_work.find_done_here()
    _find_studies()
    statements.find(work, prefer=statements.IN_THE_STUDY, column_of_label=columns[0], column_of_method=columns[1])
    work.refuse_if_bad()
    _make_studies(work)
    statements.make_missing(work, prefer=statements.IN_THE_STUDY)
    execute("DROP TABLE IF EXISTS pg_temp.import_once")
    execute(ONCE)
    form = _make_workers(work)
    execute(CONSENTS, [form.pk, now])
    _make_hits(work)
    execute(ASSIGNMENTS, [form.pk])
    work.new = work.stored["annotations"] = execute(ANNOTATIONS)
    execute(KEPT, [work.record.pk])
    work.known = work.good - work.new
    note_different(work, COUNT_DIFFERENT)


def _find_studies() -> None:
    execute(
        "UPDATE import_statements SET hit_type_id = known.id FROM "
        "(SELECT title, min(id) AS id FROM annotator_hittype WHERE imported GROUP BY title) known "
        "WHERE known.title = import_statements.study AND done_id IS NULL"
    )


def _make_studies(work: Work) -> None:
    missing = "hit_type_id IS NULL AND done_id IS NULL"
    for (title,) in fetch(f"SELECT DISTINCT study FROM import_statements WHERE {missing} ORDER BY study"):  # noqa: S608
        study = HITType.objects.create(
            title=title,
            description="Annotations that were made elsewhere and imported here.",
            imported=True,
            reward=0,
        )
        work.stored["studies"] += 1
        execute(f"UPDATE import_statements SET hit_type_id = %s WHERE study = %s AND {missing}", [study.pk, title])  # noqa: S608


def _make_workers(work: Work) -> ConsentForm:
    """Make the workers that are not known yet, and return the form that their consent rests on."""
    unknown = fetch(
        "SELECT DISTINCT worker FROM import_once WHERE NOT EXISTS "
        "(SELECT FROM import_workers known WHERE known.hash = import_once.worker) ORDER BY worker"
    )
    made = Worker.objects.bulk_create((Worker(imported_hash=worker) for (worker,) in unknown), batch_size=1000)
    work.stored["workers"] = len(made)
    known_work.add_imported_workers()
    execute(
        "UPDATE import_once SET worker_id = known.id FROM import_workers known WHERE known.hash = import_once.worker"
    )
    form, _ = ConsentForm.objects.get_or_create(
        version=GIVEN_ELSEWHERE,
        defaults={
            "title": "Consent given elsewhere",
            "warning": "Stands for the consent of people whose work was imported. Nobody is asked for it here.",
            "purpose": "The work was done before, and consented to where it was done.",
            "published_at": timezone.now(),
        },
    )
    return form


def _make_hits(work: Work) -> None:
    """A HIT has as many places as annotators; a later file may bring more of them."""
    execute(MORE_PLACES)
    work.stored["HITs"] = execute(NEW_HITS)
    execute(
        "UPDATE import_once SET hit_id = hit.id FROM annotator_hit hit "
        "WHERE hit.hit_type_id = import_once.hit_type_id AND hit.generation_id = import_once.generation_id"
    )
    execute("ANALYZE import_once")
