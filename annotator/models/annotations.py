"""Annotations: what was submitted for an assignment."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotator.models.assignments import COUNTED_STATUSES, Assignment
from annotator.questions import QUESTIONS, Question


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
        """Those that are labels: understood, holding a place, not rejected and not a check of the annotator."""
        return self.filter(
            not_understood=False,
            assignment__hit__is_check=False,
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
        return (
            not self.not_understood
            and not assignment.hit.is_check
            and assignment.holds_place
            and assignment.status in COUNTED_STATUSES
        )

    @property
    def answers(self) -> dict:
        """The nine answers by question key."""
        return {question.key: getattr(self, question.key) for question in QUESTIONS}


for _question in QUESTIONS:
    Annotation.add_to_class(_question.key, answer_field(_question))
    if _question.free_text:
        Annotation.add_to_class(_question.free_text.key, models.TextField(blank=True, default=""))
