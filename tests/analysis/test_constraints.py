"""What must never be false of imports and human labels is refused by the database."""

from contextlib import contextmanager

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from analysis.models import (
    DataImport,
    HumanLabel,
    HumanvalProof,
    HumanvalSet,
    HumanvalStatement,
    RemovedFromTraining,
)
from generation.models import Generation
from tests.analysis.humanval_world import toy_reader
from tests.factories import make_generation, make_group, make_hit_type

pytestmark = pytest.mark.django_db


@contextmanager
def refused_by(constraint):
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        yield


def make_import(**fields):
    return DataImport.objects.create(**{"format": "train", "file_name": "train.csv"} | fields)


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("import_format_known", {"format": "gold"}),
        ("import_state_known", {"state": "lost", "ended_at": timezone.now()}),
        ("import_ended_when_its_state_says_so", {"state": "finished"}),
        ("import_ended_when_its_state_says_so", {"state": "running", "ended_at": timezone.now()}),
        (
            "import_ended_when_its_state_says_so",
            {"state": "finished", "ended_at": timezone.now(), "lease_expires_at": timezone.now()},
        ),
        ("import_that_stored_nothing_says_why", {"state": "refused", "ended_at": timezone.now(), "failure": " "}),
        (
            "import_that_stored_nothing_says_why",
            {"state": "failed", "ended_at": timezone.now(), "failure": "x", "new": 1},
        ),
        ("import_that_stored_nothing_says_why", {"state": "queued", "failure": "x"}),
        ("import_accounts_for_every_row", {"state": "finished", "ended_at": timezone.now(), "rows": 3, "new": 1}),
    ],
)
def test_an_import_is_what_it_says(constraint, fields):
    with refused_by(constraint):
        make_import(**fields)


@pytest.mark.parametrize("score", ["intent", "toxicity_ai", "toxicity_human"])
@pytest.mark.parametrize("value", [0.9, 5.1, float("nan")])
def test_scores_of_human_labels_are_on_their_scale(score, value):
    label = HumanLabel.objects.create(generation=make_generation(), **{score: 3})
    with refused_by(f"human_label_{score}_on_its_scale"):
        HumanLabel.objects.filter(pk=label.pk).update(**{score: value})


def test_a_statement_has_one_human_label():
    generation = make_generation()
    HumanLabel.objects.create(generation=generation)
    with refused_by("generation_id"):
        HumanLabel.objects.create(generation=generation)


def test_an_imported_statement_is_stored_once():
    fields = {"text": "one", "group": make_group(), "label": "benign", "method": "topk"}
    make_generation(**fields)
    with refused_by("generation_imported_once"):
        Generation.objects.create(**fields)
    make_generation(**fields | {"label": "toxic"})


# --- HUMANVAL sets


NOW = timezone.now()
DRAWN = {"state": "drawn", "finished_at": NOW, "compared_up_to": 1}
CHECKSUM = "0123456789abcdef" * 4


def make_set(**fields):
    fields = {"version": 1, "seed": 1} | fields
    if fields.get("compared_up_to") and "reader" not in fields:
        fields["reader"] = toy_reader()
    states = ["drawn", "published", "frozen"]
    state = fields.get("state")
    if state not in states[1:]:
        return HumanvalSet.objects.create(**fields)
    if "hit_type" not in fields:
        fields["hit_type"] = make_hit_type()
    last = {name: fields.pop(name) for name in ("checksum", "frozen_at") if name in fields}
    made = HumanvalSet.objects.create(**fields | {"state": "drawn"})
    for reached in states[1 : states.index(state) + 1]:
        HumanvalSet.objects.filter(pk=made.pk).update(state=reached, **(last if reached == state else {}))
    return made


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("humanval_state_known", DRAWN | {"state": "lost"}),
        ("humanval_has_a_size", {"size": 0}),
        ("humanval_has_candidates", {"candidates": 0}),
        ("humanval_threshold_is_a_cosine", {"threshold": 0}),
        ("humanval_threshold_is_a_cosine", {"threshold": 1.01}),
        ("humanval_threshold_is_a_cosine", {"threshold": float("nan")}),
        ("humanval_frozen_has_its_checksum", DRAWN | {"state": "frozen", "frozen_at": NOW}),
        ("humanval_frozen_has_its_checksum", DRAWN | {"state": "frozen", "frozen_at": NOW, "checksum": "A" * 64}),
        ("humanval_frozen_has_its_checksum", DRAWN | {"state": "frozen", "checksum": CHECKSUM}),
        ("humanval_frozen_has_its_checksum", DRAWN | {"checksum": CHECKSUM}),
        ("humanval_failed_with_a_reason", {"state": "failed", "finished_at": NOW}),
        ("humanval_failed_with_a_reason", DRAWN | {"failure": "x"}),
        ("humanval_wanted_until_it_is_drawn", {"finished_at": NOW}),
        ("humanval_wanted_until_it_is_drawn", DRAWN | {"finished_at": None}),
        ("humanval_wanted_until_it_is_drawn", DRAWN | {"lease_expires_at": NOW}),
        ("humanval_judged_in_a_study", DRAWN | {"state": "published", "hit_type": None}),
        ("humanval_drawn_was_compared", DRAWN | {"compared_up_to": None}),
        ("humanval_drawn_was_compared", DRAWN | {"reader": None}),
    ],
)
def test_a_humanval_set_is_what_it_says(constraint, fields):
    with refused_by(constraint):
        make_set(**fields)


