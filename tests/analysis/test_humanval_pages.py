"""The pages and the API of HUMANVAL sets: what they say in every state, bad input, and how many queries they take."""

import re
from xml.etree import ElementTree

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from analysis.humanval import comparing, drawing, freezing, sets
from analysis.models import HumanvalProof, HumanvalSet
from annotator import reviewing
from annotator.models import Annotation, Assignment, HITType
from config.roles import RESEARCHER
from generation.models import AuditEntry, Reading
from tests.analysis.humanval_world import apart, draw, frozen, ids_of, judge, published, scattered, statement
from tests.factories import make_generation, make_group

pytestmark = pytest.mark.django_db

ADD = "/admin/analysis/humanvalset/add/"
ASKED = {"size": "4", "threshold": "0.7", "candidates": "2", "seed": "3"}


@pytest.fixture
def researcher(client):
    user = User.objects.create(username="ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client.force_login(user)
    return client


def page_of(client, humanval_set):
    response = client.get(reverse("admin:analysis_humanvalset_change", args=[humanval_set.pk]))
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def act(client, name, humanval_set, **data):
    return client.post(reverse(f"admin:analysis_humanval_{name}", args=[humanval_set.pk]), data)


def table_of(text):
    return re.search(r"<table>.*?</table>", text, flags=re.DOTALL)[0]


# --- Asking for a set


def test_the_form_previews_what_there_is_of_each_stratum(researcher):
    scattered(3)
    response = researcher.get(ADD, ASKED)
    assert response.status_code == 200
    text = response.content.decode()
    assert "What there is to choose from" in text
    assert [cell.text for cell in ElementTree.fromstring(table_of(text)).iter("th")] == [
        "Group", "benign, top-k", "benign, ALICE", "toxic, top-k", "toxic, ALICE", "Asian", "Women",
    ]  # fmt: skip
    assert "topk</" not in text
    assert 'value="written"' not in text
    assert not HumanvalSet.objects.exists()


def test_a_preview_has_an_address_without_token_and_without_empty_filters(researcher):
    scattered(3)
    form = researcher.get(ADD).content.decode()
    assert 'type="hidden" name="csrfmiddlewaretoken"' not in form.split('aria-labelledby="set-heading"')[1]
    response = researcher.get(ADD, ASKED | {"run": "", "imported": "", "score_min": "", "group": "women"})
    assert response.status_code == 302
    assert response.url == f"{ADD}?size=4&threshold=0.7&candidates=2&seed=3&group=women"
    assert researcher.get(response.url).status_code == 200


def test_the_set_is_drawn_by_the_button_that_carries_the_token():
    scattered(3)
    user = User.objects.create(username="ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    form = client.get(ADD).content.decode()
    token = re.search(r'formmethod="post" name="csrfmiddlewaretoken" value="(\w+)"', form)[1]
    assert client.post(ADD, ASKED).status_code == 403
    assert client.post(ADD, ASKED | {"csrfmiddlewaretoken": token}).status_code == 302


def test_the_set_that_was_asked_for_is_drawn_on_the_queue_and_watched(researcher):
    scattered(3)
    response = researcher.post(ADD, ASKED | {"group": ["women"], "method": ["topk"]})
    wanted = HumanvalSet.objects.get()
    assert response.url == reverse("admin:analysis_humanvalset_change", args=[wanted.pk])
    assert (wanted.size, wanted.candidates, wanted.seed) == (4, 2, 3)
    assert wanted.filters == {"group": ["women"], "method": ["topk"]}
    assert "It waits for a worker." in page_of(researcher, wanted)
    assert "every 2s" in page_of(researcher, wanted)
    drawing.work_on_set(set_id=wanted.pk)
    text = page_of(researcher, wanted)
    assert "4 statements, drawn from 6 and compared with all 24" in text
    assert "every 2s" not in text
    assert "Groups: Women; Methods: top-k" in text
    assert '<th scope="row">Women</th>' in text


def test_while_statements_are_embedded_it_says_how_many(researcher):
    apart(3)
    make_generation()
    wanted = sets.ask_for_set(size=2, seed=1, wake=False)
    drawing.work_on_set(set_id=wanted.pk)
    assert "0 of 1 statements are embedded." in page_of(researcher, wanted)
    Reading.objects.update(finished_at=timezone.now(), failure="The model is broken.")
    drawing.work_on_set(set_id=wanted.pk)
    assert "The statements could not be embedded (reading" in page_of(researcher, wanted)


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"size": "99"}, "There are only 8 statements to choose from. Give a size of at most 8, or wider filters."),
        ({"size": ""}, "This field is required."),
        ({"size": "0"}, "A set has 1 to 50,000 statements, not 0."),
        ({"threshold": "0"}, "The threshold is a cosine above 0 and up to 1, not 0."),
        ({"threshold": "nan"}, "Enter a number."),
        ({"candidates": "0"}, "Draw 1 to 100 candidates for each place, not 0."),
        ({"label": "toxic"}, "There is no statement to choose from."),
        ({"group": "moon"}, "There is no group “moon”."),
        ({"score_min": "0.9", "score_max": "0.1"}, "The last score lies before the first: 0.1 is less than 0.9."),
    ],
)
def test_what_cannot_be_drawn_is_said_beside_its_field(researcher, method, given, sentence):
    apart(8)
    response = getattr(researcher, method)(ADD, ASKED | given)
    assert response.status_code == 422
    assert sentence in response.content.decode()
    assert not HumanvalSet.objects.exists()


