"""Qualifications: granted and taken away by researchers, or earned in a test with known answers."""

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotator import assigning, preferring, publishing, qualifying, submitting, tasks
from annotator.models import Assignment, Grant, KnownAnswers, Panel, Qualification, TestResult, Worker
from config.roles import RESEARCHER
from tests.annotator.threads import at_once
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    lapse,
    log_in,
    make_assignment,
    make_generation,
    make_group,
    make_hit_type,
    make_worker,
)

pytestmark = pytest.mark.django_db

RIGHT = answers(lewd="no")
WRONG = answers(lewd="yes")


def make_qualification(name="reads English"):
    return Qualification.objects.create(name=name)


def make_known_answers(expected=None, **fields):
    return KnownAnswers.objects.create(generation=make_generation(**fields), expected=expected or {"lewd": ["no"]})


def make_test(statements=4, *, pass_mark=75, **fields):
    """A qualification test of so many statements, published; "no" is right for the question whether it is lewd."""
    grants = fields.pop("grants", None) or make_qualification()
    test = make_hit_type(grants=grants, pass_mark=pass_mark, **fields)
    test.known_answers.set([make_known_answers() for _ in range(statements)])
    publishing.publish_known_answers(hit_type=test)
    return test


def take(test, worker, *given):
    """Accept and submit a statement for each of the answers; return what became of the test."""
    for answer in given:
        submitting.submit(assignment=accept(worker, hit_type=test), answers=answer)
    return TestResult.objects.filter(test=test, worker=worker).first()


def summary(result):
    return result and (result.right, result.total, result.passed)


# --- Granting


def test_workers_are_granted_a_qualification_once_and_it_is_written_down_by_whom(admin_user):
    qualification = make_qualification()
    ada, bob = make_worker(), make_worker()
    assert qualifying.grant(qualification=qualification, workers=[ada], by=admin_user) == 1
    assert qualifying.grant(qualification=qualification, workers=[ada, bob], by=None) == 1
    assert set(qualification.grants.values_list("worker", "granted_by")) == {(ada.pk, admin_user.pk), (bob.pk, None)}


def test_a_qualification_that_is_taken_away_is_gone_for_those_workers_alone(admin_user):
    kept, taken = make_qualification(), make_qualification("writes English")
    ada, bob = make_worker(), make_worker()
    for qualification in (kept, taken):
        qualifying.grant(qualification=qualification, workers=[ada, bob], by=admin_user)
    assert qualifying.take_away(qualification=taken, workers=[ada], by=admin_user) == 1
    assert list(ada.qualifications.all()) == [kept]
    assert set(bob.qualifications.all()) == {kept, taken}


def test_who_was_granted_the_qualification_gets_the_studys_statements(admin_user):
    test = make_test(statements=1)
    test.qualifications.add(qualification := make_qualification("is an adult"))
    worker = consenting_worker()
    with pytest.raises(assigning.NotQualified):
        accept(worker, hit_type=test)
    qualifying.grant(qualification=qualification, workers=[worker], by=admin_user)
    assert accept(worker, hit_type=test).worker == worker


# --- Taking a test


def test_a_test_gives_no_result_before_its_last_statement():
    test, worker = make_test(statements=3), consenting_worker()
    assert take(test, worker, RIGHT, RIGHT) is None
    assert not Grant.objects.exists()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([RIGHT] * 4, (4, 4, True)),
        ([RIGHT, WRONG, RIGHT, RIGHT], (3, 4, True)),
        ([RIGHT, WRONG, WRONG, RIGHT], (2, 4, False)),
        ([WRONG] * 4, (0, 4, False)),
    ],
    ids=["all", "at the pass mark", "below", "none"],
)
def test_who_reaches_the_pass_mark_gets_the_qualification(given, expected):
    test, worker = make_test(pass_mark=75), consenting_worker()
    assert summary(take(test, worker, *given)) == expected
    assert list(test.grants.workers.all()) == ([worker] if expected[2] else [])
    assert not Grant.objects.exclude(granted_by=None).exists()


