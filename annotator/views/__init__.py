"""The annotators' pages. Each parses, calls one act or one read, and answers."""

from annotator.views.access import NO_CSRF_COOKIE, bad_request, csrf_failure, not_found

__all__ = ["NO_CSRF_COOKIE", "bad_request", "csrf_failure", "not_found"]
