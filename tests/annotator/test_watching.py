"""Watching a study: what its figures say, and that they stay quick."""

import re
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotator import paying, reviewing, stopping, watching
from annotator.models import HIT, Annotation, HITStatus, KnownAnswers, Qualification
from tests.annotator.page import Page
from tests.annotator.test_query_counts import fill
from tests.factories import (
    answers,
    consenting_worker,
    make_assignment,
    make_consent_form,
    make_generation,
    make_hit,
    make_hit_type,
    make_run,
)

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LIST = "/admin/annotator/hittype/"


@pytest.fixture
def study():
    return make_hit_type(title="Weather", max_assignments=3)


def submitted(hit, *, ago=timedelta(minutes=5), worker=None, harm=1, status="submitted", **fields):
    at = timezone.now() - ago
    times = {"accepted_at": at - timedelta(seconds=90), "submitted_at": at}
    assignment = make_assignment(hit, worker or consenting_worker(), status=status, **times | fields)
    Annotation.objects.create(assignment=assignment, **answers(harmful_if_ai=harm, harmful_if_human=1))
    return assignment


def judged(study, *harms, text=None):
    """A statement whose annotators found it so harmful."""
    hit = make_hit(text, hit_type=study, max_assignments=3)
    for harm in harms:
        submitted(hit, harm=harm)
    return hit


# --- Places and people


def test_places_are_filled_being_worked_on_free_or_closed(study):
    judged(study, 1, 1, 1)
    hit = judged(study, 1)
    make_assignment(hit)
    expired = judged(study, 1)
    HIT.objects.filter(pk=expired.pk).update(expires_at=NOW - timedelta(days=1))
    places = watching.watch(study).places
    assert (places.wanted, places.filled, places.taken, places.free, places.closed) == (9, 5, 1, 1, 2)
    assert (places.hits, places.complete, places.percent) == (3, 1, 55)


def test_hits_are_counted_by_their_state_as_the_list_of_hits_has_it(study):
    judged(study, 1, 1, 1), judged(study, 1), make_hit(hit_type=study, disposed_at=NOW)
    make_hit(hit_type=study, expires_at=NOW - timedelta(days=1), reviewing_at=NOW)
    at_work = make_hit(hit_type=study, expires_at=NOW - timedelta(days=1))
    make_assignment(at_work)
    states = watching.watch(study).places.states
    assert states == {status: HIT.objects.in_state(status).count() for status in HITStatus}
    assert states[HITStatus.UNASSIGNABLE] == states[HITStatus.REVIEWING] == 1


def test_known_answers_make_no_places(study):
    submitted(make_hit(hit_type=study, is_check=True, max_assignments=32767))
    watch = watching.watch(study)
    assert (watch.places.wanted, watch.places.filled, watch.places.checks) == (0, 0, 1)
    assert (watch.work.submitted, watch.work.people, watch.course[-1].filled) == (1, 1, 0)


def test_who_works_and_worked_is_counted_by_head(study):
    ann = consenting_worker()
    one, other = make_hit(hit_type=study, max_assignments=5), make_hit(hit_type=study)
    submitted(one, worker=ann), submitted(other, worker=ann, ago=timedelta(days=3)), submitted(one)
    make_assignment(one)
    make_assignment(one, deadline=timezone.now() - timedelta(minutes=1), accepted_at=NOW - timedelta(hours=1))
    make_assignment(status="returned", holds_place=False, given_back_at=NOW, hit=one)
    submitted(make_hit())
    work = watching.watch(study).work
    assert (work.people, work.submitted, work.at_work) == (2, 3, 1)


def test_today_begins_at_midnight(study):
    midnight = timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
    hit = make_hit(hit_type=study)
    submitted(hit, ago=timezone.now() - midnight + timedelta(minutes=1))
    submitted(hit, ago=(timezone.now() - midnight) / 2)
    assert watching.watch(study).work.submitted_today == 1


# --- Pay


