"""The overview: what is done, how far studies are, what it costs and what is wrong, each for those who may see it."""

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from analysis import attention, dashboards
from analysis.models import DataImport, StoredReport
from analysis.reports import storing
from annotator.models import HIT, Annotation, Assignment
from generation.models import Generation, GenerationChunk, GenerationRun, Label, Reading
from generation.readings import STOPPED
from tests.annotator.work_done import work, works
from tests.factories import accept, answers, make_group, make_hit, make_hit_type, make_run

pytestmark = pytest.mark.django_db


def tiles(client):
    html = client.get("/admin/").content.decode()
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html))


def make_statements(number, *, about="heron"):
    group = make_group()
    texts = (f"{about} {place}" for place in range(number))
    Generation.objects.bulk_create(
        Generation(text=text, group=group, label=Label.BENIGN, method="topk") for text in texts
    )


def estimate_tables():
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ANALYZE generation_generation")


def test_what_is_little_is_counted(admin_client):
    make_hit()
    accept()
    make_hit()
    assert tiles(admin_client) == {
        "Runs at work": "0",
        "Statements": "2",
        "HITs": "2",
        "HITs with a free place": "2",
        "People at work now": "1",
        "Annotations": "0",
        "Workers": "1",
    }


def test_five_hundred_are_counted_and_more_are_estimated(admin_client):
    make_statements(500)
    assert tiles(admin_client)["Statements"] == "500"
    make_statements(1_000, about="crane")
    estimate_tables()
    assert tiles(admin_client)["Statements"] == "≈ 1,500"


def test_much_that_was_not_estimated_yet_is_said_to_be_more_than_was_counted(admin_client):
    estimate_tables()
    make_statements(501)
    assert tiles(admin_client)["Statements"] == "more than 500"


def test_more_free_hits_than_are_counted_are_said_to_be_more(admin_client, monkeypatch):
    monkeypatch.setattr("generation.admin.lists.COUNTED_UP_TO", 1)
    make_hit()
    make_hit()
    assert tiles(admin_client)["HITs with a free place"] == "more than 1"


