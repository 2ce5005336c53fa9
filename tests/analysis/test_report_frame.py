"""Reports as data: nothing that is no number gets in, and everything comes back from JSON."""

import json
import math

import numpy as np
import pytest

from analysis.reports.frame import Column, Estimate, Kind, Report, Section, Table, Undefined, pack, unpack

COLUMNS = (Column("name", "Name"), Column("value", "Value", Kind.NUMBER))


def report(*rows, **fields):
    return Report("toy", "A toy", (Section("all", "All", "What there is.", table=Table(COLUMNS, rows), **fields),))


def test_it_comes_back_from_json_as_it_was():
    made = report(
        {"name": "one", "value": Estimate(0.5, 0.4, 0.6)},
        {"name": "two", "value": Undefined("There is none.")},
        {"name": "three", "value": None},
        {"name": "four"},
        n={"statements": 3},
        notes=("Counted here.",),
    )
    assert unpack(json.loads(json.dumps(pack(made)))) == made


@pytest.mark.parametrize("bad", [math.nan, math.inf, np.float32("nan"), np.float64("-inf")])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(ValueError, match="give an Undefined with the reason"):
        report({"value": bad})
    with pytest.raises(ValueError, match="give an Undefined with the reason"):
        Estimate(0.5, 0.1, bad)


def test_numbers_may_be_those_of_numpy():
    made = report({"value": np.int64(3)}, {"value": Estimate(np.float32(0.5))}, n={"statements": np.int64(2)})
    [section] = json.loads(json.dumps(pack(made)))["sections"]
    assert [row["value"] for row in section["table"]["rows"]] == [3, {"value": 0.5, "low": None, "high": None}]
    assert section["n"] == {"statements": 2}


def test_a_cell_has_a_column_and_a_section_its_own_key():
    with pytest.raises(ValueError, match="cells without a column: other"):
        report({"other": 1})
    section = Section("one", "One", "One.")
    with pytest.raises(ValueError, match="the same key"):
        Report("toy", "A toy", (section, section))
