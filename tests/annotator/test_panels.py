"""Joining by the link of a panel: one link for many, one worker for each, never more than there are places."""

import re
import uuid

import pytest
from django.contrib.sessions.models import Session
from django.core import signing
from django.test import Client
from django.utils import timezone

from annotator import inviting
from annotator.models import Invitation, Panel, Worker
from tests.annotator.page import Page
from tests.annotator.threads import at_once
from tests.factories import consenting_worker, log_in, make_consent_form

pytestmark = pytest.mark.django_db

SITE = "http://localhost:8000"
NOT_COMPLETE = (
    "This invite link is not complete or not one of ours. Copy the whole link from the message you got, "
    "or ask whoever sent it for a new one."
)
WITHDRAWN = "This invite link has been withdrawn. Ask whoever sent it for a new one; work you submitted is kept."
FULL = (
    "All places of this study are taken. If you have joined already, open your personal link; "
    "if not, ask whoever sent you here whether there will be more."
)
JOINED_BEFORE = (
    "Somebody has joined with this ID already. If that was you, open your personal link, which was shown to you then. "
    "If you do not have it any more, ask whoever sent you here."
)


def make_panel(**fields):
    return Panel.objects.create(**{"name": "first wave"} | fields)


def path_of(panel):
    return inviting.panel_link(panel).removeprefix(SITE)


def lead(response):
    return Page(response).one("p", class_="lead").text


def take_part(client, panel, query="", **typed):
    """Open the panel's link and press the button."""
    page = Page(client.get(path_of(panel) + query))
    return client.post(path_of(panel), page.sends(page.one("form")) | typed)


# --- Opening the link


def test_a_link_begins_with_the_address_of_the_site(settings):
    settings.SITE_URL = "https://study.example"
    assert inviting.panel_link(make_panel()).startswith("https://study.example/join/")


@pytest.mark.parametrize("method", ["get", "head"])
def test_looking_at_the_link_as_previews_do_makes_nothing(client, method):
    response = getattr(client, method)(path_of(make_panel()))
    assert response.status_code == 200
    assert not Worker.objects.exists()
    assert not Session.objects.exists()
    assert "no-store" in response["Cache-Control"]


def test_the_page_says_what_it_is_and_that_the_warning_comes_first(client):
    page = Page(client.get(path_of(make_panel())))
    assert page.one("h1").text == "You are invited to take part"
    assert "A content warning and a consent form come first" in page.text
    assert [button.text for button in page.all("button")] == ["Take part"]
    field = page.one("input", name="pay_reference")
    assert page.one("label", for_=field["id"]).text == "Participant ID, if whoever sent you here pays by one"


@pytest.mark.parametrize(
    ("query", "filled_in"),
    [
        ("", ""),
        ("?participant=60af", "60af"),
        ("?PROLIFIC_PID=60af&STUDY_ID=1", "60af"),
        ('?participant="><b>', '"><b>'),
    ],
)
def test_the_participant_id_is_taken_from_the_address(client, query, filled_in):
    page = Page(client.get(path_of(make_panel()) + query))
    assert page.one("input", name="pay_reference")["value"] == filled_in


# --- Taking part


def test_taking_part_makes_a_worker_of_the_panel_and_lets_them_in(client):
    panel = make_panel()
    response = take_part(client, panel, pay_reference=" 60af ")
    assert (response.status_code, response["Location"]) == (302, f"{path_of(panel)}?joined=yes")
    worker = Worker.objects.get()
    assert (worker.panel, worker.pay_reference) == (panel, "60af")
    invitation = worker.invitations.get()
    assert client.session["invitation"] == invitation.pk
    assert invitation.used_at <= timezone.now()


def test_who_has_joined_is_shown_the_link_to_come_back_by(client):
    panel = make_panel()
    shown = Page(client.get(take_part(client, panel)["Location"]))
    link = shown.one("p", class_="own-link").text
    assert link == inviting.link(Invitation.objects.get())
    assert shown.one("form", action="/")
    other_device = Client()
    assert other_device.get(link.removeprefix(SITE))["Location"] == "/"
    assert other_device.session["invitation"] == client.session["invitation"]


def test_the_consent_form_comes_next(client):
    make_consent_form()
    take_part(client, make_panel())
    assert client.get("/")["Location"] == "/consent/"


def test_opening_the_link_again_leads_home_and_makes_no_second_worker(client):
    panel = make_panel()
    take_part(client, panel)
    response = client.get(path_of(panel))
    assert (response.status_code, response["Location"]) == (302, "/")
    assert Worker.objects.count() == 1


def test_pressing_the_button_again_later_makes_no_second_worker(client):
    panel = make_panel()
    opened_before = Page(client.get(path_of(panel)))
    take_part(client, panel)
    response = client.post(path_of(panel), opened_before.sends(opened_before.one("form")))
    assert response["Location"] == f"{path_of(panel)}?joined=yes"
    assert Worker.objects.count() == 1


