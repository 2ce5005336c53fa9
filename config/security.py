"""What guards the door: the content security policy, and the limit on log-in attempts.

The policy is strict for everybody and looser under the admin's address alone.
"""

import ipaddress

from axes.backends import AxesStandaloneBackend
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

LONGEST_NAME = 150
HOST_BITS = {4: 32, 6: 64}
"""So much of an address tells machines apart: one machine usually has 2⁶⁴ addresses of version 6."""


class ContentSecurityPolicy(CSPMiddleware):
    """Sends the strict policy, and the admin's on the admin's pages."""

    def get_policy_parts(self, request, response, report_only=False) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if request.path_info.startswith(reverse("admin:index")):
            parts.replace = settings.ADMIN_CONTENT_SECURITY_POLICY
        return parts


class LimitedLogIn(AxesStandaloneBackend):
    """Refuses log-ins after too many that failed; without a request nobody is at the door, only a command."""

    def authenticate(self, request: HttpRequest | None, **credentials) -> None:
        if request is not None:
            super().authenticate(request, **credentials)


def log_in_name(request: HttpRequest, credentials: dict | None) -> str:
    """The name that somebody tries to log in by, cut to the length that names can have."""
    return ((credentials or request.POST).get("username") or "")[:LONGEST_NAME]


def client_address(request: HttpRequest) -> str | None:
    """Whom a request comes from: the connection, or what the outermost proxy of ours says; None if nobody knows.

    Of ``X-Forwarded-For`` the entries from the right are our proxies'; what stands left of them anybody can write.
    """
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    if 0 < settings.PROXIES <= len(forwarded) and (address := _network(forwarded[-settings.PROXIES])):
        return address
    return _network(request.META.get("REMOTE_ADDR", ""))


def too_many_log_ins(request: HttpRequest, response: HttpResponse | None, credentials: dict | None) -> HttpResponse:
    """The page that refuses a log-in after too many that failed."""
    wait = round(settings.AXES_COOLOFF_TIME.total_seconds())
    refusal = render(request, "429.html", {"minutes": wait // 60}, status=429)
    refusal["Retry-After"] = str(wait)
    return refusal


def _network(address: str) -> str | None:
    try:
        parsed = ipaddress.ip_address(address.strip())
    except ValueError:
        return None
    parsed = getattr(parsed, "ipv4_mapped", None) or parsed
    return str(ipaddress.ip_network((parsed, HOST_BITS[parsed.version]), strict=False).network_address)
