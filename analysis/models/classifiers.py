"""Toxicity classifiers that were trained here, test sets from files, and what classifiers make of test sets."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from analysis.models.humanval import HumanvalSet
from generation.models import Generation, Precision, TextReader, nobody_has_it, one_of

NAME = "^[a-z0-9][a-z0-9-]*$"
"""What classifiers and test sets are called: a folder's name everywhere, and a word of a command."""


ENDS_OR_FAILS = Q(finished_at=None, failure="") | Q(
    finished_at__isnull=False, lease_expires_at=None, failure__regex=r"\S"
)
"""An order is not ended, or ended with a reason; or, which is said where this is used, it came to something."""


class TrainingKind(models.TextChoices):
    """What of a model is trained."""

    HEAD = "head", "head on frozen embeddings"
    FULL = "full", "full fine-tuning"


class LabelSource(models.TextChoices):
    """Where it is known from that a statement is toxic."""

    PROMPT = "prompt", "label of the prompt"
    HUMAN = "human", "judgement of people"


class TrainingMethods(models.TextChoices):
    """By which method the statements were written (paper, table 4)."""

    ALICE = "alice", "ALICE only"
    TOPK = "topk", "top-k only"
    BOTH = "both", "ALICE and top-k"


class WaitingQuerySet(models.QuerySet):
    """Rows that a worker leases and ends."""

    def unended(self) -> "WaitingQuerySet":
        return self.filter(finished_at=None)

    def waiting(self) -> "WaitingQuerySet":
        """Unended, and worked on by nobody, or by somebody whose lease has lapsed."""
        return self.unended().filter(nobody_has_it())

    def finished(self) -> "WaitingQuerySet":
        """Those that came to something."""
        return self.filter(finished_at__isnull=False, failure="")


