"""Tokens: made and revoked by their user on a page of the workspace, shown once, kept as a hash."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from knox.models import AuthToken

from config import tokens
from generation.models import AuditEntry
from tests.api.world import token_of, user_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def page():
    browser = Client()
    browser.force_login(user_of("researcher"))
    return browser


def opens(token):
    return Client().get("/api/runs/", headers={"authorization": f"Bearer {token}"}).status_code == 200


def shown_token(response):
    [token] = re.findall(r"<code class=\"invite-link\">(\w+)</code>", response.content.decode())
    return token


def test_a_token_is_made_shown_once_and_opens_the_api(page):
    token = shown_token(page.post("/admin/api/", {"days": "30"}))
    assert opens(token)
    assert token not in page.get("/admin/api/").content.decode()


def test_only_a_hash_of_a_token_is_kept(page):
    token = shown_token(page.post("/admin/api/", {"days": "30"}))
    [kept] = AuthToken.objects.values()
    assert token not in str(kept)
    assert kept["token_key"] == token[:15]


def test_a_revoked_token_opens_nothing(page):
    token = shown_token(page.post("/admin/api/", {"days": "1"}))
    response = page.post("/admin/api/", {"revoke": token[:15]}, follow=True)
    assert "is revoked" in response.content.decode()
    assert not opens(token)


def test_nobody_revokes_the_token_of_somebody_else(page):
    token = token_of("admin")
    response = page.post("/admin/api/", {"revoke": token[:15]}, follow=True)
    assert "is none of yours" in response.content.decode()
    assert opens(token)


def test_a_token_that_ran_out_opens_nothing_and_stays_in_the_list(page):
    token = shown_token(page.post("/admin/api/", {"days": "1"}))
    AuthToken.objects.update(expiry=timezone.now() - timedelta(minutes=1))
    assert not opens(token)
    assert "ran out on" in page.get("/admin/api/").content.decode()


def test_a_token_of_somebody_who_was_shut_out_opens_nothing():
    token = token_of("researcher")
    type(user_of("researcher")).objects.update(is_active=False)
    assert not opens(token)


def test_making_and_revoking_is_in_the_audit_trail(page):
    token = shown_token(page.post("/admin/api/", {"days": "7"}))
    page.post("/admin/api/", {"revoke": token[:15]})
    entries = AuditEntry.objects.order_by("pk").values_list("act", "by__username", "subject", "details")
    assert list(entries) == [
        ("token made", "the researcher", f"token {token[:15]}…", {"days": 7}),
        ("token revoked", "the researcher", f"token {token[:15]}…", {}),
    ]


@pytest.mark.parametrize("days", ["0", "1000", "x", ""])
def test_a_time_that_is_not_offered_makes_no_token(page, days):
    assert page.post("/admin/api/", {"days": days}).status_code == 422
    assert not AuthToken.objects.exists()
    with pytest.raises(ValueError, match=r"^A token lasts for 1, 7, 30, 90, 365 days, not for 1000\.$"):
        tokens.make_token(user=user_of("admin"), days=1000)
