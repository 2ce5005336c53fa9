"""The task page in a real browser: keys, saving, the time, the cover, and what axe says of it.

The server runs in a thread on the test database, which is emptied once at the end: each test makes a worker and a study
of its own. Where time matters it is the browser's own clock, wound on by the test.
"""

from datetime import timedelta

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from playwright.sync_api import expect

from annotator import inviting
from annotator.models import Annotation, Assignment
from annotator.questions import QUESTIONS
from annotator.views.access import SESSION_KEY
from tests.browser.accessibility import violations
from tests.browser.conftest import wait_for
from tests.factories import accept, consenting_worker, make_generation, make_hit, make_hit_type

WIDE = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LOG_IN_ENDED = "Not saved yet: your log-in has ended. Keep this page open, and open your invite link in another tab."
UNREACHABLE = "Not saved yet: the server cannot be reached. Keep this page open; it tries again by itself."
ANSWERED = {
    "human_or_ai": "ai",
    "harmful_if_ai": 3,
    "harmful_if_human": 2,
    "pos_stereo": "no",
    "harmful_intent": 1,
    "lewd": "maybe",
    "which_group": "indirectly",
    "group_framing": "none",
    "fact_or_opinion": "neither",
}


class Annotator:
    """A worker at a statement, and their browsers."""

    def __init__(self, browser, site, **preferences):
        self.browser, self.site, self.contexts, self.errors = browser, site, [], []
        self.worker = consenting_worker(**preferences)
        self.invitation = self.worker.invitations.create()
        study = make_hit_type()
        for text in ("the library opens at nine on weekdays", "the bakery closes at noon on sundays"):
            make_hit(generation=make_generation(text, method="written"), hit_type=study)
        self.assignment = accept(self.worker, hit_type=study)
        self.url = f"{site}/task/{self.assignment.key}/"

    def opens_the_task(self, *, clock=False, **options):
        """The task in a new browser that is logged in; with ``clock`` its time can be wound on."""
        context = self.browser.new_context(**WIDE | options)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("console", lambda message: self.errors.append(message.text) if "Policy" in message.text else None)
        self.contexts.append(context)
        session = SessionStore()
        session[SESSION_KEY] = self.invitation.pk
        session.save()
        context.add_cookies([{"name": "sessionid", "value": session.session_key, "url": self.site}])
        page = context.new_page()
        if clock:
            page.clock.install()
        page.goto(self.url)
        return page

    def opens_the_invite_link(self, context):
        page = context.new_page()
        page.goto(inviting.link(self.invitation).replace("http://localhost:8000", self.site))

    def changes(self, **fields):
        Assignment.objects.filter(pk=self.assignment.pk).update(**fields)

    @property
    def draft(self):
        self.assignment.refresh_from_db()
        return self.assignment.draft


@pytest.fixture(scope="module")
def transactional_db(django_db_setup, django_db_blocker):
    """In place of pytest-django's: emptied after all tests of this file and not after each, which takes longer."""
    with django_db_blocker.unblock():
        assert connection.settings_dict["NAME"].startswith("test_")
        yield
        call_command("flush", interactive=False, verbosity=0)


@pytest.fixture
def annotator(browser, transactional_db, live_server):
    made = []

    def make(**preferences):
        made.append(Annotator(browser, live_server.url, **preferences))
        return made[-1]

    yield make
    for one in made:
        for context in one.contexts:
            context.close()
        assert one.errors == []


def choose(page, key, value):
    page.locator(f"label:has([name={key}][value='{value}'])").click()


def chosen(page):
    """What the form holds, by field."""
    fields = page.evaluate("Object.fromEntries(new FormData(document.getElementById('answers')))")
    return {name: value for name, value in fields.items() if value and name != "csrfmiddlewaretoken"}


def focused(page):
    return page.evaluate("document.activeElement.name || document.activeElement.tagName")


def saved(page):
    return page.locator("#saved")


# --- Keys


def test_keys_alone_answer_everything_and_submit(annotator):
    one = annotator()
    page = one.opens_the_task()
    focus = []
    for key in "a32n1m274":
        page.keyboard.press(key)
        focus.append(focused(page))
    assert focus == [*(question.key for question in QUESTIONS[1:]), "BUTTON"]
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != one.url)
    assert Annotation.objects.get(assignment=one.assignment).answers == ANSWERED


def test_a_key_answers_the_question_that_has_the_focus_and_no_text_is_taken_for_keys(annotator):
    page = annotator().opens_the_task()
    choose(page, "lewd", "yes")
    page.keyboard.press("n")
    assert (chosen(page), focused(page)) == ({"lewd": "no"}, "which_group")
    page.keyboard.press("y")  # no key of this question: what the browser does with it is its own affair
    page.keyboard.press("4")
    assert (chosen(page)["which_group"], focused(page)) == ("other_groups", "other_groups")
    page.keyboard.type("a3nu")
    assert chosen(page) == {"lewd": "no", "which_group": "other_groups", "other_groups": "a3nu"}
    expect(page.locator("#cover")).not_to_have_attribute("open", "")


