"""A small report for tests of what all reports share: how many statements there are, by method."""

from analysis.exports.filtering import of_statements
from analysis.reports import catalogue, charts
from analysis.reports.frame import Column, Estimate, Kind, Report, Section, Table, Undefined
from generation.models import Generation

NAME = "toy"
COLUMNS = (
    Column("method", "Method"),
    Column("n", "Statements", Kind.COUNT),
    Column("share", "Share", Kind.SHARE, 1),
    Column("text", "Example", Kind.STATEMENT),
)
NOBODY = "No statement was written by ALICE."


def make(filters) -> Report:
    there = Generation.objects.filter(of_statements(filters))
    of_topk = there.filter(method="topk")
    n = of_topk.count()
    rows = (
        {"method": "top-k", "n": n, "share": Estimate(0.5, 0.41, 0.6), "text": of_topk.first().text if n else None},
        {"method": "ALICE", "n": 0, "share": Undefined(NOBODY)},
    )
    chart = charts.bars({"top-k": [rows[0]["share"]]}, ["all"], x_title="Which", y_title="Share", share=True)
    by_method = Section(
        "by-method", "By method", f"There are {n} statements.", {"statements": n}, Table(COLUMNS, rows), chart,
        paper="Table 2", notes=("Counted here.",),
    )  # fmt: skip
    nothing = Section("nothing", "Nothing", "Nobody judged.", missing="There is no annotation yet.")
    return Report(NAME, "A toy", (by_method, nothing))


def kind(**changes) -> catalogue.ReportKind:
    fields = {
        "title": "A toy",
        "about": "How many statements there are.",
        "takes": catalogue.OF_STATEMENTS,
        "rests_on": ("statements",),
        "permissions": (catalogue.READ_STATEMENTS,),
        "module": __name__,
        "page": "dataset",
    }
    return catalogue.ReportKind(NAME, **fields | changes)


def put_in_place(monkeypatch, *, alone: bool = True, **changes) -> catalogue.ReportKind:
    """Let this be the only report there is, or the only one of its page."""
    toy = kind(**changes)
    for name, other in list(catalogue.REPORTS.items()):
        if alone or other.page == toy.page:
            monkeypatch.delitem(catalogue.REPORTS, name)
    monkeypatch.setitem(catalogue.REPORTS, NAME, toy)
    return toy
