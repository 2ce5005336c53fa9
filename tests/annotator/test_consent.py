"""The warning and the consent form: read first, agreed to once a version, asked for again when it changes."""

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotator import consenting
from annotator.models import Consent, ConsentForm
from config.roles import RESEARCHER
from generation.models import TargetGroup
from tests.annotator.page import Page
from tests.factories import (
    consenting_worker,
    log_in,
    make_consent,
    make_consent_form,
    make_generation,
    make_group,
    make_hit,
    make_worker,
)

pytestmark = pytest.mark.django_db

HEADINGS = ["Purpose", "Risks and care", "Pay", "Contact", "Withdrawal", "Somebody to talk to"]
TEXTS = {
    "warning": "Statements may upset you.",
    "purpose": "You judge statements.",
    "risks": "Reading may hurt.",
    "pay": "Every statement is paid.",
    "contact": "Write to ada@example.org.",
    "withdrawal": "You may withdraw.",
    "debrief": "That was it.",
}


def visit(client, worker=None):
    """The consent page as somebody sees it who has just come in, by default without having agreed."""
    worker = log_in(client, worker or make_worker())
    return worker, Page(client.get("/consent/"))


def agree(client, page, **changes):
    """Tick the box on the page as it was opened and send it."""
    return client.post("/consent/", page.sends(page.one("form", class_="consent")) | {"agree": "on"} | changes)


def notice(page):
    return page.one("p", class_="notice").text


def warning(page):
    return page.one("section", class_="card warning").text


# --- The page


def test_the_warning_comes_first_and_then_each_part_under_its_heading(client):
    make_consent_form(**TEXTS)
    _, page = visit(client)
    assert [heading.text for heading in page.all("h2")] == HEADINGS
    read = page.one("main").text
    order = [read.index(TEXTS[part]) for part in ("warning", "purpose", "risks", "pay", "contact", "withdrawal")]
    assert order == sorted(order)
    assert TEXTS["debrief"] not in read


def test_parts_that_say_nothing_have_no_heading(client):
    make_consent_form(risks="", pay=" \n", contact="", withdrawal="")
    _, page = visit(client)
    assert [heading.text for heading in page.all("h2")] == ["Purpose", "Somebody to talk to"]


def test_the_texts_are_markdown_without_anything_that_runs(client):
    make_consent_form(warning="**Careful** <script>alert(1)</script>", risks="- one\n\n[a](javascript:x)")
    _, page = visit(client)
    assert page.one("strong").text == "Careful"
    assert "alert(1)" not in page.text
    assert [link.get("href") for link in page.all("a") if link.text == "a"] == [None]


def test_the_warning_names_the_groups_that_the_statements_are_about(client):
    make_consent_form()
    for slug in ("bakers", "divers", "sailors"):
        make_hit(generation=make_generation(group=make_group(slug, words=f"people like {slug}")))
    make_generation(group=make_group("writers"))  # in no HIT
    _, page = visit(client)
    assert warning(page).endswith(
        "The statements are about these groups: people like bakers, people like divers and people like sailors."
    )


def test_the_warning_names_all_groups_as_long_as_there_are_no_statements(client):
    make_consent_form()
    make_group()
    _, page = visit(client)
    assert all(group.words in warning(page) for group in TargetGroup.objects.all())


def test_the_help_lines_stand_before_the_box(client):
    make_consent_form()
    _, page = visit(client)
    assert page.text.index("text HOME to 741741") < page.text.index("I am 18 or older")


def test_the_page_asks_as_little_of_the_database_with_many_groups_as_with_one(client):
    make_consent_form()
    make_hit()
    visit(client)
    counts = []
    for number in range(2):
        with CaptureQueriesContext(connection) as queries:
            client.get("/consent/")
        counts.append(len(queries))
        for hit in range(3):
            make_hit(generation=make_generation(group=make_group(f"group-{number}-{hit}")))
    assert counts[0] == counts[1] <= 6


