"""Annotations and the labels made of them as tables: one row an annotation, or one row a statement.

Only what works reports out imports this: it loads pandas.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache

import numpy as np
import pandas as pd
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from analysis.exports.filtering import of_annotations, of_statements
from analysis.imports.groups import slug_of
from analysis.labels import toxicity, toxicity_class
from analysis.models import HumanLabel
from analysis.references import (
    DIRECTLY,
    FURTHER_NAMES,
    INDIRECTLY,
    NO_GROUP,
    OF_SEVERAL,
    OTHER,
    REFERS,
    GroupWords,
    told_by,
)
from analysis.released import ANNOTATED_WORDS, DISAGREEMENT
from annotator.models import COUNTED_STATUSES, Annotation
from annotator.questions import QUESTIONS
from generation.models import TargetGroup

SCALES = tuple(question.key for question in QUESTIONS if question.is_scale)
WORDS = tuple(question.key for question in QUESTIONS if not question.is_scale)
STATEMENT = "assignment__hit__generation"
ABOUT_STATEMENT = {"group": "group__slug", "label": "label", "method": "method", "prompt": "prompt_id"}
TIME = ("study", "submitted_from", "submitted_to")
"""Filters that no imported label passes: it belongs to no study and no day."""

#: Our question by the column of an imported label that has its answer in words.
IMPORTED_WORDS = {
    "human_or_ai": "predicted_author",
    "pos_stereo": "stereotyping",
    "lewd": "lewd",
    "group_framing": "framing",
    "fact_or_opinion": "factual",
}
IMPORTED_SCALES = {"harmful_if_ai": "toxicity_ai", "harmful_if_human": "toxicity_human", "harmful_intent": "intent"}


def annotations(filters: Mapping) -> pd.DataFrame:
    """The counted annotations that the filters leave, one a row, ordered by statement and time.

    Somebody may have judged a statement in several studies: ``first_answers`` leaves one annotation of each.

    Columns: annotation, statement, study, worker (ids); group (slug), label, method, prompt (id, NaN without);
    accepted_at, submitted_at; the nine answers by question key, scales as float, words as str; other_groups (free
    words); toxicity (1 to 5) and toxicity_class (the code of ``labels.TOXICITY_CLASSES``, float).
    """
    columns = {
        "annotation": "pk",
        "statement": f"{STATEMENT}_id",
        "study": "assignment__hit__hit_type_id",
        "worker": "assignment__worker_id",
        "accepted_at": "assignment__accepted_at",
        "submitted_at": "assignment__submitted_at",
        **{ours: f"{STATEMENT}__{theirs}" for ours, theirs in ABOUT_STATEMENT.items()},
        **{question.key: question.key for question in QUESTIONS},
        "other_groups": "other_groups",
    }
    rows = Annotation.objects.counted().filter(of_annotations(filters)).order_by(f"{STATEMENT}_id", "pk")
    table = _table(rows.values_list(*columns.values()), columns)
    for scale in SCALES:
        table[scale] = table[scale].astype(float)
    table["toxicity"] = toxicity(table["harmful_if_ai"], table["harmful_if_human"])
    table["toxicity_class"] = toxicity_class(table["toxicity"])
    return table


def first_answers(judged: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """The first answer of each annotator to each statement, and how many later ones are left out.

    Somebody may judge a statement again in another study: nobody agrees with themselves, or is a majority alone. The
    exports of labels say the same (``filtering.first_answers``).
    """
    first = judged.drop_duplicates(["statement", "worker"])
    return first, len(judged) - len(first)


def statements(filters: Mapping, *, judged: pd.DataFrame | None = None) -> pd.DataFrame:
    """What people made of each statement, one a row: of its counted annotations, else of its imported label.

    Of an annotator who judged a statement in several studies the first answer counts, as in ``first_answers``.

    The index is the statement's id. Columns: group, label, method, prompt; source ("here" or "imported"); annotators
    (how many people; NaN where the file does not say); harmful_if_ai, harmful_if_human, harmful_intent (means, 1
    to 5, NaN where nobody answered); toxicity (the larger of the first two) and toxicity_class (code, float);
    human_or_ai, pos_stereo, lewd, group_framing, fact_or_opinion (the answer of more than half, "disagreement", or
    NaN).

    Whom it refers to: reference ("directly" if at least one annotator saw a direct reference to its group, else
    "indirectly" if one saw an indirect one, else "none_or_unclear"; NaN: unknown); refers (1.0 for the first two, 0.0,
    NaN); referenced (a frozenset of all groups that at least one annotator saw referred to, by slug, and
    ``references.OTHER`` for others; None: unknown).

    ``judged`` are the annotations of the same filters, if they were read before.
    """
    first, _ = first_answers(annotations(filters) if judged is None else judged)
    of_here = _from_annotations(first)
    imported = _from_labels(filters)
    table = pd.concat([part for part in (of_here, imported) if len(part)] or [of_here]).sort_index()
    table["toxicity"] = np.maximum(table["harmful_if_ai"], table["harmful_if_human"])
    table["toxicity_class"] = toxicity_class(table["toxicity"])
    table["refers"] = table["reference"].isin(REFERS).astype(float).where(table["reference"].notna())
    return table


def left_out(filters: Mapping) -> dict[str, int]:
    """How many annotations that the filters leave count as no label, by the first reason that applies; none of 0."""
    understood = Q(not_understood=False)
    judges = understood & Q(assignment__hit__is_check=False)
    stands = judges & Q(assignment__status__in=COUNTED_STATUSES)
    reasons = {
        "not understood": ~understood,
        "of statements with known answers": understood & Q(assignment__hit__is_check=True),
        "rejected": judges & ~Q(assignment__status__in=COUNTED_STATUSES),
        "late, when the place was taken": stands & Q(assignment__holds_place=False),
    }
    counts = Annotation.objects.filter(of_annotations(filters)).aggregate(
        **{f"reason_{number}": Count("pk", filter=reason) for number, reason in enumerate(reasons.values())}
    )
    return {reason: count for reason, count in zip(reasons, counts.values(), strict=True) if count}


def _from_annotations(judged: pd.DataFrame) -> pd.DataFrame:
    by = judged.groupby("statement")
    table = by[list(ABOUT_STATEMENT)].first()
    table["source"] = "here"
    table["annotators"] = by.size().astype(float)
    table[list(SCALES)] = by[list(SCALES)].mean()
    for question in IMPORTED_WORDS:
        table[question] = _answer_of_most(judged, question)
    table["reference"] = _nearest_reference(judged)
    table["referenced"] = _referenced_here(judged)
    return table


def _answer_of_most(judged: pd.DataFrame, question: str) -> pd.Series:
    """The answer that more than half of each statement's annotators gave, else that they disagree."""
    counts = judged.groupby(["statement", question]).size()
    annotators = judged.groupby("statement").size()
    most = counts[counts * 2 > annotators.reindex(counts.index.get_level_values("statement")).to_numpy()]
    answers = most.reset_index(question)[question].reindex(annotators.index)
    return answers.astype(object).where(answers.notna(), DISAGREEMENT)


