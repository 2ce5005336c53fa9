"""The demographic survey: every question optional, changeable and deletable, told only of five people or more."""

from collections import Counter, defaultdict
from itertools import chain, combinations, product

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import NoReverseMatch, reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotator import surveying
from annotator.models import GIVEN_ELSEWHERE, Survey
from annotator.surveying import SURVEY_QUESTIONS, reportable
from tests.annotator.page import Page
from tests.factories import consenting_worker, log_in, make_consent, make_consent_form, make_worker

pytestmark = pytest.mark.django_db

ANSWERS = {
    "race_ethnicity": ["black", "asian"],
    "gender": "non_binary",
    "age_band": "25_34",
    "political_leaning": "very_left",
    "lgbtq": "prefer_not",
}


def message(response):
    return Page(response).one(class_="messages").text


def stored():
    """What is stored of a single survey, without what was left out."""
    survey = Survey.objects.get()
    fields = chain.from_iterable((question.key, question.described) for question in SURVEY_QUESTIONS)
    return {name: value for name in fields if (value := getattr(survey, name))}


# --- Answering


def test_the_five_questions_have_the_papers_categories_and_can_be_left_out_or_described(client, worker):
    page = Page(client.get("/survey/"))
    assert [legend.text for legend in page.all("legend")] == [
        "What is your race or ethnicity?",
        "What is your gender?",
        "How old are you?",
        "Where do you stand politically?",
        "Do you identify as LGBTQ+?",
    ]
    for question in SURVEY_QUESTIONS:
        labels = [label for _, label in question.answers]
        assert labels[-2:] == ["I describe myself:", "Prefer not to say"]
        fieldset = page.one("fieldset", id=question.key)
        tag, before = ("label", []) if question.many else ("option", ["-- no answer --"])
        shown = [element.text for element in page.all(tag) if element.is_in(fieldset)]
        assert shown[: len(labels) + len(before)] == before + labels
        assert page.one("input", name=question.described)["maxlength"] == "100"
    leanings = [label for _, label in SURVEY_QUESTIONS[3].answers]
    assert leanings[:5] == ["Very left-leaning", "Left-leaning", "Moderate", "Right-leaning", "Very right-leaning"]


def test_what_is_answered_is_stored_and_shown_again(client, worker):
    response = client.post("/survey/", ANSWERS, follow=True)
    assert response.redirect_chain == [("/survey/", 302)]
    assert message(response) == "Thank you. Your answers are saved; you can change or delete them here."
    assert stored() == ANSWERS
    page = Page(response)
    assert {box["value"] for box in page.all("input", type="checkbox") if "checked" in box.attributes} == {
        "black",
        "asian",
    }
    chosen = [option["value"] for option in page.all("option") if "selected" in option.attributes]
    assert chosen == ["non_binary", "25_34", "very_left", "prefer_not"]


def test_every_question_can_be_left_out(client, worker):
    page = Page(client.get("/survey/"))
    form = page.one("form", class_="consent")
    assert client.post("/survey/", page.sends(form)).status_code == 302
    assert stored() == {}


def test_answers_can_be_changed_and_left_out_later(client, worker):
    client.post("/survey/", ANSWERS)
    client.post("/survey/", {"gender": "male"})
    assert stored() == {"gender": "male"}


def test_answers_can_be_deleted(client, worker):
    client.post("/survey/", ANSWERS)
    page = Page(client.get("/survey/"))
    assert page.one("button", name="delete").text == "Delete what I said about myself"
    response = client.post("/survey/", {"delete": "yes"}, follow=True)
    assert message(response) == "What you had said about yourself is deleted."
    assert not Survey.objects.exists()
    assert Page(response).all("button", name="delete") == []


def test_own_words_are_an_answer(client, worker):
    client.post("/survey/", {"gender_described": " agender ", "race_ethnicity_described": "Roma"})
    assert stored() == {
        "gender": "describe",
        "gender_described": "agender",
        "race_ethnicity": ["describe"],
        "race_ethnicity_described": "Roma",
    }


def test_own_words_can_stand_beside_other_answers_where_several_may_be_true(client, worker):
    posted = {"race_ethnicity": ["white", "describe"], "race_ethnicity_described": "Roma"}
    client.post("/survey/", posted)
    assert stored() == posted


