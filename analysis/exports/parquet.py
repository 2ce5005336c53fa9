"""From the cells that PostgreSQL wrote to a Parquet file, a row group at a time."""

import os
import sys
from collections.abc import Sequence
from typing import BinaryIO

if sys.platform == "linux":
    # Of the library's allocators the one that hoards the least. It is chosen when the library is loaded.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from analysis.exports.columns import Column, Kind

BLOCK = 1024 * 1024
"""Bytes read at a time; no row may be longer."""
ROW_GROUP = 2 * 1024 * 1024
"""About so many bytes a row group has, before it is compressed."""

TYPES = {
    Kind.TEXT: pa.string(),
    Kind.WORD: pa.string(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.FLAG: pa.bool_(),
}


def schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([(column.name, TYPES[column.kind]) for column in columns])


def write_parquet(cells: BinaryIO, out: BinaryIO, columns: Sequence[Column]) -> None:
    """Write the CSV ``cells``, with its header line, as Parquet; an empty cell without quotes is null."""
    types = schema(columns)
    with pa.parquet.ParquetWriter(out, types, compression="zstd") as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in _batches(cells, types):
            waiting.append(batch)
            if sum(batch.nbytes for batch in waiting) >= ROW_GROUP:
                writer.write_table(pa.Table.from_batches(waiting, types))
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting, types))
    pa.default_memory_pool().release_unused()


def _batches(cells: BinaryIO, types: pa.Schema):
    return pa.csv.open_csv(
        cells,
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=BLOCK),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