def test_one_answer_that_is_not_expected_makes_a_statement_wrong_and_questions_without_any_do_not_count():
    test = make_hit_type(grants=make_qualification(), pass_mark=100)
    expected = {"harmful_if_ai": [1, 2], "which_group": ["directly", "indirectly"]}
    test.known_answers.set([make_known_answers(expected) for _ in range(3)])
    publishing.publish_known_answers(hit_type=test)
    given = (
        answers(harmful_if_ai=2, which_group="indirectly", lewd="yes"),
        answers(harmful_if_ai=3, which_group="directly"),
        answers(harmful_if_ai=1, which_group="none_or_unclear"),
    )
    assert summary(take(test, consenting_worker(), *given)) == (1, 3, False)


def test_a_text_that_was_not_understood_is_wrong():
    test = make_test(statements=2, pass_mark=50)
    nothing = dict.fromkeys(answers()) | {"not_understood": True}
    assert summary(take(test, consenting_worker(), nothing, RIGHT)) == (1, 2, True)


def test_tests_of_different_workers_are_apart():
    test = make_test(statements=2)
    ada, bob = consenting_worker(), consenting_worker()
    take(test, ada, WRONG)
    assert summary(take(test, bob, RIGHT, RIGHT)) == (2, 2, True)
    assert summary(take(test, ada, WRONG)) == (0, 2, False)


def test_two_tests_at_a_time_are_apart():
    one, other = make_test(statements=2), make_hit_type(grants=make_qualification("writes English"), pass_mark=100)
    other.known_answers.set(one.known_answers.all())
    publishing.publish_known_answers(hit_type=other)
    worker = consenting_worker()
    assert take(one, worker, WRONG) is None
    assert summary(take(other, worker, RIGHT, RIGHT)) == (2, 2, True)
    assert summary(take(one, worker, RIGHT)) == (1, 2, False)


def test_a_study_that_only_mixes_in_known_answers_gives_no_result():
    study = make_hit_type()
    study.known_answers.add(make_known_answers())
    publishing.publish_known_answers(hit_type=study)
    worker = consenting_worker()
    submitting.submit(assignment=make_assignment(study.hits.get(), worker), answers=RIGHT)
    assert not TestResult.objects.exists()


# --- Statements that are given back, left out or added


def test_a_statement_that_was_returned_is_wrong_once_nothing_is_left():
    test, worker = make_test(statements=2, pass_mark=50), consenting_worker()
    assigning.return_assignment(assignment=accept(worker, hit_type=test))
    assert qualifying.finish_test(worker=worker, hit_type=test) is None
    assert summary(take(test, worker, RIGHT)) == (1, 2, True)


def test_a_test_whose_last_statement_was_returned_is_settled_by_the_periodic_task():
    test, worker = make_test(statements=2), consenting_worker()
    take(test, worker, RIGHT)
    assigning.return_assignment(assignment=accept(worker, hit_type=test))
    tasks.finish_tests()
    assert summary(TestResult.objects.get(test=test, worker=worker)) == (1, 2, False)


def test_a_test_whose_last_statement_expired_is_settled_and_a_late_answer_changes_nothing():
    test, worker = make_test(statements=1), consenting_worker()
    late = lapse(accept(worker, hit_type=test))
    assigning.expire_lapsed()
    assert qualifying.finish_tests() == 1
    submitting.submit(assignment=late, answers=RIGHT)
    assert summary(TestResult.objects.get()) == (0, 1, False)
    assert not Grant.objects.exists()


def test_a_late_answer_counts_as_long_as_something_is_left():
    test, worker = make_test(statements=2, pass_mark=100), consenting_worker()
    late = lapse(accept(worker, hit_type=test))
    assigning.expire_lapsed()
    submitting.submit(assignment=late, answers=RIGHT)
    assert summary(take(test, worker, RIGHT)) == (2, 2, True)


def test_the_periodic_task_settles_nothing_that_somebody_is_still_at():
    test = make_test(statements=2)
    midway, at_the_last, newcomer = (consenting_worker() for _ in range(3))
    take(test, midway, RIGHT)
    take(test, at_the_last, RIGHT)
    accept(at_the_last, hit_type=test)
    accept(newcomer, hit_type=test)
    assert qualifying.finish_tests() == 0
    assert not TestResult.objects.exists()


