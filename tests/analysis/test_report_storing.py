"""Reports that are kept: asked for once, worked out on the queue, never lost, never looping."""

import threading
from datetime import timedelta

import pytest
from django.db import IntegrityError, OperationalError, connection
from django.utils import timezone

from analysis import tasks
from analysis.exports.filtering import WrongFilter
from analysis.models import StoredReport
from analysis.reports import storing
from analysis.reports.catalogue import REPORTS
from analysis.reports.frame import Report, Section, unpack
from annotator import reviewing
from annotator.models import HIT, Annotation, HITType
from generation import leases, wakeups
from generation.models import Generation, TargetGroup
from tests.analysis import toy_report
from tests.analysis.judging import judge
from tests.analysis.toy_report import NAME
from tests.factories import make_assignment, make_generation, make_group, make_hit

pytestmark = pytest.mark.django_db

KINDS = dict(REPORTS)
RESTS_ON_GROUPS = (
    "groups", "dataset", "human-validation", "methods", "appendix-e", "agreement", "perplexity", "classifiers",
)  # fmt: skip

seen_by_others = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    return toy_report.put_in_place(monkeypatch)


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """What the queue was asked for."""
    sent = []
    monkeypatch.setattr(storing, "ask_for_report", lambda task, **row: sent.append((task, *row.values())))
    return sent


def fresh(stored):
    return StoredReport.objects.get(pk=stored.pk)


def made(**filters):
    """A report that was looked at and worked out."""
    stored = storing.look_at(NAME, filters)
    tasks.work_out_report(stored.pk)
    return fresh(stored)


def a_while_ago(stored, **ago):
    StoredReport.objects.filter(pk=stored.pk).update(
        **{name: timezone.now() - timedelta(minutes=minutes) for name, minutes in ago.items()}
    )


def elsewhere(look):
    """What somebody else sees, on a connection of their own."""
    found = []

    def do():
        try:
            found.append(look())
        finally:
            connection.close()

    other = threading.Thread(target=do)
    other.start()
    other.join()
    return found[0]


def meanwhile(monkeypatch, happens):
    """Let something happen while the report is worked out for the first time."""
    make, left = toy_report.make, [happens]

    def make_slowly(filters):
        if left:
            left.pop()()
        return make(filters)

    monkeypatch.setattr(toy_report, "make", make_slowly)


def broken(monkeypatch, error):
    def make(filters):
        raise error

    monkeypatch.setattr(toy_report, "make", make)


def test_it_is_asked_for_once_and_worked_out_on_the_queue(asked):
    make_generation()
    stored = storing.look_at(NAME, {})
    assert (stored.payload, stored.finished_at, stored.is_outdated) == (None, None, False)
    assert storing.look_at(NAME, {}).pk == stored.pk
    assert asked == [("analysis.work_out_report", stored.pk)]
    tasks.work_out_report(stored.pk)
    stored = storing.look_at(NAME, {})
    assert unpack(stored.payload).sections[0].n == {"statements": 1}
    assert stored.made_at
    assert stored.finished_at
    assert stored.lease_expires_at is None
    assert len(asked) == 1


def test_filters_in_another_order_are_the_same_report():
    for slug in ("women", "asian"):
        make_group(slug)
    first = storing.look_at(NAME, {"group": ["women", "asian"], "imported": "yes", "label": ["toxic", "benign"]})
    again = storing.look_at(
        NAME, {"label": ["benign", "toxic", "toxic"], "imported": "yes", "group": ["asian", "women"]}
    )
    assert first.pk == again.pk
    assert first.filters == {"group": ["asian", "women"], "imported": "yes", "label": ["benign", "toxic"]}
    assert storing.look_at(NAME, {"imported": "no"}).pk != first.pk


def test_it_is_made_over_what_its_filters_leave():
    make_generation(group=make_group("women"))
    make_generation(group=make_group("asian"))
    assert unpack(made(group=["asian"]).payload).sections[0].n == {"statements": 1}


def test_a_wrong_filter_is_refused_and_nothing_is_kept():
    with pytest.raises(WrongFilter, match="There is no group “nobody”"):
        storing.look_at(NAME, {"group": "nobody"})
    with pytest.raises(WrongFilter, match=r"The report toy has no filter “study”. It takes: group, label"):
        storing.look_at(NAME, {"study": "1"})
    with pytest.raises(storing.UnknownReport, match=r"There is no report 'nope'. Choose one of: toy."):
        storing.look_at("nope", {})
    assert not StoredReport.objects.exists()