def test_keys_with_control_alt_or_meta_are_the_browsers(annotator):
    page = annotator().opens_the_task()
    for modifier in ("Control", "Alt", "Meta"):
        page.keyboard.press(f"{modifier}+h")
        page.keyboard.press(f"{modifier}+u")
    assert chosen(page) == {}
    expect(page.locator("blockquote")).to_be_hidden()


def test_keys_that_are_turned_off_do_nothing_and_are_not_shown(annotator):
    page = annotator(uses_shortcuts=False).opens_the_task()
    page.keyboard.press("a")
    page.keyboard.press("u")
    assert chosen(page) == {}
    expect(page.locator("blockquote")).to_be_hidden()
    assert page.locator("kbd").count() == 0


def test_keys_are_shown_where_there_is_a_script_and_a_keyboard(annotator):
    one = annotator()
    expect(one.opens_the_task().locator("kbd:visible")).to_have_count(18)
    expect(one.opens_the_task(**PHONE).locator("kbd:visible")).to_have_count(0)
    expect(one.opens_the_task(java_script_enabled=False).locator("kbd:visible")).to_have_count(0)


# --- Saving


def test_what_is_typed_is_saved_and_there_after_a_reload_and_in_a_second_browser(annotator):
    one = annotator()
    page = one.opens_the_task()
    choose(page, "human_or_ai", "human")
    page.locator("[name=group_framing]").select_option("other")
    page.locator("[name=other_framing]").fill("It praises “them”.")
    page.locator("[name=not_understood]").check()
    expect(saved(page)).to_have_text("Saved")
    typed = {"human_or_ai": "human", "group_framing": "other", "other_framing": "It praises “them”."}
    typed["not_understood"] = "on"
    assert one.draft == typed
    page.reload()
    assert chosen(page) == typed
    assert chosen(one.opens_the_task(**PHONE)) == typed
    expect(page.locator("#kept")).to_be_hidden()


def test_a_page_that_is_left_at_once_is_saved_too(annotator):
    one = annotator()
    page = one.opens_the_task()
    choose(page, "lewd", "no")
    page.goto(one.site)
    assert wait_for(lambda: one.draft, 5) == {"lewd": "no"}


def test_when_the_log_in_has_ended_the_page_says_so_and_saves_after_the_next(annotator):
    one = annotator()
    page = one.opens_the_task(clock=True)
    page.context.clear_cookies(name="sessionid")
    choose(page, "lewd", "no")
    page.clock.run_for(1100)
    expect(saved(page)).to_have_text(LOG_IN_ENDED)
    assert one.draft is None
    one.opens_the_invite_link(page.context)
    page.clock.run_for(3100)
    expect(saved(page)).to_have_text("Saved")
    assert one.draft == {"lewd": "no"}


def test_what_could_not_be_saved_is_offered_when_the_page_is_opened_again(annotator):
    one = annotator()
    page = one.opens_the_task()
    page.context.set_offline(True)
    choose(page, "lewd", "no")
    page.locator("[name=other_groups]").fill("cyclists")
    expect(saved(page)).to_have_text(UNREACHABLE)
    assert page.evaluate("Object.keys(localStorage).length") == 1
    page.close()
    page = one.contexts[0].new_page()
    page.context.set_offline(False)
    page.goto(one.url)
    assert chosen(page) == {}
    page.get_by_role("button", name="Put them back").click()
    assert chosen(page) == {"lewd": "no", "other_groups": "cyclists"}
    expect(saved(page)).to_have_text("Saved")
    assert one.draft == {"lewd": "no", "other_groups": "cyclists"}
    page.locator("[name=not_understood]").check()
    page.get_by_role("button", name="Submit and see the next").click()
    page.wait_for_url(lambda url: url != one.url)
    assert page.evaluate("Object.keys(localStorage)") == []


def test_for_a_statement_that_was_returned_elsewhere_nothing_more_is_tried(annotator):
    one = annotator()
    page = one.opens_the_task(clock=True)
    one.changes(status="returned", given_back_at=timezone.now(), holds_place=False)
    sent = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    choose(page, "lewd", "no")
    page.clock.run_for(1100)
    expect(saved(page)).to_have_text("Not saved: you submitted or returned this statement elsewhere.")
    page.clock.run_for(120_000)
    assert sent == [f"{one.url}draft/"]


# --- The time


