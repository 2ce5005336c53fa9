"""``train``: statements that a language model wrote, with their prompts and a classifier's verdict."""

from pathlib import Path

from analysis.imports import cells
from analysis.imports.faults import BadCell
from analysis.imports.groups import Groups
from analysis.imports.reading import table_in
from analysis.imports.staging import Staging, execute
from analysis.imports.wording import option
from analysis.imports.work import Work
from analysis.released import TRAIN
from generation.models import Method, digest

MANY = 10_000

PROMPTS = {"number": "bigint", "group_id": "bigint", "label": "text", "text": "text"}
STATEMENTS = {
    "line": "bigint", "prompt": "bigint", "group_id": "bigint", "label": "text", "method": "text", "text": "text",
    "toxic_prob": "double precision",
}  # fmt: skip

STORE_PROMPTS = """
INSERT INTO generation_prompt (group_id, label, text)
SELECT group_id, label, text FROM import_prompts ORDER BY number
ON CONFLICT DO NOTHING
"""
FIND_PROMPTS = """
CREATE TEMPORARY TABLE import_prompt_ids ON COMMIT DROP AS
SELECT staged.number, stored.id
FROM import_prompts staged JOIN generation_prompt stored
ON md5(stored.text) = md5(staged.text) AND stored.group_id = staged.group_id AND stored.label = staged.label
"""
# A statement of which a file of labels or annotations came first, without its prompt. One that is told in this file
# without a prompt, too, is meant so.
FILL_PROMPTS = """
UPDATE generation_generation stored
SET prompt_id = found.prompt_id, toxic_prob = COALESCE(stored.toxic_prob, found.toxic_prob)
FROM (
    SELECT DISTINCT ON (bare.id) bare.id, prompt.id AS prompt_id, staged.toxic_prob
    FROM import_statements staged
    JOIN import_prompt_ids prompt ON prompt.number = staged.prompt
    JOIN generation_generation bare
    ON md5(bare.text) = md5(staged.text) AND bare.group_id = staged.group_id AND bare.label = staged.label
    AND bare.method = staged.method AND bare.prompt_id IS NULL AND bare.run_id IS NULL
    WHERE NOT EXISTS (
        SELECT FROM generation_generation known
        WHERE known.prompt_id = prompt.id AND known.method = staged.method AND md5(known.text) = md5(staged.text)
    )
    AND NOT EXISTS (
        SELECT FROM import_statements same
        WHERE same.prompt IS NULL AND md5(same.text) = md5(staged.text) AND same.group_id = staged.group_id
        AND same.label = staged.label AND same.method = staged.method
    )
    ORDER BY bare.id, staged.line
) found
WHERE found.id = stored.id
"""
# A statement of a run here may come back in a file that was exported from here.
STORE_STATEMENTS = """
INSERT INTO generation_generation
    (prompt_id, group_id, label, method, text, toxic_prob, hypotheses, finish_reason)
SELECT prompt.id, staged.group_id, staged.label, staged.method, staged.text, staged.toxic_prob, '[]', ''
FROM import_statements staged LEFT JOIN import_prompt_ids prompt ON prompt.number = staged.prompt
WHERE NOT EXISTS (
    SELECT FROM generation_generation own
    WHERE own.prompt_id = prompt.id AND own.method = staged.method AND own.text = staged.text AND own.run_id IS NOT NULL
)
ORDER BY staged.line
ON CONFLICT DO NOTHING
"""


def import_rows(path: Path, work: Work) -> None:
    with table_in(path, encoding=work.options.encoding) as table:
        table.need(TRAIN)
        table.note_extra(work, TRAIN)
        prompts, statements = stage(table, work)
    work.refuse_if_bad()
    prompts.finish()
    statements.finish()
    store(work)


def stage(table, work: Work) -> tuple[Staging, Staging]:
    """Read the rows into two temporary tables: a prompt stands before many statements, and is sent once."""
    prompts, statements = Staging("import_prompts", PROMPTS), Staging("import_statements", STATEMENTS)
    groups, numbers = Groups(work), {}
    options = work.options
    pick = table.pick(TRAIN)
    for line, row in table.read(work):
        prompt, text, method, group, label, prob = pick(row)
        try:
            prompt = cells.prompt_of("prompt", prompt)
            text = cells.text_of("generation", text)
            method = cells.method_of("generation_method", method, options.method)
            group_id = groups.id_of("group", group)
            label = cells.label_of("prompt_label", label, options.label)
            prob = cells.number("roberta_prediction", prob, 0, 1)
            _all_said(label, method)
        except BadCell as bad:
            work.faults.add_cell(line, bad)
            continue
        number = None
        if prompt:
            key = (digest(prompt), group_id, label)
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(numbers)
                prompts.add((number, group_id, label, prompt))
        statements.add((line, number, group_id, label, method, text, prob))
    return prompts, statements


def _all_said(label: str, method: str) -> None:
    if not label:
        said = f"The row says no label. Write 0 or 1, or give {option('label')} for all such rows."
        raise BadCell("prompt_label", "", said)
    if method == Method.WRITTEN:
        raise BadCell("generation_method", method, "This table has what language models wrote: ALICE or TopK.")
    if not method:
        said = f"The row says no method. Write ALICE or TopK, or give {option('method')} for all such rows."
        raise BadCell("generation_method", "", said)


def store(work: Work) -> None:
    work.stored["prompts"] = execute(STORE_PROMPTS)
    execute("DROP TABLE IF EXISTS pg_temp.import_prompt_ids")
    execute(FIND_PROMPTS)
    execute("ANALYZE import_prompt_ids")
    work.stored["prompts of statements known before"] = execute(FILL_PROMPTS)
    work.new = work.stored["statements"] = execute(STORE_STATEMENTS)
    work.known = work.good - work.new
    if work.new > MANY:
        # What a large import leaves to be sorted in, the next search for words would have to read through.
        execute("SELECT gin_clean_pending_list('generation_words')")
        execute("ANALYZE generation_generation")