def test_newer_rows_make_it_outdated_and_a_look_has_it_worked_out_anew_once_a_minute(asked):
    stored = made()
    make_generation()
    asked.clear()
    assert storing.look_at(NAME, {}).is_outdated
    assert asked == []
    a_while_ago(stored, asked_at=2)
    shown = storing.look_at(NAME, {})
    assert shown.payload
    assert shown.finished_at is None
    assert storing.look_at(NAME, {}).is_outdated
    assert len(asked) == 1
    tasks.work_out_report(stored.pk)
    assert not storing.look_at(NAME, {}).is_outdated


def test_a_look_takes_a_bounded_number_of_queries(django_assert_max_num_queries):
    made()
    with django_assert_max_num_queries(4):
        storing.look_at(NAME, {})


def test_a_report_that_fails_says_why_keeps_what_it_had_and_is_not_tried_without_end(monkeypatch, asked):
    stored = made()
    before = stored.payload
    broken(monkeypatch, ValueError("a row has no method\0"))
    make_generation()
    a_while_ago(stored, asked_at=2)
    storing.look_at(NAME, {})
    tasks.work_out_report(stored.pk)
    stored = fresh(stored)
    assert stored.failure == "It could not be worked out: ValueError: a row has no method␀"
    assert stored.payload == before
    assert stored.finished_at
    asked.clear()
    a_while_ago(stored, asked_at=20)
    assert storing.look_at(NAME, {}).is_outdated
    tasks.refresh_reports()
    tasks.wake_reports()
    assert asked == []


def test_other_rows_or_a_wish_have_a_failed_report_tried_again(monkeypatch, asked):
    stored = storing.look_at(NAME, {})
    with monkeypatch.context() as for_now:
        broken(for_now, ValueError("bad"))
        tasks.work_out_report(stored.pk)
    asked.clear()
    a_while_ago(stored, asked_at=2)
    make_generation()
    storing.look_at(NAME, {})
    assert len(asked) == 1
    tasks.work_out_report(stored.pk)
    assert fresh(stored).failure == ""
    storing.ask(fresh(stored))
    assert fresh(stored).finished_at is None


@seen_by_others
def test_a_database_that_goes_away_has_the_report_taken_up_again_at_once(monkeypatch):
    def cut(filters):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    stored = storing.look_at(NAME, {})
    with monkeypatch.context() as for_now:
        for_now.setattr(toy_report, "make", cut)
        with pytest.raises(OperationalError):
            storing.work_out(stored=stored.pk)
    cut_off = fresh(stored)
    assert (cut_off.finished_at, cut_off.failure, cut_off.lease_expires_at, cut_off.leases) == (None, "", None, 1)
    storing.work_out(stored=stored.pk)
    assert fresh(stored).payload


@seen_by_others
def test_what_the_database_refuses_each_time_is_a_failure_with_its_name(monkeypatch):
    def too_long(filters):
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = 20; SELECT pg_sleep(5)")

    monkeypatch.setattr(toy_report, "make", too_long)
    stored = made()
    assert stored.finished_at
    assert "OperationalError: canceling statement due to statement timeout" in stored.failure


def test_a_report_whose_worker_died_is_taken_up_again_but_not_for_ever(asked):
    stored = storing.look_at(NAME, {})
    asked.clear()
    for lease in (1, 2, 3):
        StoredReport.objects.filter(pk=stored.pk).update(leases=lease)  # as a worker that was killed left it
        a_while_ago(stored, lease_expires_at=1)
        tasks.wake_reports()
        assert asked.pop() == ("analysis.work_out_report", stored.pk)
    tasks.work_out_report(stored.pk)
    assert fresh(stored).failure.startswith("It was taken up 3 times, and its worker")
    tasks.wake_reports()
    assert asked == []


def test_nobody_takes_up_what_somebody_is_at():
    stored = storing.look_at(NAME, {})
    StoredReport.objects.update(lease_expires_at=timezone.now() + timedelta(minutes=1), leases=1)
    tasks.work_out_report(stored.pk)
    assert fresh(stored).payload is None
    storing.ask(fresh(stored))
    assert fresh(stored).leases == 1


def test_a_second_delivery_changes_nothing():
    stored = made()
    tasks.work_out_report(stored.pk)
    assert fresh(stored).made_at == stored.made_at
    tasks.work_out_report(stored.pk + 1)


