"""Whom a text refers to, read from sentences in the release's wording and from free words."""

import pytest

from analysis.judged import _groups_in
from analysis.references import FURTHER_NAMES, OF_SEVERAL, OTHER, GroupWords, Told, plain, told_by
from generation.models import TargetGroup

GROUPS = GroupWords(
    names={
        "cooks": ("Cooks", "people who cook"),
        "deep_sea": ("Deep-Sea", "Deep-Sea people"),
        "sailors": ("Sailors", "Sailors"),
    },
    words={"cooks": ("chef", "kitchen", "american"), "deep_sea": (), "sailors": ("crew", "american")},
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the text directly references sailors", [Told("directly", "sailors")]),
        ("The text INDIRECTLY references sailors ", [Told("indirectly", "sailors")]),
        ("it is unclear who is referenced", [Told("none_or_unclear")]),
        ("the text references cooks, and\nothers", [Told(None, "cooks, and\nothers")]),
        ("the text references ", [Told(None, "")]),
        ("the text references", [Told(None, "")]),
        (
            """['the text directly references sailors', "the text references the cooks' union"]""",
            [Told("directly", "sailors"), Told(None, "the cooks' union")],
        ),
        ("  ['it is unclear who is referenced'] ", [Told("none_or_unclear")]),
        ("[]", []),
        ("", []),
        (" \n", []),
    ],
)
def test_sentences_of_the_release_are_read(text, told):
    assert told_by(text) == told


@pytest.mark.parametrize(
    "text",
    [
        "sailors",
        "it directly references sailors",
        "the text doubtfully references sailors",
        "['the text directly references sailors'",
        "[the text directly references sailors]",
        "[" * 9000,
        "[" + "-" * 9000 + "1]",
        "[1] * 3",
        "[[]: 1]",
        "[{[]: 1}]",
        "[1" + "+1" * 4000 + "]",
        "{[]: 1}",
        "[2, None]",
        "NaN",
    ],
)
def test_what_is_worded_otherwise_is_unknown(text):
    told = told_by(text)
    assert told
    assert set(told) == {None}


def test_a_list_may_hold_both():
    assert told_by("['the text references cooks', 'yes', 3]") == [Told(None, "cooks"), None, None]


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        ("cooks", {"cooks"}),
        ("COOKS", {"cooks"}),
        ("young cooks", {"cooks"}),
        ("people who cook", {"cooks"}),
        ("deep-sea folks", {"deep_sea"}),
        ("deep_sea", {"deep_sea"}),
        ("the crew", {"sailors"}),
        ("crew people", {"sailors"}),
        ("cooks, sailors; painters", {"cooks", "sailors", OTHER}),
        ("cooks and sailors", {"cooks", "sailors"}),
        ("cooks/painters & gardeners", {"cooks", OTHER}),
        ("sailors who are cooks", {"cooks", "sailors"}),
        ("kitchen tables", {OTHER}),
        ("cookshop", {OTHER}),
        ("american", {OTHER}),
        ("and, ;", {OTHER}),
        ("", {OTHER}),
        ("people", {OTHER}),
        ("non-cooks", {OTHER}),
        ("Non cooks and sailors", {OTHER, "sailors"}),
        ("people who are not sailors", {OTHER}),
        ("anyone but cooks", {OTHER}),
        ("cooks without sailors", {"cooks"}),
        ("cooks or sailors", {"cooks", "sailors"}),
        ("a chef", {"cooks"}),
    ],
)
def test_free_words_name_known_groups_or_others(words, groups):
    assert GROUPS.groups_in(words) == groups


@pytest.mark.parametrize(
    ("words", "groups"),
    [
        ("african americans", {"black"}),
        ("young Asian-Americans", {"asian"}),
        ("non-asians", {OTHER}),
        ("American Indians", {"native_american"}),
        ("hispanics", {"latino"}),
        ("jews", {"jewish"}),
        ("followers of islam", {"muslim"}),
        ("people from China", {"chinese"}),
        ("Mexican Americans", {"mexican"}),
        ("New Mexico", {OTHER}),
        ("middle easterners", {"middle_east"}),
        ("arab women", {"middle_east", "women"}),
        ("the lgbtq community", {"lgbtq"}),
        ("gay men", {"lgbtq"}),
        ("non-binary people", {"lgbtq"}),
        ("LGBTQ+", {"lgbtq"}),
        ("old ladies", {"women"}),
        ("men", {OTHER}),
        ("mentally disabled people", {"mental_dis"}),
        ("a deaf person", {"physical_dis"}),
        ("people with disabilities", {"mental_dis", "physical_dis"}),
        ("the disabled", {"mental_dis", "physical_dis"}),
        ("people without disabilities", {OTHER}),
        ("people with intellectual disabilities", {"mental_dis"}),
        ("americans", {OTHER}),
        ("caucasians", {OTHER}),
    ],
)
@pytest.mark.django_db
def test_the_papers_groups_are_known_by_what_they_call_themselves(words, groups):
    assert _groups_in()(words) == groups


@pytest.mark.django_db
def test_further_names_are_of_groups_of_the_paper_each_of_one():
    slugs = set(TargetGroup.objects.values_list("slug", flat=True))
    assert set(FURTHER_NAMES) == slugs
    names = [plain(name) for several in FURTHER_NAMES.values() for name in several]
    assert len(names) == len(set(names))
    assert {slug for several in OF_SEVERAL.values() for slug in several} <= slugs
    assert all(plain(words) == words for words in OF_SEVERAL)


def test_words_for_several_groups_name_those_that_there_are():
    groups = GroupWords({"cooks": ("Cooks",)}, {}, {"crew": ("cooks", "sailors")})
    assert groups.groups_in("the crew") == {"cooks"}


def test_words_are_compared_without_what_does_not_matter():
    assert [plain(words) for words in ("The LGBTQ+ people.", "mental_dis", "the", "people", " - ")] == [
        "lgbtq+",
        "mental dis",
        "the",
        "people",
        "",
    ]
