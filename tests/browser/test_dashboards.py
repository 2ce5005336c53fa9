"""The dashboards at work: figures drawn, files out of them, wide and narrow, dark and light, without script."""

import re

import pytest
from playwright.sync_api import expect

from analysis.models import StoredReport
from analysis.reports import storing
from analysis.reports.catalogue import PAGES
from tests.analysis import toy_report
from tests.browser.accessibility import violations
from tests.browser.conftest import SCREENSHOTS
from tests.browser.visiting import PHONE, WIDE, screenshot, workspace_of
from tests.browser.world import World

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "/admin/analyse/dataset/"
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? []
    : [...document.querySelectorAll("main *, #content-main *")]
    .filter((one) => !one.closest(".scroll, .plot") && one.getBoundingClientRect().right > innerWidth)
    .map((one) => one.outerHTML.slice(0, 120))"""
"""What makes the page scroll sideways."""


@pytest.fixture
def toy(monkeypatch):
    World().others_work()
    return toy_report.put_in_place(monkeypatch, alone=False)


@pytest.fixture
def page(toy, browser, live_server):
    with workspace_of(live_server, browser, color_scheme="light") as page:
        yield page


def work_out():
    for stored in StoredReport.objects.waiting():
        storing.work_out(stored=stored.pk)


def test_a_report_comes_into_the_page_when_it_is_worked_out(page):
    page.goto(PAGE)
    expect(page.get_by_text("It is being worked out for the first time.")).to_be_visible()
    work_out()
    expect(page.get_by_text("There are 7 statements.")).to_be_visible()
    expect(page.locator("figure.plot.drawn svg.main-svg").first).to_be_visible()
    page.get_by_role("button", name="Work it out anew").click()
    expect(page.get_by_text("It is being worked out anew.")).to_be_visible()
    expect(page.locator("figure.plot.drawn")).to_have_count(1)
    work_out()
    expect(page.get_by_text("It is being worked out anew.")).to_have_count(0)
    expect(page.locator("figure.plot.drawn svg.main-svg").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_wide_and_narrow(toy, browser, live_server, scheme):
    with workspace_of(live_server, browser, color_scheme=scheme) as page:
        page.goto(PAGE)
        work_out()
        page.goto(PAGE)
        for size in (PHONE, WIDE):
            page.set_viewport_size(size)
            expect(page.locator("figure.plot.drawn")).to_have_count(1)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert violations(page, within="#content-main") == []
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=SCREENSHOTS / f"dashboard-{scheme}-{size['width']}.png", full_page=True)


def test_figures_and_tables_come_out_as_files(page):
    page.goto(PAGE)
    work_out()
    page.goto(PAGE)
    expect(page.locator("figure.plot.drawn")).to_have_count(1)
    for what, beginning in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b"method,n,share")):
        control = page.get_by_label(re.compile(f"By method: (figure|table) as {what}"))
        with page.expect_download() as download:
            control.click()
        assert download.value.suggested_filename == f"toy-by-method.{what.lower()}"
        content = download.value.path().read_bytes()
        assert content.startswith(beginning)
        if what == "SVG":
            assert b"By method" in content


def test_filters_are_set_shared_and_cleared(page):
    page.goto(PAGE)
    page.get_by_text("Filter: everything counts").click()
    page.get_by_label("Imported statements").select_option("no")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page).to_have_url(re.compile("imported=no"))
    expect(page.locator(".chips")).to_contain_text("Imported statements: Not imported")
    assert [stored.filters for stored in StoredReport.objects.filter(name="toy").order_by("pk")] == [
        {},
        {"imported": "no"},
    ]
    page.get_by_label("Remove the filter Imported statements").click()
    expect(page.locator(".chips")).to_have_count(0)


def test_without_script_the_tables_stand(toy, browser, live_server):
    with workspace_of(live_server, browser, java_script_enabled=False) as page:
        page.goto(PAGE)
        expect(page.get_by_role("link", name="Look again")).to_be_visible()
        work_out()
        page.get_by_role("link", name="Look again").click()
        expect(page.get_by_role("cell", name="50.0 % (41.0 to 60.0)")).to_be_visible()
        expect(page.get_by_label("By method: figure as SVG")).to_be_hidden()
        assert page.get_by_label("By method: table as CSV").is_visible()


@pytest.mark.parametrize("name", PAGES)
def test_every_dashboard_stands_with_little_and_with_no_data(name, browser, live_server):
    with workspace_of(live_server, browser, color_scheme="light") as page:
        for much in ("no", "little"):
            if much == "little":
                World().others_work()
            for _ in range(2):
                page.goto(f"/admin/analyse/{name}/")
                StoredReport.objects.filter(made_at__isnull=True).update(finished_at=None)
                for stored in StoredReport.objects.all():
                    storing.ask(stored)
                work_out()
            page.goto(f"/admin/analyse/{name}/")
            assert list(StoredReport.objects.exclude(failure="").values_list("name", "failure")) == []
            for size in (WIDE, PHONE):
                page.set_viewport_size(size)
                expect(page.locator("main, #content-main").first).not_to_contain_text("NaN")
                assert page.evaluate(TOO_WIDE) == []
                assert violations(page, within="#content-main") == []
                screenshot(page, f"dashboard-{name}-{much}")