@seen_by_others
def test_two_workers_at_once_work_it_out_once(monkeypatch):
    began, go_on, times = threading.Event(), threading.Event(), []
    make = toy_report.make

    def slow(filters):
        times.append(1)
        began.set()
        go_on.wait(10)
        return make(filters)

    monkeypatch.setattr(toy_report, "make", slow)
    stored = storing.look_at(NAME, {})

    def work():
        try:
            storing.work_out(stored=stored.pk)
        finally:
            connection.close()

    first = threading.Thread(target=work)
    first.start()
    assert began.wait(10)
    second = threading.Thread(target=work)
    second.start()
    second.join()
    assert fresh(stored).payload is None
    go_on.set()
    first.join()
    assert len(times) == 1
    assert fresh(stored).payload


@seen_by_others
def test_the_lease_is_kept_while_it_is_worked_out(monkeypatch, settings):
    settings.LEASE_SECONDS = 0.4
    make = toy_report.make
    ends, seen = [], []

    def slow(filters):
        for _ in range(4):
            ends.append(elsewhere(lambda: StoredReport.objects.get().lease_expires_at))
            threading.Event().wait(0.2)
        seen.append(elsewhere(lambda: StoredReport.objects.waiting().exists()))
        return make(filters)

    monkeypatch.setattr(toy_report, "make", slow)
    stored = made()
    assert stored.failure == ""
    assert len(set(ends)) > 1
    assert seen == [False]


def test_a_worker_whose_lease_lapsed_ends_nothing_of_who_took_it_up_since(monkeypatch):
    tokens = []

    def another_takes_it_up():
        a_while_ago(stored, lease_expires_at=1)
        tokens.append(leases.take_up(StoredReport.objects.waiting(), pk=stored.pk))

    stored = storing.look_at(NAME, {})
    meanwhile(monkeypatch, another_takes_it_up)
    tasks.work_out_report(stored.pk)
    theirs = fresh(stored)
    assert (theirs.lease_token, theirs.payload, theirs.finished_at, theirs.leases) == (tokens[0], None, None, 2)
    assert theirs.lease_expires_at > timezone.now()


def test_who_asks_while_it_is_worked_out_has_it_worked_out_once_more(monkeypatch):
    stored = storing.look_at(NAME, {})
    meanwhile(monkeypatch, lambda: storing.ask(fresh(stored)))
    tasks.work_out_report(stored.pk)
    between = fresh(stored)
    assert between.payload
    assert (between.finished_at, between.lease_expires_at, between.leases) == (None, None, 0)
    tasks.work_out_report(stored.pk)
    assert fresh(stored).finished_at


def test_looking_at_it_while_it_is_worked_out_asks_for_nothing(monkeypatch, asked):
    stored = storing.look_at(NAME, {})
    a_while_ago(stored, asked_at=20)
    asked.clear()
    meanwhile(monkeypatch, lambda: storing.look_at(NAME, {}))
    tasks.work_out_report(stored.pk)
    assert fresh(stored).finished_at
    assert asked == []


@seen_by_others
def test_a_worker_that_is_asked_to_stop_and_killed_does_not_count(monkeypatch, settings):
    settings.LEASE_SECONDS = 0.4
    counts = []

    def wait():
        threading.Event().wait(0.5)
        counts.append(elsewhere(lambda: StoredReport.objects.get().leases))

    meanwhile(monkeypatch, wait)
    stored = storing.look_at(NAME, {})
    storing.work_out(stored=stored.pk, is_stopping=lambda: True)
    assert counts == [0]
    assert fresh(stored).payload


@seen_by_others
def test_all_of_a_report_sees_the_same_rows(monkeypatch):
    seen = []
    make = toy_report.make

    def look_twice(filters):
        seen.append(Generation.objects.count())
        elsewhere(make_generation)
        seen.append(Generation.objects.count())
        return make(filters)

    monkeypatch.setattr(toy_report, "make", look_twice)
    stored = made()
    assert seen == [0, 0]
    assert Generation.objects.count() == 1
    assert storing.is_outdated(stored)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"chart": {"data": [float("nan")]}}, "ValueError: The chart of all holds what JSON does not"),
        ({"says": "nothing\0"}, "DataError: "),
        ({"says": float("inf")}, "ValueError: Out of range float values"),
    ],
)
def test_what_cannot_be_stored_is_a_failure_that_says_why(monkeypatch, fields, why, asked):
    monkeypatch.setattr(
        toy_report, "make", lambda filters: Report(NAME, "A toy", (Section("all", "All", **{"says": ""} | fields),))
    )
    stored = made()
    assert why in stored.failure
    assert (stored.payload, stored.lease_expires_at, stored.leases) == (None, None, 1)
    assert stored.finished_at
    asked.clear()
    tasks.wake_reports()
    assert asked == []


