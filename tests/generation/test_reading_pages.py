"""The workspace's pages and the API of readings: have statements read, watch it, stop it, and only who may."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.urls import reverse
from django.utils import timezone

from generation import readings
from generation.models import Generation, Reading, ReadingChunk
from generation.readings import fail_reading
from tests.api.world import token_of
from tests.factories import make_generation, make_group, make_reading, make_run

pytestmark = pytest.mark.django_db

READINGS = reverse("admin:generation_reading_changelist")
ADD = reverse("admin:generation_reading_add")


def page_of(reading):
    return reverse("admin:generation_reading_change", args=[reading.pk])


def progress_of(reading):
    return reverse("admin:generation_read_progress", args=[reading.pk])


def stop_of(reading):
    return reverse("admin:generation_read_stop", args=[reading.pk])


@pytest.fixture
def researcher(client):
    user = get_user_model().objects.create(username="ada", is_staff=True)
    user.groups.set(Group.objects.filter(name="researcher"))
    client.force_login(user)
    return user


@pytest.fixture
def onlooker(client):
    user = get_user_model().objects.create(username="otto", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_reading"))
    client.force_login(user)
    return user


def order(**changes):
    return {"kind": "encoder", "model": "", "precision": "float32"} | changes


def text_of(response):
    return " ".join(response.content.decode().split())


# --- Starting -----------------------------------------------------------------------------


def test_the_form_starts_a_reading_of_what_it_chooses_and_leads_to_its_page(client, researcher):
    wanted = make_generation(group=make_group("women"), label="toxic")
    make_generation(group=make_group("asian"), label="toxic")
    make_generation(group=make_group("women"), label="benign")
    response = client.post(ADD, order(groups=[make_group("women").pk], labels=["toxic"]))
    started = Reading.objects.get()
    assert (response.status_code, response["Location"]) == (302, page_of(started))
    assert [chunk.generations for chunk in started.chunks.all()] == [[wanted.pk]]
    assert (started.model, started.about, started.created_by) == (readings.ENCODER, "Women, toxic", researcher)


def test_the_form_asks_for_another_model_and_a_run(client, researcher):
    run = make_run(count=1)
    statement = make_generation(run=run, chunk=run.chunks.get(), position=0)
    make_generation()
    client.post(ADD, order(kind="language_model", model=" /models/gpt2 ", precision="bfloat16", run=run.pk))
    started = Reading.objects.get()
    assert (started.model, started.precision, started.about) == ("/models/gpt2", "bfloat16", str(run))
    assert [chunk.generations for chunk in started.chunks.all()] == [[statement.pk]]


def test_starting_the_same_twice_leads_to_the_one_reading_and_says_so(client, researcher):
    make_generation()
    first, second = (client.post(ADD, order(), follow=True) for _ in range(2))
    assert first.redirect_chain == second.redirect_chain == [(page_of(Reading.objects.get()), 302)]
    told = "Nothing new was started: this reading has these statements before it."
    assert (told in text_of(first), told in text_of(second)) == (False, True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": ["toxic"]}, "There are no such statements"),
        ({"model": "other"}, "There is no sentence encoder"),
        ({"kind": "language_model", "model": "http://localhost:8000/v1#m"}, "A completions server does not tell"),
        ({"run": 99999}, "There is no run 99999"),
        ({"kind": "oracle"}, "Select a valid choice"),
        ({"model": "m" * 301}, "at most 300 characters"),
    ],
)
def test_what_cannot_be_done_is_said_on_the_form(client, researcher, changes, words):
    make_generation()
    response = client.post(ADD, order(**changes))
    assert response.status_code == 422
    assert words in text_of(response)
    assert not Reading.objects.exists()


def test_the_form_tells_how_long_models_took_as_far_as_anybody_knows(client, researcher):
    assert "no model has read anything here" in text_of(client.get(ADD))
    started = make_reading(2)
    Reading.objects.filter(pk=started.pk).update(read=2, computed=2, seconds=0.02, device="cpu")
    page = text_of(client.get(ADD))
    assert '<th scope="row">all-minilm-l6-v2</th><td>cpu, float32</td>' in page
    assert '<td class="number">100</td><td class="number">100 seconds</td>' in page


# --- Watching and stopping ------------------------------------------------------------------


def test_the_page_of_an_open_reading_renews_itself_and_tells_how_far_it_is(client, researcher):
    started = make_reading(4)
    Reading.objects.filter(pk=started.pk).update(
        read=1, computed=1, seconds=0.5, started_at=timezone.now(), device="cpu"
    )
    page = text_of(client.get(page_of(started)))
    assert "<strong>Running</strong>: 1 of 4 statements read" in page
    assert f'hx-get="{progress_of(started)}" hx-trigger="every 2s"' in page
    assert "about 2 seconds" in page
    assert "It waits for a worker. Runs and replays go before readings." in page
    ReadingChunk.objects.update(lease_expires_at=timezone.now() + timedelta(minutes=1))
    assert "It waits for a worker" not in text_of(client.get(progress_of(started)))


def test_the_page_of_a_failed_reading_says_why_and_is_not_renewed(client, researcher):
    started = make_reading(1)
    fail_reading(reading_id=started.pk, reason="The weights are <broken>.")
    page = text_of(client.get(page_of(started)))
    assert "<strong>Incomplete</strong>: 0 of 1 statements read" in page
    assert "The weights are &lt;broken&gt;." in page
    assert progress_of(started) not in page
    assert "Stop this reading" not in page
    for unknown in ("Statements a second", "Computed on", "From start to end"):
        assert unknown not in page


def test_no_page_shows_a_statement(client, researcher):
    make_reading(generation_ids=[make_generation("a text that may hurt").pk])
    for address in (READINGS, ADD, page_of(Reading.objects.get())):
        assert "may hurt" not in text_of(client.get(address))


def test_stopping_keeps_what_was_read_and_is_said_once(client, researcher):
    started = make_reading(2)
    response = client.post(stop_of(started), follow=True)
    assert "The reading is stopped. What was read is kept." in text_of(response)
    response = client.post(stop_of(started), follow=True)
    assert "Nothing was changed: the reading had ended before." in text_of(response)
    started.refresh_from_db()
    assert started.failure == readings.STOPPED


def test_who_may_only_look_neither_starts_nor_stops(client, onlooker):
    started = make_reading(1)
    page = text_of(client.get(page_of(started)))
    assert "Stop this reading" not in page
    assert client.get(ADD).status_code == client.post(ADD, order()).status_code == 403
    assert client.post(stop_of(started)).status_code == 403
    assert client.post(page_of(started), {"failure": "x"}).status_code == 403
    assert Reading.objects.unended().count() == 1


def test_a_page_of_no_reading_is_not_found(client, researcher):
    for number in ("99999", "9" * 30, "x"):
        assert client.get(reverse("admin:generation_reading_change", args=[number])).status_code == 404


def test_the_list_costs_the_same_for_one_reading_as_for_many(client, researcher, django_assert_max_num_queries):
    for _ in range(20):
        make_reading(1)
    with django_assert_max_num_queries(12):
        page = text_of(client.get(READINGS))
    assert page.count("0 of 1") == 20


# --- The API --------------------------------------------------------------------------------


def ask(client, path, **body):
    token = {"HTTP_AUTHORIZATION": f"Bearer {token_of('researcher')}"}
    return client.post(f"/api/readings/{path}", body, content_type="application/json", **token)


def test_the_api_starts_watches_and_stops_a_reading(client):
    wanted = make_generation(group=make_group("women"))
    make_generation(group=make_group("asian"))
    response = ask(client, "", kind="classifier", groups=["women"])
    assert response.status_code == 201, response.content
    started = response.json()
    assert (started["statements"], started["model"], started["revision"]) == (1, "minilm-toxigen", None)
    assert started["progress"] == {"percent": 0, "workers": 0, "statements_a_second": None, "seconds_left": None}
    assert ReadingChunk.objects.get().generations == [wanted.pk]
    again = ask(client, "", kind="classifier", groups=["women"])
    assert (again.status_code, again.json()["id"]) == (200, started["id"])
    assert ask(client, f"{started['id']}/stop/").json()["failure"] == readings.STOPPED
    assert ask(client, f"{started['id']}/stop/").status_code == 409


def test_the_api_takes_ids_of_statements(client):
    ids = [make_generation().pk for _ in range(3)]
    response = ask(client, "", kind="encoder", ids=ids[:2])
    assert (response.json()["statements"], response.json()["about"]) == (2, "2 by their ids, of all statements")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"kind": "encoder", "labels": ["toxic"]}, 409, "There are no such statements"),
        ({"kind": "encoder", "model": "other"}, 400, "There is no sentence encoder"),
        ({"kind": "oracle"}, 400, "oracle"),
        ({"kind": "encoder", "ids": ["1"]}, 400, "ids"),
    ],
)
def test_the_api_refuses_in_words(client, body, status, words):
    make_generation()
    response = ask(client, "", **body)
    assert response.status_code == status
    assert words in response.content.decode()
    assert Generation.objects.count() == 1
    assert not Reading.objects.exists()
