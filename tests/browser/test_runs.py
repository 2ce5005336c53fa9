"""A run from its form to its end, as a researcher sees it: what it will be, two workers at it, and the same again."""

import pytest
from playwright.sync_api import expect

from generation import chunks, working
from generation.counting import count_near_duplicates
from generation.models import GenerationRun
from tests.browser.accessibility import violations
from tests.browser.conftest import SCREENSHOTS, follow
from tests.browser.visiting import PHONE, WIDE, workspace_of
from tests.factories import make_demonstrations, make_group, make_run
from tests.generation import toys
from tests.generation.concurrency import start

pytestmark = pytest.mark.django_db(transaction=True)

OURS = "#content-main"


@pytest.fixture
def toy(monkeypatch):
    model, classifier = toys.chatterbox(), toys.ToyClassifier()
    monkeypatch.setattr(working, "load_language_model", lambda name, **_: model)
    monkeypatch.setattr(working, "load_classifier", lambda name, **_: classifier)


@pytest.fixture
def page(browser, live_server, toy):
    for slug, name in (("women", "Women"), ("asian", "Asian"), ("muslim", "Muslim")):
        group = make_group(slug, name=name)
        make_demonstrations(group)
        if slug != "muslim":
            make_demonstrations(group, label="toxic", texts=[f"placeholder {number}" for number in range(6)])
    measured = make_run(count=40)
    measured.cells.update(stored=40, decoding_seconds=60)
    GenerationRun.objects.update(state="finished", ended_at=measured.created_at, environment={"device": "cpu"})
    with workspace_of(live_server, browser, groups=["researcher"]) as page:
        yield page


def see(page, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for size in (PHONE, WIDE):
        page.set_viewport_size(size)
        page.screenshot(path=SCREENSHOTS / f"{name}-{size['width']}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], (name, size)
    assert violations(page, within=OURS) == [], name


def test_a_run_is_started_watched_with_two_workers_to_its_end_and_repeated(page):
    page.goto("/admin/generation/generationrun/add/")
    expect(page.get_by_text("No group and label is chosen yet.")).to_be_visible()
    page.get_by_role("checkbox", name="Women (7 benign, 6 toxic)").check()
    page.get_by_role("checkbox", name="Muslim").check()
    page.locator("#id_language_model").fill("toy")
    expect(page.get_by_text("1 set is too small to draw prompts from:")).to_be_visible()
    see(page, "runs-form-too-small")
    page.get_by_role("checkbox", name="Muslim").uncheck()
    page.get_by_role("checkbox", name="Asian").check()
    page.locator("#id_count").fill("40")
    expect(page.get_by_text("160 statements")).to_be_visible()
    expect(page.get_by_text("About 4 minutes with one worker, measured on run")).to_be_visible()
    see(page, "runs-form")
    follow(page, page.get_by_role("button", name="Start the run"))

    run = GenerationRun.objects.first()
    expect(page.get_by_text("0 of 160 statements")).to_be_visible()
    held = chunks.lease_next_chunk(run_id=run.pk)
    working.work_on_chunk(chunk=held)
    expect(page.get_by_role("row").filter(has_text="16 of 40")).to_have_count(1)
    for future in [start(lambda: work_on_half_of(run)) for _ in range(2)]:
        future.result(30)
    expect(page.get_by_text("136 of 160 statements")).to_be_visible()
    in_hand = [chunks.lease_next_chunk(run_id=run.pk) for _ in range(2)]
    expect(page.locator("dt:has-text('Workers on it') + dd")).to_have_text("2")
    page.reload()
    page.screenshot(path=SCREENSHOTS / "runs-at-work-first-view.png")
    see(page, "runs-at-work")
    for chunk in in_hand:
        chunks.give_back_chunk(chunk=chunk)
    for future in [start(lambda: working.work_on_run(run_id=run.pk)) for _ in range(2)]:
        future.result(30)
    count_near_duplicates(run_id=run.pk)
    expect(page.get_by_text("Finished: 160 of 160 statements")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="40 of 40")).to_have_count(4)
    see(page, "runs-finished")

    with page.expect_download() as download:
        page.get_by_role("link", name="Download all that it takes (JSON)").click()
    assert download.value.suggested_filename == f"run-{run.pk}.json"
    follow(page, page.get_by_role("button", name="Repeat this run"))
    again = GenerationRun.objects.first()
    assert again.repeats == run
    working.work_on_run(run_id=again.pk)
    expect(page.get_by_text("Finished: 160 of 160 statements")).to_be_visible()
    expect(page.get_by_text("the same versions of everything")).to_be_visible()
    texts = [set(each.generations.values_list("prompt__text", "seed")) for each in (run, again)]
    assert len(texts[0] & texts[1]) >= 150
    see(page, "runs-repeated")
    page.goto("/admin/generation/generationrun/")
    see(page, "runs-list")


def work_on_half_of(run):
    """Some chunks, one after the other, as a worker of its own."""
    for _ in range(4):
        chunk = chunks.lease_next_chunk(run_id=run.pk)
        working.work_on_chunk(chunk=chunk)
