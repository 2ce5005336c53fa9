"""A set of demonstrations grown by hand in a real browser, with the real language model in the loop."""

import pytest
from django.conf import settings

from generation import trying, working
from generation.models import Demonstration, Origin, Trial, Verdict
from tests.browser.accessibility import violations
from tests.browser.conftest import SCREENSHOTS, follow
from tests.browser.visiting import PHONE, WIDE, workspace_of
from tests.factories import DEMONSTRATIONS, make_demonstrations, make_group

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def women():
    group = make_group("women", naming_words="woman women aunt sister")
    make_demonstrations(group, texts=DEMONSTRATIONS)
    make_demonstrations(group, label="toxic", texts=[f"placeholder sentence {number}" for number in range(6)])
    return group


@pytest.fixture
def page(browser, live_server, women):
    with workspace_of(live_server, browser, groups=["researcher", "toxic sets"]) as page:
        yield page


def look(page, name):
    """Look at a page on both screens: nothing is wrong with it, and it fits."""
    for size in (PHONE, WIDE):
        page.set_viewport_size(size)
        page.wait_for_timeout(200)  # colours fade
        assert violations(page, within="#content-main") == [], (name, size)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], (name, size)
        page.screenshot(path=SCREENSHOTS / f"{name}-{size['width']}.png", full_page=True)


def test_a_set_is_grown_with_the_model_in_the_loop(page, women):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    working.load_language_model(settings.LANGUAGE_MODEL)
    page.goto("/admin/")
    follow(page, page.get_by_role("link", name="Demonstrations"))
    look(page, "sets")
    follow(page, page.get_by_role("link", name="Women, benign: 7 in use"))

    page.get_by_text("How the responses are written").click()
    page.get_by_label("Responses").fill("5")
    page.get_by_label("Tokens at most").fill("12")
    follow(page, page.get_by_role("button", name="Draw a prompt"))
    assert page.get_by_text("Waiting for a worker.").is_visible()
    trying.work_on_trial(trial_id=Trial.objects.get().pk)
    page.get_by_role("heading", name="Response 1", exact=True).wait_for()

    first, second, third = (page.locator(".card").nth(number) for number in range(3))
    first.get_by_role("button", name="Promote response 1").click()
    first.get_by_text("In the set").wait_for()
    assert page.locator("#set-size strong").inner_text() == "8"

    second.get_by_text("Edit first").click()
    second.get_by_label("As it goes into the set").fill("my aunt sails round the world")
    second.get_by_role("button", name="Promote as edited").click()
    second.get_by_text("In the set").wait_for()

    third.get_by_text("Mark as bad").first.click()
    third.get_by_label("makes no sense").check()
    third.get_by_label("Note").fill("it repeats itself")
    look(page, "trial")
    third.get_by_role("button", name="Mark as bad").click()
    third.get_by_text("makes no sense – it repeats itself").wait_for()
    first.get_by_role("button", name="Undo (response 1)").click()
    first.get_by_role("button", name="Promote response 1").wait_for()
    look(page, "trial-judged")
    page.evaluate("window.scrollTo(0, 0)")
    page.screenshot(path=SCREENSHOTS / "trial-first-view.png")
    follow(page, page.get_by_role("link", name="Show the texts"))
    assert page.locator(".blurred").count() == 0

    verdicts = list(Trial.objects.get().responses.values_list("verdict", flat=True)[:3])
    assert verdicts == [Verdict.UNDECIDED, Verdict.PROMOTED, Verdict.BAD]
    assert Demonstration.objects.get(origin=Origin.PROMOTED, retired_at=None).text == "my aunt sails round the world"

    follow(page, page.get_by_role("link", name="Women, benign"))
    page.locator("tr", has_text="our neighbor repairs old radios").get_by_text("Change").click()
    look(page, "set-tried")
    page.get_by_label("Why it is a bad example").locator("visible=true").fill("not about women")
    follow(page, page.get_by_role("button", name="Retire").locator("visible=true"))
    assert page.get_by_text("not about women").is_visible()
    follow(page, page.get_by_role("link", name="Who changed what"))
    look(page, "set-history")

    page.goto("/admin/generation/demonstration/sets/women/toxic/")
    assert page.locator("table .blurred").count() == 6 * 2  # the sentence, and the field to edit it
    look(page, "set-toxic")
