"""HITs: statements to be judged, with places for annotators."""

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now, Random
from django.utils import timezone

from annotator.models.assignments import Assignment
from annotator.models.people import Worker
from annotator.models.studies import HITType
from generation.models import Generation

UNLIMITED = 32_767
"""The places of a statement with known answers: everybody may judge it."""


class HITStatus(models.TextChoices):
    """Mechanical Turk's states of a HIT."""

    ASSIGNABLE = "assignable", "assignable"
    UNASSIGNABLE = "unassignable", "unassignable"
    REVIEWABLE = "reviewable", "reviewable"
    REVIEWING = "reviewing", "reviewing"
    DISPOSED = "disposed", "disposed"


def is_in_state(status: HITStatus) -> Q:
    """The rule of ``HIT.status`` as a condition, for the database."""
    if status == HITStatus.DISPOSED:
        return Q(disposed_at__isnull=False)
    can_be_accepted = Q(free_places__gt=0, expires_at__gt=Now())
    if status == HITStatus.ASSIGNABLE:
        return can_be_accepted & Q(disposed_at=None)
    full_or_expired = ~can_be_accepted & Q(disposed_at=None)
    if status == HITStatus.UNASSIGNABLE:
        return full_or_expired & Q(open_assignments__gt=0)
    return full_or_expired & Q(open_assignments=0, reviewing_at__isnull=status == HITStatus.REVIEWABLE)


class HITQuerySet(models.QuerySet):
    def assignable(self) -> "HITQuerySet":
        """HITs with a free place that can still be accepted."""
        return self.filter(free_places__gt=0, disposed_at=None, expires_at__gt=Now())

    def open_for(self, worker: Worker | int) -> "HITQuerySet":
        """Assignable HITs that this worker never had and is willing to read; not whether they are qualified."""
        had = Assignment.objects.filter(hit=OuterRef("pk"), worker=worker)
        avoided = Worker.avoided_groups.through.objects.filter(worker=worker, targetgroup=OuterRef("generation__group"))
        return self.assignable().filter(~Exists(had), ~Exists(avoided))

    def to_judge(self) -> "HITQuerySet":
        """Those whose answers are wanted; not those with known answers, which test the annotator."""
        return self.filter(is_check=False)

    def in_state(self, status: HITStatus) -> "HITQuerySet":
        """Those whose ``status`` is this one."""
        return self.filter(is_in_state(status))

    def nearest_completion_first(self) -> "HITQuerySet":
        """Finish what is begun; equals in an order fixed at random when they were published."""
        return self.order_by("free_places", "shuffle")


class HIT(models.Model):
    """A statement to be judged, with a number of places for annotators."""

    hit_type = models.ForeignKey(HITType, models.PROTECT, related_name="hits", verbose_name="study")
    generation = models.ForeignKey(Generation, models.PROTECT, related_name="hits", verbose_name="statement")
    max_assignments = models.PositiveSmallIntegerField()
    held_places = models.PositiveSmallIntegerField(
        default=0, editable=False, help_text="Places accepted or counted. Kept by a trigger, never written elsewhere."
    )
    open_assignments = models.PositiveSmallIntegerField(
        default=0, editable=False, help_text="Assignments being worked on. Kept by a trigger, never written elsewhere."
    )
    free_places = models.GeneratedField(
        expression=F("max_assignments") - F("held_places"),
        output_field=models.SmallIntegerField(),
        db_persist=True,
    )
    is_check = models.BooleanField(
        "known answers", default=False, editable=False, help_text="It tests the annotator and makes no label."
    )
    prompt_label = models.CharField(
        max_length=10, editable=False, help_text="Its statement's. Kept by a trigger, never written elsewhere."
    )
    shuffle = models.FloatField(db_default=Random(), editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField()
    reviewing_at = models.DateTimeField(null=True, blank=True)
    disposed_at = models.DateTimeField(null=True, blank=True)

    objects = HITQuerySet.as_manager()

    class Meta:
        verbose_name = "HIT"
        constraints = [
            models.UniqueConstraint(fields=["hit_type", "generation"], name="hit_once_a_study"),
            models.CheckConstraint(
                condition=Q(held_places__lte=F("max_assignments")), name="hit_never_over_its_max_assignments"
            ),
            models.CheckConstraint(condition=Q(max_assignments__gte=1), name="hit_has_assignments"),
        ]
        indexes = [
            models.Index(
                fields=["hit_type", "is_check", "prompt_label", "free_places", "shuffle"],
                condition=Q(free_places__gt=0, disposed_at=None),
                name="hit_next_of_a_study",
            )
        ]

    def __str__(self) -> str:
        return f"HIT {self.pk}"

    @property
    def status(self) -> HITStatus:
        """Its state in Mechanical Turk's sense, read off the facts that are stored.

        One under review whose place comes free is assignable again until the place is taken.
        """
        if self.disposed_at:
            return HITStatus.DISPOSED
        if self.free_places > 0 and self.expires_at > timezone.now():
            return HITStatus.ASSIGNABLE
        if self.open_assignments:
            return HITStatus.UNASSIGNABLE
        return HITStatus.REVIEWING if self.reviewing_at else HITStatus.REVIEWABLE