def test_a_version_is_there_once():
    make_set()
    with refused_by("analysis_humanvalset_version"):
        make_set()


LABEL = {
    "annotators": 2, "harmful_if_ai": 1, "harmful_if_human": 2, "toxicity_class": "non-toxic", "share_agreeing": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("constraint", "fields"),
    [
        ("humanval_statement_class_known", LABEL | {"toxicity_class": "odd"}),
        ("humanval_statement_harmful_if_ai_on_its_scale", LABEL | {"harmful_if_ai": 5.5}),
        ("humanval_statement_harmful_if_human_on_its_scale", LABEL | {"harmful_if_human": float("nan")}),
        ("humanval_statement_share_is_a_share", LABEL | {"share_agreeing": 0}),
        ("humanval_statement_share_is_a_share", LABEL | {"share_agreeing": 1.1}),
        ("humanval_statement_label_is_whole", LABEL | {"annotators": 0}),
        ("humanval_statement_label_is_whole", LABEL | {"toxicity_class": ""}),
        ("humanval_statement_label_is_whole", LABEL | {"harmful_if_ai": None}),
        ("humanval_statement_label_is_whole", LABEL | {"share_agreeing": None}),
    ],
)
def test_a_label_of_a_humanval_statement_is_whole_and_on_its_scale(constraint, fields):
    statement = HumanvalStatement.objects.create(humanval_set=make_set(), generation=make_generation(), neighbours=0)
    HumanvalStatement.objects.filter(pk=statement.pk).update(**LABEL)
    with refused_by(constraint):
        HumanvalStatement.objects.filter(pk=statement.pk).update(**fields)


def test_a_statement_is_in_a_set_once_and_removed_for_it_once():
    its = {"humanval_set": make_set(), "generation": make_generation()}
    HumanvalStatement.objects.create(**its, neighbours=0)
    with refused_by("humanval_statement_once_a_set"):
        HumanvalStatement.objects.create(**its, neighbours=0)
    removed = its | {"generation": make_generation(), "nearest": its["generation"], "cosine": 0.9}
    RemovedFromTraining.objects.create(**removed)
    with refused_by("removed_statement_once_a_set"):
        RemovedFromTraining.objects.create(**removed)
    with refused_by("removed_statement_is_not_of_the_set"):
        RemovedFromTraining.objects.create(**removed | {"generation": removed["nearest"]})
    with refused_by("removed_statement_has_a_cosine"):
        RemovedFromTraining.objects.create(**removed | {"generation": make_generation(), "cosine": 1.1})


def test_one_check_of_a_set_is_under_way():
    humanval_set = make_set()
    HumanvalProof.objects.create(humanval_set=humanval_set)
    with refused_by("humanval_proof_one_at_a_time"):
        HumanvalProof.objects.create(humanval_set=humanval_set)


@pytest.mark.parametrize(
    "fields",
    [
        {"found": {"holds": True}},
        {"failure": "x"},
        {"finished_at": NOW},
        {"finished_at": NOW, "failure": " "},
        {"finished_at": NOW, "failure": "x", "found": {}},
        {"finished_at": NOW, "found": {}, "lease_expires_at": NOW},
    ],
)
def test_a_check_ends_with_what_it_found_or_with_a_reason(fields):
    with refused_by("humanval_proof_ends_with_what_it_found"):
        HumanvalProof.objects.create(humanval_set=make_set(), **fields)


# --- What stays as it is


@contextmanager
def kept_by(trigger):
    """Refused by a trigger, which names itself as a constraint."""
    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        yield
    assert refusal.value.__cause__.diag.constraint_name == trigger


@pytest.fixture
def kept():
    """A set with a statement and a removed one, to be put into a state."""
    humanval_set = make_set(**DRAWN, hit_type=make_hit_type())
    own, removed = make_generation(), make_generation()
    HumanvalStatement.objects.create(humanval_set=humanval_set, generation=own, neighbours=1)
    RemovedFromTraining.objects.create(humanval_set=humanval_set, generation=removed, nearest=own, cosine=0.9)
    return HumanvalSet.objects.filter(pk=humanval_set.pk)


def put_into(kept, state):
    kept.update(state="published")
    if state == "frozen":
        HumanvalStatement.objects.update(**LABEL)
        kept.update(state="frozen", frozen_at=NOW, checksum=CHECKSUM)


@pytest.mark.parametrize(
    "change",
    [
        {"checksum": "f" * 64},
        {"agreement": {"figures": []}},
        {"threshold": 0.9},
        {"report": {"chosen": 2}},
        {"version": 7},
        {"compared_up_to": 0},
        {"hit_type": None},
    ],
)
def test_a_frozen_set_does_not_change(kept, change):
    put_into(kept, "frozen")
    with kept_by("humanval_set_stays"):
        kept.update(**change)


