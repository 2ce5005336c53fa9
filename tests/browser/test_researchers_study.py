"""A researcher's whole study in the workspace that ``make run`` serves: a set, a run, a study, an export.

The real language model writes, on the real queue; the run has two workers.
"""

import csv
import subprocess
import sys
from contextlib import contextmanager

from playwright.sync_api import expect

from tests.browser.conftest import MINUTES, ROOT, follow
from tests.browser.visiting import WIDE, screenshot, workspace

A_GROUP = 48
STATEMENTS = 2 * A_GROUP
PATIENCE = 5 * MINUTES * 1000


def test_a_researcher_grows_a_set_runs_it_publishes_a_study_and_takes_the_data_away(site, browser):
    page = workspace(site, browser, WIDE)
    with another_worker(site) as log:
        a_set_is_grown(page, site)
        run = a_run_is_watched_to_its_end(page, site, log)
    a_study_of_it_is_published(page, site, run)
    its_statements_are_downloaded(page, site, run)
    the_audit_trail_has_it_all(page, site)


def a_set_is_grown(page, site):
    page.goto(f"{site.url}/admin/generation/demonstration/sets/women/benign/")
    size = page.locator("#set-size strong")
    before = int(size.inner_text())
    page.get_by_text("How the responses are written").click()
    page.get_by_label("Responses").fill("4")
    page.get_by_label("Tokens at most").fill("16")
    follow(page, page.get_by_role("button", name="Draw a prompt"))
    expect(page.get_by_role("heading", name="Response 1", exact=True)).to_be_visible(timeout=PATIENCE)
    first = page.locator(".card").first
    first.get_by_text("Edit first").click()
    first.get_by_label("As it goes into the set").fill("my aunt won the regatta and now teaches sailing")
    first.get_by_role("button", name="Promote as edited").click()
    expect(first.get_by_text("In the set")).to_be_visible()
    expect(size).to_have_text(str(before + 1))
    screenshot(page, "study-trial")


@contextmanager
def another_worker(site):
    """A second worker on the queue ``generation``, beside the one of ``make run``; yields where it logs."""
    log = site.state / "second-worker.txt"
    command = [
        sys.executable, "-m", "celery", "--quiet", "--app", "config", "worker", "--queues", "generation",
        "--pool", "solo", "--hostname", "second@%h", "--loglevel", "warning",
    ]  # fmt: skip
    with log.open("w") as out:
        environment = {**site.environment, "HUMANVAL_HTTPS": "0", "HUMANVAL_LOG_FORMAT": "text"}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield log
        finally:
            process.terminate()
            process.wait(timeout=MINUTES)


def a_run_is_watched_to_its_end(page, site, log):
    """With the other worker at it, too; return the run's number."""
    page.goto(f"{site.url}/admin/generation/generationrun/add/")
    page.get_by_role("checkbox", name="toxic", exact=True).uncheck()
    page.get_by_role("checkbox", name="Women").check()
    page.get_by_role("checkbox", name="Asian").check()
    page.locator("#id_count").fill(str(A_GROUP))
    page.locator("#id_max_new_tokens").fill("16")
    expect(page.locator("#outlook")).to_contain_text(f"{STATEMENTS} statements", timeout=MINUTES * 1000)
    follow(page, page.get_by_role("button", name="Start the run"))
    run = page.url.split("/generationrun/")[1].split("/")[0]
    expect(page.get_by_text(f"Finished: {STATEMENTS} of {STATEMENTS} statements")).to_be_visible(timeout=2 * PATIENCE)
    screenshot(page, "study-run")
    wrote = [text.count(f"run={run} ") for text in chunk_lines(log, site.state / "output.txt")]
    assert all(wrote), f"the second worker and the first stored {wrote} chunks"
    return run


def chunk_lines(*logs):
    """The lines of each log about stored chunks, as one text."""
    for log in logs:
        lines = log.read_text().splitlines()
        yield "\n".join(f"{line} " for line in lines if "chunk_stored" in line)


def a_study_of_it_is_published(page, site, run):
    page.goto(f"{site.url}/admin/annotator/hittype/add/")
    page.locator("#id_title").fill("Statements of two groups")
    page.locator("#id_description").fill("Read a statement and answer nine questions about it.")
    follow(page, page.get_by_role("button", name="Save and continue editing"))
    follow(page, page.get_by_role("link", name="Choose statements"))
    page.get_by_label("Where they come from").select_option(run)
    page.get_by_label("Statements of each cell").fill("10")
    follow(page, page.get_by_role("button", name="Preview"))
    screenshot(page, "study-chosen")
    follow(page, page.get_by_role("button", name="Publish 20 statements"))
    expect(page.get_by_text("20 HITs published")).to_be_visible()
    screenshot(page, "study-published")


def its_statements_are_downloaded(page, site, run):
    page.goto(f"{site.url}/admin/export/")
    page.get_by_text("Which rows").click()
    page.get_by_label("Run").fill(run)
    with page.expect_download() as download:
        page.get_by_role("button", name="train.csv").click()
    with open(download.value.path(), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == STATEMENTS
    assert {row["group"] for row in rows} == {"women", "asian"}
    assert {row["generation_method"] for row in rows} == {"TopK"}


def the_audit_trail_has_it_all(page, site):
    page.goto(f"{site.url}/admin/generation/auditentry/")
    table = page.locator("#result_list")
    for act in ("responses asked for", "run started", "statements published", "train exported"):
        expect(table.get_by_text(act).first).to_be_visible()
    screenshot(page, "audit-trail")
