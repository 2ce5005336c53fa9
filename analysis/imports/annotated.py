"""``annotated``: statements with what people together made of each; who these people were is not known.

A label is attached to the statement that is stored already, if there is one with its text, group, label and method.
"""

from pathlib import Path

from analysis.imports import cells, statements
from analysis.imports.faults import BadCell
from analysis.imports.groups import Groups
from analysis.imports.reading import table_in
from analysis.imports.staging import Staging, execute, fetch
from analysis.imports.work import Work
from analysis.released import ANNOTATED

OPTIONAL = ("label",)
WORDS = {  # the file's column, our field, its length; None: any
    "factual?": ("factual", 100),
    "ingroup_effect": ("ingroup_effect", 100),
    "lewd": ("lewd", 100),
    "framing": ("framing", 100),
    "predicted_group": ("predicted_group", 10_000),
    "stereotyping": ("stereotyping", 100),
    "predicted_author": ("predicted_author", 20),
}
SCORES = ("intent", "toxicity_ai", "toxicity_human")
FIELDS = (*(field for field, _ in WORDS.values()), *SCORES)

STAGED = {
    **statements.STAGED,
    **{field: "text" for field, _ in WORDS.values()},
    **dict.fromkeys(SCORES, "double precision"),
}

LISTED = ", ".join(FIELDS)
STORE = f"""
INSERT INTO analysis_humanlabel (generation_id, data_import_id, {LISTED})
SELECT DISTINCT ON (generation_id) generation_id, %s::bigint, {LISTED}
FROM import_statements stored WHERE NOT {statements.judged_here("stored.generation_id")} ORDER BY generation_id, line
ON CONFLICT DO NOTHING
"""  # noqa: S608 - names of columns
COUNT_JUDGED_HERE = f"""
SELECT count(*) FROM import_statements stored WHERE {statements.judged_here("stored.generation_id")}
"""  # noqa: S608
COUNT_DIFFERENT = f"""
SELECT count(*) FROM import_statements staged JOIN analysis_humanlabel stored USING (generation_id)
WHERE ({", ".join(f"staged.{field}" for field in FIELDS)})
IS DISTINCT FROM ({", ".join(f"stored.{field}" for field in FIELDS)})
"""  # noqa: S608


def import_rows(path: Path, work: Work) -> None:
    with table_in(path, encoding=work.options.encoding) as table:
        table.need([column for column in ANNOTATED if column not in OPTIONAL])
        table.note_extra(work, ANNOTATED)
        staging = stage(table, work)
    staging.finish()
    prefer = statements.LABELLED_OR_JUDGED_HERE
    statements.find(work, prefer=prefer, column_of_label="label", column_of_method="actual_method")
    work.refuse_if_bad()
    statements.make_missing(work, prefer=prefer)
    work.new = work.stored["labels"] = execute(STORE, [work.record.pk])
    work.known = work.good - work.new
    note_different(work, COUNT_DIFFERENT)
    note_judged_here(work)


def note_different(work: Work, count: str) -> None:
    [(different,)] = fetch(count)
    if different:
        work.notes.append(f"{different:,} rows differ from what is stored; nothing was changed.")


def note_judged_here(work: Work) -> None:
    """Exports tell of such statements what people here made of them."""
    [(judged,)] = fetch(COUNT_JUDGED_HERE)
    if judged:
        work.notes.append(
            f"{judged:,} rows are about statements that people judged here: their labels were not stored."
        )


def stage(table, work: Work) -> Staging:
    staging, groups, options = Staging("import_statements", STAGED), Groups(work), work.options
    pick_statement = table.pick(("text", "target_group", "label", "actual_method"))
    pick_words, pick_scores = table.pick(tuple(WORDS)), table.pick(SCORES)
    for line, row in table.read(work):
        text, group, label, method = pick_statement(row)
        try:
            staging.add((
                line,
                cells.text_of("text", cells.plain_text("text", text)),
                "",
                groups.id_of("target_group", group),
                cells.label_of("label", label),
                cells.method_of("actual_method", method),
                options.label,
                options.method,
                None,
                *(
                    cells.short(column, value, longest)
                    for (column, (_, longest)), value in zip(WORDS.items(), pick_words(row), strict=True)
                ),
                *(cells.number(column, value, 1, 5) for column, value in zip(SCORES, pick_scores(row), strict=True)),
            ))  # fmt: skip
        except BadCell as bad:
            work.faults.add_cell(line, bad)
    return staging
