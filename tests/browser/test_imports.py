"""Importing in a browser: upload, watch, see what is wrong, take the faults home."""

import csv

import pytest

from analysis import uploads
from analysis.models import DataImport
from tests.browser.accessibility import violations
from tests.browser.conftest import CHROMIUM, SCREENSHOTS, follow  # noqa: F401
from tests.browser.visiting import PHONE, WIDE, workspace_of
from tests.factories import make_group

pytestmark = pytest.mark.django_db(transaction=True)

HEADER = "prompt,generation,generation_method,group,prompt_label,roberta_prediction\n"
ROWS = "".join(f"- one,the market opens at {hour},TopK,women,0,0.5\n" for hour in range(1, 10))
BAD = "- one,the ferry leaves at noon,beam,women,0,0.5\n- one,the lake is deep,TopK,women,0,7\n"


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without JavaScript"])
def page(request, browser, live_server):
    make_group()
    with workspace_of(live_server, browser, java_script_enabled=request.param) as page:
        page.has_scripts = request.param
        yield page


def see(page, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for size in (PHONE, WIDE):
        page.set_viewport_size(size)
        if page.has_scripts:
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"
            assert [found for found in violations(page) if "#content-main" in found or ".panel" in found] == []
            page.screenshot(path=SCREENSHOTS / f"{name}-{size['width']}.png", full_page=True)


def upload(page, content, name="train.csv"):
    page.goto("/admin/analysis/dataimport/add/")
    see(page, "import-upload")
    page.get_by_label("What the file holds").select_option("train")
    page.locator("input[type=file]").set_input_files({"name": name, "mimeType": "text/csv", "buffer": content.encode()})
    follow(page, page.get_by_role("button", name="Import"))
    record = DataImport.objects.latest("pk")
    assert (record.file_name, record.options) == (name, {})
    return record


def test_a_file_is_uploaded_watched_and_its_faults_are_taken_home(page, settings, tmp_path):
    settings.VAR = tmp_path
    record = upload(page, HEADER + ROWS)
    assert page.get_by_text("It waits for a worker.").is_visible()
    see(page, "import-waiting")
    uploads.work_on_import(import_id=record.pk)
    if page.has_scripts:
        page.get_by_text("Made: statements").wait_for()  # the page looks again by itself
    else:
        follow(page, page.get_by_role("link", name="Look again"))
    assert page.locator(".figures").inner_text().split() == [
        "Rows",
        "9",
        "New",
        "9",
        "There",
        "already",
        "0",
        "Bad",
        "0",
        "Made:",
        "prompts",
        "1",
        "Made:",
        "statements",
        "9",
    ]
    see(page, "import-finished")

    record = upload(page, HEADER + ROWS + BAD)
    uploads.work_on_import(import_id=record.pk)
    page.goto(f"/admin/analysis/dataimport/{record.pk}/change/")
    assert page.get_by_text("Nothing was stored: 2 of 11 rows are bad.").is_visible()
    see(page, "import-refused")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all faults (CSV)").click()
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert [(row["line"], row["column"]) for row in rows] == [("11", "generation_method"), ("12", "roberta_prediction")]
    page.goto("/admin/analysis/dataimport/")
    see(page, "import-list")