@pytest.mark.parametrize(("permissions", "is_offered"), [(["view_hittype"], False), (["view_generation"], True)])
def test_the_export_is_offered_to_those_who_may(client, permissions, is_offered):
    user = User.objects.create_user("otto", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    assert ("Export the labelled set" in client.get("/admin/").content.decode()) is is_offered


# --- How far studies are, and what it costs ---------------------------------------------------------


NOW = timezone.now()
NOTHING_WRONG = "Nothing is wrong, and nothing waits for you."


def work_out_pay():
    """As the queue does."""
    cache.clear()
    StoredReport.objects.all().delete()
    storing.work_out(stored=storing.look_at("pay", {}).pk)


def page(client):
    return unescape(client.get("/admin/").content.decode())


def somebody_who_may(client, *permissions):
    user = User.objects.create_user("otto", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    return client


def matters(client):
    """Sentences, with the page that each leads to."""
    return dict(reversed(found) for found in re.findall(r'<li><a href="([^"]*)">(.*?)</a></li>', page(client)))


def row_of(html, title):
    [row] = [row for row in re.findall(r"<tr>.*?</tr>", html, re.DOTALL) if title in row]
    return " ".join(re.sub(r"<[^>]*>", " ", row).split())


def fill(hit, **fields):
    done = work(hit.hit_type, hit=hit, **{"seconds": 100} | fields)
    Assignment.objects.filter(pk=done.pk).update(holds_place=True)
    return done


def test_before_the_report_on_pay_is_there_it_says_so_and_asks_the_queue(admin_client):
    html = page(admin_client)
    assert html.count("It is being worked out for the first time; look again in a moment.") == 2
    assert "Nothing is known to be wrong." in html
    assert NOTHING_WRONG not in html
    assert StoredReport.objects.get(name="pay").finished_at is None


def test_with_nothing_there_nothing_is_wrong(admin_client):
    work_out_pay()
    html = page(admin_client)
    assert NOTHING_WRONG in html
    assert "No study has places that can still be taken." in html
    assert "Nothing was paid or promised: no study pays here yet." in html


def test_an_open_study_is_shown_with_its_places_pace_and_costs(admin_client):
    hit = make_hit(hit_type=make_hit_type(title="Weather"), max_assignments=16)
    for _ in range(4):
        fill(hit, at=NOW - timedelta(hours=2))
    approved = Assignment.objects.first()
    Assignment.objects.filter(pk=approved.pk).update(status="approved", decided_at=NOW)
    work_out_pay()
    html = page(admin_client)
    row = row_of(html, "Weather")
    assert "4 of 16 4" in row  # filled of wanted, and in the last day
    assert f"{NOW - timedelta(hours=2):%Y-%m-%d %H:%M}" in row
    assert "about 6 hours" in row
    costs = dict(re.findall(r"<dt>(.*?)</dt><dd>(\$.*?)</dd>", html))
    assert costs == {"Owed": "$0.25", "Paid": "$0.00", "Waiting for review": "$0.75", "Promised, at most": "$3.00"}
    assert "As of " in html
    assert "there may be newer work" not in html


def test_newer_work_than_the_figures_rest_on_is_said(admin_client):
    make_hit()
    work_out_pay()
    make_hit()
    assert "there may be newer work, which is added within a minute or two" in page(admin_client)


def test_studies_beyond_the_newest_ten_are_counted(admin_client, monkeypatch):
    monkeypatch.setattr(dashboards, "STUDIES_SHOWN", 2)
    for title in ("First", "Second", "Third"):
        make_hit(hit_type=make_hit_type(title=title))
    HIT.objects.create(hit_type=make_hit_type(title="Over"), generation=HIT.objects.first().generation,
                       max_assignments=1, expires_at=NOW - timedelta(days=1))  # fmt: skip
    work_out_pay()
    html = page(admin_client)
    [table] = re.findall(r"<tbody>.*?</tbody>", html, re.DOTALL)
    assert re.findall(r"First|Second|Third|Over", re.sub("<progress.*?</progress>", "", table)) == ["Third", "Second"]
    assert "These are the newest 2; 1 more has free places." in html


@pytest.mark.parametrize(
    ("permissions", "studies", "costs"),
    [(["view_generation"], 0, 0), (["view_hittype"], 1, 0), (["view_payment"], 0, 1)],
)
def test_studies_and_costs_are_for_those_who_may_see_them(client, permissions, studies, costs):
    make_hit(hit_type=make_hit_type(title="Weather"))
    work_out_pay()
    html = page(somebody_who_may(client, *permissions))
    assert html.count("How far studies are</h2>") == studies
    assert html.count("Places filled of Weather") == studies
    assert html.count("What it costs</h2>") == costs
    assert html.count("<dt>Owed</dt>") == costs


# --- What is wrong ----------------------------------------------------------------------------------


def test_what_failed_within_a_week_is_told_with_the_page_that_has_it(admin_client):
    failed = {"state": "failed", "failure": "No memory.", "ended_at": NOW}
    GenerationRun.objects.filter(pk=make_run().pk).update(**failed)
    GenerationRun.objects.filter(pk=make_run().pk).update(**failed | {"ended_at": NOW - timedelta(days=8)})
    reading = {"kind": "encoder", "model": "toy", "finished_at": NOW}
    Reading.objects.create(failure="No memory.", **reading)
    Reading.objects.create(failure=STOPPED, **reading)
    Reading.objects.create(**reading)
    DataImport.objects.create(format="train", state="refused", failure="Not a table.", ended_at=NOW)
    DataImport.objects.create(format="train", state="failed", failure="No memory.", ended_at=NOW)
    DataImport.objects.create(format="train", state="finished", rows=2, new=1, bad=1, ended_at=NOW)
    DataImport.objects.create(format="train", state="finished", ended_at=NOW)
    work_out_pay()
    assert matters(admin_client) == {
        "1 run of the last 7 days failed.": "/admin/generation/generationrun/?state__exact=failed",
        "1 reading of the last 7 days failed.": "/admin/generation/reading/",
        "2 imports of the last 7 days stored nothing.": "/admin/analysis/dataimport/",
        "1 import of the last 7 days left out rows with faults.": "/admin/analysis/dataimport/",
    }


def test_a_report_that_failed_is_told_to_those_who_may_see_it(client, admin_client):
    work_out_pay()
    times = {"asked_at": NOW, "looked_at": NOW, "finished_at": NOW}
    StoredReport.objects.create(name="dataset", digest="1", failure="No memory.", **times)
    StoredReport.objects.create(name="dataset", digest="2", failure="No memory.", **times)
    wrong = {"The report “Dataset” could not be worked out.": "/admin/analyse/dataset/#dataset"}
    assert matters(admin_client) == wrong
    assert matters(somebody_who_may(client, "view_payment")) == {}


def test_a_study_that_pays_below_its_floor_is_named_as_long_as_it_runs(admin_client):
    slow = make_hit_type(title="Weather", reward=Decimal("0.25"))
    hit = make_hit(hit_type=slow, max_assignments=20)
    works(slow, seconds=200, status="approved")
    work_out_pay()
    told = "The study “Weather” pays $4.50 an hour, less than its floor of $8.00."
    assert matters(admin_client) == {told: f"/admin/annotator/hittype/{slow.pk}/change/"}
    HIT.objects.filter(pk=hit.pk).update(expires_at=NOW - timedelta(days=1))
    work_out_pay()
    assert told not in matters(admin_client)


def test_of_many_studies_below_their_floor_a_few_are_named(admin_client, monkeypatch):
    monkeypatch.setattr(attention, "NAMED", 1)
    for title in ("Weather", "Sport", "Music"):
        make_hit(hit_type=make_hit_type(title=title, reward=Decimal("0.10")))
    work_out_pay()
    assert [*matters(admin_client)] == [
        "The study “Music” pays $3.42 an hour, less than its floor of $8.00.",
        "2 more studies pay less an hour than the floor.",
    ]


def test_places_that_ended_unfilled_are_told_of_a_study_that_runs_or_ran_lately(admin_client):
    study = make_hit_type(title="Weather")
    hit = make_hit(hit_type=study, max_assignments=3)
    fill(hit, status="approved")
    HIT.objects.filter(pk=hit.pk).update(expires_at=NOW - timedelta(hours=1))
    work_out_pay()
    told = "2 places of the study “Weather” ended unfilled, since HITs expired or were disposed of."
    assert matters(admin_client) == {told: f"/admin/annotator/hittype/{study.pk}/change/"}
    Assignment.objects.update(
        accepted_at=NOW - timedelta(days=9), submitted_at=NOW - timedelta(days=9), deadline=NOW - timedelta(days=8)
    )
    work_out_pay()
    assert matters(admin_client) == {}


def test_statements_without_a_majority_are_told(admin_client):
    study = make_hit_type(title="Weather")
    make_hit(hit_type=study)
    disputed = make_hit(hit_type=study, max_assignments=3)
    for harm in (1, 3, 5):
        done = fill(disputed, status="approved")
        Annotation.objects.create(assignment=done, **answers(harmful_if_ai=harm, harmful_if_human=1))
    work_out_pay()
    told = "On 1 complete statement of the study “Weather” the annotators have no majority of two thirds."
    assert matters(admin_client) == {told: f"/admin/annotator/hittype/{study.pk}/change/"}


def test_work_that_waits_for_review_is_told_with_what_of_it_is_flagged(admin_client):
    study = make_hit_type()
    work_out_pay()
    for seconds in (5, 100):
        Annotation.objects.create(assignment=work(study, seconds=seconds), **answers())
    assert matters(admin_client) == {"2 pieces of work wait for review.": "/admin/annotator/assignment/review/"}
    work_out_pay()
    assert matters(admin_client) == {
        "2 pieces of work wait for review; of the 2 oldest, 1 by 1 annotator asks for a second look.": (
            "/admin/annotator/assignment/review/?flagged=on"
        )
    }


def test_what_no_worker_takes_up_within_five_minutes_is_told(admin_client):
    work_out_pay()
    run = make_run()
    waiting = DataImport.objects.create(format="train")
    assert matters(admin_client) == {}  # a worker may just be starting
    long_ago = timezone.now() - timedelta(minutes=20)
    GenerationRun.objects.update(created_at=long_ago)
    DataImport.objects.update(created_at=long_ago)
    StoredReport.objects.create(name="dataset", digest="1", asked_at=long_ago, looked_at=long_ago)
    found = matters(admin_client)
    assert [sentence.split(",")[0] for sentence in found] == [
        f"Run {run.pk} has waited for a worker for 20 minutes",
        f"Import {waiting.pk} has waited for a worker for 20 minutes",
        "The report “Dataset” has waited for a worker for 20 minutes",
    ]
    assert all(sentence.endswith(("queue “generation”.", "queue “default”.", "queue “reports”.")) for sentence in found)


def test_what_waits_while_a_worker_is_busy_is_not_told(admin_client):
    work_out_pay()
    make_run(count=40)
    long_ago, soon = timezone.now() - timedelta(minutes=20), timezone.now() + timedelta(minutes=1)
    GenerationRun.objects.update(created_at=long_ago)
    first = GenerationChunk.objects.first()
    token = "00000000-0000-0000-0000-000000000001"
    GenerationChunk.objects.filter(pk=first.pk).update(lease_expires_at=soon, lease_token=token)
    DataImport.objects.create(format="train")
    DataImport.objects.update(created_at=long_ago)
    DataImport.objects.create(format="train", state="running", lease_expires_at=soon)
    times = {"asked_at": long_ago, "looked_at": long_ago}
    StoredReport.objects.create(name="dataset", digest="1", **times)
    StoredReport.objects.create(name="dataset", digest="2", lease_expires_at=soon, **times)
    assert GenerationRun.objects.waiting().exists()
    assert matters(admin_client) == {}
    StoredReport.objects.filter(digest="2").update(asked_at=timezone.now())  # the one at work was asked for just now
    assert matters(admin_client) == {}
    StoredReport.objects.filter(digest="2").update(lease_expires_at=long_ago)
    assert len(matters(admin_client)) == 1


def test_nobody_is_told_of_what_they_may_not_see(client):
    GenerationRun.objects.filter(pk=make_run().pk).update(state="failed", failure="No memory.", ended_at=NOW)
    DataImport.objects.create(format="train", state="refused", failure="Not a table.", ended_at=NOW)
    make_hit(hit_type=make_hit_type(reward=Decimal("0.01")))
    work(make_hit_type(), seconds=100)
    work_out_pay()
    assert matters(somebody_who_may(client, "view_generation")) == {}
    assert NOTHING_WRONG in page(client)


def test_it_takes_as_many_queries_for_many_as_for_few(admin_client):
    def cost():
        work_out_pay()
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            page(admin_client)
        return len(queries)

    def add(number):
        for _ in range(number):
            works(make_hit(hit_type=make_hit_type(reward=Decimal("0.01")), max_assignments=9).hit_type, seconds=50)
            GenerationRun.objects.filter(pk=make_run().pk).update(state="failed", failure="No.", ended_at=NOW)

    add(1)
    few = cost()
    add(5)
    assert cost() == few
