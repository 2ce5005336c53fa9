"""The dataset as a folder to publish: Parquet tables, a dataset card, and Croissant metadata, all of one moment."""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis.exports import EXPORTS
from analysis.exports import card as dataset_card
from analysis.exports.columns import Column, Export
from analysis.exports.croissant import croissant
from analysis.exports.facts import facts_about
from analysis.exports.filtering import OF_ANNOTATIONS, filters_from, in_words
from analysis.exports.writing import one_snapshot
from analysis.exports.writing import write as write_export
from analysis.models import HumanvalSet, HumanvalState
from generation.auditing import note

TABLES = ("train", "annotated", "annotations", "wide", "humanval")
"""Not ``mturk``: it has the annotations a second time."""
UNKNOWN_LICENSE = "unknown"
LICENSE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
BUFFER = 1024 * 1024


class CannotWriteDataset(Exception):
    """There is nothing to write, or no place for it; the message says what to do."""


@dataclass(frozen=True)
class Table:
    """A Parquet file of the folder."""

    export: Export
    columns: tuple[Column, ...]
    path: str
    rows: int
    size: int
    in_memory: int
    sha256: str

    @property
    def name(self) -> str:
        return self.export.name


def write(folder: Path, *, filters: Mapping, title: str = "", license: str = "", by=None) -> list[str]:
    """Write the dataset to a new folder; return what was written, as lines. It appears whole or not at all.

    Each table takes those of the filters that it has. Raises ``CannotWriteDataset``, ``filtering.WrongFilter`` and
    ``OSError``.
    """
    license = _known_license(license)
    chosen = filters_from(filters, takes=(*OF_ANNOTATIONS, "humanval", "classifier"), export="dataset")
    test_set = _test_set(chosen)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise CannotWriteDataset(f"{folder} is there already. Give a new name, or remove it first.")
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        with one_snapshot():
            tables = [table for name in TABLES if (table := _write_table(scratch, EXPORTS[name], chosen))]
            facts = facts_about(chosen, title=title or folder.name, license=license, test_set=test_set)
        if not tables:
            raise CannotWriteDataset("There is no statement to export with these filters.")
        (scratch / "README.md").write_text(dataset_card.card(tables, facts), encoding="utf-8")
        metadata = json.dumps(croissant(tables, facts), indent=2, ensure_ascii=False)
        (scratch / "croissant.json").write_text(f"{metadata}\n", encoding="utf-8")
        counts = {table.name: table.rows for table in tables}
        note("dataset exported", by=by, rows=counts, filters=in_words(chosen), license=license)
        scratch.chmod(0o755)
        os.rename(scratch, folder)
    except BaseException:
        shutil.rmtree(scratch)
        raise
    lines = [f"{table.rows} row{'' if table.rows == 1 else 's'} written to {folder / table.path}." for table in tables]
    return [
        *lines,
        *facts.left_out,
        *(facts.propagated.empty if facts.propagated else []),
        f"The dataset card is {folder / 'README.md'}; read it and fill in what only you can know.",
    ]


def _test_set(chosen: dict) -> HumanvalSet | None:
    """The frozen set that the dataset is tested on, the newest unless one is chosen: training leaves it out."""
    test_set = chosen.get("humanval") or HumanvalSet.objects.frozen().first()
    if test_set is None:
        return None
    if test_set.state != HumanvalState.FROZEN:
        raise CannotWriteDataset(
            f"{test_set} is not frozen: it has no labels yet. Choose a version that is, or export train alone."
        )
    chosen["humanval"] = chosen["humanval_version"] = test_set
    return test_set


def _known_license(license: str) -> str:
    if license and not LICENSE.fullmatch(license):
        raise CannotWriteDataset(
            f"{license!r} is no identifier of a licence. Give one such as cdla-permissive-2.0 or cc-by-4.0."
        )
    return license.lower() or UNKNOWN_LICENSE


def _write_table(folder: Path, export: Export, filters: Mapping) -> Table | None:
    """Write an export's rows, unless there are none."""
    import pyarrow.parquet  # large, and only needed here

    # Scores are the classifier's in every table, or rows of one would not be those of another.
    taken = {name: value for name, value in filters.items() if name in (*export.takes, "classifier")}
    if "humanval_version" in taken:  # whose labels belong to no day
        taken = {name: value for name, value in taken.items() if name not in ("submitted_from", "submitted_to")}
    (folder / "data").mkdir(exist_ok=True)
    path = folder / "data" / f"{export.name}.parquet"
    with path.open("wb") as out:
        rows = write_export(export, "parquet", out, taken)
    if not rows:
        path.unlink()
        return None
    in_memory = sum(batch.nbytes for batch in pyarrow.parquet.ParquetFile(path).iter_batches())
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Table(export, export.columns(taken), f"data/{path.name}", rows, path.stat().st_size, in_memory, digest)
