"""Reading exports back, whatever their format."""

import csv
import io
import json

import pyarrow.parquet

from analysis.exports.writing import stream


def exported(name, format="csv", filters=None, **options) -> bytes:
    return b"".join(stream(name, format, filters, **options))


def csv_rows(name, filters=None, **options) -> list[dict]:
    return list(csv.DictReader(io.StringIO(exported(name, "csv", filters, **options).decode(), newline="")))


def json_rows(name, filters=None) -> list[dict]:
    return [json.loads(line) for line in exported(name, "jsonl", filters).decode().split("\n")[:-1]]


def parquet_rows(name, filters=None) -> list[dict]:
    return pyarrow.parquet.read_table(io.BytesIO(exported(name, "parquet", filters))).to_pylist()
