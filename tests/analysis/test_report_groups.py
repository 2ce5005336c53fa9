"""The report groups: whether statements refer to the group that their prompt was about."""

from pathlib import Path

import pytest

from analysis.importing import import_file
from analysis.imports.work import Options
from analysis.models import HumanLabel
from analysis.reports import groups, paper
from analysis.reports.frame import Estimate, Undefined, pack, unpack
from generation.models import TargetGroup
from tests.analysis.test_judged import judged_statement, label
from tests.factories import make_generation, make_group

pytestmark = pytest.mark.django_db

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "toxigen"
KEYS = ["mentions", "referenced", "instead"]


@pytest.fixture(autouse=True)
def bakers_and_sailors():
    make_group("bakers", name="Bakers", words="bakers", position=1)
    make_group("sailors", name="Sailors", words="sailors", position=2)


def sections(filters=None):
    report = groups.make(filters or {})
    assert unpack(pack(report)) == report
    assert [section.key for section in report.sections] == KEYS
    return {section.key: section for section in report.sections}


def mentions(filters=None):
    return {row["group"]: row for row in sections(filters)["mentions"].table.rows}


def referring(slug, method, *answers):
    """Statements about a group, each judged by one annotator, who answered so to which_group."""
    for answer in answers:
        changes = {"which_group": answer, "other_groups": "cyclists"}
        judged_statement(changes, group=make_group(slug), method=method)


def test_the_share_that_refers_to_its_group_by_group_and_method():
    referring("sailors", "alice", "directly", "indirectly", "none_or_unclear")
    referring("sailors", "topk", "other_groups", "directly")
    referring("bakers", "alice", "directly")
    of = mentions()
    assert list(of) == ["Bakers", "Sailors", "All groups"]
    told = [(row["alice_n"], row["topk_n"]) for row in of.values()]
    assert told == [(1, 0), (3, 2), (4, 2)]
    assert of["Sailors"]["alice"].value == pytest.approx(2 / 3)
    # Wilson's interval of 1 of 2
    assert of["Sailors"]["topk"] == Estimate(0.5, pytest.approx(0.0945, abs=1e-4), pytest.approx(0.9055, abs=1e-4))
    assert of["All groups"]["alice"].value == 0.75
    assert of["Bakers"]["topk"] == Undefined("There are no judged statements of top-k about Bakers.")


def test_one_of_several_annotators_is_enough():
    judged_statement({"which_group": "none_or_unclear"}, {"which_group": "indirectly"}, method="alice")
    assert mentions()["All groups"]["alice"].value == 1


def test_methods_are_compared_with_a_named_test_and_groups_corrected():
    for slug in ("sailors", "bakers"):
        referring(slug, "alice", *["directly"] * 6)
        referring(slug, "topk", *["none_or_unclear"] * 6)
    of = mentions()
    # Fisher: 2 of comb(12, 6) = 924 tables are as extreme
    assert of["Sailors"]["test"] == "Fisher's exact test"
    assert of["Sailors"]["p"] == pytest.approx(2 / 924)
    assert of["Sailors"]["p_holm"] == of["Bakers"]["p_holm"] == pytest.approx(4 / 924)
    assert of["Sailors"]["difference"].value == 1
    everything = of["All groups"]
    assert (everything["test"], everything["alice_n"]) == ("two-proportion z test", 12)
    assert "p_holm" not in everything
    shown = sections()["mentions"]
    assert "ALICE 100.0\u00a0% (12 of 12); top-k 0.0\u00a0% (0 of 12)" in shown.says
    assert any(note.startswith("Fisher's exact test: it compares") for note in shown.notes)


def test_all_groups_together_are_no_part_of_what_is_corrected():
    for slug, methods in (("sailors", ("alice", "topk")), ("bakers", ("topk", "alice"))):
        referring(slug, methods[0], *["directly"] * 6)
        referring(slug, methods[1], *["none_or_unclear"] * 6)
    of = mentions()
    assert (of["All groups"]["difference"].value, of["All groups"]["p"]) == (0, 1)
    assert of["Sailors"]["p_holm"] == of["Bakers"]["p_holm"] == pytest.approx(4 / 924)


def test_a_group_with_two_statements_says_why_it_is_not_tested():
    referring("sailors", "alice", "directly")
    referring("sailors", "topk", "directly")
    row = mentions()["Sailors"]
    for key in ("difference", "p", "p_holm"):
        assert "too few for a test" in row[key].reason
    assert row["alice"].value == 1


def test_the_figures_of_the_paper_stand_beside():
    referring("women", "alice", "directly")
    referring("bakers", "alice", "directly")
    of = mentions()
    assert [(row.get("paper_alice"), row.get("paper_topk")) for row in of.values()] == [
        (None, None),
        (0.97, 0.90),
        (0.84, 0.81),
    ]


def test_every_group_of_the_paper_is_known_by_its_slug():
    theirs = {group.slug for group in TargetGroup.objects.exclude(slug__in=["bakers", "sailors"])}
    assert set(paper.MENTIONS) == theirs
    assert len(paper.MENTIONS) == 13


