"""The annotators' pages. Each parses, calls one act or one read, and answers."""

from annotator.views.access import bad_request, csrf_failure, not_found

__all__ = ["bad_request", "csrf_failure", "not_found"]
