"""Tables 1 and 2: known counts, lengths and shares from statements that a test writes; no profanity among them."""

import statistics
import tracemalloc

import pytest

from analysis import profanity
from analysis.reports import dataset, paper, paper_tables
from analysis.reports.catalogue import REPORTS
from analysis.reports.filters import filters_from
from analysis.reports.frame import Estimate, Kind, Undefined, pack, unpack
from generation.models import Generation, Label, Method, TargetGroup
from tests.factories import make_generation, make_group, make_run, make_searched_generation

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _placeholder_words(monkeypatch):
    terms = profanity.profanity_list(["fiddle", "rotten egg", "hoe"], source="a test's list 1.0")
    monkeypatch.setattr(dataset, "english", lambda: terms)


def made(**asked):
    return dataset.make(filters_from(asked, REPORTS["dataset"]))


def section(report, key):
    return next(section for section in report.sections if section.key == key)


def row(report, key, **cells):
    rows = [row for row in section(report, key).table.rows if cells.items() <= row.items()]
    assert len(rows) == 1, cells
    return rows[0]


def test_without_statements_it_says_so():
    [only] = made().sections
    assert only.missing.startswith("There are no statements.")
    assert only.table is None


def test_count_length_and_implicit_share_by_group_and_label():
    black, women = make_group("black"), make_group("women")
    for text in ("a heron", "two herons", "a FIDDLE, they said"):
        make_generation(text, group=women, label=Label.BENIGN)
    make_generation("rotten, egg", group=women, label=Label.TOXIC)
    make_generation("a crane", group=black, label=Label.TOXIC)

    report = made()
    benign = row(report, "groups", group=women.name, label="benign")
    lengths = [7, 10, 19]
    assert benign["count"] == 3
    assert benign["mean"].value == pytest.approx(12.0)
    assert benign["sd"] == pytest.approx(statistics.stdev(lengths))
    # Student's interval with 2 degrees of freedom: 4.3027 standard errors.
    assert benign["mean"].high - 12 == pytest.approx(4.302653 * statistics.stdev(lengths) / 3**0.5)
    assert benign["implicit"].value == pytest.approx(2 / 3)
    assert benign["paper_count"] == 11_094
    assert row(report, "groups", group=women.name, label="toxic")["implicit"].value == 0.0
    assert row(report, "groups", group=black.name, label="toxic")["implicit"].value == 1.0
    total = row(report, "groups", group="Total")
    assert total["count"] == 5
    assert total["implicit"].value == pytest.approx(3 / 5)
    assert total["paper_count"] == 274_186
    assert section(report, "groups").n == {"statements": 5}
    assert "no group has 30 statements of a label" in section(report, "groups").says


def test_where_words_of_the_list_are_most_frequent_is_told_of_cells_with_enough_statements():
    for number in range(30):
        make_generation(f"a fiddle {number}" if number < 3 else f"heron {number}", group=make_group("women"))
    make_generation("fiddle", group=make_group("black"))
    assert section(made(), "groups").says.startswith(
        "Words of the profanity list are most frequent in the benign ones about the group Women, of which 90.0 % are "
        "implicit (n = 30; "
    )


@pytest.mark.parametrize(
    ("asked", "groups", "methods"),
    [
        ({}, {"women", "Total"}, {"top-k", "ALICE", "Total"}),
        ({"method": ["topk", "alice"]}, {"women", "Total"}, {"top-k", "ALICE", "Total"}),
        ({"group": ["women"]}, {"women"}, set()),
        ({"label": ["benign"]}, {"women"}, set()),
        ({"method": ["alice"]}, set(), {"ALICE"}),
        ({"imported": "no", "group": ["women"]}, set(), set()),
    ],
)
def test_the_papers_figures_stand_only_beside_all_that_they_are_of(asked, groups, methods):
    women = make_group("women")
    make_searched_generation(text="a stork", group=women)
    make_generation("a heron", method=Method.TOPK, group=women)
    report = made(**asked)
    names = {"groups": groups - {"women"} | ({women.name} if "women" in groups else set()), "methods": methods}
    for key, expected in names.items():
        table = section(report, key).table
        assert {row.get("group", row.get("method")) for row in table.rows if "paper_count" in row} == expected
        assert ("paper_count" in [column.key for column in table.columns]) == bool(expected)
    is_whole = "Total" in groups
    assert (len(section(report, "whole").table.rows) == 2) == is_whole
    assert (paper.NOT_BESIDE in section(report, "groups").notes) != is_whole


def test_beside_rows_with_what_people_wrote_table_2_does_not_stand():
    make_generation("a heron", method=Method.TOPK)
    make_generation("a stork", method=Method.WRITTEN)
    make_generation("a crane", method=Method.TOPK, label=Label.TOXIC)
    report = made()
    assert "paper_count" not in row(report, "groups", label="benign")
    assert "paper_count" not in row(report, "groups", group="Total")
    assert row(report, "groups", label="toxic")["paper_count"] == 10_535
    assert any(note.startswith("People wrote 1 of these statements.") for note in section(report, "groups").notes)
    without = made(method=["topk", "alice"])
    assert row(without, "groups", label="benign")["paper_count"] == 11_094


