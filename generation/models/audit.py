"""The audit trail: who generated, imported, published and exported what, and when. Never edited."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class AuditEntry(models.Model):
    """One act of somebody; a trigger refuses every change and deletion."""

    at = models.DateTimeField(db_default=Now(), editable=False)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        editable=False,
        help_text="Nobody: the command line, or the machine by itself.",
    )
    act = models.CharField(max_length=50, help_text="As a verb and its object: “run started”, “annotations exported”.")
    subject = models.CharField(max_length=200, blank=True, help_text="What it was done to: “run 7”.")
    details = models.JSONField(default=dict, help_text="What else is needed to know what was done.")

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "audit entries"
        indexes = [models.Index(fields=["act", "-id"], name="audit_by_act")]

    def __str__(self) -> str:
        return f"{self.act}: {self.subject}" if self.subject else self.act
