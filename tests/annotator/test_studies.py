"""The workspace's pages of studies: what is refused, what is published, and what is said about the pay."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotator.admin.studies import HITTypeAdmin
from annotator.models import HITType, KnownAnswers, Qualification
from generation.models import AuditEntry
from tests.annotator.page import Page
from tests.annotator.work_done import works
from tests.factories import make_generation, make_hit, make_hit_type, make_run

pytestmark = pytest.mark.django_db

LIST, ADD = "/admin/annotator/hittype/", "/admin/annotator/hittype/add/"


def study_fields(**changes):
    return {
        "title": "A study",
        "description": "Read a text.",
        "reward": "0.25",
        "wage_floor": "8.00",
        "expected_time": "00:01:45",
        "assignment_duration": "00:30:00",
        "auto_approval_delay": "3 00:00:00",
        "lifetime": "30 00:00:00",
        "daily_cap": "50",
        "break_after": "00:20:00",
        "check_every": "20",
        "max_assignments": "3",
    } | changes


def run_with_a_statement():
    run = make_run()
    make_generation("the sky is blue", run=run, chunk=run.chunks.first(), position=0)
    return run


def known_answers(text="the grass is green"):
    return KnownAnswers.objects.create(
        generation=make_generation(text), expected={"lewd": ["no"]}, note="no harm in it"
    )


def messages_of(response):
    return [str(message) for message in response.context["messages"]]


def change(client, hit_type, **changes):
    return client.post(f"{LIST}{hit_type.pk}/change/", study_fields(**changes), follow=True)


def page_of(client, hit_type):
    return Page(client.get(f"{LIST}{hit_type.pk}/change/")).text


def test_saving_a_study_that_is_fed_from_a_run_publishes_what_the_run_has_written(admin_client):
    response = admin_client.post(ADD, study_fields(run=run_with_a_statement().pk))
    assert response.status_code == 302, response.context["errors"]
    assert HITType.objects.get().hits.get().generation.text == "the sky is blue"


def test_the_audit_trail_says_who_had_a_run_and_known_answers_published(admin_client, admin_user):
    admin_client.post(ADD, study_fields(run=run_with_a_statement().pk, known_answers=[known_answers().pk]))
    notes = AuditEntry.objects.filter(act__endswith="published").order_by("pk")
    assert [(note.act, note.by, note.details["hits"]) for note in notes] == [
        ("known answers published", admin_user, 1),
        ("statements published", admin_user, 1),
    ]


def test_saving_a_study_leaves_what_happened_to_it_meanwhile(admin_client, monkeypatch):
    study = make_hit_type(title="A study")
    read = HITTypeAdmin.get_form

    def stopped_meanwhile(*args, **kwargs):
        HITType.objects.update(stopped_at=timezone.now())
        return read(*args, **kwargs)

    monkeypatch.setattr(HITTypeAdmin, "get_form", stopped_meanwhile)
    change(admin_client, study, title="Another title")
    study.refresh_from_db()
    assert (study.title, study.stopped_at is None) == ("Another title", False)


def test_saving_a_study_offers_its_known_answers(admin_client):
    known, _ = known_answers(), known_answers("the other one")
    admin_client.post(ADD, study_fields(known_answers=[known.pk]))
    hit = HITType.objects.get().hits.get()
    assert (hit.generation, hit.is_check) == (known.generation, True)


def test_known_answers_are_chosen_by_number_and_note_without_their_texts(admin_client):
    known = known_answers("the grass is green")
    page = admin_client.get(ADD).content.decode()
    assert f"statement {known.generation_id}: no harm in it" in page
    assert "grass" not in page


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("reward", "-0.01", "Ensure this value is greater than or equal to 0.00."),
        ("reward", "NaN", "Enter a number."),
        ("wage_floor", "", "This field is required."),
        ("max_assignments", "0", "At least one annotator must judge each statement."),
        ("assignment_duration", "0", "Annotators need some time for a statement: give a duration above 0."),
        ("expected_time", "0", "A statement takes some time: give a duration above 0."),
        ("daily_cap", "0", "A daily cap of 0 would let nobody work: give at least 1."),
        ("break_after", "0", "A break can be suggested after some work only: give a duration above 0."),
        ("check_every", "1", "Ensure this value is greater than or equal to 2."),
        ("pass_mark", "80", "A qualification test needs a qualification to earn"),
    ],
)
def test_a_study_that_cannot_be_is_refused_on_its_page(admin_client, field, value, sentence):
    response = admin_client.post(ADD, study_fields(**{field: value}))
    assert response.status_code == 200
    assert sentence in str(response.context["errors"])
    assert not HITType.objects.exists()


# --- The floor


TOO_LOW = (
    "This pays $6.85 an hour, if a statement takes 1 minute 45 seconds as expected (n = 0, too few to measure it); "
    "the wage floor is $8.00. Raise the reward to at least $0.24, or correct the expected time if a trial took less."
)


@pytest.mark.parametrize("source", ["run", "known_answers"])
def test_a_study_that_would_publish_below_its_floor_is_refused(admin_client, source):
    offered = run_with_a_statement() if source == "run" else known_answers()
    response = admin_client.post(ADD, study_fields(**{"reward": "0.20", source: offered.pk}))
    assert response.context["adminform"].form.errors["reward"] == [TOO_LOW]
    assert not HITType.objects.exists()


def test_a_study_that_publishes_nothing_is_saved_below_its_floor_with_a_warning(admin_client):
    response = admin_client.post(ADD, study_fields(reward="0.20"), follow=True)
    assert messages_of(response)[0] == f"Nothing can be published yet. {TOO_LOW}"
    assert HITType.objects.exists()


def test_a_running_study_whose_work_takes_longer_can_be_edited_and_warns(admin_client):
    hit_type = make_hit_type(run=run_with_a_statement())
    works(hit_type, seconds=120)
    response = change(admin_client, hit_type, run=hit_type.run_id, title="Another title")
    assert messages_of(response)[0].startswith("New statements are held back. This pays $7.50 an hour, by the median")
    hit_type.refresh_from_db()
    assert hit_type.title == "Another title"


def test_the_reward_of_a_running_study_is_not_set_below_the_floor(admin_client):
    hit_type = make_hit_type(run=run_with_a_statement())
    works(hit_type, seconds=120)
    response = change(admin_client, hit_type, run=hit_type.run_id, reward="0.26")
    (error,) = response.context["adminform"].form.errors["reward"]
    assert error.endswith("Raise the reward to at least $0.27, or set another wage floor.")
    assert change(admin_client, hit_type, run=hit_type.run_id, reward="0.27").redirect_chain


def test_measured_time_counts_more_than_what_was_expected(admin_client):
    hit_type = make_hit_type()
    works(hit_type, seconds=60)
    fields = {"reward": "0.20", "expected_time": "00:05:00", "run": run_with_a_statement().pk}
    assert change(admin_client, hit_type, **fields).redirect_chain
    assert hit_type.hits.filter(is_check=False).count() == 2


# --- What the pages say


def facts(client, hit_type):
    page = Page(client.get(f"{LIST}{hit_type.pk}/change/"))
    pay = page.one("section", **{"aria-labelledby": "pay-heading"})
    names, values = ([element for element in page.all(tag) if element.is_in(pay)] for tag in ("dt", "dd"))
    return {name.text: value.text for name, value in zip(names, values, strict=True)}


def test_the_page_says_what_the_pay_rests_on(admin_client):
    hit_type = make_hit_type()
    works(hit_type, seconds=100, number=9)
    expected = {"An hour": "$8.57", "Wage floor": "$8.00", "Reward a HIT": "$0.25"}
    assert facts(admin_client, hit_type) == expected | {"Expected time": "1 minute 45 seconds", "Submissions (n)": "9"}
    works(hit_type, seconds=100, number=1)
    measured = {"An hour": "$9.00", "Median time": "1 minute 40 seconds", "Submissions (n)": "10"}
    assert facts(admin_client, hit_type) == expected | measured
    assert "Top up" not in page_of(admin_client, hit_type)


@pytest.mark.parametrize(("fed", "said"), [(True, "new ones are held back"), (False, "Nothing can be published")])
def test_the_page_warns_below_the_floor(admin_client, fed, said):
    hit_type = make_hit_type(run=make_run() if fed else None, reward=Decimal("0.20"))
    text = page_of(admin_client, hit_type)
    assert "This study pays less than its wage floor." in text
    assert f"{said} until the reward is at least $0.24." in text
    assert "Raise the reward to $0.24" in text


def test_the_page_of_a_new_study_has_no_pay_yet(admin_client):
    assert "Pay as it stands" not in admin_client.get(ADD).content.decode()


def test_the_list_shows_each_rate_with_its_n_and_who_is_below_the_floor(admin_client):
    works(make_hit_type(title="fast"), seconds=90)
    make_hit_type(title="slow", expected_time=timedelta(minutes=3))
    page = admin_client.get(LIST).content.decode()
    slow, fast = re.findall(r"<tr.*?</tr>", page, re.DOTALL)[-2:]
    assert "10.00 (n = 10)" in fast
    assert "5.00, as expected" in slow
    assert ("reached" in fast, "below" in fast) == ("below" in slow, "reached" in slow) == (True, False)


def test_the_list_takes_as_many_queries_for_few_studies_as_for_many(admin_client):
    def queries():
        with CaptureQueriesContext(connection) as context:
            assert admin_client.get(LIST).status_code == 200
        return len(context)

    for _ in range(2):
        works(make_hit_type(), seconds=90, number=1)
    few = queries()
    for _ in range(4):
        works(make_hit_type(run=make_run()), seconds=90, number=2)
    assert queries() == few


def test_a_qualification_test_is_made_on_the_page(admin_client):
    qualification, known = Qualification.objects.create(name="prequalified"), known_answers()
    fields = study_fields(grants=qualification.pk, pass_mark="80", known_answers=[known.pk])
    assert admin_client.post(ADD, fields).status_code == 302
    assert HITType.objects.get().is_test


def test_a_study_whose_statements_are_on_offer_cannot_be_set_below_its_floor(admin_client):
    study = make_hit_type(title="Weather")
    make_hit(hit_type=study)
    response = change(admin_client, study, reward="0.20")
    assert response.context["adminform"].form.errors["reward"] == [TOO_LOW]
    study.refresh_from_db()
    assert study.reward == Decimal("0.25")


def test_saving_other_things_leaves_known_answers_that_were_expired_by_hand(admin_client):
    study, known = make_hit_type(title="Weather"), known_answers()
    study.known_answers.add(known)
    change(admin_client, study, known_answers=[known.pk], lifetime="20 00:00:00")
    study.hits.update(expires_at=timezone.now())
    change(admin_client, study, known_answers=[known.pk], lifetime="20 00:00:00", title="Another title")
    assert not study.hits.assignable().exists()


def test_where_to_make_qualifications_and_known_answers_is_said_as_long_as_there_are_none(admin_client):
    page = admin_client.get(ADD).content.decode()
    assert 'There are no qualifications yet, so everybody may work. <a href="/admin/annotator/qualification/"' in page
    assert 'There are no statements with known answers yet. <a href="/admin/annotator/knownanswers/"' in page
    known_answers(), Qualification.objects.create(name="prequalified", description="Has passed.")
    page = admin_client.get(ADD).content.decode()
    assert "There are no " not in page
