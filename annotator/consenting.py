"""Giving consent to the form in force."""

import structlog
from django.utils import timezone

from annotator.models import Consent, ConsentForm, Worker

log = structlog.get_logger(__name__)


def give_consent(*, worker: Worker, form: ConsentForm) -> Consent:
    """Store that the worker agrees to ``form``; twice is as once, and renews a withdrawn consent."""
    consent, created = Consent.objects.get_or_create(worker=worker, form=form)
    if consent.withdrawn_at:
        consent.withdrawn_at, consent.given_at = None, timezone.now()
        consent.save(update_fields=["withdrawn_at", "given_at"])
    if created:
        log.info("consent_given", worker=worker.pseudonym, version=form.version)
    return consent


def has_consented(worker: Worker) -> bool:
    """Whether the worker agrees to the form in force."""
    return Consent.objects.in_force().filter(worker=worker).exists()