def test_a_report_that_fails_rests_as_long_as_it_took_and_longer_each_time(monkeypatch, asked):
    stored = storing.look_at(NAME, {})
    broken(monkeypatch, ValueError("bad"))
    tasks.work_out_report(stored.pk)
    first = fresh(stored)
    assert (first.failures, first.seconds > 0) == (1, True)
    StoredReport.objects.update(seconds=60)  # 10 times as long is 10 minutes, doubled once
    make_generation()
    asked.clear()
    a_while_ago(stored, asked_at=19)
    storing.look_at(NAME, {})
    assert asked == []
    a_while_ago(stored, asked_at=21)
    storing.look_at(NAME, {})
    assert len(asked) == 1
    monkeypatch.undo()
    toy_report.put_in_place(monkeypatch)
    tasks.work_out_report(stored.pk)
    assert fresh(stored).failures == 0


def test_as_many_are_kept_and_wait_as_there_is_room_for(monkeypatch):
    monkeypatch.setattr(storing, "KEPT", 3)
    monkeypatch.setattr(storing, "WAITING", 2)
    waiting = [storing.look_at(NAME, {"group": [make_group(slug).slug]}).pk for slug in ("a", "b", "c", "d")]
    tasks.wake_reports()
    assert [*StoredReport.objects.order_by("pk").values_list("pk", flat=True)] == waiting[2:]
    done = [made(imported=imported).pk for imported in ("yes", "no")]
    tasks.wake_reports()
    assert [*StoredReport.objects.order_by("pk").values_list("pk", flat=True)] == [waiting[3], *done]


def test_renamed_groups_and_other_words_for_them_make_it_outdated(monkeypatch):
    for name in RESTS_ON_GROUPS:
        toy_report.put_in_place(monkeypatch, rests_on=KINDS[name].rests_on)
        group = make_group(f"g-{name}")
        StoredReport.objects.all().delete()
        assert not storing.is_outdated(made())
        TargetGroup.objects.filter(pk=group.pk).update(naming_words="other words")
        assert storing.look_at(NAME, {}).is_outdated, name


@seen_by_others
def test_asked_for_by_two_at_once_it_is_one_row():
    barrier = threading.Barrier(4)

    def look():
        try:
            barrier.wait()
            storing.look_at(NAME, {"imported": "yes"})
        finally:
            connection.close()

    lookers = [threading.Thread(target=look) for _ in range(4)]
    for one in lookers:
        one.start()
    for one in lookers:
        one.join()
    assert StoredReport.objects.count() == 1


def test_the_queue_is_asked_in_the_transaction_of_the_row(monkeypatch, django_capture_on_commit_callbacks):
    sent = []
    monkeypatch.setattr(wakeups, "_send", lambda task, *, queue, **row: sent.append((task, queue)))
    monkeypatch.setattr(storing, "ask_for_report", wakeups.ask_for_report)
    with django_capture_on_commit_callbacks(execute=True):
        storing.look_at(NAME, {})
    assert sent == [("analysis.work_out_report", "reports")]


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("report_says_when_it_was_made", {"payload": {}}),
        ("report_says_when_it_was_made", {"made_at": timezone.now()}),
        ("report_finished_is_not_leased", {"finished_at": timezone.now(), "lease_expires_at": timezone.now()}),
    ],
)
def test_the_database_refuses_a_report_that_contradicts_itself(constraint, fields):
    stored = storing.look_at(NAME, {})
    with pytest.raises(IntegrityError, match=constraint):
        StoredReport.objects.filter(pk=stored.pk).update(**fields)


def test_the_database_refuses_a_second_row_of_a_report():
    stored = storing.look_at(NAME, {})
    stored.pk = None
    with pytest.raises(IntegrityError, match="report_once_for_its_filters"):
        stored.save(force_insert=True)


