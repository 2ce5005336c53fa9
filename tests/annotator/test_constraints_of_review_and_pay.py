"""What must never be false of reviewing, paying and people is refused by the database; no constraint is forgotten."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.utils import timezone

from annotator.models import (
    HIT,
    Assignment,
    Grant,
    HITType,
    KnownAnswers,
    PaidOut,
    Panel,
    Payment,
    Payout,
    Qualification,
    TestResult,
)
from annotator.questions import QUESTIONS
from generation.models import Generation
from tests.annotator.test_constraints import given_back, refused_by, row, submitted
from tests.factories import make_assignment, make_generation, make_group, make_hit, make_hit_type, make_worker

pytestmark = pytest.mark.django_db

DECIDED = {"decided_at": timezone.now()}
REJECTED = {"status": "rejected", "rejection_reason": "It was left empty.", "holds_place": False} | DECIDED


# --- Assignments move as they may

MOVES = {
    "accepted": {"submitted", "returned", "expired"},
    "returned": {"submitted"},
    "expired": {"submitted"},
    "submitted": {"approved", "rejected"},
    "approved": set(),
    "rejected": {"approved"},
}
FIELDS = {
    "accepted": {"status": "accepted", "holds_place": True, "submitted_at": None},
    "returned": given_back("returned") | {"submitted_at": None},
    "expired": given_back("expired") | {"submitted_at": None},
    "submitted": submitted(),
    "approved": submitted(status="approved", **DECIDED),
    "rejected": submitted(**REJECTED),
}


@pytest.mark.parametrize("before", MOVES)
@pytest.mark.parametrize("after", MOVES)
def test_an_assignment_moves_in_mechanical_turks_ways_alone(before, after):
    assignment = make_assignment(**FIELDS[before])
    change = row(Assignment, assignment)
    if after in MOVES[before] or before == after:
        change.update(**FIELDS[after])
    else:
        with refused_by("assignment_moves_as_it_may"):
            change.update(**FIELDS[after])


@pytest.mark.parametrize(("days", "refused"), [(29, False), (31, True)])
def test_an_approval_can_follow_a_rejection_within_30_days(days, refused):
    assignment = make_assignment(**FIELDS["rejected"] | {"decided_at": timezone.now() - timedelta(days=days)})
    change = row(Assignment, assignment)
    if refused:
        with refused_by("assignment_approved_within_30_days_of_its_rejection"):
            change.update(status="approved", decided_at=timezone.now())
    else:
        change.update(status="approved", decided_at=timezone.now())


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"status": "lost"}, "assignment_status_known"),
        (submitted(**REJECTED, ) | {"rejection_reason": ""}, "assignment_rejected_with_a_reason"),
        (submitted(**REJECTED) | {"rejection_reason": " \n"}, "assignment_rejected_with_a_reason"),
        (submitted(**REJECTED) | {"holds_place": True}, "assignment_rejected_frees_its_place"),
        (submitted(status="approved"), "assignment_decided_when_its_status_says_so"),
        (submitted(answers_deleted_at=timezone.now()), "assignment_without_answers_holds_no_place"),
        (submitted(draft={"lewd": "no"}), "assignment_draft_ends_with_submitting"),
        ({"reward": Decimal("-0.01")}, "assignment_reward_not_negative"),
    ],
)  # fmt: skip
def test_an_assignment_is_stored_in_a_state_that_can_be(fields, constraint):
    hit = make_hit()
    with refused_by(constraint):
        make_assignment(hit, **fields)


def test_what_was_promised_at_accepting_is_paid():
    assignment = make_assignment(reward=Decimal("0.25"))
    with refused_by("assignment_keeps_its_reward"):
        row(Assignment, assignment).update(reward=Decimal("0.20"))


# --- Studies, HITs and statements with known answers


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"expected_time": timedelta(0)}, "hit_type_expected_time_positive"),
        ({"wage_floor": -1}, "hit_type_wage_floor_not_negative"),
        ({"daily_cap": 0}, "hit_type_daily_cap_positive"),
        ({"break_after": timedelta(0)}, "hit_type_break_after_positive"),
        ({"check_every": 1}, "hit_type_check_every_leaves_room"),
        ({"pass_mark": 70}, "hit_type_test_has_a_pass_mark"),
    ],
)
def test_a_study_has_sensible_terms(fields, constraint):
    study = make_hit_type()
    with refused_by(constraint):
        row(HITType, study).update(**fields)


@pytest.mark.parametrize("pass_mark", [None, 0, 101])
def test_a_test_has_a_pass_mark(pass_mark):
    with refused_by("hit_type_test_has_a_pass_mark"):
        make_hit_type(grants=Qualification.objects.create(name="prequalified"), pass_mark=pass_mark)


@pytest.mark.parametrize("change", [{"prompt_label": "toxic"}, {"is_check": True}])
def test_a_hit_keeps_the_label_of_its_statement_and_what_it_is_for(change):
    hit = make_hit()
    with refused_by("hit_keeps_its_study_and_statement"):
        row(HIT, hit).update(**change)


def test_a_hit_takes_its_label_from_its_statement():
    hit = make_hit(generation=make_generation(label="toxic"), prompt_label="benign")
    hit.refresh_from_db()
    assert hit.prompt_label == "toxic"


@pytest.mark.parametrize("field", ["label", "group"])
def test_label_and_group_of_a_statement_in_a_hit_never_change(field):
    generation = make_hit().generation
    with refused_by("generation_text_frozen_in_a_hit"):
        row(Generation, generation).update(**{field: "toxic" if field == "label" else make_group("asian")})


def test_known_answers_expect_something():
    with refused_by("known_answers_expect_something"):
        KnownAnswers.objects.create(generation=make_generation(), expected={})


# --- People


def test_a_participant_joins_a_panel_once():
    panel, other = (Panel.objects.create(name=name) for name in ("one", "other"))
    make_worker(panel=panel, pay_reference="p1")
    make_worker(panel=panel, pay_reference="")
    make_worker(panel=panel, pay_reference="")
    make_worker(panel=other, pay_reference="p1")
    with refused_by("worker_once_a_participant_of_a_panel"):
        make_worker(panel=panel, pay_reference="p1")


def test_a_qualification_is_granted_once():
    worker, qualification = make_worker(), Qualification.objects.create(name="prequalified")
    Grant.objects.create(worker=worker, qualification=qualification)
    with refused_by("grant_once_a_worker"):
        Grant.objects.create(worker=worker, qualification=qualification)


def test_a_test_is_taken_once():
    worker, study = make_worker(), make_hit_type()
    result = {"test": study, "worker": worker, "right": 1, "total": 2, "passed": False}
    TestResult.objects.create(**result)
    with refused_by("test_result_once_a_worker"):
        TestResult.objects.create(**result)


@pytest.mark.parametrize(("right", "total"), [(3, 2), (0, 0)])
def test_a_test_result_is_a_share(right, total):
    worker, study = make_worker(), make_hit_type()
    with refused_by("test_result_is_a_share"):
        TestResult.objects.create(test=study, worker=worker, right=right, total=total, passed=False)


# --- The ledger


def approved(**fields):
    """The ledger row of an approved assignment."""
    return make_assignment(**FIELDS["approved"], **fields).payments.get()


def bonus(worker, **fields):
    defaults = {"kind": "bonus", "amount": Decimal("1.00"), "reason": "For the trial."}
    return Payment.objects.create(worker=worker, **defaults | fields)


def test_approving_writes_the_ledger_also_from_raw_sql():
    assignment = make_assignment(**submitted(), reward=Decimal("0.40"))
    row(Assignment, assignment).update(status="approved", **DECIDED)
    payment = Payment.objects.get()
    assert (payment.worker, payment.assignment, payment.kind) == (assignment.worker, assignment, "assignment")
    assert payment.amount == Decimal("0.40")


def test_approved_work_in_a_test_is_a_payment_of_its_kind():
    test = make_hit_type(grants=Qualification.objects.create(name="prequalified"), pass_mark=80)
    assert approved(hit=make_hit(hit_type=test)).kind == "test"


def test_an_approval_after_a_rejection_is_paid_once():
    assignment = make_assignment(**FIELDS["rejected"])
    assert not Payment.objects.exists()
    row(Assignment, assignment).update(status="approved", decided_at=timezone.now())
    assert Payment.objects.count() == 1


def test_an_assignment_is_paid_once():
    payment = approved()
    with refused_by("payment_once_an_assignment"):
        Payment.objects.create(worker=payment.worker, assignment=payment.assignment, kind="assignment", amount=1)


def test_a_payment_goes_to_the_worker_of_its_assignment():
    payment = approved()
    with refused_by("payment_to_the_worker_of_its_assignment"):
        bonus(make_worker(), assignment=payment.assignment)


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"kind": "gift"}, "payment_kind_known"),
        ({"kind": "assignment"}, "payment_of_work_has_its_assignment"),
        ({"amount": 0}, "payment_amount_positive"),
        ({"amount": -1}, "payment_amount_positive"),
        ({"reason": " "}, "payment_bonus_has_a_reason"),
    ],
)
def test_a_ledger_row_says_what_it_is_for(fields, constraint):
    worker = make_worker()
    with refused_by(constraint):
        bonus(worker, **fields)


def test_the_ledger_is_never_edited():
    payment = approved()
    with refused_by("ledger_never_edited"):
        row(Payment, payment).update(amount=9)
    with refused_by("ledger_never_edited"):
        row(Payment, payment)._raw_delete("default")


def test_a_ledger_row_is_paid_out_once():
    payment, one, other = approved(), Payout.objects.create(), Payout.objects.create()
    paid_out = PaidOut.objects.create(payout=one, payment=payment)
    with refused_by("annotator_paidout_payment_id_key"):
        PaidOut.objects.create(payout=other, payment=payment)
    with refused_by("ledger_never_edited"):
        row(PaidOut, paid_out)._raw_delete("default")


# --- Nothing is forgotten


def test_every_named_constraint_and_trigger_of_annotator_is_broken_in_these_files(request):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid "
            "WHERE relname LIKE 'annotator\\_%' AND contype = 'c' "
            "UNION SELECT indexname FROM pg_indexes WHERE tablename LIKE 'annotator\\_%' AND indexdef LIKE '%UNIQUE%' "
            "AND indexname !~ '_(key|pkey|uniq)$' "
            "UNION SELECT (regexp_matches(prosrc, $$CONSTRAINT = '(\\w+)'$$, 'g'))[1] FROM pg_proc "
            "WHERE proname LIKE 'annotator\\_%' "
            "UNION SELECT conname FROM pg_constraint WHERE conname IN "
            "('assignment_rests_on_its_workers_consent', 'payment_to_the_worker_of_its_assignment')"
        )
        named = {name for (name,) in cursor.fetchall() if name}
    automatic = {name for name in named if name.endswith("_check")}  # of PositiveIntegerField
    in_range = {f"annotation_{question.key}_in_range" for question in QUESTIONS}
    # There for foreign keys to point at; an id is unique already.
    nothing_breaks = {"consent_of_one_worker", "assignment_of_one_worker"}
    files = ("test_constraints.py", "test_imported_studies.py", request.path.name)
    source = "".join((request.path.parent / name).read_text() for name in files)
    tried = {name for name in named if f'refused_by("{name}")' in source or f', "{name}")' in source}
    assert named - automatic - in_range - nothing_breaks - tried == set()
