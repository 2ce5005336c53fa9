"""The paper's figures stand beside ours only where the filters leave all that they are of."""

import pytest

from analysis.reports.catalogue import REPORTS
from analysis.reports.frame import Section
from analysis.reports.paper import NOT_BESIDE, stands_beside
from analysis.reports.writing import numbers
from generation.models import Prompt
from tests.analysis.judging import judge, section
from tests.factories import make_group


@pytest.mark.parametrize(
    ("filters", "own", "stands"),
    [
        ({}, (), True),
        ({"method": ["topk", "alice"]}, (), True),
        ({"method": ["topk", "alice", "written"]}, (), True),
        ({"method": ["alice"]}, (), False),
        ({"method": ["alice"]}, ("method",), True),
        ({"group": ["women"], "label": ["toxic"]}, ("group", "label"), True),
        ({"group": ["women"], "study": [1]}, ("group",), False),
        ({"imported": False}, (), False),
    ],
)
def test_a_filter_besides_its_own_takes_a_figure_away(filters, own, stands):
    assert stands_beside(filters, *own) is stands


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("report", "key", "filters", "stands"),
    [
        ("appendix-e", "statements", {}, True),
        ("appendix-e", "statements", {"method": ["alice"]}, False),
        ("appendix-e", "matches", {"method": ["alice"]}, True),
        ("appendix-e", "matches", {"label": ["toxic"]}, True),
        ("appendix-e", "matches", {"imported": True}, False),
        ("appendix-e", "references", {"method": ["alice"]}, True),
        ("appendix-e", "references", {"label": ["toxic"]}, False),
        ("methods", "paired-matches", {}, True),
        ("methods", "paired-matches", {"label": ["toxic"]}, True),
        ("methods", "paired-toxicity", {"imported": True}, False),
        ("agreement", "figures", {}, True),
        ("agreement", "figures", {"method": ["alice", "topk"]}, True),
        ("agreement", "figures", {"label": ["toxic"]}, False),
    ],
)
def test_each_report_leaves_the_papers_figures_out_under_a_filter(report, key, filters, stands):
    prompt = Prompt.objects.create(group=make_group(), label="toxic", text="- my aunt sails\n-")
    for method in ("alice", "topk"):
        judge([[5, 4], [4, 4]], statement={"method": method, "label": "toxic", "prompt": prompt})
    shown = section(REPORTS[report].make(filters), key)
    assert ("paper" in [column.key for column in shown.table.columns]) is stands
    assert any(row.get("paper") is not None for row in shown.table.rows) is stands
    assert (NOT_BESIDE in shown.notes) is not stands_beside(filters)


def test_one_thing_is_said_in_the_singular():
    one = Section("key", "Title", "", {"annotators": 1, "studies": 1, "rows of the ledger": 2})
    assert numbers(one) == "1 annotator, 1 study, 2 rows of the ledger"