class TestRefreshing:
    @pytest.fixture(autouse=True)
    def of_annotations(self, monkeypatch):
        toy_report.put_in_place(monkeypatch, rests_on=("annotations",))

    def test_rejected_work_has_a_report_worked_out_anew(self, asked):
        judge([[1, 2]])
        stored = made()
        a_while_ago(stored, asked_at=2)
        asked.clear()
        tasks.refresh_reports()
        assert asked == []
        work = Annotation.objects.first().assignment
        reviewing.reject(ids=[work.pk], by=None, reason="All answers are the same.")
        tasks.refresh_reports()
        assert asked == [("analysis.work_out_report", stored.pk)]

    def test_a_newer_answer_that_does_not_count_changes_nothing(self, asked):
        judge([[1, 2]])
        stored = made()
        now = timezone.now()
        times = {"accepted_at": now - timedelta(minutes=1), "submitted_at": now}
        Annotation.objects.create(assignment=make_assignment(status="submitted", **times), not_understood=True)
        a_while_ago(stored, asked_at=2)
        asked.clear()
        assert storing.is_outdated(fresh(stored))
        tasks.refresh_reports()
        assert asked == []
        assert not storing.is_outdated(fresh(stored))

    def test_what_nobody_looked_at_of_late_is_left_alone_and_let_go_in_the_end(self, asked):
        stored = made()
        judge([[1, 2]])
        a_while_ago(stored, asked_at=3000, looked_at=3000)
        asked.clear()
        tasks.refresh_reports()
        assert asked == []
        a_while_ago(stored, looked_at=91 * 24 * 60)
        tasks.wake_reports()
        assert not StoredReport.objects.exists()

    def test_a_report_that_takes_long_is_left_to_rest(self, asked):
        stored = made()
        judge([[1, 2]])
        a_while_ago(stored, asked_at=2)
        StoredReport.objects.update(seconds=60)
        asked.clear()
        tasks.refresh_reports()
        assert asked == []
        a_while_ago(stored, asked_at=11)
        tasks.refresh_reports()
        assert len(asked) == 1

    def test_its_queries_do_not_grow_with_the_reports(self, django_assert_max_num_queries):
        for imported in ("", "yes", "no"):
            made(imported=imported)
        with django_assert_max_num_queries(4):
            tasks.refresh_reports()

    def test_only_a_few_are_worked_out_anew_at_once(self, asked, monkeypatch):
        monkeypatch.setattr(storing, "REFRESHED_AT_ONCE", 2)
        slugs = ("a", "b", "c", "d")
        for slug in slugs:
            make_group(slug)
        reports = [made(group=[slug]) for slug in slugs]
        judge([[1, 2]])
        for minutes, stored in enumerate(reversed(reports), start=2):
            a_while_ago(stored, asked_at=minutes, looked_at=minutes)
        asked.clear()
        tasks.refresh_reports()
        assert [pk for _, pk in asked] == [reports[3].pk, reports[2].pk]
        tasks.refresh_reports()  # those two wait still
        assert len(asked) == 2


class TestPay:
    """What rests on more than rows that are added, and on the clock."""

    @pytest.fixture(autouse=True)
    def of_pay(self, monkeypatch):
        toy_report.put_in_place(monkeypatch, rests_on=KINDS["pay"].rests_on, good_for=KINDS["pay"].good_for)

    @pytest.mark.parametrize(
        "change",
        [
            lambda hit: HITType.objects.update(reward="1.23"),
            lambda hit: HITType.objects.update(stopped_at=timezone.now()),
            lambda hit: HIT.objects.update(expires_at=timezone.now()),
            lambda hit: make_assignment(hit=hit),
        ],
        ids=["reward", "stopped", "expired", "accepted"],
    )
    def test_what_happens_to_studies_and_their_hits_has_it_worked_out_anew(self, asked, change):
        hit = make_hit()
        stored = made()
        a_while_ago(stored, asked_at=2)
        asked.clear()
        tasks.refresh_reports()
        assert asked == []
        change(hit)
        tasks.refresh_reports()
        assert asked == [("analysis.work_out_report", stored.pk)]

    @pytest.mark.parametrize("act", [tasks.refresh_reports, lambda: storing.look_at(NAME, {})])
    def test_it_is_good_for_five_minutes(self, asked, act):
        stored = made()
        asked.clear()
        a_while_ago(stored, asked_at=4, made_at=4)
        act()
        assert asked == []
        a_while_ago(stored, asked_at=6, made_at=6)
        assert storing.is_outdated(fresh(stored))
        act()
        assert asked == [("analysis.work_out_report", stored.pk)]
