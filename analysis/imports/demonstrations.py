"""``demonstrations``: the example sentences that prompts are made of, as ToxiGen publishes them: one a line."""

from pathlib import Path

from analysis.imports import sets
from analysis.imports.cells import text_of
from analysis.imports.faults import BadCell, Refused
from analysis.imports.staging import fetch
from analysis.imports.work import Work
from generation.models import Demonstration, Label

LONGEST = Demonstration._meta.get_field("text").max_length

STORE = """
INSERT INTO generation_demonstration (group_id, label, text, origin, created_by_id, retired_reason)
SELECT group_id, label, text, 'imported', %s, ''
FROM (SELECT DISTINCT ON (group_id, label, text) * FROM import_sets ORDER BY group_id, label, text, line) once
ORDER BY group_id, label, text
ON CONFLICT DO NOTHING RETURNING id
"""


def import_rows(path: Path, work: Work) -> None:
    staging = sets.stage(path, work, name="import_sets", reads=read_sentence)
    work.refuse_if_bad()
    staging.finish()
    if not work.may_fill_toxic_sets and fetch("SELECT 1 FROM import_sets WHERE label = %s LIMIT 1", [Label.TOXIC]):
        raise Refused(
            "Nothing was stored: the file has demonstrations labelled toxic, and your account may not fill toxic sets. "
            "Ask an admin for the permission, or import the benign ones alone."
        )
    made = [pk for (pk,) in fetch(STORE, [work.record.created_by_id])]
    _begin_their_history(made, work)
    work.new = work.stored["demonstrations"] = len(made)
    work.known = work.good - work.new
    _note_retired(work)


def read_sentence(line: str) -> str:
    """The sentence of a line, which may begin with a hyphen as in a prompt.

    >>> read_sentence("- the choir sang in three languages ")
    'the choir sang in three languages'
    """
    text = line.strip()
    text = text[1:].lstrip() if text.startswith("- ") or text == "-" else text
    text_of("text", text, longest=LONGEST)
    if "\n" in text or "\r" in text:
        raise BadCell("text", text, "A demonstration is one line: a prompt puts each on a line of its own.")
    return text


def _begin_their_history(made: list[int], work: Work) -> None:
    """What ``save`` would have done; rows stored by SQL have no history of their own."""
    for start in range(0, len(made), 1000):
        Demonstration.history.bulk_history_create(
            list(Demonstration.objects.filter(pk__in=made[start : start + 1000])),
            default_user=work.record.created_by,
            default_change_reason=f"imported from {work.record.file_name}"[:100],
        )


def _note_retired(work: Work) -> None:
    [(retired,)] = fetch(
        "SELECT count(DISTINCT stored.id) FROM import_sets staged JOIN generation_demonstration stored "
        "USING (group_id, label, text) WHERE stored.retired_at IS NOT NULL"
    )
    if retired:
        work.notes.append(f"Demonstrations of the file that were retired here, and stay so: {retired:,}.")
