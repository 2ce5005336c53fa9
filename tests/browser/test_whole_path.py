"""From one command to an agreement figure and a CSV, as three annotators and a researcher do it.

The screenshots stay in ``var/test/screenshots``; ``make pictures`` copies two of them into docs/.
"""

import csv
import zlib
from collections import defaultdict

import pytest
from playwright.sync_api import expect
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from tests.browser.conftest import MINUTES, SCREENSHOTS, follow, wait_for
from tests.browser.visiting import PHONE, WIDE, new_context, screenshot, workspace

STATEMENTS = 26
ANNOTATORS = [
    {"name": "wide", "covers": False, "viewport": WIDE},
    {"name": "phone", "covers": True, "viewport": PHONE, "has_touch": True, "is_mobile": True},
    {"name": "plain", "covers": True, "viewport": WIDE, "java_script_enabled": False, "color_scheme": "dark"},
]


def test_a_newcomer_gets_from_one_command_to_a_kappa_and_a_csv(site, browser):
    assert len(site.invite_links) == 3
    run_is_watched_to_its_end(site, browser)
    scores = defaultdict(list)
    for annotator, link in zip(ANNOTATORS, site.invite_links, strict=True):
        for text, harm in annotate_everything(site, browser, annotator, link):
            scores[text].append(harm)
    assert len(scores) == STATEMENTS
    assert {len(ratings) for ratings in scores.values()} == {3}
    classes = [[(harm > 3) - (harm < 3) for harm in ratings] for ratings in scores.values()]
    expected = fleiss_kappa(aggregate_raters(classes)[0])
    page = workspace(site, browser, WIDE)
    agreement_page_shows(page, site, expected)
    csv_has_every_annotation(page, site, scores)
    phone_page = workspace(site, browser, PHONE)
    phone_page.goto(f"{site.url}/admin/analyse/agreement/")
    screenshot(phone_page, "agreement")


def test_a_researcher_runs_alice_and_replays_how_it_found_a_statement(site, browser):
    page = workspace(site, browser, WIDE)
    run_address = alice_is_started(page, site)
    expect(page.get_by_text("Finished: 2 of 2 statements")).to_be_visible(timeout=5 * MINUTES * 1000)
    screenshot(page, "alice-run")
    follow(page, page.get_by_role("link", name="See its statements"))
    follow(page, page.get_by_role("rowheader").get_by_role("link").first)
    expect(page.get_by_role("heading", name="The 3 best of the search")).to_be_visible()
    screenshot(page, "alice-generation")
    generation_address = page.url
    page.get_by_role("button", name="Replay the search").click()
    expect(page.get_by_role("heading", name="Step 1 of")).to_be_visible(timeout=5 * MINUTES * 1000)
    expect(page.get_by_text("The replay found the stored statement again, letter by letter.")).to_be_visible()
    replay_address = page.url
    steps_are_turned(page)
    for name, address in (("run", run_address), ("generation", generation_address), ("replay", f"{page.url}")):
        phone_page = workspace(site, browser, PHONE)
        phone_page.goto(address)
        screenshot(phone_page, f"alice-{name}")
        assert phone_page.evaluate("document.documentElement.scrollWidth") == PHONE["width"], name
    replay_is_read_without_javascript(site, browser, replay_address)


def alice_is_started(page, site):
    """From the form, on which one value is wrong at first; return the address of the run's page."""
    page.goto(f"{site.url}/admin/generation/generationrun/add/")
    expect(page.locator("#id_beam")).to_be_hidden()
    page.locator("#id_method").select_option("alice")
    expect(page.locator("#id_beam")).to_be_visible()
    expect(page.locator("#id_k")).to_be_hidden()
    expect(page.get_by_text("what the classifier wrongly takes for toxic")).to_be_visible()
    page.get_by_role("checkbox", name="toxic", exact=True).uncheck()
    expect(page.get_by_text("what the classifier wrongly takes for benign")).to_be_hidden()
    page.get_by_role("checkbox", name="Women").check()
    expect(page.locator("#outlook")).to_contain_text("16 statements")
    for name, value in (
        ("count", 2), ("max_new_tokens", 12), ("seed", 5), ("vocabulary", 40), ("no_repeat_ngram_size", 3),
        ("n_best", 3), ("beam", 0),
    ):  # fmt: skip
        page.locator(f"#id_{name}").fill(str(value))
    follow(page, page.get_by_role("button", name="Start the run"))
    expect(page.get_by_text("Ensure this value is greater than or equal to 1.")).to_be_visible()
    assert page.locator("#id_max_new_tokens").input_value() == "12"
    screenshot(page, "alice-start")
    page.set_viewport_size(PHONE)
    screenshot(page, "alice-start")
    page.set_viewport_size(WIDE)
    page.locator("#id_beam").fill("5")
    follow(page, page.get_by_role("button", name="Start the run"))
    expect(page.get_by_role("heading", name="How it writes")).to_be_visible()
    screenshot(page, "alice-run-at-work")
    return page.url


