"""Table 5 from stored perplexities whose means, medians and dropped ones are known by hand."""

import pytest

from analysis.comparison import difference_of_means
from analysis.reports import perplexity
from analysis.reports.catalogue import REPORTS
from analysis.reports.filters import filters_from
from analysis.reports.frame import Estimate, Undefined, pack, unpack
from analysis.reports.paper import NOT_BESIDE
from generation.models import Generation, Method, Perplexity, TextReader
from tests.factories import make_generation, make_group

pytestmark = pytest.mark.django_db


def make_reader(name="toy", **fields):
    return TextReader.objects.create(**{"kind": "language_model", "name": name, "revision": "1"} | fields)


def store(reader, method, values, *, group=None):
    """A statement of the method for each value."""
    for value in values:
        statement = make_generation(method=method, group=group or make_group("women"))
        Perplexity.objects.create(generation=statement, reader=reader, value=value, tokens=0 if value is None else 5)


def made(**asked):
    return perplexity.make(filters_from(asked, REPORTS["perplexity"]))


def row(section, **cells):
    [found] = [row for row in section.table.rows if cells.items() <= row.items()]
    return found


def test_without_a_reading_it_says_how_to_start_one():
    make_reader(kind="encoder")
    make_reader()
    [only] = made().sections
    assert "Start a reading of the kind language model" in only.missing
    assert "manage.py read_statements language_model" in only.missing


def test_means_are_over_those_up_to_500_and_what_is_left_out_is_counted():
    store(make_reader(), Method.TOPK, [10, 20, 500, 500.5, 9000, None])
    section = made().sections[0]
    women = row(section, group="Women", method="top-k")
    assert women["mean"].value == pytest.approx(530 / 3)
    assert women["median"] == 500
    assert (women["kept"], women["dropped"], women["undefined"]) == (3, 2, 1)
    assert women["dropped_share"].value == pytest.approx(2 / 5)
    assert women["paper"] == 131.52
    assert section.n == {"statements": 6, "in the means": 3}
    assert "read 6 statements; 2 with a perplexity above 500 are left out" in section.says


def test_groups_and_the_total_stand_beside_the_papers():
    reader = make_reader()
    store(reader, Method.ALICE, [10, 30])
    store(reader, Method.ALICE, [40, 60], group=make_group("black"))
    store(reader, Method.TOPK, [100, 140], group=make_group("black"))
    section = made().sections[0]
    assert row(section, group="Women", method="ALICE")["mean"].value == 20
    assert row(section, group="Black", method="ALICE")["mean"].value == 50
    total = row(section, group="Total", method="ALICE")
    assert (total["mean"].value, total["kept"], total["paper"]) == (35, 4, 23.54)
    assert row(section, group="Total", method="top-k")["paper"] == 105.31
    nothing = row(section, group="Women", method="top-k")
    assert nothing["mean"] == Undefined("There are no statements with a perplexity of at most 500.")
    assert isinstance(nothing["median"], Undefined)
    assert isinstance(nothing["dropped_share"], Undefined)


def test_a_group_that_is_called_total_is_not_the_total():
    reader = make_reader()
    store(reader, Method.ALICE, [10, 30])
    store(reader, Method.ALICE, [50, 70, 90], group=make_group("total", name="Total"))
    kept = [row["kept"] for row in made().sections[0].table.rows if row["method"] == "ALICE"]
    assert kept == [2, 3, 5]
    assert len(made().sections[1].table.rows) == 3


def test_a_filter_takes_away_the_papers_figures_of_what_it_cuts():
    reader = make_reader()
    store(reader, Method.ALICE, [10, 30])
    by_group, difference = made(group=["women"]).sections
    assert row(by_group, group="Women", method="ALICE")["paper"] == 21.44
    assert "paper" not in row(by_group, group="Total", method="ALICE")
    assert row(difference, group="Women")["paper_alice"] == 21.44
    for section in made(label=["benign"]).sections:
        assert not any(column.key.startswith("paper") for column in section.table.columns)
        assert NOT_BESIDE in section.notes
    assert row(made(method=["alice", "topk"]).sections[0], group="Total", method="ALICE")["paper"] == 23.54


def test_statements_that_people_wrote_have_rows_of_their_own():
    reader = make_reader()
    store(reader, Method.ALICE, [10])
    store(reader, Method.WRITTEN, [70])
    written = row(made().sections[0], group="Total", method="written by a person")
    assert written["mean"] == Estimate(70.0)
    assert "paper" not in written


def test_alice_is_compared_with_topk_by_a_named_test():
    reader = make_reader()
    alice, topk = [10, 12, 14, 16, 18, 501], [100, 120, 140, 160, 180, 200]
    store(reader, Method.ALICE, alice)
    store(reader, Method.TOPK, topk)
    section = made().sections[1]
    expected = difference_of_means(alice[:5], topk)
    women = row(section, group="Women")
    assert women["difference"] == Estimate(expected.value, expected.low, expected.high)
    assert women["difference"].value == 14 - 150
    assert (women["p"], women["test"]) == (expected.p, "permutation test")
    assert women["p_holm"] == women["p"]  # of one group
    assert "p_holm" not in row(section, group="Total")
    assert any(note.startswith("Permutation test: ") for note in section.notes)
    assert "136.0 lower" in section.says
    assert section.n == {"ALICE": 5, "top-k": 6}


def test_one_method_alone_cannot_be_compared_and_says_why():
    store(make_reader(), Method.ALICE, [10, 20])
    section = made().sections[1]
    assert isinstance(row(section, group="Total")["difference"], Undefined)
    assert section.says.startswith("The two methods cannot be compared over all groups. ")


@pytest.mark.parametrize("values", [[None, None], [9000, 600]])
def test_where_no_mean_is_left_the_counts_still_stand(values):
    store(make_reader(), Method.ALICE, values)
    report = made()
    total = row(report.sections[0], group="Total", method="ALICE")
    assert isinstance(total["mean"], Undefined)
    assert total["dropped"] + total["undefined"] == 2
    assert unpack(pack(report)) == report


def test_each_model_has_sections_of_its_own_the_newest_first():
    old, new = make_reader("old"), make_reader("new")
    store(old, Method.TOPK, [10, 20])
    store(new, Method.TOPK, [30])
    sections = made().sections
    assert [section.key for section in sections] == [
        f"reader-{new.pk}",
        f"reader-{new.pk}-difference",
        f"reader-{old.pk}",
        f"reader-{old.pk}-difference",
    ]
    assert row(sections[0], group="Total", method="top-k")["mean"] == Estimate(30.0)
    assert sections[2].n["statements"] == 2
    assert "The paper's is GPT-2" in sections[0].notes[0]


def test_filters_leave_statements_out():
    reader = make_reader()
    store(reader, Method.TOPK, [10, 20])
    store(reader, Method.ALICE, [30], group=make_group("black"))
    assert made(method=["alice"]).sections[0].n["statements"] == 1
    assert made(group=["women"]).sections[0].n["statements"] == 2
    Generation.objects.filter(group__slug="women").update(label="toxic")
    assert made(label=["benign"]).sections[0].n["statements"] == 1
    assert made(imported="no").sections[0].missing


def test_it_takes_as_many_queries_for_many_as_for_few(django_assert_max_num_queries):
    reader = make_reader()
    store(reader, Method.TOPK, [10] * 30)
    with django_assert_max_num_queries(3):  # the readers, their perplexities, the groups
        made()
