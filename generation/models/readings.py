"""Readings: statements that a model reads, on the queue, and what it makes of each."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Length, Mod, Now
from django.db.models.lookups import Exact
from django.utils import timezone

from generation.models.choices import Precision, nobody_has_it, one_of
from generation.models.generations import Generation


class ReaderKind(models.TextChoices):
    """What a model makes of a text."""

    ENCODER = "encoder", "sentence encoder: embeddings"
    CLASSIFIER = "classifier", "classifier: probability of toxic"
    LANGUAGE_MODEL = "language_model", "language model: perplexity"


class TextReader(models.Model):
    """A model in a certain revision: what it made of a statement is stored once."""

    kind = models.CharField(max_length=20, choices=ReaderKind)
    name = models.CharField(max_length=300, help_text="As it is chosen: embedded, a folder, or an id on the hub.")
    revision = models.CharField(max_length=300)
    precision = models.CharField(max_length=10, choices=Precision, default=Precision.FLOAT32)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    used_at = models.DateTimeField(db_default=Now(), editable=False, help_text="When a worker last loaded it.")

    class Meta:
        ordering = ["kind", "name", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "name", "revision", "precision"], name="text_reader_once"),
            one_of("kind", ReaderKind, name="text_reader_kind_known"),
            one_of("precision", Precision, name="text_reader_precision_known"),
        ]

    def __str__(self) -> str:
        details = [self.revision, "" if self.precision == Precision.FLOAT32 else self.precision]
        in_brackets = ", ".join(filter(None, details))
        return f"{self.name} ({in_brackets})" if in_brackets else self.name


class ReadingQuerySet(models.QuerySet):
    def unended(self) -> "ReadingQuerySet":
        return self.filter(finished_at=None)

    def waiting(self) -> "ReadingQuerySet":
        """Unended, with a chunk that nobody holds: a worker should be woken for them."""
        return self.unended().filter(pk__in=ReadingChunk.objects.free().values("reading"))


class Reading(models.Model):
    """An order to have statements read by a model; those that it has read before are not read again."""

    kind = models.CharField(max_length=20, choices=ReaderKind)
    model = models.CharField(max_length=300, help_text="As it is chosen: embedded, a folder, or an id on the hub.")
    precision = models.CharField(max_length=10, choices=Precision, default=Precision.FLOAT32)
    about = models.CharField(max_length=300, blank=True, help_text="Which statements, in words.")
    reader = models.ForeignKey(
        TextReader,
        models.PROTECT,
        null=True,
        editable=False,
        related_name="readings",
        help_text="Known once a worker has loaded the model, or from earlier readings.",
    )
    statements = models.PositiveIntegerField(default=0, help_text="How many are to be read.")
    read = models.PositiveIntegerField(default=0, help_text="How many are done.")
    computed = models.PositiveIntegerField(default=0, help_text="How many of these it read itself.")
    seconds = models.FloatField(default=0, help_text="How long workers took over these, loading the model left out.")
    device = models.CharField(max_length=200, blank=True, editable=False, help_text="As last worked on.")
    failure = models.TextField(blank=True, help_text="Why it ended without all being read.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = ReadingQuerySet.as_manager()
    was_under_way = False
    """Whether ``readings.start_reading`` found it instead of making another."""

    class Meta:
        ordering = ["-pk"]
        constraints = [
            one_of("kind", ReaderKind, name="reading_kind_known"),
            one_of("precision", Precision, name="reading_precision_known"),
            models.CheckConstraint(condition=Q(read__lte=F("statements")), name="reading_reads_no_more_than_there_are"),
            models.CheckConstraint(condition=Q(failure="") | ~Q(finished_at=None), name="reading_failed_has_ended"),
        ]

    def __str__(self) -> str:
        return f"reading {self.pk}"

    @property
    def is_open(self) -> bool:
        return self.finished_at is None

    @property
    def state(self) -> str:
        """In a word."""
        if self.finished_at:
            return "incomplete" if self.failure else "finished"
        return "running" if self.started_at else "queued"

    def progress(self) -> dict:
        """How far it is: ``percent``, ``workers`` at it now, statements a second of one, and the ``seconds_left``.

        ``None`` is what is not known yet.
        """
        held = self.chunks.filter(finished_at=None, lease_expires_at__gte=timezone.now())
        workers = held.count() if self.is_open else 0
        rate = self.computed / self.seconds if self.seconds and self.computed else None
        left = self.statements - self.read
        return {
            "percent": 100 * self.read // self.statements if self.statements else 0,
            "workers": workers,
            "statements_a_second": rate,
            "seconds_left": left / (rate * max(1, workers)) if rate and self.is_open else None,
        }


class ReadingChunkQuerySet(models.QuerySet):
    def free(self) -> "ReadingChunkQuerySet":
        """Unfinished chunks of unended readings that nobody holds, or whose lease has lapsed."""
        return self.filter(nobody_has_it(), finished_at=None, reading__finished_at=None)


class ReadingChunk(models.Model):
    """Some statements of a reading: one worker has them at a time."""

    reading = models.ForeignKey(Reading, models.CASCADE, related_name="chunks", db_index=False)
    index = models.PositiveIntegerField()
    generations = ArrayField(models.BigIntegerField(), help_text="The ids of the statements.")
    lease_token = models.UUIDField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    leases = models.PositiveSmallIntegerField(default=0, help_text="How often it was taken up.")
    without_number = ArrayField(
        models.BigIntegerField(), default=list, help_text="The ids of those of which the model made no number."
    )
    finished_at = models.DateTimeField(null=True)

    objects = ReadingChunkQuerySet.as_manager()

    class Meta:
        ordering = ["reading", "index"]
        constraints = [
            models.UniqueConstraint(fields=["reading", "index"], name="reading_chunk_once"),
            models.CheckConstraint(
                condition=Q(finished_at=None) | Q(lease_token=None, lease_expires_at=None),
                name="reading_chunk_finished_is_not_leased",
            ),
        ]

    def __str__(self) -> str:
        return f"chunk {self.index} of {self.reading}"


class ToxicityScore(models.Model):
    """A classifier's probability that a statement is toxic."""

    generation = models.ForeignKey(Generation, models.CASCADE, related_name="toxicity_scores")
    reader = models.ForeignKey(TextReader, models.PROTECT, related_name="toxicity_scores", db_index=False)
    toxic_prob = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["reader", "generation"], name="toxicity_score_once"),
            models.CheckConstraint(condition=Q(toxic_prob__range=(0, 1)), name="toxicity_score_is_a_probability"),
        ]

    def __str__(self) -> str:
        return f"score of {self.generation}"