@pytest.mark.parametrize("state", ["drawn", "published"])
@pytest.mark.parametrize("change", [{"threshold": 0.9}, {"seed": 5}, {"size": 3}, {"filters": {"label": ["toxic"]}}])
def test_what_a_set_was_drawn_with_stays(kept, state, change):
    kept.update(state=state)
    with kept_by("humanval_set_stays"):
        kept.update(**change)


def test_a_published_set_keeps_its_study(kept):
    put_into(kept, "published")
    with kept_by("humanval_set_stays"):
        kept.update(hit_type=make_hit_type())


def test_a_set_never_goes_back_and_leaves_no_state_out(kept):
    frozen_now = {"state": "frozen", "frozen_at": NOW, "checksum": CHECKSUM}
    wanted = HumanvalSet.objects.filter(pk=make_set(version=2).pk)
    failed = {"state": "failed", "failure": "x", "finished_at": NOW}
    for rows, change in (
        (kept, {"state": "wanted", "finished_at": None}),
        (kept, failed),
        (kept, frozen_now),
        (wanted, DRAWN | {"state": "published"}),
    ):
        with kept_by("humanval_states_in_order"):
            rows.update(**change)
    wanted.update(**failed)
    with kept_by("humanval_states_in_order"):
        wanted.update(state="wanted", failure="", finished_at=None)
    put_into(kept, "published")
    with kept_by("humanval_states_in_order"):
        kept.update(state="drawn")
    put_into(kept, "frozen")
    with kept_by("humanval_states_in_order"):
        kept.update(state="published", checksum="", frozen_at=None)


@pytest.mark.parametrize("state", ["published", "frozen"])
def test_no_set_is_stored_as_published_or_frozen(state):
    with kept_by("humanval_states_in_order"):
        HumanvalSet.objects.create(version=1, seed=1, **DRAWN | {"state": state})


@pytest.mark.parametrize("state", ["published", "frozen"])
def test_a_set_that_people_judge_is_not_deleted(kept, state):
    put_into(kept, state)
    with kept_by("humanval_set_stays"), connection.cursor() as cursor:
        cursor.execute("DELETE FROM analysis_humanvalset")


def test_newer_statements_may_be_compared_with_a_frozen_set_and_its_maker_may_leave(kept):
    user = User.objects.create(username="ada")
    kept.update(created_by=user)
    put_into(kept, "frozen")
    kept.update(compared_up_to=5)
    user.delete()
    assert kept.get().created_by is None
    with kept_by("humanval_set_stays"):
        kept.update(created_by=User.objects.create(username="bob"))


@pytest.mark.parametrize("state", ["published", "frozen"])
def test_its_statements_stay(kept, state):
    put_into(kept, state)
    for change in ({"generation": make_generation()}, {"neighbours": 3}, {"humanval_set": make_set(version=2)}):
        with kept_by("humanval_statements_stay"):
            HumanvalStatement.objects.update(**change)
    with kept_by("humanval_statements_stay"):
        HumanvalStatement.objects.all().delete()
    with kept_by("humanval_statements_stay"):
        HumanvalStatement.objects.create(humanval_set=kept.get(), generation=make_generation(), neighbours=0)


def test_labels_are_filled_in_before_the_freezing_and_stay_after_it(kept):
    put_into(kept, "published")
    HumanvalStatement.objects.update(**LABEL)
    put_into(kept, "frozen")
    with kept_by("humanval_statements_stay"):
        HumanvalStatement.objects.update(harmful_if_ai=2)


def test_a_statement_of_a_drawn_set_does_not_move_to_another_one(kept):
    with kept_by("humanval_statements_stay"):
        HumanvalStatement.objects.update(humanval_set=make_set(version=2))
    HumanvalStatement.objects.all().delete()  # but may go
    assert not RemovedFromTraining.objects.exists()


@pytest.mark.parametrize("state", ["published", "frozen"])
def test_what_was_removed_stays_removed_and_more_may_be(kept, state):
    put_into(kept, state)
    with kept_by("humanval_removed_stay_removed"):
        RemovedFromTraining.objects.all().delete()
    with kept_by("humanval_removed_stay_removed"):
        RemovedFromTraining.objects.update(cosine=0.2)
    own = HumanvalStatement.objects.get().generation
    RemovedFromTraining.objects.create(humanval_set=kept.get(), generation=make_generation(), nearest=own, cosine=0.8)


def test_what_is_removed_is_near_a_statement_of_the_set(kept):
    row = {"humanval_set": kept.get(), "generation": make_generation(), "nearest": make_generation(), "cosine": 0.8}
    with refused_by("removed_statement_is_near_one_of_the_set"):
        RemovedFromTraining.objects.create(**row)


def test_what_was_removed_for_a_drawn_set_may_go_with_it(kept):
    kept.get().delete()
    assert not RemovedFromTraining.objects.exists()
