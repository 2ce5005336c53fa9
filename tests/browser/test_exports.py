"""The export page at work: readable on a wide screen and a phone, with and without JavaScript; files come out of it."""

import csv

import pyarrow.parquet
import pytest

from tests.browser.accessibility import violations
from tests.browser.conftest import SCREENSHOTS, follow
from tests.browser.visiting import PHONE, WIDE, workspace_of
from tests.browser.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(browser, live_server):
    World().others_work()
    with workspace_of(live_server, browser, color_scheme="light") as page:
        yield page


def downloaded(page, button):
    with page.expect_download() as download:
        page.get_by_role("button", name=button, exact=True).click()
    return download.value.path()


def test_rows_are_chosen_and_come_out_as_files(page):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.goto("/admin/export/")
    assert page.get_by_text("may hurt").is_visible()
    page.get_by_text("Which rows").click()
    for size in (PHONE, WIDE):
        page.set_viewport_size(size)
        page.screenshot(path=SCREENSHOTS / f"export-{size['width']}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert violations(page, within="#content-main") == []

    with open(downloaded(page, "annotations.csv"), encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == 11
    page.get_by_label("Groups").select_option("physical_dis")
    page.get_by_label("Annotations", exact=True).select_option("yes")
    table = pyarrow.parquet.read_table(downloaded(page, "annotations.parquet"))
    assert set(table["counted"].to_pylist()) == {True}

    page.get_by_label("Classifier's score, from").fill("0.5")
    page.get_by_label("Classifier's score, to").fill("0.1")
    follow(page, page.get_by_role("button", name="annotations.csv", exact=True))
    assert page.get_by_text("The last score lies before the first").first.is_visible()
    assert page.get_by_label("Groups").input_value() == "physical_dis"
    page.screenshot(path=SCREENSHOTS / "export-wrong-1280.png", full_page=True)
