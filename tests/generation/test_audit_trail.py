"""The audit trail: who did what, never edited."""

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError

from generation import auditing
from generation.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry():
    ada = User.objects.create_superuser("ada")
    return auditing.note(
        "annotations exported", by=ada, subject="annotations.csv", format="csv", filters={"group": "women"}
    )


def test_an_entry_says_who_did_what_to_what(entry):
    entry.refresh_from_db()
    assert (str(entry), entry.by.username) == ("annotations exported: annotations.csv", "ada")
    assert entry.details == {"format": "csv", "filters": {"group": "women"}}


@pytest.mark.parametrize("by", [None, AnonymousUser()])
def test_what_nobody_did_is_noted_without_a_user(by):
    assert auditing.note("file imported", by=by).by is None


def test_an_entry_cannot_be_changed(entry):
    with pytest.raises(IntegrityError, match="never changed or deleted"):
        AuditEntry.objects.update(act="nothing happened")


def test_an_entry_cannot_be_deleted(entry):
    with pytest.raises(IntegrityError, match="never changed or deleted"):
        AuditEntry.objects.all().delete()


def test_the_page_of_the_trail_says_who_what_and_how(entry, client):
    client.force_login(entry.by)
    page = client.get("/admin/generation/auditentry/").content.decode()
    assert all(words in page for words in ("ada", "annotations exported", "annotations.csv", "format csv"))
    assert "group" in client.get(f"/admin/generation/auditentry/{entry.pk}/change/").content.decode()


def test_the_list_says_numbers_in_short_and_leaves_out_what_is_not_known(admin_client):
    auditing.note("study extended", subject="study 1", days=2.0, places=1, repeats=None)
    page = admin_client.get("/admin/generation/auditentry/").content.decode()
    assert "days 2, places 1" in page
    assert "repeats" not in page


def test_what_nobody_did_is_said_so_on_the_page(admin_client):
    auditing.note("file imported", subject="train.csv")
    assert (
        "the command line, or the machine by itself"
        in admin_client.get("/admin/generation/auditentry/").content.decode()
    )
