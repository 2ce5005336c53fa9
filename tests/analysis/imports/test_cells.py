"""Single cells: what is stored for what a file says, and what cannot be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.imports import cells
from analysis.imports.faults import BadCell, beginning
from analysis.imports.groups import slug_of


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_bytes_literal_is_read_as_the_text_that_it_stands_for(text):
    assert cells.plain_text("text", repr(text.encode())) == text


@pytest.mark.parametrize("text", ["plain", "b", "b'", "b'open", "b\"mixed'", "the b'way"])
def test_what_is_no_bytes_literal_stays_as_it_is(text):
    assert cells.plain_text("text", text) == text


@pytest.mark.parametrize(
    ("literal", "reason"),
    [(r"b'\xff'", "its bytes are not UTF-8"), ("b'a'b'", "cannot be read"), ("b'é'", "cannot be")],
)
def test_a_broken_bytes_literal_is_a_fault(literal, reason):
    with pytest.raises(BadCell, match=reason):
        cells.plain_text("text", literal)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("a\0b", "NUL character"),
        ("a\ud800b", "half of a surrogate pair"),
        (" \t ", "The text is empty"),
        ("x" * 100_001, "has 100,001 characters; at most 100,000"),
    ],
)
def test_what_cannot_be_stored_as_a_text_is_a_fault(value, sentence):
    with pytest.raises(BadCell, match=sentence):
        cells.text_of("text", value)


def test_words_are_known_in_any_case_and_others_named_with_the_known_ones():
    assert cells.label_of("label", " HATE ") == cells.label_of("label", "1.0") == "toxic"
    assert cells.method_of("method", "cbs") == "alice"
    with pytest.raises(BadCell, match=r"This word is not known here. Known are: neutral, benign, 0, hate, toxic, 1."):
        cells.label_of("label", "nice")


@pytest.mark.parametrize(("value", "stored"), [("1.5", 1.5), ("", None), ("NaN", None), (" 5 ", 5.0)])
def test_numbers_are_read(value, stored):
    assert cells.number("intent", value, 1, 5) == stored


@pytest.mark.parametrize("value", ["0.9", "5.1", "inf", "one", "1,5", "-nan"])
def test_numbers_out_of_range_and_what_is_none_are_faults(value):
    with pytest.raises(BadCell):
        cells.number("intent", value, 1, 5)


@pytest.mark.parametrize("value", ["true", "TRUE", "1", "True", "1.0"])
def test_truth_is_written_in_many_ways(value):
    assert cells.flag("Answer.writer.1", value) is True


@pytest.mark.parametrize("value", ["false", "FALSE", "0", "", "nan"])
def test_so_is_falsehood(value):
    assert cells.flag("Answer.writer.1", value) is False


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        ("Mon Nov 16 10:15:00 PST 2020", "2020-11-16T18:15:00+00:00"),
        ("Fri Jul 3 10:15:00 PDT 2020", "2020-07-03T17:15:00+00:00"),
        ("2020-11-16T10:15:00", "2020-11-16T10:15:00+00:00"),
        ("2020-11-16 10:15:00.5+02:00", "2020-11-16T08:15:00.500000+00:00"),
    ],
)
def test_times_are_read_as_mechanical_turk_and_iso_8601_write_them(written, utc):
    from datetime import UTC

    assert cells.moment("AcceptTime", written).astimezone(UTC).isoformat() == utc


@pytest.mark.parametrize(
    "written",
    ["yesterday", "Mon Nov 31 10:15:00 PST 2020", "Mon Nov 16 10:15:00 XYZ 2020", "0001-01-01T00:00:00+09:00"],
)
def test_what_is_no_time_is_a_fault(written):
    with pytest.raises(BadCell, match="This is no time"):
        cells.moment("AcceptTime", written)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("mental_disability", "mental_dis"),
        ("physical_disability", "physical_dis"),
        ("Folks with mental disabilities", "mental_dis"),
        ("native american/indigenous folks", "native_american"),
        ("Middle Eastern", "middle_east"),
        ("young people", "young"),
        ("...", ""),
    ],
)
def test_groups_are_known_by_what_published_files_call_them(name, slug):
    assert slug_of(name) == slug


@given(st.text())
def test_the_beginning_of_any_value_can_be_stored(value):
    shown = beginning(value)
    assert len(shown) <= 80
    assert "\0" not in shown
    shown.encode()
