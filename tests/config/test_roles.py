"""The roles give exactly the permissions that are written down."""

import pytest
from django.contrib.auth.models import Group, Permission, User

from config.roles import RESEARCHER, TOXIC_SETS, give_permissions

pytestmark = pytest.mark.django_db

RESEARCHERS_MAY = {
    "analysis.add_dataimport",
    "analysis.add_evaluation",
    "analysis.add_evaluationset",
    "analysis.add_humanvalset",
    "analysis.add_trainedclassifier",
    "analysis.change_humanvalset",
    "analysis.change_trainedclassifier",
    "analysis.view_dataimport",
    "analysis.view_evaluation",
    "analysis.view_evaluationset",
    "analysis.view_humanlabel",
    "analysis.view_humanvalset",
    "analysis.view_trainedclassifier",
    "annotator.add_consentform",
    "annotator.add_grant",
    "annotator.add_helpline",
    "annotator.add_hittype",
    "annotator.add_invitation",
    "annotator.add_knownanswers",
    "annotator.add_panel",
    "annotator.add_payment",
    "annotator.add_payout",
    "annotator.add_qualification",
    "annotator.change_assignment",
    "annotator.change_consentform",
    "annotator.change_grant",
    "annotator.change_helpline",
    "annotator.change_hit",
    "annotator.change_hittype",
    "annotator.change_invitation",
    "annotator.change_knownanswers",
    "annotator.change_panel",
    "annotator.change_qualification",
    "annotator.change_worker",
    "annotator.delete_grant",
    "annotator.delete_helpline",
    "annotator.view_annotation",
    "annotator.view_assignment",
    "annotator.view_consentform",
    "annotator.view_grant",
    "annotator.view_helpline",
    "annotator.view_hit",
    "annotator.view_hittype",
    "annotator.view_invitation",
    "annotator.view_knownanswers",
    "annotator.view_panel",
    "annotator.view_payment",
    "annotator.view_payout",
    "annotator.view_qualification",
    "annotator.view_testresult",
    "annotator.view_worker",
    "generation.add_demonstration",
    "generation.add_generationrun",
    "generation.add_reading",
    "generation.add_replay",
    "generation.add_targetgroup",
    "generation.add_trial",
    "generation.change_demonstration",
    "generation.change_generationrun",
    "generation.change_response",
    "generation.change_targetgroup",
    "generation.view_auditentry",
    "generation.view_demonstration",
    "generation.view_generation",
    "generation.view_generationrun",
    "generation.view_reading",
    "generation.view_replay",
    "generation.view_response",
    "generation.view_targetgroup",
    "generation.view_trial",
}


def researcher():
    user = User.objects.create(username="ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    return user


def test_a_researcher_may_do_exactly_this():
    assert researcher().get_all_permissions() == RESEARCHERS_MAY


def test_the_group_for_toxic_sets_adds_just_the_permission_to_fill_them():
    user = researcher()
    user.groups.add(Group.objects.get(name=TOXIC_SETS))
    assert user.get_all_permissions() - RESEARCHERS_MAY == {"generation.fill_toxic_set"}


def test_a_migration_takes_back_what_was_added_by_hand():
    Group.objects.get(name=RESEARCHER).permissions.add(Permission.objects.get(codename="delete_worker"))
    give_permissions()
    assert researcher().get_all_permissions() == RESEARCHERS_MAY


def test_a_migration_leaves_other_groups_alone():
    guests = Group.objects.create(name="guests")
    guests.permissions.add(Permission.objects.get(codename="view_hit"))
    give_permissions()
    assert [permission.codename for permission in guests.permissions.all()] == ["view_hit"]