@pytest.mark.parametrize(
    ("posted", "key", "sentence"),
    [
        ({"gender": "martian"}, "gender", "Choose from the answers that are listed."),
        ({"race_ethnicity": ["white", "martian"]}, "race_ethnicity", "Choose from the answers that are listed."),
        (
            {"race_ethnicity": ["white", "prefer_not"]},
            "race_ethnicity",
            "Choose “Prefer not to say” or other answers, not both.",
        ),
        (
            {"gender": "male", "gender_described": "agender"},
            "gender",
            "Choose “I describe myself” for your own words to be kept, or clear them.",
        ),
        ({"lgbtq_described": "x" * 101}, "lgbtq", "Say it in at most 100 characters."),
    ],
)
def test_what_contradicts_itself_is_refused_beside_its_question(client, worker, posted, key, sentence):
    response = client.post("/survey/", {"age_band": "25_34"} | posted)
    assert response.status_code == 422
    page = Page(response)
    assert page.one("p", class_="error", id=f"{key}-error").text == sentence
    assert page.one("a", href=f"#{key}")
    assert [option["value"] for option in page.all("option") if "selected" in option.attributes][-1:] != []
    assert not Survey.objects.exists()


def test_without_consent_nothing_is_asked_or_stored(client):
    make_consent_form()
    log_in(client, make_worker())
    assert client.get("/survey/")["Location"] == "/consent/"
    assert client.post("/survey/", ANSWERS).status_code == 403
    assert not Survey.objects.exists()


def test_nobody_sees_or_changes_somebody_elses(client, worker):
    other = Survey.objects.create(worker=consenting_worker(), gender="female", gender_described="secret words")
    assert b"secret words" not in client.get("/survey/").content
    client.post("/survey/", {"gender": "male"})
    client.post("/survey/", {"delete": "yes"})
    other.refresh_from_db()
    assert other.gender == "female"


anything = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(max_codepoint=0x20), max_size=5),
    st.sampled_from(["\x00", "x" * 100_000, "white", "female", "25_34", "yes", "describe", "prefer_not"]),
)
names = chain.from_iterable((question.key, question.described) for question in SURVEY_QUESTIONS)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    posted=st.fixed_dictionaries({}, optional=dict.fromkeys(names, st.one_of(anything, st.lists(anything, max_size=3))))
)
def test_anything_at_all_is_stored_or_refused_in_words(client, worker, posted):
    with transaction.atomic():
        response = client.post("/survey/", posted)
        is_stored = Survey.objects.exists()
        if is_stored:
            Survey.objects.get().full_clean()
        transaction.set_rollback(True)
    assert response.status_code in (302, 422)
    assert is_stored == (response.status_code == 302)
    if response.status_code == 422:
        assert Page(response).all("p", class_="error")


# --- What is told of it


def few_outside(people, *counts):
    return 0 < people - sum(counts) < 5


def test_categories_of_five_people_are_counted_and_smaller_ones_are_not():
    counts = {"a": 5, "b": 4, "c": 0, "d": 20}
    assert reportable(counts, people=40, overlapping=False) == {"a": 5, "d": 20}


def test_a_single_small_category_cannot_be_found_by_subtracting():
    assert reportable({"a": 20, "b": 6, "c": 4}, people=30, overlapping=False) == {"a": 20}
    assert reportable({"a": 28, "b": 2}, people=30, overlapping=False) == {}


def test_how_many_left_a_question_out_cannot_be_found_by_subtracting():
    assert reportable({"a": 20, "b": 7}, people=30, overlapping=False) == {"a": 20}


def test_when_everybody_is_in_a_category_of_five_all_are_counted():
    assert reportable({"a": 20, "b": 5, "c": 0}, people=25, overlapping=False) == {"a": 20, "b": 5}


def test_those_who_are_not_in_a_category_cannot_be_found_where_several_may_be_true():
    assert reportable({"a": 28, "b": 9}, people=30, overlapping=True) == {"b": 9}
    assert reportable({"a": 20, "b": 9, "prefer_not": 7}, people=30, overlapping=True) == {"a": 20, "b": 9}


CATEGORIES = ("a", "b", "prefer_not")


def worlds(people, overlapping):
    """Every way in which so many people can have answered, as counts by category."""
    for counts in product(range(people + 1), repeat=len(CATEGORIES)):
        *others, prefer_not = counts
        possible = max(others) + prefer_not <= people if overlapping else sum(counts) <= people
        if possible:
            yield dict(zip(CATEGORIES, counts, strict=True))


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("people", [1, 4, 5, 6, 9, 10, 11, 14])
def test_of_all_that_may_have_been_answered_no_report_singles_out_one_to_four_people(people, overlapping):
    """Whoever knows the rule and a report knows that the truth is one of the worlds with this report."""
    by_report = defaultdict(list)
    for counts in worlds(people, overlapping):
        report = reportable(counts, people=people, overlapping=overlapping)
        by_report[tuple(sorted(report.items()))].append(counts)
    for report, possible in by_report.items():
        for category in CATEGORIES:
            values = {counts[category] for counts in possible}
            assert len(values) > 1 or not values & {1, 2, 3, 4}, (report, category)
        if not overlapping:
            left_out = {people - sum(counts.values()) for counts in possible}
            assert len(left_out) > 1 or people < 5 or not left_out & {1, 2, 3, 4}, report


