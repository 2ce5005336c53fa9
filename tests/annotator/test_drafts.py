"""Nothing typed is lost: what was not submitted yet is kept, and shown again wherever the statement is opened."""

import uuid

import pytest
from django.test import Client
from django.utils import timezone

from annotator import assigning
from annotator.models import Consent, Worker
from tests.annotator.page import Page
from tests.factories import answers, lapse, log_in, make_assignment

pytestmark = pytest.mark.django_db

TYPED = {
    "human_or_ai": "ai",
    "lewd": "maybe",
    "which_group": "other_groups",
    "other_groups": "cyclists, “bakers” & <x>",
}


def path(assignment):
    return f"/task/{assignment.key}/"


def draft_path(assignment):
    return f"/task/{assignment.key}/draft/"


def shown(client, assignment):
    """What the form of the task page holds."""
    page = Page(client.get(path(assignment)))
    sent = page.sends(page.one("form", id="answers"))
    return {name: value for name, value in sent.items() if value and name != "csrfmiddlewaretoken"}


def stored(assignment):
    assignment.refresh_from_db()
    return assignment.draft


# --- Saved while one types


def test_what_is_typed_is_saved_and_there_after_a_reload(client, assignment):
    response = client.post(draft_path(assignment), TYPED)
    assert (response.status_code, response.content) == (204, b"")
    assert shown(client, assignment) == TYPED


def test_it_is_there_on_another_device(client, worker, assignment):
    client.post(draft_path(assignment), TYPED)
    telephone = Client()
    log_in(telephone, worker)
    assert shown(telephone, assignment) == TYPED


def test_it_is_there_after_the_log_in_lapsed_and_the_link_was_opened_again(client, worker, assignment):
    client.post(draft_path(assignment), TYPED)
    client.cookies.clear()
    log_in(client, worker)
    assert shown(client, assignment) == TYPED


def test_the_last_draft_is_the_one_that_is_kept(client, assignment):
    client.post(draft_path(assignment), TYPED)
    client.post(draft_path(assignment), {"lewd": "no"})
    assert shown(client, assignment) == {"lewd": "no"}


def test_the_box_for_trouble_with_the_text_is_kept_too(client, assignment):
    client.post(draft_path(assignment), {"not_understood": "on"})
    assert shown(client, assignment) == {"not_understood": "on"}


def test_the_rest_of_the_page_is_as_without_a_draft(client, assignment):
    client.post(draft_path(assignment), TYPED)
    page = Page(client.get(path(assignment)))
    assert page.all(class_="error") == page.all(class_="summary") == []


@pytest.mark.parametrize(
    "typed",
    [{"other_groups": "\x00a"}, {"lewd": "\x00"}, {"lewd": ["no", "yes"]}, {"nonsense": "x"}, {"lewd": "rarely"}],
)
def test_a_draft_may_hold_anything_and_the_page_still_opens(client, assignment, typed):
    assert client.post(draft_path(assignment), typed).status_code == 204
    assert client.get(path(assignment)).status_code == 200


def test_a_draft_is_no_answer_and_submitting_ends_it(client, assignment):
    client.post(draft_path(assignment), answers())
    assert not hasattr(assignment, "annotation")
    client.post(path(assignment), answers())
    assert stored(assignment) is None


# --- Saved without JavaScript, by a submit with answers missing


def test_a_submit_with_answers_missing_saves_what_was_typed(client, assignment):
    assert client.post(path(assignment), TYPED).status_code == 422
    assert shown(client, assignment) == TYPED


def test_a_submit_that_cannot_be_read_into_a_draft_is_answered_all_the_same(client, assignment):
    assert client.post(path(assignment), {"other_framing": "a\x00b", "lewd": "x" * 5000}).status_code == 422
    assert client.get(path(assignment)).status_code == 200


# --- What is refused, in a sentence and with a status that the script reads


def test_a_draft_of_an_assignment_that_is_not_ones_own_is_refused(client, worker):
    other = make_assignment()
    for address in (draft_path(other), f"/task/{uuid.uuid4()}/draft/"):
        response = client.post(address, TYPED)
        assert (response.status_code, response["Content-Type"]) == (404, "text/plain")
        assert response.content.decode() == (
            "There is no such page for you. If you followed a link, it may belong to somebody else or be incomplete."
        )
    assert stored(other) is None


@pytest.mark.parametrize("end", ["submitted", "returned"])
def test_nothing_is_saved_for_a_statement_that_was_submitted_or_returned(client, assignment, end):
    if end == "submitted":
        client.post(path(assignment), answers())
    else:
        client.post(f"/task/{assignment.key}/return/")
    response = client.post(draft_path(assignment), TYPED)
    assert (response.status_code, response.content.decode()) == (
        410,
        "This statement was submitted or returned meanwhile, so nothing more is saved for it.",
    )
    assert stored(assignment) is None


def test_a_draft_is_saved_after_the_deadline_since_late_answers_are_taken(client, assignment):
    lapse(assignment)
    assigning.expire_lapsed()
    assert client.post(draft_path(assignment), TYPED).status_code == 204
    assert shown(client, assignment) == TYPED


def test_who_was_blocked_meanwhile_loses_nothing(client, assignment):
    Worker.objects.update(blocked_at=timezone.now(), blocked_reason="Ask Ada.")
    assert client.post(draft_path(assignment), TYPED).status_code == 204


def test_without_a_log_in_nothing_is_saved(assignment):
    assert Client().post(draft_path(assignment), TYPED).status_code == 403
    assert stored(assignment) is None


def test_without_consent_nothing_is_saved(client, assignment):
    Consent.objects.update(withdrawn_at=timezone.now())
    assert client.post(draft_path(assignment), TYPED).status_code == 403
    assert stored(assignment) is None


def test_a_draft_needs_the_csrf_token(worker, assignment):
    client = Client(enforce_csrf_checks=True)
    log_in(client, worker)
    assert client.post(draft_path(assignment), TYPED).status_code == 403
    assert stored(assignment) is None


def test_a_draft_cannot_be_saved_by_following_a_link(client, assignment):
    assert client.get(draft_path(assignment)).status_code == 405


def test_saving_a_draft_takes_four_queries(client, assignment, django_assert_num_queries):
    with django_assert_num_queries(4):  # session, worker, assignment, update
        client.post(draft_path(assignment), TYPED)
