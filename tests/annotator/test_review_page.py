"""The review page: what a researcher sees of submitted work, and deciding on it."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotator import consenting, drafting, reviewing, submitting
from annotator.admin import review
from annotator.models import UNLIMITED, Assignment, KnownAnswers
from annotator.questions import QUESTIONS
from config.roles import RESEARCHER
from tests.factories import answers, consenting_worker, make_assignment, make_generation, make_hit, make_hit_type

pytestmark = pytest.mark.django_db

FIRST_OPTIONS = {question.key: question.values[0] for question in QUESTIONS}
PAGE = "/admin/annotator/assignment/review/"


@pytest.fixture
def ada():
    user = User.objects.create(username="ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    return user


@pytest.fixture
def researcher(client, ada):
    cache.clear()  # of the studies' usual times
    client.force_login(ada)
    return client


def submitted(hit=None, worker=None, *, minutes_ago=0, seconds=100, **changes):
    """Work submitted some minutes ago, after so many seconds."""
    assignment = make_assignment(hit, worker)
    submitting.submit(assignment=assignment, answers=answers(**changes))
    at = timezone.now() - timedelta(minutes=minutes_ago)
    times = {"accepted_at": at - timedelta(seconds=seconds), "submitted_at": at}
    Assignment.objects.filter(pk=assignment.pk).update(**times)
    return Assignment.objects.get(pk=assignment.pk)


def shown(client, **filters):
    """The ids of the work on the page, in its order."""
    response = client.get(PAGE, filters)
    assert response.status_code == 200
    return [evidence.assignment.pk for evidence in response.context["evidence"]]


def card(page, work):
    """The text of a piece of work on the page."""
    (article,) = re.findall(rf'<article[^>]*aria-labelledby="work-{work.pk}".*?</article>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", article).split())


def decide(client, act, *works, reason="", **filters):
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    return client.post(f"{PAGE}?{query}", {"act": act, "reason": reason, "ids": [work.pk for work in works]})


def messages_of(client):
    return [str(message) for message in client.get(PAGE).context["messages"]]


def status_of(work):
    work.refresh_from_db()
    return work.status


# --- What is shown ----------------------------------------------------------------------------------


def test_submitted_work_waits_in_the_order_it_came(researcher, monkeypatch):
    monkeypatch.setattr(review, "A_PAGE", 3)
    hit = make_hit(max_assignments=9)
    works = [submitted(hit, minutes_ago=minutes).pk for minutes in (5, 9, 7, 1, 3)]
    make_assignment(hit)
    assert shown(researcher) == [works[1], works[2], works[0]]
    assert shown(researcher, page=2) == shown(researcher, page=99) == [works[4], works[3]]
    assert "1 to 3 of 5, the oldest first" in researcher.get(PAGE).content.decode()


def test_the_filters_are_in_the_address(researcher, ada):
    study = make_hit_type()
    first, second = submitted(make_hit(hit_type=study)), submitted()
    approved, rejected = submitted(), submitted()
    reviewing.approve(ids=[approved.pk], by=ada)
    reviewing.reject(ids=[rejected.pk], reason="No.", by=ada)
    assert shown(researcher, study=study.pk) == [first.pk]
    assert shown(researcher, worker=second.worker.pseudonym.lower()) == [second.pk]
    assert shown(researcher, state="approved") == [approved.pk]
    assert shown(researcher, state="rejected") == [rejected.pk]
    assert shown(researcher, state="rejected", worker=first.worker.pseudonym) == []


@pytest.mark.parametrize(
    ("filters", "sentence"),
    [
        ({"worker": "W<b>"}, "There is no worker with this pseudonym."),
        ({"worker": "W" * 99}, "Ensure this value has at most 20 characters (it has 99)."),
        ({"study": "0"}, "Select a valid choice. That choice is not one of the available choices."),
        ({"study": "x"}, "Select a valid choice. That choice is not one of the available choices."),
        ({"state": "odd"}, "Select a valid choice. odd is not one of the available choices."),
    ],
)
def test_a_filter_that_fits_nothing_is_said_and_shows_nothing(researcher, filters, sentence):
    submitted()
    response = researcher.get(PAGE, filters)
    page = response.content.decode()
    assert (sentence in page, response.context["evidence"], "W<b>" in page) == (True, [], False)


def test_answers_stand_beside_the_majority_of_the_others_and_differences_are_said(researcher):
    hit = make_hit(max_assignments=4)
    work = submitted(hit, harmful_if_ai=5, human_or_ai="human")
    for harm, group in ((1, "directly"), (1, "indirectly"), (2, "indirectly")):
        submitted(hit, harmful_if_ai=harm, which_group=group, human_or_ai="human")
    text = card(researcher.get(PAGE).content.decode(), work)
    assert "Most of 3 others" in text
    assert "2 HARMFULIFAI 5 ≠ differs 1 (2 of 3)" in text
    assert "1 HUMANORAI Human Human (3 of 3)" in text
    assert "7 WHICHGROUP Yes, directly ≠ differs Yes, indirectly (2 of 3)" in text
    assert "Majority : toxic, where 3 of 3 others say non-toxic" in text


def test_a_tie_is_named_as_one_and_no_difference(researcher):
    hit = make_hit()
    work = submitted(hit, lewd="maybe")
    submitted(hit, lewd="yes"), submitted(hit, lewd="no")
    text = card(researcher.get(PAGE).content.decode(), work)
    assert "6 LEWD Maybe tie: Yes or No (1 of 2 each)" in text


def test_work_that_does_not_count_is_no_part_of_the_majority(researcher, ada):
    hit = make_hit()
    work, refused, unclear = (
        submitted(hit),
        submitted(hit),
        submitted(hit, **dict.fromkeys(answers()), not_understood=True),
    )
    reviewing.reject(ids=[refused.pk], reason="No.", by=ada)
    page = researcher.get(PAGE).content.decode()
    assert "No others yet" in card(page, work)
    assert "Not understood: there are no answers, and the place is open again." in card(page, unclear)


def test_a_statement_with_known_answers_shows_what_was_expected(researcher):
    generation = make_generation()
    KnownAnswers.objects.create(generation=generation, expected={"harmful_if_ai": [4, 5], "lewd": ["no"]})
    check = make_hit(generation=generation, is_check=True, max_assignments=UNLIMITED)
    work = submitted(check, harmful_if_ai=1)
    submitted(check), submitted(check)
    text = card(researcher.get(PAGE).content.decode(), work)
    assert "Question Answer Expected" in text
    assert "2 HARMFULIFAI 1 ≠ differs 4 or 5" in text
    assert "6 LEWD No No" in text
    assert "9 FACTOROPINION It claims to be factual any answer" in text
    assert "Known answers : not as expected in question 2" in text
    assert "A statement with known answers: it makes no label." in text


def test_time_taken_stands_beside_the_usual_one(researcher):
    hit = make_hit(max_assignments=20)
    early = card_of_first(researcher, submitted(hit, seconds=100, minutes_ago=60))
    assert "Time taken 1 minute 40 seconds; usual: 1 minute 45 seconds (as expected)" in early
    for _ in range(9):
        submitted(hit, seconds=100)
    cache.clear()
    quick = submitted(hit, seconds=24)
    page = researcher.get(PAGE).content.decode()
    assert "Time taken 24 seconds; usual: 1 minute 40 seconds (median, n = 11)" in card(page, quick)
    assert "Too fast : 24 seconds, where 1 minute 40 seconds are usual" in card(page, quick)


def card_of_first(client, work):
    return card(client.get(PAGE).content.decode(), work)


def test_only_the_statements_before_are_looked_at_for_the_same_answers(researcher):
    worker = consenting_worker()
    for number in range(9):
        submitted(worker=worker, minutes_ago=90 - number, harmful_if_ai=2)
    works = [submitted(worker=worker, minutes_ago=60 - number) for number in range(8)]
    assert works[-1].pk in shown(researcher, flagged="on")
    assert not set(shown(researcher, flagged="on")) & {work.pk for work in works[:-1]}
    assert "all nine as for each of the 7 statements before" in card_of_first(researcher, works[-1])


def test_flagged_work_is_shown_alone_and_it_is_said_how_far_was_looked(researcher, monkeypatch):
    monkeypatch.setattr(review, "LOOKED_THROUGH", 3)
    submitted(minutes_ago=9)
    flagged = submitted(minutes_ago=8, seconds=3)
    submitted(minutes_ago=7)
    assert shown(researcher, flagged="on") == [flagged.pk]
    assert "Flags were looked for" not in researcher.get(PAGE, {"flagged": "on"}).content.decode()
    submitted(minutes_ago=6, seconds=3)
    assert shown(researcher, flagged="on") == [flagged.pk]
    sentence = "Flags were looked for in the first 3 pieces; decide on these to see more."
    assert sentence in researcher.get(PAGE, {"flagged": "on"}).content.decode()


def test_workers_are_tallied(researcher, ada):
    worker = consenting_worker()
    works = [submitted(worker=worker, seconds=seconds) for seconds in (3, 100, 100, 100)]
    reviewing.approve(ids=[works[0].pk], by=ada)
    reviewing.reject(ids=[works[1].pk], reason="No.", by=ada)
    (tally,) = researcher.get(PAGE).context["tallies"]
    assert (tally.worker, tally.waiting, tally.approved, tally.rejected) == (worker, 2, 1, 1)
    assert (tally.flagged, tally.looked_at, tally.percent_flagged) == (1, 4, 25)


def test_the_sidebar_says_how_much_waits(researcher):
    submitted(), submitted()
    assert review.waiting(None) == "2"
    entry = re.search(rf'<a href="{PAGE}".*?</a>', researcher.get("/admin/").content.decode(), re.DOTALL)[0]
    assert re.sub(r"<[^>]+>", " ", entry).split()[-2:] == ["Review", "2"]


def test_statements_and_what_annotators_wrote_are_blurred_and_are_text(researcher):
    work = submitted(
        make_hit("<script>alert(1)</script> the sky"),
        which_group="other_groups",
        other_groups="<b>sailors</b>",
        group_framing="other",
        other_framing="they \u202epraise</span> them",
    )
    for address in (PAGE, f"/admin/annotator/assignment/{work.pk}/change/"):
        page = researcher.get(address).content.decode()
        blurred = re.findall(r'<span class="blurred"[^>]*>(.*?)</span>', page)
        assert blurred == [
            "&lt;script&gt;alert(1)&lt;/script&gt; the sky",
            "&lt;b&gt;sailors&lt;/b&gt;",
            "they \u202epraise&lt;/span&gt; them",
        ]
        for text in ("the sky", "sailors", "praise"):
            assert page.count(text) == 1


def test_a_reason_is_shown_as_text(researcher, ada):
    work = submitted()
    reviewing.reject(ids=[work.pk], reason="<img src=x onerror=alert(1)>", by=ada)
    for address in (f"{PAGE}?state=rejected", f"/admin/annotator/assignment/{work.pk}/change/"):
        page = researcher.get(address).content.decode()
        assert "&lt;img src=x onerror=alert(1)&gt;" in page
        assert "<img src=x" not in page


def test_work_whose_answers_the_worker_had_deleted_is_shown_without_them(researcher, ada):
    work = submitted()
    consenting.withdraw(worker=work.worker, delete_answers=True)
    text = card(researcher.get(PAGE).content.decode(), work)
    assert "The worker withdrew and had the answers deleted. The pay stays." in text
    assert decide(researcher, "approve", work).status_code == 302
    assert status_of(work) == "approved"


def test_the_page_of_an_assignment_shows_the_decision_and_no_draft(researcher, ada):
    work = submitted()
    reviewing.reject(ids=[work.pk], reason="Read the text.", by=ada)
    page = researcher.get(f"/admin/annotator/assignment/{work.pk}/change/").content.decode()
    assert "Read the text." in page
    assert "It claims to be factual" in page
    assert re.search(r"Decided by.{0,600}?\bada\b", page, re.DOTALL)
    open_one = make_assignment()
    drafting.save_draft(assignment=open_one, typed={"other_framing": "half a thought"})
    assert "half a thought" not in researcher.get(f"/admin/annotator/assignment/{open_one.pk}/change/").content.decode()


@pytest.mark.parametrize("filters", [{}, {"flagged": "on"}, {"state": "approved"}])
def test_a_page_takes_as_many_queries_for_one_piece_of_work_as_for_a_full_page(researcher, ada, filters, monkeypatch):
    monkeypatch.setattr(review, "A_PAGE", 6)
    study = make_hit_type()

    def queries():
        cache.clear()
        with CaptureQueriesContext(connection) as context:
            number = len(shown(researcher, **filters))
        return number, len(context)

    def add(number):
        for _ in range(number):
            work = submitted(make_hit(hit_type=study), **FIRST_OPTIONS)
            if filters.get("state"):
                reviewing.approve(ids=[work.pk], by=ada)

    add(1)
    assert queries() == (1, few := queries()[1])
    add(6)
    assert queries() == (6, few)
    assert few <= 15


# --- Deciding ---------------------------------------------------------------------------------------


def test_work_is_approved_in_bulk_and_the_same_page_comes_back(researcher):
    works = [submitted() for _ in range(3)]
    response = decide(researcher, "approve", *works[:2], flagged="", select="all", page="1")
    assert (response.status_code, response["Location"]) == (302, f"{PAGE}?flagged=&page=1")
    assert messages_of(researcher) == ["Approved: 2."]
    assert [status_of(work) for work in works] == ["approved", "approved", "submitted"]


def test_work_is_rejected_in_bulk_with_a_reason(researcher, ada):
    works = [submitted(), submitted()]
    reviewing.approve(ids=[works[1].pk], by=ada)
    decide(researcher, "reject", *works, reason=" Read the text. ")
    assert messages_of(researcher) == ["Rejected: 1.", "1 left as it is: approved already, which is final."]
    assert (status_of(works[0]), works[0].rejection_reason, works[0].decided_by) == ("rejected", "Read the text.", ada)


def test_places_are_reopened_in_bulk(researcher):
    works = [submitted(), submitted(make_hit(expires_at=timezone.now() - timedelta(days=1)))]
    decide(researcher, "reopen", *works)
    assert messages_of(researcher) == [
        "Places reopened: 2.",
        "1 of them is in a HIT that has expired or was disposed of: extend it, or nobody can take the place.",
    ]
    assert not Assignment.objects.filter(holds_place=True).exists()
    assert "Makes no label: it came late or its place was reopened." in card_of_first(researcher, works[0])


def test_rejected_work_is_approved_after_all_from_its_own_list(researcher, ada):
    work = submitted()
    reviewing.reject(ids=[work.pk], reason="No.", by=ada)
    page = researcher.get(PAGE, {"state": "rejected"}).content.decode()
    assert re.findall(r'name="act" value="(\w+)"', page) == ["approve_after_all"]
    decide(researcher, "approve_after_all", work, state="rejected")
    assert messages_of(researcher) == [
        "Approved after all: 1.",
        "1 of them is counting as a label again, as the place was still free.",
    ]


def test_rejecting_without_a_reason_keeps_what_was_ticked(researcher):
    works = [submitted() for _ in range(3)]
    response = decide(researcher, "reject", *works[:2], reason="  ", select="all")
    page = response.content.decode()
    assert response.status_code == 422
    assert "Say why the work is rejected: the worker reads the reason." in page
    (field,) = re.findall(r'<input[^>]*name="reason"[^>]*>', page)
    for attribute in ("autofocus", 'aria-invalid="true"', 'aria-describedby="id_reason_error"'):
        assert attribute in field
    assert re.findall(r'name="ids" value="(\d+)" checked', page) == [str(work.pk) for work in works[:2]]
    assert status_of(works[0]) == "submitted"


def test_a_reason_is_kept_when_nothing_is_ticked_or_it_is_too_long(researcher):
    work = submitted()
    page = decide(researcher, "reject", reason="Read <it>.").content.decode()
    assert "Choose the work first: tick the boxes beside it, or “Select all on this page”." in page
    assert 'value="Read &lt;it&gt;."' in page
    response = decide(researcher, "reject", work, reason="x" * 1001)
    assert (response.status_code, "x" * 1001 in response.content.decode()) == (422, True)
    assert "Ensure this value has at most 1000 characters (it has 1001)." in response.content.decode()
    assert decide(researcher, "reject", work, reason="nul \0").status_code == 422
    assert status_of(work) == "submitted"


def test_return_in_the_field_for_the_reason_rejects(researcher):
    submitted()
    page = researcher.get(PAGE).content.decode()
    assert re.findall(r'name="act" value="(\w+)"', page) == ["reject", "approve", "reopen"]


def test_a_link_selects_all_on_the_page(researcher):
    work = submitted()
    assert "checked" not in researcher.get(PAGE).content.decode()
    page = researcher.get(PAGE, {"select": "all"}).content.decode()
    assert f'name="ids" value="{work.pk}" checked' in page


@pytest.mark.parametrize("ids", [["x"], ["-1"], ["9" * 5000], ["²"], ["0"]])
def test_forged_ids_change_nothing(researcher, ids):
    work = submitted()
    assert researcher.post(PAGE, {"act": "approve", "ids": ids}).status_code in (302, 422)
    assert researcher.post(PAGE, {"act": "drop", "ids": [work.pk]}).status_code == 422
    assert status_of(work) == "submitted"


def test_who_decided_what_is_in_the_history_of_an_assignment(researcher, ada):
    work, other = submitted(), submitted()
    decide(researcher, "reject", work, reason="Read the text.")
    decide(researcher, "approve", work, other)
    entries = LogEntry.objects.order_by("pk").values_list("user", "object_id", "change_message")
    assert list(entries) == [
        (ada.pk, str(work.pk), "Rejected: Read the text."),
        (ada.pk, str(other.pk), "Approved."),
    ]


def test_who_may_only_look_gets_no_boxes_and_decides_nothing(client):
    user = User.objects.create(username="eve", is_staff=True)
    work = submitted()
    client.force_login(user)
    assert client.get(PAGE).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="view_assignment"))
    page = client.get(PAGE).content.decode()
    assert (str(work) in page, 'name="ids"' in page, 'name="act"' in page) == (True, False, False)
    assert decide(client, "approve", work).status_code == 403
    assert status_of(work) == "submitted"
