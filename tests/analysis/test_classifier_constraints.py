"""What must never be false of trained classifiers is refused by the database."""

from contextlib import contextmanager

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from analysis.models import HumanvalSet, LossPoint, TrainingStatement
from generation.models import Generation
from tests.analysis.humanval_world import apart, draw, frozen, published, removed_for, statement
from tests.factories import make_generation, make_trained_classifier

pytestmark = pytest.mark.django_db

NOW = timezone.now()


@contextmanager
def refused_by(constraint):
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        yield


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("training_kind_known", {"kind": "half"}),
        ("training_labels_known", {"labels": "guess"}),
        ("training_methods_known", {"methods": "written"}),
        ("training_precision_known", {"precision": "int8"}),
        ("classifier_name_is_a_word", {"name": "Two words"}),
        ("classifier_name_is_a_word", {"name": "../up"}),
        ("classifier_name_is_a_word", {"name": "-x"}),
        ("training_size_has_two_classes", {"size": 1}),
        ("training_steps_in_order", {"step": 3, "steps": 2}),
        ("training_ends_with_a_model_or_a_reason", {"finished_at": NOW}),
        ("training_ends_with_a_model_or_a_reason", {"finished_at": NOW, "revision": "files 1"}),
        ("training_ends_with_a_model_or_a_reason", {"finished_at": NOW, "failure": "x", "lease_expires_at": NOW}),
        ("training_ends_with_a_model_or_a_reason", {"finished_at": NOW, "failure": " "}),
        ("training_ends_with_a_model_or_a_reason", {"failure": "x"}),
    ],
)
def test_a_training_is_what_it_says(constraint, fields):
    with refused_by(constraint):
        make_trained_classifier(finished=False, **fields)


def test_a_name_is_given_once():
    make_trained_classifier("first")
    with refused_by("name"):
        make_trained_classifier("first")


def test_a_statement_is_trained_on_once_and_in_one_part():
    classifier, generation = make_trained_classifier(), make_generation()
    row = {"classifier": classifier, "generation": generation, "is_toxic": True}
    with refused_by("training_part_known"):
        TrainingStatement.objects.create(**row, part="test")
    TrainingStatement.objects.create(**row, part="train")
    with refused_by("training_statement_once"):
        TrainingStatement.objects.create(**row, part="validation")


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("loss_point_loss_is_a_number", {"loss": float("nan")}),
        ("loss_point_loss_is_a_number", {"loss": float("inf")}),
        ("loss_point_loss_is_a_number", {"loss": -0.1}),
        ("loss_point_validation_loss_is_a_number", {"validation_loss": float("inf")}),
        ("loss_point_auc_is_a_share", {"validation_auc": 1.1}),
    ],
)
def test_a_point_of_a_loss_curve_has_numbers(constraint, fields):
    with refused_by(constraint):
        LossPoint.objects.create(classifier=make_trained_classifier(), step=1, **fields)


def test_a_step_has_one_point():
    point = LossPoint.objects.create(classifier=make_trained_classifier(), step=1)
    with refused_by("loss_point_once"):
        LossPoint.objects.create(classifier=point.classifier, step=1)


# --- The test set stays apart (migration 0005) --------------------------------------------------


def train_on(*generations, classifier=None):
    classifier = classifier or make_trained_classifier(finished=False)
    TrainingStatement.objects.bulk_create(
        TrainingStatement(classifier=classifier, generation=generation, is_toxic=False, part="train")
        for generation in generations
    )
    return classifier


def drawn() -> HumanvalSet:
    apart(3)
    return draw(size=3)


@pytest.mark.parametrize("make_set", [drawn, published, frozen])
def test_no_statement_of_a_humanval_set_is_trained_on_whatever_became_of_it(make_set):
    own = make_set().statements.first().generation
    free = make_generation()
    with refused_by("is of a HUMANVAL set, or too similar to one: it is not for training"):
        train_on(free, own)
    assert not TrainingStatement.objects.exists()
    train_on(free)


def test_what_is_too_similar_to_a_humanval_set_is_not_trained_on():
    statement([1, 0])
    statement([0.9, 0.1])
    [removed] = removed_for(draw(size=1))
    with refused_by("too similar to one"):
        train_on(Generation.objects.get(pk=removed))


def test_a_row_is_not_turned_into_one_of_a_humanval_set():
    generations = apart(3)
    own = [row.generation for row in draw(size=2).statements.all()]
    [free] = [one for one in generations if one not in own]
    classifier = train_on(free)
    with refused_by("is of a HUMANVAL set"):
        classifier.statements.update(generation=own[0])
