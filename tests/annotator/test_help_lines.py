"""Help lines: on every page, read from the database once a minute, edited in the workspace."""

import pytest
from django.contrib.auth.models import Group, User
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotator import helping
from annotator.models import HelpLine
from config.roles import RESEARCHER
from tests.annotator.page import Page
from tests.factories import log_in

pytestmark = pytest.mark.django_db

LINES = [
    {"name": "Night Line", "how": "call 555 0100, any time", "url": "https://night.example.org/", "position": 1},
    {"name": "Talk Place", "how": "come by on weekdays", "url": "", "position": 2},
]


@pytest.fixture(autouse=True)
def lines():
    """Two help lines, in place of what there is; what another test had cached is forgotten, before and after."""
    cache.clear()
    HelpLine.objects.all().delete()
    yield [HelpLine.objects.create(**line) for line in LINES]
    cache.clear()


def help_of(client, address="/"):
    page = Page(client.get(address))
    return page.one("p", class_="help")


def test_the_first_line_is_on_the_page_and_leads_to_all(client):
    assert help_of(client).text == "Need to talk to somebody? Night Line: call 555 0100, any time. All help lines"
    page = Page(client.get("/"))
    assert page.one("a", href="https://night.example.org/").text == "Night Line"
    assert page.one("a", href="/help/").text == "All help lines"


def test_the_line_at_the_lowest_position_comes_first(client):
    HelpLine.objects.filter(name="Talk Place").update(position=0)
    assert "Talk Place: come by on weekdays." in help_of(client).text


def test_a_line_without_an_address_is_no_link(client):
    HelpLine.objects.filter(name="Night Line").delete()
    page = Page(client.get("/"))
    assert "Talk Place: come by on weekdays." in page.text
    assert page.one("a", href="/help/").text == "Help"


def test_without_any_line_the_pages_lead_to_help_all_the_same(client):
    HelpLine.objects.all().delete()
    assert help_of(client).text == "Need to talk to somebody? Help"
    assert "emergency number" in Page(client.get("/help/")).text


def test_the_help_page_is_open_to_everybody_and_has_all_lines(client):
    page = Page(client.get("/help/"))
    assert [heading.text for heading in page.all("h2")] == ["Night Line", "Talk Place"]
    assert "come by on weekdays" in page.text
    assert page.all("button") == []
    assert "To the start page" in page.text


def test_the_help_page_leads_a_worker_back_to_work(client):
    log_in(client)
    page = Page(client.get("/help/"))
    assert "Back to your work" in page.text
    assert "Stop, keep my pay" in page.text


def test_what_a_line_says_is_text_and_never_markup(client):
    HelpLine.objects.filter(name="Night Line").update(name="<b>Night</b>", how="<script>alert(1)</script>")
    for address in ("/", "/help/"):
        page = Page(client.get(address))
        assert "<script>alert(1)</script>" in page.text
        assert not [script for script in page.all("script") if "alert" in script.text]


def test_pages_ask_for_the_lines_once_a_minute(client):
    client.get("/help/")
    with CaptureQueriesContext(connection) as queries:
        client.get("/help/")
    assert not [query for query in queries if "helpline" in query["sql"]]


@pytest.fixture
def researcher(client):
    user = User.objects.create(username="ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client.force_login(user)
    return client


def test_a_line_that_a_researcher_adds_changes_or_deletes_is_on_the_pages_at_once(
    researcher, lines, django_capture_on_commit_callbacks
):
    def act(address, posted):
        helping.help_lines()  # cached
        with django_capture_on_commit_callbacks(execute=True):
            response = researcher.post(f"/admin/annotator/helpline/{address}", posted)
        assert response.status_code == 302, response.context["errors"]
        return [line.name for line in helping.help_lines()]

    added = {"name": "New Line", "how": "write to 555 0199", "url": "", "position": "0"}
    assert act("add/", added) == ["New Line", "Night Line", "Talk Place"]
    first, second = lines
    assert act(f"{first.pk}/change/", {**LINES[0], "position": "9"}) == ["New Line", "Talk Place", "Night Line"]
    assert act(f"{first.pk}/delete/", {"post": "yes"}) == ["New Line", "Talk Place"]
    chosen = {"action": "delete_selected", "_selected_action": [second.pk], "post": "yes"}
    assert act("", chosen) == ["New Line"]


def test_an_address_that_would_run_something_is_refused(admin_client):
    response = admin_client.post(
        "/admin/annotator/helpline/add/", {"name": "x", "how": "y", "url": "javascript:alert(1)", "position": "0"}
    )
    assert "url" in response.context["adminform"].form.errors
