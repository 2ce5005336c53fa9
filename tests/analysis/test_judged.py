"""Annotations and what is made of them as tables, which every report on judgements is computed from."""

import math
from datetime import UTC, date, datetime, timedelta

import pandas as pd
import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis import judged
from analysis.exports import answers as expressions
from analysis.exports.filtering import first_answers
from analysis.labels import TOXICITY_CLASSES
from analysis.models import HumanLabel
from analysis.references import OTHER
from analysis.released import ANNOTATED_WORDS, DISAGREEMENT
from annotator.models import Annotation
from annotator.questions import QUESTIONS
from generation.models import Generation, Prompt, TargetGroup
from tests.analysis.exported import json_rows
from tests.factories import (
    answers,
    consenting_worker,
    make_assignment,
    make_generation,
    make_group,
    make_hit,
    make_hit_type,
    make_searched_generation,
)

pytestmark = pytest.mark.django_db

MOMENT = datetime(2026, 11, 2, 8, 5, 3, tzinfo=UTC)
NOBODY = dict.fromkeys(answers())


def judge(hit, *judgements, workers=None, at=MOMENT, status="approved", **fields):
    """Annotations of a HIT, each by somebody else; returns their workers."""
    workers = workers or [consenting_worker() for _ in judgements]
    decided = {"decided_at": at} if status != "submitted" else {}
    times = {"accepted_at": at - timedelta(seconds=90), "submitted_at": at}
    for worker, changes in zip(workers, judgements, strict=True):
        assignment = make_assignment(hit, worker, status=status, **times, **decided, **fields)
        Annotation.objects.create(assignment=assignment, **answers(**changes))
    return workers


def judged_statement(*judgements, **fields):
    """A statement in a study of its own with these judgements."""
    generation = make_generation(**fields)
    judge(make_hit(generation=generation, max_assignments=9), *judgements)
    return generation


def label(generation=None, **fields):
    words = {"factual": "opinion", "lewd": "contains lewd content", "framing": "moral", "stereotyping": DISAGREEMENT}
    scores = {"intent": 2.5, "toxicity_ai": 1, "toxicity_human": 3.333333333}
    generation = generation or make_generation()
    HumanLabel.objects.create(generation=generation, **words | scores | {"predicted_author": "human"} | fields)
    return generation


def of(generation, filters=None):
    """The row of one statement."""
    return judged.statements(filters or {}).loc[generation.pk]


# --- One row an annotation


def test_an_annotation_has_its_answers_and_what_it_is_about():
    group = make_group("gardeners")
    prompt = Prompt.objects.create(group=group, label="toxic", text="- one\n- two\n-")
    hit = make_hit(generation=make_generation(group=group, label="toxic", method="alice", prompt=prompt))
    changes = {"harmful_if_ai": 4, "which_group": "other_groups", "other_groups": "bakers"}
    (worker,) = judge(hit, changes)
    (row,) = judged.annotations({}).to_dict("records")
    assert row == answers(**changes) | {
        "annotation": Annotation.objects.get().pk,
        "statement": hit.generation_id,
        "study": hit.hit_type_id,
        "worker": worker.pk,
        "group": "gardeners",
        "label": "toxic",
        "method": "alice",
        "prompt": prompt.pk,
        "accepted_at": MOMENT - timedelta(seconds=90),
        "submitted_at": MOMENT,
        "toxicity": 4,
        "toxicity_class": 2,
    }


@pytest.mark.parametrize(("if_ai", "if_human", "name"), [(1, 2, "non-toxic"), (3, 1, "ambiguous"), (2, 4, "toxic")])
def test_its_class_is_that_of_the_larger_of_both_ratings(if_ai, if_human, name):
    judged_statement({"harmful_if_ai": if_ai, "harmful_if_human": if_human})
    assert TOXICITY_CLASSES[int(judged.annotations({})["toxicity_class"].item())] == name


def not_counted(generation):
    """Annotations that are no labels, one of each kind, that say the worst."""
    worst = {"harmful_if_ai": 5, "harmful_if_human": 5, "human_or_ai": "human"}
    study = make_hit_type(max_assignments=9)
    hit = make_hit(generation=generation, hit_type=study)
    judge(hit, worst | {"not_understood": True})
    judge(hit, NOBODY | {"not_understood": True})
    judge(hit, worst, status="rejected", rejection_reason="Empty.", holds_place=False)
    judge(hit, worst, holds_place=False)
    judge(make_hit(generation=generation, is_check=True), worst)


