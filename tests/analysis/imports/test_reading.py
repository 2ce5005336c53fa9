"""Files are opened as tables by what is in them; what is wrong is told with its line."""

import codecs
import csv
import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.imports import reading
from analysis.imports.faults import Refused
from analysis.imports.reading import LONGEST_CELL, LONGEST_LINE, lines_of, table_in
from analysis.imports.work import Options, Work


def read(path, *, encoding="", columns=None):
    """The rows of a file, each with its line, and the faults."""
    work = Work(options=Options(), record=None)
    with table_in(path, encoding=encoding) as table:
        if columns:
            table.need(columns)
        rows = [(line, list(cells)) for line, cells in table.read(work)]
    return rows, [(fault.line, fault.message) for fault in work.faults]


def file(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path, **options):
    with pytest.raises(Refused) as refused:
        read(path, **options)
    return str(refused.value)


# --- Encodings


def test_utf_8_is_read_with_and_without_its_mark(tmp_path):
    for mark in (b"", codecs.BOM_UTF8):
        rows, _ = read(file(tmp_path, mark + "text\ncafé\n".encode()), columns=["text"])
        assert rows == [(2, ["café"])]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_utf_16_and_utf_32_are_known_by_their_mark(tmp_path, encoding):
    assert read(file(tmp_path, "\ufefftext\ncafé\n".encode(encoding)), columns=["text"])[0] == [(2, ["café"])]


def test_utf_16_without_its_mark_is_refused_with_what_to_say(tmp_path):
    assert refusal(file(tmp_path, "text\ncafé\n".encode("utf-16-le"))) == (
        "table.csv looks like UTF-16 without a byte order mark. Save it as UTF-8, or give “Encoding: utf-16-le” "
        "(on the command line --encoding utf-16-le)."
    )


def test_bytes_that_are_not_utf_8_are_refused_with_their_place(tmp_path):
    content = b"text\r\n" + b"a\r\n" * 3 + "café\n".encode("cp1252")
    assert refusal(file(tmp_path, content)) == (
        "table.csv is not UTF-8: byte 19, in line 5, is 0xE9. Save the file as UTF-8, or say in which encoding it is: "
        "for a file from Windows or an old spreadsheet it is often “Encoding: cp1252” (on the command line --encoding "
        "cp1252)."
    )


def test_the_place_of_a_bad_byte_is_found_in_a_large_file(tmp_path):
    content = b"text\n" + b"0123456789abcde\n" * 200_000 + b"\xff\n"
    assert "byte 3,200,006, in line 200,002, is 0xFF" in refusal(file(tmp_path, content))


def test_a_file_that_ends_within_a_character_is_refused(tmp_path):
    assert "ends within a character" in refusal(file(tmp_path, b"text\ncaf\xc3"))


def test_an_encoding_that_is_named_is_used(tmp_path):
    content = "text\ncafé – “so”\n".encode("cp1252")
    assert read(file(tmp_path, content), encoding="cp1252")[0] == [(2, ["café – “so”"])]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_an_encoding_with_a_mark_needs_it(tmp_path, encoding):
    path = file(tmp_path, "text\ncafé\n".encode(f"{encoding}-le"))
    assert refusal(path, encoding=encoding) == (
        f"table.csv has no byte order mark, which {encoding} needs. Give “Encoding: {encoding}-le” (on the command "
        f"line --encoding {encoding}-le), or {encoding}-be for a file of a machine that writes the larger part of a "
        "number first."
    )
    assert read(path, encoding=f"{encoding}-le")[0] == [(2, ["café"])]
    assert read(file(tmp_path, "text\ncafé\n".encode(encoding)), encoding=encoding)[0] == [(2, ["café"])]


@pytest.mark.parametrize("name", ["cp99", "rot13", "hex", "a\0b", "undefined", "idna", "punycode"])
def test_an_encoding_that_is_none_is_refused(tmp_path, name):
    assert "Say for example utf-8, cp1252" in refusal(file(tmp_path, "text\na\n"), encoding=name)


