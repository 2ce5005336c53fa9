"""``annotations``: one row an annotation, in the released columns or in those of Humanval's own export."""

from pathlib import Path

from analysis.imports import answers, cells, judgements
from analysis.imports.faults import BadCell
from analysis.imports.groups import Groups
from analysis.imports.judgements import Judgement
from analysis.imports.reading import table_in
from analysis.imports.tables import Table
from analysis.imports.work import Work
from analysis.released import ABOUT_THE_ANNOTATOR, INPUTS, KEPT, WORKER
from annotator.models import AssignmentStatus

OWN = (
    "study", "text", "target_group", "prompt_label", "generation_method", "hashed_worker_id", "accepted_at",
    "submitted_at", "assignment_status", "counted", "not_understood", *answers.OWN_COLUMNS,
)  # fmt: skip
OWN_OPTIONAL = ("prompt", "rejection_reason")
OWN_DERIVED = ("annotation_id", "hit_id", "statement_id", "toxicity", "toxicity_class", "classifier_score")
"""What follows from the rest, or is a number of the installation that wrote the file."""

KEPT_INPUTS = ("Input.time",)


def import_rows(path: Path, work: Work) -> None:
    with table_in(path, encoding=work.options.encoding) as table:
        is_own = "hashed_worker_id" in table and "Input.text" not in table
        staging = (_own if is_own else _released)(table, work)
    judgements.store(staging, work, columns=("prompt_label", "generation_method") if is_own else judgements.RELEASED)


def _own(table: Table, work: Work):
    table.need(OWN)
    table.note_extra(work, (*OWN, *OWN_OPTIONAL, *OWN_DERIVED))
    staging, groups, undecided = judgements.staging(), Groups(work), 0
    columns = (*OWN, *OWN_OPTIONAL)
    pick = table.pick(columns)
    for line, found in table.read(work):
        row = dict(zip(columns, pick(found), strict=True))
        try:
            judgement = _own_judgement(row, work)
            staging.add(judgement.staged(line, groups.id_of("target_group", row["target_group"]), work.options))
            undecided += row["assignment_status"] == AssignmentStatus.SUBMITTED
        except BadCell as bad:
            work.faults.add_cell(line, bad)
    judgements.note_undecided(work, undecided)
    return staging


def _own_judgement(row: dict[str, str], work: Work) -> Judgement:
    not_understood, given = answers.read_own(row)
    known = {status: status for status in ("submitted", "approved", "rejected")}
    status = cells.word("assignment_status", row["assignment_status"], known)
    return Judgement(
        study=work.options.study or judgements.study_title("study", row["study"]),
        title=cells.short("study", row["study"], 200),
        text=cells.text_of("text", row["text"]),
        prompt=cells.prompt_of("prompt", row["prompt"]),
        label=cells.label_of("prompt_label", row["prompt_label"]),
        method=cells.method_of("generation_method", row["generation_method"]),
        worker=judgements.worker_hash("hashed_worker_id", row["hashed_worker_id"]),
        is_rejected=status == AssignmentStatus.REJECTED,
        holds_place=not_understood or cells.flag("counted", row["counted"]),
        reason=cells.short("rejection_reason", row["rejection_reason"], 10_000),
        accepted_at=cells.moment("accepted_at", row["accepted_at"]),
        submitted_at=cells.moment("submitted_at", row["submitted_at"]),
        not_understood=not_understood,
        answers=given,
        kept={"assignment_status": status} if status == AssignmentStatus.SUBMITTED else {},
    )


def _released(table: Table, work: Work):
    table.need((*NEEDED_INPUTS, *answers.RELEASED_COLUMNS, WORKER))
    columns = (*INPUTS, *answers.RELEASED_COLUMNS, *answers.OPTIONAL_RELEASED_COLUMNS, *KEPT, WORKER)
    note_left_out(table, work, columns)
    staging, groups = judgements.staging(), Groups(work)
    pick = table.pick(columns)
    for line, found in table.read(work):
        row = dict(zip(columns, pick(found), strict=True))
        try:
            judgement = released_judgement(row, work, worker_column=WORKER, kept=(*KEPT, *KEPT_INPUTS))
            staging.add(
                judgement.staged(line, groups.id_of("Input.target_group", row["Input.target_group"]), work.options)
            )
        except BadCell as bad:
            work.faults.add_cell(line, bad)
    return staging


NEEDED_INPUTS = ("Input.text",)
OPTIONAL_INPUTS = tuple(column for column in INPUTS if column not in NEEDED_INPUTS)


def note_left_out(table: Table, work: Work, columns: tuple[str, ...]) -> None:
    """Say which columns are not stored: what annotators said of themselves is kept apart from judgements here."""
    table.note_extra(work, (*columns, *ABOUT_THE_ANNOTATOR))
    if told := [column for column in ABOUT_THE_ANNOTATOR if column in table]:
        listed = ", ".join(told)
        work.notes.append(f"Not stored, since what annotators say of themselves is kept apart from answers: {listed}.")


def released_judgement(row: dict[str, str], work: Work, *, worker_column: str, kept: tuple[str, ...]) -> Judgement:
    """What a row in the released ``Input.`` and ``Answer.`` columns says."""
    not_understood, given = answers.read_released(row)
    label = cells.label_of("Input.prompt_label", row["Input.prompt_label"])
    return Judgement(
        study=work.options.study or judgements.DEFAULT_STUDY,
        text=cells.text_of("Input.text", cells.plain_text("Input.text", row["Input.text"])),
        prompt=cells.prompt_of("Input.prompt", row["Input.prompt"]),
        label=label or cells.label_of("Input.binary_prompt_label", row["Input.binary_prompt_label"]),
        method=cells.method_of("Input.generation_method", row["Input.generation_method"]),
        worker=judgements.worker_hash(worker_column, row[worker_column]),
        not_understood=not_understood,
        answers=given,
        kept={name: cells.short(name, row[name], 10_000) for name in kept if row[name]},
    )
