"""What an export is made of: columns that name their type and meaning, and rows that the database works out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.db.models.expressions import Combinable

READ_STATEMENTS = ("generation.view_generation",)
READ_JUDGEMENTS = (*READ_STATEMENTS, "annotator.view_annotation")
"""What somebody must be allowed to do to get a file: there are statements in every one."""


class Kind(StrEnum):
    """What the cells of a column are. ``TEXT`` is what people or models wrote.

    ``WORD`` is one of few words: ours, or as imported, which may be any text at all.
    """

    TEXT = "text"
    WORD = "word"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "True or False"
    FLAG = "true or false"  # as Mechanical Turk spells them


@dataclass(frozen=True)
class Column:
    """A column of an export, in the words of its documentation."""

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True)
class Rows:
    """Rows of an export: of each row of ``queryset``, or of each group of them that has the same ``by``.

    ``cells`` are expressions in the order of the export's columns; rows stand in the order of ``place``.
    """

    queryset: QuerySet
    place: Combinable
    cells: tuple[Combinable, ...]
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Export:
    """A kind of file: its name, what it is, which filters it takes, whom it is for, and its columns and rows."""

    name: str
    about: str
    a_row: str
    permissions: tuple[str, ...]
    takes: tuple[str, ...]
    columns: Callable[[Mapping], tuple[Column, ...]]
    rows: Callable[[Mapping], list[Rows]]
    shown_columns: str = ""
    """What the page says in place of the columns: they are many, or their number depends on the rows."""

    def is_for(self, user: AbstractBaseUser | AnonymousUser) -> bool:
        """Whether the user's role allows the file."""
        return user.has_perms(self.permissions)

    @property
    def in_words(self) -> str:
        """The names of the columns, as the page lists them."""
        return self.shown_columns or ", ".join(column.name for column in self.columns({}))

    @property
    def filters_in_words(self) -> str:
        """The names of the filters that it takes, as the page lists them."""
        return ", ".join(name.replace("_", " ") for name in self.takes)
