"""Reports that were worked out on the queue, and are shown until there is something newer."""

from django.db import models
from django.db.models import Q

from generation.models import nobody_has_it


class StoredReportQuerySet(models.QuerySet):
    def waiting(self) -> "StoredReportQuerySet":
        """Asked for, and worked on by nobody, or by somebody whose lease has lapsed."""
        return self.filter(nobody_has_it(), finished_at=None)


class StoredReport(models.Model):
    """A report over what its filters leave, as it was last worked out.

    ``payload`` stays while the report is worked out anew, so that there is always something to look at.
    """

    name = models.CharField(max_length=40, help_text="A key of analysis/reports/catalogue.py.")
    filters = models.JSONField(default=dict, help_text="By name, as the address has them.")
    digest = models.CharField(max_length=32, editable=False, help_text="Of the filters.")
    asked_at = models.DateTimeField(help_text="When somebody last wanted it worked out.")
    looked_at = models.DateTimeField(help_text="When somebody last looked at it; what nobody looks at is not kept up.")
    lease_expires_at = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True, help_text="Of who took it up last.")
    leases = models.PositiveSmallIntegerField(default=0, help_text="How often it was taken up.")
    finished_at = models.DateTimeField(null=True, help_text="When the last attempt ended; null: it is still wanted.")
    failure = models.TextField(blank=True, help_text="Why the last attempt came to nothing.")
    failures = models.PositiveSmallIntegerField(default=0, help_text="How many attempts in a row came to nothing.")
    payload = models.JSONField(null=True, help_text="As analysis/reports/frame.py packs it.")
    rests_on = models.JSONField(default=dict, help_text="What there was of each source when it was made.")
    tried_on = models.JSONField(default=dict, help_text="The same of the last attempt, which may have failed.")
    made_at = models.DateTimeField(null=True)
    seconds = models.FloatField(null=True, help_text="How long the last attempt took.")

    objects = StoredReportQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "digest"], name="report_once_for_its_filters"),
            models.CheckConstraint(
                condition=Q(payload__isnull=True, made_at__isnull=True)
                | Q(payload__isnull=False, made_at__isnull=False),
                name="report_says_when_it_was_made",
            ),
            models.CheckConstraint(
                condition=Q(finished_at=None) | Q(lease_expires_at=None), name="report_finished_is_not_leased"
            ),
        ]

    def __str__(self) -> str:
        return f"report {self.name}"
