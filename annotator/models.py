"""Everything between a generation and a submitted annotation, in Mechanical Turk's terms.

What must never be false is held by the database: named constraints here, and the triggers of
migration ``0002_triggers``, which count the places of a HIT and freeze its text.
"""

import secrets
import uuid
from datetime import timedelta
from decimal import Decimal

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now, Random
from django.utils import timezone

from annotator.questions import QUESTIONS, Question
from generation.models import Generation, GenerationRun, one_of


def new_pseudonym() -> str:
    """The name a worker goes by: says nothing about the person and is easy to read aloud."""
    return "W" + "".join(secrets.choice("23456789ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(8))


class Worker(models.Model):
    """A person who annotates, known by a pseudonym only."""

    pseudonym = models.CharField(max_length=20, unique=True, default=new_pseudonym, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    blocked_at = models.DateTimeField(null=True, blank=True)
    blocked_reason = models.TextField(blank=True, help_text="The worker reads it.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(blocked_at=None) | Q(blocked_reason__regex=r"\S"),
                name="worker_blocked_with_a_reason",
                violation_error_message="Say why the worker is blocked: they read the reason.",
            )
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


class ConsentFormQuerySet(models.QuerySet):
    def published(self) -> "ConsentFormQuerySet":
        """Those published by now, the one in force first."""
        return self.filter(published_at__lte=timezone.now()).order_by("-version")

    def current(self) -> "ConsentForm | None":
        """The form in force: the newest one published."""
        return self.published().first()


class ConsentForm(models.Model):
    """What a person is told and agrees to before any statement is shown; never edited once published."""

    version = models.PositiveIntegerField(unique=True)
    title = models.CharField(max_length=200)
    warning = models.TextField(help_text="Markdown. The content warning, read first.")
    body = models.TextField(help_text="Markdown. Purpose, risks, pay, contact, withdrawal.")
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
    """A worker's agreement to one version of the form. Without it there is no assignment."""

    worker = models.ForeignKey(Worker, models.CASCADE, related_name="consents")
    form = models.ForeignKey(ConsentForm, models.PROTECT, related_name="consents")
    given_at = models.DateTimeField(db_default=Now(), editable=False)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = ConsentQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["worker", "form"], name="consent_once_a_version")]

    def __str__(self) -> str:
        return f"{self.worker} to version {self.form.version}"


class Qualification(models.Model):
    """Something a worker can have that a HIT type asks for."""

    name = models.CharField(max_length=100, unique=True)
    description = models.TextField(blank=True)
    workers = models.ManyToManyField(Worker, related_name="qualifications", blank=True)

    def __str__(self) -> str:
        return self.name


class HITType(models.Model):
    """What a study's HITs share: what the worker is told, the pay and the times."""

    title = models.CharField(max_length=200)
    description = models.TextField(help_text="What the worker reads before accepting.")
    keywords = models.CharField(max_length=200, blank=True)
    reward = models.DecimalField(
        "reward a HIT (USD)",
        max_digits=6,
        decimal_places=2,
        default=Decimal("0.25"),
        validators=[MinValueValidator(Decimal("0.00"))],
    )
    assignment_duration = models.DurationField(
        default=timedelta(minutes=30), help_text="Time for one statement, as hours:minutes:seconds."
    )
    auto_approval_delay = models.DurationField(
        default=timedelta(days=3), help_text="Work not reviewed by then is approved; days, then hours:minutes:seconds."
    )
    lifetime = models.DurationField(
        default=timedelta(days=30), help_text="How long a HIT can be accepted; days, then hours:minutes:seconds."
    )
    max_assignments = models.PositiveSmallIntegerField("annotators a statement", default=3)
    qualifications = models.ManyToManyField(Qualification, blank=True, help_text="A worker must have all of them.")
    run = models.ForeignKey(
        GenerationRun,
        models.SET_NULL,
        null=True,
        blank=True,
        help_text="Statements of this run become HITs of this study as they are written.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["-pk"]
        verbose_name = "study (HIT type)"
        verbose_name_plural = "studies (HIT types)"
        constraints = [
            models.CheckConstraint(condition=Q(reward__gte=0), name="hit_type_reward_not_negative"),
            models.CheckConstraint(
                condition=Q(max_assignments__gte=1),
                name="hit_type_has_assignments",
                violation_error_message="At least one annotator must judge each statement.",
            ),
            models.CheckConstraint(
                condition=Q(assignment_duration__gt=timedelta(0)),
                name="hit_type_assignment_duration_positive",
                violation_error_message="Annotators need some time for a statement: give a duration above 0.",
            ),
        ]

    def __str__(self) -> str:
        return self.title


class HITStatus(models.TextChoices):
    """Mechanical Turk's states of a HIT."""

    ASSIGNABLE = "assignable", "assignable"
    UNASSIGNABLE = "unassignable", "unassignable"
    REVIEWABLE = "reviewable", "reviewable"
    REVIEWING = "reviewing", "reviewing"
    DISPOSED = "disposed", "disposed"


class HITQuerySet(models.QuerySet):
    def assignable(self) -> "HITQuerySet":
        """HITs with a free place that can still be accepted."""
        return self.filter(free_places__gt=0, disposed_at=None, expires_at__gt=timezone.now())

    def open_for(self, worker: Worker) -> "HITQuerySet":
        """Assignable HITs that this worker never had, of studies they are qualified for."""
        had = Assignment.objects.filter(hit=OuterRef("pk"), worker=worker)
        lacking = HITType.qualifications.through.objects.filter(hittype=OuterRef("hit_type")).exclude(
            qualification__workers=worker
        )
        return self.assignable().filter(~Exists(had), ~Exists(lacking))

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
                fields=["free_places", "shuffle"], condition=Q(free_places__gt=0, disposed_at=None), name="hit_next"
            )
        ]

    def __str__(self) -> str:
        return f"HIT {self.pk}"

    @property
    def status(self) -> HITStatus:
        """Its state in Mechanical Turk's sense, read off the facts that are stored."""
        if self.disposed_at:
            return HITStatus.DISPOSED
        if self.reviewing_at:
            return HITStatus.REVIEWING
        if self.free_places > 0 and self.expires_at > timezone.now():
            return HITStatus.ASSIGNABLE
        return HITStatus.UNASSIGNABLE if self.open_assignments else HITStatus.REVIEWABLE


