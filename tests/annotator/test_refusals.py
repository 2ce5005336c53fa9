"""What the pages refuse: with a sentence, a fitting status, and nothing lost that was typed."""

import uuid

import pytest
from django.test import Client
from django.utils import timezone

from annotator import assigning
from annotator.models import Annotation, Assignment, Invitation, Qualification
from annotator.questions import NOT_UNDERSTOOD
from tests.annotator.page import Page
from tests.factories import answers, log_in, make_assignment, make_consent_form

pytestmark = pytest.mark.django_db

ACTS = [
    "/study/{study}/accept/",
    "/consent/",
    "/withdraw/",
    "/preferences/",
    "/survey/",
    "/stop/",
    "/task/{key}/",
    "/task/{key}/draft/",
    "/task/{key}/return/",
]

TYPED = {"other_groups": "cyclists, bakers", "other_framing": "It praises “them” & <others>."}
NOT_YOURS = "There is no such page for you. If you followed a link, it may belong to somebody else or be incomplete."
NOT_LOGGED_IN = (
    "You are not logged in, or your log-in has ended. Open your invite link again; what you had begun is waiting there."
)
NO_CONSENT = "Statements are shown only after you have agreed to the consent form that is in force now."
TYPED_IS_KEPT = "What you typed is kept with the statement."
GIVEN_BACK = "You gave this statement back: it can go to somebody else. Take the next one."


def path(assignment):
    return f"/task/{assignment.key}/"


def lead(response):
    return Page(response).one("p", class_="lead").text


def shown_message(response):
    return Page(response).one(class_="messages").text


# --- Somebody else's, unknown, given back


def test_somebody_elses_assignment_is_refused_and_what_was_typed_is_shown(client, worker):
    other = make_assignment()
    response = client.post(path(other), answers(**TYPED))
    assert (response.status_code, lead(response)) == (404, NOT_YOURS)
    page = Page(response)
    shown = [element.text for element in page.all("dd")]
    assert set(TYPED.values()) <= set(shown)
    assert shown.count("1") == 2
    assert page.all("button", class_=None) == [], "there is nobody to send it to again"
    assert not Annotation.objects.exists()


@pytest.mark.parametrize("method", ["get", "post"])
def test_an_assignment_that_does_not_exist_is_refused(client, worker, method):
    response = getattr(client, method)(f"/task/{uuid.uuid4()}/")
    assert (response.status_code, lead(response)) == (404, NOT_YOURS)


@pytest.mark.parametrize(
    "url",
    [
        "/task/1/",
        "/task/not-a-uuid/",
        f"/task/{uuid.UUID(int=7)}x/",
        "/task/" + "0" * 32 + "/",
        "/study/x/",
        "/nowhere/",
    ],
)
def test_an_address_that_is_none_is_a_page_with_a_sentence(client, worker, url):
    response = client.get(url)
    assert (response.status_code, lead(response)) == (404, NOT_YOURS)


def test_somebody_elses_assignment_cannot_be_returned(client, worker):
    other = make_assignment()
    response = client.post(f"/task/{other.key}/return/")
    assert (response.status_code, lead(response)) == (404, NOT_YOURS)
    other.refresh_from_db()
    assert other.status == "accepted"


