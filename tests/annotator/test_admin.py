"""The workspace's Annotate pages: what a researcher does there."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotator import inviting, submitting
from annotator.models import Invitation, Worker
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    log_in,
    make_assignment,
    make_consent_form,
    make_hit,
    make_worker,
)

pytestmark = pytest.mark.django_db


def messages_of(response):
    return [str(message) for message in response.context["messages"]]


def test_adding_an_invitation_makes_its_worker_and_shows_the_link(admin_client, client):
    admin_client.post("/admin/annotator/invitation/add/", {"note": "for Ada"})
    invitation = Invitation.objects.get()
    assert (invitation.note, invitation.worker) == ("for Ada", Worker.objects.get())
    page = admin_client.get("/admin/annotator/invitation/").content.decode()
    assert f"http://localhost:8000/invite/{invitation.key.hex}:" in page


def test_changing_the_note_of_an_invitation_keeps_its_worker(admin_client):
    invitation = make_worker().invitations.create(note="for Ada")
    admin_client.post(f"/admin/annotator/invitation/{invitation.pk}/change/", {"note": "for Bob"})
    invitation.refresh_from_db()
    assert (invitation.note, Worker.objects.get()) == ("for Bob", invitation.worker)


def test_revoking_invitations_ends_the_sessions_that_came_by_them(admin_client, client):
    log_in(client)
    invitation = Invitation.objects.get()
    response = admin_client.post(
        "/admin/annotator/invitation/", {"action": "revoke", "_selected_action": [invitation.pk]}, follow=True
    )
    assert messages_of(response) == ["Invitations revoked: 1."]
    assert client.get("/").status_code == 403


def test_replacing_an_invitation_revokes_it_and_lets_the_same_worker_in_by_a_new_link(admin_client, client):
    worker = log_in(client)
    old = Invitation.objects.get()
    response = admin_client.post(
        "/admin/annotator/invitation/", {"action": "replace", "_selected_action": [old.pk]}, follow=True
    )
    assert messages_of(response) == ["Invitations replaced: 1. Send the new links."]
    assert client.get("/").status_code == 403
    new = Invitation.objects.get(revoked_at=None)
    assert (new.worker, new.note, new.key == old.key) == (worker, old.note, False)
    assert client.get(inviting.link(new).removeprefix("http://localhost:8000")).status_code == 302
    assert client.get("/").status_code == 200


def test_replacing_a_revoked_invitation_keeps_when_it_was_revoked(admin_client):
    yesterday = timezone.now() - timedelta(days=1)
    old = make_worker().invitations.create(revoked_at=yesterday)
    admin_client.post("/admin/annotator/invitation/", {"action": "replace", "_selected_action": [old.pk]})
    old.refresh_from_db()
    assert old.revoked_at == yesterday


def test_a_published_consent_form_is_shown_and_cannot_be_edited(admin_client):
    form = make_consent_form(title="Before you begin")
    url = f"/admin/annotator/consentform/{form.pk}/change/"
    assert "Before you begin" in admin_client.get(url).content.decode()
    assert admin_client.post(url, {"title": "Other"}).status_code == 403
    form.refresh_from_db()
    assert form.title == "Before you begin"


def test_statements_are_blurred_in_lists_and_on_pages(admin_client):
    hit = make_hit("the <i>sky</i> is blue")
    for url in ("/admin/annotator/hit/", f"/admin/annotator/hit/{hit.pk}/change/"):
        page = admin_client.get(url).content.decode()
        assert page.count("the &lt;i&gt;sky&lt;/i&gt; is blue</span>") == page.count("sky") == 1
        assert 'class="blurred"' in page


def test_an_assignment_shows_its_nine_answers(admin_client):
    make_hit()
    assignment = accept()
    submitting.submit(assignment=assignment, answers=answers(other_framing="It praises <them>."))
    page = admin_client.get(f"/admin/annotator/assignment/{assignment.pk}/change/").content.decode()
    assert "It claims to be factual" in page
    assert "It praises &lt;them&gt;." in page


@pytest.mark.parametrize("model", ["hit", "assignment", "worker", "invitation", "hittype"])
def test_a_list_takes_as_many_queries_for_three_rows_as_for_nine(admin_client, model):
    def queries():
        with CaptureQueriesContext(connection) as context:
            assert admin_client.get(f"/admin/annotator/{model}/").status_code == 200
        return len(context)

    def add_rows():
        for _ in range(3):
            worker = consenting_worker()
            worker.invitations.create(used_at=timezone.now())
            make_assignment(worker=worker)

    add_rows()
    few = queries()
    add_rows(), add_rows()
    assert queries() == few
