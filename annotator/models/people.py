"""Who may work: pseudonymous workers, the links they come in by, what they are qualified for."""

import secrets
import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from generation.models import TargetGroup


def new_pseudonym() -> str:
    """The name a worker goes by: says nothing about the person and is easy to read aloud."""
    return "W" + "".join(secrets.choice("23456789ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(8))


class Panel(models.Model):
    """One link for many: whoever opens it joins as a new pseudonymous worker, until it is revoked or full."""

    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.CharField(max_length=200, help_text="For you: where the link was given out.")
    max_workers = models.PositiveIntegerField(
        "places", null=True, blank=True, help_text="How many people may join by it; empty: any number."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class Worker(models.Model):
    """A person who annotates, known by a pseudonym only."""

    pseudonym = models.CharField(max_length=20, unique=True, default=new_pseudonym, editable=False)
    panel = models.ForeignKey(Panel, models.PROTECT, null=True, blank=True, editable=False, related_name="workers")
    pay_reference = models.CharField(
        max_length=100, blank=True, help_text="What whoever pays knows them by, such as a panel's participant id."
    )
    imported_hash = models.CharField(
        max_length=128,
        blank=True,
        editable=False,
        help_text="Of somebody whose work was imported: the hash that stands for them in files.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    blocked_at = models.DateTimeField(null=True, blank=True)
    blocked_reason = models.TextField(blank=True, help_text="The worker reads it.")
    covers_statements = models.BooleanField(default=True, help_text="Statements stay covered until they are asked for.")
    uses_shortcuts = models.BooleanField(default=True, help_text="Keys answer the questions.")
    avoided_groups = models.ManyToManyField(
        TargetGroup, related_name="avoided_by", blank=True, help_text="Groups they do not want to read about."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(blocked_at=None) | Q(blocked_reason__regex=r"\S"),
                name="worker_blocked_with_a_reason",
                violation_error_message="Say why the worker is blocked: they read the reason.",
            ),
            models.UniqueConstraint(
                F("panel"),
                F("pay_reference"),
                condition=~Q(pay_reference="") & ~Q(panel=None),
                name="worker_once_a_participant_of_a_panel",
            ),
            models.UniqueConstraint(
                fields=["imported_hash"], condition=~Q(imported_hash=""), name="worker_imported_once"
            ),
        ]

    def __str__(self) -> str:
        return self.pseudonym


class Invitation(models.Model):
    """What a signed link stands for: one worker may come in, until it is revoked."""

    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    worker = models.ForeignKey(Worker, models.CASCADE, related_name="invitations")
    note = models.CharField(max_length=200, blank=True, help_text="For you: whom it was sent to.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    used_at = models.DateTimeField(null=True, editable=False, help_text="First use.")
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"invitation of {self.worker}"


class Qualification(models.Model):
    """Something a worker can have that a study asks for."""

    name = models.CharField(max_length=100, unique=True)
    description = models.TextField(blank=True, help_text="The worker reads it.")
    workers = models.ManyToManyField(Worker, through="Grant", related_name="qualifications", blank=True)

    def __str__(self) -> str:
        return self.name


class Grant(models.Model):
    """That a worker has a qualification: given by a researcher, or earned in a test."""

    qualification = models.ForeignKey(Qualification, models.CASCADE, related_name="grants")
    worker = models.ForeignKey(Worker, models.CASCADE, related_name="grants")
    granted_at = models.DateTimeField(db_default=Now(), editable=False)
    granted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False, help_text="Nobody: earned in a test."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["worker", "qualification"], name="grant_once_a_worker")]

    def __str__(self) -> str:
        return f"{self.qualification} of {self.worker}"


class TestResult(models.Model):
    """How a worker did in a qualification test; there is one go."""

    __test__ = False  # for pytest: not a test

    test = models.ForeignKey("annotator.HITType", models.CASCADE, related_name="results")
    worker = models.ForeignKey(Worker, models.CASCADE, related_name="test_results")
    right = models.PositiveSmallIntegerField(help_text="Statements answered as expected.")
    total = models.PositiveSmallIntegerField()
    passed = models.BooleanField()
    taken_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["test", "worker"], name="test_result_once_a_worker"),
            models.CheckConstraint(condition=Q(right__lte=F("total"), total__gt=0), name="test_result_is_a_share"),
        ]

    def __str__(self) -> str:
        return f"{self.worker} in {self.test}: {self.right} of {self.total}"
