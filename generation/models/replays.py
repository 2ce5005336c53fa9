"""Replays of ALICE's searches."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from generation.models.choices import nobody_has_it
from generation.models.generations import Generation


class ReplayQuerySet(models.QuerySet):
    def waiting(self) -> "ReplayQuerySet":
        """Unfinished and worked on by nobody, or by somebody whose lease has lapsed."""
        return self.filter(nobody_has_it(), finished_at=None)


class Replay(models.Model):
    """ALICE's search for one statement once more, to be looked at step by step."""

    generation = models.OneToOneField(Generation, models.CASCADE, related_name="replay")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)
    requested_at = models.DateTimeField(db_default=Now())
    lease_expires_at = models.DateTimeField(null=True)
    leases = models.PositiveSmallIntegerField(default=0, help_text="How often it was taken up.")
    finished_at = models.DateTimeField(null=True)
    failure = models.TextField(blank=True)
    text = models.TextField(blank=True, help_text="The statement that it found.")
    steps = models.JSONField(default=list, help_text="As generation/search_steps.py packs them.")
    environment = models.JSONField(default=dict, help_text="Device and versions.")

    objects = ReplayQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(finished_at=None) | Q(lease_expires_at=None), name="replay_finished_is_not_leased"
            ),
            models.CheckConstraint(
                condition=Q(finished_at=None, failure="", steps=[])
                | Q(~Q(failure=""), finished_at__isnull=False, steps=[])
                | Q(~Q(steps=[]), finished_at__isnull=False, failure=""),
                name="replay_finished_with_steps_or_a_failure",
            ),
        ]

    def __str__(self) -> str:
        return f"replay of statement {self.generation_id}"

    @property
    def found_the_same(self) -> bool:
        return self.text == self.generation.text
