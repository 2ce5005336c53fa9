"""Coming in by an invite link, and going: the annotator's session."""

import pytest
from django.contrib.sessions.models import Session
from django.core import signing
from django.test import Client
from django.utils import timezone

from annotator import inviting
from annotator.models import Assignment, Invitation, new_pseudonym
from tests.annotator.page import Page
from tests.factories import accept, answers, log_in, make_assignment, make_consent_form, make_hit, make_worker

pytestmark = pytest.mark.django_db

NOT_COMPLETE = (
    "This invite link is not complete or not one of ours. Copy the whole link from the message you got, "
    "or ask whoever sent it for a new one."
)
WITHDRAWN = "This invite link has been withdrawn. Ask whoever sent it for a new one; work you submitted is kept."


def path_of(invitation):
    return inviting.link(invitation).removeprefix("http://localhost:8000")


def lead(response):
    return Page(response).one("p", class_="lead").text


# --- The link


def test_a_new_invitation_makes_a_worker_with_a_pseudonym_of_its_own():
    first, second = inviting.invite(note="Ada"), inviting.invite()
    assert first.worker != second.worker
    assert first.worker.pseudonym != second.worker.pseudonym
    assert first.note == "Ada"


def test_a_link_begins_with_the_address_of_the_site(settings):
    settings.SITE_URL = "https://study.example"
    assert inviting.link(inviting.invite()).startswith("https://study.example/invite/")


def test_a_link_lets_its_worker_in(client):
    invitation = inviting.invite()
    response = client.get(path_of(invitation))
    assert (response.status_code, response["Location"]) == (302, "/")
    assert client.session["invitation"] == invitation.pk


def test_a_link_can_be_used_again_and_its_first_use_is_noted(client):
    invitation = inviting.invite()
    client.get(path_of(invitation))
    first_use = Invitation.objects.get().used_at
    assert first_use <= timezone.now()
    assert client.get(path_of(invitation)).status_code == 302
    assert Invitation.objects.get().used_at == first_use


@pytest.mark.parametrize(
    "token",
    ["x", "a:b", "%00", "é", "…" * 300, "00000000000000000000000000000000:signature"],
    ids=["short", "colon", "NUL", "accent", "long", "not signed"],
)
def test_a_malformed_link_is_refused_with_a_sentence(client, token):
    response = client.get(f"/invite/{token}/")
    assert (response.status_code, lead(response)) == (404, NOT_COMPLETE)


def test_a_link_with_a_letter_missing_is_refused(client):
    assert client.get(path_of(inviting.invite())[:-2] + "/").status_code == 404


def test_a_link_that_we_signed_for_an_invitation_that_is_gone_is_refused(client):
    invitation = inviting.invite()
    path = path_of(invitation)
    invitation.delete()
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("signed", ["not a key", "0" * 32])
def test_a_signature_for_something_else_is_refused(client, signed):
    token = signing.Signer(salt="annotator.invitation").sign(signed)
    assert client.get(f"/invite/{token}/").status_code == 404


def test_a_revoked_link_is_refused_with_a_sentence_and_logs_nobody_in(client):
    invitation = inviting.invite()
    Invitation.objects.update(revoked_at=timezone.now())
    response = client.get(path_of(invitation))
    assert (response.status_code, lead(response)) == (410, WITHDRAWN)
    assert "invitation" not in client.session


def test_revoking_ends_running_sessions(client):
    log_in(client)
    assert client.get("/").status_code == 200
    Invitation.objects.update(revoked_at=timezone.now())
    response = client.get("/")
    assert response.status_code == 403
    assert lead(response) == (
        "You are not logged in, or your log-in has ended. Open your invite link again; what you had begun is waiting "
        "there."
    )


def test_revoking_one_invitation_leaves_another_of_the_same_worker_alone(client):
    worker = log_in(client)
    worker.invitations.create(revoked_at=timezone.now())
    assert client.get("/").status_code == 200


def test_a_link_changes_the_session_key_so_that_nobody_can_plant_one(client):
    client.cookies["sessionid"] = planted = planted_session()
    client.get(path_of(inviting.invite()))
    assert client.cookies["sessionid"].value != planted
    assert not Session.objects.filter(session_key=planted).exists()


def planted_session():
    attacker = Client()
    session = attacker.session
    session["planted"] = True
    session.save()
    return session.session_key


def test_the_link_of_another_worker_takes_the_place_of_the_first(client):
    log_in(client)
    second = log_in(client)
    assert Invitation.objects.get(pk=client.session["invitation"]).worker == second


def test_without_consent_the_home_page_leads_to_the_consent_form(client):
    make_consent_form()
    log_in(client, make_worker())
    response = client.get("/")
    assert (response.status_code, response["Location"]) == (302, "/consent/")


# --- Going


def test_stopping_returns_the_open_statement_and_keeps_what_was_submitted(client):
    make_hit(hit_type=make_hit().hit_type)
    worker = log_in(client)
    client.post(f"/task/{accept(worker).key}/", answers())
    opened = Assignment.objects.accepted().get()
    response = client.post("/stop/")
    assert (response.status_code, response["Location"]) == (302, "/debrief/")
    opened.refresh_from_db()
    assert opened.status == "returned"
    assert worker.assignments.submitted().count() == 1


def test_stopping_returns_nobody_elses_statement(client):
    other = make_assignment()
    log_in(client)
    client.post("/stop/")
    other.refresh_from_db()
    assert other.status == "accepted"


def test_leaving_ends_the_session(client):
    log_in(client)
    response = client.post("/leave/")
    assert (response.status_code, response["Location"]) == (302, "/")
    assert not Session.objects.exists()
    assert Page(client.get("/")).one("h1").text == "People judge what machines write"


def test_after_leaving_the_link_lets_in_again(client):
    worker = log_in(client)
    client.post("/leave/")
    log_in(client, worker)
    assert client.get("/").status_code == 200


def test_a_pseudonym_has_no_letters_that_look_like_digits():
    assert not set("".join(new_pseudonym() for _ in range(200))) & set("01IOl")
