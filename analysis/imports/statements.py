"""Finding the stored statement that a row of a file is about, and making it where there is none."""

from analysis.imports.staging import execute, fetch
from analysis.imports.work import Work
from annotator.models import COUNTED_STATUSES

STAGED = {
    "line": "bigint", "text": "text", "prompt": "text", "group_id": "bigint", "label": "text", "method": "text",
    "default_label": "text", "default_method": "text", "generation_id": "bigint",
}  # fmt: skip


def judged_here(generation: str) -> str:
    """Whether people judged a statement in a study of ours, so that exports have labels of it; as SQL."""
    counted = ", ".join(f"'{status}'" for status in COUNTED_STATUSES)
    return f"""EXISTS (
        SELECT FROM annotator_hit hit
        JOIN annotator_hittype study ON study.id = hit.hit_type_id AND NOT study.imported
        JOIN annotator_assignment done ON done.hit_id = hit.id AND done.holds_place AND done.status IN ({counted})
        JOIN annotator_annotation given ON given.assignment_id = done.id AND NOT given.not_understood
        WHERE hit.generation_id = {generation} AND NOT hit.is_check
    )"""


WITH_A_LABEL = "EXISTS (SELECT FROM analysis_humanlabel known WHERE known.generation_id = stored.id)"
LABELLED_OR_JUDGED_HERE = f"({WITH_A_LABEL} OR {judged_here('stored.id')})"
IN_THE_STUDY = """EXISTS (
    SELECT FROM annotator_hit known WHERE known.generation_id = stored.id AND known.hit_type_id = staged.hit_type_id
)"""
"""Which of several statements with a text is meant: one that an earlier import of the file has used."""

# One with another prompt is another statement, one whose prompt is not known may be the same.
FIND = """
UPDATE import_statements SET generation_id = found.id, label = found.label, method = found.method
FROM (
    SELECT DISTINCT ON (staged.line) staged.line, stored.id, stored.label, stored.method
    FROM import_statements staged
    JOIN generation_generation stored ON stored.text = staged.text AND stored.group_id = staged.group_id
    LEFT JOIN generation_prompt prompt ON prompt.id = stored.prompt_id
    WHERE staged.generation_id IS NULL
    AND staged.label IN ('', stored.label)
    AND staged.method IN ('', stored.method)
    AND (staged.prompt = '' OR prompt.text IS NULL OR prompt.text = staged.prompt)
    ORDER BY staged.line, {prefer} DESC, prompt.text IS NOT DISTINCT FROM staged.prompt DESC, stored.id
) found
WHERE found.line = import_statements.line
"""

STORE_PROMPTS = """
INSERT INTO generation_prompt (group_id, label, text)
SELECT group_id, label, prompt FROM import_statements
WHERE generation_id IS NULL AND prompt <> '' ORDER BY line
ON CONFLICT DO NOTHING
"""
STORE = """
INSERT INTO generation_generation (prompt_id, group_id, label, method, text, toxic_prob, hypotheses, finish_reason)
SELECT prompt.id, staged.group_id, staged.label, staged.method, staged.text, NULL, '[]', ''
FROM (
    SELECT DISTINCT ON (md5(text), md5(prompt), group_id, label, method) *
    FROM import_statements WHERE generation_id IS NULL
    ORDER BY md5(text), md5(prompt), group_id, label, method, line
) staged
LEFT JOIN generation_prompt prompt
ON md5(prompt.text) = md5(staged.prompt) AND prompt.group_id = staged.group_id AND prompt.label = staged.label
ORDER BY staged.line
ON CONFLICT DO NOTHING
"""


def find(work: Work, *, prefer: str, column_of_label: str, column_of_method: str) -> None:
    """Look the rows' statements up; note a fault for each that is neither stored nor described well enough to be."""
    execute(FIND.format(prefer=prefer))
    for field in ("label", "method"):
        execute(f"UPDATE import_statements SET {field} = default_{field} WHERE {field} = '' AND generation_id IS NULL")  # noqa: S608
    for line, label in fetch(
        "SELECT line, label FROM import_statements "
        "WHERE generation_id IS NULL AND (label = '' OR method = '') ORDER BY line"
    ):
        column, field = (column_of_method, "method") if label else (column_of_label, "label")
        sentence = f"The row says no {field}, and no statement with this text and group is stored."
        work.faults.add(line, f"{sentence} Fill it in, or say --{field}.", column=column)
    execute("DELETE FROM import_statements WHERE generation_id IS NULL AND (label = '' OR method = '')")


def make_missing(work: Work, *, prefer: str) -> None:
    """Store the statements that are not there yet, and their prompts."""
    work.stored["prompts"] = execute(STORE_PROMPTS)
    work.stored["statements"] = execute(STORE)
    execute(FIND.format(prefer=prefer))