def test_a_double_click_makes_one_worker():
    panel = make_panel()
    page = Page(Client().get(path_of(panel)))
    sent = page.sends(page.one("form"))
    browsers = Client(), Client()  # the second click goes out before the first one's cookie is there
    for browser in browsers:
        assert browser.post(path_of(panel), sent).status_code == 302
    assert browsers[0].session["invitation"] == browsers[1].session["invitation"] == Invitation.objects.get().pk


def test_two_people_make_two_workers():
    panel = make_panel()
    take_part(Client(), panel), take_part(Client(), panel)
    assert panel.workers.count() == 2


def test_another_panel_makes_another_worker(client):
    take_part(client, make_panel())
    take_part(client, make_panel())
    assert Worker.objects.count() == 2


def test_a_worker_with_an_invitation_of_their_own_can_join_a_panel(client):
    own = log_in(client)
    take_part(client, make_panel())
    assert Invitation.objects.get(pk=client.session["invitation"]).worker != own


def test_joining_changes_the_session_key_so_that_nobody_can_plant_one(client):
    attacker = Client()
    session = attacker.session
    session["planted"] = True
    session.save()
    client.cookies["sessionid"] = planted = session.session_key
    take_part(client, make_panel())
    assert client.cookies["sessionid"].value != planted
    assert not Session.objects.filter(session_key=planted).exists()
    assert "invitation" not in attacker.session


def test_joining_needs_the_csrf_token():
    panel = make_panel()
    client = Client(enforce_csrf_checks=True)
    page = Page(client.get(path_of(panel)))
    sent = page.sends(page.one("form"))
    token = sent.pop("csrfmiddlewaretoken")
    assert client.post(path_of(panel), sent).status_code == 403
    assert not Worker.objects.exists()
    assert client.post(path_of(panel), sent | {"csrfmiddlewaretoken": token}).status_code == 302


# --- What is refused


def test_a_participant_id_joins_once(client):
    panel = make_panel()
    take_part(Client(), panel, pay_reference="60af")
    response = take_part(client, panel, pay_reference="60af")
    assert response.status_code == 422
    page = Page(response)
    field = page.one("input", name="pay_reference")
    assert (field["value"], field["aria-invalid"]) == ("60af", "true")
    assert page.one(id="pay_reference-error").text == JOINED_BEFORE
    assert "pay_reference-error" in field["aria-describedby"]
    assert Worker.objects.count() == 1
    assert "invitation" not in client.session


def test_a_participant_id_can_join_two_panels():
    take_part(Client(), make_panel(), pay_reference="60af")
    take_part(Client(), make_panel(), pay_reference="60af")
    assert Worker.objects.filter(pay_reference="60af").count() == 2


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("x" * 101, "An ID has at most 100 characters. Copy it again from whoever sent you here."),
        ("a\0b", "Null characters are not allowed."),
    ],
    ids=["long", "NUL"],
)
def test_a_participant_id_that_cannot_be_is_refused_beside_its_field(client, typed, sentence):
    response = take_part(client, make_panel(), pay_reference=typed)
    assert (response.status_code, Page(response).one(id="pay_reference-error").text) == (422, sentence)
    assert not Worker.objects.exists()


@pytest.mark.parametrize("ticket", ["", "x", "0" * 32, "…"])
def test_a_page_that_did_not_come_from_us_makes_no_worker_and_the_answer_can_be_sent(client, ticket):
    panel = make_panel()
    response = take_part(client, panel, pay_reference="60af", ticket=ticket)
    assert response.status_code == 422
    page = Page(response)
    assert page.one(role="alert").text == "This page did not arrive whole. It is now: press the button again."
    assert not Worker.objects.exists()
    client.post(path_of(panel), page.sends(page.one("form")))
    assert Worker.objects.get().pay_reference == "60af"


def test_the_ticket_of_one_panel_is_none_of_another(client):
    one, other = make_panel(), make_panel()
    assert take_part(client, one, ticket=inviting.ticket(other)).status_code == 422
    assert not Worker.objects.exists()


def test_a_full_panel_says_so_and_takes_nobody(client):
    panel = make_panel(max_workers=1)
    opened_before = Page(client.get(path_of(panel)))
    take_part(Client(), panel)
    response = client.post(path_of(panel), opened_before.sends(opened_before.one("form")))
    assert (response.status_code, lead(response)) == (403, FULL)
    response = client.get(path_of(panel))
    assert (response.status_code, lead(response)) == (403, FULL)
    assert Worker.objects.count() == 1


def test_who_has_joined_comes_home_by_the_link_of_a_full_panel(client):
    panel = make_panel(max_workers=1)
    take_part(client, panel)
    assert client.get(path_of(panel))["Location"] == "/"


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_revoked_panel_takes_nobody(client, method):
    panel = make_panel(revoked_at=timezone.now())
    response = getattr(client, method)(path_of(panel), {"ticket": inviting.ticket(panel)})
    assert (response.status_code, lead(response)) == (410, WITHDRAWN)
    assert not Worker.objects.exists()


