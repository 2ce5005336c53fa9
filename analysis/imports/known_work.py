"""Finding what of a file of annotations is stored already: who did the work, and which of it was done here.

What was exported from here comes back: its workers are hashes of our own workers, and its rows are their annotations.
"""

from analysis.exports.workers import hashed_worker
from analysis.imports.staging import Staging, execute
from annotator.models import Worker

IMPORTED_WORKERS = """
INSERT INTO import_workers (id, hash, is_own)
SELECT worker.id, worker.imported_hash, FALSE
FROM (SELECT DISTINCT worker AS hash FROM import_statements) file
JOIN annotator_worker worker ON worker.imported_hash = file.hash AND worker.imported_hash <> ''
WHERE NOT EXISTS (SELECT FROM import_workers known WHERE known.hash = file.hash)
"""

# Of a statement that was judged twice here, the row is the annotation that was submitted when it says.
DONE_HERE = """
UPDATE import_statements
SET done_id = found.done_id, generation_id = found.id, label = found.label, method = found.method
FROM (
    SELECT DISTINCT ON (staged.line) staged.line, done.id AS done_id, stored.id, stored.label, stored.method
    FROM import_statements staged
    JOIN import_workers own ON own.hash = staged.worker AND own.is_own
    JOIN annotator_assignment done ON done.worker_id = own.id
    JOIN annotator_annotation given ON given.assignment_id = done.id
    JOIN annotator_hit hit ON hit.id = done.hit_id
    JOIN annotator_hittype study ON study.id = hit.hit_type_id AND NOT study.imported
    JOIN generation_generation stored ON stored.id = hit.generation_id
    LEFT JOIN generation_prompt prompt ON prompt.id = stored.prompt_id
    WHERE md5(stored.text) = md5(staged.text) AND stored.group_id = staged.group_id
    AND staged.label IN ('', stored.label)
    AND staged.method IN ('', stored.method)
    AND (staged.prompt = '' OR prompt.text IS NULL OR prompt.text = staged.prompt)
    AND staged.title IN ('', study.title)
    ORDER BY staged.line, abs(extract(epoch FROM done.submitted_at - staged.submitted_at)), done.id
) found
WHERE found.line = import_statements.line
"""


def find_workers() -> None:
    """Whose hashes the file has: of our own workers, and of those whose work was imported before."""
    workers = Staging("import_workers", {"id": "bigint", "hash": "text", "is_own": "boolean"})
    for pk in Worker.objects.filter(imported_hash="").order_by().values_list("pk", flat=True).iterator():
        workers.add((pk, hashed_worker(pk), True))
    workers.flush()
    add_imported_workers()


def add_imported_workers() -> None:
    execute(IMPORTED_WORKERS)
    execute("ANALYZE import_workers")


def find_done_here() -> None:
    """Say of each row that was exported from here which assignment it is."""
    execute(DONE_HERE)
