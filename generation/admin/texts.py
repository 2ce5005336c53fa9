"""How the workspace's pages show texts and figures, and the page that nobody edits."""

import math

from django.utils.html import format_html

from generation.admin.lists import WorkspaceAdmin

BLURRED = '<span class="blurred" tabindex="0" title="Point at it or press Tab to read it">{}</span>'


def blurred(text: str) -> str:
    """A text that stays unreadable until the reader asks for it."""
    return format_html(BLURRED, text)


class ReadOnlyAdmin(WorkspaceAdmin):
    """A list and a page of rows that nobody edits by hand."""

    def has_add_permission(self, request) -> bool:
        return False

    def has_change_permission(self, request, obj=None) -> bool:
        return False

    def has_delete_permission(self, request, obj=None) -> bool:
        return False


def rounded(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def percent(probability: float | None) -> str:
    return "–" if probability is None else f"{100 * probability:.1f} %"


def duration(seconds: float) -> str:
    """A length of time for people.

    >>> duration(1), duration(100), duration(7000), duration(400_000)
    ('1 second', '100 seconds', '117 minutes', '111 hours')
    """
    for most, length, word in ((120, 1, "second"), (7200, 60, "minute"), (math.inf, 3600, "hour")):
        count = round(seconds / length)
        if seconds <= most:
            return f"{count} {word}" if count == 1 else f"{count} {word}s"
    raise ValueError(f"{seconds!r} is no length of time.")
