"""The workspace's Generate pages."""

from generation.admin import audit, demonstrations, generations, groups, readings, runs
from generation.admin.lists import COUNTED_UP_TO, BoundedPaginator, WorkspaceAdmin, count_up_to, up_to_the_bound
from generation.admin.texts import ReadOnlyAdmin, blurred, duration, percent, rounded

__all__ = [
    "COUNTED_UP_TO",
    "BoundedPaginator",
    "ReadOnlyAdmin",
    "WorkspaceAdmin",
    "audit",
    "blurred",
    "count_up_to",
    "demonstrations",
    "duration",
    "generations",
    "groups",
    "percent",
    "readings",
    "rounded",
    "runs",
    "up_to_the_bound",
]
