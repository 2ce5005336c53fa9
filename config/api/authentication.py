"""Who calls the API: a token in a header, as scripts send it, or the session of the workspace."""

from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication
from knox.models import AuthToken
from rest_framework.exceptions import AuthenticationFailed

REFUSED = (
    "This token is not one of ours, was revoked or has run out. Make one in the workspace under Data, API, and send it "
    "as “Authorization: Bearer TOKEN”."
)


class BearerToken(TokenAuthentication):
    """Tokens of django-rest-knox, of which only a hash is stored. Asking for something deletes none."""

    def authenticate_credentials(self, token: bytes):
        if not token.isascii():
            raise AuthenticationFailed(REFUSED)
        try:
            return super().authenticate_credentials(token)
        except AuthenticationFailed as refused:
            raise AuthenticationFailed(REFUSED) from refused

    def _cleanup_token(self, auth_token: AuthToken) -> bool:
        """Whether the token has run out. It stays in its owner's list, which says so."""
        return auth_token.expiry is not None and auth_token.expiry < timezone.now()


class BearerTokenScheme(OpenApiAuthenticationExtension):
    """How the description of the API names it."""

    target_class = BearerToken
    name = "token"

    def get_security_definition(self, auto_schema) -> dict:
        return {"type": "http", "scheme": "bearer", "description": "A token made in the workspace under Data, API."}
