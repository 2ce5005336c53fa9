"""Writing the audit trail. Every act that makes text, lets text out or changes who may see it is noted."""

from generation.models import AuditEntry


def note(act: str, *, by=None, subject: str = "", **details) -> AuditEntry:
    """Note that a user did something, or the machine by itself; ``details`` are JSON.

    Call it in the transaction of what is noted, so that there is never one without the other.
    """
    return AuditEntry.objects.create(
        act=act, by=by if getattr(by, "pk", None) else None, subject=subject, details=details
    )
