"""Who comes in: by an invite link of one's own, or by the link of a panel, which makes a worker on first use.

Links are signed keys, revocable in the database. Each kind has a salt of its own, so that the
token of one is none of the other.
"""

import uuid

import structlog
from django.conf import settings
from django.core import signing
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from annotator.models import Invitation, Panel, Worker

SALT = "annotator.invitation"
PANEL_SALT = "annotator.panel"
TICKET_SALT = "annotator.panel.ticket"

UNKNOWN = (
    "This invite link is not complete or not one of ours. Copy the whole link from the message you got, "
    "or ask whoever sent it for a new one."
)

log = structlog.get_logger(__name__)


class InvitationRefused(Exception):
    """The link lets nobody in; the message says why and what to do."""


class InvitationUnknown(InvitationRefused):
    """The link is not one that we made."""


class InvitationRevoked(InvitationRefused):
    """The link was made by us and withdrawn since."""


class PanelFull(InvitationRefused):
    """As many have joined as there are places."""


class JoinedBefore(InvitationRefused):
    """Somebody joined with the same participant id."""


@transaction.atomic
def invite(*, note: str = "") -> Invitation:
    """Make a new worker and the invitation that lets them in."""
    return Invitation.objects.create(worker=Worker.objects.create(), note=note)


def revoke(*, invitation: Invitation) -> bool:
    """Let nobody in by the link any more; return whether it was in force. What its worker did is kept."""
    return bool(Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=timezone.now()))


@transaction.atomic
def replace(*, invitation: Invitation) -> Invitation:
    """Revoke an invitation and make a new one for its worker, who keeps what they have done."""
    revoke(invitation=invitation)
    return Invitation.objects.create(worker=invitation.worker, note=invitation.note)


@transaction.atomic
def join(*, panel: Panel, pay_reference: str = "", key: uuid.UUID | None = None) -> Invitation:
    """Make a worker of a panel and return the invitation that lets them in.

    ``key`` is that of the invitation to be; the same one again, as a double click sends it, returns the same
    invitation. The panel is locked, so that its places are never exceeded. Raises ``InvitationRevoked``,
    ``PanelFull`` or ``JoinedBefore``.
    """
    key = key or uuid.uuid4()
    panel = Panel.objects.select_for_update(no_key=True).get(pk=panel.pk)
    before = Invitation.objects.filter(key=key, worker__panel=panel).first()
    if before:
        _refuse_revoked(before.revoked_at)
        return before
    refuse_closed(panel)
    if pay_reference and panel.workers.filter(pay_reference=pay_reference).exists():
        raise JoinedBefore(
            "Somebody has joined with this ID already. If that was you, open your personal link, which was shown to "
            "you then. If you do not have it any more, ask whoever sent you here."
        )
    worker = Worker.objects.create(panel=panel, pay_reference=pay_reference)
    log.info("panel_joined", panel=panel.pk, worker=worker.pseudonym)
    return Invitation.objects.create(worker=worker, key=key, used_at=timezone.now())


def refuse_closed(panel: Panel) -> None:
    """Raise ``InvitationRevoked`` or ``PanelFull`` for a panel that takes nobody now."""
    _refuse_revoked(panel.revoked_at)
    if panel.max_workers is not None and panel.workers.count() >= panel.max_workers:
        raise PanelFull(
            "All places of this study are taken. If you have joined already, open your personal link; "
            "if not, ask whoever sent you here whether there will be more."
        )


def link(invitation: Invitation) -> str:
    """The address to send to the worker."""
    return _address("annotator:invitation", invitation.key, SALT)


def panel_link(panel: Panel) -> str:
    """The address to give to many."""
    return _address("annotator:join", panel.key, PANEL_SALT)


def redeem(*, token: str) -> Invitation:
    """Return the invitation of a link; raise ``InvitationUnknown`` or ``InvitationRevoked``."""
    invitation = Invitation.objects.select_related("worker").filter(key=_key_of(token, SALT)).first()
    if invitation is None:
        raise InvitationUnknown(UNKNOWN)
    _refuse_revoked(invitation.revoked_at)
    Invitation.objects.filter(pk=invitation.pk, used_at=None).update(used_at=timezone.now())
    return invitation


def panel_of(*, token: str) -> Panel:
    """Return the panel of a link, which may be closed; raise ``InvitationUnknown``."""
    panel = Panel.objects.filter(key=_key_of(token, PANEL_SALT)).first()
    if panel is None:
        raise InvitationUnknown(UNKNOWN)
    return panel


def ticket(panel: Panel) -> str:
    """What a page with the button to join carries: good for one worker of the panel, however often it is sent."""
    return signing.Signer(salt=f"{TICKET_SALT}.{panel.key.hex}").sign(uuid.uuid4().hex)


def key_of_ticket(panel: Panel, ticket: str) -> uuid.UUID | None:
    """The key of the invitation that a ticket stands for; None for one that we did not make for this panel."""
    return _key_of(ticket, f"{TICKET_SALT}.{panel.key.hex}")


def _address(name: str, key: uuid.UUID, salt: str) -> str:
    return settings.SITE_URL + reverse(name, args=[signing.Signer(salt=salt).sign(key.hex)])


def _key_of(token: str, salt: str) -> uuid.UUID | None:
    """The key that was signed with this salt; None if none was."""
    try:
        return uuid.UUID(signing.Signer(salt=salt).unsign(token))
    except (signing.BadSignature, ValueError):
        return None


def _refuse_revoked(revoked_at) -> None:
    if revoked_at:
        raise InvitationRevoked(
            "This invite link has been withdrawn. Ask whoever sent it for a new one; work you submitted is kept."
        )
