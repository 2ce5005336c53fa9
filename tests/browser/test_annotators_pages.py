"""Every page that an annotator can reach, wide and on a phone, light and dark: axe finds nothing, nothing sticks out.

The screenshots stay in ``var/test/screenshots``; ``make pictures`` copies some of them into docs/.
"""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotator import inviting
from annotator.models import Assignment
from tests.browser.accessibility import violations
from tests.browser.conftest import SCREENSHOTS, follow
from tests.browser.world import World
from tests.factories import accept

pytestmark = pytest.mark.django_db(transaction=True)

LOOKS = {
    "1280": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "390": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "is_mobile": True, "has_touch": True},
}


@pytest.fixture
def world():
    return World()


@pytest.fixture(params=LOOKS)
def look(request):
    return request.param


@pytest.fixture
def page(browser, live_server, look):
    context = browser.new_context(base_url=live_server.url, **LOOKS[look])
    yield context.new_page()
    context.close()


def test_every_page_of_an_annotator_is_accessible_and_fits(page, world, look):
    faults = []

    def see(name, address=None):
        if address:
            page.goto(address)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"annotator-{name}-{look}.png", full_page=True)
        page.screenshot(path=SCREENSHOTS / f"annotator-{name}-{look}-first-view.png")
        faults.extend(f"{name}: {fault}" for fault in violations(page))
        if page.evaluate("document.documentElement.scrollWidth") > LOOKS[look]["viewport"]["width"]:
            faults.append(f"{name}: it is wider than the screen")

    see("welcome", "/")
    see("join", world.path(inviting.panel_link(world.panel)))
    follow(page, page.get_by_role("button", name="Take part"))
    see("joined")
    page.context.clear_cookies()
    see("refused", "/work/")
    world.log_in(page, world.newcomer)
    see("consent")
    page.get_by_role("button", name="I agree").click()  # not ticked: the browser says so and stays
    follow(page, page.get_by_role("link", name="I do not want to take part"))
    see("declined")
    page.context.clear_cookies()
    world.log_in(page, world.worker)
    see("home")
    see("preview", f"/study/{world.study.pk}/")
    task = accept(world.worker, hit_type=world.study)
    see("task-covered", f"/task/{task.key}/")
    page.get_by_text("Show the text").click()
    see("task")
    follow(page, page.get_by_role("button", name="Submit"))
    see("task-missing")
    Assignment.objects.filter(pk=task.pk).update(
        accepted_at=timezone.now() - timedelta(minutes=21), working_since=timezone.now() - timedelta(minutes=21)
    )
    see("break", f"/study/{world.study.pk}/break/")
    see("own-work", "/work/")
    see("preferences", "/preferences/")
    see("help", "/help/")
    see("survey", "/survey/")
    see("withdraw", "/withdraw/")
    page.goto("/")
    follow(page, page.get_by_role("button", name="Stop"))
    see("debrief")
    assert faults == []
