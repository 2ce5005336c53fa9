"""The ledger: what is owed to whom and why, and what was handed to whoever pays. Rows are never edited."""

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q, Sum
from django.db.models.functions import Now

from annotator.models.assignments import Assignment
from annotator.models.people import Worker
from generation.models import one_of


class PaymentKind(models.TextChoices):
    ASSIGNMENT = "assignment", "approved work"
    TEST = "test", "qualification test"
    BONUS = "bonus", "bonus"


class PaymentQuerySet(models.QuerySet):
    def unpaid(self) -> "PaymentQuerySet":
        """Those that are in no payout yet; said so that PostgreSQL knows how to estimate how many these are."""
        return self.filter(~Exists(PaidOut.objects.filter(payment=OuterRef("pk"))))

    def total(self):
        """The sum of the amounts, 0 if there are none."""
        return self.aggregate(total=Sum("amount", default=0))["total"]


class Payment(models.Model):
    """A row of the ledger, in US dollars.

    The row of an approved assignment is written by a trigger at the moment of approval; a bonus
    may belong to an assignment, too, as a top-up does.
    """

    worker = models.ForeignKey(Worker, models.PROTECT, related_name="payments")
    kind = models.CharField(max_length=10, choices=PaymentKind)
    amount = models.DecimalField(max_digits=8, decimal_places=2)
    assignment = models.ForeignKey(Assignment, models.PROTECT, null=True, blank=True, related_name="payments")
    reason = models.TextField(blank=True, help_text="Of a bonus. The worker reads it.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, editable=False)

    objects = PaymentQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            one_of("kind", PaymentKind, name="payment_kind_known"),
            models.UniqueConstraint(
                fields=["assignment"], condition=~Q(kind=PaymentKind.BONUS), name="payment_once_an_assignment"
            ),
            models.CheckConstraint(
                condition=Q(kind=PaymentKind.BONUS) | Q(assignment__isnull=False),
                name="payment_of_work_has_its_assignment",
            ),
            models.CheckConstraint(
                condition=Q(amount__gt=0) | Q(amount=0, assignment__isnull=False),
                name="payment_amount_positive",
                violation_error_message="A bonus is more than 0.",
            ),
            models.CheckConstraint(
                condition=~Q(kind=PaymentKind.BONUS) | Q(reason__regex=r"\S"),
                name="payment_bonus_has_a_reason",
                violation_error_message="Say what the bonus is for: the worker reads the reason.",
            ),
        ]

    def __str__(self) -> str:
        return f"${self.amount} to {self.worker}"


class Payout(models.Model):
    """A batch of ledger rows handed to whoever pays; its file can be fetched again and stays the same."""

    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, editable=False)
    payments = models.ManyToManyField(Payment, through="PaidOut", related_name="payouts")

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"payout {self.pk}"


class PaidOut(models.Model):
    """That a ledger row is in a payout, which can happen once."""

    payout = models.ForeignKey(Payout, models.PROTECT)
    payment = models.OneToOneField(Payment, models.PROTECT, related_name="paid_out")

    def __str__(self) -> str:
        return f"{self.payment} in {self.payout}"