def test_without_a_single_statement_the_form_says_so(researcher):
    assert researcher.get(ADD).status_code == 200
    assert "There is no statement to choose from." in researcher.post(ADD, ASKED).content.decode()


def test_a_set_can_be_given_up_while_it_waits(researcher):
    apart(2)
    wanted = sets.ask_for_set(size=1, seed=1, wake=False)
    act(researcher, "give_up", wanted)
    assert "Its drawing was stopped by ada." in page_of(researcher, wanted)


# --- Publishing, freezing, correcting


def test_a_drawn_set_is_published_with_the_terms_of_the_form(researcher):
    apart(4)
    drawn = draw(size=4)
    assert "4 statements with three annotators each are 12 judgements" in page_of(researcher, drawn)
    terms = {"title": "Test set", "reward": "0.30", "expected_seconds": "90"}
    assert act(researcher, "publish", drawn, **terms).status_code == 302
    study = HITType.objects.get()
    assert (study.title, str(study.reward), study.expected_time.total_seconds()) == ("Test set", "0.30", 90)
    assert "0 of 12 places are filled" in page_of(researcher, drawn)


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [({"reward": "0.01"}, "Raise the reward to at least $0.24"), ({"title": ""}, "This field is required.")],
)
def test_terms_that_cannot_be_are_said_beside_their_field(researcher, terms, sentence):
    apart(1)
    drawn = draw(size=1)
    given = {"title": "Test set", "reward": "0.25", "expected_seconds": "105"} | terms
    response = act(researcher, "publish", drawn, **given)
    assert response.status_code == 422
    assert sentence in response.content.decode()
    assert not HITType.objects.exists()


def test_freezing_says_what_is_missing_and_then_the_checksum(researcher):
    drawn = published(2)
    act(researcher, "freeze", drawn)
    assert "Nothing was frozen: 4 places are free." in page_of(researcher, drawn)
    judge(drawn, (1, 1), (5, 5))
    assert "Nothing is missing: the set can be frozen." in page_of(researcher, drawn)
    act(researcher, "freeze", drawn)
    drawn.refresh_from_db()
    text = page_of(researcher, drawn)
    assert drawn.checksum in text
    assert "The answers are those it was frozen with." in text
    assert "Undefined: " in text or "Full agreement" in text
    assert ">nan<" not in text.lower()


