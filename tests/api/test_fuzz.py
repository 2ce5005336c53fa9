"""Whatever is sent to the API, right or wrong: it answers as its description says, and never by an error of its own."""

from zlib import crc32

import pytest
import schemathesis
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from django.test import override_settings
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, settings
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from tests.api.world import World, token_of

pytestmark = pytest.mark.django_db

schema = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True))
schema.app = get_wsgi_application()
schema.config.phases.coverage.unexpected_methods = {"delete"}

ROLES = ("admin", "researcher")
A_PART = 6
"""One in so many of schemathesis' cases at the edges of what the description allows is sent; all take minutes."""
FEW = settings(
    max_examples=2,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# What the description cannot say is refused besides: a group that there is not, a set that is too small. That nobody
# comes in without a token is tested address by address.
NOT_CHECKED = [positive_data_acceptance, ignored_auth]


@pytest.fixture(scope="module")
def here(django_db_setup, django_db_blocker, tmp_path_factory):
    """One world for all of them, each of which leaves it as it was; no request closes the connection that it is in."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    uploads_go_to = override_settings(VAR=tmp_path_factory.mktemp("var"))
    with django_db_blocker.unblock(), transaction.atomic(), uploads_go_to:
        world = World()
        world.tokens = {role: token_of(role) for role in ROLES}
        yield world
        transaction.set_rollback(True)
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@schema.parametrize()
@FEW
def test_whatever_is_sent_is_answered_as_the_description_says(case, here):
    # By what is sent, so that a case that fails does so each time.
    number = crc32(repr((case.method, case.path, case.path_parameters, case.query, case.body)).encode())
    if number % A_PART:
        return
    role = ROLES[number // A_PART % len(ROLES)]
    cache.clear()
    if case.path_parameters.get("id") and not case.meta.is_negative_at(ParameterLocation.PATH):
        case.path_parameters["id"] = here.ids[case.path.split("/")[2]]
    with transaction.atomic():
        case.call_and_validate(headers={"Authorization": f"Bearer {here.tokens[role]}"}, excluded_checks=NOT_CHECKED)
        transaction.set_rollback(True)