def test_statements_without_a_known_reference_are_left_out_and_counted():
    label(make_generation(method="alice"), predicted_group="the text directly references women")
    label(make_generation(method="alice"), predicted_group="['it is unclear who is referenced', '?']")
    label(make_generation(method="alice"))
    row = mentions()["All groups"]
    assert (row["alice_n"], row["alice"].value) == (1, 1)
    note = "Left out: 2 statements, each of which does not say whom it refers to in the words of the release."
    assert all(note in section.notes for section in sections().values())


def test_what_people_wrote_is_left_out():
    judged_statement({}, method="written", group=make_group("sailors"))
    judged_statement({}, method="alice", group=make_group("bakers"))
    assert list(mentions()) == ["Bakers", "All groups"]


def test_groups_desired_and_referenced():
    bakers = make_group("bakers")
    judged_statement({"which_group": "directly"}, group=bakers)
    judged_statement({"which_group": "other_groups", "other_groups": "sailors, cyclists"}, {}, group=bakers)
    judged_statement({"which_group": "none_or_unclear"})
    label(predicted_group="the text references sailors")
    label(predicted_group="who knows")
    label()
    shown = sections()["referenced"]
    of = {row["group"]: row for row in shown.table.rows}
    assert list(of) == ["Bakers", "Sailors", "Women", "Other groups", "None, or unclear"]
    assert [(row.get("desired"), row["n"], row["statements"], row["of_statements"].value) for row in of.values()] == [
        (2, 4, 2, 0.5),
        (0, 4, 2, 0.5),
        (2, 4, 0, 0),
        (None, 4, 1, 0.25),
        (None, 4, 1, 0.25),
    ]
    assert [of[name]["desired_share"] for name in ("Bakers", "Sailors")] == [0.5, 0]
    assert [of[name]["of_references"].value for name in ("Bakers", "Sailors", "Other groups")] == [0.4, 0.4, 0.2]
    assert "5 references in all. In 25.0\u00a0% (1 of 4) nobody saw any group." in shown.says
    assert (
        "Left out: 2 statements, each of which does not say whom it refers to in the words of the release."
        in shown.notes
    )


def test_which_groups_statements_refer_to_instead():
    whom = {"which_group": "other_groups"}
    for changes in ({}, whom | {"other_groups": "sailors"}, whom | {"other_groups": "old sailors and cyclists"}):
        judged_statement(changes, group=make_group("bakers"))
    judged_statement({"which_group": "none_or_unclear"}, group=make_group("bakers"))
    shown = sections()["instead"]
    (row,) = shown.table.rows
    assert [column.label for column in shown.table.columns] == [
        "Prompts about", "Statements (n)", "Bakers", "Sailors", "Other groups", "None, or unclear",
    ]  # fmt: skip
    assert [row["meant"], row["n"], *(row[key].value for key in ("bakers", "sailors", "other groups", "nobody"))] == [
        "Bakers", 4, 0.25, 0.5, 0.25, 0.25,
    ]  # fmt: skip
    assert shown.chart["data"][0]["z"] == [[0.25, 0.5, 0.25, 0.25]]


def test_a_filter_takes_away_the_papers_figures_of_what_it_cuts():
    referring("women", "alice", "directly")
    whole = mentions({"group": TargetGroup.objects.filter(slug="women"), "method": ["alice"]})
    assert (whole["Women"]["paper_alice"], whole["All groups"].get("paper_alice")) == (0.97, None)
    for filters in ({"label": ["benign"]}, {"imported": True}):
        table = sections(filters)["mentions"].table
        assert not any(column.key.startswith("paper") for column in table.columns)


def test_with_one_group_all_groups_are_no_group_of_that_name():
    referring("sailors", "alice", "directly")
    of = mentions()
    assert of["Sailors"]["topk"] == Undefined("There are no judged statements of top-k about Sailors.")
    assert of["All groups"]["topk"] == Undefined("There are no judged statements of top-k.")
    assert "top-k has no such statements." in sections()["mentions"].says


def test_filters_leave_what_they_ask_for():
    referring("sailors", "alice", "directly")
    referring("bakers", "topk", "none_or_unclear")
    assert list(mentions({"group": TargetGroup.objects.filter(slug="sailors")})) == ["Sailors", "All groups"]
    row = mentions({"method": ["alice"]})["All groups"]
    assert (row["alice_n"], row["topk_n"]) == (1, 0)
    assert "two sides" in row["difference"].reason


def test_with_nothing_every_section_says_why():
    reasons = {section.missing for section in sections().values()}
    assert reasons == {"There are no annotations and no imported labels here. Publish a study, or import judgements."}
    HumanLabel.objects.create(generation=make_generation())
    assert {section.missing for section in sections().values()} == {
        "Of 1 judged statement none says whom it refers to in the words of the release."
    }


@pytest.mark.skipif(not REAL.exists(), reason="the released files are not here")
def test_the_large_sample_of_the_release_gives_appendix_e():
    import_file(format="annotated", path=REAL / "annotated.csv", options=Options(make_groups=True))
    of = mentions()
    everything = of["All groups"]
    assert (everything["alice_n"], everything["topk_n"], len(of)) == (4399, 4561, 14)
    # Appendix E: 78.3 % and 70.4 %
    assert (round(everything["alice"].value, 3), round(everything["topk"].value, 3)) == (0.782, 0.703)
    shown = sections()["referenced"]
    assert sum(row.get("desired") or 0 for row in shown.table.rows) == 8960
    assert not any(note.startswith("Left out") for note in shown.notes)
