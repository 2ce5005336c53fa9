"""Whom annotators saw a text refer to: in the answers given here, and in the sentences of the release."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from generation.naming import names_group

DIRECTLY, INDIRECTLY, NO_GROUP = "directly", "indirectly", "none_or_unclear"
REFERS = (DIRECTLY, INDIRECTLY)
OTHER = "other groups"
"""Stands among slugs for words that name no group known here; no slug has a blank."""

SENTENCE = re.compile(
    r"\s*(?:the text (?:(directly|indirectly) )?references\s?(?P<whom>.*)"
    r"|(?P<nobody>it is unclear who is referenced))\s*",
    re.DOTALL | re.IGNORECASE,
)
BETWEEN_GROUPS = re.compile(r"[,;/\n]|\b(?:and|or)\b|&", re.IGNORECASE)
NEGATED = re.compile(r"\b(?:non|not|no|without|except|excluding|other than|(?:every|any)(?:one|body) but|all but)\b")
"""Whoever is named behind these is not meant."""

FURTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "black": ("African American", "Black American", "Afro American", "African descent"),
    "asian": ("Asian American", "Asian descent"),
    "native_american": ("American Indian", "Alaska Native", "Indigenous American", "First Nation", "Native tribe"),
    "latino": ("Latina", "Latinx", "Latine", "Latin American", "Hispanic"),
    "jewish": ("Jew", "Judaism"),
    "muslim": ("Islam", "Islamic"),
    "chinese": ("from China",),
    "mexican": ("from Mexico",),
    "middle_east": ("Middle Easterner", "Middle East", "Arab"),
    "lgbtq": (
        "LGBT", "LGBTQ", "LGBTQIA", "gay", "lesbian", "bisexual", "transgender", "trans", "queer", "nonbinary",
        "same sex couple",
    ),
    "women": ("woman", "female", "girl", "lady"),
    "mental_dis": (
        "mental disability", "mentally disabled", "mental illness", "mentally ill", "mental disorder",
        "mental health condition", "intellectual disability", "intellectually disabled", "cognitive disability",
        "cognitively disabled", "developmental disability", "autistic", "autism", "Down syndrome", "neurodivergent",
    ),
    "physical_dis": (
        "physical disability", "physically disabled", "physical impairment", "wheelchair user", "deaf", "blind",
        "hard of hearing", "visually impaired", "hearing impaired",
    ),
}  # fmt: skip
"""What people call themselves, and others call them plainly, besides their group's name: by slug."""

OF_SEVERAL: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("disabled", "disability", "disabilities", "people with disabilities", "people with a disability"),
    ("mental_dis", "physical_dis"),
)
"""Words that, alone, mean more than one group; as ``plain`` has them."""


@dataclass(frozen=True)
class Told:
    """What one annotator said: how the text refers (directly, indirectly, None: to other groups), and to whom."""

    how: str | None
    whom: str = ""


def told_by(predicted_group: str) -> list[Told | None]:
    """What each sentence of an imported ``predicted_group`` says; None for one that is not worded as in the release.

    >>> told_by("['it is unclear who is referenced', 'the text indirectly references women']")
    [Told(how='none_or_unclear', whom=''), Told(how='indirectly', whom='women')]
    >>> told_by("sailors, I think"), told_by("")
    ([None], [])
    """
    if not predicted_group.strip():
        return []
    return [_told(sentence) for sentence in _sentences(predicted_group)]


def _sentences(predicted_group: str) -> list[object]:
    if not predicted_group.lstrip().startswith("["):
        return [predicted_group]
    try:
        listed = ast.literal_eval(predicted_group.strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # all that a text can make it raise
        return [predicted_group]
    return listed if isinstance(listed, list) else [predicted_group]


def _told(sentence: object) -> Told | None:
    found = SENTENCE.fullmatch(sentence) if isinstance(sentence, str) else None
    if found is None:
        return None
    if found["nobody"]:
        return Told(NO_GROUP)
    return Told(found[1] and found[1].lower(), found["whom"].strip())


@dataclass(frozen=True)
class GroupWords:
    """Finds which groups words mean.

    ``names`` are what a group is called in full, by slug; ``words`` single words that are used of it. A word that
    several groups have says nothing of which is meant, unless ``of_several`` says that all of these are.
    """

    names: Mapping[str, tuple[str, ...]]
    words: Mapping[str, tuple[str, ...]]
    of_several: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def groups_in(self, text: str) -> set[str]:
        """The slugs of the groups that free words name, and ``OTHER`` where some name none of them.

        A group is named by its name anywhere in the words, or by one of its own words alone; not by words that say
        whom they do not mean ("non-sailors").

        >>> groups = GroupWords({"cooks": ("Cooks",), "sailors": ("Sailors",)}, {"sailors": ("crew", "salty")})
        >>> sorted(groups.groups_in("young cooks, the crew and painters"))
        ['cooks', 'other groups', 'sailors']
        """
        items = [item for part in BETWEEN_GROUPS.split(text) if (item := plain(part))]
        found = [self._named_by(item) for item in items] or [set[str]()]
        return set().union(*(groups or {OTHER} for groups in found))

    def _named_by(self, item: str) -> set[str]:
        item = NEGATED.split(item)[0].strip()
        named = {slug for slug, names in self._plain_names.items() if names_group(item, names)}
        if as_a_whole := self._whole.get(item):
            named.add(as_a_whole)
        return named or {slug for slug in self.of_several.get(item, ()) if slug in self.names}

    @cached_property
    def _plain_names(self) -> dict[str, tuple[str, ...]]:
        return {slug: tuple(map(plain, names)) for slug, names in self.names.items()}

    @cached_property
    def _whole(self) -> dict[str, str]:
        """Slug by what means the group if it stands alone."""
        meant: dict[str, set[str]] = {}
        for slug, word in _each(self.words):
            meant.setdefault(plain(word), set()).add(slug)
        for slug, text in [*_each(self.names), *((slug, slug) for slug in self.names)]:
            meant[plain(text)] = {slug}
        return {text: slugs.pop() for text, slugs in meant.items() if len(slugs) == 1 and text}


def plain(words: str) -> str:
    """Words without case, punctuation, an article before and "people" behind them.

    >>> plain(" the Deep-Sea folks! ")
    'deep sea'
    """
    kept = " ".join(re.sub(r"[^\w+]+|_", " ", words.casefold()).split())
    kept = re.sub(r"\bnon binary\b", "nonbinary", kept)
    return re.sub(r"^(?:the|an?) (?=.)|(?<=.) (?:people|folks?|persons?)$", "", kept)


def _each(texts: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, str]]:
    return ((slug, text) for slug, several in texts.items() for text in several)
