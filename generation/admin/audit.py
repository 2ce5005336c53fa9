"""The audit trail in the workspace: read, never written by hand."""

import json

from django.contrib import admin
from django.utils.html import format_html

from generation.admin.texts import ReadOnlyAdmin
from generation.models import AuditEntry

NOBODY = "the command line, or the machine by itself"


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ["at", "who", "act", "subject", "in_short"]
    list_filter = ["act", "at"]
    list_select_related = ["by"]
    search_fields = ["subject", "by__username"]
    search_help_text = "What it was done to, such as “run 7”, or who did it"
    fields = ["at", "who", "act", "subject", "whole"]
    readonly_fields = ["who", "whole"]

    @admin.display(description="by")
    def who(self, entry) -> str:
        return entry.by.get_username() if entry.by else NOBODY

    @admin.display(description="details")
    def in_short(self, entry) -> str:
        """What fits on a line; texts are never among the details."""
        return ", ".join(
            f"{name.replace('_', ' ')} {f'{value:g}' if isinstance(value, float) else value}"
            for name, value in entry.details.items()
            if not isinstance(value, dict | list | None)
        )

    @admin.display(description="details")
    def whole(self, entry) -> str:
        return format_html("<pre>{}</pre>", json.dumps(entry.details, indent=2, ensure_ascii=False))
