"""Tokens that let scripts into the API in their maker's name. Shown once, stored as a hash, revoked at will."""

from datetime import timedelta

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from knox.models import AuthToken

from generation.auditing import note

LASTS_FOR_DAYS = (1, 7, 30, 90, 365)

log = structlog.get_logger(__name__)


@transaction.atomic
def make_token(*, user: User, days: int) -> tuple[AuthToken, str]:
    """Make a token that runs out after so many days; return it and its text, which nobody can find out again.

    Raises ``ValueError`` for a time that is not offered.
    """
    if days not in LASTS_FOR_DAYS:
        raise ValueError(f"A token lasts for {', '.join(map(str, LASTS_FOR_DAYS))} days, not for {days}.")
    made, text = AuthToken.objects.create(user, expiry=timedelta(days=days))
    note("token made", by=user, subject=_subject(made), days=days)
    log.info("token_made", user=user.pk, token=made.token_key)
    return made, text


@transaction.atomic
def revoke_token(*, user: User, token_key: str) -> bool:
    """Let a token of the user's open nothing any more; return whether there was one."""
    own = AuthToken.objects.filter(user=user, token_key=token_key)
    found = own.first()
    if found is None:
        return False
    own.delete()
    note("token revoked", by=user, subject=_subject(found))
    log.info("token_revoked", user=user.pk, token=found.token_key)
    return True


def _subject(token: AuthToken) -> str:
    return f"token {token.token_key}…"
