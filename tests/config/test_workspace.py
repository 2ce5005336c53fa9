"""The workspace's frame: its sidebar, the way to a page in the sidebar's words, its refusals, its times."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from config.roles import RESEARCHER
from generation.models import AuditEntry
from tests.factories import make_group

pytestmark = pytest.mark.django_db


@pytest.fixture
def researcher():
    user = User.objects.create_user("ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client = Client()
    client.force_login(user)
    return client


def words(html):
    return " ".join(re.sub("<[^>]*>", " ", html).split())


def way(client, address):
    heading = re.search(r"<h1.*?</h1>", client.get(address).content.decode(), re.DOTALL)[0]
    return words(heading).replace(" chevron_right ", " › ")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/admin/", "Overview"),
        ("/admin/generation/targetgroup/", "Generate › Groups"),
        ("/admin/generation/auditentry/", "Data › Audit trail"),
        ("/admin/analysis/dataimport/", "Data › Import"),
        ("/admin/analysis/dataimport/add/", "Data › Import › Import a file"),
        ("/admin/api/", "Data › API"),
        ("/admin/analyse/agreement/", "Analyse › Agreement"),
        ("/admin/auth/user/", "Access › Users"),
        ("/admin/auth/group/", "Access › Roles"),
    ],
)
def test_the_way_to_a_page_is_told_in_the_words_of_the_sidebar(admin_client, address, expected):
    assert way(admin_client, address) == expected


def test_the_way_to_something_ends_with_its_name(admin_client):
    assert way(admin_client, f"/admin/generation/targetgroup/{make_group().pk}/change/") == "Generate › Groups › Women"


def test_staff_find_their_tokens_in_the_sidebar(researcher):
    assert 'href="/admin/api/"' in researcher.get("/admin/").content.decode()


@pytest.mark.parametrize(
    "address", ["/admin/nothing/", "/admin/analysis/dataimport/7/progress/", "/admin/export/no.csv"]
)
def test_what_is_not_there_is_told_in_the_workspace_with_the_way_back(researcher, address):
    response = researcher.get(address)
    assert response.status_code == 404
    assert "There is nothing at this address." in response.content.decode()
    assert "To the workspace" in response.content.decode()
    assert "To the start page" not in response.content.decode()


def test_what_a_role_may_not_do_is_told_in_the_workspace(researcher):
    response = researcher.get("/admin/auth/user/")
    assert response.status_code == 403
    assert "may not do this" in response.content.decode()
    assert "Audit trail" in response.content.decode()


def test_a_form_that_was_open_for_too_long_is_refused_in_the_workspace(researcher):
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = researcher.cookies
    response = strict.post("/admin/api/", {"days": 1})
    assert response.status_code == 403
    assert "Audit trail" in response.content.decode()


def test_annotators_are_told_on_their_own_page(client):
    assert "To the start page" in client.get("/nothing/").content.decode()


def test_times_are_told_in_one_way(admin_client):
    AuditEntry.objects.create(act="token made", subject="a token", at=datetime(2026, 11, 2, 19, 5, tzinfo=UTC))
    entry = AuditEntry.objects.get()
    assert "2 November 2026, 19:05 UTC" in admin_client.get("/admin/generation/auditentry/").content.decode()
    page = admin_client.get(f"/admin/generation/auditentry/{entry.pk}/change/").content.decode()
    assert "2 November 2026, 19:05 UTC" in page


def test_an_admin_ticks_roles_and_single_permissions_of_a_user(admin_client):
    user = User.objects.create_user("ben")
    role = Group.objects.get(name=RESEARCHER)
    permission = Permission.objects.get(codename="view_user")
    address = f"/admin/auth/user/{user.pk}/change/"
    assert 'type="checkbox" name="groups"' in admin_client.get(address).content.decode()
    sent = {"username": "ben", "is_active": "on", "groups": [role.pk], "user_permissions": [permission.pk]}
    assert admin_client.post(address, sent).status_code == 302
    assert [*user.groups.all(), *user.user_permissions.all()] == [role, permission]