def test_the_periodic_task_takes_as_many_queries_for_five_who_are_midway_as_for_one(django_assert_num_queries):
    test = make_test(statements=2)
    for _ in range(5):
        take(test, consenting_worker(), RIGHT)
        with django_assert_num_queries(1):
            qualifying.finish_tests()


def test_statements_about_groups_that_the_worker_avoids_are_left_out():
    test = make_test(statements=1)
    test.known_answers.add(make_known_answers(group=make_group("muslim")))
    publishing.publish_known_answers(hit_type=test)
    worker = consenting_worker()
    worker.avoided_groups.add(make_group("muslim"))
    assert summary(take(test, worker, RIGHT)) == (1, 1, True)


def test_a_test_that_closed_before_its_last_statement_gives_no_result():
    test, worker = make_test(statements=2), consenting_worker()
    take(test, worker, RIGHT)
    test.hits.update(expires_at=timezone.now())
    assert qualifying.finish_tests() == 0


def test_a_statement_that_was_taken_out_of_the_test_counts_no_more():
    test, worker = make_test(statements=3, pass_mark=100), consenting_worker()
    take(test, worker, WRONG, RIGHT)
    doubtful = Assignment.objects.get(annotation__lewd="yes").hit
    test.known_answers.remove(doubtful.generation.known_answers)
    publishing.publish_known_answers(hit_type=test)
    assert summary(take(test, worker, RIGHT)) == (2, 2, True)


def test_there_is_one_go():
    test, worker = make_test(statements=1, pass_mark=100), consenting_worker()
    first = take(test, worker, WRONG)
    test.known_answers.add(make_known_answers())
    publishing.publish_known_answers(hit_type=test)
    later = test.hits.exclude(assignments__worker=worker).get()
    submitting.submit(assignment=make_assignment(later, worker), answers=RIGHT)
    assert qualifying.finish_test(worker=worker, hit_type=test) == first
    assert summary(TestResult.objects.get()) == (0, 1, False)
    assert not Grant.objects.exists()


def test_a_qualification_that_was_taken_away_does_not_come_back_by_itself(admin_user):
    test, worker = make_test(statements=1), consenting_worker()
    take(test, worker, RIGHT)
    qualifying.take_away(qualification=test.grants, workers=[worker], by=admin_user)
    qualifying.finish_test(worker=worker, hit_type=test)
    qualifying.finish_tests()
    assert not Grant.objects.exists()


def test_who_has_the_qualification_already_can_pass_all_the_same(admin_user):
    test, worker = make_test(statements=1), consenting_worker()
    qualifying.grant(qualification=test.grants, workers=[worker], by=admin_user)
    assert summary(take(test, worker, RIGHT)) == (1, 1, True)
    assert Grant.objects.get().granted_by == admin_user


def test_a_submit_that_comes_twice_settles_the_test_once():
    test, worker = make_test(statements=1), consenting_worker()
    assignment = accept(worker, hit_type=test)
    for answer in (RIGHT, WRONG):
        submitting.submit(assignment=assignment, answers=answer)
    assert summary(TestResult.objects.get()) == (1, 1, True)


# --- At once


@pytest.mark.django_db(transaction=True)
def test_the_last_two_submits_at_once_settle_the_test_exactly_once():
    for number, both_late in enumerate((False, True) * 3):
        test = make_test(statements=2, pass_mark=50, grants=make_qualification(f"number {number}"))
        worker = consenting_worker()
        expired = lapse(accept(worker, hit_type=test))
        assigning.expire_lapsed()
        last = accept(worker, hit_type=test)
        if both_late:
            lapse(last)
            assigning.expire_lapsed()
        outcomes = at_once(
            lambda: submitting.submit(assignment=expired, answers=RIGHT),  # noqa: B023 - runs within this turn
            lambda: submitting.submit(assignment=last, answers=RIGHT),  # noqa: B023
            qualifying.finish_tests,
        )
        assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        result = TestResult.objects.get(test=test, worker=worker)
        assert result.total == 2
        assert test.grants.workers.count() == result.passed


