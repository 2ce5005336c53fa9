"""Setting up a study and changing it by scripts: what is on offer never pays less than its wage floor."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from annotator import publishing, setting_up, wages
from annotator.models import HITType, Qualification
from generation.models import AuditEntry
from tests.factories import make_generation, make_hit, make_hit_type, make_searched_generation

pytestmark = pytest.mark.django_db

WHAT = {"title": "Is this harmful?", "description": "Read and answer."}


def test_a_study_is_made_with_the_qualifications_it_asks_for():
    reads = Qualification.objects.create(name="reads English")
    study = setting_up.make_study(**WHAT, reward=Decimal("0.50"), qualifications=[reads])
    assert (study.reward, list(study.qualifications.all())) == (Decimal("0.50"), [reads])


def test_a_study_that_cannot_be_is_not_made():
    with pytest.raises(ValidationError):
        setting_up.make_study(**WHAT, max_assignments=0)
    assert not HITType.objects.exists()


def test_a_study_on_offer_is_not_changed_to_pay_below_its_floor():
    study = make_hit().hit_type
    with pytest.raises(wages.PayTooLow):
        setting_up.change_study(hit_type=study, reward=Decimal("0.01"))
    study.refresh_from_db()
    assert study.reward == Decimal("0.25")


def test_a_study_with_nothing_on_offer_may_still_be_too_low():
    study = setting_up.change_study(hit_type=make_hit_type(), reward=Decimal("0.01"))
    assert study.reward == Decimal("0.01")


def test_qualifications_that_are_not_named_stay():
    reads = Qualification.objects.create(name="reads English")
    study = make_hit_type()
    study.qualifications.add(reads)
    setting_up.change_study(hit_type=study, title="Another")
    assert list(study.qualifications.all()) == [reads]
    setting_up.change_study(hit_type=study, qualifications=[])
    assert not study.qualifications.exists()


def test_a_study_of_imported_work_is_not_changed():
    with pytest.raises(publishing.ImportedStudy):
        setting_up.change_study(hit_type=make_hit_type(imported=True, reward=0), title="Another")


def test_a_study_that_follows_a_run_publishes_what_is_there_and_says_so_in_the_audit_trail():
    generation, study = make_searched_generation(), make_hit_type()
    make_generation()
    ada = User.objects.create_superuser("ada")
    assert setting_up.follow_run(hit_type=study, run=generation.run, by=ada) == 1
    study.refresh_from_db()
    assert study.run == generation.run
    entry = AuditEntry.objects.get(act="statements published")
    assert (entry.subject, entry.details) == (f"study {study.pk}", {"run": generation.run_id, "hits": 1})
