"""Figures: Plotly takes each, and says no less than the numbers they are made of."""

import json

import plotly.graph_objects as go
import pytest

from analysis.reports import charts
from analysis.reports.chart_parts import BLUE, ORANGE
from analysis.reports.frame import Estimate, Undefined

SERIES = {"ALICE": [Estimate(0.5, 0.4, 0.7), Undefined("There is none.")], "top-k": [None, 0.25]}
CATEGORIES = ["toxic", "non-toxic"]
TITLES = {"x_title": "Class", "y_title": "Share"}
FIGURES = {
    "bars": charts.bars(SERIES, CATEGORIES, **TITLES, share=True, marks={"toxic": 0.45, "elsewhere": 1}),
    "stacked bars": charts.bars(SERIES, CATEGORIES, **TITLES, share=True, stacked=True),
    "bars that lie": charts.bars(SERIES, CATEGORIES, **TITLES, horizontal=True),
    "points": charts.points(SERIES, CATEGORIES, **TITLES, marks={"toxic": 0.45}),
    "points that lie": charts.points(SERIES, CATEGORIES, **TITLES, horizontal=True, stacked=True),
    "lines over numbers": charts.lines(SERIES, [1, 2], **TITLES),
    "lines over days": charts.lines(SERIES, ["2026-03-02", "2026-03-03"], **TITLES, share=True),
    "lines over steps": charts.lines(SERIES, ["first", "then <b>"], **TITLES),
    "reliability": charts.reliability({"head <b>": [(0.1, Estimate(0.2, 0.1, 0.4), 9), (0.9, Estimate(1), 1)]}),
    "histogram": charts.histogram({"all": [1, 2, 2, 9]}, x_title="Seconds", bins=4),
    "histogram of two": charts.histogram({"a": [1, 2, float("nan")], "b": []}, x_title="Seconds", bins=[0, 1, 2]),
    "heatmap": charts.heatmap(["one"], CATEGORIES, [[Estimate(0.5), None]], share=True),
}
EMPTY = {
    "bars": charts.bars({}, [], **TITLES),
    "points": charts.points({"a": []}, [], **TITLES),
    "lines": charts.lines({"a": []}, [], **TITLES),
    "reliability": charts.reliability({"a": []}),
    "histogram": charts.histogram({"a": []}, x_title="Seconds", bins=5),
    "heatmap": charts.heatmap([], [], []),
}


@pytest.mark.parametrize(
    "chart", [*FIGURES.values(), *EMPTY.values()], ids=[*FIGURES, *(f"no {name}" for name in EMPTY)]
)
def test_plotly_takes_it_and_json_holds_it(chart):
    go.Figure(json.loads(json.dumps(chart, allow_nan=False)))


def test_an_interval_reaches_as_far_as_the_estimate_says_and_what_is_undefined_leaves_a_gap():
    alice, topk, paper = FIGURES["bars"]["data"]
    assert alice["y"] == [0.5, None]
    assert alice["error_y"]["array"] == [pytest.approx(0.2), None]
    assert alice["error_y"]["arrayminus"] == [pytest.approx(0.1), None]
    assert topk["y"] == [None, 0.25]
    assert "error_y" not in topk
    assert alice["hovertext"] == ["toxic, ALICE: 50.0% (40.0% to 70.0%)", "non-toxic, ALICE: no value"]
    assert (paper["name"], paper["x"], paper["y"]) == ("Paper", ["toxic"], [0.45])


def test_bars_that_lie_have_their_values_and_intervals_along_x():
    alice = FIGURES["bars that lie"]["data"][0]
    assert (alice["x"], alice["y"], alice["orientation"]) == ([0.5, None], CATEGORIES, "h")
    assert "error_x" in alice


def test_stacked_bars_have_no_intervals():
    assert all("error_y" not in trace for trace in FIGURES["stacked bars"]["data"])


def test_many_categories_lie_so_that_a_phone_can_show_them():
    many = [f"group {number}" for number in range(13)]
    chart = charts.points({"ALICE": [0.5] * 13}, many, **TITLES)
    assert chart["data"][0]["y"] == many
    assert chart["layout"]["xaxis"]["title"]["text"] == "Share"


def test_a_series_has_its_colour_wherever_it_stands():
    def colours(*names):
        chart = charts.bars({name: [1] for name in names}, ["all"], **TITLES)
        return {trace["name"]: trace["marker"]["color"] for trace in chart["data"]}

    assert colours("top-k", "women", "ALICE")["ALICE"] == colours("ALICE")["ALICE"] == BLUE
    assert colours("women", "top-k")["top-k"] == ORANGE


@pytest.mark.parametrize("draw", [charts.bars, charts.points, charts.lines])
def test_colour_is_not_all_that_tells_series_apart(draw):
    names = ["ALICE", "top-k", "toxic", "non-toxic", "ambiguous", "AI", "human", "x"]
    chart = draw({name: [1.0] for name in names}, ["all"], **TITLES)
    looks = [trace["marker"].get("pattern", {}).get("shape", trace["marker"].get("symbol")) for trace in chart["data"]]
    assert len(set(looks)) == len(names)


def test_labels_are_text_and_no_markup_and_broken_into_lines():
    chart = charts.bars({"<b>": [1]}, ["<i> a label & of many words that is long"], **TITLES)
    assert chart["data"][0]["name"] == "&lt;b&gt;"
    assert chart["data"][0]["x"] == ["&lt;i&gt; a label &amp; of<br>many words that<br>is long"]


def test_a_histogram_counts_each_value_once_and_shows_shares_of_several():
    [trace] = FIGURES["histogram"]["data"]
    assert trace["y"] == [3, 0, 0, 1]
    a, b = FIGURES["histogram of two"]["data"]
    assert (a["y"], b["y"]) == ([0.0, 1.0], [0.0, 0.0])


def test_reliability_is_drawn_against_what_should_be_and_a_point_is_as_large_as_it_is_sure():
    should_be, head = FIGURES["reliability"]["data"]
    assert (should_be["x"], should_be["y"]) == ([0, 1], [0, 1])
    assert (head["x"], head["y"]) == ([0.1, 0.9], [0.2, 1.0])
    assert head["error_y"]["array"] == [pytest.approx(0.2), None]
    assert head["marker"]["size"] == [18.0, 10.0]
    assert head["hovertext"][0] == "Mean probability 10.0%, 9 texts, head &lt;b&gt;: 20.0% (10.0% to 40.0%)"


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="has 1 values for 2 categories"):
        charts.bars({"a": [1]}, CATEGORIES, **TITLES)
    with pytest.raises(ValueError, match="there twice"):
        charts.bars({"a": [1, 2]}, ["one", "one"], **TITLES)
    with pytest.raises(ValueError, match="no number to draw"):
        charts.bars({"a": ["high"]}, ["one"], **TITLES)
