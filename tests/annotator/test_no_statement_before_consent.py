"""No statement reaches a browser before its worker's consent to the form in force is stored.

Every address of the annotators' pages is tried, whatever is added to them.
"""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotator import consenting, submitting, urls
from annotator.models import Annotation, Consent
from tests.factories import accept, answers, log_in, make_assignment, make_consent_form, make_hit, make_worker

pytestmark = pytest.mark.django_db

STATEMENTS = ("the library opens at nine on weekdays", "the bakery closes at noon on sundays")


def every_url(**parameters):
    """Each address of the annotators' pages, with these parameters; a new parameter fails here."""
    for pattern in urls.urlpatterns:
        names = pattern.pattern.converters
        yield reverse(f"annotator:{pattern.name}", kwargs={name: parameters[name] for name in names})


def no_statement(response):
    return not any(text.encode() in response.content for text in STATEMENTS)


def walk(client, assignment):
    """Responses of every URL to GET and POST, with valid answers and with none, redirects followed."""
    parameters = {"token": "x", "hit_type_id": assignment.hit.hit_type_id, "key": assignment.key}
    for url in every_url(**parameters):
        for response in (
            client.get(url, follow=True),
            client.post(url, follow=True),
            client.post(url, answers(harmful_if_ai=9), follow=True),
        ):
            yield url, response


def test_no_statement_is_in_any_response_to_somebody_who_never_consented(client, study):
    make_consent_form()
    worker = make_worker()
    somebody_elses = accept()
    log_in(client, worker)
    for url, response in walk(client, somebody_elses):
        assert no_statement(response), url
        log_in(client, worker)  # one of the pages ends the session
    assert not Annotation.objects.filter(assignment__worker=worker).exists()


def test_no_statement_is_in_any_response_once_a_new_version_waits_for_consent(client, worker, assignment):
    make_consent_form(version=2)
    for url, response in walk(client, assignment):
        assert no_statement(response), url
        log_in(client, worker)
    assert not Annotation.objects.exists()


@pytest.mark.parametrize("delete_answers", [False, True])
def test_no_statement_is_in_any_response_after_consent_is_withdrawn(client, worker, assignment, delete_answers):
    submitting.submit(assignment=assignment, answers=answers())
    opened = accept(worker)
    consenting.withdraw(worker=worker, delete_answers=delete_answers)
    for url, response in walk(client, opened):
        assert no_statement(response), url
        log_in(client, worker)


def test_no_statement_is_in_any_response_once_there_is_no_consent_whatever_else_is_open(client, worker, assignment):
    Consent.objects.update(withdrawn_at=timezone.now())
    for url, response in walk(client, assignment):
        assert no_statement(response), url
        log_in(client, worker)


def test_no_statement_is_in_any_response_to_somebody_who_is_not_logged_in(assignment):
    for url, response in walk(Client(), assignment):
        assert no_statement(response), url


def test_no_statement_of_another_worker_is_in_any_response(client, worker):
    somebody_elses = make_assignment(make_hit("the tram is blue", max_assignments=1))
    for url, response in walk(client, somebody_elses):
        assert b"the tram is blue" not in response.content, url
        log_in(client, worker)


def test_the_walk_meets_the_statement_when_consent_is_there(client, worker, assignment):
    met = False
    for _, response in walk(client, assignment):
        met = met or not no_statement(response)
        log_in(client, worker)
    assert met
