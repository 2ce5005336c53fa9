"""The help lines that every annotators' page names: read from the database once a minute, not once a page."""

from django.core.cache import cache

from annotator.models import HelpLine

NAME = "help_lines"
AS_OLD_AS = 60
"""Pages show help lines that were read at most so many seconds ago, each web process its own."""


def help_lines() -> list[HelpLine]:
    """All of them, the first one first."""
    return cache.get_or_set(NAME, lambda: list(HelpLine.objects.all()), AS_OLD_AS)


def forget_help_lines() -> None:
    """Let the next page of this process read them anew."""
    cache.delete(NAME)
