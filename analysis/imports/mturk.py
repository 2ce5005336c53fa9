"""``mturk``: the results of a Mechanical Turk batch: 27 fixed columns, then inputs and answers."""

from dataclasses import replace
from pathlib import Path

from analysis.imports import answers, cells, judgements
from analysis.imports.annotations import KEPT_INPUTS, note_left_out, released_judgement
from analysis.imports.faults import BadCell
from analysis.imports.groups import Groups
from analysis.imports.judgements import Judgement
from analysis.imports.reading import table_in
from analysis.imports.work import Work
from analysis.released import INPUTS, KEPT, MTURK

NEEDED = ("WorkerId", "AssignmentStatus", "AcceptTime", "SubmitTime", "Input.text", *answers.RELEASED_COLUMNS)
STATUSES = {"approved": "approved", "rejected": "rejected", "submitted": "submitted"}
KEPT_COLUMNS = (*(column for column in MTURK if column != "WorkerId"), *KEPT_INPUTS, *KEPT)


def import_rows(path: Path, work: Work) -> None:
    with table_in(path, encoding=work.options.encoding) as table:
        table.need(NEEDED)
        columns = (*MTURK, *INPUTS, *answers.RELEASED_COLUMNS, *answers.OPTIONAL_RELEASED_COLUMNS, *KEPT)
        note_left_out(table, work, columns)
        staging, groups, undecided = judgements.staging(), Groups(work), 0
        pick = table.pick(columns)
        for line, found in table.read(work):
            row = dict(zip(columns, pick(found), strict=True))
            try:
                judgement = judgement_of(row, work)
                group = groups.id_of("Input.target_group", row["Input.target_group"])
                staging.add(judgement.staged(line, group, work.options))
                undecided += row["AssignmentStatus"].strip().lower() == "submitted"
            except BadCell as bad:
                work.faults.add_cell(line, bad)
    judgements.note_undecided(work, undecided)
    judgements.store(staging, work, columns=judgements.RELEASED)


def judgement_of(row: dict[str, str], work: Work) -> Judgement:
    status = cells.word("AssignmentStatus", row["AssignmentStatus"], STATUSES)
    title = row["Title"].strip()
    judgement = released_judgement(row, work, worker_column="WorkerId", kept=KEPT_COLUMNS)
    decided = cells.moment("ApprovalTime", row["ApprovalTime"]), cells.moment("RejectionTime", row["RejectionTime"])
    return replace(
        judgement,
        study=work.options.study or (judgements.study_title("Title", title) if title else judgements.DEFAULT_STUDY),
        title=cells.short("Title", row["Title"], 200),
        is_rejected=status == "rejected",
        holds_place=status != "rejected",
        reason=row["RequesterFeedback"],
        accepted_at=cells.moment("AcceptTime", row["AcceptTime"]),
        submitted_at=cells.moment("SubmitTime", row["SubmitTime"]),
        decided_at=decided[status == "rejected"],
    )
