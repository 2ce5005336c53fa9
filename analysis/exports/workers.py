"""How a worker appears in files: as a salted hash, or as the hash by which their imported work came.

The same worker has the same hash in every export of an installation, and nobody without its salt
can tell which worker that is.
"""

import hashlib
import hmac
import io
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection
from django.db.models import BinaryField, Case, CharField, F, Func, TextField, Value, When
from django.db.models.expressions import Combinable, RawSQL
from django.db.models.functions import Cast, Left

DIGITS = 32
BLOCK = 64
INNER, OUTER = 0x36, 0x5C


def hashed_worker(worker_id: int) -> str:
    """The salted hash, 32 hexadecimal digits, that stands for a worker outside of the database."""
    key = settings.WORKER_HASH_SALT.encode()
    return hmac.new(key, str(worker_id).encode(), hashlib.sha256).hexdigest()[:DIGITS]


def hash_of_worker(worker: str) -> Case:
    """What stands for a worker in files, as an expression; ``worker`` is the way to them.

    It is ``hashed_worker`` in SQL, after RFC 2104, section 2, since PostgreSQL has SHA-256 of its own.
    """
    own = salted_hash(Cast(f"{worker}_id", TextField()))
    imported = F(f"{worker}__imported_hash")
    return Case(
        When(**{f"{worker}__imported_hash": ""}, then=own),
        default=Cast(imported, TextField()),
        output_field=CharField(),
    )


def salted_hash(message: Combinable, digits: int = DIGITS) -> Left:
    """The first digits of the HMAC-SHA256 of a text under the installation's salt, as an expression.

    It is for statements that run within ``salt_at_hand``.
    """
    of_inner = _sha256(_pad("inner_pad"), Func(message, Value("UTF8"), function="convert_to"))
    digest = _sha256(_pad("outer_pad"), of_inner)
    return Left(Func(digest, Value("hex"), function="encode", output_field=TextField()), digits)


@contextmanager
def salt_at_hand() -> Iterator[None]:
    """Within, statements of this transaction can take the salt.

    It comes as the data of a COPY, which a server does not log: as part of a statement, or bound to one, it would
    stand in the log of every server that writes down what it is asked. Needs a transaction.
    """
    row = "\t".join(rf"\\x{pad.hex()}" for pad in _pads(settings.WORKER_HASH_SALT.encode()))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE export_salt (inner_pad bytea, outer_pad bytea) ON COMMIT DROP")
        cursor.cursor.copy_expert("COPY pg_temp.export_salt FROM STDIN", io.StringIO(row))
        yield
        cursor.execute("DROP TABLE pg_temp.export_salt")


def _pads(key: bytes) -> tuple[bytes, bytes]:
    key = hashlib.sha256(key).digest() if len(key) > BLOCK else key
    key = key.ljust(BLOCK, b"\0")
    return bytes(byte ^ INNER for byte in key), bytes(byte ^ OUTER for byte in key)


def _pad(name: str) -> RawSQL:
    sql = f"(SELECT {name} FROM pg_temp.export_salt)"  # noqa: S608 - our own words
    return RawSQL(sql, (), output_field=BinaryField())  # noqa: S611 - so is this


def _sha256(*parts) -> Func:
    return Func(*parts, function="sha256", arg_joiner=" || ", output_field=BinaryField())