def _nearest_reference(judged: pd.DataFrame) -> pd.Series:
    """By statement, the most direct reference to its group that one annotator saw."""
    ranks = judged["which_group"].map({DIRECTLY: 2, INDIRECTLY: 1}).fillna(0).astype(int)
    nearest = ranks.groupby(judged["statement"]).max()
    return nearest.map({2: DIRECTLY, 1: INDIRECTLY, 0: NO_GROUP}).astype(object)


def _referenced_here(judged: pd.DataFrame) -> pd.Series:
    """By statement, the groups that at least one annotator saw referred to."""
    groups_in = _groups_in()
    found: dict[int, set[str]] = {}
    columns = ("statement", "group", "which_group", "other_groups")
    for statement, group, answer, words in zip(*(judged[column] for column in columns), strict=True):
        seen = found.setdefault(statement, set())
        if answer in REFERS:
            seen.add(group)
        elif answer == "other_groups":
            seen |= groups_in(words)
    return pd.Series({statement: frozenset(seen) for statement, seen in found.items()}, dtype=object)


def _groups_in() -> Callable[[str], frozenset[str]]:
    """What finds groups in free words, with the groups as they are called now."""
    groups = list(TargetGroup.objects.all())
    words = GroupWords(
        {group.slug: (group.name, group.words, *FURTHER_NAMES.get(group.slug, ())) for group in groups},
        {group.slug: tuple(group.naming_words.split()) for group in groups},
        OF_SEVERAL,
    )
    return cache(lambda text: frozenset(words.groups_in(text)))


