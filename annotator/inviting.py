"""Invite links: a signed key in the address, revocable in the database."""

import uuid

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from annotator.models import Invitation, Worker

SALT = "annotator.invitation"


class InvitationRefused(Exception):
    """The link lets nobody in; the message says why and what to do."""


class InvitationUnknown(InvitationRefused):
    """The link is not one that we made."""


class InvitationRevoked(InvitationRefused):
    """The link was made by us and withdrawn since."""


@transaction.atomic
def invite(*, note: str = "") -> Invitation:
    """Make a new worker and the invitation that lets them in."""
    return Invitation.objects.create(worker=Worker.objects.create(), note=note)


@transaction.atomic
def replace(*, invitation: Invitation) -> Invitation:
    """Revoke an invitation and make a new one for its worker, who keeps what they have done."""
    Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=timezone.now())
    return Invitation.objects.create(worker=invitation.worker, note=invitation.note)


def link(invitation: Invitation) -> str:
    """The address to send to the worker."""
    return settings.SITE_URL + reverse(
        "annotator:invitation", args=[signing.Signer(salt=SALT).sign(invitation.key.hex)]
    )


def redeem(*, token: str) -> Invitation:
    """Return the invitation of a link; raise ``InvitationUnknown`` or ``InvitationRevoked``."""
    try:
        key = uuid.UUID(signing.Signer(salt=SALT).unsign(token))
        invitation = Invitation.objects.select_related("worker").get(key=key)
    except (signing.BadSignature, ValueError, Invitation.DoesNotExist):
        raise InvitationUnknown(
            "This invite link is not complete or not one of ours. Copy the whole link from the message you got, "
            "or ask whoever sent it for a new one."
        ) from None
    if invitation.revoked_at:
        raise InvitationRevoked(
            "This invite link has been withdrawn. Ask whoever sent it for a new one; work you submitted is kept."
        )
    Invitation.objects.filter(pk=invitation.pk, used_at=None).update(used_at=timezone.now())
    return invitation
