"""The page on which a study's statements are chosen: asked for, previewed, published, or refused in a sentence."""

import re

import pytest
from django.contrib.auth.models import Group, Permission, User

from annotator import stopping
from annotator.models import HIT, Qualification, StatementDraw
from config.roles import RESEARCHER
from tests.annotator.page import Page
from tests.annotator.test_choosing import make_statements
from tests.annotator.work_done import works
from tests.factories import make_generation, make_hit_type, make_run

pytestmark = pytest.mark.django_db

ASKED = {"groups": ["women"], "labels": ["benign"], "methods": ["topk"], "judged": "nowhere", "a_cell": 4, "seed": 7}


@pytest.fixture
def study():
    return make_hit_type(title="Weather")


@pytest.fixture
def researcher(client):
    user = User.objects.create(username="ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client.force_login(user)
    return client


def address(study):
    return f"/admin/annotator/hittype/{study.pk}/choose/"


def preview(client, study, **changes):
    return client.get(address(study), ASKED | changes)


def what_the_button_sends(response):
    page = Page(response)
    (form,) = [
        form for form in page.all("form", method="post") if any(button.is_in(form) for button in publish_buttons(page))
    ]
    sent = {}
    for field in page.fields(form):
        if field.tag == "input":
            sent.setdefault(field["name"], []).append(field.get("value") or "")
    return sent


def publish_buttons(page):
    return [button for button in page.all("button") if button.text.startswith("Publish")]


def figures(response):
    page = Page(response)
    return {dt.text: dd.text for dt, dd in zip(page.all("dt"), page.all("dd"), strict=True)}


def messages_of(response):
    return [str(message) for message in response.context["messages"]]


def test_the_page_asks_which_statements_and_brings_a_seed_of_its_own(researcher, study):
    page = Page(researcher.get(address(study)))
    names = {field.get("name") for field in page.fields(page.all("form", method="get")[-1])}
    assert names >= {"groups", "labels", "methods", "source", "judged", "toxic_from", "toxic_to", "a_cell", "seed"}
    assert re.fullmatch("[0-9]+", page.one("input", name="seed")["value"])
    assert publish_buttons(page) == []


def test_every_control_of_the_page_has_a_label(researcher, study):
    page = Page(preview(researcher, study))
    labelled = {label.get("for") for label in page.all("label")}
    shown = [field for field in page.fields(page.all("form", method="get")[-1]) if field.tag in ("input", "select")]
    assert {field["id"] for field in shown} <= labelled


def test_the_preview_says_what_publishing_would_take(researcher):
    study = make_hit_type(max_assignments=3)
    make_statements(20)
    assert figures(preview(researcher, study)) == {
        "HITs to be made": "4",
        "Annotators a statement": "3",
        "Cost, at most": "$3.00",
        "Work in all": "21 minutes",
        "Pay an hour": "$8.57 floor $8.00, reached",
        "Seed": "7",
    }
    assert not HIT.objects.exists()


def test_the_hours_rest_on_the_measured_time_where_there_is_one(researcher, study):
    make_statements(20)
    works(study, seconds=60)
    assert figures(preview(researcher, study))["Work in all"] == "12 minutes"
    assert "the measured median, 1 minute a statement (n = 10)" in Page(preview(researcher, study)).text


def test_the_preview_shows_each_cell_and_marks_those_that_have_too_few(researcher, study):
    make_statements(3)
    make_statements(9, method="alice")
    page = Page(preview(researcher, study, methods=["topk", "alice"]))
    assert "1 of 2 cells has fewer than 4 such statements and gives all it has." in page.text
    table = page.one("tbody")
    assert [cell.text for cell in page.all("td") if cell.is_in(table)] == ["3 of 4", "4", "7"]
    foot = page.one("tfoot")
    assert [cell.text for cell in page.all("td") if cell.is_in(foot)] == ["3", "4", "7 of 8"]


def test_samples_are_blurred(researcher, study):
    make_generation("the sky is blue")
    page = Page(preview(researcher, study))
    assert [element.text for element in page.all("span", class_="blurred")] == ["the sky is blue"]


def test_publishing_makes_hits_of_exactly_what_was_previewed(researcher, study):
    make_statements(20)
    shown = preview(researcher, study)
    ids = shown.context["preview"].draw.ids
    response = researcher.post(address(study), what_the_button_sends(shown), follow=True)
    assert messages_of(response) == ["4 HITs published, with the seed 7."]
    assert response.redirect_chain == [(f"/admin/annotator/hittype/{study.pk}/change/", 302)]
    assert sorted(study.hits.values_list("generation", flat=True)) == ids
    draw = StatementDraw.objects.get()
    assert (draw.seed, draw.made, draw.made_by.username) == (7, 4, "ada")
    assert "women; benign; topk; in no study before" in Page(response).text


def test_pressing_the_button_twice_makes_nothing_twice(researcher, study):
    make_statements(20)
    sent = what_the_button_sends(preview(researcher, study))
    researcher.post(address(study), sent)
    response = researcher.post(address(study), sent, follow=True)
    assert messages_of(response)[-1].startswith("These statements were published already: 4 HITs")
    assert (study.hits.count(), StatementDraw.objects.count()) == (4, 1)


def test_what_was_not_previewed_is_not_published_and_the_new_preview_is_shown(researcher, study):
    make_statements(3)
    sent = what_the_button_sends(preview(researcher, study))
    make_generation("stored since")
    response = researcher.post(address(study), sent)
    assert response.status_code == 409
    page = Page(response)
    assert page.one("p", role="alert").text.startswith("Nothing was published: statements were stored or published")
    assert figures(response)["HITs to be made"] == "4"
    assert not study.hits.exists()
    assert publish_buttons(page)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"reward": "0.20"}, "This pays $6.85 an hour, if a statement takes 1 minute 45 seconds as expected"),
        ({"grants": True, "pass_mark": 80}, "is a qualification test: choose its statements among those with known"),
        ({"imported": True, "reward": 0}, "holds work that was done elsewhere and imported"),
    ],
)
def test_a_study_that_cannot_publish_says_why_and_offers_no_button(researcher, fields, sentence):
    if "grants" in fields:
        fields = fields | {"grants": Qualification.objects.create(name="reads English")}
    study = make_hit_type(**fields)
    make_statements(9)
    response = preview(researcher, study)
    page = Page(response)
    assert sentence in page.one("p", role="alert").text
    assert publish_buttons(page) == []
    response = researcher.post(address(study), ASKED)
    assert (response.status_code, HIT.objects.count()) == (409, 0)


