"""The content security policy: strict for everybody, looser under the admin's address alone."""

from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.urls import reverse


class ContentSecurityPolicy(CSPMiddleware):
    """Sends the strict policy, and the admin's on the admin's pages."""

    def get_policy_parts(self, request, response, report_only=False) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if request.path_info.startswith(reverse("admin:index")):
            parts.replace = settings.ADMIN_CONTENT_SECURITY_POLICY
        return parts