some_counts = st.lists(st.one_of(st.integers(0, 12), st.integers(0, 200)), min_size=2, max_size=10)


@settings(max_examples=300, deadline=None)
@given(counts=some_counts, left_out=st.one_of(st.integers(0, 8), st.integers(0, 200)), overlapping=st.booleans())
def test_no_shown_numbers_add_up_to_a_group_of_one_to_four(counts, left_out, overlapping):
    names = [*map(str, range(len(counts) - 1)), "prefer_not"]
    by_name = dict(zip(names, counts, strict=True))
    people = (max(counts[:-1]) + counts[-1] if overlapping else sum(counts)) + left_out
    shown = reportable(by_name, people=people, overlapping=overlapping)
    assert all(count >= 5 and by_name[name] == count for name, count in shown.items())
    if overlapping:
        disjoint = [{name} | ({"prefer_not"} & shown.keys()) for name in shown] + [{name} for name in shown]
    else:
        disjoint = chain.from_iterable(combinations(shown, size) for size in range(1, len(shown) + 1))
    for group in disjoint:
        assert not few_outside(people, *(shown[name] for name in group)), (people, shown)
    # The world in which nobody is in a category that is not shown gives the same report.
    none_of_them = by_name | {name: 0 for name in names if name not in shown}
    assert reportable(none_of_them, people=people, overlapping=overlapping) == shown


def answer(number, **answers):
    for _ in range(number):
        Survey.objects.create(worker=consenting_worker(), **answers)


def told(key):
    (part,) = [part for part in surveying.report().questions if part.question.key == key]
    return {row.label: row.count for row in part.counted}, part.not_counted


def test_a_report_counts_the_answers_by_their_labels():
    answer(6, gender="female", race_ethnicity=["white", "asian"])
    answer(5, gender="male", race_ethnicity=["white"])
    answer(2, gender="describe", gender_described="secret words")
    answer(4, gender="prefer_not")
    report = surveying.report()
    assert (report.answered, report.workers) == (17, 17)
    assert told("gender") == (
        {"Female": 6, "Male": 5},
        ["Non-binary", "Described themselves", "Prefer not to say"],
    )
    assert told("race_ethnicity")[0] == {"White": 11, "Asian": 6}


def test_whoever_agreed_elsewhere_did_not_agree_to_take_part_here():
    answer(2)
    make_consent(make_worker(imported_hash="as in a file"), make_consent_form(version=GIVEN_ELSEWHERE))
    assert surveying.report().workers == 2


def test_before_five_people_answered_nothing_is_told():
    answer(4, gender="female")
    report = surveying.report()
    assert report.answered is None
    assert all(part.counted == [] for part in report.questions)


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    given_answers=st.lists(
        st.lists(st.sampled_from([value for value, _ in SURVEY_QUESTIONS[0].answers]), unique=True), max_size=40
    )
)
def test_a_question_with_many_answers_is_told_by_people_and_not_by_answers(given_answers):
    part = surveying.report_question(SURVEY_QUESTIONS[0], given_answers)
    labels = {label: value for value, label in SURVEY_QUESTIONS[0].answers} | {"Described themselves": "describe"}
    counts = Counter(chain.from_iterable(given_answers))
    assert all(row.count == counts[labels[row.label]] for row in part.counted)


# --- In the workspace


def test_the_demographics_page_shows_counts_and_never_own_words(admin_client):
    answer(6, gender="female")
    answer(5, gender="male")
    answer(5, gender="describe", gender_described="secret words")
    make_worker()
    page = " ".join(admin_client.get("/admin/demographics/").content.decode().split())
    assert "16 of 16 workers who agreed to take part answered the optional survey." in page
    assert '<td>Female</td><td class="number">6</td>' in page
    assert "Described themselves" in page
    assert "secret words" not in page


def test_the_demographics_page_before_five_people_answered_has_no_number_of_them(admin_client):
    answer(3, gender="female")
    page = " ".join(admin_client.get("/admin/demographics/").content.decode().split())
    assert "Fewer than five of 3 workers" in page
    assert "Female" not in page


def test_the_demographics_page_is_for_those_who_may_see_workers(client):
    client.force_login(User.objects.create(username="eve", is_staff=True))
    assert client.get("/admin/demographics/").status_code == 403


def test_surveys_have_no_page_of_their_own_in_the_workspace():
    with pytest.raises(NoReverseMatch):
        reverse("admin:annotator_survey_changelist")
