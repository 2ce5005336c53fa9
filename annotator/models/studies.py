"""Studies: what HITs share."""

from datetime import timedelta
from decimal import Decimal

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotator.models.known_answers import KnownAnswers
from annotator.models.people import Qualification
from generation.models import GenerationRun


class HITType(models.Model):
    """What a study's HITs share: what the worker is told, the pay, the times and the care.

    One with a qualification to earn is a qualification test: all its statements have known
    answers, and a worker goes through it once.
    """

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
    wage_floor = models.DecimalField(
        "wage floor (USD an hour)",
        max_digits=6,
        decimal_places=2,
        default=Decimal("8.00"),
        validators=[MinValueValidator(Decimal("0.00"))],
        help_text="Nothing is published that pays less; if the work takes longer than expected you are warned.",
    )
    expected_time = models.DurationField(
        "expected time a HIT",
        default=timedelta(seconds=105),
        help_text="By your own trial, as hours:minutes:seconds. Used until ten submissions tell better.",
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
    daily_cap = models.PositiveIntegerField(
        default=50,
        help_text="Nobody is given more statements in 24 hours, all studies together, also if they return some.",
    )
    break_after = models.DurationField(
        default=timedelta(minutes=20), help_text="After so much work without one, a break is suggested."
    )
    qualifications = models.ManyToManyField(
        Qualification, related_name="studies", blank=True, help_text="A worker must have all of them."
    )
    known_answers = models.ManyToManyField(
        KnownAnswers,
        related_name="studies",
        blank=True,
        help_text="Statements with known answers, mixed in; of a qualification test, all there is.",
    )
    check_every = models.PositiveSmallIntegerField(
        "a known answer every … statements",
        default=20,
        validators=[MinValueValidator(2)],
        help_text="On average, at random, for each worker, as long as there are some.",
    )
    grants = models.ForeignKey(
        Qualification,
        models.PROTECT,
        null=True,
        blank=True,
        related_name="tests",
        verbose_name="qualification to earn",
        help_text="Makes this study a paid qualification test.",
    )
    pass_mark = models.PositiveSmallIntegerField(
        "pass mark (%)",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text="Of a test: the share of its statements that must be answered right. Statements about groups that a "
        "worker does not want to read about are left out; whoever leaves out more than half does not pass.",
    )
    run = models.ForeignKey(
        GenerationRun,
        models.SET_NULL,
        null=True,
        blank=True,
        help_text="Statements of this run become HITs of this study as they are written.",
    )
    imported = models.BooleanField(
        default=False,
        editable=False,
        help_text="Work done and paid elsewhere: nobody is given its HITs, and nothing is owed.",
    )
    stopped_at = models.DateTimeField(
        null=True, editable=False, help_text="From then on nobody is given its HITs and no new ones are made."
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
            models.CheckConstraint(
                condition=Q(expected_time__gt=timedelta(0)),
                name="hit_type_expected_time_positive",
                violation_error_message="A statement takes some time: give a duration above 0.",
            ),
            models.CheckConstraint(
                condition=Q(wage_floor__gte=0),
                name="hit_type_wage_floor_not_negative",
                violation_error_message="The wage floor cannot be below 0.",
            ),
            models.CheckConstraint(
                condition=Q(daily_cap__gte=1),
                name="hit_type_daily_cap_positive",
                violation_error_message="A daily cap of 0 would let nobody work: give at least 1.",
            ),
            models.CheckConstraint(
                condition=Q(break_after__gt=timedelta(0)),
                name="hit_type_break_after_positive",
                violation_error_message="A break can be suggested after some work only: give a duration above 0.",
            ),
            models.CheckConstraint(
                condition=Q(check_every__gte=2),
                name="hit_type_check_every_leaves_room",
                violation_error_message="At most every second statement can be one with known answers: give 2 or more.",
            ),
            models.CheckConstraint(
                condition=Q(imported=False) | Q(reward=0, run=None, grants=None),
                name="hit_type_imported_pays_nothing",
                violation_error_message="A study of imported work pays nothing: the work was paid elsewhere.",
            ),
            models.CheckConstraint(
                condition=Q(grants=None, pass_mark=None)
                | Q(grants__isnull=False, pass_mark__isnull=False, pass_mark__range=(1, 100), run=None),
                name="hit_type_test_has_a_pass_mark",
                violation_error_message=(
                    "A qualification test needs a qualification to earn, a pass mark of 1 to 100 and no run; "
                    "any other study needs none of the first two."
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_test(self) -> bool:
        """Whether it is a qualification test."""
        return self.grants_id is not None


class StatementDraw(models.Model):
    """How statements of a study were chosen: what was asked for, the seed, and what came of it."""

    hit_type = models.ForeignKey(HITType, models.CASCADE, related_name="draws", verbose_name="study")
    filters = models.JSONField(default=dict, help_text="Which statements were to choose from.")
    a_cell = models.PositiveIntegerField(help_text="How many were wanted of each group, label and method.")
    seed = models.BigIntegerField()
    found = models.PositiveIntegerField(help_text="How many statements were drawn.")
    made = models.PositiveIntegerField(help_text="How many HITs were made of them.")
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False)
    made_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"draw {self.pk} for {self.hit_type}"
