"""The overview: exact while it is little, PostgreSQL's estimates where it is much."""

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection

from generation.models import Generation, Label
from tests.factories import accept, make_group, make_hit

pytestmark = pytest.mark.django_db


def tiles(client):
    html = client.get("/admin/").content.decode()
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html))


def make_statements(number, *, about="heron"):
    group = make_group()
    texts = (f"{about} {place}" for place in range(number))
    Generation.objects.bulk_create(
        Generation(text=text, group=group, label=Label.BENIGN, method="topk") for text in texts
    )


def estimate_tables():
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ANALYZE generation_generation")


def test_what_is_little_is_counted(admin_client):
    make_hit()
    accept()
    make_hit()
    assert tiles(admin_client) == {
        "Runs at work": "0",
        "Statements": "2",
        "HITs": "2",
        "HITs with a free place": "2",
        "People at work now": "1",
        "Annotations": "0",
        "Workers": "1",
    }


def test_five_hundred_are_counted_and_more_are_estimated(admin_client):
    make_statements(500)
    assert tiles(admin_client)["Statements"] == "500"
    make_statements(1_000, about="crane")
    estimate_tables()
    assert tiles(admin_client)["Statements"] == "about 1,500"


def test_much_that_was_not_estimated_yet_is_said_to_be_more_than_was_counted(admin_client):
    estimate_tables()
    make_statements(501)
    assert tiles(admin_client)["Statements"] == "more than 500"


def test_more_free_hits_than_are_counted_are_said_to_be_more(admin_client, monkeypatch):
    monkeypatch.setattr("generation.admin.lists.COUNTED_UP_TO", 1)
    make_hit()
    make_hit()
    assert tiles(admin_client)["HITs with a free place"] == "more than 1"


@pytest.mark.parametrize(("permissions", "is_offered"), [(["view_hittype"], False), (["view_generation"], True)])
def test_the_export_is_offered_to_those_who_may(client, permissions, is_offered):
    user = User.objects.create_user("otto", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    assert ("Export the labelled set" in client.get("/admin/").content.decode()) is is_offered
