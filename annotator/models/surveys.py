"""The optional demographic survey (paper, appendix B.1), stored apart from all answers about statements."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from annotator.models.people import Worker

PREFER_NOT = ("prefer_not", "Prefer not to say")
DESCRIBE = ("describe", "I describe myself:")


def choices(*named: tuple[str, str]) -> list[tuple[str, str]]:
    """The answers to a question, which can always be described or left out."""
    return [*named, DESCRIBE, PREFER_NOT]


RACE_ETHNICITY = choices(
    ("white", "White"),
    ("black", "Black or African American"),
    ("hispanic", "Hispanic or Latino"),
    ("asian", "Asian"),
    ("pacific_islander", "Pacific Islander"),
    ("native_american", "Native American or Alaska Native"),
    ("middle_eastern", "Middle Eastern or North African"),
    ("other", "Other"),
)
GENDER = choices(("female", "Female"), ("male", "Male"), ("non_binary", "Non-binary"))
AGE_BAND = choices(
    ("18_24", "18 to 24"),
    ("25_34", "25 to 34"),
    ("35_44", "35 to 44"),
    ("45_54", "45 to 54"),
    ("55_64", "55 to 64"),
    ("65_up", "65 or older"),
)
POLITICAL_LEANING = choices(
    ("very_left", "Very left-leaning"),
    ("left", "Left-leaning"),
    ("moderate", "Moderate"),
    ("right", "Right-leaning"),
    ("very_right", "Very right-leaning"),
)
LGBTQ = choices(("yes", "Yes"), ("no", "No"))


def one_answer(answers: list[tuple[str, str]]) -> models.CharField:
    return models.CharField(max_length=20, choices=answers, blank=True)


def own_words() -> models.CharField:
    return models.CharField(max_length=100, blank=True)


class Survey(models.Model):
    """What a worker says about themselves, if they wish; an empty answer is a question left out."""

    worker = models.OneToOneField(Worker, models.CASCADE, related_name="survey")
    race_ethnicity = ArrayField(models.CharField(max_length=20, choices=RACE_ETHNICITY), default=list, blank=True)
    race_ethnicity_described = own_words()
    gender = one_answer(GENDER)
    gender_described = own_words()
    age_band = one_answer(AGE_BAND)
    age_band_described = own_words()
    political_leaning = one_answer(POLITICAL_LEANING)
    political_leaning_described = own_words()
    lgbtq = one_answer(LGBTQ)
    lgbtq_described = own_words()
    answered_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return "a survey"
