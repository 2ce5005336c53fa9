"""Statements whose right answers are known: for qualification tests and attention checks."""

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from annotator.questions import QUESTIONS
from generation.models import Generation


class KnownAnswers(models.Model):
    """What a careful annotator answers about a statement: per question, the answers that are right.

    ``expected`` maps a question's key to a list of its values; questions not in it may be
    answered in any way.
    """

    generation = models.OneToOneField(
        Generation, models.PROTECT, related_name="known_answers", verbose_name="statement"
    )
    expected = models.JSONField()
    note = models.CharField(max_length=200, blank=True, help_text="For you: why these answers are right.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name = verbose_name_plural = "known answers"
        constraints = [models.CheckConstraint(condition=~Q(expected={}), name="known_answers_expect_something")]

    def __str__(self) -> str:
        return f"known answers to {self.generation}"

    def clean(self) -> None:
        by_key = {question.key: question for question in QUESTIONS}
        if not isinstance(self.expected, dict) or not self.expected:
            raise ValidationError({"expected": "Name at least one question and its right answers."})
        for key, values in self.expected.items():
            question = by_key.get(key)
            if question is None:
                raise ValidationError({"expected": f"There is no question “{key}”. They are: {', '.join(by_key)}."})
            if not isinstance(values, list) or not values or not set(values) <= set(question.values):
                raise ValidationError(
                    {"expected": f"The right answers to “{key}” are a list of some of: {list(question.values)}."}
                )

    def fit(self, answers: dict) -> bool:
        """Whether answers, by question key, are right; a text that was not understood is not."""
        return all(answers.get(key) in values for key, values in self.expected.items())
