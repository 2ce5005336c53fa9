"""Logging in to the workspace: few wrong passwords, a new session key, nothing without the CSRF token."""

from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.conf import settings as configured
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client, RequestFactory
from django.utils import timezone

from annotator import inviting
from config.security import client_address
from tests.annotator.page import Page
from tests.factories import consenting_worker, make_hit

pytestmark = pytest.mark.django_db

LOG_IN = "/admin/login/"
PASSWORD = "a long passphrase"
ALLOWED = 10
REFUSED = (
    "The log-in failed too often. Wait 15 minutes, then try again. If you do not know the password any more, ask an "
    "admin for a new one."
)


@pytest.fixture(autouse=True)
def users():
    for name in ("ada", "bob"):
        User.objects.create_user(name, password=PASSWORD, is_staff=True)


def log_in(client, name="ada", password=PASSWORD, **headers):
    return client.post(LOG_IN, {"username": name, "password": password, "next": "/admin/"}, **headers)


def fail(client, times, name="ada", **headers):
    return [log_in(client, name, "wrong", **headers).status_code for _ in range(times)]


def is_in(client):
    return "_auth_user_id" in client.session


# --- Too many wrong passwords


def test_the_tenth_wrong_password_is_answered_with_a_sentence_and_when_to_come_back(client):
    assert fail(client, ALLOWED - 1) == [200] * (ALLOWED - 1)
    response = log_in(client, password="wrong")
    assert response.status_code == 429
    assert Page(response).one("p", class_="lead").text == REFUSED
    assert response["Retry-After"] == "900"


def test_then_the_right_password_is_refused_too_in_any_browser_at_that_address(client):
    fail(client, ALLOWED)
    for browser in (client, Client(headers={"user-agent": "another one"})):
        assert log_in(browser).status_code == 429
        assert not is_in(browser)


@pytest.mark.parametrize("asked_by_script", [{}, {"HTTP_X_REQUESTED_WITH": "XMLHttpRequest"}])
def test_a_refusal_opens_nothing_to_other_sites(client, asked_by_script):
    fail(client, ALLOWED)
    response = log_in(client, **asked_by_script)
    assert response["Content-Type"] == "text/html; charset=utf-8"
    assert "Access-Control-Allow-Origin" not in response


def test_another_user_at_the_same_address_is_not_refused(client):
    fail(client, ALLOWED)
    assert log_in(client, "bob").status_code == 302
    assert is_in(client)


def test_the_same_user_at_another_address_is_not_refused(client):
    fail(client, ALLOWED)
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    assert log_in(elsewhere).status_code == 302


def test_a_name_that_nobody_has_is_refused_alike(client):
    assert fail(client, ALLOWED, "nobody") == [200] * (ALLOWED - 1) + [429]


def test_a_log_in_that_works_forgets_the_wrong_ones_before(client):
    fail(client, ALLOWED - 1)
    assert log_in(client).status_code == 302
    assert fail(Client(), ALLOWED - 1) == [200] * (ALLOWED - 1)


def test_after_the_wait_the_right_password_lets_in_again(client):
    fail(client, ALLOWED)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=15, seconds=1))
    assert log_in(client).status_code == 302


def test_trying_on_does_not_make_the_wait_longer(client):
    fail(client, ALLOWED)
    before = AccessAttempt.objects.get().attempt_time
    fail(client, 3)
    assert AccessAttempt.objects.get().attempt_time == before


def test_passwords_are_not_kept(client):
    fail(client, 2)
    log_in(client, password="nearly a long passphrase")
    attempt = AccessAttempt.objects.get()
    assert "wrong" not in attempt.post_data
    assert "passphrase" not in attempt.post_data


@pytest.mark.parametrize("name", ["", "a\0b", "…", "' OR 1=1 --"])
def test_a_strange_name_is_answered_like_any_other(client, name):
    assert fail(client, 1, name) == [200]


def test_a_name_longer_than_names_can_be_is_limited_like_any_other(client):
    assert fail(client, ALLOWED, "x" * 10_000) == [200] * (ALLOWED - 1) + [429]


def test_who_is_logged_in_works_on_while_somebody_guesses_the_password(client):
    log_in(client)
    fail(Client(), ALLOWED)
    assert client.get("/admin/").status_code == 200


def test_commands_are_not_limited():
    for _ in range(ALLOWED + 1):
        assert authenticate(username="ada", password="wrong") is None
    assert authenticate(username="ada", password=PASSWORD).username == "ada"