def test_pay_is_approved_waiting_or_still_to_come(study):
    ada = User.objects.create(username="ada")
    hit = make_hit(hit_type=study, max_assignments=5)
    works = [submitted(hit) for _ in range(3)]
    make_assignment(hit, reward=Decimal("0.30"))
    reviewing.approve(ids=[works[0].pk], by=ada)
    reviewing.reject(ids=[works[1].pk], by=ada, reason="It was left empty.")
    paying.pay_bonus(worker=works[0].worker, amount=Decimal(1), reason="Thanks.", by=ada, assignment=works[0])
    pay = watching.watch(study).pay
    assert (pay.approved, pay.bonuses, pay.waiting) == (Decimal("0.25"), Decimal(1), Decimal("0.25"))
    assert pay.to_come == Decimal("0.30") + 2 * Decimal("0.25")
    assert (pay.so_far, pay.in_all) == (Decimal("1.50"), Decimal("2.30"))


# --- Disagreement


def test_a_complete_statement_without_two_thirds_in_one_class_is_disputed(study):
    agreed, majority = judged(study, 1, 2, 2), judged(study, 1, 2, 5)
    disputed = judged(study, 1, 3, 5)
    judged(study, 1, 5)  # not complete
    dispute = watching.watch(study).dispute
    assert (dispute.complete, dispute.without_majority) == (3, 1)
    assert dispute.percent == pytest.approx(33.3, abs=0.1)
    assert dispute.most == [disputed]
    assert (dispute.most[0].non_toxic, dispute.most[0].ambiguous, dispute.most[0].toxic) == (1, 1, 1)
    assert {agreed, majority}.isdisjoint(dispute.most)


def test_the_most_disputed_come_first_and_no_more_than_a_few(study):
    study.max_assignments = 4
    hits = [make_hit(hit_type=study, max_assignments=4) for _ in range(7)]
    for hit in hits:
        for harm in (2, 2, 3, 4):
            submitted(hit, harm=harm)
    worst = make_hit(hit_type=study, max_assignments=4)
    for harm in (1, 1, 3, 5):
        submitted(worst, harm=harm)
    dispute = watching.watch(study).dispute
    assert (dispute.complete, dispute.without_majority, len(dispute.most)) == (8, 8, 5)
    assert dispute.most[0] == worst


def test_the_class_is_that_of_the_worse_of_the_two_harm_ratings(study):
    hit = make_hit(hit_type=study, max_assignments=3)
    for ai, human in ((1, 5), (3, 2), (2, 2)):
        assignment = submitted(hit)
        Annotation.objects.filter(assignment=assignment).update(harmful_if_ai=ai, harmful_if_human=human)
    (most,) = watching.watch(study).dispute.most
    assert (most.non_toxic, most.ambiguous, most.toxic) == (1, 1, 1)


def test_without_complete_statements_there_is_no_share(study):
    judged(study, 1)
    dispute = watching.watch(study).dispute
    assert (dispute.complete, dispute.percent, dispute.most) == (0, None, [])


# --- Pace and course


def test_the_time_to_finish_rests_on_the_last_hour_if_enough_was_filled_in_it():
    study = make_hit_type()
    hit = make_hit(hit_type=study, max_assignments=40)
    for _ in range(10):
        submitted(hit, ago=timedelta(minutes=20))
    pace = watching.watch(study).pace
    assert (pace.n, pace.an_hour, pace.left) == (10, 10, timedelta(hours=3))
    assert (pace.left_in_words, pace.basis) == ("3 hours", "at the pace of the last 60 minutes, 10 an hour")


def test_the_time_to_finish_rests_on_the_last_day_otherwise():
    study = make_hit_type()
    hit = make_hit(hit_type=study, max_assignments=10)
    submitted(hit, ago=timedelta(days=5))
    submitted(hit, ago=timedelta(hours=20)), submitted(hit, ago=timedelta(minutes=20))
    pace = watching.watch(study).pace
    assert (pace.n, pace.over, pace.left) == (2, timedelta(days=1), timedelta(days=3.5))


@pytest.mark.parametrize("ago", [timedelta(days=2), None])
def test_without_work_in_the_last_day_there_is_no_time_to_finish(study, ago):
    hit = make_hit(hit_type=study)
    if ago:
        submitted(hit, ago=ago)
    assert watching.watch(study).pace is None