class Leased(models.Model):
    """What somebody ordered and a worker carries out; ``generation/leases.py`` says how."""

    device = models.CharField(max_length=200, blank=True, editable=False, help_text="As last worked on.")
    seconds = models.FloatField(default=0, help_text="How long workers took, loading models left out.")
    failure = models.TextField(blank=True, help_text="Why it came to nothing.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)
    lease_expires_at = models.DateTimeField(null=True, editable=False)
    lease_token = models.UUIDField(null=True, editable=False, help_text="Of who took it up last.")
    leases = models.PositiveSmallIntegerField(default=0, editable=False, help_text="How often it was taken up.")

    objects = WaitingQuerySet.as_manager()

    class Meta:
        abstract = True

    @property
    def is_open(self) -> bool:
        return self.finished_at is None

    @property
    def state(self) -> str:
        """In a word."""
        if self.finished_at:
            return "failed" if self.failure else "finished"
        return "running" if self.started_at else "queued"


class TrainedClassifier(Leased):
    """An order to train a classifier on statements, and what came of it.

    Its files are in the folder of its name, see ``analysis/classifiers/folders.py``.
    """

    name = models.CharField(max_length=60, unique=True, help_text="Lower-case letters, digits and hyphens.")
    kind = models.CharField(max_length=10, choices=TrainingKind, default=TrainingKind.HEAD)
    base = models.CharField(max_length=300, help_text="The model it begins with: embedded, a folder, or an id.")
    labels = models.CharField(max_length=10, choices=LabelSource, default=LabelSource.PROMPT)
    methods = models.CharField(max_length=10, choices=TrainingMethods, default=TrainingMethods.BOTH)
    size = models.PositiveIntegerField(null=True, blank=True, help_text="So many statements at most; empty: all.")
    seed = models.BigIntegerField(default=0)
    precision = models.CharField(max_length=10, choices=Precision, default=Precision.FLOAT32)
    parameters = models.JSONField(default=dict, editable=False, help_text="As analysis/training has them.")
    data = models.JSONField(
        default=dict, editable=False, help_text="What it was trained on: counts, what was left out."
    )
    data_digest = models.CharField(max_length=64, blank=True, editable=False, help_text="SHA-256 of ids and labels.")
    step = models.PositiveIntegerField(default=0, editable=False)
    steps = models.PositiveIntegerField(default=0, editable=False, help_text="At most; 0: not known yet.")
    scores = models.JSONField(default=dict, editable=False, help_text="On the validation statements, before and after.")
    notes = models.JSONField(default=list, editable=False, help_text="What else is worth knowing, as sentences.")
    environment = models.JSONField(default=dict, editable=False, help_text="Device and versions.")
    revision = models.CharField(
        max_length=300, blank=True, editable=False, help_text="Of the files, as readers name it."
    )

    class Meta:
        ordering = ["-pk"]
        constraints = [
            one_of("kind", TrainingKind, name="training_kind_known"),
            one_of("labels", LabelSource, name="training_labels_known"),
            one_of("methods", TrainingMethods, name="training_methods_known"),
            one_of("precision", Precision, name="training_precision_known"),
            models.CheckConstraint(condition=Q(name__regex=NAME), name="classifier_name_is_a_word"),
            models.CheckConstraint(condition=Q(size=None) | Q(size__gte=2), name="training_size_has_two_classes"),
            models.CheckConstraint(condition=Q(steps=0) | Q(step__lte=F("steps")), name="training_steps_in_order"),
            models.CheckConstraint(
                condition=Q(finished_at=None, failure="")
                | Q(finished_at__isnull=False, lease_expires_at=None, failure__regex=r"\S")
                | (
                    Q(finished_at__isnull=False, lease_expires_at=None, failure="")
                    & ~Q(revision="")
                    & ~Q(data_digest="")
                ),
                name="training_ends_with_a_model_or_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class TrainingPart(models.TextChoices):
    TRAIN = "train", "trained on"
    VALIDATION = "validation", "decided when to stop"


class TrainingStatement(models.Model):
    """A statement that a classifier is trained on, chosen once when its training begins.

    None is of a HUMANVAL set, or too similar to one: the database refuses it (migration 0005).
    """

    classifier = models.ForeignKey(TrainedClassifier, models.CASCADE, related_name="statements", db_index=False)
    generation = models.ForeignKey(Generation, models.CASCADE, related_name="trained_on")
    is_toxic = models.BooleanField()
    part = models.CharField(max_length=10, choices=TrainingPart)

    class Meta:
        ordering = ["classifier", "generation"]
        constraints = [
            models.UniqueConstraint(fields=["classifier", "generation"], name="training_statement_once"),
            one_of("part", TrainingPart, name="training_part_known"),
        ]

    def __str__(self) -> str:
        return f"{self.generation} for {self.classifier}"


class LossPoint(models.Model):
    """A point of a loss curve; at step 0 the model before training."""

    classifier = models.ForeignKey(TrainedClassifier, models.CASCADE, related_name="curve", db_index=False)
    step = models.PositiveIntegerField()
    loss = models.FloatField(null=True, help_text="Mean over the training batches since the point before.")
    validation_loss = models.FloatField(null=True)
    validation_auc = models.FloatField(null=True)

    class Meta:
        ordering = ["classifier", "step"]
        constraints = [
            models.UniqueConstraint(fields=["classifier", "step"], name="loss_point_once"),
            *(
                models.CheckConstraint(
                    condition=Q(**{name: None}) | Q(**{f"{name}__gte": 0, f"{name}__lt": float("inf")}),
                    name=f"loss_point_{name}_is_a_number",
                )
                for name in ("loss", "validation_loss")
            ),
            models.CheckConstraint(
                condition=Q(validation_auc=None) | Q(validation_auc__range=(0, 1)), name="loss_point_auc_is_a_share"
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.step} of {self.classifier}"


class EvaluationSet(models.Model):
    """Texts with labels from a file, to test classifiers on: never part of the dataset."""

    name = models.CharField(max_length=60, unique=True, help_text="Lower-case letters, digits and hyphens.")
    file_name = models.CharField(max_length=300)
    sha256 = models.CharField(max_length=64, help_text="Of the file.")
    columns = models.JSONField(default=dict, help_text="How the file was read: columns, values, conditions.")
    left_out = models.JSONField(default=dict, help_text="How many rows were left out, by the reason.")
    texts_count = models.PositiveIntegerField(default=0)
    toxic_count = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    was_there = False
    """Whether ``evaluation_sets.import_test_set`` found it instead of making another."""

    class Meta:
        ordering = ["name"]
        verbose_name = "test set"
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=NAME), name="evaluation_set_name_is_a_word"),
            models.CheckConstraint(condition=Q(sha256__regex="^[0-9a-f]{64}$"), name="evaluation_set_has_its_checksum"),
            models.CheckConstraint(
                condition=Q(toxic_count__lte=F("texts_count")), name="evaluation_set_has_no_more_toxic_texts_than_texts"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class EvaluationText(models.Model):
    """A text of a test set with its label, and whom and what it is about where the file says so."""

    evaluation_set = models.ForeignKey(EvaluationSet, models.CASCADE, related_name="texts", db_index=False)
    index = models.PositiveIntegerField(help_text="The row of the file, from 1.")
    text = models.TextField()
    is_toxic = models.BooleanField()
    group = models.CharField(max_length=200, blank=True, help_text="Whom it is about, in the file's words.")
    functionality = models.CharField(max_length=200, blank=True, help_text="What it tests, in HateCheck's sense.")

    class Meta:
        ordering = ["evaluation_set", "index"]
        constraints = [
            models.UniqueConstraint(fields=["evaluation_set", "index"], name="evaluation_text_once"),
            models.CheckConstraint(condition=Q(text__regex=r"\S"), name="evaluation_text_is_no_blank"),
        ]

    def __str__(self) -> str:
        return f"text {self.index} of {self.evaluation_set}"


class EvaluationScore(models.Model):
    """A classifier's probability that a text of a test set is toxic."""

    reader = models.ForeignKey(TextReader, models.PROTECT, related_name="evaluation_scores", db_index=False)
    text = models.ForeignKey(EvaluationText, models.CASCADE, related_name="scores")
    toxic_prob = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["reader", "text"], name="evaluation_score_once"),
            models.CheckConstraint(condition=Q(toxic_prob__range=(0, 1)), name="evaluation_score_is_a_probability"),
        ]

    def __str__(self) -> str:
        return f"score of {self.text}"


class Evaluation(Leased):
    """An order to have a classifier score a test set: a HUMANVAL set, or one from a file.

    What it scored of statements is a ``ToxicityScore``, of other texts an ``EvaluationScore``; figures are worked out
    of these when they are shown.
    """

    model = models.CharField(max_length=300, help_text="As it is chosen: embedded, trained here, a folder, or an id.")
    precision = models.CharField(max_length=10, choices=Precision, default=Precision.FLOAT32)
    reader = models.ForeignKey(
        TextReader, models.PROTECT, null=True, editable=False, help_text="Known once a worker has loaded the model."
    )
    humanval_set = models.ForeignKey(HumanvalSet, models.CASCADE, null=True, related_name="evaluations")
    evaluation_set = models.ForeignKey(EvaluationSet, models.CASCADE, null=True, related_name="evaluations")
    texts = models.PositiveIntegerField(default=0, help_text="How many are to be scored.")
    scored = models.PositiveIntegerField(default=0)

    was_under_way = False
    """Whether ``evaluations.start_evaluation`` found it instead of making another."""

    class Meta:
        ordering = ["-pk"]
        constraints = [
            one_of("precision", Precision, name="evaluation_precision_known"),
            models.CheckConstraint(
                condition=Q(humanval_set=None, evaluation_set__isnull=False)
                | Q(humanval_set__isnull=False, evaluation_set=None),
                name="evaluation_on_one_set",
            ),
            models.CheckConstraint(
                condition=Q(scored__lte=F("texts")), name="evaluation_scores_no_more_than_there_are"
            ),
            models.UniqueConstraint(
                fields=["model", "precision", "humanval_set", "evaluation_set"],
                condition=Q(finished_at=None),
                nulls_distinct=False,
                name="evaluation_one_at_a_time",
            ),
            models.CheckConstraint(
                condition=Q(finished_at=None, failure="")
                | Q(finished_at__isnull=False, lease_expires_at=None, failure__regex=r"\S")
                | Q(
                    finished_at__isnull=False,
                    lease_expires_at=None,
                    failure="",
                    reader__isnull=False,
                    scored=F("texts"),
                ),
                name="evaluation_ends_with_scores_or_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} on {self.test_set}"

    @property
    def test_set(self) -> HumanvalSet | EvaluationSet:
        return self.humanval_set or self.evaluation_set
