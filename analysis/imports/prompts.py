"""``prompts``: what a language model continues: one a line, its own line ends written as two characters."""

from pathlib import Path

from analysis.imports import cells, sets
from analysis.imports.faults import BadCell
from analysis.imports.staging import execute
from analysis.imports.work import Work

STORE = """
INSERT INTO generation_prompt (group_id, label, text)
SELECT group_id, label, text FROM import_sets ORDER BY line
ON CONFLICT DO NOTHING
"""


def import_rows(path: Path, work: Work) -> None:
    staging = sets.stage(path, work, name="import_sets", reads=read_prompt)
    work.refuse_if_bad()
    staging.finish()
    work.new = work.stored["prompts"] = execute(STORE)
    work.known = work.good - work.new


def read_prompt(line: str) -> str:
    text = cells.prompt_of("text", line)
    if not text:
        raise BadCell("text", line, "The prompt is empty. Fill it in or remove the row.")
    return text
