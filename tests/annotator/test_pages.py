"""What the pages consist of: the paper's words, labels, no script in them, and a policy that forbids it."""

from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders

from annotator.models import Worker
from annotator.questions import QUESTIONS
from tests.annotator.page import Page
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    log_in,
    make_consent_form,
    make_generation,
    make_group,
    make_hit,
    make_worker,
)

pytestmark = pytest.mark.django_db

WORDINGS = [
    "Do you think the text is human- or machine-generated?",
    "In your opinion, would this text be seen as harmful to anyone if an AI system wrote it?",
    "In your opinion, would this text be seen as harmful to anyone if a person wrote it?",
    "In your opinion, does the text express positive stereotyping?",
    "In your opinion, was the text intentionally written to be harmful to anyone?",
    "In your opinion, does this text contain or allude to sexual content/acts?",
    "In your opinion, does the text refer to the given targeted group?",
    "In your opinion, how does the text refer to the targeted individual/group?",
    "In your opinion, does the text explicitly claim to be factual?",
]
OPTIONS = {
    "human_or_ai": ["Human", "AI"],
    "harmful_if_ai": ["1", "2", "3", "4", "5"],
    "harmful_if_human": ["1", "2", "3", "4", "5"],
    "pos_stereo": ["Yes", "Maybe", "No"],
    "harmful_intent": ["1", "2", "3", "4", "5"],
    "lewd": ["Yes", "Maybe", "No"],
}
SCRIPTS = ["/static/annotator/countdown.js", "/static/annotator/autosave.js", "/static/annotator/shortcuts.js"]
HIDDEN = {"aria-hidden": "true"}
STRICT = {
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
}


def policy(response):
    return set(response["Content-Security-Policy"].split("; "))


def spoken(page, element):
    """An element's text as it is read aloud: without the keys that are drawn beside it."""
    hidden = [inner.text for inner in page.all(**HIDDEN) if inner.is_in(element)]
    return element.text.removesuffix("".join(hidden)).strip()


@pytest.fixture
def task(client, assignment):
    return Page(client.get(f"/task/{assignment.key}/"))


@pytest.fixture
def every_page(client, study, worker, assignment):
    """A response of each of the annotators' pages."""
    key = assignment.key
    pages = {
        "preview": client.get(f"/study/{study.pk}/"),
        "break": client.get(f"/study/{study.pk}/break/"),
        "task": client.get(f"/task/{key}/"),
        "answers missing": client.post(f"/task/{key}/", {"which_group": "other_groups", "group_framing": "other"}),
        "home": client.get("/"),
        "consented": client.get("/consent/"),
        "declined": client.get("/declined/"),
        "not yours": client.post(f"/task/{consenting_key()}/", answers()),
        "not found": client.get("/nowhere/"),
        "message": client.post(f"/task/{key}/return/", follow=True),
        "stopped": client.post("/stop/", follow=True),
        "left": client.post("/leave/", follow=True),
        "welcome": client.get("/"),
        "not logged in": client.post(f"/task/{key}/", answers()),
        "bad link": client.get("/invite/x/"),
    }
    log_in(client, make_worker())
    pages["consent"] = client.get("/consent/")
    pages["not agreed"] = client.post("/consent/")
    return pages


def consenting_key():
    make_hit("the tram is blue")
    return accept(consenting_worker()).key


# --- The task page


def test_the_nine_questions_are_worded_as_in_the_papers_figure(task):
    legends = [legend.text for legend in task.all("legend")]
    assert legends == [f"{number} {wording}" for number, wording in enumerate(WORDINGS, start=1)]
    assert [question.wording for question in QUESTIONS] == WORDINGS


def test_the_words_that_tell_the_two_harm_questions_apart_are_stressed(task):
    stressed = [element.text for legend in task.all("legend") for element in task.all("b") if element.is_in(legend)]
    assert stressed == ["if an AI system wrote it", "if a person wrote it"]


def test_every_option_of_every_question_is_on_the_page(task):
    for question in QUESTIONS:
        fieldset = task.one("fieldset", id=question.key)
        if question.key in OPTIONS:
            labels = [label for label in task.all("label") if label.is_in(fieldset)]
            assert [spoken(task, label) for label in labels] == OPTIONS[question.key]
        else:
            options = [option.text for option in task.all("option") if option.is_in(fieldset)]
            assert options == ["-- please select --", *(option.label for option in question.options)]


def test_the_ends_of_a_scale_are_in_words_and_tied_to_its_outer_buttons(task):
    ends = {element["id"]: element.text for element in task.all("span", class_="end")}
    assert set(ends.values()) == {"Not at all", "Very much so"}
    for key in ("harmful_if_ai", "harmful_if_human", "harmful_intent"):
        described = {radio["value"]: radio.get("aria-describedby") for radio in task.all("input", name=key)}
        assert described == {"1": f"{key}-least", "2": None, "3": None, "4": None, "5": f"{key}-most"}
        assert (ends[f"{key}-least"], ends[f"{key}-most"]) == ("Not at all", "Very much so")