def test_without_a_consent_form_the_page_says_that_there_is_no_work_yet(client):
    log_in(client, make_worker())
    response = client.get("/consent/")
    assert response.status_code == 503
    assert Page(response).one("p", class_="lead").text == (
        "There is no consent form yet, so no work can be offered. Please come back later."
    )


# --- Agreeing


def test_agreeing_is_stored_with_version_and_time_and_leads_to_the_work(client):
    form = make_consent_form(version=3)
    worker, page = visit(client)
    before = datetime.now(UTC)
    response = agree(client, page)
    assert (response.status_code, response["Location"]) == (302, "/")
    consent = worker.consents.get()
    assert (consent.form, consent.withdrawn_at) == (form, None)
    assert before <= consent.given_at <= datetime.now(UTC)


def test_statements_stay_covered_unless_the_box_is_unticked(client):
    make_consent_form()
    worker, page = visit(client)
    assert "checked" in page.one("input", name="covers_statements").attributes
    agree(client, page)
    worker.refresh_from_db()
    assert worker.covers_statements


def test_who_unticks_the_cover_gets_statements_uncovered(client):
    make_consent_form()
    worker, page = visit(client)
    sent = page.sends(page.one("form", class_="consent")) | {"agree": "on"}
    del sent["covers_statements"]
    client.post("/consent/", sent)
    worker.refresh_from_db()
    assert not worker.covers_statements


def test_the_choice_about_the_cover_is_kept_when_the_box_to_agree_was_forgotten(client):
    make_consent_form()
    visit(client)
    page = Page(client.post("/consent/", {"version": "1"}))
    assert "checked" not in page.one("input", name="covers_statements").attributes


@pytest.mark.parametrize("posted", [{}, {"version": "1"}, {"agree": "", "version": "1"}])
def test_a_box_that_was_not_ticked_is_no_consent(client, posted):
    make_consent_form()
    visit(client)
    response = client.post("/consent/", posted)
    assert response.status_code == 422
    assert Page(response).one(role="alert").text == "Tick the box to agree, or choose “I do not want to take part”."
    assert not Consent.objects.exists()


def test_nobody_agrees_to_a_version_that_they_have_not_read(client):
    make_consent_form(version=1)
    _, opened = visit(client)
    make_consent_form(version=2, risks="There is one more risk.")
    response = agree(client, opened)
    assert response.status_code == 422
    page = Page(response)
    assert page.one(role="alert").text == (
        "The form has changed since you opened it. Please read it again before you agree."
    )
    assert "There is one more risk." in page.text
    assert not Consent.objects.exists()
    agree(client, page)
    assert Consent.objects.get().form.version == 2


def test_agreeing_twice_is_stored_once(client):
    make_consent_form()
    _, page = visit(client)
    assert [agree(client, page).status_code, agree(client, page).status_code] == [302, 302]
    assert Consent.objects.count() == 1


def test_who_has_agreed_reads_the_form_with_the_day_and_the_ways_on(client):
    make_consent_form()
    worker = make_worker()
    make_consent(worker, given_at=datetime(2026, 10, 3, 23, 59, tzinfo=UTC))
    _, page = visit(client, worker)
    assert "You agreed to this form (version 1) on 3 October 2026." in page.text
    assert page.all("form", class_="consent") == []
    assert page.one("a", href="/withdraw/").text == "Withdraw your consent"


# --- Asked again


def test_a_new_version_asks_again_and_says_which_one_was_agreed_to(client):
    worker = consenting_worker()
    make_consent_form(version=2)
    log_in(client, worker)
    assert client.get("/")["Location"] == "/consent/"
    page = Page(client.get("/consent/"))
    assert notice(page).startswith("The form has changed since you agreed to version 1. This is version 2:")
    agree(client, page)
    assert client.get("/").status_code == 200
    assert sorted(worker.consents.values_list("form__version", flat=True)) == [1, 2]


def test_a_form_that_is_published_later_is_not_asked_for_yet(client):
    worker = consenting_worker()
    make_consent_form(version=2, published_at=datetime(2999, 1, 1, tzinfo=UTC))
    make_consent_form(version=3, published_at=None)
    log_in(client, worker)
    assert client.get("/").status_code == 200