def test_only_what_counts_is_there():
    generation = make_generation()
    not_counted(generation)
    assert judged.annotations({}).empty
    assert judged.statements({}).empty
    judge(make_hit(generation=generation), {}, {}, status="submitted")
    assert len(judged.annotations({})) == 2
    row = of(generation)
    assert (row["annotators"], row["toxicity"], row["human_or_ai"]) == (2, 2, "ai")


def test_what_does_not_count_is_counted_with_its_first_reason():
    generation = make_generation()
    not_counted(generation)
    judge(make_hit(generation=generation, is_check=True), {"not_understood": True})
    rejected = {"status": "rejected", "rejection_reason": "Empty.", "holds_place": False}
    judge(make_hit(generation=generation, is_check=True), {}, **rejected)
    assert judged.left_out({}) == {
        "not understood": 3,
        "of statements with known answers": 2,
        "rejected": 1,
        "late, when the place was taken": 1,
    }
    judge(make_hit(generation=generation), {}, {})
    everything = Annotation.objects.count()
    assert sum(judged.left_out({}).values()) + len(judged.annotations({})) == everything == 9
    assert judged.left_out({"method": ["alice"]}) == {}


def test_nothing_makes_empty_tables_with_all_columns():
    empty, of_statements = judged.annotations({}), judged.statements({})
    judged_statement({})
    label()
    assert (len(empty), len(of_statements)) == (0, 0)
    assert list(empty) == list(judged.annotations({}))
    assert set(of_statements) == set(judged.statements({}))
    assert set(judged.statements({"study": []})) == set(of_statements)


# --- One row a statement


def test_a_statement_has_the_means_of_its_scales():
    generation = judged_statement(
        {"harmful_if_ai": 1, "harmful_if_human": 5, "harmful_intent": 2},
        {"harmful_if_ai": 2, "harmful_if_human": 3, "harmful_intent": 1},
        {"harmful_if_ai": 5, "harmful_if_human": 2, "harmful_intent": 2},
    )
    row = of(generation)
    assert row["source"] == "here"
    assert row["annotators"] == 3
    assert row["harmful_if_ai"] == pytest.approx(8 / 3)
    assert row["harmful_if_human"] == pytest.approx(10 / 3)
    assert row["harmful_intent"] == pytest.approx(5 / 3)
    assert row["toxicity"] == pytest.approx(10 / 3)
    assert TOXICITY_CLASSES[int(row["toxicity_class"])] == "toxic"


def test_the_means_decide_on_the_class_not_the_annotations():
    judgements = [{"harmful_if_ai": score, "harmful_if_human": 1} for score in (5, 3, 1)]
    assert TOXICITY_CLASSES[int(of(judged_statement(*judgements))["toxicity_class"])] == "ambiguous"


@pytest.mark.parametrize("question", judged.IMPORTED_WORDS)
def test_the_answer_is_that_of_more_than_half(question):
    first, second, *_ = next(one.values for one in QUESTIONS if one.key == question)
    for given_answers, told in (
        ([first], first),
        ([first, first, second], first),
        ([second, first, second, second], second),
        ([first, second], DISAGREEMENT),
        ([first, first, second, second], DISAGREEMENT),
    ):
        assert of(judged_statement(*({question: answer} for answer in given_answers)))[question] == told


def test_half_and_less_is_no_majority_though_it_is_the_most_frequent():
    framings = ("none", "none", "other", "moral_judgement")
    assert of(judged_statement(*({"group_framing": one} for one in framings)))["group_framing"] == DISAGREEMENT


def test_a_statement_in_two_studies_is_one_row_of_all_its_annotations():
    generation = make_generation()
    first, second = make_hit(generation=generation), make_hit(generation=generation)
    workers = judge(first, {"human_or_ai": "human", "harmful_if_ai": 5}, {"human_or_ai": "human", "harmful_if_ai": 5})
    judge(second, {}, {}, workers=workers)
    judge(second, {})
    row = of(generation)
    assert (len(judged.statements({})), row["annotators"]) == (1, 3)
    assert (row["harmful_if_ai"], row["human_or_ai"]) == (pytest.approx(11 / 3), "human")
    of_first = of(generation, {"study": [first.hit_type]})
    assert (of_first["annotators"], of_first["harmful_if_ai"], of_first["human_or_ai"]) == (2, 5, "human")
    assert of(generation, {"study": [second.hit_type]})["harmful_if_ai"] == 1