def steps_are_turned(page):
    """With the arrow keys and with the links; the texts come into sight when they are asked for."""
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", name="Step 2 of")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("heading", name="Step 1 of")).to_be_visible()
    for step in (2, 3):  # The links swap the step in place: a click before that would follow the old one again.
        page.get_by_role("link", name="Next").click()
        expect(page.get_by_role("heading", name=f"Step {step} of")).to_be_visible()
    screenshot(page, "alice-replay-blurred")
    assert page.locator("#replay .blurred").count() > 10
    page.get_by_role("link", name="Show the texts").click()
    expect(page.locator("#replay .blurred")).to_have_count(0)
    screenshot(page, "alice-replay")


def replay_is_read_without_javascript(site, browser, address):
    page = workspace(site, browser, WIDE, java_script_enabled=False, color_scheme="dark")
    page.goto(f"{address}?step=2")
    expect(page.get_by_role("heading", name="Step 2 of")).to_be_visible()
    follow(page, page.get_by_role("link", name="Next"))
    expect(page.get_by_role("heading", name="Step 3 of")).to_be_visible()
    screenshot(page, "alice-replay-plain")
    page.goto(f"{site.url}/admin/generation/generationrun/add/")
    expect(page.locator("#id_method")).to_be_visible()
    expect(page.locator("#id_k")).to_be_visible()


def run_is_watched_to_its_end(site, browser):
    page = workspace(site, browser, WIDE)
    screenshot(page, "workspace")
    page.goto(f"{site.url}/admin/generation/generationrun/")
    follow(page, page.get_by_role("link", name="run 1").first)
    screenshot(page, "run")
    expect(page.get_by_text("Finished: 26 of 26 statements")).to_be_visible(timeout=10 * MINUTES * 1000)
    screenshot(page, "run-finished")
    for name in ("generation/generation", "annotator/hit", "annotator/hittype", "annotator/invitation"):
        page.goto(f"{site.url}/admin/{name}/")
        screenshot(page, name.split("/")[1])
    page.goto(f"{site.url}/admin/generation/generationrun/add/")
    screenshot(page, "run-add")


def annotate_everything(site, browser, annotator, link):
    """Read the consent form, agree, and answer until nothing is left; yield statements and scores."""
    context = new_context(browser, **{key: value for key, value in annotator.items() if key not in ("name", "covers")})
    page = context.new_page()
    page.goto(link)
    assert page.url == f"{site.url}/consent/"
    screenshot(page, f"consent-{annotator['name']}")
    follow(page, page.get_by_role("link", name="I do not want to take part"))
    screenshot(page, f"declined-{annotator['name']}")
    page.goto(link)
    page.get_by_role("checkbox", name="I am 18 or older").check()
    page.get_by_role("checkbox", name="Keep each statement covered").set_checked(annotator["covers"])
    follow(page, page.get_by_role("button", name="I agree"))
    expect(page).to_have_url(f"{site.url}/")
    still_open = page.locator("dt:has-text('Still open for you') + dd")
    wait_for(lambda: page.goto(site.url) and still_open.inner_text() == str(STATEMENTS), MINUTES)
    screenshot(page, f"home-{annotator['name']}")
    follow(page, page.get_by_role("button", name="Take the first statement"))
    screenshot(page, f"task-{annotator['name']}")
    page.screenshot(path=SCREENSHOTS / f"task-{annotator['name']}-first-view.png")
    if annotator["covers"]:
        uncover(page)
    submit_with_answers_missing(page, annotator)
    for number in range(STATEMENTS):
        if annotator["covers"] and number:  # the first one was uncovered before, and stays so with its errors
            uncover(page)
        text = page.locator("blockquote").inner_text()
        harm = harm_of(text, annotator["name"])
        if number == 0 and annotator["name"] == "wide":
            answer_with_the_keyboard_alone(page, harm)
        else:
            answer(page, harm)
        yield text, harm
    expect(page.get_by_text("That was all: thank you.")).to_be_visible()
    screenshot(page, f"all-done-{annotator['name']}")
    follow(page, page.get_by_role("button", name="Stop, keep my pay"))
    expect(page.locator("dt:has-text('Statements done') + dd")).to_have_text(str(STATEMENTS))
    expect(page.locator("dt:has-text('Waiting for approval') + dd")).to_have_text("$6.50")
    screenshot(page, f"debrief-{annotator['name']}")
    follow(page, page.get_by_role("button", name="Log out of this browser"))
    expect(page.get_by_role("heading", name="People judge what machines write")).to_be_visible()
    context.close()


