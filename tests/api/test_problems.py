"""Errors of the API are problem details (RFC 9457), whatever goes wrong and wherever."""

import pytest
from django.test import Client

from tests.api.world import token_of

pytestmark = pytest.mark.django_db

PROBLEM = "application/problem+json"


def problem(response):
    assert response["Content-Type"] == PROBLEM
    shown = response.json()
    assert (shown["type"], shown["status"]) == ("about:blank", response.status_code)
    return shown


def test_a_problem_says_what_was_wrong_and_where(admin):
    assert problem(admin.get("/api/runs/17/")) == {
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "There is nothing at this address, or it is not yours to see.",
        "instance": "/api/runs/17/",
    }


def test_wrong_fields_are_named_with_a_sentence_each(admin):
    asked = {"cells": [{"group": "women", "label": "benign", "count": 0}], "seed": "one", "method": "magic"}
    shown = problem(admin.post("/api/runs/", asked, content_type="application/json"))
    assert shown["status"] == 400
    assert shown["errors"] == {
        "cells.0.count": ["Ensure this value is greater than or equal to 1."],
        "seed": ["A valid integer is required."],
        "method": ["“magic” is no choice. There are: topk, alice, paired."],
    }


def test_what_an_act_refuses_is_said_in_its_own_words(admin):
    asked = {"cells": [{"group": "women", "label": "toxic", "count": 3}]}
    shown = problem(admin.post("/api/runs/", asked, content_type="application/json"))
    assert shown["status"] == 400
    [sentence] = shown["errors"]["request"]
    assert "the toxic set of Women" in sentence


def test_what_cannot_be_done_as_things_are_is_a_conflict(admin, world):
    shown = problem(admin.post(f"/api/runs/{world.run.pk}/resume/"))
    assert (shown["status"], shown["title"]) == (409, "Conflict")
    assert shown["detail"] == f"Run {world.run.pk} is queued: it is not paused, so that there is nothing to resume."


def test_somebody_unknown_is_told_how_to_come_in():
    response = Client().get("/api/runs/")
    assert problem(response)["status"] == 401
    assert response["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("token", ["nonsense", "x" * 15, "ü", "a b", ""])
def test_a_token_that_is_none_of_ours_is_refused(token):
    response = Client().get("/api/runs/", headers={"authorization": f"Bearer {token}".encode().decode("latin-1")})
    assert problem(response)["status"] == 401


def test_a_filter_that_there_is_not_is_refused(admin):
    shown = problem(admin.get("/api/runs/?sate=queued"))
    assert shown["errors"] == {"request": ["There is no filter “sate”. There are: state, method."]}


def test_a_body_that_is_no_json_is_refused(admin):
    shown = problem(admin.generic("POST", "/api/invitations/", "{", content_type="application/json"))
    assert (shown["status"], shown["detail"].split(" - ")[0]) == (400, "JSON parse error")


def test_a_body_in_another_form_is_refused(admin):
    assert problem(admin.post("/api/invitations/", {"note": "x"}))["status"] == 415


def test_an_answer_in_another_form_is_not_to_be_had(admin):
    assert problem(admin.get("/api/runs/", headers={"accept": "text/html"}))["status"] == 406


def test_a_method_that_an_address_does_not_have_is_refused(admin):
    assert problem(admin.delete("/api/runs/"))["status"] == 405


def test_an_unknown_address_is_told_so_also_to_somebody_unknown():
    shown = problem(Client().get("/api/no/such/thing"))
    assert (shown["status"], shown["detail"]) == (
        404,
        "There is no address /api/no/such/thing in the API. Addresses here end with a slash: /api/no/such/thing/. "
        "/api/docs/ lists all that there are.",
    )


@pytest.mark.parametrize("sent", ["a\u0000b", "\ud800"])
def test_characters_that_cannot_be_stored_are_refused(admin, sent):
    shown = problem(admin.post("/api/invitations/", {"note": sent}, content_type="application/json"))
    assert (shown["status"], list(shown["errors"])) == (400, ["note"])


@pytest.mark.parametrize(
    "address",
    [
        f"runs/{2**63}/",
        f"runs/{'9' * 300}/",
        "runs/%00/",
        "generations/?search=%00",
        f"hits/?study={2**63}",
        "payments/?worker=%00",
        "generations/?toxic_prob_from=nan",
        "generations/?toxic_prob_from=1e999",
        "runs/?cursor=cD0lMDA=",
        "runs/?page_size=0",
        "exports/annotated/csv/?submitted_from=0000-00-00",
        "exports/annotated/csv/?run=99999999999999999999",
    ],
)
def test_values_beyond_every_bound_are_refused(admin, address):
    assert problem(admin.get(f"/api/{address}"))["status"] in (400, 404)


def test_an_error_of_our_own_is_a_problem_too(monkeypatch, world):
    from generation.models import GenerationRun

    def broken(run):
        raise RuntimeError("a flaw")

    monkeypatch.setattr(GenerationRun, "progress", broken)
    client = Client(raise_request_exception=False, headers={"authorization": f"Bearer {token_of('admin')}"})
    shown = problem(client.get(f"/api/runs/{world.run.pk}/"))
    assert (shown["status"], shown["detail"]) == (
        500,
        "Something went wrong on our side. It was written to the log; trying again may help.",
    )


def test_other_pages_keep_their_own_errors(client):
    assert client.get("/no/such/page/")["Content-Type"] == "text/html; charset=utf-8"
