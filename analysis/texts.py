"""When two texts are the same one."""

import hashlib


def text_key(text: str) -> bytes:
    """The same for texts that differ in case and spaces alone.

    >>> text_key(" A  cat\\n") == text_key("a cat")
    True
    """
    return hashlib.md5(" ".join(text.split()).casefold().encode(), usedforsecurity=False).hexdigest().encode()