def test_changed_answers_are_told_and_frozen_anew(researcher):
    first = frozen((1, 1), (5, 5))
    work = Assignment.objects.filter(hit__generation=ids_of(first)[0])
    reviewing.reopen(ids=list(work.values_list("pk", flat=True)))
    assert "Its answers have changed since" in page_of(researcher, first)
    act(researcher, "new_version", first)
    assert "2 places are free" in page_of(researcher, first)
    HITType.objects.get().hits.update(expires_at=timezone.now())
    act(researcher, "new_version", first)
    second = HumanvalSet.objects.get(version=2)
    assert "HUMANVAL 1 with the answers there were later" in page_of(researcher, second)
    assert "HUMANVAL 2</a> has its statements with later answers." in page_of(researcher, first)
    assert "Nobody understood the statements without a label" in page_of(researcher, second)


# --- Checking and comparing


def test_newer_statements_are_told_and_compared(researcher):
    statement([1, 0])
    drawn = draw(size=1)
    assert "Every statement was compared with it." in page_of(researcher, drawn)
    statement([1, 0.1])
    assert "1 statement was stored after the last comparison. Exports for training leave it out" in (
        page_of(researcher, drawn)
    )
    assert "The newer statements are compared with the set." in " ".join(
        str(message) for message in researcher.get(act(researcher, "compare", drawn).url).context["messages"]
    )


def test_a_check_is_watched_and_its_problems_are_listed(researcher):
    statement([1, 0])
    drawn = draw(size=1)
    act(researcher, "prove", drawn)
    assert "A check is under way" in page_of(researcher, drawn)
    [proof] = drawn.proofs.all()
    sentence = "Statement 7 is for training and has a cosine of 0.9100 with statement 1 of the set."
    told = {"holds": False, "sentence": "HUMANVAL 1 does not hold: 1 thing is wrong.", "seconds": 1.5, "notes": []}
    drawn.proofs.update(finished_at=timezone.now(), found=told | {"problems": [{"sentence": sentence}]})
    text = page_of(researcher, drawn)
    assert "HUMANVAL 1 does not hold: 1 thing is wrong." in text
    assert sentence in text
    assert proof.asked_by.username == "ada"


# --- Files and rights


def test_files_have_a_row_a_statement_and_are_noted(researcher):
    group = make_group("asian")
    own, near = statement([1, 0], "one, two", group=group), statement([1, 0.1], "three", group=group)
    drawn = draw(size=1)
    for name in ("statements", "removed"):
        response = researcher.get(reverse(f"admin:analysis_humanval_{name}", args=[drawn.pk]))
        lines = response.getvalue().decode().splitlines()
        assert len(lines) == 2
        assert AuditEntry.objects.filter(act=f"humanval {name} exported", by__username="ada").count() == 1
    assert {own.text, near.text} == {"one, two", "three"}
    report = researcher.get(reverse("admin:analysis_humanval_report", args=[drawn.pk])).json()
    assert report["report"]["removed"] == 1


def test_who_may_only_look_sees_no_texts_and_changes_nothing():
    apart(1)
    drawn = draw(size=1)
    guest = User.objects.create(username="guest", is_staff=True)
    guest.user_permissions.add(Permission.objects.get(codename="view_humanvalset"))
    client = Client()
    client.force_login(guest)
    text = page_of(client, drawn)
    assert "Publish as a study" not in text
    assert "The set (CSV)" not in text
    assert "Check it from the texts" not in text
    assert client.get(reverse("admin:analysis_humanval_statements", args=[drawn.pk])).status_code == 403
    for name in ("publish", "freeze", "new_version", "compare", "give_up", "prove"):
        assert act(client, name, drawn).status_code == 403
    assert client.post(f"/api/humanval/{drawn.pk}/verify/").status_code == 403
    assert not HumanvalProof.objects.exists()


