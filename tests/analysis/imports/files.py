"""Files to import, with benign rows; what a test is about stands in the test itself."""

import csv
import json
from itertools import count
from pathlib import Path

from analysis.importing import Outcome, Refused, import_file
from analysis.imports.work import Options
from analysis.released import ANNOTATED, INPUTS, MTURK, ONE_HOT, TRAIN, WORKER, answer_columns

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "toxigen"

numbers = count(1)


def train_row(**changes) -> dict:
    return {
        "prompt": r"- the choir sang\n- the lake is deep\n-",
        "generation": f"the market opens at {next(numbers)}",
        "generation_method": "TopK",
        "group": "women",
        "prompt_label": "0",
        "roberta_prediction": "0.25",
    } | changes


def annotated_row(**changes) -> dict:
    return {
        "text": f"the ferry leaves at {next(numbers)}",
        "target_group": "women",
        "factual?": "factual",
        "ingroup_effect": "doesn't use in-group language",
        "lewd": "doesn't contain lewd content",
        "framing": "disagreement",
        "predicted_group": "['the text directly references women', 'it is unclear who is referenced']",
        "stereotyping": "doesn't use positive stereotyping",
        "intent": "1",
        "toxicity_ai": "1.333333333",
        "toxicity_human": "2",
        "predicted_author": "human",
        "label": "neutral",
        "actual_method": "TopK",
    } | changes


def ticked(key: str, answer) -> dict:
    """The one-hot columns of an answer."""
    stem, values = ONE_HOT[key]
    return {f"{stem}.{place}": str(value == answer).lower() for place, value in enumerate(values, start=1)}


def annotation_row(**changes) -> dict:
    answers = {
        **ticked("human_or_ai", "ai"),
        **ticked("harmful_if_ai", 1),
        **ticked("harmful_if_human", 2),
        **ticked("pos_stereo", "no"),
        **ticked("harmful_intent", 1),
        **ticked("lewd", "no"),
        "Answer.refTarget": "direct",
        "Answer.framingQ": "moral",
        "Answer.factSelect": "opinion",
    }
    inputs = {
        "Input.text": "the harbor is busy in spring",
        "Input.generation_method": "ALICE",
        "Input.prompt_label": "neutral",
        "Input.target_group": "women",
    }
    return dict.fromkeys([*INPUTS, *answer_columns()], "") | inputs | answers | {WORKER: "a" * 32} | changes


def unanswered() -> dict:
    """The ``Answer.`` columns of somebody who answered nothing."""
    return dict.fromkeys(answer_columns(), "")


def mturk_row(**changes) -> dict:
    fixed = dict.fromkeys(MTURK, "") | {
        "HITId": "3XYZ",
        "Title": "Is this statement harmful?",
        "Reward": "$0.25",
        "WorkerId": "b" * 32,
        "AssignmentStatus": "Approved",
        "AcceptTime": "Mon Nov 16 10:15:00 PST 2020",
        "SubmitTime": "Mon Nov 16 10:17:00 PST 2020",
        "ApprovalTime": "Tue Nov 17 08:00:00 PST 2020",
        "LifetimeApprovalRate": "100% (10/10)",
    }
    row = annotation_row()
    del row[WORKER]
    return fixed | row | changes


OWN = {
    "annotation_id": "5",
    "study": "Is this statement harmful?",
    "hit_id": "7",
    "statement_id": "9",
    "text": "the harbor is busy in spring",
    "target_group": "women",
    "prompt_label": "benign",
    "generation_method": "alice",
    "hashed_worker_id": "c" * 32,
    "accepted_at": "2026-01-05T10:00:00.000000+00:00",
    "submitted_at": "2026-01-05T10:02:00.000000+00:00",
    "assignment_status": "approved",
    "counted": "true",
    "not_understood": "false",
    "human_or_ai": "ai",
    "harmful_if_ai": "1",
    "harmful_if_human": "2",
    "pos_stereo": "no",
    "harmful_intent": "1",
    "lewd": "no",
    "which_group": "directly",
    "other_groups": "",
    "group_framing": "none",
    "other_framing": "",
    "fact_or_opinion": "factual",
}

ROWS = {"train": train_row, "annotated": annotated_row, "annotations": annotation_row, "mturk": mturk_row}
COLUMNS = {"train": TRAIN, "annotated": ANNOTATED}


def csv_file(path: Path, rows: list[dict], *, columns=None, encoding: str = "utf-8") -> Path:
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, columns or list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def json_lines(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def parquet_file(path: Path, rows: list[dict]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def import_rows(tmp_path: Path, format: str, *rows: dict, **options) -> Outcome:
    """Import a CSV of these rows."""
    path = csv_file(tmp_path / f"{format}-{next(numbers)}.csv", list(rows))
    return import_file(format=format, path=path, options=Options(**options))


def refused(act, *args, **kwargs) -> Refused:
    """What an import is refused with."""
    try:
        outcome = act(*args, **kwargs)
    except Refused as refusal:
        return refusal
    raise AssertionError(f"It was imported: {outcome}")
