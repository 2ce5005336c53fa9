"""Cells of reports: figures with their intervals, or the reason why there are none."""

import pytest

from analysis.comparison import WHY, Difference, difference_of_shares
from analysis.reports import cells
from analysis.reports.cells import (
    HOLM,
    NO_INTERVAL,
    correct,
    difference_cells,
    difference_columns,
    mean_cell,
    share_cell,
    spread_notes,
)
from analysis.reports.frame import Estimate, Kind, Undefined


def test_a_mean_of_nothing_says_what_is_missing():
    assert mean_cell([], "judged statements of ALICE") == Undefined("There are no judged statements of ALICE.")


def test_a_mean_of_several_values_has_an_interval():
    cell = mean_cell([1, 2, 3, 4, 5] * 2, "values")
    assert (cell.value, round(cell.low, 2), round(cell.high, 2)) == (3, 1.93, 4.07)
    assert spread_notes([cell]) == []


@pytest.mark.parametrize(("values", "mean"), [([4], 4), ([2] * 12, 2), ([1, 3, 5], 3), ([1] * 11 + [4], 1.25)])
def test_a_mean_that_carries_no_interval_has_none_and_the_table_says_so(values, mean):
    cell = mean_cell(values, "values", (1, 5))
    assert cell == Estimate(mean)
    assert spread_notes([cell, Undefined("None.")]) == [NO_INTERVAL]


@pytest.mark.parametrize("values", [[1, float("nan")], [float("nan")], [float("inf"), 1]])
def test_a_mean_of_missing_values_is_none(values):
    assert isinstance(mean_cell(values, "values"), Undefined)


def test_a_share_of_nothing_says_what_is_missing():
    assert share_cell(0, 0, "statements") == Undefined("There are no statements.")
    assert share_cell(0, 4, "statements").value == 0


def test_a_difference_that_is_refused_gives_its_reason_in_place_of_each_number():
    found = difference_cells(lambda: difference_of_shares(1, 1, 0, 1))
    assert found["difference"] == found["p"]
    assert found["p"].reason.startswith("With 1 and 1 values")
    assert found["test"] == "none"
    assert found.keys() | {"p_holm"} == {column.key for column in difference_columns("A minus B")}


def test_an_interval_ends_at_the_greatest_possible_difference():
    found = difference_cells(lambda: Difference(2.0, -0.5, 9.0, 0.1, "permutation test"), 4)
    assert found["difference"] == Estimate(2.0, -0.5, 4)
    without = difference_cells(lambda: Difference(2.0, None, None, 0.1, "permutation test"), 4)
    assert without["difference"] == Estimate(2.0)


def test_shares_differ_by_percentage_points():
    assert [difference_columns("A", kind)[0].kind for kind in (Kind.SHARE, Kind.NUMBER)] == [Kind.POINTS, Kind.NUMBER]


def test_the_tests_of_a_table_are_corrected_and_explained():
    rows = [
        {"p": 0.01, "test": "Welch's t test"},
        {"n": 3},
        {"p": Undefined("Too few."), "test": "none"},
        {"p": 0.04, "test": "permutation test"},
    ]
    correct(rows)
    assert [row.get("p_holm") for row in rows] == [0.02, None, Undefined("Too few."), 0.04]
    welch, permutation, holm = cells.test_notes(rows)
    assert welch == "Welch's t test: " + WHY["Welch's t test"]
    assert permutation.startswith("Permutation test: with fewer than 30")
    assert holm == HOLM


def test_a_single_test_needs_no_correction():
    assert HOLM not in cells.test_notes([{"p": 0.01, "test": "Welch's t test"}])
