"""How browser tests come to a page: logged in, on a screen of some size, failing on what the browser complains of."""

from contextlib import contextmanager

from django.contrib.auth.models import Group, User
from playwright.sync_api import expect

from tests.browser.conftest import COMPLAINTS, SCREENSHOTS, follow

WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


PASSWORD = "a password for a test alone"


@contextmanager
def workspace_of(live_server, browser, *, groups=None, **options):
    """A page on which an admin is logged in, or somebody of the groups of users with these names."""
    from config.roles import give_permissions

    user = User.objects.create_user("ada", password=PASSWORD, is_staff=True, is_superuser=groups is None)
    if groups:
        give_permissions()  # a transactional test before this one has emptied the tables
        user.groups.set(Group.objects.filter(name__in=groups))
    context = new_context(browser, base_url=live_server.url, **{"viewport": WIDE, **options})
    page = context.new_page()
    page.goto("/admin/login/")
    log_in(page, "ada", PASSWORD)
    yield page
    context.close()


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
    """A browser context; breaking the content security policy and errors of JavaScript fail the test at its end."""
    context = browser.new_context(**options)
    context.on("console", lambda message: complain(message.text) if "Content Security Policy" in message.text else None)
    context.on("weberror", lambda error: complain(f"JavaScript error: {error.error}"))
    return context


def complain(words):
    COMPLAINTS.append(words)  # raising here would end the connection to the browser


def screenshot(page, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}-{page.viewport_size['width']}.png", full_page=True)
