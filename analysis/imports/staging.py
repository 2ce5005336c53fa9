"""Rows on their way into the database.

COPY streams them into a temporary table, from which SQL stores them all at once.
"""

import csv
import io
from collections.abc import Iterable, Sequence

from django.db import connection

BATCH = 5_000


class Staging:
    """A temporary table that lives as long as the transaction. ``columns`` are names with PostgreSQL's types.

    A text is never null, whatever it says; an empty value of another type is.
    """

    def __init__(self, name: str, columns: dict[str, str]):
        self.name = name
        self._rows: list[Sequence] = []
        texts = ", ".join(column for column, kind in columns.items() if kind == "text")
        forced = f", FORCE_NOT_NULL ({texts})" if texts else ""
        self._copy = f"COPY {name} ({', '.join(columns)}) FROM STDIN WITH (FORMAT csv, ENCODING 'UTF8'{forced})"
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{name}")
            declared = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            cursor.execute(f"CREATE TEMPORARY TABLE {name} ({declared}) ON COMMIT DROP")

    def add(self, row: Sequence) -> None:
        self._rows.append(row)
        if len(self._rows) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Send what has been added."""
        if not self._rows:
            return
        lines = io.StringIO(newline="")
        csv.writer(lines).writerows(self._rows)
        self._rows.clear()
        lines.seek(0)
        with connection.cursor() as cursor:
            cursor.copy_expert(self._copy, lines)

    def finish(self) -> None:
        """Send the last rows, and let PostgreSQL see how many there are before it plans with them."""
        self.flush()
        execute(f"ANALYZE {self.name}")


def execute(sql: str, params: Iterable = ()) -> int:
    """Run one statement and return how many rows it touched."""
    with connection.cursor() as cursor:
        cursor.execute(sql, list(params) or None)
        return cursor.rowcount


def fetch(sql: str, params: Iterable = ()) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql, list(params) or None)
        return cursor.fetchall()
