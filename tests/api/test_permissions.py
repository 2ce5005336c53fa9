"""Who may do what through the API: each address as each role. Annotators are no users and get nothing."""

import re

import pytest
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from django.urls import get_resolver

from annotator import inviting
from tests.api.world import user_of

pytestmark = pytest.mark.django_db

# By method and address: what a researcher gets, and what an admin gets. Others are told 401, or 403 if logged in.
# “400” and “409” are refusals of what was sent, here nothing: the role would have been allowed to send it.
MAY = {
    "GET schema/": (200, 200),
    **{
        f"GET {name}/{row}": (200, 200)
        for name in (
            "groups",
            "demonstrations",
            "trials",
            "responses",
            "runs",
            "generations",
            "readings",
            "studies",
            "hits",
            "assignments",
            "consent-forms",
            "invitations",
            "qualifications",
            "payments",
            "payouts",
            "audit-entries",
            "imports",
            "humanval",
            "classifiers",
            "test-sets",
            "evaluations",
        )
        for row in ("", "<id>/")
    },
    "GET agreement/<id>/": (200, 200),
    "GET reports/": (200, 200),
    "GET reports/<id>/": (202, 202),  # it is worked out first
    "POST reports/<id>/work-out/": (202, 202),
    "GET exports/": (200, 200),
    "GET exports/train/csv/": (200, 200),
    "GET exports/annotated/csv/": (200, 200),
    "GET exports/annotations/csv/": (200, 200),
    "GET exports/wide/csv/": (200, 200),
    "GET exports/mturk/csv/": (200, 200),
    "GET exports/humanval/csv/": (200, 200),
    "GET imports/<id>/faults/": (200, 200),
    "GET studies/<id>/watch/": (200, 200),
    "GET studies/<id>/draws/": (200, 200),
    "POST agreement/<id>/work-out/": (202, 202),
    "POST groups/": (400, 400),
    "PATCH groups/<id>/": (200, 200),
    "POST demonstrations/": (400, 400),
    "PATCH demonstrations/<id>/": (200, 200),
    "POST demonstrations/<id>/retire/": (400, 400),
    "POST demonstrations/<id>/bring-back/": (409, 409),
    "POST trials/": (400, 400),
    "POST responses/<id>/promote/": (201, 201),
    "POST responses/<id>/mark-bad/": (400, 400),
    "POST responses/<id>/undo/": (200, 200),
    "POST runs/": (400, 400),
    "POST runs/<id>/pause/": (200, 200),
    "POST runs/<id>/resume/": (409, 409),
    "POST runs/<id>/cancel/": (200, 200),
    "POST readings/": (400, 400),
    "POST readings/<id>/stop/": (200, 200),
    "POST studies/": (400, 400),
    "PATCH studies/<id>/": (200, 200),
    "POST studies/<id>/choose/preview/": (400, 400),
    "POST studies/<id>/choose/publish/": (400, 400),
    "POST studies/<id>/publish-run/": (400, 400),
    "POST studies/<id>/stop/": (200, 200),
    "POST studies/<id>/resume/": (409, 409),
    "POST studies/<id>/extend/": (400, 400),
    "POST assignments/approve/": (400, 400),
    "POST assignments/reject/": (400, 400),
    "POST assignments/approve-after-all/": (400, 400),
    "POST assignments/reopen/": (400, 400),
    "POST consent-forms/": (400, 400),
    "PATCH consent-forms/<id>/": (409, 409),
    "POST consent-forms/<id>/publish/": (409, 409),
    "POST consent-forms/<id>/new-version/": (200, 200),
    "POST invitations/": (201, 201),
    "POST invitations/<id>/revoke/": (200, 200),
    "POST invitations/<id>/replace/": (201, 201),
    "POST qualifications/": (400, 400),
    "POST imports/": (400, 400),
    "POST imports/<id>/stop/": (200, 200),
    "GET humanval/<id>/changed/": (409, 409),
    "GET humanval/<id>/verification/": (409, 409),
    "POST humanval/": (400, 400),
    "POST humanval/<id>/stop/": (200, 200),
    "POST humanval/<id>/publish/": (409, 409),
    "POST humanval/<id>/freeze/": (409, 409),
    "POST humanval/<id>/new-version/": (409, 409),
    "POST humanval/<id>/compare/": (409, 409),
    "POST humanval/<id>/verify/": (409, 409),
    "POST classifiers/": (400, 400),
    "POST classifiers/<id>/stop/": (200, 200),
    "POST classifiers/<id>/resume/": (409, 409),
    "POST test-sets/": (400, 400),
    "POST evaluations/": (400, 400),
    "POST evaluations/<id>/stop/": (200, 200),
}


