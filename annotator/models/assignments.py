"""Assignments: a worker's one go at a HIT."""

import uuid
from datetime import timedelta

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from annotator.models.consent import Consent
from annotator.models.people import Worker
from generation.models import one_of

SECOND_THOUGHTS = timedelta(days=30)
"""For so long after a rejection the work can still be approved; migration 0003 has the same."""


class AssignmentStatus(models.TextChoices):
    ACCEPTED = "accepted", "accepted"
    SUBMITTED = "submitted", "submitted"
    APPROVED = "approved", "approved"
    REJECTED = "rejected", "rejected"
    RETURNED = "returned", "returned"
    EXPIRED = "expired", "expired"


SUBMITTED_STATUSES = (AssignmentStatus.SUBMITTED, AssignmentStatus.APPROVED, AssignmentStatus.REJECTED)
COUNTED_STATUSES = (AssignmentStatus.SUBMITTED, AssignmentStatus.APPROVED)
DECIDED_STATUSES = (AssignmentStatus.APPROVED, AssignmentStatus.REJECTED)
GIVEN_BACK_STATUSES = (AssignmentStatus.RETURNED, AssignmentStatus.EXPIRED)


class AssignmentQuerySet(models.QuerySet):
    def accepted(self) -> "AssignmentQuerySet":
        return self.filter(status=AssignmentStatus.ACCEPTED)

    def lapsed(self) -> "AssignmentQuerySet":
        """Accepted, and past the deadline."""
        return self.accepted().filter(deadline__lt=timezone.now())

    def submitted(self) -> "AssignmentQuerySet":
        return self.filter(status__in=SUBMITTED_STATUSES)

    def to_review(self) -> "AssignmentQuerySet":
        """Submitted, and neither approved nor rejected yet; the oldest first."""
        return self.filter(status=AssignmentStatus.SUBMITTED).order_by("submitted_at")


class Assignment(models.Model):
    """A worker's one go at a HIT.

    ``holds_place`` says whether it takes one of the HIT's places: always while it is being
    worked on, and after submitting if it counts as a label.
    """

    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    hit = models.ForeignKey("annotator.HIT", models.PROTECT, related_name="assignments")
    # No index of their own: a worker's is the one on worker and accepted_at, and nothing is looked up by the others.
    worker = models.ForeignKey(Worker, models.PROTECT, related_name="assignments", db_index=False)
    consent = models.ForeignKey(Consent, models.PROTECT, related_name="assignments", db_index=False)
    status = models.CharField(max_length=10, choices=AssignmentStatus, default=AssignmentStatus.ACCEPTED)
    holds_place = models.BooleanField(default=True)
    reward = models.DecimalField(
        max_digits=6,
        decimal_places=2,
        validators=[MinValueValidator(0)],
        help_text="In US dollars, as promised when it was accepted.",
    )
    draft = models.JSONField(
        null=True, editable=False, help_text="What was typed and not submitted yet, by field as the form sends it."
    )
    accepted_at = models.DateTimeField(db_default=Now(), editable=False)
    working_since = models.DateTimeField(
        null=True, editable=False, help_text="When the worker's stretch of work without a break began."
    )
    deadline = models.DateTimeField()
    submitted_at = models.DateTimeField(null=True, blank=True)
    given_back_at = models.DateTimeField(null=True, blank=True, help_text="Returned or expired.")
    decided_at = models.DateTimeField(null=True, blank=True, help_text="Approved or rejected.")
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        editable=False,
        db_index=False,
        help_text="Nobody: approved by itself.",
    )
    rejection_reason = models.TextField(blank=True, help_text="The worker reads it.")
    answers_deleted_at = models.DateTimeField(
        null=True, editable=False, help_text="The worker withdrew and had the answers deleted; the pay stays."
    )

    objects = AssignmentQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["worker", "hit"], name="assignment_once_a_hit_ever"),
            models.UniqueConstraint(
                fields=["worker"], condition=Q(status=AssignmentStatus.ACCEPTED), name="assignment_one_open_a_worker"
            ),
            one_of("status", AssignmentStatus, name="assignment_status_known"),
            models.CheckConstraint(
                condition=~Q(status=AssignmentStatus.ACCEPTED) | Q(holds_place=True),
                name="assignment_accepted_holds_a_place",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=GIVEN_BACK_STATUSES) | Q(holds_place=False, given_back_at__isnull=False),
                name="assignment_given_back_frees_its_place",
            ),
            models.CheckConstraint(
                condition=Q(status__in=SUBMITTED_STATUSES, submitted_at__isnull=False)
                | (~Q(status__in=SUBMITTED_STATUSES) & Q(submitted_at=None)),
                name="assignment_submitted_when_its_status_says_so",
            ),
            models.CheckConstraint(
                condition=~Q(status=AssignmentStatus.REJECTED) | Q(rejection_reason__regex=r"\S"),
                name="assignment_rejected_with_a_reason",
                violation_error_message="Say why the work is rejected: the worker reads the reason.",
            ),
            models.CheckConstraint(
                condition=~Q(status=AssignmentStatus.REJECTED) | Q(holds_place=False),
                name="assignment_rejected_frees_its_place",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=DECIDED_STATUSES) | Q(decided_at__isnull=False),
                name="assignment_decided_when_its_status_says_so",
            ),
            models.CheckConstraint(
                condition=Q(answers_deleted_at=None) | Q(holds_place=False, draft__isnull=True),
                name="assignment_without_answers_holds_no_place",
            ),
            models.CheckConstraint(
                condition=Q(draft__isnull=True) | ~Q(status__in=SUBMITTED_STATUSES),
                name="assignment_draft_ends_with_submitting",
            ),
            models.CheckConstraint(condition=Q(reward__gte=0), name="assignment_reward_not_negative"),
            models.CheckConstraint(condition=Q(deadline__gt=F("accepted_at")), name="assignment_has_time"),
        ]
        indexes = [
            models.Index(
                fields=["deadline"], condition=Q(status=AssignmentStatus.ACCEPTED), name="assignment_open_deadline"
            ),
            models.Index(
                fields=["submitted_at"], condition=Q(status=AssignmentStatus.SUBMITTED), name="assignment_to_review"
            ),
            models.Index(fields=["worker", "accepted_at"], name="assignment_of_a_worker"),
        ]

    def __str__(self) -> str:
        return f"{self.worker} on {self.hit}"

    @property
    def time_taken(self) -> timedelta | None:
        """From accepting to submitting."""
        return self.submitted_at - self.accepted_at if self.submitted_at else None

    @property
    def is_submitted(self) -> bool:
        return self.status in SUBMITTED_STATUSES