def test_a_cell_without_statements_and_one_with_a_single_one_say_what_is_missing():
    make_generation("a heron", label=Label.TOXIC)
    report = made()
    empty = row(report, "groups", label="benign")
    assert empty["count"] == 0
    assert {type(empty[key]) for key in ("mean", "sd", "implicit")} == {Undefined}
    single = row(report, "groups", label="toxic")
    assert single["mean"] == Estimate(7.0)
    assert single["sd"] == Undefined("It takes 2 statements to tell; there is 1.")


def test_identical_lengths_have_a_spread_of_0_and_no_interval():
    for text in ("one", "two", "six"):
        make_generation(text)
    benign = row(made(), "groups", label="benign")
    assert (benign["mean"], benign["sd"]) == (Estimate(3.0), 0.0)


def test_by_method_with_the_papers_figures_beside():
    make_generation("a heron", method=Method.TOPK)
    make_generation("a crane", method=Method.TOPK)
    make_searched_generation(text="a FIDDLE")
    make_generation("a stork", method=Method.WRITTEN)
    report = made()
    assert row(report, "methods", method="top-k")["count"] == 2
    alice = row(report, "methods", method="ALICE")
    assert alice["implicit"].value == 0.0
    assert (alice["paper_count"], alice["paper_mean"], alice["paper_sd"]) == (14_174, 102.17, 33.09)
    written = row(report, "methods", method="written by a person")
    assert written["count"] == 1
    assert "paper_count" not in written
    assert row(report, "methods", method="Total")["count"] == 4


def test_the_row_of_table_1():
    for number in range(3):
        make_generation(f"heron {number}", label=Label.TOXIC)
    make_generation("a fiddle", method=Method.WRITTEN)
    report = made()
    ours = row(report, "whole", dataset="Here")
    assert ours["size"] == 4
    assert [ours[key].value for key in ("hate", "implicit", "machine")] == [0.75, 0.75, 0.75]
    published = row(report, "whole", size=274_186)
    assert [published[key] for key in ("hate", "implicit", "machine")] == [0.501, 0.982, 1.0]


def test_texts_without_words_are_implicit_and_counted_apart():
    for text in ("…", "123", "🦆", "a heron"):
        make_generation(text)
    report = made()
    assert row(report, "whole", dataset="Here")["implicit"].value == 1.0
    assert any(note.startswith("3 statements have no letter") for note in section(report, "groups").notes)


def test_the_notes_name_the_list_and_what_was_left_out_of_it():
    make_generation("a heron")
    notes = " ".join(section(made(), "groups").notes)
    assert "any of the 2 terms of the English list of a test's list 1.0" in notes
    assert "everyday meaning that they have, too: hoe." in notes
    assert "no letter" not in notes


def test_filters_leave_statements_out():
    run = make_run(count=1)
    make_generation("a heron", label=Label.TOXIC)
    make_generation("a crane", group=make_group("black"))
    make_searched_generation(text="a stork")
    assert row(made(group=["black"]), "groups", group="Total")["count"] == 1
    assert row(made(label=["toxic"]), "groups", group="Total")["count"] == 1
    assert row(made(method=["alice"]), "methods", method="Total")["count"] == 1
    assert row(made(imported="no"), "methods", method="Total")["count"] == 1
    assert made(run=str(run.pk)).sections[0].missing


def test_groups_of_the_same_name_are_told_apart():
    for slug in ("rowers", "skippers"):
        make_generation(slug, group=make_group(slug, name="Sailors"))
    groups = {row["group"] for row in section(made(), "groups").table.rows}
    assert groups == {"Sailors (rowers)", "Sailors (skippers)", "Total"}


def test_it_can_be_stored():
    make_generation("a heron")
    report = made()
    assert unpack(pack(report)) == report
    assert {column.kind for column in report.sections[0].table.columns} == {
        Kind.TEXT, Kind.COUNT, Kind.NUMBER, Kind.SHARE,
    }  # fmt: skip


def test_texts_go_by_in_one_query_and_are_not_kept(django_assert_num_queries, monkeypatch):
    """Five times as many statements take one query as well, and by far not five times the memory."""
    monkeypatch.setattr(dataset, "ROWS_AT_ONCE", 300)
    group = make_group()
    terms = dataset.english()

    def peak(number):
        Generation.objects.bulk_create(
            Generation(text=f"{'heron ' * 100}{number} {place}", group=group, label="benign", method="topk")
            for place in range(number)
        )
        tracemalloc.start()
        with django_assert_num_queries(1):
            dataset.tally({}, terms)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    few = peak(dataset.ROWS_AT_ONCE)
    assert peak(4 * dataset.ROWS_AT_ONCE) < 3 * few


def test_the_papers_tables_add_up_and_are_about_our_groups():
    assert sum(cell.count for cell in paper_tables.BY_GROUP.values()) == paper_tables.ALL.count
    assert sum(cell.count for cell in paper_tables.BY_METHOD.values()) == paper_tables.ALL.count
    slugs = set(TargetGroup.objects.values_list("slug", flat=True))
    assert {slug for slug, _ in paper_tables.BY_GROUP} == slugs == set(paper_tables.PERPLEXITY)
    assert round(paper_tables.TOXIC_BY_COUNT, 3) == 0.499  # 136,781; table 1 has 50.1 %, which is the benign share
    implicit = sum(cell.count * cell.implicit for cell in paper_tables.BY_GROUP.values()) / paper_tables.ALL.count
    assert round(implicit, 2) == 0.98