def ask(client, what, world):
    """With nothing sent along."""
    method, address = what.split()
    name = address.split("/")[0]
    path = "/api/" + address.replace("<id>", str(world.ids.get(name)))
    if name in ("imports", "test-sets") and method == "POST":
        return client.post(path)
    response = client.generic(method, path, "{}" if method != "GET" else "", content_type="application/json")
    if response.streaming:
        response.getvalue()  # which closes the file
    return response


def who_is_not_staff(world):
    """Anonymous; an annotator, come in by a link; a user who is no staff; staff with no permission."""
    annotator = Client()
    annotator.get(inviting.link(world.worker.invitations.create()).removeprefix("http://localhost:8000"))
    outsider, guest = Client(), Client()
    outsider.force_login(user_of("outsider"))
    guest.force_login(user_of("guest"))
    return {"anonymous": Client(), "annotator": annotator, "outsider": outsider, "guest": guest}


def test_each_role_gets_what_is_written_down(world, researcher, admin):
    def alone(client, what):
        with transaction.atomic():
            status = ask(client, what, world).status_code
            transaction.set_rollback(True)
        return status

    got = {what: (alone(researcher, what), alone(admin, what)) for what in MAY}
    assert {what: statuses for what, statuses in got.items() if statuses != MAY[what]} == {}


def test_nobody_else_gets_anything(world):
    expected = {"anonymous": 401, "annotator": 401, "outsider": 403, "guest": 403}
    clients = who_is_not_staff(world)
    told_of_nothing = {("guest", "GET schema/"), ("guest", "GET exports/"), ("guest", "GET reports/")}
    wrong = []
    for what in MAY:
        cache.clear()  # or they would be throttled
        for role, client in clients.items():
            status = ask(client, what, world).status_code
            if status != expected[role] and (role, what) not in told_of_nothing:
                wrong.append((role, what, status))
    assert wrong == []


def test_the_tables_have_every_address():
    """And every method that it takes."""
    there = set()
    for route, callback in addresses(get_resolver().url_patterns):
        actions = getattr(callback, "actions", None) or {"get": "get"}
        kept = callback.cls.http_method_names if hasattr(callback, "cls") else ["get"]
        there |= {(method.upper(), route) for method in actions if method != "head" and method in kept}
    written = {(what.split()[0], plain(what.split()[1])) for what in MAY}
    assert {what for what in there if what[1] not in ("docs/", "")} == written


def addresses(patterns, route=""):
    for pattern in patterns:
        here = route + str(pattern.pattern).strip("^$")
        if hasattr(pattern, "url_patterns"):
            yield from addresses(pattern.url_patterns, here)
        elif here.startswith("api/"):
            yield shown(here.removeprefix("api/")), pattern.callback


def shown(route):
    return re.sub(r"\(\?P<\w+>[^)]*\)", "<>", route)


def plain(address):
    if address.startswith("exports/") and address != "exports/":
        return "exports/<>/<>/"
    return address.replace("<id>", "<>")


@pytest.mark.parametrize("what", ["exports", "reports"])
def test_a_guest_is_told_of_no_export_and_no_report(world, what):
    assert who_is_not_staff(world)["guest"].get(f"/api/{what}/").json() == []


def test_an_export_takes_its_own_permission_and_that_to_read_statements(world, call):
    guest = call("guest")
    user_of("guest").user_permissions.add(Permission.objects.get(codename="view_annotation"))
    assert guest.get("/api/exports/").json() == []
    refused = guest.get("/api/exports/annotations/csv/")
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "Your role does not allow this export. Ask an admin for it.",
    )


def test_a_report_with_texts_of_statements_takes_the_permission_to_read_them(world, call):
    guest, browser = call("guest"), who_is_not_staff(world)["guest"]
    user_of("guest").user_permissions.add(Permission.objects.get(codename="view_annotation"))
    assert "human-validation" not in {report["name"] for report in guest.get("/api/reports/").json()}
    assert guest.get("/api/reports/groups/").status_code == 202
    assert guest.get("/api/reports/human-validation/").status_code == 403
    for address in ("human-validation.json", "human-validation/examples.csv", "human-validation/"):
        assert browser.get(f"/admin/analyse/human-validation/{address}").status_code == 403, address
    user_of("guest").user_permissions.add(Permission.objects.get(codename="view_generation"))
    assert call("guest").get("/api/reports/human-validation/").status_code == 202


def test_a_toxic_set_is_filled_by_those_who_may(world, researcher, admin):
    asked = {"group": "women", "label": "toxic", "texts": ["placeholder words"]}
    refused = researcher.post("/api/demonstrations/", asked, content_type="application/json")
    assert refused.status_code == 403
    assert "the permission" in refused.json()["detail"]
    assert admin.post("/api/demonstrations/", asked, content_type="application/json").status_code == 201


def test_a_session_needs_the_csrf_token_and_a_token_does_not(world):
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(user_of("admin"))
    refused = browser.post("/api/invitations/", {}, content_type="application/json")
    assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
    assert browser.get("/api/invitations/").status_code == 200
