"""The workspace's pages about people, pay and review, at work; the screenshots are looked at and go into the guide."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotator.models import Assignment
from tests.browser.conftest import SCREENSHOTS, follow
from tests.browser.visiting import PHONE, WIDE, workspace_of
from tests.browser.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def world():
    world = World()
    world.others_work()
    return world


@pytest.fixture
def page(browser, live_server, world):
    with workspace_of(live_server, browser) as page:
        yield page


def test_work_is_reviewed_and_a_study_that_became_too_slow_is_topped_up(page, world):
    def see(name, address=None):
        if address:
            page.goto(address)
        for size in (PHONE, WIDE):
            page.set_viewport_size(size)
            page.screenshot(path=SCREENSHOTS / f"{name}-{size['width']}.png", full_page=True)

    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    see("review", "/admin/annotator/assignment/review/")
    page.screenshot(path=SCREENSHOTS / "review-first-view.png")
    page.locator("input[name=ids]").first.check()
    follow(page, page.locator("button[value=approve]"))
    see("review-approved")
    assert Assignment.objects.filter(status="approved").count() == 2

    Assignment.objects.update(accepted_at=timezone.now() - timedelta(minutes=4))
    see("study-pay", f"/admin/annotator/hittype/{world.study.pk}/change/")
    page.locator("section[aria-labelledby=pay-heading]").screenshot(path=SCREENSHOTS / "study-pay-first-view.png")
    follow(page, page.get_by_role("button", name="Top up"))
    see("study-topped-up")
    world.study.refresh_from_db()
    assert world.study.reward > 0.25

    for name in ("payment", "payout", "panel", "knownanswers", "worker", "qualification", "helpline", "consentform"):
        see(f"list-{name}", f"/admin/annotator/{name}/")
    see("demographics", "/admin/demographics/")
