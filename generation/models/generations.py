"""Statements, whoever wrote them."""

import hashlib

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import MD5, Coalesce, Now, Random

from generation.models.choices import Label, Method, has_text, one_of
from generation.models.groups import Prompt, TargetGroup
from generation.models.runs import GenerationChunk, GenerationRun


class FinishReason(models.TextChoices):
    """Why a generation ended, in the words of completion servers."""

    STOP = "stop", "at a newline"
    LENGTH = "length", "at the token limit"
    NONE_ALLOWED = "none_allowed", "no token was allowed"


def digest(text: str) -> str:
    """What PostgreSQL's MD5 makes of a text: how long texts are found by their index."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


# drawing.duplicate_key in SQL: collation "C" lowers A to Z only, in every database.
TEXT_DIGEST = MD5(Func("text", template='LOWER(%(expressions)s COLLATE "C")'))


class GenerationManager(models.Manager):
    """Leaves the n best of a search in the database until they are asked for: they are ten times all the rest."""

    def get_queryset(self) -> models.QuerySet:
        return super().get_queryset().defer("hypotheses")


# What the workspace searches in: whole words, in any language.
TEXT_WORDS = SearchVector("text", config="simple")


class Generation(models.Model):
    """A statement that a language model wrote. Once it is in a HIT its text never changes.

    One without a run was imported, or written by a person.
    """

    # Neither has an index of its own: the constraints below begin with them.
    run = models.ForeignKey(
        GenerationRun, models.PROTECT, null=True, blank=True, related_name="generations", db_index=False
    )
    chunk = models.ForeignKey(
        GenerationChunk, models.PROTECT, null=True, blank=True, related_name="generations", db_index=False
    )
    position = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Its place in the chunk.")
    prompt = models.ForeignKey(Prompt, models.PROTECT, null=True, blank=True, related_name="generations")
    group = models.ForeignKey(TargetGroup, models.PROTECT, related_name="generations", db_index=False)
    label = models.CharField("prompt label", max_length=10, choices=Label)
    method = models.CharField(max_length=10, choices=Method)
    text = models.TextField()
    seed = models.BigIntegerField(null=True, blank=True)
    tokens = models.PositiveSmallIntegerField(null=True, blank=True)
    log_prob = models.FloatField(
        null=True, blank=True, help_text="Sum over its tokens of the language model's log-probability."
    )
    score = models.FloatField(
        null=True, blank=True, help_text="What ALICE ranked it by: the mean over its tokens of the weighted votes."
    )
    toxic_prob = models.FloatField(
        null=True,
        blank=True,
        help_text="A classifier's probability that the text is toxic: the run's, or the imported file's.",
    )
    hypotheses = models.JSONField(
        default=list, blank=True, editable=False, help_text="ALICE's n best, best first, with both models' votes."
    )
    finish_reason = models.CharField(max_length=20, choices=FinishReason, blank=True)
    shuffle = models.FloatField(
        db_default=Random(), editable=False, help_text="Its place in the order that random draws walk along."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = GenerationManager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["chunk", "position", "method"],
                condition=Q(chunk__isnull=False),
                name="generation_once_a_place",
            ),
            models.UniqueConstraint(
                F("run"), TEXT_DIGEST, condition=Q(run__isnull=False), name="generation_text_once_a_run"
            ),
            models.UniqueConstraint(
                MD5("text"),
                Coalesce("prompt", 0),
                F("group"),
                F("label"),
                F("method"),
                condition=Q(run__isnull=True) & ~Q(method=Method.WRITTEN),
                name="generation_imported_once",
            ),
            models.CheckConstraint(
                condition=Q(run=None, chunk=None, position=None) | (~Q(run=None) & ~Q(chunk=None) & ~Q(position=None)),
                name="generation_of_a_run_has_its_place",
            ),
            one_of("label", Label, name="generation_label_known"),
            one_of("method", Method, name="generation_method_known"),
            has_text("text", name="generation_has_text"),
            models.CheckConstraint(
                condition=Q(toxic_prob=None) | Q(toxic_prob__range=(0, 1)),
                name="generation_toxic_prob_is_a_probability",
            ),
        ]
        indexes = [
            models.Index(fields=["group", "label", "method", "shuffle"], name="generation_at_random"),
            GinIndex(TEXT_WORDS, name="generation_words"),
        ]

    def __str__(self) -> str:
        # Not its text: pages show this where they cannot blur it.
        return f"statement {self.pk}"
