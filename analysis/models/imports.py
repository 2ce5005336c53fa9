"""Files that were read into the database, and what of them has no other place."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from annotator.models import Annotation
from generation.models import Generation, nobody_has_it, one_of


class ImportFormat(models.TextChoices):
    """What ``manage.py import`` reads."""

    DEMONSTRATIONS = "demonstrations", "demonstrations"
    PROMPTS = "prompts", "prompts"
    TRAIN = "train", "train: statements with their prompts"
    ANNOTATED = "annotated", "annotated: statements with their human labels"
    ANNOTATIONS = "annotations", "annotations: one row an annotation"
    MTURK = "mturk", "mturk: the results of a Mechanical Turk batch"


class ImportState(models.TextChoices):
    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    FINISHED = "finished", "finished"
    REFUSED = "refused", "refused: nothing was stored"
    FAILED = "failed", "failed: nothing was stored"


UNENDED_IMPORTS = (ImportState.QUEUED, ImportState.RUNNING)


class DataImportQuerySet(models.QuerySet):
    def waiting(self) -> "DataImportQuerySet":
        """Unended and worked on by nobody, or by somebody whose lease has lapsed."""
        return self.filter(nobody_has_it(), state__in=UNENDED_IMPORTS)


class DataImport(models.Model):
    """A file that is, or was, read into the database; all of it is stored in one transaction or nothing is."""

    format = models.CharField(max_length=20, choices=ImportFormat)
    file_name = models.CharField(max_length=300, help_text="As whoever uploaded it called it.")
    path = models.CharField(max_length=1000, blank=True, editable=False, help_text="Where the upload waits.")
    options = models.JSONField(default=dict, help_text="As given: group, label, study, what to do with bad rows.")
    state = models.CharField(max_length=10, choices=ImportState, default=ImportState.QUEUED, editable=False)
    failure = models.TextField(blank=True, help_text="Why nothing was stored.")
    bytes_total = models.BigIntegerField(default=0)
    bytes_read = models.BigIntegerField(default=0)
    rows = models.PositiveIntegerField(default=0, help_text="Rows that were read.")
    new = models.PositiveIntegerField(default=0, help_text="Rows that were stored.")
    known = models.PositiveIntegerField(default=0, help_text="Rows that were there already.")
    bad = models.PositiveIntegerField(default=0, help_text="Rows with a fault.")
    stored = models.JSONField(default=dict, help_text="How many rows of each kind were made: statements, prompts, …")
    notes = models.JSONField(default=list, help_text="What else whoever imports should know, as sentences.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    leases = models.PositiveSmallIntegerField(default=0, help_text="How often it was taken up.")

    objects = DataImportQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name = "import"
        constraints = [
            one_of("format", ImportFormat, name="import_format_known"),
            one_of("state", ImportState, name="import_state_known"),
            models.CheckConstraint(
                condition=Q(state__in=UNENDED_IMPORTS, ended_at=None)
                | (~Q(state__in=UNENDED_IMPORTS) & Q(ended_at__isnull=False, lease_expires_at=None)),
                name="import_ended_when_its_state_says_so",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[ImportState.REFUSED, ImportState.FAILED], failure__regex=r"\S", new=0)
                | (~Q(state__in=[ImportState.REFUSED, ImportState.FAILED]) & Q(failure="")),
                name="import_that_stored_nothing_says_why",
            ),
            models.CheckConstraint(
                condition=Q(rows=F("new") + F("known") + F("bad")) | ~Q(state=ImportState.FINISHED),
                name="import_accounts_for_every_row",
            ),
        ]

    def __str__(self) -> str:
        return f"import {self.pk}"


class ImportFault(models.Model):
    """What is wrong with one row of a file."""

    data_import = models.ForeignKey(DataImport, models.CASCADE, related_name="faults")
    file = models.CharField(max_length=300, blank=True, help_text="Of a folder: which file.")
    line = models.PositiveIntegerField(help_text="Its first line in the file, from 1; of Parquet the row.")
    column = models.CharField(max_length=200, blank=True)
    value = models.CharField(max_length=200, blank=True, help_text="Its beginning.")
    message = models.TextField(help_text="What is wrong and what to do.")

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class HumanLabel(models.Model):
    """What people together made of a statement, as an imported file says it; its annotations are not known here.

    The words are those of the released table ``annotated``; the scores are means over annotators, 1 to 5.
    """

    generation = models.OneToOneField(Generation, models.CASCADE, related_name="human_label")
    data_import = models.ForeignKey(DataImport, models.SET_NULL, null=True, db_index=False, related_name="+")
    factual = models.CharField("factual?", max_length=100, blank=True)
    ingroup_effect = models.CharField(max_length=100, blank=True)
    lewd = models.CharField(max_length=100, blank=True)
    framing = models.CharField(max_length=100, blank=True)
    predicted_group = models.TextField(blank=True, help_text="A sentence, or a list of sentences as Python writes it.")
    stereotyping = models.CharField(max_length=100, blank=True)
    intent = models.FloatField(null=True)
    toxicity_ai = models.FloatField(null=True)
    toxicity_human = models.FloatField(null=True)
    predicted_author = models.CharField(max_length=20, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(**{f"{score}__isnull": True}) | Q(**{f"{score}__range": (1, 5)}),
                name=f"human_label_{score}_on_its_scale",
            )
            for score in ("intent", "toxicity_ai", "toxicity_human")
        ]

    def __str__(self) -> str:
        return f"human label of {self.generation}"


class ImportedAnnotation(models.Model):
    """The columns of an imported annotation that have no field here, so that an export gives them back."""

    annotation = models.OneToOneField(Annotation, models.CASCADE, related_name="imported")
    data_import = models.ForeignKey(DataImport, models.SET_NULL, null=True, db_index=False, related_name="+")
    columns = models.JSONField(default=dict, help_text="By name, as the file writes them.")

    def __str__(self) -> str:
        return f"what was imported with {self.annotation}"