# --- In the workspace


@pytest.fixture
def researcher(client):
    user = User.objects.create(username="ada", is_staff=True)
    user.groups.add(Group.objects.get(name=RESEARCHER))
    client.force_login(user)
    return user


def act(client, action, workers, **fields):
    """Choose the workers in the list and an action; return what the page says then."""
    chosen = {"action": action, "_selected_action": [worker.pk for worker in workers], "qualification": ""} | fields
    response = client.post("/admin/annotator/worker/", chosen, follow=True)
    return [str(message) for message in response.context["messages"]]


def test_a_researcher_grants_and_takes_away_in_bulk(client, researcher):
    qualification = make_qualification()
    workers = [make_worker() for _ in range(3)]
    said = act(client, "grant", workers, qualification=qualification.pk)
    assert said == ["“reads English” granted to workers who did not have it: 3."]
    assert {grant.granted_by for grant in Grant.objects.all()} == {researcher}
    said = act(client, "take_away", workers[:2], qualification=qualification.pk)
    assert said == ["“reads English” taken away from workers who had it: 2."]
    assert list(qualification.workers.all()) == workers[2:]


@pytest.mark.parametrize("action", ["grant", "take_away"])
def test_without_a_chosen_qualification_nothing_is_changed(client, researcher, action):
    worker = make_worker()
    qualifying.grant(qualification=make_qualification(), workers=[worker], by=researcher)
    assert act(client, action, [worker]) == ["Nothing was changed: choose the qualification beside the action, too."]
    assert Grant.objects.count() == 1


def test_a_grant_on_a_qualifications_page_is_signed_by_who_added_it(client, researcher):
    qualification, worker = make_qualification(), make_worker()
    url = f"/admin/annotator/qualification/{qualification.pk}/change/"
    sent = {"name": "reads English", "grants-TOTAL_FORMS": 1, "grants-INITIAL_FORMS": 0, "grants-0-worker": worker.pk}
    response = client.post(url, sent)
    assert response.status_code == 302, response.context["errors"]
    assert Grant.objects.get().granted_by == researcher
    assert worker.pseudonym in client.get(url).content.decode()


def test_a_workers_page_shows_grants_results_links_and_totals(client, researcher):
    test, worker = make_test(statements=1, title="Can you tell harm?"), log_in(client)
    take(test, worker, RIGHT)
    client.force_login(researcher)
    page = client.get(f"/admin/annotator/worker/{worker.pk}/change/").content.decode()
    for shown in ("reads English", "earned in a test", "Can you tell harm?", "/invite/", "$0.25"):
        assert shown in page


def test_results_say_how_many_were_right(client, researcher):
    test, worker = make_test(statements=2), consenting_worker()
    take(test, worker, RIGHT, WRONG)
    page = client.get("/admin/annotator/testresult/").content.decode()
    assert worker.pseudonym in page
    assert "1 of 2" in page


def test_the_list_of_workers_tells_who_is_qualified_and_finds_them(client, researcher):
    ada, bob = make_worker(pay_reference="60af"), make_worker(blocked_at=timezone.now(), blocked_reason="Why.")
    qualifying.grant(qualification=make_qualification(), workers=[ada], by=researcher)

    def found(query):
        page = client.get(f"/admin/annotator/worker/?{query}").content.decode()
        return {worker for worker in Worker.objects.all() if worker.pseudonym in page}

    assert found("") == {ada, bob}
    assert found("q=60af") == found("blocked=no") == {ada}
    assert found("blocked=yes") == {bob}
    assert found(f"qualifications__id__exact={Qualification.objects.get().pk}") == {ada}


def save_worker(client, worker, **fields):
    """Send the worker's page with these fields and nothing else, its other tables empty."""
    tables = {
        f"{table}-{count}_FORMS": "0"
        for table in ("grants", "test_results", "invitations")
        for count in ("TOTAL", "INITIAL")
    }
    return client.post(f"/admin/annotator/worker/{worker.pk}/change/", tables | fields)


