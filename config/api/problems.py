"""Errors as problem details (RFC 9457): one shape for whatever goes wrong below /api/."""

from http import HTTPStatus

from django.conf import settings
from django.core.exceptions import NON_FIELD_ERRORS, PermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.defaults import server_error as server_error_page
from rest_framework.exceptions import APIException, ErrorDetail, Throttled, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

from annotator import views as pages
from config import refusals

MEDIA_TYPE = "application/problem+json"
INVALID = "Something in the request is not as it should be; “errors” says what, field by field."
OF_THE_WHOLE = settings.REST_FRAMEWORK["NON_FIELD_ERRORS_KEY"]
BROKEN = "Something went wrong on our side. It was written to the log; trying again may help."
NOTHING_HERE = "There is nothing at this address, or it is not yours to see."


def answer(error: Exception, context: dict) -> Response | None:
    """What an API view answers to an error; None for one that nobody expects, which the server then logs."""
    if isinstance(error, DjangoValidationError):
        error = ValidationError(error.message_dict if hasattr(error, "error_dict") else error.messages)
    response = exception_handler(error, context)
    if response is None:
        return None
    response.data = problem(context["request"], response.status_code, **_said(error))
    response.content_type = MEDIA_TYPE
    return response


def problem(request, status: int, detail: str, errors: dict[str, list[str]] | None = None) -> dict:
    """The members of a problem; ``errors`` maps fields to sentences, with dots and numbers for what lies deeper."""
    members = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": request.path,
    }
    return members if errors is None else members | {"errors": errors}


def sentences(detail, path: str = "") -> dict[str, list[str]]:
    """Fields and what is wrong with each, of whatever shape the errors come in.

    >>> sentences({"cells": [{}, {"count": ["Too few."]}], "seed": ["A number."]})
    {'cells.1.count': ['Too few.'], 'seed': ['A number.']}
    """
    if isinstance(detail, dict):
        parts = detail.items()
    elif isinstance(detail, list) and not all(isinstance(part, str) for part in detail):
        parts = enumerate(detail)
    else:
        return {path or OF_THE_WHOLE: _list(detail)}
    found: dict[str, list[str]] = {}
    for name, part in parts:
        here = OF_THE_WHOLE if name == NON_FIELD_ERRORS else str(name)
        found |= sentences(part, f"{path}.{here}" if path else here)
    return found


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not _is_api(request):
        return pages.bad_request(request, exception)
    return _json(request, 400, "This request cannot be read.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not _is_api(request):
        return refusals.not_found(request, exception)
    return _json(request, 404, NOTHING_HERE)


def server_error(request: HttpRequest) -> HttpResponse:
    return _json(request, 500, BROKEN) if _is_api(request) else server_error_page(request)


def _said(error: Exception) -> dict:
    if isinstance(error, ValidationError):
        return {"detail": INVALID, "errors": sentences(error.detail)}
    if isinstance(error, Throttled):
        return {"detail": f"These were too many requests. Try again in {int(error.wait or 0) + 1} seconds."}
    if isinstance(error, APIException):
        return {"detail": str(error.detail)}
    if isinstance(error, Http404):
        return {"detail": NOTHING_HERE}
    if isinstance(error, PermissionDenied):
        return {"detail": str(error) or "Your role does not allow this."}
    raise TypeError(f"Nobody has said how to tell a {type(error).__name__}.")


def _list(detail) -> list[str]:
    return [str(part) for part in detail] if isinstance(detail, list | tuple) else [str(ErrorDetail(detail))]


def _is_api(request: HttpRequest) -> bool:
    return request.path_info.startswith("/api/")


def _json(request: HttpRequest, status: int, detail: str) -> HttpResponse:
    return JsonResponse(problem(request, status, detail), status=status, content_type=MEDIA_TYPE)
