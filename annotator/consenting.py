"""Agreeing to the consent form in force, withdrawing, and putting a new form in force.

Locks are taken in the order of ``assigning``: the worker, then assignments in the order of their
ids, then HITs in the order of theirs. So an accept or a submit at the same moment is either seen
by a withdrawal or comes after it.
"""

from dataclasses import dataclass

import structlog
from django.db import transaction
from django.utils import timezone

from annotator import assigning
from annotator.models import HIT, Annotation, Assignment, Consent, ConsentForm, Survey, Worker

TEXTS = ("title", "warning", "purpose", "risks", "pay", "contact", "withdrawal", "debrief")

log = structlog.get_logger(__name__)


class CannotPublish(Exception):
    """The form cannot be put in force; the message says why and what to do."""


@dataclass(frozen=True)
class Withdrawal:
    """What a withdrawal did."""

    consents: int
    """Versions of the form that the worker agrees to no more."""
    returned: bool
    """Whether a statement was open and was returned."""
    deleted: int
    """Statements whose answers were deleted."""


@transaction.atomic
def give_consent(*, worker: Worker, form: ConsentForm, covers_statements: bool = True) -> Consent:
    """Store that the worker agrees to ``form``, and whether statements stay covered; twice is as once.

    Who withdrew gets a new consent: the one that was withdrawn stays as it is.
    """
    Worker.objects.filter(pk=worker.pk).update(covers_statements=covers_statements)  # which locks the worker
    consent, created = Consent.objects.get_or_create(worker=worker, form=form, withdrawn_at=None)
    if created:
        log.info("consent_given", worker=worker.pseudonym, version=form.version)
    return consent


@transaction.atomic
def withdraw(*, worker: Worker, delete_answers: bool) -> Withdrawal:
    """End the worker's consent to every version, and return the statement they are at.

    ``delete_answers`` deletes what they answered, began to answer and said about themselves, and
    opens the places anew. That they did the work is kept, and so is what they are owed for it.
    Nothing is stored any more for an assignment whose answers were deleted.
    """
    Worker.objects.select_for_update(no_key=True).get(pk=worker.pk)
    consents = Consent.objects.filter(worker=worker, withdrawn_at=None).update(withdrawn_at=timezone.now())
    own = Assignment.objects.filter(worker=worker)
    if delete_answers:
        _lock_with_hits(own)
    returned = any(assigning.return_assignment(assignment=assignment) for assignment in own.accepted())
    deleted = _delete_answers(worker) if delete_answers else 0
    log.info("consent_withdrawn", worker=worker.pseudonym, returned=returned, answers_deleted=deleted)
    return Withdrawal(consents=consents, returned=returned, deleted=deleted)


@transaction.atomic
def publish_form(*, form: ConsentForm) -> ConsentForm:
    """Put a form in force from now on, so that everybody is asked anew. Raises ``CannotPublish``."""
    form = ConsentForm.objects.select_for_update().get(pk=form.pk)
    if form.published_at:
        raise CannotPublish(f"Version {form.version} is published already.")
    newer = ConsentForm.objects.filter(version__gt=form.version, published_at__isnull=False).first()
    if newer:
        raise CannotPublish(
            f"Version {newer.version} is published, so version {form.version} would not come into force. "
            "Make a new version from it and publish that."
        )
    form.published_at = timezone.now()
    form.save(update_fields=["published_at"])
    log.info("consent_form_published", version=form.version)
    return form


@transaction.atomic
def make_new_version(*, form: ConsentForm) -> ConsentForm:
    """Copy a form's texts into the next version, to be changed and published; if one waits for that, return it."""
    list(ConsentForm.objects.order_by("version").select_for_update())  # so that a double click makes one
    newest = ConsentForm.objects.order_by("-version")[0]
    if newest.published_at is None:
        return newest
    return ConsentForm.objects.create(version=newest.version + 1, **{field: getattr(form, field) for field in TEXTS})


def last_consent(worker: Worker) -> Consent | None:
    """The worker's newest consent, withdrawn or not, with its form."""
    return Consent.objects.filter(worker=worker).select_related("form").order_by("-pk").first()


def _lock_with_hits(assignments) -> None:
    """Wait for whatever is being done with the assignments, and keep the places of their HITs as they are."""
    list(assignments.order_by("pk").select_for_update().values_list("pk", flat=True))
    hits = HIT.objects.filter(pk__in=assignments.filter(holds_place=True).order_by().values("hit"))
    list(hits.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))


def _delete_answers(worker: Worker) -> int:
    deleted, _ = Annotation.objects.filter(assignment__worker=worker).delete()
    Assignment.objects.filter(worker=worker, answers_deleted_at=None).update(
        answers_deleted_at=timezone.now(), holds_place=False, draft=None
    )
    Survey.objects.filter(worker=worker).delete()
    return deleted