def test_who_joined_before_a_panel_was_revoked_works_on(client):
    panel = make_panel()
    take_part(client, panel)
    Panel.objects.update(revoked_at=timezone.now())
    assert client.get("/consent/").status_code == 503  # let in, and there is no consent form yet
    assert Client().get(inviting.link(Invitation.objects.get()).removeprefix(SITE)).status_code == 302


def test_a_ticket_lets_nobody_in_whose_invitation_was_revoked(client):
    panel = make_panel()
    page = Page(client.get(path_of(panel)))
    sent = page.sends(page.one("form"))
    client.post(path_of(panel), sent)
    Invitation.objects.update(revoked_at=timezone.now())
    response = Client().post(path_of(panel), sent)
    assert (response.status_code, lead(response)) == (410, WITHDRAWN)
    assert client.get(f"{path_of(panel)}?joined=yes", follow=True).status_code == 403
    assert Worker.objects.count() == 1


def test_nobody_is_shown_a_link_who_has_not_joined(client):
    response = client.get(f"{path_of(make_panel())}?joined=yes")
    assert Page(response).one("h1").text == "You are invited to take part"


# --- Forged and foreign links


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize(
    "token",
    ["x", "a:b", "%00", "é", "…" * 300, "00000000000000000000000000000000:signature"],
    ids=["short", "colon", "NUL", "accent", "long", "not signed"],
)
def test_a_forged_link_is_refused_with_a_sentence(client, method, token):
    response = getattr(client, method)(f"/join/{token}/")
    assert (response.status_code, lead(response)) == (404, NOT_COMPLETE)


def test_a_link_with_a_letter_missing_is_refused_as_one_of_a_panel_that_never_was(client):
    panel = make_panel()
    cut, unknown = path_of(panel)[:-2] + "/", path_of(Panel(name="never saved"))
    answers = [client.get(path) for path in (cut, unknown)]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert lead(answers[0]) == lead(answers[1]) == NOT_COMPLETE


def test_the_token_of_an_invitation_is_none_of_a_panel_and_the_other_way_round(client):
    panel = make_panel()
    invitation = consenting_worker().invitations.create(key=panel.key)  # so that only the salt tells them apart
    personal, of_panel = inviting.link(invitation).removeprefix(SITE), path_of(panel)
    assert client.get(personal.replace("/invite/", "/join/")).status_code == 404
    assert client.get(of_panel.replace("/join/", "/invite/")).status_code == 404
    assert "invitation" not in client.session


@pytest.mark.parametrize("signed", ["not a key", "0" * 32])
def test_a_signature_for_something_else_is_refused(client, signed):
    token = signing.Signer(salt="annotator.panel").sign(signed)
    assert client.get(f"/join/{token}/").status_code == 404


# --- Many at once


@pytest.mark.django_db(transaction=True)
def test_of_twelve_who_join_at_once_as_many_get_in_as_there_are_places():
    panel = make_panel(max_workers=5)
    results = at_once(*[lambda: inviting.join(panel=panel)] * 12)
    assert sum(isinstance(result, Invitation) for result in results) == 5
    assert sum(isinstance(result, inviting.PanelFull) for result in results) == 7
    assert panel.workers.count() == 5


@pytest.mark.django_db(transaction=True)
def test_of_eight_who_join_at_once_with_one_participant_id_one_gets_in():
    panel = make_panel()
    results = at_once(*[lambda: inviting.join(panel=panel, pay_reference="60af")] * 8)
    assert sum(isinstance(result, Invitation) for result in results) == 1
    assert sum(isinstance(result, inviting.JoinedBefore) for result in results) == 7


@pytest.mark.django_db(transaction=True)
def test_of_a_double_click_that_arrives_at_once_the_second_finds_the_first_ones_worker():
    panel, key = make_panel(max_workers=1), uuid.uuid4()
    first, second = at_once(*[lambda: inviting.join(panel=panel, key=key)] * 2)
    assert first == second == Invitation.objects.get()


# --- In the workspace


def test_adding_a_panel_shows_its_link_and_how_many_have_joined(admin_client):
    admin_client.post("/admin/annotator/panel/add/", {"name": "first wave", "max_workers": "5"})
    panel = Panel.objects.get()
    inviting.join(panel=panel)
    for address in ("/admin/annotator/panel/", f"/admin/annotator/panel/{panel.pk}/change/"):
        page = admin_client.get(address).content.decode()
        assert f"http://localhost:8000/join/{panel.key.hex}:" in page
        assert re.search(r"\b1 of 5\b", page)


def test_revoking_panels_says_how_many_and_keeps_when_it_was(admin_client):
    panel = make_panel()
    chosen = {"action": "revoke", "_selected_action": [panel.pk]}
    response = admin_client.post("/admin/annotator/panel/", chosen, follow=True)
    assert [str(message) for message in response.context["messages"]] == ["Panels revoked: 1."]
    panel.refresh_from_db()
    revoked_at = panel.revoked_at
    response = admin_client.post("/admin/annotator/panel/", chosen, follow=True)
    assert [str(message) for message in response.context["messages"]] == ["Panels revoked: 0."]
    panel.refresh_from_db()
    assert panel.revoked_at == revoked_at
