"""How often the API may be called."""

import pytest
from django.test import Client
from rest_framework.throttling import SimpleRateThrottle

pytestmark = pytest.mark.django_db


@pytest.fixture
def _slow(monkeypatch):
    monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", {"anon": "2/minute", "user": "3/minute"})


@pytest.mark.usefixtures("_slow")
def test_a_user_who_asks_too_often_waits(admin, researcher):
    assert [admin.get("/api/runs/").status_code for _ in range(3)] == [200, 200, 200]
    refused = admin.get("/api/runs/")
    assert (refused.status_code, refused["Content-Type"]) == (429, "application/problem+json")
    assert 0 < int(refused["Retry-After"]) <= 60
    assert refused.json()["detail"].startswith("These were too many requests. Try again in ")
    assert researcher.get("/api/runs/").status_code == 200


@pytest.mark.usefixtures("_slow")
@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer nonsense"}])
def test_who_guesses_tokens_is_slowed_down(headers):
    client = Client(headers=headers)
    assert [client.get("/api/runs/").status_code for _ in range(3)] == [401, 401, 429]


def test_the_rates_are_those_of_the_settings(settings):
    assert settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"] == {"anon": "60/minute", "user": "1200/minute"}
