"""How a worker appears in files: as a salted hash, or as the hash by which their imported work came.

The same worker has the same hash in every export of an installation, and nobody without its salt
can tell which worker that is.
"""

import hashlib
import hmac

from django.conf import settings
from django.db.models import BinaryField, Case, CharField, F, Func, TextField, Value, When
from django.db.models.expressions import Combinable
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
    """The first digits of the HMAC-SHA256 of a text under the installation's salt, as an expression."""
    inner, outer = _pads(settings.WORKER_HASH_SALT.encode())
    of_inner = _sha256(_bytes(inner), Func(message, Value("UTF8"), function="convert_to"))
    digest = _sha256(_bytes(outer), of_inner)
    return Left(Func(digest, Value("hex"), function="encode", output_field=TextField()), digits)


def _pads(key: bytes) -> tuple[bytes, bytes]:
    key = hashlib.sha256(key).digest() if len(key) > BLOCK else key
    key = key.ljust(BLOCK, b"\0")
    return bytes(byte ^ INNER for byte in key), bytes(byte ^ OUTER for byte in key)


def _bytes(value: bytes) -> Value:
    return Value(value, output_field=BinaryField())


def _sha256(*parts) -> Func:
    return Func(*parts, function="sha256", arg_joiner=" || ", output_field=BinaryField())
