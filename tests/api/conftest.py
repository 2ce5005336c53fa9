"""Who calls the API in tests, and a row of everything to call it about."""

import pytest
from django.core.cache import cache
from django.test import Client

from tests.api.world import World, token_of, user_of


@pytest.fixture(autouse=True)
def _nothing_is_throttled_yet():
    cache.clear()


@pytest.fixture
def world():
    return World()


@pytest.fixture
def call():
    """A client that sends a token of somebody with this role."""

    def of(role):
        client = Client(headers={"authorization": f"Bearer {token_of(role)}"})
        client.user = user_of(role)
        return client

    return of


@pytest.fixture
def admin(call):
    return call("admin")


@pytest.fixture
def researcher(call):
    return call("researcher")