def test_of_somebody_who_judged_a_statement_again_the_first_answer_counts_in_tables_and_files():
    generation = make_generation("a heron")
    once, twice = (make_hit(generation=generation, max_assignments=places) for places in (1, 2))
    (ada,) = judge(once, {"human_or_ai": "human", "harmful_if_ai": 5})
    judge(twice, {"human_or_ai": "ai"}, {"human_or_ai": "ai"}, workers=[ada, consenting_worker()])
    row = of(generation)
    assert (row["annotators"], row["harmful_if_ai"], row["human_or_ai"]) == (2, 3, DISAGREEMENT)
    first, repeated = judged.first_answers(judged.annotations({}))
    assert (len(first), repeated) == (2, 1)
    for export in ("annotated", "humanval"):
        (written,) = json_rows(export)
        assert (written["toxicity_ai"], written["predicted_author"]) == (3, DISAGREEMENT)
    (wide,) = json_rows("wide")
    assert (wide["n"], wide["majority_label"]) == (2, DISAGREEMENT)
    assert "label_3" not in wide


def test_what_a_statement_is_about_is_kept():
    other = label(make_generation(group=make_group("bakers"), label="toxic", method="written"))
    statement = make_searched_generation()
    judge(make_hit(generation=statement), {})
    table = judged.statements({})
    assert table.loc[statement.pk, ["group", "label", "method", "prompt"]].tolist() == [
        "women", "benign", "alice", statement.prompt_id,
    ]  # fmt: skip
    assert table.loc[other.pk, ["group", "label", "method"]].tolist() == ["bakers", "toxic", "written"]
    assert math.isnan(table.loc[other.pk, "prompt"])
    assert table.index.tolist() == [other.pk, statement.pk]


def test_annotations_that_were_read_before_are_used():
    generation = judged_statement({}, {})
    read = judged.annotations({})
    Annotation.objects.all().delete()
    assert judged.statements({}, judged=read).loc[generation.pk, "annotators"] == 2


# --- Imported labels


def test_an_imported_label_says_the_same_in_our_words():
    row = of(label(predicted_group="the text directly references women"))
    assert row["source"] == "imported"
    assert math.isnan(row["annotators"])
    scales = ["harmful_if_ai", "harmful_if_human", "harmful_intent", "toxicity", "toxicity_class"]
    assert row[scales].tolist() == [1, 3.333333333, 2.5, 3.333333333, 2]
    words = ["human_or_ai", "pos_stereo", "lewd", "group_framing", "fact_or_opinion"]
    assert row[words].tolist() == ["human", DISAGREEMENT, "yes", "moral_judgement", "opinion"]
    assert (row["reference"], row["refers"], row["referenced"]) == ("directly", 1, {"women"})


@pytest.mark.parametrize("question", judged.IMPORTED_WORDS)
def test_every_word_of_the_release_is_read(question):
    field = judged.IMPORTED_WORDS[question]
    for answer, word in ANNOTATED_WORDS[question].items():
        assert of(label(**{field: word}))[question] == answer


def test_a_statement_judged_here_is_told_from_its_annotations_whatever_the_filters_leave():
    generation = label(make_generation())
    hit = make_hit(generation=generation)
    judge(hit, {})
    assert of(generation)["source"] == "here"
    judge(make_hit(), {}, at=MOMENT + timedelta(days=9))
    assert generation.pk not in judged.statements({"submitted_from": date(2026, 11, 5)}).index
    Annotation.objects.update(not_understood=True)
    assert of(generation)["source"] == "imported"


def test_no_imported_label_belongs_to_a_study_or_a_day():
    label()
    generation = judged_statement({})
    study = generation.hits.get().hit_type
    days = {"submitted_from": date(2026, 11, 2)}, {"submitted_to": date(2026, 11, 2)}
    for filters in ({"study": [study]}, *days):
        assert judged.statements(filters).index.tolist() == [generation.pk]
    assert len(judged.statements({})) == 2
    assert judged.statements({"submitted_to": date(2026, 11, 1)}).empty


