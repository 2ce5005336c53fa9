"""Reports as files: JSON, CSV and Markdown, and the command that writes them."""

import csv
import io
import json
import re
import shutil
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command

from analysis.reports import pictures, storing, writing
from analysis.reports.catalogue import REPORTS
from analysis.reports.frame import Column, Estimate, Kind, Report, Section, Table, Undefined, pack, unpack
from analysis.reports.showing import in_cell, shown
from tests.analysis import toy_report
from tests.analysis.toy_report import NAME
from tests.factories import make_generation, make_group

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    return toy_report.put_in_place(monkeypatch)


def told(*arguments, **options):
    out = io.StringIO()
    call_command("report", *arguments, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def test_a_csv_has_an_interval_beside_its_estimate_and_a_reason_where_there_is_none():
    make_generation("a statement, with a comma")
    rows = list(csv.DictReader(io.StringIO(told(NAME, "--format", "csv"))))
    assert rows == [
        {
            "method": "top-k",
            "n": "1",
            "share": "0.5",
            "share_low": "0.41",
            "share_high": "0.6",
            "share_undefined_because": "",
            "text": "a statement, with a comma",
        },
        {
            "method": "ALICE",
            "n": "0",
            "share": "",
            "share_low": "",
            "share_high": "",
            "share_undefined_because": toy_report.NOBODY,
            "text": "",
        },
    ]


def test_no_cell_of_a_csv_is_a_formula_to_a_spreadsheet():
    make_generation('=HYPERLINK("http://nowhere.example")')
    [row, _] = csv.DictReader(io.StringIO(told(NAME, "--format", "csv")))
    assert row["text"] == '\'=HYPERLINK("http://nowhere.example")'
    table = Table((Column("x", "x", Kind.NUMBER),), ({"x": -1.5}, {"x": Undefined("@nobody")}))
    assert writing.table_as_csv(table) == "x,x_undefined_because\n-1.5,\n,'@nobody\n"


def test_several_tables_stand_below_each_other_and_one_alone_if_it_is_asked_for():
    def section(key):
        return Section(key, key, ".", table=Table((Column("n", "n", Kind.COUNT),), ({"n": 1},)))

    report = Report("toy", "A toy", (section("one"), section("two")))
    assert writing.as_csv(report) == "one\nn\n1\n\ntwo\nn\n1\n"
    assert writing.as_csv(report, "two") == "n\n1\n"
    with pytest.raises(writing.UnknownSection, match=r"has no table 'three'. It has: one, two."):
        writing.as_csv(report, "three")


def test_json_has_the_whole_report_and_what_it_is_of():
    make_generation(group=make_group("asian"))
    found = json.loads(told(NAME, "--group", "asian"))
    assert found["filters"] == {"group": ["asian"]}
    assert datetime.fromisoformat(found["made_at"])
    assert unpack(found).sections[0].n == {"statements": 1}
    rows = found["sections"][0]["table"]["rows"]
    assert rows[0]["share"] == {"value": 0.5, "low": 0.41, "high": 0.6}
    assert rows[1]["share"] == {"reason": toy_report.NOBODY}


def test_markdown_is_to_be_read():
    make_generation("a | b *c* <d>", group=make_group("a_group_"))
    text = told(NAME, "--format", "markdown", "--group", "a_group_")
    assert text.startswith("# A toy\n\nWorked out on 20")
    assert "UTC, filtered by group: a\\_group\\_." in text
    assert "n = 1 statement; in the paper: Table 2." in text
    assert "| top-k | 1 | 50.0 % (41.0 to 60.0) | a \\| b \\*c\\* &lt;d> |" in text
    assert "| ALICE | 0 | – [a] |  |" in text
    assert f"- [a] {toy_report.NOBODY}" in text
    assert "There is no annotation yet." in text


@pytest.mark.parametrize(
    ("cell", "kind", "words"),
    [
        (Estimate(-0.25, -0.5, 0.001), Kind.NUMBER, "−0.25 (−0.50 to 0.00)"),
        (1234567, Kind.COUNT, "1,234,567"),
        (Estimate(0.784, 0.77, 0.8), Kind.SHARE, "78.40 % (77.00 to 80.00)"),
        (Estimate(0.09, -0.012, 0.168), Kind.POINTS, "9.00 points (−1.20 to 16.80)"),
        (-0.027, Kind.POINTS, "−2.70 points"),
        (-2.5, Kind.MONEY, "−$2.50"),
        (1234.5, Kind.MONEY, "$1,234.50"),
        (0.04, Kind.P_VALUE, "0.040"),
        (0.0, Kind.P_VALUE, "< 0.001"),
        (0.4, Kind.DURATION, "less than a second"),
        (None, Kind.NUMBER, ""),
        (Undefined("Nobody."), Kind.NUMBER, "– (Nobody.)"),
        ("word", Kind.TEXT, "word"),
    ],
)
def test_a_cell_in_words(cell, kind, words):
    assert in_cell(cell, Column("x", "x", kind)) == words


def test_equal_reasons_are_said_once_and_long_tables_cut():
    rows = tuple({"x": Undefined(reason)} for reason in ("one", "two", "one"))
    table = shown(Table((Column("x", "x", Kind.NUMBER),), rows), most=2)
    assert table.reasons == {"a": "one", "b": "two"}
    assert [row[0].note for row in table.rows] == ["a", "b"]
    assert table.left_out == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nope"], "There is no report 'nope'. Choose one of: toy. Or give “all”."),
        ([NAME, "--group", "nobody"], "There is no group “nobody”. Give the slug of one that there is."),
        (
            [NAME, "--study", "1"],
            "The report toy has no filter “study”. It takes: group, label, method, run, imported.",
        ),
        ([NAME, "--format", "csv", "--section", "x"], "The report toy has no table 'x'. It has: by-method."),
        ([NAME, "--section", "by-method"], "--section chooses a table of --format csv; the others have all."),
        ([NAME, "--out", "x"], "--out is the folder of “all”; of one report give --output FILE."),
        (["all"], "Say which folder to write: report all --out DIR."),
        (["all", "--out", "x", "--format", "csv"], "--format is for one report; “all” writes every format."),
    ],
)
def test_what_is_asked_wrongly_is_said(arguments, sentence):
    with pytest.raises(CommandError) as error:
        told(*arguments)
    assert (str(error.value), error.value.returncode) == (sentence, 2)


