"""The agreement page: every figure with its n, and with the reason where there is none."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analysis import figures, tasks
from analysis.models import StudyAgreement
from annotator import reviewing, submitting
from annotator.models import Assignment
from generation import wakeups
from tests.annotator.page import Page
from tests.factories import answers, make_assignment, make_hit, make_hit_type

pytestmark = pytest.mark.django_db

HARM = {"non-toxic": 1, "ambiguous": 3, "toxic": 5}


class Table(Page):
    """The page's tables alone: the rest is django-unfold's."""

    def feed(self, text):
        while "<table" in text:
            start, end = text.index("<table"), text.index("</table>") + len("</table>")
            super().feed(text[start:end])
            text = text[end:]

    def rows(self):
        rows = [row for row in self.all("tr") if any(cell.is_in(row) for cell in self.all("td"))]
        return [[cell.text for cell in self.all("td") if cell.is_in(row)] for row in rows]


def judge(study, *statements):
    """One statement a list, judged by one worker a class in it."""
    for classes in statements:
        hit = make_hit(hit_type=study)
        for name in classes:
            harm = HARM[name]
            submitting.submit(
                assignment=make_assignment(hit), answers=answers(harmful_if_ai=harm, harmful_if_human=harm)
            )


def page(client):
    response = client.get("/admin/agreement/")
    assert response.status_code == 200
    return response


def words(response):
    return " ".join(response.content.decode().split())


def test_each_figure_is_shown_with_its_interval_its_n_and_what_was_left_out(admin_client):
    judge(
        make_hit_type(),
        ["non-toxic"] * 3,
        ["non-toxic", "toxic", "toxic"],
        ["toxic"] * 3,
        ["ambiguous", "ambiguous"],
        ["toxic"],
    )
    rows = Table(page(admin_client)).rows()
    # kappa as statsmodels, the alphas as krippendorff compute them from the same matrix
    without_intervals = [[name, value, *numbers] for name, value, _, *numbers in rows]
    assert without_intervals == [
        ["Fleiss' kappa", "0.550", "3", "9", "2"],
        ["Krippendorff's alpha (nominal)", "0.737", "4", "11", "1"],
        ["Krippendorff's alpha (ordinal)", "0.594", "4", "11", "1"],
        ["Krippendorff's alpha (interval)", "0.592", "4", "11", "1"],
        ["Full agreement", "0.750", "4", "11", "1"],
        ["Majority agreement", "1.000", "4", "11", "1"],
    ]
    for _, value, interval, *_ in rows:
        low, high = map(float, interval.split(" to "))
        assert low <= float(value) <= high


def test_figures_that_are_undefined_give_the_reason_in_place_of_a_number(admin_client):
    judge(make_hit_type(), ["toxic"] * 3, ["toxic"] * 3)
    rows = Table(page(admin_client)).rows()
    assert rows[0] == [
        "Fleiss' kappa",
        "Undefined: Fleiss' kappa cannot tell agreement from chance when all ratings are the same; all 6 are toxic. "
        "Report the share of full agreement.",
        "2",
        "6",
        "0",
    ]
    assert [row[0] for row in rows if row[1].startswith("Undefined: ")] == [
        "Fleiss' kappa",
        "Krippendorff's alpha (nominal)",
        "Krippendorff's alpha (ordinal)",
        "Krippendorff's alpha (interval)",
    ]
    assert [row[1] for row in rows[4:]] == ["1.000", "1.000"]


def test_a_study_without_two_ratings_on_a_statement_says_so(admin_client):
    judge(make_hit_type(), ["toxic"], ["non-toxic"])
    rows = Table(page(admin_client)).rows()
    assert rows[0][1] == (
        "Undefined: Fleiss' kappa needs a statement with at least two ratings; all statements have at most 1. "
        "Have more raters rate the same statements."
    )
    assert [row[2:] for row in rows] == [["0", "0", "2"]] * 6


def test_a_study_without_annotations_says_so(admin_client):
    make_hit_type(title="A new study")
    response = page(admin_client)
    assert Table(response).rows()[0] == [
        "Fleiss' kappa",
        "Undefined: Fleiss' kappa needs ratings, and there are none. Wait until statements are annotated.",
        "0",
        "0",
        "0",
    ]
    assert "of 0 submitted annotations" in words(response)


def test_a_figure_without_an_interval_has_a_dash(admin_client):
    judge(make_hit_type(), ["toxic", "non-toxic", "toxic"])
    assert {row[2] for row in Table(page(admin_client)).rows()} == {"–"}


def test_without_a_study_the_page_says_how_to_begin(admin_client):
    assert (
        "There is no study yet. Publish one under Annotate, Studies; the agreement appears as annotations come in."
    ) in words(page(admin_client))


def test_what_does_not_count_is_named_and_left_out(admin_client):
    study = make_hit_type()
    judge(study, ["toxic", "toxic"])
    submitting.submit(assignment=make_assignment(study.hits.get()), answers=answers(not_understood=True))
    response = page(admin_client)
    assert (
        "of 3 submitted annotations; those not understood, late without a place or rejected do not count."
    ) in words(response)
    assert Table(response).rows()[4] == ["Full agreement", "1.000", "–", "1", "2", "0"]


def test_each_study_has_its_own_figures_newest_first(admin_client):
    judge(make_hit_type(title="The first study"), ["toxic", "toxic"])
    judge(make_hit_type(title="The second study"), ["toxic", "non-toxic"])
    response = page(admin_client)
    text = words(response)
    assert text.index("The second study</h2>") < text.index("The first study</h2>")
    assert [row[1] for row in Table(response).rows() if row[0] == "Full agreement"] == ["0.000", "1.000"]


def queries(client):
    with CaptureQueriesContext(connection) as context:
        page(client)
    return len(context)


def test_a_study_takes_three_queries_however_many_annotations_it_has(admin_client):
    first = make_hit_type()
    judge(first, ["toxic", "toxic"])
    one_study = queries(admin_client)
    judge(first, *[["toxic", "non-toxic"]] * 10)
    assert queries(admin_client) == one_study
    judge(make_hit_type(), ["toxic", "toxic"])
    judge(make_hit_type(), ["toxic", "toxic"])
    assert queries(admin_client) == one_study + 2 * 3


# --- Figures that are kept ------------------------------------------------------------------------


@pytest.fixture
def three_at_once(monkeypatch):
    """A page works out three annotations at most."""
    monkeypatch.setattr(figures, "IN_A_REQUEST", 3)


NOT_YET = "The figures of this study have not been worked out yet"
NEWER = "There are newer answers than these figures rest on."


def test_many_answers_are_worked_out_on_the_queue_and_shown_from_then_on(admin_client, three_at_once):
    study = make_hit_type()
    judge(study, ["toxic"] * 3, ["toxic", "non-toxic", "toxic"])
    before = page(admin_client)
    assert NOT_YET in words(before)
    assert "Work it out now" in words(before)
    assert Table(before).rows() == []

    tasks.refresh_agreement()
    after = page(admin_client)
    assert [row[:2] for row in Table(after).rows()][4] == ["Full agreement", "0.500"]
    assert "of 6 submitted annotations; those not understood" in words(after)
    assert f"Worked out on {StudyAgreement.objects.get().made_at:%-d %B %Y, %H:%M} UTC from 6 annotations." in words(
        after
    )
    assert NEWER not in words(after)


def test_what_is_kept_is_shown_as_it_would_be_worked_out(admin_client):
    judge(make_hit_type(), ["non-toxic"] * 3, ["non-toxic", "toxic", "toxic"], ["toxic"])
    judge(make_hit_type(), ["toxic"] * 3, ["toxic"] * 3)
    worked_out = Table(page(admin_client)).rows()
    tasks.refresh_agreement()
    assert StudyAgreement.objects.count() == 2
    assert Table(page(admin_client)).rows() == worked_out


def test_newer_answers_than_the_figures_rest_on_are_said(admin_client, three_at_once):
    study = make_hit_type()
    judge(study, ["toxic", "toxic"], ["toxic", "toxic"])
    tasks.refresh_agreement()
    judge(study, ["toxic", "non-toxic"])
    response = page(admin_client)
    assert NEWER in words(response)
    assert Table(response).rows()[4][:2] == ["Full agreement", "1.000"]
    tasks.refresh_agreement()
    response = page(admin_client)
    assert NEWER not in words(response)
    assert Table(response).rows()[4][:2] == ["Full agreement", "0.667"]


def test_answers_that_count_no_more_are_left_out_when_the_figures_are_refreshed(admin_client, three_at_once):
    study = make_hit_type()
    judge(study, ["toxic", "toxic"], ["toxic", "non-toxic"])
    tasks.refresh_agreement()
    odd = Assignment.objects.filter(annotation__harmful_if_ai=1)
    reviewing.reject(ids=[odd.get().pk], by=None, reason="All answers are the same.")
    tasks.refresh_agreement()
    assert Table(page(admin_client)).rows()[4] == ["Full agreement", "1.000", "–", "1", "2", "1"]


def test_nothing_is_worked_out_again_while_nothing_changes():
    judge(make_hit_type(), ["toxic", "toxic"])
    tasks.refresh_agreement()
    made_at = StudyAgreement.objects.get().made_at
    tasks.refresh_agreement()
    assert StudyAgreement.objects.get().made_at == made_at


def test_small_studies_are_worked_out_while_one_waits_until_they_are_many(admin_client, three_at_once):
    for title in ("The oldest", "The middle one", "The newest"):
        judge(make_hit_type(title=title), ["toxic", "toxic"])
    text = words(page(admin_client))
    assert text.count(NOT_YET) == 2
    assert text.index("The newest</h2>") < text.index("Full agreement") < text.index("The middle one</h2>")


def test_the_button_asks_the_queue_for_a_study(
    admin_client, three_at_once, monkeypatch, django_capture_on_commit_callbacks
):
    study = make_hit_type(title="A large study")
    judge(study, ["toxic", "toxic"], ["toxic", "toxic"])
    sent = []

    class Queue:
        def send_task(self, name, arguments, *, queue, expires):
            sent.append((name, arguments, queue))

    monkeypatch.setattr(wakeups, "current_app", Queue())
    with django_capture_on_commit_callbacks(execute=True):
        response = admin_client.post(f"/admin/agreement/{study.pk}/work-out/", follow=True)
    assert "The agreement of “A large study” is being worked out. Open this page again in a moment." in words(response)
    assert sent == [("analysis.work_out_agreement", [study.pk], "default")]
    tasks.work_out_agreement(study.pk)
    assert NOT_YET not in words(page(admin_client))


def test_a_study_that_is_gone_when_the_task_comes_is_no_error():
    tasks.work_out_agreement(7)
    assert not StudyAgreement.objects.exists()


def test_twenty_studies_are_on_a_page(admin_client):
    for number in range(21):
        make_hit_type(title=f"Study {number}")
    assert "Study 0</h2>" not in words(page(admin_client))
    older = admin_client.get("/admin/agreement/?page=2")
    assert "Study 0</h2>" in words(older)
    assert "Newer studies" in words(older)