@pytest.mark.parametrize(
    "filters",
    [
        {"label": ["toxic"]},
        {"method": ["alice"]},
        {"group": ["bakers"]},
        {"imported": True, "label": ["toxic"]},
    ],
)
def test_filters_of_statements_hold_for_both_sources(filters):
    bakers = make_group("bakers")
    wanted = {"group": bakers, "label": "toxic", "method": "alice"}
    here, elsewhere = judged_statement({}, **wanted), label(make_generation(**wanted))
    judged_statement({})
    label()
    if "group" in filters:
        filters = {"group": TargetGroup.objects.filter(slug="bakers")}
    assert judged.statements(filters).index.tolist() == [here.pk, elsewhere.pk]


def test_what_an_imported_label_does_not_say_is_unknown():
    generation = make_generation()
    HumanLabel.objects.create(generation=generation, toxicity_ai=5)
    row = of(generation)
    assert row["harmful_if_ai"] == 5
    unknown = ["harmful_if_human", "harmful_intent", "toxicity", "toxicity_class", "refers", "reference"]
    assert row[[*unknown, *judged.IMPORTED_WORDS]].isna().all()
    assert row["referenced"] is None


def test_words_that_nobody_knows_are_unknown():
    row = of(label(factual="maybe so", predicted_author="a robot"))
    assert row[["fact_or_opinion", "human_or_ai"]].isna().all()
    assert row["lewd"] == "yes"


def test_no_word_is_the_framing_none_where_other_words_are_given():
    assert of(label(framing=""))["group_framing"] == "none"
    silent = dict.fromkeys(("framing", "factual", "lewd", "stereotyping", "predicted_author"), "")
    assert pd.isna(of(label(**silent))["group_framing"])


# --- Whom it refers to


@pytest.mark.parametrize(
    ("seen", "reference", "refers"),
    [
        (["directly"], "directly", 1),
        (["none_or_unclear", "indirectly", "directly"], "directly", 1),
        (["none_or_unclear", "indirectly", "other_groups"], "indirectly", 1),
        (["none_or_unclear", "other_groups"], "none_or_unclear", 0),
        (["none_or_unclear"], "none_or_unclear", 0),
    ],
)
def test_one_annotator_who_sees_a_reference_is_enough(seen, reference, refers):
    row = of(judged_statement(*({"which_group": answer, "other_groups": "cyclists"} for answer in seen)))
    assert (row["reference"], row["refers"]) == (reference, refers)


def test_the_groups_referred_to_are_those_of_all_annotators():
    group = make_group("bakers")
    make_group("sailors", name="Seafarers", words="people at sea", naming_words="crew mate")
    whom = {"which_group": "other_groups"}
    generation = judged_statement(
        {"which_group": "indirectly"},
        {"which_group": "none_or_unclear", "other_groups": "women"},
        whom | {"other_groups": "cyclists"},
        group=group,
    )
    assert of(generation)["referenced"] == {"bakers", OTHER}
    for words in ("old seafarers", "People at sea", "the crew", "mate", "sailors"):
        assert of(judged_statement(whom | {"other_groups": words}))["referenced"] == {"sailors"}
    assert of(judged_statement({"which_group": "none_or_unclear"}))["referenced"] == frozenset()


@pytest.mark.parametrize(
    ("predicted_group", "reference", "referenced"),
    [
        ("the text directly references women", "directly", {"women"}),
        ("['the text directly references women', 'the text indirectly references women']", "directly", {"women"}),
        ("['the text indirectly references women', 'it is unclear who is referenced']", "indirectly", {"women"}),
        ("['it is unclear who is referenced', 'the text references cyclists']", "none_or_unclear", {OTHER}),
        ("it is unclear who is referenced", "none_or_unclear", set()),
        ("the text references women", "none_or_unclear", {"women"}),
        ("the text directly references Women folks", "directly", {"women"}),
        ("the text directly references black", "none_or_unclear", {"black"}),
        ("the text directly references the womenfolk of old", "none_or_unclear", {OTHER}),
        ("the text references ", "none_or_unclear", {OTHER}),
        ("['the text directly references women', 'yes']", "directly", None),
        ("['it is unclear who is referenced', 'yes']", None, None),
        ("women", None, None),
        ("['the text directly references women'", None, None),
        ("[]", None, None),
        ("", None, None),
    ],
)
def test_sentences_of_a_label_say_whom_it_refers_to(predicted_group, reference, referenced):
    row = of(label(predicted_group=predicted_group))
    assert (row["reference"] if isinstance(row["reference"], str) else None) == reference
    assert row["referenced"] == referenced
    expected = {None: None, "directly": 1, "indirectly": 1, "none_or_unclear": 0}[reference]
    assert (None if math.isnan(row["refers"]) else row["refers"]) == expected


