"""Growing a set of demonstrations with the model in the loop (paper, 3.1.2): trials of prompts, and their responses."""

from django.conf import settings
from django.db import models
from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Now

from generation.models.choices import Label, has_text, nobody_has_it, one_of
from generation.models.generations import FinishReason
from generation.models.groups import Demonstration, Prompt, TargetGroup


class Verdict(models.TextChoices):
    """What a researcher made of a response."""

    UNDECIDED = "undecided", "not looked at yet"
    PROMOTED = "promoted", "promoted into the set"
    BAD = "bad", "bad"


class BadBecause(models.TextChoices):
    """Why a response is no good example."""

    OTHER_GROUP = "other_group", "not about the group"
    OTHER_LABEL = "other_label", "not what the label says"
    NO_SENSE = "no_sense", "makes no sense"
    COPY = "copy", "too close to a demonstration"
    EXPLICIT = "explicit", "explicit: it has slurs or swear words"
    OTHER = "other", "something else"


class TrialQuerySet(models.QuerySet):
    def waiting(self) -> "TrialQuerySet":
        """Unfinished and worked on by nobody, or by somebody whose lease has lapsed."""
        return self.filter(nobody_has_it(), finished_at=None)

    def with_counts(self) -> "TrialQuerySet":
        """Each with how many responses were written, promoted, and name the group."""

        def count(**which) -> Coalesce:
            own = Response.objects.filter(trial=OuterRef("pk"), **which).order_by().values("trial")
            return Coalesce(Subquery(own.annotate(number=Count("pk")).values("number")), 0)

        # Subqueries, so that a page of ten trials counts the responses of ten.
        return self.annotate(
            written=count(), promoted=count(verdict=Verdict.PROMOTED), naming=count(mentions_group=True)
        )


class Trial(models.Model):
    """A prompt drawn from a set, and an order for fresh responses to it."""

    group = models.ForeignKey(TargetGroup, models.PROTECT, related_name="trials", db_index=False)
    label = models.CharField(max_length=10, choices=Label)
    prompt = models.ForeignKey(Prompt, models.PROTECT, related_name="trials")
    demonstrations = models.ManyToManyField(Demonstration, related_name="trials", help_text="Those in the prompt.")
    language_model = models.CharField(max_length=300)
    parameters = models.JSONField(default=dict, help_text="Of top-k.")
    seed = models.BigIntegerField()
    count = models.PositiveSmallIntegerField(default=8, help_text="Responses that were asked for.")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)
    requested_at = models.DateTimeField(db_default=Now())
    lease_expires_at = models.DateTimeField(null=True)
    leases = models.PositiveSmallIntegerField(default=0, help_text="How often it was taken up.")
    finished_at = models.DateTimeField(null=True)
    failure = models.TextField(blank=True)
    environment = models.JSONField(default=dict, help_text="Device and versions.")

    objects = TrialQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            one_of("label", Label, name="trial_label_known"),
            models.CheckConstraint(condition=Q(count__range=(1, 50)), name="trial_count_in_range"),
            models.CheckConstraint(
                condition=Q(finished_at=None) | Q(lease_expires_at=None), name="trial_finished_is_not_leased"
            ),
            models.CheckConstraint(
                condition=Q(failure="") | Q(finished_at__isnull=False), name="trial_failed_is_finished"
            ),
        ]
        indexes = [models.Index(fields=["group", "label", "-id"], name="trial_of_a_set")]

    def __str__(self) -> str:
        return f"trial {self.pk}"


class Response(models.Model):
    """What the model made of a trial's prompt; a good one is promoted into the set."""

    trial = models.ForeignKey(Trial, models.CASCADE, related_name="responses", db_index=False)
    position = models.PositiveSmallIntegerField()
    text = models.TextField()
    tokens = models.PositiveSmallIntegerField()
    log_prob = models.FloatField(null=True, help_text="Sum over its tokens of the language model's log-probability.")
    finish_reason = models.CharField(max_length=20, choices=FinishReason, blank=True)
    mentions_group = models.BooleanField(help_text="Whether it has one of the words that name the group.")
    verdict = models.CharField(max_length=10, choices=Verdict, default=Verdict.UNDECIDED)
    bad_because = models.CharField(max_length=20, choices=BadBecause, blank=True)
    note = models.CharField(max_length=200, blank=True)
    demonstration = models.OneToOneField(
        Demonstration, models.SET_NULL, null=True, blank=True, related_name="response", help_text="What it became."
    )
    judged_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)
    judged_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["trial", "position"]
        constraints = [
            models.UniqueConstraint(fields=["trial", "position"], name="response_once_a_position"),
            has_text("text", name="response_has_text"),
            one_of("verdict", Verdict, name="response_verdict_known"),
            models.CheckConstraint(
                condition=Q(verdict=Verdict.BAD, bad_because__in=BadBecause.values)
                | (~Q(verdict=Verdict.BAD) & Q(bad_because="")),
                name="response_bad_because_of_something",
            ),
            models.CheckConstraint(
                condition=Q(demonstration=None) | Q(verdict=Verdict.PROMOTED),
                name="response_in_the_set_was_promoted",
            ),
            models.CheckConstraint(
                condition=Q(verdict=Verdict.UNDECIDED, judged_at=None)
                | (~Q(verdict=Verdict.UNDECIDED) & Q(judged_at__isnull=False)),
                name="response_judged_when_its_verdict_says_so",
            ),
        ]

    def __str__(self) -> str:
        # Not its text: pages show this where they cannot blur it.
        return f"response {self.number} of {self.trial}"

    @property
    def number(self) -> int:
        """Its place as people count."""
        return self.position + 1