def uncover(page):
    expect(page.locator("blockquote")).to_be_hidden()
    page.get_by_text("Show the text").click()


def submit_with_answers_missing(page, annotator):
    """What was chosen is kept, what is missing is said, and the summary has the focus."""
    choose(page, "human_or_ai", "ai")
    follow(page, page.get_by_role("button", name="Submit and see the next"))
    expect(page.get_by_text("8 answers are missing or wrong.")).to_be_visible()
    assert page.locator("[name=human_or_ai][value=ai]").is_checked()
    if annotator.get("java_script_enabled", True):
        assert page.evaluate("document.activeElement.className") == "summary"
    screenshot(page, f"task-missing-{annotator['name']}")


def harm_of(text, name):
    """A score that depends on the statement, with one annotator of another mind now and then."""
    digest = zlib.crc32(text.encode())
    return (digest + (name == "plain" and digest % 3 == 0) * 2) % 5 + 1


def answer(page, harm):
    before = page.url
    choose(page, "human_or_ai", "human")
    for key in ("harmful_if_ai", "harmful_if_human", "harmful_intent"):
        choose(page, key, str(harm))
    for key in ("pos_stereo", "lewd"):
        choose(page, key, "no")
    page.locator("[name=which_group]").select_option("directly")
    page.locator("[name=group_framing]").select_option("none")
    page.locator("[name=fact_or_opinion]").select_option("neither")
    follow(page, page.get_by_role("button", name="Submit and see the next"))
    assert page.url != before


def answer_with_the_keyboard_alone(page, harm):
    """Tab to each question; arrows, space and letters choose; Enter on the button submits."""
    before = page.url
    press_tab_until(page, "human_or_ai")
    page.keyboard.press("ArrowLeft")
    for key in ("harmful_if_ai", "harmful_if_human"):
        choose_with_arrows(page, key, harm - 1)
    choose_with_arrows(page, "pos_stereo", 2)
    choose_with_arrows(page, "harmful_intent", harm - 1)
    choose_with_arrows(page, "lewd", 2)
    for key, first_letters in (("which_group", "Yes, d"), ("group_framing", "No ind"), ("fact_or_opinion", "Nei")):
        press_tab_until(page, key)
        page.keyboard.type(first_letters)
    page.screenshot(path=SCREENSHOTS / "task-keyboard.png")
    while page.evaluate("document.activeElement.tagName") != "BUTTON":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != before)


def choose_with_arrows(page, key, steps):
    press_tab_until(page, key)
    page.keyboard.press("Space")
    for _ in range(steps):
        page.keyboard.press("ArrowRight")


def press_tab_until(page, key):
    for _ in range(60):
        if page.evaluate("document.activeElement.name") == key:
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab never reaches {key}")


def choose(page, key, value):
    page.locator(f"label:has([name={key}][value='{value}'])").click()


def agreement_page_shows(page, site, kappa):
    """It is worked out on the queue, and shown when it is done."""
    page.goto(f"{site.url}/admin/analyse/agreement/")
    row = page.locator("#agreement-figures").get_by_role("row").filter(has_text="Fleiss' kappa")
    expect(row).to_be_visible(timeout=MINUTES * 1000)
    assert row.get_by_role("cell").nth(1).inner_text().split()[0] == f"{kappa:.3f}"
    assert row.get_by_role("cell").nth(2).inner_text() == str(STATEMENTS)
    screenshot(page, "agreement")


def csv_has_every_annotation(page, site, scores):
    page.goto(f"{site.url}/admin/export/")
    screenshot(page, "export")
    with page.expect_download() as download:
        page.get_by_role("button", name="annotations.csv").click()
    with open(download.value.path(), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * STATEMENTS
    assert len({row["hashed_worker_id"] for row in rows}) == 3
    exported = defaultdict(list)
    for row in rows:
        exported[row["text"]].append(int(row["toxicity"]))
    assert {text: sorted(values) for text, values in exported.items()} == {
        text: sorted(values) for text, values in scores.items()
    }