@pytest.mark.parametrize("slug", ["deep-sea_folks", "Sea", "mental_dis", "it's"])
def test_a_group_is_known_by_its_slug_however_that_is_written(slug):
    found = judged.whom_it_refers_to(f"the text directly references {slug}", slug)
    assert found == ("directly", {slug})


# --- The exports say the same

ANSWERS = st.fixed_dictionaries({question.key: st.sampled_from(question.values) for question in QUESTIONS})
KINDS = st.sampled_from(["counted", "counted", "counted", "submitted", "rejected", "late", "not understood"])
JUDGEMENTS = st.lists(st.tuples(ANSWERS, KINDS), min_size=1, max_size=5)
STATEMENTS = st.lists(st.tuples(JUDGEMENTS, JUDGEMENTS | st.just([])), min_size=1, max_size=6)
FIELDS = {
    "counted": {},
    "submitted": {"status": "submitted"},
    "rejected": {"status": "rejected", "rejection_reason": "Empty.", "holds_place": False},
    "late": {"holds_place": False},
    "not understood": {},
}


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(STATEMENTS)
def test_the_exports_say_the_same_of_any_annotations(drawn):
    with transaction.atomic():
        studies = [make_hit_type(max_assignments=5) for _ in range(2)]
        workers = [consenting_worker() for _ in range(5)]
        for of_studies in drawn:
            generation = make_generation(group=make_group("bakers", name="Bakers"))
            for study, judgements in zip(studies, of_studies, strict=True):
                hit = make_hit(generation=generation, hit_type=study)
                for worker, (given_answers, kind) in zip(workers, judgements, strict=False):
                    given_answers["other_groups"] = "cyclists, women"
                    given_answers["not_understood"] = kind == "not understood"
                    judge(hit, given_answers, workers=[worker], **FIELDS[kind])
        for filters in ({}, {"study": [studies[0]]}, {"study": [studies[1]], "method": ["topk"]}):
            assert_exports_say_the_same(filters)
        transaction.set_rollback(True)


def assert_exports_say_the_same(filters):
    table = judged.statements(filters)
    exported = {row["text"]: row for row in json_rows("annotated", filters)}
    texts = dict(Generation.objects.filter(pk__in=table.index).values_list("pk", "text"))
    assert sorted(texts.values()) == sorted(exported)
    classes = dict(
        first_answers(filters)
        .values_list("assignment__hit__generation")
        .annotate(name=expressions.statement_class())
        .order_by()
    )
    named = {
        "human_or_ai": "predicted_author", "pos_stereo": "stereotyping", "lewd": "lewd", "group_framing": "framing",
        "fact_or_opinion": "factual?",
    }  # fmt: skip
    for pk, row in table.iterrows():
        written = exported[texts[pk]]
        for question, column in named.items():
            words = {**ANNOTATED_WORDS[question], DISAGREEMENT: DISAGREEMENT}
            assert words[row[question]] == written[column]
        for scale, column in (
            ("harmful_if_ai", "toxicity_ai"), ("harmful_if_human", "toxicity_human"), ("harmful_intent", "intent"),
        ):  # fmt: skip
            assert round(row[scale], expressions.DIGITS_OF_A_MEAN) == written[column]
        assert TOXICITY_CLASSES[int(row["toxicity_class"])] == classes[pk]
        told = judged.whom_it_refers_to(written["predicted_group"], row["group"], lambda words: {OTHER, "women"})
        assert told == (row["reference"], row["referenced"])