class AssignmentStatus(models.TextChoices):
    ACCEPTED = "accepted", "accepted"
    SUBMITTED = "submitted", "submitted"
    APPROVED = "approved", "approved"
    REJECTED = "rejected", "rejected"
    RETURNED = "returned", "returned"
    EXPIRED = "expired", "expired"


SUBMITTED_STATUSES = (AssignmentStatus.SUBMITTED, AssignmentStatus.APPROVED, AssignmentStatus.REJECTED)
COUNTED_STATUSES = (AssignmentStatus.SUBMITTED, AssignmentStatus.APPROVED)
GIVEN_BACK_STATUSES = (AssignmentStatus.RETURNED, AssignmentStatus.EXPIRED)


class AssignmentQuerySet(models.QuerySet):
    def accepted(self) -> "AssignmentQuerySet":
        return self.filter(status=AssignmentStatus.ACCEPTED)

    def lapsed(self) -> "AssignmentQuerySet":
        """Accepted, and past the deadline."""
        return self.accepted().filter(deadline__lt=timezone.now())

    def submitted(self) -> "AssignmentQuerySet":
        return self.filter(status__in=SUBMITTED_STATUSES)


class Assignment(models.Model):
    """A worker's one go at a HIT.

    ``holds_place`` says whether it takes one of the HIT's places: always while it is being
    worked on, and after submitting if it counts as a label.
    """

    key = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    hit = models.ForeignKey(HIT, models.PROTECT, related_name="assignments")
    worker = models.ForeignKey(Worker, models.PROTECT, related_name="assignments")
    consent = models.ForeignKey(Consent, models.PROTECT, related_name="assignments")
    status = models.CharField(max_length=10, choices=AssignmentStatus, default=AssignmentStatus.ACCEPTED)
    holds_place = models.BooleanField(default=True)
    accepted_at = models.DateTimeField(db_default=Now(), editable=False)
    deadline = models.DateTimeField()
    submitted_at = models.DateTimeField(null=True, blank=True)
    given_back_at = models.DateTimeField(null=True, blank=True, help_text="Returned or expired.")
    decided_at = models.DateTimeField(null=True, blank=True, help_text="Approved or rejected.")
    rejection_reason = models.TextField(blank=True, help_text="The worker reads it.")

    objects = AssignmentQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["worker", "hit"], name="assignment_once_a_hit_ever"),
            models.UniqueConstraint(
                fields=["worker"], condition=Q(status=AssignmentStatus.ACCEPTED), name="assignment_one_open_a_worker"
            ),
            one_of("status", AssignmentStatus, name="assignment_status_known"),
            models.CheckConstraint(
                condition=~Q(status=AssignmentStatus.ACCEPTED) | Q(holds_place=True),
                name="assignment_accepted_holds_a_place",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=GIVEN_BACK_STATUSES) | Q(holds_place=False, given_back_at__isnull=False),
                name="assignment_given_back_frees_its_place",
            ),
            models.CheckConstraint(
                condition=Q(status__in=SUBMITTED_STATUSES, submitted_at__isnull=False)
                | (~Q(status__in=SUBMITTED_STATUSES) & Q(submitted_at=None)),
                name="assignment_submitted_when_its_status_says_so",
            ),
            models.CheckConstraint(
                condition=~Q(status=AssignmentStatus.REJECTED) | Q(rejection_reason__regex=r"\S"),
                name="assignment_rejected_with_a_reason",
                violation_error_message="Say why the work is rejected: the worker reads the reason.",
            ),
            models.CheckConstraint(condition=Q(deadline__gt=F("accepted_at")), name="assignment_has_time"),
        ]
        indexes = [
            models.Index(
                fields=["deadline"], condition=Q(status=AssignmentStatus.ACCEPTED), name="assignment_open_deadline"
            )
        ]

    def __str__(self) -> str:
        return f"{self.worker} on {self.hit}"

    @property
    def is_submitted(self) -> bool:
        return self.status in SUBMITTED_STATUSES