def test_who_withdrew_reads_when_and_gets_a_consent_of_its_own_on_agreeing_anew(client):
    make_consent_form()
    worker = make_worker()
    make_consent(worker, withdrawn_at=datetime(2026, 10, 3, 12, tzinfo=UTC))
    _, page = visit(client, worker)
    assert notice(page).startswith("You withdrew your consent on 3 October 2026.")
    agree(client, page)
    old, new = worker.consents.order_by("pk")
    assert (old.withdrawn_at is None, new.withdrawn_at) == (False, None)
    assert consenting.give_consent(worker=worker, form=new.form) == new


def test_on_the_first_visit_nothing_is_said_of_changes(client):
    make_consent_form()
    _, page = visit(client)
    assert page.all("p", class_="notice") == []


# --- Declining


def test_declining_stores_nothing_and_the_way_back_is_there(client):
    make_consent_form()
    visit(client)
    page = Page(client.get("/declined/"))
    assert page.one("h1").text == "No is a fine answer"
    assert page.one("a", href="/consent/").text == "Read the form again"
    assert page.one("button").text == "Stop, keep my pay"
    assert not Consent.objects.exists()


def test_the_page_for_those_who_decline_is_open_to_everybody(client):
    page = Page(client.get("/declined/"))
    assert page.all("button") == []
    assert page.all("a", href="/consent/") == []


# --- Whatever is sent

anything = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(max_codepoint=0x20), max_size=5),
    st.integers().map(str),
    st.sampled_from(["on", "1", "\x00", "x" * 100_000, "1" * 5000, "-1", "1.0", " 1", "٣"]),
)
in_one_database = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture
def newcomer(client):
    make_consent_form()
    return log_in(client, make_worker())


@in_one_database
@given(
    posted=st.fixed_dictionaries(
        {}, optional=dict.fromkeys(["agree", "version", "covers_statements"], st.one_of(anything, st.lists(anything)))
    )
)
def test_anything_at_all_is_consent_to_what_was_read_or_refused_in_words(client, newcomer, posted):
    with transaction.atomic():
        response = client.post("/consent/", posted)
        consented = newcomer.consents.exists()
        transaction.set_rollback(True)
    assert response.status_code in (302, 422)
    assert consented == (response.status_code == 302)
    if consented:
        version, agreed = (
            posted[name] if isinstance(posted[name], str) else posted[name][-1] for name in ("version", "agree")
        )
        assert version == "1"
        assert agreed
    else:
        assert Page(response).one(role="alert").text


# --- In the workspace


def messages_of(response):
    return [str(message) for message in response.context["messages"]]


