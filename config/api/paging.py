"""Pages of lists: cursors on the id, newest first, so that a page costs the same anywhere and nothing is counted."""

from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.pagination import Cursor, CursorPagination

LARGEST_ID = 2**63 - 1


class Pages(CursorPagination):
    ordering = "-id"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 500
    invalid_cursor_message = "This cursor is not one that a page of this list gave. Begin without one."

    def get_page_size(self, request) -> int:
        asked = request.query_params.get(self.page_size_query_param)
        if asked is None:
            return self.page_size
        if not (asked.isascii() and asked.isdecimal() and len(asked) < 5 and 1 <= int(asked) <= self.max_page_size):
            raise ValidationError({"page_size": [f"Give a whole number from 1 to {self.max_page_size}."]})
        return int(asked)

    def decode_cursor(self, request) -> Cursor | None:
        cursor = super().decode_cursor(request)
        if cursor is None or cursor.position is None:
            return cursor
        if not (cursor.position.isascii() and cursor.position.isdecimal() and len(cursor.position) < 20):
            raise NotFound(self.invalid_cursor_message)
        return cursor._replace(position=str(min(int(cursor.position), LARGEST_ID)))

    def get_schema_operation_parameters(self, view) -> list[dict]:
        parameters = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] = {"type": "integer", "minimum": 1, "maximum": self.max_page_size}
        return parameters
