"""The API described for programs: OpenAPI 3.1, with the errors of every address."""

from drf_spectacular.openapi import AutoSchema

from config.api.problems import MEDIA_TYPE

PROBLEM = {
    "type": "object",
    "description": "What went wrong, as RFC 9457 has it.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "description": "What was wrong and what to do."},
        "instance": {"type": "string", "description": "The address that was asked for."},
        "errors": {
            "type": "object",
            "description": "Fields, with dots for what lies deeper, and sentences about each; of a 400 alone.",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
        },
    },
    "required": ["type", "title", "status", "detail", "instance"],
}
EVERYWHERE = {
    "400": "The request, or something in it, is not as it should be.",
    "401": "Nobody is logged in, or the token is not valid.",
    "403": "The role does not allow it.",
    "404": "There is no such page or row.",
    "406": "The answer is not to be had in the form that was asked for.",
    "429": "Too many requests.",
}
OF_WRITING = {
    "409": "It cannot be done as things are; the detail says why.",
    "415": "The body is in a form that is not read here.",
}
TEXT = {"type": "string"}


class Description(AutoSchema):
    """An address is filed under its first part: “runs”, “generations”."""

    def get_operation_id(self) -> str:
        return super().get_operation_id().replace("-", "_")


def describe_problems(result: dict, generator, request, public) -> dict:
    """Add the errors to every operation."""
    result["components"]["schemas"]["Problem"] = PROBLEM
    for path in result["paths"].values():
        for method, operation in path.items():
            problems = EVERYWHERE if method == "get" else EVERYWHERE | OF_WRITING
            for status, description in problems.items():
                operation["responses"].setdefault(status, _response(status, description))
    return result


def _response(status: str, description: str) -> dict:
    answer = {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status == "401":
        answer["headers"] = {"WWW-Authenticate": {"schema": TEXT, "required": True}}
    if status == "429":
        answer["headers"] = {"Retry-After": {"schema": TEXT, "required": True}}
    return answer
