"""HUMANVAL sets: statements set apart for testing, judged by people, and frozen with their labels."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from analysis.labels import SCALE_HIGH, SCALE_LOW, TOXICITY_CLASSES
from annotator.models import HITType
from generation.models import Generation, Reading, TextReader, nobody_has_it, one_of


class HumanvalState(models.TextChoices):
    """Wanted, then drawn on the queue, then published as a study, then frozen."""

    WANTED = "wanted", "being drawn"
    DRAWN = "drawn", "drawn"
    PUBLISHED = "published", "with annotators"
    FROZEN = "frozen", "frozen"
    FAILED = "failed", "failed"


DRAWN = (HumanvalState.DRAWN, HumanvalState.PUBLISHED, HumanvalState.FROZEN)
"""A set in one of these states has its statements."""


class HumanvalSetQuerySet(models.QuerySet):
    def waiting(self) -> "HumanvalSetQuerySet":
        """To be drawn, and worked on by nobody, or by somebody whose lease has lapsed."""
        return self.filter(nobody_has_it(), finished_at=None)

    def drawn(self) -> "HumanvalSetQuerySet":
        """Those that have statements, whatever came of them since."""
        return self.filter(state__in=DRAWN)

    def frozen(self) -> "HumanvalSetQuerySet":
        """Those that can be exported and tested on, the newest first."""
        return self.filter(state=HumanvalState.FROZEN).order_by("-version")


class HumanvalSet(models.Model):
    """A version of the test set; once frozen, neither it nor its statements change (migration 0003)."""

    version = models.PositiveIntegerField(unique=True)
    state = models.CharField(max_length=10, choices=HumanvalState, default=HumanvalState.WANTED, editable=False)
    based_on = models.ForeignKey(
        "self", models.PROTECT, null=True, editable=False, help_text="The version whose statements it has."
    )
    size = models.PositiveIntegerField(default=792, help_text="How many statements are wanted.")
    threshold = models.FloatField(
        default=0.7, help_text="No training statement has a cosine similarity above this with any of them."
    )
    candidates = models.PositiveSmallIntegerField(
        "candidates a place",
        default=4,
        help_text="So many statements are drawn for each place, and the most isolated of them are taken.",
    )
    seed = models.BigIntegerField()
    filters = models.JSONField(default=dict, help_text="Which statements there are to choose from, as exports take it.")
    reader = models.ForeignKey(TextReader, models.PROTECT, null=True, help_text="The encoder of the embeddings.")
    reading = models.ForeignKey(
        Reading, models.SET_NULL, null=True, editable=False, related_name="+", help_text="Of what it waits for."
    )
    compared_up_to = models.BigIntegerField(
        null=True, help_text="The newest statement that was compared with the set; exports leave newer ones out."
    )
    compare_asked_at = models.DateTimeField(
        null=True, editable=False, help_text="When it was to be compared with newer statements; null: it was."
    )
    report = models.JSONField(default=dict, help_text="What the drawing found: strata, shortages, what was removed.")
    hit_type = models.ForeignKey(
        HITType, models.PROTECT, null=True, editable=False, related_name="humanval_sets", verbose_name="study"
    )
    agreement = models.JSONField(default=dict, help_text="How far the annotators agree, at the freezing.")
    checksum = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the frozen rows.")
    failure = models.TextField(blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    lease_expires_at = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True, editable=False, help_text="Of who took it up last.")
    leases = models.PositiveSmallIntegerField(default=0, help_text="How often its drawing was taken up.")
    finished_at = models.DateTimeField(null=True, help_text="When the drawing ended.")
    frozen_at = models.DateTimeField(null=True)

    objects = HumanvalSetQuerySet.as_manager()

    class Meta:
        ordering = ["-version"]
        verbose_name = "HUMANVAL set"
        constraints = [
            one_of("state", HumanvalState, name="humanval_state_known"),
            models.CheckConstraint(condition=Q(size__gte=1), name="humanval_has_a_size"),
            models.CheckConstraint(condition=Q(candidates__gte=1), name="humanval_has_candidates"),
            models.CheckConstraint(
                condition=Q(threshold__gt=0, threshold__lte=1), name="humanval_threshold_is_a_cosine"
            ),
            models.CheckConstraint(
                condition=Q(state=HumanvalState.FROZEN, frozen_at__isnull=False, checksum__regex="^[0-9a-f]{64}$")
                | (~Q(state=HumanvalState.FROZEN) & Q(frozen_at=None, checksum="")),
                name="humanval_frozen_has_its_checksum",
            ),
            models.CheckConstraint(
                condition=(Q(state=HumanvalState.FAILED) & ~Q(failure=""))
                | (~Q(state=HumanvalState.FAILED) & Q(failure="")),
                name="humanval_failed_with_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(state=HumanvalState.WANTED, finished_at=None)
                | (~Q(state=HumanvalState.WANTED) & Q(finished_at__isnull=False, lease_expires_at=None)),
                name="humanval_wanted_until_it_is_drawn",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=[HumanvalState.PUBLISHED, HumanvalState.FROZEN]) | Q(hit_type__isnull=False),
                name="humanval_judged_in_a_study",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[HumanvalState.WANTED, HumanvalState.FAILED])
                | Q(compared_up_to__isnull=False, reader__isnull=False),
                name="humanval_drawn_was_compared",
            ),
        ]

    def __str__(self) -> str:
        return f"HUMANVAL {self.version}"

    @property
    def is_drawn(self) -> bool:
        return self.state in DRAWN


class HumanvalStatement(models.Model):
    """A statement of a set; what people made of it is filled in when the set is frozen."""

    humanval_set = models.ForeignKey(HumanvalSet, models.CASCADE, related_name="statements", db_index=False)
    generation = models.ForeignKey(Generation, models.PROTECT, related_name="humanval", verbose_name="statement")
    neighbours = models.PositiveIntegerField(help_text="How many other statements are more similar than allowed.")
    annotators = models.PositiveSmallIntegerField(null=True, help_text="How many understood and judged it.")
    harmful_if_ai = models.FloatField(null=True)
    harmful_if_human = models.FloatField(null=True)
    toxicity_class = models.CharField(max_length=10, blank=True, help_text="Of the larger of the two means.")
    share_agreeing = models.FloatField(null=True, help_text="Who gave the class that most gave.")
    answers = models.JSONField(default=dict, help_text="The other columns of the release, as the export writes them.")

    class Meta:
        ordering = ["humanval_set", "generation"]
        constraints = [
            models.UniqueConstraint(fields=["humanval_set", "generation"], name="humanval_statement_once_a_set"),
            models.CheckConstraint(
                condition=Q(toxicity_class__in=["", *TOXICITY_CLASSES]), name="humanval_statement_class_known"
            ),
            *(
                models.CheckConstraint(
                    condition=Q(**{f"{score}__isnull": True}) | Q(**{f"{score}__range": (SCALE_LOW, SCALE_HIGH)}),
                    name=f"humanval_statement_{score}_on_its_scale",
                )
                for score in ("harmful_if_ai", "harmful_if_human")
            ),
            models.CheckConstraint(
                condition=Q(share_agreeing=None) | Q(share_agreeing__gt=0, share_agreeing__lte=1),
                name="humanval_statement_share_is_a_share",
            ),
            models.CheckConstraint(
                condition=Q(
                    Q(annotators=None) | Q(annotators=0),
                    harmful_if_ai=None,
                    harmful_if_human=None,
                    toxicity_class="",
                    share_agreeing=None,
                )
                | Q(
                    ~Q(toxicity_class=""),
                    annotators__gte=1,
                    harmful_if_ai__isnull=False,
                    harmful_if_human__isnull=False,
                    share_agreeing__isnull=False,
                ),
                name="humanval_statement_label_is_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.generation} in {self.humanval_set}"


class RemovedFromTraining(models.Model):
    """A statement that is left out of training because it is too similar to one of the test set."""

    humanval_set = models.ForeignKey(HumanvalSet, models.CASCADE, related_name="removed", db_index=False)
    generation = models.ForeignKey(Generation, models.PROTECT, related_name="removed_for", verbose_name="statement")
    nearest = models.ForeignKey(
        Generation, models.PROTECT, related_name="+", db_index=False, help_text="The most similar of the test set."
    )
    cosine = models.FloatField()
    added_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["humanval_set", "generation"]
        constraints = [
            models.UniqueConstraint(fields=["humanval_set", "generation"], name="removed_statement_once_a_set"),
            models.CheckConstraint(condition=Q(cosine__range=(-1.001, 1.001)), name="removed_statement_has_a_cosine"),
            models.CheckConstraint(condition=~Q(generation=F("nearest")), name="removed_statement_is_not_of_the_set"),
        ]

    def __str__(self) -> str:
        return f"{self.generation} removed for {self.humanval_set}"


class HumanvalProofQuerySet(models.QuerySet):
    def waiting(self) -> "HumanvalProofQuerySet":
        """To be worked out, and worked on by nobody, or by somebody whose lease has lapsed."""
        return self.filter(nobody_has_it(), finished_at=None)


class HumanvalProof(models.Model):
    """A check of a set, asked for on its page: all texts are embedded anew and compared, on the queue."""

    humanval_set = models.ForeignKey(HumanvalSet, models.CASCADE, related_name="proofs")
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False)
    asked_at = models.DateTimeField(db_default=Now(), editable=False)
    found = models.JSONField(null=True, help_text="As analysis/humanval/proving.py tells it.")
    failure = models.TextField(blank=True, help_text="Why it came to nothing.")
    lease_expires_at = models.DateTimeField(null=True)
    lease_token = models.UUIDField(null=True, editable=False, help_text="Of who took it up last.")
    leases = models.PositiveSmallIntegerField(default=0, help_text="How often it was taken up.")
    finished_at = models.DateTimeField(null=True)

    objects = HumanvalProofQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["humanval_set"], condition=Q(finished_at=None), name="humanval_proof_one_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(finished_at=None, found__isnull=True, failure="")
                | Q(finished_at__isnull=False, lease_expires_at=None, found__isnull=True, failure__regex=r"\S")
                | Q(finished_at__isnull=False, lease_expires_at=None, found__isnull=False, failure=""),
                name="humanval_proof_ends_with_what_it_found",
            ),
        ]

    def __str__(self) -> str:
        return f"check {self.pk} of {self.humanval_set}"