def answer_field(question: Question) -> models.Field:
    """The typed column of a question: a small integer for a scale, its option's value otherwise."""
    if question.is_scale:
        return models.PositiveSmallIntegerField(null=True, blank=True, choices=_choices(question))
    length = max(len(str(value)) for value in question.values)
    return models.CharField(max_length=length, null=True, blank=True, choices=_choices(question))


def _choices(question: Question) -> list[tuple[str | int, str]]:
    return [(option.value, option.label) for option in question.options]


def _all_answered() -> Q:
    condition = Q()
    for question in QUESTIONS:
        condition &= Q(**{f"{question.key}__isnull": False})
    return condition


class AnnotationQuerySet(models.QuerySet):
    def counted(self) -> "AnnotationQuerySet":
        """Those that are labels: understood, holding a place and not rejected."""
        return self.filter(
            not_understood=False,
            assignment__holds_place=True,
            assignment__status__in=COUNTED_STATUSES,
        )


class Annotation(models.Model):
    """What was submitted for an assignment: nine answers, or that the text was not understood.

    The nine columns are added from ``annotator.questions`` below.
    """

    assignment = models.OneToOneField(Assignment, models.PROTECT, related_name="annotation")
    not_understood = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = AnnotationQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(not_understood=True) | _all_answered(), name="annotation_is_complete_or_not_understood"
            ),
            *(
                models.CheckConstraint(
                    condition=Q(**{f"{question.key}__isnull": True}) | Q(**{f"{question.key}__in": question.values}),
                    name=f"annotation_{question.key}_in_range",
                )
                for question in QUESTIONS
            ),
        ]

    def __str__(self) -> str:
        return f"annotation by {self.assignment}"

    @property
    def is_counted(self) -> bool:
        """Whether it is a label: the rule of ``AnnotationQuerySet.counted`` for this row."""
        assignment = self.assignment
        return not self.not_understood and assignment.holds_place and assignment.status in COUNTED_STATUSES


for _question in QUESTIONS:
    Annotation.add_to_class(_question.key, answer_field(_question))
    if _question.free_text:
        Annotation.add_to_class(_question.free_text.key, models.TextField(blank=True, default=""))