# --- Line ends and lines


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_is_read(tmp_path, ends):
    assert read(file(tmp_path, ends.join(["text", "a", "b", ""])))[0] == [(2, ["a"]), (3, ["b"])]


def test_line_ends_may_be_mixed(tmp_path):
    assert read(file(tmp_path, b"text\r\na\rb\nc"))[0] == [(2, ["a"]), (3, ["b"]), (4, ["c"])]


def test_a_row_is_told_by_its_first_line_also_after_cells_of_several_lines(tmp_path):
    content = 'text,group\n"one\ntwo\r\nthree",women\n\nfour,women\nfive\n'
    rows, faults = read(file(tmp_path, content))
    assert rows == [(2, ["one\ntwo\r\nthree", "women"]), (6, ["four", "women"])]
    assert faults == [(7, "The row has 1 cells, the header 2. Look for commas and quotes.")]


@given(
    st.lists(
        st.lists(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
            min_size=2,
            max_size=2,
        ),
        max_size=5,
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_whatever_python_writes_is_read_again(tmp_path_factory, rows, ends):
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator=ends, quoting=csv.QUOTE_ALL)
    writer.writerows([["a", "b"], *rows])
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    path.write_bytes(written.getvalue().encode())
    assert [cells for _, cells in read(path)[0]] == rows


# --- What is no CSV


def test_a_quote_that_is_never_closed_is_refused_with_its_line(tmp_path):
    message = refusal(file(tmp_path, 'text,group\na,women\n"b,women\nc,women\n'))
    assert message == (
        "table.csv is no CSV from the row in line 3 on: a quote that opens in the row is never closed. "
        "Mend it; nothing was stored."
    )


def test_text_after_a_closing_quote_is_refused_with_its_line(tmp_path):
    message = refusal(file(tmp_path, 'text,group\n"b"c,women\n'))
    assert "line 2 on: a quoted cell goes on after its quote" in message


def test_a_huge_cell_is_refused(tmp_path):
    message = refusal(file(tmp_path, "text\n" + "x" * (LONGEST_CELL + 1) + "\n"))
    assert "line 2 on: a cell has more than 4,000,000 characters" in message


class Endless:
    """A file without line ends, which counts the characters that are read of it."""

    def __init__(self):
        self.read = 0

    def readline(self, most):
        self.read += most
        return "x" * most


def test_a_file_without_line_ends_is_not_read_whole():
    endless = Endless()
    with pytest.raises(Refused, match=r"Line 1 of table\.csv has more than 16,000,000 characters"):
        next(lines_of(endless, "table.csv"))
    assert endless.read == LONGEST_LINE + 1


@pytest.mark.parametrize("name", ["table.csv", "table.jsonl"])
def test_a_line_that_has_no_end_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(reading, "LONGEST_LINE", 1000)
    start = {"table.csv": "text\n", "table.jsonl": '{"text": "a"}\n'}[name]
    assert "Line 1 of table" in refusal(file(tmp_path, "x" * 1001, name))
    assert "has more than 1,000 characters" in refusal(file(tmp_path, start + "x" * 1001, name))


def test_a_long_cell_is_read(tmp_path):
    assert len(read(file(tmp_path, "text\n" + "x" * 200_000 + "\n"))[0][0][1][0]) == 200_000


@pytest.mark.parametrize("content", [b"", b"\n \n\r\n", codecs.BOM_UTF8])
def test_an_empty_file_is_refused(tmp_path, content):
    assert refusal(file(tmp_path, content)) == "table.csv is empty."


def test_a_header_alone_has_no_rows(tmp_path):
    assert read(file(tmp_path, "text,group\n")) == ([], [])


def test_a_file_that_is_missing_or_a_folder_is_refused(tmp_path):
    assert refusal(tmp_path / "none.csv") == f"There is no file {tmp_path / 'none.csv'}."
    assert "is a folder" in refusal(tmp_path)


def test_packed_files_and_workbooks_are_refused_with_what_to_do(tmp_path):
    assert "Unpack it first" in refusal(file(tmp_path, gzip.compress(b"text\na\n"), "table.csv.gz"))
    assert "save the sheet as CSV UTF-8" in refusal(file(tmp_path, b"PK\x03\x04rest", "table.xlsx"))


# --- Columns


def test_missing_columns_are_all_named_once_with_what_the_file_has(tmp_path):
    with pytest.raises(Refused) as refused:
        read(file(tmp_path, "text,other\na,b\n"), columns=["text", "group", "label"])
    assert str(refused.value) == ("table.csv lacks the columns group and label. It has: text, other.")


def test_case_and_order_of_columns_do_not_matter(tmp_path):
    with table_in(file(tmp_path, "GROUP, Text\nwomen,a\n")) as table:
        pick = table.pick(["text", "group", "label"])
        work = Work(options=Options(), record=None)
        assert [pick(cells) for _, cells in table.read(work)] == [("a", "women", "")]


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    assert "has the column 'Text' twice" in refusal(file(tmp_path, "text,Text\na,b\n"))


@pytest.mark.parametrize(
    ("name", "content", "shown"),
    [
        ("table.csv", b"te\0xt,group\na,b\n", "te␀xt"),
        ("table.jsonl", b'{"a\\u0000b": 1}\n', "a␀b"),
        ("table.jsonl", b'{"text": "x", "a\\ud800b": 1}\n', "a?b"),
    ],
)
def test_a_column_whose_name_cannot_be_stored_is_refused(tmp_path, name, content, shown):
    assert refusal(file(tmp_path, content, name)) == (
        f"{name} has a column whose name has a character that cannot be stored: {shown}. Rename it."
    )


def test_many_columns_that_are_left_out_are_not_all_named(tmp_path):
    work = Work(options=Options(), record=None)
    with table_in(file(tmp_path, ",".join(f"c{number}" for number in range(50)) + "\n")) as table:
        table.note_extra(work, ["c0"])
    assert work.notes[0].startswith("Columns of table.csv that were left out: c1, c2, c3")
    assert work.notes[0].endswith("c39, c40 and 9 more.")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_semicolons_and_tabs_are_understood(tmp_path, delimiter):
    content = f"text{delimiter}group\na{delimiter}women\n"
    assert read(file(tmp_path, content, "table.tsv"), columns=["text", "group"])[0] == [(2, ["a", "women"])]


# --- JSON lines and Parquet


def test_json_lines_are_read_and_bad_ones_told(tmp_path):
    content = '{"text": "a", "score": 1.5}\n\n{"text": "b"}\n{"text": \n[1]\n{"text": "c", "more": 1}\n'
    rows, faults = read(file(tmp_path, content, "table.jsonl"))
    assert rows == [(1, ["a", "1.5"]), (3, ["b", ""])]
    assert [line for line, _ in faults] == [4, 5, 6]
    assert faults[0][1].startswith("This is no JSON object: Expecting value")
    assert faults[2][1] == "This is an object with keys that the first has not. All lines need the same keys."


def test_a_json_array_is_refused(tmp_path):
    assert "is one JSON array" in refusal(file(tmp_path, '[{"text": "a"}]', "table.json"))


def test_json_lines_are_known_without_their_suffix(tmp_path):
    assert read(file(tmp_path, '{"text": "a"}\n', "table.txt"))[0] == [(1, ["a"])]


def test_parquet_rows_are_told_by_their_number(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"text": ["a", None], "yes": [True, False], "many": [["x"], []], "n": [1, None]}), path)
    assert read(path)[0] == [(1, ["a", "true", "['x']", "1"]), (2, ["", "false", "[]", ""])]


@pytest.mark.parametrize(
    ("content", "sentence"), [(b"text\na\n", "does not begin with PAR1"), (b"PAR1junk", "no whole")]
)
def test_parquet_that_is_none_is_refused(tmp_path, content, sentence):
    assert sentence in refusal(file(tmp_path, content, "table.parquet"))