@pytest.fixture
def researcher(client):
    user = User.objects.create(username="ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client.force_login(user)
    return client


def test_a_researcher_writes_a_form_of_the_next_version(researcher):
    make_consent_form(version=4)
    page = researcher.get("/admin/annotator/consentform/add/")
    assert page.context["adminform"].form.initial["version"] == 5
    response = researcher.post(
        "/admin/annotator/consentform/add/", {"version": "5", "title": "Before you begin", **TEXTS}
    )
    assert response.status_code == 302, response.context["errors"]
    form = ConsentForm.objects.get(version=5)
    assert {name: getattr(form, name) for name in TEXTS} == TEXTS
    assert form.published_at is None


@pytest.mark.parametrize("part", [part for part in TEXTS if part != "debrief"])
def test_a_new_form_needs_every_part_but_the_debrief(admin_client, part):
    response = admin_client.post(
        "/admin/annotator/consentform/add/", {"version": "1", "title": "Before you begin", **TEXTS, part: " "}
    )
    assert part in response.context["adminform"].form.errors
    assert not ConsentForm.objects.exists()


def test_publishing_puts_a_form_in_force_at_once(researcher):
    make_consent_form(version=1)
    draft = make_consent_form(version=2, published_at=None)
    page = f"/admin/annotator/consentform/{draft.pk}/change/"
    assert "Publish now" in researcher.get(page).content.decode()
    response = researcher.post(f"/admin/annotator/consentform/{draft.pk}/publish/", follow=True)
    assert messages_of(response) == ["Version 2 is in force. Workers read it and agree before they are shown more."]
    assert ConsentForm.objects.current() == draft
    assert "Publish now" not in researcher.get(page).content.decode()


def test_a_form_is_published_once(researcher):
    form = make_consent_form()
    response = researcher.post(f"/admin/annotator/consentform/{form.pk}/publish/", follow=True)
    assert messages_of(response) == ["Version 1 is published already."]
    published_at = form.published_at
    form.refresh_from_db()
    assert form.published_at == published_at


def test_a_form_older_than_one_that_is_published_cannot_come_into_force(researcher):
    draft = make_consent_form(version=1, published_at=None)
    make_consent_form(version=2)
    response = researcher.post(f"/admin/annotator/consentform/{draft.pk}/publish/", follow=True)
    assert messages_of(response) == [
        "Version 2 is published, so version 1 would not come into force. Make a new version from it and publish that."
    ]
    draft.refresh_from_db()
    assert draft.published_at is None


def test_a_new_version_has_the_texts_of_the_old_one_and_can_be_changed(researcher):
    old = make_consent_form(version=7, title="Before you begin", **TEXTS)
    response = researcher.post(f"/admin/annotator/consentform/{old.pk}/new-version/", follow=True)
    assert messages_of(response) == ["This is version 8. Change it and publish it when it is ready."]
    new = ConsentForm.objects.get(version=8)
    assert response.redirect_chain == [(f"/admin/annotator/consentform/{new.pk}/change/", 302)]
    assert new.published_at is None
    assert {name: getattr(new, name) for name in consenting.TEXTS} == {"title": "Before you begin", **TEXTS}
    changed = {"version": "8", "title": "Read this first", **TEXTS}
    assert researcher.post(f"/admin/annotator/consentform/{new.pk}/change/", changed).status_code == 302
    new.refresh_from_db()
    assert new.title == "Read this first"


def test_a_double_click_makes_one_new_version(researcher):
    old = make_consent_form()
    for _ in range(2):
        researcher.post(f"/admin/annotator/consentform/{old.pk}/new-version/")
    assert sorted(ConsentForm.objects.values_list("version", flat=True)) == [1, 2]


def test_a_published_form_is_shown_and_cannot_be_edited(admin_client):
    form = make_consent_form(title="Before you begin")
    url = f"/admin/annotator/consentform/{form.pk}/change/"
    assert "Make a new version from this one" in admin_client.get(url).content.decode()
    assert admin_client.post(url, {"version": "1", "title": "Other", **TEXTS}).status_code == 403
    form.refresh_from_db()
    assert form.title == "Before you begin"


def test_the_preview_is_the_page_without_the_box(researcher):
    draft = make_consent_form(published_at=None, **TEXTS)
    page = Page(researcher.get(f"/admin/annotator/consentform/{draft.pk}/preview/"))
    assert notice(page).startswith("This is how workers see version 1, which is not published yet.")
    assert [heading.text for heading in page.all("h2")] == HEADINGS
    assert page.all("form") == []


@pytest.mark.parametrize("address", ["publish", "new-version"])
def test_forms_are_not_published_or_copied_by_following_a_link(admin_client, address):
    draft = make_consent_form(published_at=None)
    assert admin_client.get(f"/admin/annotator/consentform/{draft.pk}/{address}/").status_code == 405


@pytest.mark.parametrize("address", ["publish", "new-version", "preview"])
def test_staff_without_permission_can_do_none_of_it(client, address):
    draft = make_consent_form(published_at=None)
    client.force_login(User.objects.create(username="eve", is_staff=True))
    act = client.get if address == "preview" else client.post
    assert act(f"/admin/annotator/consentform/{draft.pk}/{address}/").status_code == 403
    draft.refresh_from_db()
    assert (draft.published_at, ConsentForm.objects.count()) == (None, 1)