def test_the_labels_of_a_frozen_set_take_the_permission_to_read_them():
    drawn = published(2)
    reader = User.objects.create(username="reader", is_staff=True)
    for codename in ("view_humanvalset", "view_generation"):
        reader.user_permissions.add(Permission.objects.get(codename=codename))
    client = Client()
    client.force_login(reader)
    address = reverse("admin:analysis_humanval_statements", args=[drawn.pk])
    assert client.get(address).status_code == 200
    assert "The set (CSV)" in page_of(client, drawn)
    judge(drawn, (1, 1), (5, 5))
    freezing.freeze(humanval_set=drawn)
    assert client.get(address).status_code == 403
    assert "The set (CSV)" not in page_of(client, drawn)
    reader.user_permissions.add(Permission.objects.get(codename="view_annotation"))
    assert client.get(address).status_code == 200
    assert "The set (CSV)" in page_of(client, drawn)


def test_the_list_says_what_is_removed_by_now(researcher):
    statement([1, 0])
    drawn = draw(size=1)
    statement([1, 0.1])
    comparing.compare(humanval_set=drawn)
    text = researcher.get("/admin/analysis/humanvalset/").content.decode()
    assert re.search(r"field-removed_for_it[^>]*>\s*(?:<[^>]*>\s*)*1\s*<", text)


@pytest.mark.parametrize("state", ["drawn", "published", "frozen"])
def test_a_page_takes_as_many_queries_for_many_statements_as_for_few(researcher, state):
    def made(number):
        if state == "drawn":
            apart(number)
            return draw(size=number)
        return published(number) if state == "published" else frozen(*[(1, 5)] * number)

    def queries_of(humanval_set):
        page_of(researcher, humanval_set)
        with CaptureQueriesContext(connection) as captured:
            page_of(researcher, humanval_set)
        return len(captured)

    assert queries_of(made(2)) == queries_of(made(9))


# --- The API


def test_a_whole_set_through_the_api(researcher):
    apart(3)
    given = {"size": 2, "seed": 5, "candidates": 1, "filters": {"label": ["benign"], "group": ["women"]}}
    made = researcher.post("/api/humanval/", given, content_type="application/json")
    assert made.status_code == 202, made.content
    address = f"/api/humanval/{made.json()['id']}/"
    assert made.json()["filters"] == {"group": ["women"], "label": ["benign"]}
    drawing.work_on_set(set_id=made.json()["id"])
    assert researcher.get(address).json()["report"]["chosen"] == 2

    def post(what, **data):
        return researcher.post(f"{address}{what}/", data, content_type="application/json")

    assert post("freeze").status_code == 409
    assert post("publish", reward="0.01").status_code == 409
    assert post("publish", title="Test set", max_assignments=2).status_code == 400
    assert post("publish", title="Test set").json()["hits"] == 2
    drawn = HumanvalSet.objects.get()
    judge(drawn, (1, 1, 1), (5, 4, 4))
    assert post("freeze").json()["checksum"] == HumanvalSet.objects.get().checksum
    assert researcher.get(f"{address}changed/").json() == {"changed": False}
    assert post("verify").status_code == 202
    assert researcher.get(f"{address}verification/").json()["finished_at"] is None
    assert post("compare").status_code == 202
    assert post("new-version").status_code == 409
    Annotation.objects.update(harmful_if_ai=2)
    assert researcher.get(f"{address}changed/").json() == {"changed": True}
    assert post("new-version").json()["version"] == 2
    assert [row["version"] for row in researcher.get("/api/humanval/?state=frozen").json()["results"]] == [2, 1]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"size": 99}, "size"),
        ({"threshold": 0}, "threshold"),
        ({"seed": "7"}, "seed"),
        ({"filters": {"group": ["moon"]}}, "group"),
        ({"filters": {"gruop": ["women"]}}, "There is no such filter. There are: group, label"),
        ({"filters": {"method": ["written"]}}, "method"),
        ({"size": 90_000}, "size"),
    ],
)
def test_the_api_refuses_what_cannot_be_drawn(researcher, given, field):
    apart(2)
    response = researcher.post(
        "/api/humanval/", {"size": 2, "seed": 1, "candidates": 1} | given, content_type="application/json"
    )
    assert response.status_code == 400
    assert field in str(response.json())
    assert not HumanvalSet.objects.exists()
