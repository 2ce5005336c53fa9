"""The floor's tables: plain, without keys to others. ``migrate --run-syncdb`` makes them."""

from django.db import models
from django.db.models.functions import Now


class Fact(models.Model):
    """What the floor reads by its indexed number."""

    number = models.PositiveIntegerField(unique=True)
    text = models.CharField(max_length=200)

    def __str__(self) -> str:
        return f"fact {self.number}"


class Visit(models.Model):
    """What the floor inserts."""

    fact_number = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"visit to fact {self.fact_number}"
