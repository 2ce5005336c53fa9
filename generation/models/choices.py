"""What rows may say in words, and constraints that hold them to it."""

from django.db import models
from django.db.models import Q
from django.utils import timezone


class Label(models.TextChoices):
    """What a prompt is meant to bring out (paper, 3.1.2)."""

    BENIGN = "benign", "benign"
    TOXIC = "toxic", "toxic"


class Method(models.TextChoices):
    """Who turned what into text: a language model's distribution (paper, 3.2 and 3.3), or a person."""

    TOPK = "topk", "top-k"
    ALICE = "alice", "ALICE"
    WRITTEN = "written", "written by a person"


class RunMethod(models.TextChoices):
    """What a run decodes with: one method, or for a comparison both from the same prompts."""

    TOPK = "topk", "top-k"
    ALICE = "alice", "ALICE"
    PAIRED = "paired", "both, from the same prompts"

    @property
    def methods(self) -> tuple[Method, ...]:
        """Those that write a statement for each place, in the order in which they do."""
        return (Method.TOPK, Method.ALICE) if self is RunMethod.PAIRED else (Method(self.value),)


class Precision(models.TextChoices):
    """What a worker computes in. bfloat16 is faster where the hardware has it, and changes statements."""

    FLOAT32 = "float32", "float32"
    BFLOAT16 = "bfloat16", "bfloat16"


def nobody_has_it() -> Q:
    """A condition on rows that workers lease: nobody has taken this one up, or the lease has lapsed."""
    return Q(lease_expires_at=None) | Q(lease_expires_at__lt=timezone.now())


def one_of(field: str, choices: type[models.TextChoices], *, name: str) -> models.CheckConstraint:
    """A constraint that holds ``field`` to its choices for every writer, not only for forms."""
    return models.CheckConstraint(condition=Q(**{f"{field}__in": choices.values}), name=name)


def has_text(field: str, *, name: str) -> models.CheckConstraint:
    """A constraint that ``field`` has at least one character that is not white space."""
    return models.CheckConstraint(condition=Q(**{f"{field}__regex": r"\S"}), name=name)