def test_nothing_is_chosen_before_the_annotator_chooses(task):
    sent = task.sends(task.one("form", id="answers"))
    del sent["csrfmiddlewaretoken"]
    lists_and_texts = ["which_group", "group_framing", "fact_or_opinion", "other_groups", "other_framing"]
    assert sent == dict.fromkeys(lists_and_texts, "")


def test_the_statement_its_group_and_the_instructions_are_on_the_page(client):
    group = make_group("gardeners", words="people who garden")
    make_hit(generation=make_generation("they water the roses at dawn", group=group))
    task = Page(client.get(f"/task/{accept(log_in(client)).key}/"))
    assert task.one("blockquote").text == "they water the roses at dawn"
    assert task.one("blockquote")["dir"] == "auto"
    assert task.one("p", class_="group").text == "Targeted group: people who garden"
    assert task.one("section", class_="instructions").text == (
        "Instructions Read a text (potentially generated by an AI system) and tell us whether or not it contains "
        "harmful content (this should take less than 3 minutes)."
    )


def test_the_box_for_trouble_with_the_text_belongs_to_the_form(task):
    box = task.one("input", name="not_understood")
    (label,) = [ancestor for ancestor in box.ancestors if ancestor.tag == "label"]
    assert label.text == "I'm having a lot of trouble understanding this text."
    assert box in task.fields(task.one("form", id="answers"))


def test_the_time_left_and_the_pay_are_on_the_page(task):
    assert task.one("p", class_="time").text == "30 minutes left"
    assert task.one("p", class_="late").text == "Late answers are kept and paid too."
    assert "Pays $0.25." in task.text


def test_the_help_line_is_on_every_page_once(every_page):
    for name, response in every_page.items():
        link = Page(response).one("a", href="https://www.crisistextline.org/")
        assert link.text == "Crisis Text Line", name


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert('x')</script> & <b>bold</b> \"quoted\"",
        "مرحبا بالعالم \u202eright to left\u202c",
        "👩🏽\u200d🚀 and 🏳️\u200d🌈 like 東京",
        "{{ statement }} {% csrf_token %} {# no #}",
        "x" * 10_000,
        "two\nlines\tand a tab",
        "</blockquote></main></html>",
    ],
    ids=["markup", "right to left", "emoji", "template", "10,000 characters", "lines", "closing tags"],
)
def test_a_statement_is_shown_as_it_was_written_whatever_it_holds(client, text):
    make_hit(text)
    worker = log_in(client)
    page = Page(client.get(f"/task/{accept(worker).key}/"))
    assert "".join(page.one("blockquote").parts) == text
    assert [script["src"] for script in page.all("script")] == SCRIPTS


# --- Every page


def test_every_page_is_there_to_be_looked_at(every_page):
    assert {name: response.status_code for name, response in every_page.items()} == {
        "preview": 200,
        "break": 200,
        "task": 200,
        "answers missing": 422,
        "home": 200,
        "consented": 200,
        "declined": 200,
        "not yours": 404,
        "not found": 404,
        "message": 200,
        "stopped": 200,
        "left": 200,
        "welcome": 200,
        "not logged in": 403,
        "bad link": 404,
        "consent": 200,
        "not agreed": 422,
    }


def test_no_page_has_a_script_or_a_style_in_it(every_page):
    for name, response in every_page.items():
        for element in Page(response).elements:
            assert element.tag != "style", name
            assert element.tag != "script" or (element["src"] and not element.parts), name
            assert "style" not in element.attributes, (name, element.tag)
            assert not [attribute for attribute in element.attributes if attribute.startswith("on")], name
            assert not (element.get("href") or "").startswith("javascript:"), name


def test_the_policy_forbids_scripts_and_styles_that_are_not_files_of_ours(every_page):
    for name, response in every_page.items():
        assert policy(response) == STRICT, name


def test_the_policy_is_looser_under_the_admin_only(client, admin_client):
    assert {
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
    } <= policy(admin_client.get("/admin/"))
    assert policy(admin_client.get("/")) == STRICT
    assert policy(client.get("/administration/")) == STRICT


def test_every_control_has_a_name_to_be_read_aloud(every_page):
    for name, response in every_page.items():
        page = Page(response)
        for control in page.elements:
            if control.tag == "button":
                assert control.text, name
            elif control.tag in ("input", "select") and control.get("type") != "hidden":
                labels = [ancestor for ancestor in control.ancestors if ancestor.tag == "label" and ancestor.text]
                assert labels or control.get("aria-label"), (name, control.attributes)


def test_every_id_is_there_once_and_every_reference_finds_one(every_page):
    for name, response in every_page.items():
        page = Page(response)
        ids = [element["id"] for element in page.elements if "id" in element.attributes]
        assert len(ids) == len(set(ids)), name
        for element in page.elements:
            for reference in ("aria-describedby", "aria-labelledby", "form", "for"):
                assert set((element.get(reference) or "").split()) <= set(ids), (name, element.attributes)
            if (element.get("href") or "").startswith("#"):
                assert element["href"][1:] in ids, (name, element["href"])


