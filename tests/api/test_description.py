"""The description of the API, for programs and to be read."""

import json

import pytest
from django.core.management import call_command
from django.test import Client

from tests.api.world import user_of

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    file = tmp_path_factory.mktemp("schema") / "schema.json"
    call_command("spectacular", "--validate", "--fail-on-warn", "--format", "openapi-json", "--file", str(file))
    return json.loads(file.read_text())


def test_it_is_openapi_without_a_warning(described):
    assert described["openapi"] == "3.1.1"


def test_every_operation_names_its_problems(described):
    operations = [(path, method, found) for path, item in described["paths"].items() for method, found in item.items()]
    assert len(operations) > 60
    for path, method, operation in operations:
        assert {"400", "401", "403", "404", "406", "429"} <= operation["responses"].keys(), (method, path)
        assert operation["responses"]["403"]["content"] == {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        }


def test_money_is_text_and_what_is_not_there_is_null(described):
    payment = described["components"]["schemas"]["Payment"]["properties"]
    assert (payment["amount"]["type"], payment["amount"]["format"]) == ("string", "decimal")
    assert payment["assignment"]["type"] == ["integer", "null"]


def test_it_warns_that_texts_are_as_they_were_written(described):
    assert "Texts are sent as they were written and may hurt" in described["info"]["description"]


def test_the_docs_need_nothing_from_elsewhere_and_no_inline_script():
    browser = Client()
    browser.force_login(user_of("researcher"))
    response = browser.get("/api/docs/")
    page = response.content.decode()
    assert response.status_code == 200
    assert "http://" not in page
    assert "https://" not in page
    assert "<script>" not in page
    policy = dict(part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";"))
    assert (policy["script-src"], policy["style-src"]) == ("'self'", "'self' 'unsafe-inline'")


def test_who_is_not_logged_in_is_sent_to_the_log_in():
    assert Client().get("/api/docs/")["Location"] == "/admin/login/?next=/api/docs/"


def test_the_strict_policy_holds_for_the_rest_of_the_api(admin):
    assert "unsafe" not in admin.get("/api/runs/")["Content-Security-Policy"]
