"""Lists: pages by cursors, filters, and as many queries for many rows as for one."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from generation.models import Generation
from tests.api.world import World
from tests.factories import make_generation, make_group

pytestmark = pytest.mark.django_db

LISTS = (
    "groups", "demonstrations", "trials", "responses", "runs", "generations", "studies", "hits", "assignments",
    "consent-forms", "invitations", "qualifications", "payments", "payouts", "audit-entries", "imports", "classifiers",
    "test-sets", "evaluations",
)  # fmt: skip


def ids(client, address):
    return [row["id"] for row in client.get(address).json()["results"]]


def test_pages_follow_each_other_newest_first_and_miss_nothing(admin):
    made = [make_generation().pk for _ in range(5)]
    seen, address = [], "/api/generations/?page_size=2"
    while address:
        page = admin.get(address).json()
        seen.append([row["id"] for row in page["results"]])
        address = page["next"]
    newest_first = made[::-1]
    assert seen == [newest_first[:2], newest_first[2:4], newest_first[4:]]


def test_what_is_stored_meanwhile_moves_no_page(admin):
    made = [make_generation().pk for _ in range(4)]
    first = admin.get("/api/generations/?page_size=2").json()
    make_generation()
    assert ids(admin, first["next"]) == made[1::-1]


def test_a_page_has_fifty_rows_unless_told_otherwise_and_five_hundred_at_most(admin):
    for _ in range(51):
        make_generation()
    assert len(ids(admin, "/api/generations/")) == 50
    assert len(ids(admin, "/api/generations/?page_size=500")) == 51
    refused = admin.get("/api/generations/?page_size=501").json()
    assert refused["errors"] == {"page_size": ["Give a whole number from 1 to 500."]}


def queries_of(client, address):
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(address).status_code == 200
    return [query["sql"] for query in captured]


@pytest.mark.parametrize("name", LISTS)
def test_many_rows_take_as_many_queries_as_one_and_nothing_is_counted(admin, name):
    World()
    few = queries_of(admin, f"/api/{name}/?page_size=1")
    many = queries_of(admin, f"/api/{name}/")
    assert len(few) == len(many)
    assert [sql for sql in many if "COUNT(" in sql] == []


def test_generations_are_filtered(admin):
    wanted = make_generation("the blue heron waits", label="toxic", method="alice", toxic_prob=0.75)
    make_generation("the grey heron waits", label="benign", method="topk", toxic_prob=0.25)
    make_generation("a train leaves", group=make_group("asian"))
    for filters in (
        "label=toxic", "method=alice", "toxic_prob_from=0.5", "search=blue+heron", "search=HERON&label=toxic",
    ):  # fmt: skip
        assert ids(admin, f"/api/generations/?{filters}") == [wanted.pk], filters
    assert len(ids(admin, "/api/generations/?group=women&group=asian")) == 3
    assert ids(admin, "/api/generations/?search=hero") == []


def test_a_run_is_shown_with_its_cells(admin, world):
    shown = admin.get(f"/api/runs/{world.run.pk}/").json()
    assert [(cell["group"], cell["label"], cell["places"], cell["stored"]) for cell in shown["cells"]] == [
        ("women", "benign", 3, 0)
    ]
    assert shown["progress"]["wanted"] == 3


def test_an_assignment_is_shown_with_its_answers_and_never_with_who_the_worker_is(admin, world):
    shown = admin.get(f"/api/assignments/{world.assignment.pk}/").json()
    assert shown["annotation"]["harmful_if_human"] == 2
    assert shown["worker"] == world.worker.pseudonym
    assert "draft" not in shown


def test_generations_leave_the_searches_in_the_database(admin):
    Generation.objects.filter(pk=make_generation().pk).update(hypotheses=[{"text": "another"}])
    [listed] = queries_of(admin, "/api/generations/")[-1:]
    assert "hypotheses" not in listed


def test_a_field_that_is_not_known_refuses_the_upload(admin, settings, tmp_path):
    settings.VAR = tmp_path
    file = SimpleUploadedFile("neutral_women.txt", b"my aunt paints boats\n")
    refusal = admin.post("/api/imports/", {"format": "demonstrations", "files": file, "on-fault": "skip"})
    assert refusal.status_code == 400
    assert "There is no such field. Choose from: format, files, on_fault" in refusal.content.decode()
    assert not (tmp_path / "uploads").exists()


def test_a_file_is_uploaded_and_its_faults_are_fetched(admin, settings, tmp_path):
    settings.VAR = tmp_path
    file = SimpleUploadedFile("neutral_women.txt", b"my aunt paints boats\n\n")
    made = admin.post("/api/imports/", {"format": "demonstrations", "files": file})
    assert (made.status_code, made.json()["state"], made.json()["created_by"]) == (202, "queued", "the admin")
    assert made.json()["bytes_total"] == 22
    faults = admin.get(f"/api/imports/{made.json()['id']}/faults/")
    assert faults["Content-Type"] == "text/csv; charset=utf-8"
    assert faults.getvalue().decode().splitlines()[0].startswith("file,line,column")
    stopped = admin.post(f"/api/imports/{made.json()['id']}/stop/").json()
    assert (stopped["state"], stopped["failure"]) == ("refused", "Stopped by the admin.")