def test_the_course_adds_up_to_the_places_filled_in_a_bounded_number_of_points(study):
    hits = [make_hit(hit_type=study) for _ in range(20)]
    for place, hit in enumerate(hits):
        submitted(hit, ago=timedelta(hours=40 - 2 * place))
    course = watching.watch(study).course
    assert len(course) == watching.POINTS + 1
    numbers = [point.filled for point in course]
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (0, 20)
    assert 8 <= numbers[watching.POINTS // 2] <= 12
    assert timedelta(hours=39.9) < course[-1].at - course[0].at < timedelta(hours=40.1)


def test_the_course_of_a_study_that_is_over_ends_with_its_last_work(study):
    hit = make_hit(hit_type=study, max_assignments=2)
    submitted(hit, ago=timedelta(days=9)), submitted(hit, ago=timedelta(days=7))
    course = watching.watch(study).course
    assert course[-1].at - course[0].at == pytest.approx(timedelta(days=2), abs=timedelta(seconds=5))
    assert course[-1].filled == 2


def test_a_study_nobody_has_worked_on_has_no_course(study):
    make_hit(hit_type=study)
    assert watching.watch(study).course == []
    assert isinstance(watching.watch(study).now, datetime)


# --- The page


def panel(client, study):
    return Page(client.get(f"{LIST}{study.pk}/change/"))


def test_the_page_shows_how_far_a_study_is_and_renews_itself(admin_client, study):
    judged(study, 1, 1, 1)
    disputed = judged(study, 1, 3, 5, text="the sky is blue")
    make_hit(hit_type=study)
    page = panel(admin_client, study)
    section = page.one("section", **{"aria-labelledby": "watch-heading"})
    assert section["hx-get"] == f"{LIST}{study.pk}/watch/"
    assert "6 of 9 places filled (66 %), 2 of 3 statements complete" in section.text
    assert "Of 2 complete statements, 1 (50.0 %) has no majority of two thirds" in section.text
    assert [element.text for element in page.all("span", class_="blurred")] == ["the sky is blue"]
    assert page.one("a", href=f"/admin/annotator/hit/{disputed.pk}/change/")
    (drawing,) = page.all("svg", role="img")
    assert drawing["aria-label"].startswith("6 places filled from ")
    fragment = admin_client.get(section["hx-get"])
    assert fragment.status_code == 200
    assert b"<html" not in fragment.content
    assert b"6</strong> of 9 places filled" in fragment.content
    assert not re.search(rb"style=|<script", fragment.content)


def test_a_study_that_is_over_renews_itself_no_more(admin_client, study):
    judged(study, 1, 1, 1)
    assert "hx-get" not in panel(admin_client, study).one("section", **{"aria-labelledby": "watch-heading"}).attributes


def test_what_state_a_study_is_in_is_said(admin_client):
    def said(study):
        page = panel(admin_client, study)
        return next(span.text for span in page.all("span") if (span.get("class") or "").startswith("state"))

    new, running, over, stopped = (make_hit_type() for _ in range(4))
    make_hit(hit_type=running), make_hit(hit_type=stopped)
    make_hit(hit_type=over, expires_at=NOW - timedelta(days=1))
    stopping.stop(hit_type=stopped, by=None)
    complete = make_hit_type(max_assignments=1)
    submitted(make_hit(hit_type=complete, max_assignments=1))
    test = make_hit_type(grants=Qualification.objects.create(name="reads English"), pass_mark=80)
    imported = make_hit_type(imported=True, reward=0)
    assert [said(study) for study in (new, running, over, stopped, complete, test, imported)] == [
        "nothing published yet", "running", "over", "stopped", "complete", "test", "imported",
    ]  # fmt: skip


def test_the_figures_take_as_many_queries_for_a_large_study_as_for_a_small_one():
    def queries(study):
        with CaptureQueriesContext(connection) as context:
            watching.watch(study)
        return context

    small, large = make_hit_type(), make_hit_type()
    judged(small, 1, 3, 5)
    fill(large, hits=3000, workers=200)
    assert watching.watch(large).work.submitted > 8000
    few = queries(small)
    many = queries(large)
    assert len(many) <= len(few) <= 6


# --- Acts on the page


def messages_of(response):
    return [str(message) for message in response.context["messages"]]


def test_a_study_is_stopped_after_a_page_that_says_what_that_means(admin_client, study):
    make_assignment(make_hit(hit_type=study))
    asked = Page(admin_client.get(f"{LIST}{study.pk}/stop/"))
    assert "2 free places will not be handed out. 1 person is at work now and may finish" in asked.text
    study.refresh_from_db()
    assert study.stopped_at is None
    response = admin_client.post(f"{LIST}{study.pk}/stop/", follow=True)
    assert messages_of(response) == ["The study is stopped. Work under way may be finished, and is paid. HITs: 1."]
    again = admin_client.post(f"{LIST}{study.pk}/stop/", follow=True)
    assert messages_of(again) == ["Nothing was changed: the study is stopped already."]
    response = admin_client.post(f"{LIST}{study.pk}/go-on/", follow=True)
    assert messages_of(response) == ["The study goes on: its HITs can be accepted again. HITs: 1."]


def test_a_study_is_extended_on_its_page(admin_client, study):
    hit = make_hit(hit_type=study)
    assert "All 1 HIT of the study" in Page(admin_client.get(f"{LIST}{study.pk}/extend/")).text
    response = admin_client.post(f"{LIST}{study.pk}/extend/", {"places": 2, "days": 3}, follow=True)
    assert messages_of(response) == ["HITs extended: 1."]
    hit.refresh_from_db()
    assert hit.max_assignments == 5
    response = admin_client.post(f"{LIST}{study.pk}/extend/", {"places": 0, "days": 0})
    assert response.status_code == 422
    assert "Say by how many places or days" in Page(response).text


def test_a_study_below_its_floor_is_not_extended_and_says_so(admin_client):
    study = make_hit_type(reward="0.01")
    make_hit(hit_type=study)
    response = admin_client.post(f"{LIST}{study.pk}/extend/", {"places": 2, "days": 0}, follow=True)
    assert messages_of(response)[0].startswith("This pays $0.34 an hour")


def test_studies_of_imported_work_are_neither_stopped_nor_extended_nor_edited(admin_client):
    study = make_hit_type(imported=True, reward=0)
    make_hit(hit_type=study)
    page = panel(admin_client, study)
    assert "This work was done and paid elsewhere." in page.text
    assert "Pay as it stands" not in page.text
    links = {link["href"] for link in page.all("a") if link.get("href")}
    assert not {f"{LIST}{study.pk}/{act}/" for act in ("choose", "stop", "extend")} & links
    assert page.all("input", name="title") == []
    for act in ("stop", "extend", "go-on"):
        response = admin_client.post(f"{LIST}{study.pk}/{act}/", {"places": 1, "days": 1}, follow=True)
        assert "holds work that was done elsewhere" in messages_of(response)[0]


def test_a_new_study_begins_with_the_terms_of_another_one_but_without_its_run(admin_client):
    qualification = Qualification.objects.create(name="reads English")
    known = KnownAnswers.objects.create(generation=make_generation(), expected={"lewd": ["no"]})
    study = make_hit_type(title="Weather", reward="0.40", daily_cap=20, run=make_run())
    study.qualifications.add(qualification)
    study.known_answers.add(known)
    initial = admin_client.get(f"{LIST}add/", {"like": study.pk}).context["adminform"].form.initial
    assert (initial["title"], initial["reward"], initial["daily_cap"]) == ("Weather", Decimal("0.40"), 20)
    assert (initial["qualifications"], initial["known_answers"]) == ([qualification], [known])
    assert "run" not in initial
    for like in ("", "x", "9" * 30, "0", make_hit_type(imported=True, reward=0).pk):
        assert admin_client.get(f"{LIST}add/", {"like": like}).status_code == 200


# --- The list


def test_the_list_shows_places_and_states_and_no_pay_of_imported_work(admin_client, study):
    judged(study, 1, 1)
    imported = make_hit_type(title="A batch from elsewhere", imported=True, reward=0)
    make_hit(hit_type=imported)
    page = admin_client.get(LIST).content.decode()
    batch, weather = (re.sub(r"<[^>]*>|\s+", " ", row) for row in re.findall(r"<tr.*?</tr>", page, re.DOTALL)[-2:])
    assert ("2 of 3" in weather, "running" in weather, "0.25" in weather) == (True, True, True)
    assert ("0 of 3" in batch, "imported" in batch, "0.00" in batch, "reached" in batch) == (True, True, False, False)


def test_the_list_reads_no_assignment_but_the_newest_ones_that_the_wages_rest_on(admin_client):
    study = make_hit_type()
    make_consent_form()
    fill(study, hits=3000, workers=200)
    with CaptureQueriesContext(connection) as context:
        admin_client.get(LIST)
    about_work = [query["sql"] for query in context if "annotator_assignment" in query["sql"]]
    assert all("LIMIT" in sql for sql in about_work)
