"""The agreement page: every figure with its n, and with the reason where there is none."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotator import submitting
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
        "Undefined: Fleiss' kappa cannot tell agreement from chance when all ratings are the same; all 6 are 2. "
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


def test_a_study_takes_one_query_however_many_annotations_it_has(admin_client):
    first = make_hit_type()
    judge(first, ["toxic", "toxic"])
    one_study = queries(admin_client)
    judge(first, *[["toxic", "non-toxic"]] * 10)
    assert queries(admin_client) == one_study
    judge(make_hit_type(), ["toxic", "toxic"])
    judge(make_hit_type(), ["toxic", "toxic"])
    assert queries(admin_client) == one_study + 2