def test_no_other_way_of_logging_in_goes_past_the_limit():
    assert configured.AUTHENTICATION_BACKENDS == [
        "config.security.LimitedLogIn",
        "django.contrib.auth.backends.ModelBackend",
    ]


# --- Whose address it is


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, None, "192.0.2.1"),
        (0, "203.0.113.5", "192.0.2.1"),
        (1, None, "192.0.2.1"),
        (1, "203.0.113.5", "203.0.113.5"),
        (1, "198.51.100.9, 203.0.113.5", "203.0.113.5"),
        (2, "198.51.100.9, 203.0.113.5, 10.0.0.1", "203.0.113.5"),
        (2, "203.0.113.5", "192.0.2.1"),
        (1, "nonsense", "192.0.2.1"),
        (1, "", "192.0.2.1"),
        (1, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        (1, "::ffff:203.0.113.5", "203.0.113.5"),
    ],
)
def test_the_address_is_the_connections_or_what_our_own_proxies_say(settings, proxies, forwarded, address):
    settings.PROXIES = proxies
    headers = {} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded}
    assert client_address(RequestFactory().get("/", REMOTE_ADDR="192.0.2.1", **headers)) == address


def test_a_connection_without_an_address_is_limited_by_name_alone():
    socket = Client(REMOTE_ADDR="")
    assert fail(socket, ALLOWED) == [200] * (ALLOWED - 1) + [429]


def test_by_itself_a_client_cannot_claim_other_addresses(client):
    given = [log_in(client, password="wrong", HTTP_X_FORWARDED_FOR=f"192.0.2.{n}").status_code for n in range(ALLOWED)]
    assert given[-1] == 429


# --- The session


def planted_session():
    attacker = Client()
    session = attacker.session
    session["planted"] = True
    session.save()
    return session.session_key


def test_logging_in_changes_the_session_key_so_that_nobody_can_plant_one(client):
    client.cookies["sessionid"] = planted = planted_session()
    log_in(client)
    assert is_in(client)
    assert client.cookies["sessionid"].value != planted
    assert not Session.objects.filter(session_key=planted).exists()


def test_opening_an_invite_link_changes_the_session_key_also_of_somebody_logged_in(client):
    log_in(client)
    before = client.cookies["sessionid"].value
    client.get(inviting.link(inviting.invite()).removeprefix("http://localhost:8000"))
    assert client.cookies["sessionid"].value != before
    assert not Session.objects.filter(session_key=before).exists()


def test_logging_out_ends_the_session(client):
    log_in(client)
    client.post("/admin/logout/")
    assert not Session.objects.exists()


# --- CSRF


def strict():
    return Client(enforce_csrf_checks=True)


def test_logging_in_needs_the_csrf_token():
    client = strict()
    page = Page(client.get(LOG_IN))
    token = page.one("input", name="csrfmiddlewaretoken")["value"]
    sent = {"username": "ada", "password": PASSWORD, "next": "/admin/"}
    assert client.post(LOG_IN, sent).status_code == 403
    assert not is_in(client)
    assert client.post(LOG_IN, sent | {"csrfmiddlewaretoken": token}).status_code == 302


def admin_with_strict_browser():
    client = strict()
    client.force_login(User.objects.create(username="eve", is_staff=True, is_superuser=True))
    return client


@pytest.mark.parametrize(
    "address",
    [
        "/admin/logout/",
        "/admin/password_change/",
        "/admin/annotator/worker/",
        "/admin/annotator/panel/add/",
        "/admin/annotator/qualification/add/",
        "/admin/annotator/knownanswers/add/",
        "/admin/annotator/invitation/add/",
        "/admin/annotator/hittype/add/",
        "/admin/auth/user/add/",
    ],
)
def test_the_workspaces_forms_need_the_csrf_token(address):
    client = admin_with_strict_browser()
    assert client.post(address, {"name": "planted"}).status_code == 403
    assert client.post(address, {"csrfmiddlewaretoken": "x" * 64}).status_code == 403


def test_the_annotators_forms_need_the_csrf_token():
    client = strict()
    worker = consenting_worker()
    hit = make_hit()
    client.get(inviting.link(worker.invitations.create()).removeprefix("http://localhost:8000"))
    addresses = ["/consent/", "/withdraw/", "/preferences/", "/survey/", "/stop/", "/leave/"]
    for address in [*addresses, f"/study/{hit.hit_type.pk}/accept/"]:
        assert client.post(address).status_code == 403, address
    assert not worker.assignments.exists()