def test_returning_leads_home_and_says_that_it_costs_nothing(client, assignment):
    response = client.post(f"/task/{assignment.key}/return/", follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert shown_message(response) == "You returned the statement. That costs you nothing."
    assert Assignment.objects.get().status == "returned"


def test_returning_a_statement_of_a_test_says_what_that_means(client, worker, assignment):
    study = assignment.hit.hit_type
    study.grants, study.pass_mark = Qualification.objects.create(name="Careful"), 80
    study.save()
    page = Page(client.get(path(assignment)))
    assert "counts as not answered as expected" in page.text
    assert "without penalty" not in page.text
    response = client.post(f"/task/{assignment.key}/return/", follow=True)
    assert shown_message(response) == (
        "You returned the statement. In this test it counts as not answered as expected."
    )


def test_returning_twice_leads_home(client, assignment):
    client.post(f"/task/{assignment.key}/return/")
    assert client.post(f"/task/{assignment.key}/return/")["Location"] == "/"


def test_the_page_of_a_returned_statement_is_gone(client, assignment):
    assigning.return_assignment(assignment=assignment)
    response = client.get(path(assignment))
    assert (response.status_code, lead(response)) == (410, GIVEN_BACK)
    assert b"the library opens at nine" not in response.content


def test_the_page_of_a_submitted_statement_leads_home(client, assignment):
    client.post(path(assignment), answers())
    response = client.get(path(assignment), follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert shown_message(response) == "You have submitted that statement already; your answers are kept."


# --- Without a session, without consent, without the CSRF cookie


def send_again(client, response):
    """Press the button that sends the kept answers again, as a browser would."""
    page = Page(response)
    (form,) = [form for form in page.all("form") if form.get("class") != "stop"]
    return client.post(form["action"], page.sends(form))


def stored():
    annotation = Annotation.objects.get()
    return {key: getattr(annotation, key) for key in answers() | TYPED}


def test_a_submit_without_a_session_keeps_the_answers_and_can_be_sent_again_after_the_link(client, worker, assignment):
    client.cookies.clear()
    response = client.post(path(assignment), answers(**TYPED))
    assert (response.status_code, lead(response)) == (403, NOT_LOGGED_IN)
    assert b"the library opens at nine" not in response.content
    assert not Annotation.objects.exists()
    log_in(client, worker)
    assert send_again(client, response).status_code == 302
    assert stored() == answers(**TYPED)


def test_a_submit_without_consent_keeps_the_answers_and_can_be_sent_again_after_consenting(client, worker, assignment):
    form = make_consent_form(version=2)
    response = client.post(path(assignment), answers(**TYPED))
    assert (response.status_code, lead(response)) == (403, f"{NO_CONSENT} {TYPED_IS_KEPT}")
    assert Page(response).one("a", href="/consent/").text == "Consent form"
    assignment.refresh_from_db()
    assert assignment.draft == {name: str(value) for name, value in answers(**TYPED).items()}
    assert not Annotation.objects.exists()
    client.post("/consent/", {"agree": "on", "version": form.version})
    assert send_again(client, response).status_code == 302
    assert stored() == answers(**TYPED)


def test_a_submit_without_the_csrf_cookie_keeps_the_answers_and_can_be_sent_again(worker, assignment):
    client = Client(enforce_csrf_checks=True)
    log_in(client, worker)
    response = client.post(path(assignment), answers(**TYPED))
    assert response.status_code == 403
    assert lead(response) == (
        "This page was open for too long, or cookies are switched off. Allow cookies here, then send it again."
    )
    assert not Annotation.objects.exists()
    assert send_again(client, response).status_code == 302
    assert stored() == answers(**TYPED)


def test_after_a_withdrawal_nothing_that_is_sent_is_kept(client, worker, assignment):
    worker.consents.update(withdrawn_at=timezone.now())
    response = client.post(path(assignment), answers(**TYPED))
    assert (response.status_code, lead(response)) == (403, NO_CONSENT)
    assignment.refresh_from_db()
    assert assignment.draft is None


def test_kept_answers_are_shown_in_the_words_of_the_page(client, worker):
    response = client.post(path(make_assignment()), answers(group_framing="moral_judgement", not_understood="on"))
    shown = {dt.text: dd.text for dt, dd in zip(Page(response).all("dt"), Page(response).all("dd"), strict=True)}
    assert "It makes a moral judgement about them" in shown.values()
    assert shown[NOT_UNDERSTOOD] == "Yes"


@pytest.mark.parametrize("url", ACTS)
def test_every_act_needs_the_csrf_token(worker, assignment, url):
    client = Client(enforce_csrf_checks=True)
    log_in(client, worker)
    response = client.post(
        url.format(key=assignment.key, study=assignment.hit.hit_type_id), answers() | {"agree": "on"}
    )
    assert response.status_code == 403
    assignment.refresh_from_db()
    assert assignment.status == "accepted"


def test_every_form_carries_the_csrf_token(client, worker, assignment):
    for url in ("/", "/consent/", path(assignment)):
        page = Page(client.get(url))
        for form in page.all("form", method="post"):
            assert "csrfmiddlewaretoken" in page.sends(form), (url, form.attributes)


@pytest.mark.parametrize("url", ACTS)
def test_without_a_session_nothing_is_done(assignment, url):
    response = Client().post(url.format(key=assignment.key, study=assignment.hit.hit_type_id), answers())
    assert (response.status_code, lead(response)) == (403, NOT_LOGGED_IN)
    assignment.refresh_from_db()
    assert assignment.status == "accepted"


def test_a_session_of_an_invitation_that_was_deleted_is_none(client, worker):
    Invitation.objects.all().delete()
    assert client.get("/").status_code == 403


# --- Methods and damaged requests


@pytest.mark.parametrize("url", ["/study/1/accept/", "/stop/", "/leave/", "/task/{key}/return/", "/task/{key}/draft/"])
def test_an_act_cannot_be_done_by_following_a_link(client, assignment, url):
    response = client.get(url.format(key=assignment.key))
    assert (response.status_code, response["Allow"]) == (405, "POST")
    assert lead(response).startswith("This address is no page: it does what a button asks for.")
    assignment.refresh_from_db()
    assert assignment.status == "accepted"


@pytest.mark.parametrize("url", ["/", "/declined/", "/invite/x/"])
def test_a_page_that_only_shows_cannot_be_posted_to(client, worker, url):
    assert client.post(url).status_code == 405


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"no boundary"),
        ("application/x-www-form-urlencoded", b"lewd=" + b"x" * 3_000_000),
        ("application/x-www-form-urlencoded", b"&".join([b"lewd=no"] * 1001)),
    ],
    ids=["damaged", "too large", "too many fields"],
)
@pytest.mark.parametrize("csrf", [False, True])
def test_a_request_that_cannot_be_read_is_answered_with_a_sentence(worker, assignment, content_type, body, csrf):
    client = Client(enforce_csrf_checks=csrf)
    log_in(client, worker)
    response = client.post(path(assignment), body, content_type=content_type)
    assert (response.status_code, lead(response)) == (
        400,
        "What you sent is too large or damaged. Go back, shorten long answers and send it again.",
    )


def test_pages_of_a_worker_are_never_cached(client, assignment):
    for url in ("/", "/consent/", path(assignment)):
        assert "no-store" in client.get(url)["Cache-Control"], url
