"""Accepting and submitting through the pages."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotator import assigning
from annotator.models import Annotation, Assignment, Consent, HITType, Qualification, Worker
from annotator.questions import QUESTIONS
from tests.annotator.page import Page
from tests.factories import answers, lapse, log_in, make_assignment, make_hit

pytestmark = pytest.mark.django_db

TYPED = {"other_groups": "cyclists, bakers", "other_framing": "It praises “them” & <others>."}
NOT_YOURS = "There is no such page for you. If you followed a link, it may belong to somebody else or be incomplete."


def path(assignment):
    return f"/task/{assignment.key}/"


def accept_path(study):
    return f"/study/{study.pk}/accept/"


def lead(response):
    return Page(response).one("p", class_="lead").text


def shown_message(response):
    return Page(response).one(class_="messages").text


# --- Accepting


def test_accepting_leads_to_the_task(client, study, worker):
    response = client.post(accept_path(study))
    assignment = Assignment.objects.get()
    assert (response.status_code, response["Location"]) == (302, path(assignment))
    assert (assignment.worker, assignment.hit.hit_type) == (worker, study)


@pytest.mark.parametrize("number", ["0", "999999", "9" * 30])
def test_accepting_in_a_study_that_does_not_exist_is_refused(client, worker, number):
    response = client.post(f"/study/{number}/accept/")
    assert (response.status_code, lead(response)) == (404, NOT_YOURS)
    assert not Assignment.objects.exists()


def test_with_nothing_left_the_home_page_says_so(client):
    hit = make_hit(disposed_at=timezone.now())
    log_in(client)
    response = client.post(accept_path(hit.hit_type), follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert "There is no statement for you in this study at the moment." in Page(response).text


def test_a_blocked_worker_reads_why(client, study, worker):
    Worker.objects.update(blocked_at=timezone.now(), blocked_reason="Ask Ada about your last answers.")
    response = client.post(accept_path(study))
    assert response.status_code == 403
    assert lead(response) == "You cannot take on work at present: Ask Ada about your last answers."


def test_who_lacks_a_qualification_reads_so_at_home(client, study, worker):
    study.qualifications.add(Qualification.objects.create(name="Reads English"))
    response = client.post(accept_path(study), follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert shown_message(response) == "This study asks for a qualification that you do not have yet."


def test_who_has_done_enough_for_a_day_reads_at_home_when_it_goes_on(client, study, assignment):
    HITType.objects.update(daily_cap=1)
    response = client.post(path(assignment), answers(), follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert "You can go on from " in Page(response).one("p", class_="notice").text
    assert Annotation.objects.get().assignment == assignment


# --- The page


def test_the_page_takes_four_queries(client, worker, assignment, django_assert_num_queries):
    client.get(path(assignment))  # the help lines are read once a minute
    Assignment.objects.update(draft=answers())
    with django_assert_num_queries(4):  # session, worker with consent, assignment, earnings
        client.get(path(assignment))


def test_after_the_deadline_the_page_still_opens_and_says_what_becomes_of_the_answers(client, assignment):
    lapse(assignment)
    for _ in ("accepted", "expired"):
        page = Page(client.get(path(assignment)))
        assert page.one("p", class_="time").text == "The time is over. Answers are still kept and paid."
        assert page.one("p", class_="late").text == (
            "Late answers are kept and paid. They count if the statement’s place is still free."
        )
        assert "data-seconds-left" not in page.one("p", class_="time").attributes
        assigning.expire_lapsed()


def test_a_returned_statement_is_gone(client, assignment):
    assigning.return_assignment(assignment=assignment)
    response = client.get(path(assignment))
    assert (response.status_code, lead(response)) == (
        410,
        "You gave this statement back: it can go to somebody else. Take the next one.",
    )


def test_a_statement_whose_answers_were_deleted_is_gone(client, assignment):
    lapse(assignment)
    assigning.expire_lapsed()
    Assignment.objects.update(answers_deleted_at=timezone.now())
    response = client.get(path(assignment))
    assert (response.status_code, lead(response)) == (
        410,
        "You withdrew and had your answers deleted, so nothing is stored for that statement any more.",
    )


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (timedelta(days=3), "3 days left"),
        (timedelta(hours=26), "26 hours left"),
        (timedelta(minutes=61), "61 minutes left"),
        (timedelta(minutes=1, seconds=20), "1 minute left"),
        (timedelta(seconds=40), "less than a minute left"),
    ],
)
def test_the_time_left_is_said_in_words(client, assignment, left, words):
    Assignment.objects.update(deadline=timezone.now() + left)
    time = Page(client.get(path(assignment))).one("p", class_="time")
    assert time.text == words
    assert left - timedelta(seconds=10) < timedelta(seconds=int(time["data-seconds-left"])) <= left


# --- Submitting


def test_a_submit_stores_the_answers_and_leads_to_the_next_statement(client, worker, assignment):
    response = client.post(path(assignment), answers())
    following = Assignment.objects.accepted().get()
    assert (response.status_code, response["Location"]) == (302, path(following))
    assert Annotation.objects.get().assignment == assignment
    assert following.hit != assignment.hit


def test_the_same_submit_twice_answers_the_same_and_is_stored_once(client, assignment):
    first, second = client.post(path(assignment), answers()), client.post(path(assignment), answers())
    assert (first.status_code, second.status_code) == (302, 302)
    assert first["Location"] == second["Location"]
    assert Annotation.objects.count() == 1


def test_a_second_submit_that_comes_when_the_next_is_done_leads_on(client, study, worker, assignment):
    make_hit(hit_type=study)
    client.post(path(assignment), answers())
    client.post(path(Assignment.objects.accepted().get()), answers())
    assert client.post(path(assignment), answers())["Location"] == path(Assignment.objects.accepted().get())
    assert Annotation.objects.count() == 2


def test_a_second_submit_with_answers_missing_is_not_asked_for_them(client, assignment):
    client.post(path(assignment), answers())
    assert client.post(path(assignment), {}).status_code == 302


def test_after_the_last_statement_the_home_page_thanks(client, study, worker):
    for _ in range(2):
        client.post(accept_path(study))
        response = client.post(path(Assignment.objects.accepted().get()), answers(), follow=True)
    assert response.redirect_chain == [("/", 302)]
    assert "That was all: thank you." in Page(response).text


def test_a_text_not_understood_needs_no_answers(client, assignment):
    response = client.post(path(assignment), {"not_understood": "on"}, follow=True)
    assert shown_message(response) == "Noted: you did not understand that text. It is paid like any other."
    assert Annotation.objects.get().not_understood is True


def test_a_text_not_understood_needs_no_text_of_ones_own_either(client, assignment):
    typed = {"not_understood": "on", "which_group": "other_groups", "group_framing": "other"}
    assert client.post(path(assignment), typed).status_code == 302


def test_answers_after_the_deadline_are_kept_and_the_page_says_so(client, assignment):
    lapse(assignment)
    response = client.post(path(assignment), answers(), follow=True)
    assert shown_message(response) == "Your answers came after the deadline. They are kept, counted and paid."
    assert Annotation.objects.get().assignment == assignment


def test_answers_after_the_deadline_whose_place_was_taken_are_kept_and_the_page_says_so(client, worker):
    assignment = lapse(make_assignment(make_hit(max_assignments=1), worker))
    assigning.expire_lapsed()
    make_assignment(assignment.hit)
    response = client.post(path(assignment), answers(), follow=True)
    assert shown_message(response).startswith(
        "Your answers came after the deadline and somebody else had taken the place. They are kept and paid, but do "
        "not count as a label."
    )
    assert Annotation.objects.get().assignment == assignment


def test_the_answers_of_somebody_blocked_meanwhile_are_kept_and_the_page_says_so(client, worker, assignment):
    Worker.objects.update(blocked_at=timezone.now(), blocked_reason="Ask Ada about your last answers.")
    response = client.post(path(assignment), answers())
    assert response.status_code == 403
    assert lead(response) == "You cannot take on work at present: Ask Ada about your last answers."
    assert shown_message(response) == "The answers that you just sent are kept and paid."
    assert Annotation.objects.get().assignment == assignment


# --- Stopping


def test_stopping_returns_the_open_statement_and_leads_to_the_debrief(client, assignment):
    response = client.post("/stop/")
    assert (response.status_code, response["Location"]) == (302, "/debrief/")
    assert Assignment.objects.get().status == "returned"


def test_stopping_needs_no_consent_and_is_free_to_who_is_blocked(client, worker, assignment):
    Worker.objects.update(blocked_at=timezone.now(), blocked_reason="Ask Ada.")
    Consent.objects.update(withdrawn_at=timezone.now())
    response = client.post("/stop/", follow=True)
    assert (response.redirect_chain, response.status_code) == ([("/debrief/", 302)], 200)
    assert Assignment.objects.get().status == "returned"


def test_stopping_without_a_statement_leads_to_the_debrief(client, worker):
    assert client.post("/stop/")["Location"] == "/debrief/"


# --- Answers missing or wrong


def test_a_submit_with_nothing_chosen_says_what_is_missing_beside_each_question(client, assignment):
    response = client.post(path(assignment), {})
    assert response.status_code == 422
    page = Page(response)
    errors = {element["id"]: element.text for element in page.all("p", class_="error")}
    assert errors == {
        "human_or_ai-error": "Choose one of the answers.",
        "harmful_if_ai-error": "Choose a number from 1 to 5.",
        "harmful_if_human-error": "Choose a number from 1 to 5.",
        "pos_stereo-error": "Choose one of the answers.",
        "harmful_intent-error": "Choose a number from 1 to 5.",
        "lewd-error": "Choose one of the answers.",
        "which_group-error": "Choose one of the answers.",
        "group_framing-error": "Choose one of the answers.",
        "fact_or_opinion-error": "Choose one of the answers.",
    }
    for question in QUESTIONS:
        assert page.one(id=f"{question.key}-error").is_in(page.one("fieldset", id=question.key))
    assert not Annotation.objects.exists()


def test_the_summary_of_what_is_missing_takes_the_focus_and_links_to_each_question(client, assignment):
    page = Page(client.post(path(assignment), answers(lewd="", harmful_intent="")))
    summary = page.one(class_="summary")
    assert summary.text.startswith("2 answers are missing or wrong. What you chose is kept.")
    assert {name: summary.get(name) for name in ("role", "tabindex", "autofocus")} == {
        "role": "alert",
        "tabindex": "-1",
        "autofocus": "",
    }
    links = [(link["href"], link.text) for link in page.all("a") if link.is_in(summary)]
    assert links == [("#harmful_intent", "Question 5"), ("#lewd", "Question 6")]
    assert page.one("title").text == "Answers missing · Statement · Humanval"


def test_the_summary_of_one_missing_answer_is_in_the_singular(client, assignment):
    summary = Page(client.post(path(assignment), answers(lewd=""))).one(class_="summary")
    assert summary.text.startswith("One answer is missing or wrong.")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.key)
@pytest.mark.parametrize("wrong", ["", "6", "0", "1.0", "١", "sometimes", "\x00"])
def test_an_answer_out_of_range_is_refused_and_the_others_are_kept(client, assignment, question, wrong):
    response = client.post(path(assignment), answers(**{question.key: wrong}))
    assert response.status_code == 422
    page = Page(response)
    assert [element["id"] for element in page.all("p", class_="error")] == [f"{question.key}-error"]
    kept = page.sends(page.one("form", id="answers"))
    expected = {key: str(value) for key, value in answers().items() if key != question.key}
    assert {key: kept[key] for key in expected} == expected


@pytest.mark.parametrize("not_understood", [{}, {"not_understood": "on"}], ids=["understood", "not understood"])
def test_everything_typed_is_kept_when_an_answer_is_refused(client, assignment, not_understood):
    typed = answers(**TYPED, harmful_if_ai="7", **not_understood)
    page = Page(client.post(path(assignment), typed))
    kept = page.sends(page.one("form", id="answers"))
    del kept["csrfmiddlewaretoken"], typed["harmful_if_ai"]
    assert kept == {key: str(value) for key, value in typed.items()}


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"which_group": "other_groups"}, "other_groups", "List the other groups, separated by commas."),
        (
            {"which_group": "other_groups", "other_groups": " \n"},
            "other_groups",
            "List the other groups, separated by commas.",
        ),
        ({"group_framing": "other"}, "other_framing", "Explain “Other” in a single sentence."),
        (
            {"which_group": "other_groups", "other_groups": "x" * 2001},
            "other_groups",
            "Ensure this value has at most 2000 characters (it has 2001).",
        ),
        ({"other_framing": "a\x00b"}, "other_framing", "Null characters are not allowed."),
    ],
)
def test_a_free_text_that_is_missing_or_wrong_is_said_beside_its_field(client, assignment, changes, field, sentence):
    response = client.post(path(assignment), answers(**changes))
    assert response.status_code == 422
    page = Page(response)
    (error,) = page.all("p", class_="error")
    assert (error["id"], error.text) == (f"{field}-error", sentence)
    assert page.one("input", name=field)["aria-describedby"] == f"{field}-error"


def test_a_free_text_of_2000_characters_is_stored_whole(client, assignment):
    client.post(path(assignment), answers(group_framing="other", other_framing="é" * 2000))
    assert Annotation.objects.get().other_framing == "é" * 2000
