"""The dashboards and the API of reports: what is kept is shown, and what it is."""

import csv
import io
import json

import pytest
from django.contrib.auth.models import Group, Permission, User

from analysis.models import StoredReport
from analysis.reports import storing
from analysis.reports.catalogue import REPORTS
from config.roles import RESEARCHER
from tests.analysis import toy_report
from tests.analysis.toy_report import NAME
from tests.factories import make_generation, make_group, make_hit_type

pytestmark = pytest.mark.django_db

PAGE = "/admin/analyse/dataset/"
PART = f"{PAGE}{NAME}/"
HTMX = {"HX-Request": "true"}
API = f"/api/reports/{NAME}/"


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    return toy_report.put_in_place(monkeypatch)


@pytest.fixture
def user(client):
    user = User.objects.create_user("ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client.force_login(user)
    return user


def words(response):
    return " ".join(response.content.decode().split())


def work_out(filters=None):
    storing.work_out(stored=storing.look_at(NAME, filters or {}).pk)


def test_a_page_waits_for_its_report_and_then_shows_it(client, user):
    make_generation("the market opens at nine")
    waiting = words(client.get(PAGE))
    assert "It is being worked out for the first time." in waiting
    assert f'hx-get="{PART}?made="' in waiting
    assert client.get(f"{PART}?made=", headers=HTMX).status_code == 204
    work_out()
    part = words(client.get(f"{PART}?made=", headers=HTMX))
    assert "every 2s" not in part
    assert "<html" not in part
    page = words(client.get(PAGE))
    for shown in (
        "There are 1 statements.",
        "n = 1 statement · In the paper: Table 2",
        "when there were 1 statement.",
        "50.0 % (41.0 to 60.0)",
        "There is no annotation yet.",
        "Counted here.",
    ):
        assert shown in page
        assert shown in part or shown == "when there were 1 statement."


def test_what_is_undefined_says_why_in_sight(client, user):
    work_out()
    page = words(client.get(PAGE))
    assert '<a class="to-note" href="#toy-by-method-a">a</a>' in page
    assert f'<li id="toy-by-method-a"><span class="letter">a</span> {toy_report.NOBODY}</li>' in page


def test_statements_are_blurred(client, user):
    make_generation("the market opens at nine")
    work_out()
    page = words(client.get(PAGE))
    assert 'title="Point at it or press Tab to read it">the market opens at nine</span>' in page


def test_the_figure_lies_in_the_page_and_has_its_sentence_for_who_does_not_see_it(client, user):
    make_generation("</script><script>alert(1)</script>")
    work_out()
    page = words(client.get(PAGE))
    assert 'role="img" aria-label="By method. There are 1 statements. The table below has the numbers."' in page
    chart = page.split('<script id="toy-by-method-chart" type="application/json">')[1].split("</script>")[0]
    assert json.loads(chart)["data"][0]["name"] == "top-k"
    assert "<script>alert" not in page


def test_newer_answers_and_failures_are_said(client, user, monkeypatch):
    work_out()
    make_generation()
    assert "There may be newer figures than these." in words(client.get(PAGE))

    def make(filters):
        raise ValueError("a row has no method")

    with monkeypatch.context() as for_now:
        for_now.setattr(toy_report, "make", make)
        client.post(f"{PART}work-out/")
        work_out()
    page = words(client.get(PAGE))
    assert "ValueError: a row has no method</p> <p>Below is what was found before.</p>" in page
    assert "There are 0 statements." in page
    assert "every 2s" not in page


def test_the_button_has_it_worked_out_anew(client, user):
    work_out()
    response = client.post(f"{PART}work-out/?imported=yes&method=")
    assert (response.status_code, response.url) == (302, f"{PAGE}?imported=yes#{NAME}")
    client.post(f"{PART}work-out/")
    page = words(client.get(PAGE))
    assert "It is being worked out anew." in page
    assert "There are 0 statements." in page
    made = StoredReport.objects.get(filters={}).made_at.isoformat()
    assert client.get(PART, {"made": made}, headers=HTMX).status_code == 204
    assert client.get(PART, {"made": "2026-01-01"}, headers=HTMX).status_code == 200


def test_filters_stand_in_the_address_and_above_the_report(client, user):
    make_group("asian", name="Asian")
    work_out({"group": ["asian"], "imported": "yes"})
    page = words(client.get(PAGE, {"group": "asian", "imported": "yes", "run": ""}))
    assert "Groups: <strong>Asian</strong>" in page
    assert "Imported statements: <strong>Imported only</strong>" in page
    assert f'<a href="{PAGE}?imported=yes" aria-label="Remove the filter Groups">' in page
    assert "There are 0 statements." in page
    assert f"{PAGE}{NAME}.json?group=asian&amp;imported=yes" in page


def test_a_wrong_filter_is_a_page_with_sentences(client, user):
    response = client.get(PAGE, {"group": "nobody", "colour": "red"})
    page = words(response)
    assert response.status_code == 400
    assert "There is no group “nobody”. Give the slug of one that there is." in page
    assert "This page has no filter “colour”. It has: group, label, method, run, imported." in page
    assert not StoredReport.objects.exists()
    assert client.get(f"{PART}?group=nobody", headers=HTMX).status_code == 400
    assert client.get(f"{PAGE}{NAME}.json?group=nobody").status_code == 400
    assert client.post(f"{PART}work-out/?group=nobody").status_code == 302
    assert not StoredReport.objects.exists()


@pytest.mark.parametrize(
    "query", ["grup=asian", "page=2", "%00=1", "group=%00", "run[]=1", "imported=yes&imported=no", "colour=1&colour=2"]
)
def test_every_address_of_a_page_refuses_what_the_page_refuses(client, user, query):
    make_group("asian")
    work_out()
    for address in (PAGE, PART, f"{PAGE}{NAME}.json", f"{PAGE}{NAME}.md", f"{PART}by-method.csv"):
        response = client.get(f"{address}?{query}", headers=HTMX if address == PART else {})
        assert response.status_code == 400, address
    refused = client.post(f"{PART}work-out/?{query}")
    assert (refused.status_code, refused.url) == (302, PAGE)
    assert StoredReport.objects.exclude(finished_at=None).count() == StoredReport.objects.count() == 1


def test_a_filter_with_one_value_says_so(client, user):
    page = words(client.get(f"{PAGE}?imported=yes&imported=no"))
    assert "This filter takes one value; it was given 2." in page
    assert client.get(f"{PAGE}?method=alice&method=topk").status_code == 200


def test_titles_of_studies_are_for_those_who_may_see_studies(client, user, monkeypatch):
    toy_report.put_in_place(monkeypatch, takes=("study",))
    study = make_hit_type(title="Views on weather")
    outsider = User.objects.create_user("eve", is_staff=True)
    outsider.user_permissions.add(Permission.objects.get(codename="view_generation"))
    address = f"{PAGE}?study={study.pk}"
    assert words(client.get(address)).count("Views on weather") == 2  # among the choices, and above the report
    client.force_login(outsider)
    page = words(client.get(address))
    assert "Views on weather" not in page
    assert page.count(f"Study {study.pk}") == 2


def test_a_report_without_a_filter_of_its_page_says_so(client, user, monkeypatch):
    other = toy_report.kind(takes=("group", "study"), title="Another")
    monkeypatch.setitem(REPORTS, "other", type(other)(**vars(other) | {"name": "other"}))
    page = words(client.get(PAGE, {"imported": "yes"}))
    assert page.count("This report has no filter for: Imported statements.") == 1
    assert StoredReport.objects.get(name="other").filters == {}
    assert StoredReport.objects.get(name=NAME).filters == {"imported": "yes"}


def test_tables_and_reports_come_as_files(client, user):
    make_generation("the market opens at nine")
    assert client.get(f"{PAGE}{NAME}.json?imported=no").url == f"{PAGE}?imported=no"
    early = client.get(f"{PART}by-method.csv?imported=no")
    assert early.status_code == 404
    assert words(early) == "The report toy has no tables yet. It is being worked out. Ask again in a moment."
    work_out()
    table = client.get(f"{PART}by-method.csv")
    assert table["Content-Disposition"] == 'attachment; filename="toy-by-method.csv"'
    assert next(csv.DictReader(io.StringIO(table.content.decode())))["share_low"] == "0.41"
    assert client.get(f"{PART}nothing.csv").status_code == 404
    assert client.get(f"{PART}nowhere.csv").status_code == 404
    assert json.loads(client.get(f"{PAGE}{NAME}.json").content)["sections"][0]["key"] == "by-method"
    assert client.get(f"{PAGE}{NAME}.md").content.decode().startswith("# A toy")
    assert client.get(f"{PAGE}{NAME}.exe").status_code == 404


def test_who_may_not_see_a_report_is_not_told_of_it(client, user, monkeypatch):
    outsider = User.objects.create_user("eve", is_staff=True)
    client.force_login(outsider)
    for address in (PAGE, PART, f"{PART}by-method.csv", f"{PAGE}{NAME}.json"):
        assert client.get(address).status_code == 403, address
    assert client.post(f"{PART}work-out/").status_code == 403
    assert client.get(API).status_code == 403
    outsider.user_permissions.add(Permission.objects.get(codename="view_generation"))
    assert client.get(PAGE).status_code == 200
    secret = toy_report.kind(permissions=("annotator.view_annotation",), title="A secret")
    monkeypatch.setitem(REPORTS, "secret", type(secret)(**vars(secret) | {"name": "secret"}))
    assert "A secret" not in words(client.get(PAGE))
    assert client.get(f"{PAGE}secret.json").status_code == 403


def test_there_is_no_other_page_and_no_report_on_another_page(client, user):
    assert client.get("/admin/analyse/nowhere/").status_code == 404
    assert client.get(f"/admin/analyse/agreement/{NAME}.json").status_code == 404
    assert client.get(f"{PAGE}nope.json").status_code == 404


def test_a_page_takes_the_same_number_of_queries_however_much_there_is(client, user, django_assert_max_num_queries):
    work_out()
    client.get(PAGE)
    for _ in range(30):
        make_generation()
    with django_assert_max_num_queries(12):
        client.get(PAGE)


def test_plotly_is_served_by_humanval_itself(client, user):
    from django.contrib.staticfiles import finders

    assert finders.find("plotly/plotly.min.js").endswith("plotly.min.js")
    assert finders.find("plotly/widgetbundle.js") is None
    assert "plotly/plotly.min.js" in words(client.get(PAGE))


class TestApi:
    def test_a_report_is_202_until_it_is_worked_out(self, client, user):
        make_generation()
        first = client.get(API)
        assert (first.status_code, first.json()["report"], first.json()["is_waiting"]) == (202, None, True)
        work_out()
        found = client.get(API)
        assert found.status_code == 200
        assert found.json()["report"]["sections"][0]["n"] == {"statements": 1}
        assert found.json()["is_outdated"] is False
        make_generation()
        assert client.get(API).json()["is_outdated"] is True
        assert client.post(f"{API}work-out/").status_code == 202
        assert client.get(API).json()["is_waiting"] is True

    def test_the_list_says_what_each_takes(self, client, user):
        [toy] = client.get("/api/reports/").json()
        assert (toy["name"], toy["filters"]) == (NAME, ["group", "label", "method", "run", "imported"])

    @pytest.mark.parametrize("query", ["group=nobody", "colour=red", "group=", "run=1&run=1"])
    def test_a_wrong_filter_is_refused(self, client, user, query):
        response = client.get(f"{API}?{query}")
        assert response.status_code == 400
        assert response["Content-Type"] == "application/problem+json"

    def test_there_is_no_other_report(self, client, user):
        assert client.get("/api/reports/nope/").status_code == 404
