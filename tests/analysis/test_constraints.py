"""What must never be false of imports and human labels is refused by the database."""

from contextlib import contextmanager

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from analysis.models import DataImport, HumanLabel
from generation.models import Generation
from tests.factories import make_generation, make_group

pytestmark = pytest.mark.django_db


@contextmanager
def refused_by(constraint):
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        yield


def make_import(**fields):
    return DataImport.objects.create(**{"format": "train", "file_name": "train.csv"} | fields)


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("import_format_known", {"format": "gold"}),
        ("import_state_known", {"state": "lost", "ended_at": timezone.now()}),
        ("import_ended_when_its_state_says_so", {"state": "finished"}),
        ("import_ended_when_its_state_says_so", {"state": "running", "ended_at": timezone.now()}),
        (
            "import_ended_when_its_state_says_so",
            {"state": "finished", "ended_at": timezone.now(), "lease_expires_at": timezone.now()},
        ),
        ("import_that_stored_nothing_says_why", {"state": "refused", "ended_at": timezone.now(), "failure": " "}),
        (
            "import_that_stored_nothing_says_why",
            {"state": "failed", "ended_at": timezone.now(), "failure": "x", "new": 1},
        ),
        ("import_that_stored_nothing_says_why", {"state": "queued", "failure": "x"}),
        ("import_accounts_for_every_row", {"state": "finished", "ended_at": timezone.now(), "rows": 3, "new": 1}),
    ],
)
def test_an_import_is_what_it_says(constraint, fields):
    with refused_by(constraint):
        make_import(**fields)


@pytest.mark.parametrize("score", ["intent", "toxicity_ai", "toxicity_human"])
@pytest.mark.parametrize("value", [0.9, 5.1, float("nan")])
def test_scores_of_human_labels_are_on_their_scale(score, value):
    label = HumanLabel.objects.create(generation=make_generation(), **{score: 3})
    with refused_by(f"human_label_{score}_on_its_scale"):
        HumanLabel.objects.filter(pk=label.pk).update(**{score: value})


def test_a_statement_has_one_human_label():
    generation = make_generation()
    HumanLabel.objects.create(generation=generation)
    with refused_by("generation_id"):
        HumanLabel.objects.create(generation=generation)


def test_an_imported_statement_is_stored_once():
    fields = {"text": "one", "group": make_group(), "label": "benign", "method": "topk"}
    make_generation(**fields)
    with refused_by("generation_imported_once"):
        Generation.objects.create(**fields)
    make_generation(**fields | {"label": "toxic"})