def test_a_report_goes_to_a_file_and_what_cannot_be_written_is_said(tmp_path):
    file = tmp_path / "toy.csv"
    assert told(NAME, "--format", "csv", "--output", str(file)) == f"A toy written to {file}.\n"
    assert file.read_text().startswith("method,n,share,share_low")
    nowhere = tmp_path / "nowhere" / "toy.csv"
    with pytest.raises(CommandError, match=re.escape(f"{nowhere} cannot be written: No such file or directory.")):
        told(NAME, "--output", str(nowhere))


class TestFolder:
    @pytest.fixture(autouse=True)
    def no_browser(self, monkeypatch):
        monkeypatch.setattr(pictures, "BROWSERS", ())

    def test_it_has_every_table_and_figure_and_lists_them(self, tmp_path):
        make_generation()
        out = tmp_path / "reports"
        said = told("all", "--out", str(out))
        files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
        assert files == {
            ".humanval-reports.json",
            "README.md",
            "index.html",
            "plotly.min.js",
            "toy/by-method.csv",
            "toy/by-method.html",
            "toy/toy.json",
            "toy/toy.md",
        }
        assert "no Chrome or Chromium was found" in said
        readme = (out / "README.md").read_text()
        assert "- **By method** (n = 1 statement): There are 1 statements. [CSV](toy/by-method.csv)" in readme
        assert "no Chrome or Chromium was found" in readme
        index = (out / "index.html").read_text()
        assert set(re.findall(r'href="([^"]+)"', index)) == {f"toy/{name}" for name in (
            "toy.json", "toy.md", "by-method.csv", "by-method.html")}  # fmt: skip
        figure = (out / "toy" / "by-method.html").read_text()
        assert 'src="../plotly.min.js"' in figure
        assert "http" not in figure

    def test_a_folder_of_reports_is_replaced(self, tmp_path):
        out = tmp_path / "reports"
        told("all", "--out", str(out))
        make_generation()
        told("all", "--out", str(out))
        assert "(n = 1 statement)" in (out / "README.md").read_text()
        assert [path.name for path in tmp_path.iterdir()] == ["reports"]

    @pytest.mark.parametrize("name", ["thesis.tex", "toy/notes.txt", "empty/"])
    def test_a_folder_that_holds_anything_else_is_left_as_it_is(self, tmp_path, name):
        out = tmp_path / "reports"
        told("all", "--out", str(out))
        foreign = out / name
        if name.endswith("/"):
            foreign.mkdir()
        else:
            foreign.write_text("years of work")
        before = sorted(out.rglob("*"))
        with pytest.raises(CommandError, match=f"holds other files, such as {name.rstrip('/')}. Give a new name"):
            told("all", "--out", str(out))
        assert sorted(out.rglob("*")) == before
        assert [path.name for path in tmp_path.iterdir()] == ["reports"]

    @pytest.mark.parametrize("mark", ["{}", "[]", "words", '{"files": 1}', '{"files": null}'])
    @pytest.mark.parametrize("name", ["reports.json", ".humanval-reports.json"])
    def test_a_list_of_something_else_makes_no_folder_of_reports(self, tmp_path, name, mark):
        (tmp_path / name).write_text(mark)
        (tmp_path / "chapter.txt").write_text("years of work")
        with pytest.raises(CommandError, match="holds other files"):
            told("all", "--out", str(tmp_path))
        assert len([*tmp_path.iterdir()]) == 2

    def test_what_appears_in_the_folder_meanwhile_is_kept(self, tmp_path, monkeypatch):
        out = tmp_path / "reports"
        told("all", "--out", str(out))
        make = toy_report.make

        def slow(filters):
            (out / "chapter.txt").write_text("years of work")
            return make(filters)

        monkeypatch.setattr(toy_report, "make", slow)
        with pytest.raises(CommandError, match=r"holds other files, such as chapter.txt"):
            told("all", "--out", str(out))
        assert (out / "chapter.txt").exists()
        assert [path.name for path in tmp_path.iterdir()] == ["reports"]

    @pytest.mark.parametrize(
        ("here", "given", "sentence"),
        [
            ("", ".", "cannot be replaced: you are in it"),
            ("reports", "..", "cannot be replaced: you are in it"),
            ("", "/proc", "cannot be replaced: something is mounted there"),
            ("", "link", "is a link. Give the folder that it leads to"),
        ],
    )
    def test_a_place_that_cannot_be_replaced_is_refused_before_anything_is_worked_out(
        self, tmp_path, monkeypatch, here, given, sentence
    ):
        (tmp_path / "reports").mkdir()
        (tmp_path / "link").symlink_to("reports")
        before = sorted(tmp_path.parent.rglob("*"))
        monkeypatch.chdir(tmp_path / here)
        monkeypatch.setattr(toy_report, "make", lambda filters: pytest.fail("It was worked out."))
        with pytest.raises(CommandError, match=sentence):
            told("all", "--out", given)
        assert sorted(tmp_path.parent.rglob("*")) == before

    def test_a_folder_under_a_link_is_written(self, tmp_path):
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        told("all", "--out", str(tmp_path / "link" / "reports"))
        assert (tmp_path / "real" / "reports" / "index.html").is_file()

    def test_a_report_that_fails_keeps_others_from_a_new_folder_only_if_all_fail(self, tmp_path, monkeypatch):
        def make(filters):
            raise ValueError("a row has no method")

        broken = toy_report.kind()
        monkeypatch.setitem(REPORTS, "broken", type(broken)(**vars(broken) | {"name": "broken", "module": "nowhere"}))
        out = tmp_path / "reports"
        with pytest.raises(CommandError) as error:
            told("all", "--out", str(out))
        assert error.value.returncode == 1
        assert str(error.value).startswith("1 of 2 reports could not be worked out. broken: It could not be worked out")
        assert str(error.value).endswith("The others are written.")
        assert "Not written: It could not" in (out / "README.md").read_text()
        assert (out / "toy" / "toy.json").is_file()
        monkeypatch.setattr(toy_report, "make", make)
        with pytest.raises(CommandError, match="2 of 2 reports could not be worked out"):
            told("all", "--out", str(tmp_path / "new"))
        assert [path.name for path in tmp_path.iterdir()] == ["reports"]

    def test_a_good_folder_stays_if_a_report_fails(self, tmp_path, monkeypatch):
        def make(filters):
            raise ValueError("a row has no method")

        out = tmp_path / "reports"
        told("all", "--out", str(out))
        before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
        monkeypatch.setattr(toy_report, "make", make)
        with pytest.raises(CommandError, match="Nothing was written; give a new folder to have the others"):
            told("all", "--out", str(out))
        assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
        assert [path.name for path in tmp_path.iterdir()] == ["reports"]

    def test_titles_hold_no_markup_of_the_list(self, tmp_path, monkeypatch):
        section = Section("a", "A *title* [x](y)", "It says <b>.", table=Table((Column("n", "n"),), ()))
        monkeypatch.setattr(toy_report, "make", lambda filters: Report(NAME, "A toy", (section,)))
        told("all", "--out", str(tmp_path / "reports"))
        readme = (tmp_path / "reports" / "README.md").read_text()
        assert "- **A \\*title\\* \\[x\\](y)**: It says &lt;b>. [CSV](toy/a.csv)" in readme

    def test_there_has_to_be_a_place(self, tmp_path):
        file = tmp_path / "file"
        file.write_text("words")
        with pytest.raises(CommandError, match="is a file"):
            told("all", "--out", str(file))
        with pytest.raises(CommandError, match="There is no folder"):
            told("all", "--out", str(tmp_path / "a" / "b"))

    def test_each_report_takes_the_filters_that_it_has_and_a_wrong_value_is_refused(self, tmp_path):
        make_generation(group=make_group("women"))
        told("all", "--out", str(tmp_path / "r"), "--group", "asian", "--study", "1")
        assert json.loads((tmp_path / "r" / "toy" / "toy.json").read_text())["filters"] == {"group": ["asian"]}
        with pytest.raises(CommandError, match="There is no group “nobody”"):
            told("all", "--out", str(tmp_path / "s"), "--group", "nobody")
        assert not (tmp_path / "s").exists()


@pytest.mark.skipif(not any(map(shutil.which, pictures.BROWSERS)), reason="no Chrome or Chromium was found")
def test_figures_are_drawn_as_pictures(tmp_path):
    make_generation()
    told("all", "--out", str(tmp_path / "reports"))
    drawn = tmp_path / "reports" / "toy"
    assert (drawn / "by-method.png").read_bytes().startswith(b"\x89PNG")
    svg = (drawn / "by-method.svg").read_text()
    assert "By method" in svg
    assert "top-k" in svg or "Share" in svg


def test_what_is_written_is_what_a_page_keeps():
    make_generation()
    packed = pack(storing.make_now(NAME, {}))
    text = writing.as_json(packed, filters={}, made_at=NOON)
    assert json.loads(text) == {"made_at": "2026-03-02T12:00:00+00:00", "filters": {}, **packed}
