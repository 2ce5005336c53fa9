"""What people are told and agree to before any statement is shown, and where they find help."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotator.models.people import Worker

GIVEN_ELSEWHERE = 0
"""The version that stands for consent given elsewhere, before work was imported. Nobody is ever asked for it."""


class ConsentFormQuerySet(models.QuerySet):
    def published(self) -> "ConsentFormQuerySet":
        """Those published by now, the one in force first; not the one that imported work rests on."""
        return self.filter(published_at__lte=Now(), version__gt=GIVEN_ELSEWHERE).order_by("-version")

    def current(self) -> "ConsentForm | None":
        """The form in force: the newest one published."""
        return self.published().first()


class ConsentForm(models.Model):
    """What a person is told and agrees to before any statement is shown; never edited once published.

    All its texts are Markdown.
    """

    version = models.PositiveIntegerField(unique=True)
    title = models.CharField(max_length=200)
    warning = models.TextField(
        help_text="Read first: name the kinds of harm. The groups of the statements are listed below it."
    )
    purpose = models.TextField(help_text="What the study is for, and what one does in it.")
    risks = models.TextField(help_text="What may hurt, and what can be done about it.")
    pay = models.TextField(help_text="What is paid, when, and what happens when one stops early.")
    contact = models.TextField(help_text="Who answers questions, and how to reach them.")
    withdrawal = models.TextField(help_text="How to withdraw, and what happens to past answers.")
    debrief = models.TextField(blank=True, help_text="Read at the end: what the work was for, and thanks.")
    published_at = models.DateTimeField(
        null=True, blank=True, help_text="From then on it is in force. Once set, nothing here can be changed."
    )

    objects = ConsentFormQuerySet.as_manager()

    class Meta:
        ordering = ["-version"]

    def __str__(self) -> str:
        return f"{self.title} (version {self.version})"


class ConsentQuerySet(models.QuerySet):
    def in_force(self) -> "ConsentQuerySet":
        """Consents to the form in force that were not withdrawn."""
        return self.filter(form=ConsentForm.objects.published().values("pk")[:1], withdrawn_at=None)


class Consent(models.Model):
    """A worker's agreement to one version of the form. Without it there is no assignment.

    One that was withdrawn stays as it is; who agrees again gets a new one.
    """

    worker = models.ForeignKey(Worker, models.CASCADE, related_name="consents")
    form = models.ForeignKey(ConsentForm, models.PROTECT, related_name="consents")
    given_at = models.DateTimeField(db_default=Now(), editable=False)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = ConsentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["worker", "form"], condition=Q(withdrawn_at=None), name="consent_in_force_once_a_version"
            )
        ]

    def __str__(self) -> str:
        return f"{self.worker} to version {self.form.version}"


class HelpLine(models.Model):
    """Where somebody upset finds a person to talk to; every annotator's page names the first ones."""

    name = models.CharField(max_length=100)
    how = models.CharField(max_length=200, help_text="How to reach it, from where and when.")
    url = models.URLField("address", blank=True)
    position = models.PositiveSmallIntegerField(default=0, help_text="The smallest comes first.")

    class Meta:
        ordering = ["position", "pk"]

    def __str__(self) -> str:
        return self.name