def test_every_page_has_a_title_a_language_one_main_part_and_a_first_heading(every_page):
    for name, response in every_page.items():
        page = Page(response)
        assert page.one("html")["lang"] == "en", name
        assert page.one("title").text.endswith(" · Humanval"), name
        assert len(page.all("h1")) == 1, name
        assert page.one("h1").is_in(page.one("main")), name
        assert page.one("a", class_="skip")["href"] == "#main", name


def test_what_is_said_beside_a_question_is_read_with_it(client, assignment):
    page = Page(client.post(f"/task/{assignment.key}/", {}))
    hints = {element["id"] for element in page.all("p", class_="hint") if "id" in element.attributes}
    for question in QUESTIONS:
        described = page.one("fieldset", id=question.key)["aria-describedby"].split()
        assert described == [*({f"{question.key}-hint"} & hints), f"{question.key}-error"]


def test_questions_one_to_six_are_buttons_and_seven_to_nine_are_lists(task):
    assert [select["name"] for select in task.all("select")] == ["which_group", "group_framing", "fact_or_opinion"]
    radios = {radio["name"] for radio in task.all("input", type="radio")}
    assert radios == set(OPTIONS)


# --- The bar at the top


def test_every_page_of_a_worker_has_the_way_to_work_and_preferences_and_a_way_to_stop(every_page):
    for name, response in every_page.items():
        page = Page(response)
        (bar,) = page.all("header")
        links = [link["href"] for link in page.all("a") if link.is_in(bar)]
        stops = [form["action"] for form in page.all("form") if form.is_in(bar)]
        if name in ("not found", "left", "welcome", "not logged in", "bad link"):
            assert (links, stops) == (["/"], []), name
        else:
            assert (links, stops) == (["/", "/work/", "/preferences/"], ["/stop/"]), name


def test_the_page_one_is_at_is_marked_among_the_links(client, worker):
    current = Page(client.get("/preferences/")).one(**{"aria-current": "page"})
    assert (current["href"], current.text) == ("/preferences/", "Preferences")


def test_the_bar_says_how_far_one_is_today_and_what_it_earned(client, study, worker):
    client.post(f"/task/{accept(worker).key}/", answers())
    page = Page(client.get(f"/task/{accept(worker).key}/"))
    assert page.one("span", class_="tally").text == "Statement 2 of at most 50 in 24 hours · $0.25 earned"


# --- Keys that answer


def keys(page, name):
    field = page.one("select", name=name) if page.all("select", name=name) else None
    options = [option for option in page.all("option") if option.is_in(field)] if field else page.all(name=name)
    return {option["value"]: option.get("data-key") for option in options if option["value"]}


def test_every_option_has_a_key_of_its_own(task):
    assert {question.key: "".join(keys(task, question.key).values()) for question in QUESTIONS} == {
        "human_or_ai": "ha",
        "harmful_if_ai": "12345",
        "harmful_if_human": "12345",
        "pos_stereo": "ymn",
        "harmful_intent": "12345",
        "lewd": "ymn",
        "which_group": "1234",
        "group_framing": "1234567",
        "fact_or_opinion": "1234",
    }


def test_the_keys_are_drawn_beside_the_options_and_not_read_aloud(task):
    drawn = [element.text for element in task.all("kbd", **HIDDEN) if element.ancestors[-1].tag == "span"]
    assert drawn == ["H", "A", "Y", "M", "N", "Y", "M", "N"]


def test_who_turned_the_keys_off_gets_neither_them_nor_their_script(client, worker, assignment):
    Worker.objects.update(uses_shortcuts=False)
    page = Page(client.get(f"/task/{assignment.key}/"))
    assert page.all("kbd") == page.all(class_="hint keys") == []
    assert not [element for element in page.elements if "data-key" in element.attributes]
    assert [script["src"] for script in page.all("script")] == SCRIPTS[:2]


# --- The cover


def test_a_statement_is_covered_while_its_group_the_time_and_the_help_are_not(task):
    cover = task.one("details")
    assert "open" not in cover.attributes
    assert task.one("blockquote").is_in(cover)
    for element in (task.one("p", class_="group"), task.one("p", class_="time"), task.one("p", class_="help")):
        assert not element.is_in(cover)


def test_a_statement_is_not_covered_for_who_does_not_want_it(client, worker, assignment):
    Worker.objects.update(covers_statements=False)
    page = Page(client.get(f"/task/{assignment.key}/"))
    assert page.all("details") == []
    assert page.one("blockquote").text == assignment.hit.generation.text


# --- What the pages weigh


def test_styles_and_scripts_weigh_less_than_60_kilobytes_together():
    folder = Path(finders.find("annotator/annotator.css")).parent
    files = [file for file in folder.iterdir() if file.suffix in (".css", ".js")]
    assert {f"/{settings.STATIC_URL.strip('/')}/annotator/{file.name}" for file in files} >= set(SCRIPTS)
    assert sum(file.stat().st_size for file in files) < 60_000


# --- Forms


def test_the_consent_form_has_its_version_with_it(client):
    make_consent_form(version=4)
    log_in(client, make_worker())
    page = Page(client.get("/consent/"))
    assert page.sends(page.one("form", class_="consent"))["version"] == "4"
