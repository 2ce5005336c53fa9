"""Everything between a generation and a submitted annotation, in Mechanical Turk's terms.

What must never be false is held by the database: named constraints here, and triggers in the
migrations, which count the places of a HIT, freeze what was judged and write the ledger.
"""

from annotator.models.annotations import Annotation
from annotator.models.assignments import (
    COUNTED_STATUSES,
    DECIDED_STATUSES,
    GIVEN_BACK_STATUSES,
    SECOND_THOUGHTS,
    SUBMITTED_STATUSES,
    Assignment,
    AssignmentStatus,
)
from annotator.models.consent import GIVEN_ELSEWHERE, Consent, ConsentForm, HelpLine
from annotator.models.hits import HIT, UNLIMITED, HITStatus, is_in_state
from annotator.models.known_answers import KnownAnswers
from annotator.models.pay import PaidOut, Payment, PaymentKind, Payout
from annotator.models.people import Grant, Invitation, Panel, Qualification, TestResult, Worker, new_pseudonym
from annotator.models.studies import HITType, StatementDraw
from annotator.models.surveys import Survey

__all__ = [
    "COUNTED_STATUSES",
    "DECIDED_STATUSES",
    "GIVEN_BACK_STATUSES",
    "GIVEN_ELSEWHERE",
    "HIT",
    "SECOND_THOUGHTS",
    "SUBMITTED_STATUSES",
    "UNLIMITED",
    "Annotation",
    "Assignment",
    "AssignmentStatus",
    "Consent",
    "ConsentForm",
    "Grant",
    "HITStatus",
    "HITType",
    "HelpLine",
    "Invitation",
    "KnownAnswers",
    "PaidOut",
    "Panel",
    "Payment",
    "PaymentKind",
    "Payout",
    "Qualification",
    "StatementDraw",
    "Survey",
    "TestResult",
    "Worker",
    "is_in_state",
    "new_pseudonym",
]
