"""How browser tests come to a page: logged in, on a screen of some size, failing on what the browser complains of."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SCREENSHOTS, follow

WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


def log_in(page, name, password):
    """Fill in the workspace's log-in page, which is shown."""
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    follow(page, page.get_by_role("button", name="Log in"))


def workspace(site, browser, viewport, **options):
    """A page on which the researcher is logged in."""
    page = new_context(browser, viewport=viewport, **options).new_page()
    page.goto(f"{site.url}/admin/")
    log_in(page, "researcher", site.logins["researcher"])
    expect(page.get_by_text("The way of a statement")).to_be_visible()
    return page


def new_context(browser, **options):
    """A browser context in which a page that breaks its content security policy fails the test."""
    context = browser.new_context(**options)
    context.on("console", lambda message: fail_on_violation(message.text))
    context.on("weberror", lambda error: pytest.fail(f"JavaScript error: {error.error}"))
    return context


def fail_on_violation(text):
    assert "Content Security Policy" not in text, text


def screenshot(page, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}-{page.viewport_size['width']}.png", full_page=True)