class Perplexity(models.Model):
    """A language model's perplexity of a statement: exp of the mean negative log-probability of its tokens.

    It is null where there is none: a text of which the model predicts no token.
    """

    generation = models.ForeignKey(Generation, models.CASCADE, related_name="perplexities")
    reader = models.ForeignKey(TextReader, models.PROTECT, related_name="perplexities", db_index=False)
    value = models.FloatField(null=True)
    tokens = models.PositiveIntegerField(help_text="How many tokens were predicted.")

    class Meta:
        verbose_name_plural = "perplexities"
        constraints = [
            models.UniqueConstraint(fields=["reader", "generation"], name="perplexity_once"),
            # PostgreSQL counts NaN above every number, so that it is neither in the range.
            models.CheckConstraint(
                condition=Q(value=None, tokens=0)
                | Q(value__isnull=False, value__gte=1, value__lt=float("inf"), tokens__gt=0),
                name="perplexity_is_at_least_one",
            ),
        ]

    def __str__(self) -> str:
        return f"perplexity of {self.generation}"


class Embedding(models.Model):
    """An encoder's unit vector of a statement, as little-endian float32."""

    generation = models.ForeignKey(Generation, models.CASCADE, related_name="embeddings")
    reader = models.ForeignKey(TextReader, models.PROTECT, related_name="embeddings", db_index=False)
    vector = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["reader", "generation"], name="embedding_once"),
            models.CheckConstraint(
                condition=Q(Exact(Mod(Length("vector"), 4), 0)),
                name="embedding_is_of_float32",
            ),
        ]

    def __str__(self) -> str:
        return f"embedding of {self.generation}"
