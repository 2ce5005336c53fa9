"""Reading files into the database: one module a format, whose ``import_rows(path, work)`` reads and stores a file."""

from collections.abc import Callable, Mapping
from pathlib import Path

from analysis.imports import annotated, annotations, demonstrations, mturk, prompts, train
from analysis.imports.work import Work

FORMATS: Mapping[str, Callable[[Path, Work], None]] = {
    "demonstrations": demonstrations.import_rows,
    "prompts": prompts.import_rows,
    "train": train.import_rows,
    "annotated": annotated.import_rows,
    "annotations": annotations.import_rows,
    "mturk": mturk.import_rows,
}