def test_a_worker_is_blocked_with_a_reason_and_unblocked(client, researcher):
    worker = make_worker()
    response = save_worker(client, worker, blocked="on", blocked_reason=" ")
    assert "Say why the worker is blocked: they read the reason." in str(response.context["errors"])
    assert save_worker(client, worker, blocked="on", blocked_reason="Ask Ada.").status_code == 302
    worker.refresh_from_db()
    since = worker.blocked_at
    assert (worker.blocked_reason, since <= timezone.now()) == ("Ask Ada.", True)
    save_worker(client, worker, blocked="on", blocked_reason="Ask Bob.")
    worker.refresh_from_db()
    assert (worker.blocked_reason, worker.blocked_at) == ("Ask Bob.", since)
    save_worker(client, worker)
    worker.refresh_from_db()
    assert worker.blocked_at is None


def test_two_workers_of_a_panel_cannot_be_given_one_pay_reference(client, researcher):
    panel = Panel.objects.create(name="first wave")
    make_worker(panel=panel, pay_reference="60af")
    other, outsider = make_worker(panel=panel), make_worker()
    response = save_worker(client, other, pay_reference="60af")
    assert "Another worker of the same panel has this pay reference." in str(response.context["errors"])
    assert save_worker(client, other, pay_reference="60b0").status_code == 302
    assert save_worker(client, other, pay_reference="60b0").status_code == 302
    assert save_worker(client, outsider, pay_reference="60af").status_code == 302


def test_workers_are_unblocked_in_bulk(client, researcher):
    workers = [make_worker(blocked_at=timezone.now(), blocked_reason="Why."), make_worker()]
    assert act(client, "unblock", workers) == ["Workers unblocked: 1."]
    assert not Worker.objects.filter(blocked_at__isnull=False).exists()


def test_lists_take_as_many_queries_for_one_row_as_for_three(client, researcher):
    def queries():
        counts = {}
        for model in ("worker", "panel", "qualification", "testresult", "knownanswers"):
            with CaptureQueriesContext(connection) as context:
                assert client.get(f"/admin/annotator/{model}/").status_code == 200
            counts[model] = len(context)
        return counts

    def add_rows(name):
        test = make_test(statements=1, grants=make_qualification(name))
        worker = consenting_worker(panel=Panel.objects.create(name=name))
        take(test, worker, RIGHT)

    add_rows("one")
    few = queries()
    add_rows("two"), add_rows("three")
    assert queries() == few


# --- Groups that a worker does not want to read about


def make_test_about(*slugs):
    """A test with a statement about each group, in the order of their ids."""
    test = make_hit_type(grants=Qualification.objects.create(name="prequalified"), pass_mark=80)
    for slug in slugs:
        known = KnownAnswers.objects.create(
            generation=make_generation(group=make_group(slug)), expected={"lewd": ["no"]}
        )
        test.known_answers.add(known)
    publishing.publish_known_answers(hit_type=test)
    return test


def answer_all(worker, test):
    """Answer all of the test that is given, as expected; return the result."""
    while not TestResult.objects.filter(worker=worker, test=test).exists():
        submitting.submit(assignment=accept(worker, hit_type=test), answers=answers(lewd="no"))
    return TestResult.objects.get()


def test_whoever_leaves_out_more_than_half_of_a_test_does_not_pass():
    test, worker = make_test_about("women", "asian", "black"), consenting_worker()
    worker.avoided_groups.set([make_group("women"), make_group("asian")])
    result = answer_all(worker, test)
    assert (result.right, result.total, result.passed) == (1, 1, False)
    assert not worker.qualifications.exists()


def test_a_statement_given_back_because_its_group_is_avoided_is_left_out_too():
    test, worker = make_test_about("women", "asian", "black"), consenting_worker()
    opened = accept(worker, hit_type=test)
    preferring.set_preferences(
        worker=worker, covers_statements=True, uses_shortcuts=True, avoided_groups=[opened.hit.generation.group]
    )
    result = answer_all(worker, test)
    assert (result.right, result.total, result.passed) == (2, 2, True)