def test_the_time_left_runs_and_is_said_aloud_at_five_minutes_at_one_and_at_the_end(annotator):
    one = annotator()
    one.changes(deadline=timezone.now() + timedelta(minutes=30))
    page = one.opens_the_task(clock=True)
    time, spoken = page.locator("#time"), page.locator("#time-spoken")
    expect(time).to_have_text("30 minutes left")
    said = []
    for seconds in (180, 1280, 60, 200):
        page.clock.fast_forward(seconds * 1000)
        said.append((time.inner_text(), spoken.text_content()))
    assert said == [
        ("27 minutes left", ""),
        ("6 minutes left", ""),
        ("5 minutes left", "5 minutes left."),
        ("1 minute left", "5 minutes left."),
    ]
    page.clock.run_for(40_000)
    assert (time.inner_text(), spoken.text_content()) == ("less than a minute left", "1 minute left.")
    page.clock.run_for(50_000)
    over = "The time is over. Answers are still kept and paid."
    assert (time.inner_text(), spoken.text_content()) == (over, over)


# --- The cover


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without"])
def test_a_statement_is_covered_until_it_is_asked_for_and_again_after_a_reload(annotator, script):
    page = annotator().opens_the_task(java_script_enabled=script)
    statement, group = page.locator("blockquote"), page.locator(".group")
    for _ in range(2):
        expect(statement).to_be_hidden()
        expect(group).to_be_visible()
        page.get_by_text("Show the text").click()
        expect(statement).to_be_visible()
        page.reload()


def test_the_key_u_uncovers_and_covers(annotator):
    page = annotator().opens_the_task()
    page.keyboard.press("u")
    expect(page.locator("blockquote")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("blockquote")).to_be_hidden()


def test_the_text_stays_in_sight_after_a_submit_that_lacks_answers_and_its_links_lead_to_the_questions(annotator):
    page = annotator().opens_the_task()
    page.get_by_text("Show the text").click()
    page.get_by_role("button", name="Submit and see the next").click()
    expect(page.locator(".summary")).to_be_focused()
    expect(page.locator("blockquote")).to_be_visible()
    page.get_by_role("link", name="Question 3").click()
    expect(page.locator("#harmful_if_human")).to_be_focused()


# --- Giving back


@pytest.mark.parametrize("button", ["Return this statement, without penalty", "Stop, keep my pay"])
def test_who_has_begun_to_answer_is_asked_before_the_statement_is_given_back(annotator, button):
    one = annotator()
    page = one.opens_the_task()
    choose(page, "lewd", "no")
    asked = []
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    page.get_by_role("button", name=button).click()
    assert asked[0].startswith("You have begun to answer.")
    assert page.url == one.url
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name=button).click()
    page.wait_for_url(lambda url: url != one.url)
    one.assignment.refresh_from_db()
    assert one.assignment.status == "returned"


def test_who_has_answered_nothing_is_not_asked(annotator):
    one = annotator()
    page = one.opens_the_task()
    page.get_by_role("button", name="Return this statement, without penalty").click()
    page.wait_for_url(lambda url: url != one.url)


# --- The page as a whole


def test_the_first_view_takes_one_request_besides_static_files(annotator):
    one = annotator()
    page = one.opens_the_task()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload(wait_until="networkidle")
    assert [url for url in asked if "/static/" not in url] == [one.url]


@pytest.mark.parametrize("options", [WIDE, PHONE | {"color_scheme": "dark"}], ids=["wide", "phone, dark"])
def test_axe_finds_nothing_on_the_task_page(annotator, options):
    page = annotator().opens_the_task(**options)
    assert violations(page) == []
    page.get_by_text("Show the text").click()
    page.get_by_role("button", name="Submit and see the next").click()
    expect(page.locator(".summary")).to_be_focused()
    assert violations(page) == []


def test_on_a_phone_nothing_is_too_small_or_too_wide_and_the_bar_has_two_rows(annotator):
    page = annotator().opens_the_task(**PHONE)
    page.get_by_text("Show the text").click()
    small = page.evaluate(
        """[...document.querySelectorAll("button, summary, select, .bar a, .to-more, .choices label, .scale label")]
           .filter((element) => element.checkVisibility() && element.getBoundingClientRect().height < 44)
           .map((element) => element.outerHTML)"""
    )
    assert small == []
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["viewport"]["width"]
    assert page.locator("header").bounding_box()["height"] <= 2 * 44 + 1


@pytest.mark.parametrize("path", ["/", "/work/", "/preferences/"])
def test_on_a_phone_the_bar_has_two_rows_on_every_page(annotator, path):
    one = annotator()
    page = one.opens_the_task(**PHONE)
    page.goto(f"{one.site}{path}")
    assert page.locator("header").bounding_box()["height"] <= 2 * 44 + 1
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["viewport"]["width"]


def test_tab_leads_through_the_page_in_the_order_in_which_it_is_read(annotator):
    page = annotator().opens_the_task()
    names = []
    for _ in range(15):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.name || document.activeElement.textContent.trim()"))
    assert names[:8] == [
        "Skip to the content",
        "Humanval",
        "Work and pay",
        "Preferences",
        "Stop, keep my pay",
        "Show the textCover the text U",
        "not_understood",
        "Return this statement, without penalty",
    ]
    after_help = names[names.index("preferences") :]
    assert after_help[:4] == ["preferences", "human_or_ai", "harmful_if_ai", "harmful_if_human"]