def test_a_stopped_study_says_so(researcher, study):
    stopping.stop(hit_type=study, by=None)
    assert "Go on with it first." in Page(preview(researcher, study)).one("p", role="alert").text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"a_cell": 0}, "Ensure this value is greater than or equal to 1."),
        ({"a_cell": "many"}, "Enter a whole number."),
        ({"a_cell": 10_001}, "Ensure this value is less than or equal to 10000."),
        ({"toxic_from": 0.9, "toxic_to": 0.1}, "The score begins above its end: exchange the two."),
        ({"toxic_from": 2}, "Ensure this value is less than or equal to 1."),
        ({"toxic_from": "nan"}, "Enter a number."),
        ({"groups": ["nobody"]}, "Select a valid choice. nobody is not one of the available choices."),
        ({"source": "999999"}, "Select a valid choice."),
        ({"seed": ""}, "This field is required."),
    ],
)
def test_what_cannot_be_asked_for_is_said_beside_its_field(researcher, study, changes, sentence):
    response = preview(researcher, study, **changes)
    assert response.status_code == 422
    assert sentence in Page(response).text


def test_statements_of_a_run_or_imported_ones_are_chosen(researcher, study):
    run = make_run()
    make_generation("of the run", run=run, chunk=run.chunks.first(), position=0)
    make_generation("imported")
    for source, text in ((str(run.pk), "of the run"), ("imported", "imported")):
        response = preview(researcher, study, source=source)
        assert [element.text for element in Page(response).all("span", class_="blurred")] == [text]


def test_who_may_not_change_studies_chooses_nothing(client, study):
    user = User.objects.create(username="eve", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_hittype", "view_generation"]))
    client.force_login(user)
    assert preview(client, study).status_code == client.post(address(study), ASKED).status_code == 403