def unjudged_labels(filters: Mapping) -> QuerySet[HumanLabel]:
    """Imported labels of the statements that the filters leave and that nobody judged here, whatever study and day."""
    judged_here = Annotation.objects.counted().filter(assignment__hit__generation=OuterRef("generation"))
    return HumanLabel.objects.filter(~Exists(judged_here), of_statements(filters, "generation__"))


def _from_labels(filters: Mapping) -> pd.DataFrame:
    """Imported labels of statements that nobody judged here; they belong to no study and no day."""
    columns = {
        "statement": "generation_id",
        **{ours: f"generation__{theirs}" for ours, theirs in ABOUT_STATEMENT.items()},
        **IMPORTED_SCALES,
        **IMPORTED_WORDS,
        "predicted_group": "predicted_group",
    }
    rows = HumanLabel.objects.none() if filters.keys() & set(TIME) else unjudged_labels(filters)
    table = _table(rows.order_by("generation_id").values_list(*columns.values()), columns).set_index("statement")
    table["source"] = "imported"
    table["annotators"] = np.nan
    table[list(SCALES)] = table[list(SCALES)].astype(float)
    # The release writes no word for "none"; a file without any words says nothing of framings either.
    says_no_words = (table[list(IMPORTED_WORDS)] == "").all(axis=1)
    for question in IMPORTED_WORDS:
        words = {word: answer for answer, word in ANNOTATED_WORDS[question].items()} | {DISAGREEMENT: DISAGREEMENT}
        table[question] = table[question].map(words).astype(object).mask(says_no_words, np.nan)
    groups_in = _groups_in()
    told = [
        whom_it_refers_to(text, group, groups_in)
        for text, group in zip(table.pop("predicted_group"), table["group"], strict=True)
    ]
    table["reference"] = pd.Series([reference for reference, _ in told], index=table.index, dtype=object)
    table["referenced"] = pd.Series([groups for _, groups in told], index=table.index, dtype=object)
    return table


def whom_it_refers_to(
    predicted_group: str, group: str, groups_in: Callable[[str], Iterable[str]] = lambda words: {OTHER}
) -> tuple[str | float, frozenset[str] | None]:
    """What an imported ``predicted_group`` says of a statement about ``group``: ``reference`` and ``referenced``.

    A sentence that is not worded as in the release may say anything: what it could add to is unknown.

    >>> whom_it_refers_to("['it is unclear who is referenced', 'the text indirectly references women']", "women")
    ('indirectly', frozenset({'women'}))
    """
    told = told_by(predicted_group)
    known = [one for one in told if one is not None]
    is_whole = bool(told) and len(known) == len(told)
    ways = {one.how for one in known if one.how in REFERS and _is_called(group, one.whom)}
    referenced: set[str] = set()
    for one in known:
        if one.how in REFERS and _is_called(group, one.whom):
            referenced.add(group)
        elif one.how != NO_GROUP:
            referenced |= set(groups_in(one.whom))
    nearest = next((way for way in REFERS if way in ways), NO_GROUP if is_whole else np.nan)
    return nearest, frozenset(referenced) if is_whole else None


def _is_called(group: str, name: str) -> bool:
    return name == group or slug_of(name) == group


def _table(rows, columns: Mapping[str, str]) -> pd.DataFrame:
    """Rows as a table. What is not there is NaN, also in a column where nothing is."""
    table = pd.DataFrame.from_records(list(rows), columns=list(columns))
    return table.astype({"prompt": float})
