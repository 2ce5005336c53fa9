"""The workspace's Annotate pages: what a researcher does there."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotator import inviting, submitting
from annotator.models import HITType, Invitation, Worker
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    log_in,
    make_assignment,
    make_consent_form,
    make_generation,
    make_hit,
    make_run,
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


def study_fields(**changes):
    return {
        "title": "A study",
        "description": "Read a text.",
        "reward": "0.25",
        "assignment_duration": "00:30:00",
        "auto_approval_delay": "3 00:00:00",
        "lifetime": "30 00:00:00",
        "max_assignments": "3",
    } | changes


def test_saving_a_study_that_is_fed_from_a_run_publishes_what_the_run_has_written(admin_client):
    run = make_run()
    make_generation("the sky is blue", run=run, chunk=run.chunks.first(), position=0)
    response = admin_client.post("/admin/annotator/hittype/add/", study_fields(run=run.pk))
    assert response.status_code == 302, response.context["errors"]
    assert HITType.objects.get().hits.get().generation.text == "the sky is blue"


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("reward", "-0.01", "Ensure this value is greater than or equal to 0.00."),
        ("max_assignments", "0", "At least one annotator must judge each statement."),
        ("assignment_duration", "0", "Annotators need some time for a statement: give a duration above 0."),
    ],
)
def test_a_study_that_cannot_be_is_refused_on_its_page(admin_client, field, value, sentence):
    response = admin_client.post("/admin/annotator/hittype/add/", study_fields(**{field: value}))
    assert response.status_code == 200
    assert sentence in str(response.context["errors"])
    assert not HITType.objects.exists()


def test_a_worker_is_blocked_with_a_reason_that_they_read(admin_client):
    worker = make_worker()
    blocked = {"blocked_at_0": "2026-11-21", "blocked_at_1": "12:00:00", "blocked_reason": ""}
    response = admin_client.post(f"/admin/annotator/worker/{worker.pk}/change/", blocked)
    assert "Say why the worker is blocked: they read the reason." in str(response.context["errors"])
    blocked["blocked_reason"] = "Ask Ada about your last answers."
    assert admin_client.post(f"/admin/annotator/worker/{worker.pk}/change/", blocked).status_code == 302
    worker.refresh_from_db()
    assert worker.blocked_reason == "Ask Ada about your last answers."


def test_a_published_consent_form_is_shown_and_cannot_be_edited(admin_client):
    form = make_consent_form(title="Before you begin")
    url = f"/admin/annotator/consentform/{form.pk}/change/"
    assert "Before you begin" in admin_client.get(url).content.decode()
    assert admin_client.post(url, {"title": "Other"}).status_code == 403
    form.refresh_from_db()
    assert form.title == "Before you begin"


def test_a_draft_of_a_consent_form_can_be_published(admin_client):
    draft = make_consent_form(published_at=None)
    admin_client.post(
        f"/admin/annotator/consentform/{draft.pk}/change/",
        {
            "version": "1",
            "title": "Before you begin",
            "warning": "Careful.",
            "body": "Why.",
            "published_at_0": "2026-11-21",
            "published_at_1": "12:00:00",
        },
    )
    draft.refresh_from_db()
    assert (draft.body, draft.published_at is None) == ("Why.", False)


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
