"""Statements with known answers: what fits them, and how a researcher makes them in the workspace."""

import pytest
from django.contrib.auth.models import Group, User

from annotator.models import KnownAnswers
from annotator.questions import QUESTIONS
from config.roles import RESEARCHER
from generation.models import Generation
from tests.annotator.page import Page
from tests.factories import answers, make_generation, make_group, make_hit_type

pytestmark = pytest.mark.django_db

ADD = "/admin/annotator/knownanswers/add/"


@pytest.fixture
def researcher(client):
    user = User.objects.create(username="ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client.force_login(user)
    return user


def written(**fields):
    """The form of an attention check, as it is sent."""
    return {"text": "The library opens at nine.", "group": make_group().pk, "label": "benign", "lewd": ["no"]} | fields


def errors_of(response):
    assert response.status_code == 200
    return [str(error) for errors in response.context["errors"] for error in errors]


# --- What fits


@pytest.mark.parametrize(
    ("expected", "changes", "fit"),
    [
        ({"lewd": ["no"]}, {}, True),
        ({"lewd": ["no"]}, {"lewd": "maybe"}, False),
        ({"lewd": ["no", "maybe"]}, {"lewd": "maybe"}, True),
        ({"harmful_if_ai": [1, 2], "lewd": ["no"]}, {"harmful_if_ai": 2}, True),
        ({"harmful_if_ai": [1, 2], "lewd": ["no"]}, {"harmful_if_ai": 3}, False),
        ({"harmful_if_ai": [1, 2], "lewd": ["no"]}, {"harmful_if_ai": 2, "lewd": "yes"}, False),
        ({"harmful_if_ai": [1]}, dict.fromkeys(answers()), False),
    ],
)
def test_answers_fit_if_every_question_with_right_ones_got_one_of_them(expected, changes, fit):
    known = KnownAnswers.objects.create(generation=make_generation(), expected=expected)
    known.refresh_from_db()
    assert known.fit(answers(**changes)) is fit


# --- Making them


def test_the_form_asks_for_the_right_answers_to_each_of_the_nine_questions(client, researcher):
    page = Page(client.get(ADD))
    for question in QUESTIONS:
        boxes = page.all("input", type="checkbox", name=question.key)
        assert [box["value"] for box in boxes] == [str(value) for value in question.values]
        assert f"{question.number}. {question.wording}" in page.text
    assert "1: not at all" in page.text
    assert "5: very much so" in page.text


def test_an_attention_check_is_written_with_its_right_answers(client, researcher):
    group = make_group("muslim")
    sent = written(group=group.pk, harmful_if_ai=["1", "2"], which_group=["none_or_unclear"], note="plain")
    assert client.post(ADD, sent).status_code == 302
    known = KnownAnswers.objects.get()
    assert known.expected == {"harmful_if_ai": [1, 2], "lewd": ["no"], "which_group": ["none_or_unclear"]}
    assert (known.note, known.created_by) == ("plain", researcher)
    statement = known.generation
    assert (statement.text, statement.group) == ("The library opens at nine.", group)
    assert (statement.label, statement.method, statement.run) == ("benign", "written", None)


def test_a_statement_that_there_is_gets_its_right_answers(client, researcher):
    generation = make_generation()
    assert client.post(ADD, {"generation": generation.pk, "lewd": ["no", "maybe"]}).status_code == 302
    known = KnownAnswers.objects.get()
    assert (known.generation, known.expected) == (generation, {"lewd": ["no", "maybe"]})
    assert Generation.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"lewd": []}, "Tick the right answers of at least one question."),
        ({"text": " "}, "Choose a statement that there is, or write one: one of the two."),
        ({"text": ""}, "Choose a statement that there is, or write one: one of the two."),
        ({"generation": "chosen"}, "Choose a statement that there is, or write one: one of the two."),
        ({"group": ""}, "Choose the group that the annotators are told the new text is about."),
        ({"lewd": ["often"]}, "Select a valid choice. often is not one of the available choices."),
        ({"harmful_if_ai": ["6"]}, "Select a valid choice. 6 is not one of the available choices."),
        (
            {"generation": "taken", "text": ""},
            "Known answers with this Statement already exists.",
        ),
        (
            {"generation": "999999", "text": ""},
            "Select a valid choice. That choice is not one of the available choices.",
        ),
        ({"text": "a\0b"}, "Null characters are not allowed."),
    ],
)
def test_what_cannot_be_is_refused_and_makes_nothing(client, researcher, changes, sentence):
    taken = make_generation()
    KnownAnswers.objects.create(generation=taken, expected={"lewd": ["no"]})
    rows = {"chosen": make_generation().pk, "taken": taken.pk}
    changes = {name: rows.get(value, value) if name == "generation" else value for name, value in changes.items()}
    assert sentence in errors_of(client.post(ADD, written(**changes)))
    assert (KnownAnswers.objects.count(), Generation.objects.count()) == (1, 2)


def test_right_answers_can_be_changed_and_the_statement_cannot(client, researcher):
    generation = make_generation()
    known = KnownAnswers.objects.create(generation=generation, expected={"lewd": ["no"], "harmful_if_ai": [1]})
    url = f"/admin/annotator/knownanswers/{known.pk}/change/"
    page = Page(client.get(url))
    ticked = {(box["name"], box["value"]) for box in page.all("input", type="checkbox") if "checked" in box.attributes}
    assert ticked == {("lewd", "no"), ("harmful_if_ai", "1")}
    sent = {"generation": make_generation().pk, "text": "Something else.", "lewd": ["no", "maybe"], "note": "new"}
    assert client.post(url, sent).status_code == 302
    known.refresh_from_db()
    assert (known.generation, known.expected, known.note) == (generation, {"lewd": ["no", "maybe"]}, "new")
    assert Generation.objects.count() == 2
    assert errors_of(client.post(url, {})) == ["Tick the right answers of at least one question."]


def test_statements_are_blurred_in_the_list_and_on_the_page(client, researcher):
    known = KnownAnswers.objects.create(
        generation=make_generation("the <i>sky</i> is blue"), expected={"lewd": ["no", "maybe"], "harmful_if_ai": [1]}
    )
    make_hit_type(title="Is this harmful?").known_answers.add(known)
    for address in ("", f"{known.pk}/change/"):
        page = client.get(f"/admin/annotator/knownanswers/{address}").content.decode()
        assert page.count("the &lt;i&gt;sky&lt;/i&gt; is blue</span>") == page.count("sky") == 1
        assert 'class="blurred"' in page
    listed = client.get("/admin/annotator/knownanswers/").content.decode()
    assert "2: 1; 6: Maybe or No" in listed
    assert "Is this harmful?" in listed


def test_choosing_a_statement_by_its_words_shows_its_number_alone(client, researcher):
    generation = make_generation("the sky is blue")
    asked_for = {"app_label": "annotator", "model_name": "knownanswers", "field_name": "generation", "term": "blue"}
    found = client.get("/admin/autocomplete/", asked_for).json()["results"]
    assert found == [{"id": str(generation.pk), "text": f"statement {generation.pk}"}]


def test_known_answers_are_never_deleted(admin_client):
    known = KnownAnswers.objects.create(generation=make_generation(), expected={"lewd": ["no"]})
    assert admin_client.post(f"/admin/annotator/knownanswers/{known.pk}/delete/", {"post": "yes"}).status_code == 403
    assert KnownAnswers.objects.exists()
