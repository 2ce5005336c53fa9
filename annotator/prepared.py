"""Queries that are made once: what Django and PostgreSQL do before running them costs several times the run itself.

Only for what every accept, view and submit asks. Such a query is written as a queryset all the same, with the values
below where ids are to stand. Anything else in it is constant, so the clock is the database's (``Now()``). Its SQL is
made once a process, and PostgreSQL parses and plans it once a connection (``PREPARE``).
"""

import uuid
from collections.abc import Callable
from functools import cached_property
from itertools import count
from typing import TypeVar
from weakref import WeakKeyDictionary

from django.db import connection
from django.db.models import BigAutoField, Model, QuerySet
from psycopg2.extensions import AsIs

# Ids that no row has.
WORKER, HIT_TYPE, INVITATION = -7_001_001, -7_001_002, -7_001_003
KEY = uuid.UUID(int=7_001_004)
SESSION = "the key of a session"
IDS = {
    "worker": WORKER,
    "hit_type": HIT_TYPE,
    "invitation": INVITATION,
    "key": KEY,
    "session": SESSION,
}

BIGGEST_ID = BigAutoField.MAX_BIGINT

AnyModel = TypeVar("AnyModel", bound=Model)

_numbers = count(1)
_known: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()
"""The names of what PostgreSQL has prepared, by connection."""


class Prepared:
    """A queryset of ``values``, made on first use by ``make``."""

    def __init__(self, make: Callable[[], QuerySet]):
        self._make = make
        self._name = f"humanval_{next(_numbers)}"

    def first(self, **ids: int | uuid.UUID | str) -> dict | None:
        """The first row by column, None if there is none; ``ids`` are named as in ``IDS``."""
        given = {IDS[name]: value for name, value in ids.items()}
        if any(isinstance(value, int) and value > BIGGEST_ID for value in given.values()):
            return None
        with connection.cursor() as cursor:
            self._prepare(cursor)
            cursor.execute(self._execute, [given[value] for value in self._varying])
            row = cursor.fetchone()
        return row and dict(zip(self._columns, row, strict=True))

    @cached_property
    def _query(self):
        return self._make().query

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        return tuple(self._query.selected)

    @cached_property
    def _sql(self) -> tuple[str, tuple]:
        return self._query.sql_with_params()

    @cached_property
    def _varying(self) -> list[int | uuid.UUID | str]:
        """The stand-ins among the query's values, in their order."""
        return [value for value in self._sql[1] if _stands_for_an_id(value)]

    @cached_property
    def _execute(self) -> str:
        return f"EXECUTE {self._name} ({', '.join(['%s'] * len(self._varying))})"

    def _prepare(self, cursor) -> None:
        known = _known.setdefault(connection.connection, set())
        if self._name not in known:
            sql, values = self._sql
            places = count(1)
            values = [AsIs(f"${next(places)}") if _stands_for_an_id(value) else value for value in values]
            cursor.execute(f"PREPARE {self._name} AS {sql}", values)
            known.add(self._name)


def instance(model: type[AnyModel], row: dict, prefix: str = "") -> AnyModel:
    """The model's part of a row, whose columns begin with ``prefix``; its other fields are loaded when asked for."""
    fields = [field for field in model._meta.concrete_fields if prefix + field.attname in row]
    values = [
        field.from_db_value(row[prefix + field.attname], None, connection)
        if hasattr(field, "from_db_value")
        else row[prefix + field.attname]
        for field in fields
    ]
    return model.from_db("default", [field.attname for field in fields], values)


def _stands_for_an_id(value: object) -> bool:
    return type(value) in (int, uuid.UUID, str) and value in IDS.values()
