"""A browser that a worker came in with, and a study of two statements."""

import pytest

from tests.factories import accept, log_in, make_hit, make_hit_type


@pytest.fixture
def study():
    hit_type = make_hit_type()
    make_hit("the library opens at nine on weekdays", hit_type=hit_type, shuffle=0.1)
    make_hit("the bakery closes at noon on sundays", hit_type=hit_type, shuffle=0.2)
    return hit_type


@pytest.fixture
def worker(client, study):
    """A worker who consented, logged in with ``client``."""
    return log_in(client)


@pytest.fixture
def assignment(worker):
    """The first statement, accepted by ``worker``."""
    return accept(worker)
